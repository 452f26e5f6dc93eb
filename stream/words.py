"""Bytes of NumPy arrays, many at a time, for numba kernels: by address, since an index is checked byte by byte.

Who takes an address keeps the array alive and stays within it. What is called for each token takes addresses, since
handing an array on costs more than a token does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba as nb
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.base import BaseContext
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

_WORD = ir.IntType(64)
_ONE = np.uint64(1)


@intrinsic
def address_of(typing: object, data: types.Array) -> object:
    """Where an array's first element is."""

    def build(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Sequence[ir.Value]
    ) -> object:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(array.data, _WORD)

    return types.int64(data), build


def _load(builder: ir.IRBuilder, address: ir.Value, bits: int) -> ir.Value:
    value = builder.load(builder.inttoptr(address, ir.IntType(bits).as_pointer()), align=1)
    return value if bits == 64 else builder.zext(value, _WORD)


@intrinsic
def load64(typing: object, address: types.Integer) -> object:
    """The eight bytes at an address, little end first."""
    return types.uint64(types.int64), lambda context, builder, signature, given: _load(builder, given[0], 64)


@intrinsic
def load32(typing: object, address: types.Integer) -> object:
    """Four bytes."""
    return types.uint64(types.int64), lambda context, builder, signature, given: _load(builder, given[0], 32)


@intrinsic
def load8(typing: object, address: types.Integer) -> object:
    """One byte."""
    return types.uint64(types.int64), lambda context, builder, signature, given: _load(builder, given[0], 8)


@intrinsic
def _equal64(typing: object, address: types.Integer, byte: types.Integer) -> object:
    """Which of the 64 bytes at an address equal a byte: the lowest bit is that of the first."""

    def build(context: BaseContext, builder: ir.IRBuilder, signature: Signature, given: Sequence[ir.Value]) -> object:
        kind = ir.VectorType(ir.IntType(8), 64)
        held = builder.load(builder.inttoptr(given[0], kind.as_pointer()), align=1)
        one = builder.insert_element(ir.Constant(kind, ir.Undefined), given[1], ir.Constant(ir.IntType(32), 0))
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        splat = builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), everywhere)
        return builder.bitcast(builder.icmp_unsigned("==", held, splat), _WORD)

    return types.uint64(types.int64, types.uint8), build


@intrinsic
def lowest(typing: object, word: types.Integer) -> object:
    """The place of the lowest bit that is set."""
    zero = ir.Constant(ir.IntType(1), 0)
    return types.int64(types.uint64), lambda context, builder, signature, given: builder.cttz(given[0], zero)


@intrinsic
def count_bits(typing: object, word: types.Integer) -> object:
    """How many bits are set."""
    return types.int64(types.uint64), lambda context, builder, signature, given: builder.ctpop(given[0])


@nb.njit(nogil=True, cache=True)
def matches(at: int, end: int, limit: int, byte: int) -> int:
    """Which of the next 64 bytes before `end` equal a byte, as bits; bytes before `limit` may be read."""
    size = end - at
    if at + 64 <= limit:
        found = _equal64(at, np.uint8(byte))
        return found if size >= 64 else found & ((_ONE << np.uint64(size)) - _ONE)
    found = np.uint64(0)
    for k in range(min(size, 64)):
        found |= np.uint64(load8(at + k) == np.uint64(byte)) << np.uint64(k)
    return found


@nb.njit(nogil=True, cache=True)
def without_lowest(bits: int) -> int:
    """The bits but the lowest one."""
    return bits & (bits - _ONE)


@nb.njit(nogil=True, cache=True)
def find(at: int, end: int, limit: int, byte: int) -> int:
    """The address of the first byte that equals one, or `end`; bytes before `limit` may be read."""
    while at < end:
        bits = matches(at, end, limit, byte)
        if bits:
            return at + lowest(bits)
        at += 64
    return end


@nb.njit(nogil=True, cache=True)
def same(a: int, a_end: int, b: int, b_end: int) -> bool:
    """Whether the bytes between two pairs of addresses are the same; from the end, since keys rather begin alike."""
    size = a_end - a
    if size != b_end - b:
        return False
    while size >= 8:
        size -= 8
        if load64(a + size) != load64(b + size):
            return False
    while size:
        size -= 1
        if load8(a + size) != load8(b + size):
            return False
    return True
