"""Bytes of NumPy arrays, up to eight at a time, for numba kernels: by address, since an index is checked byte by byte.

Who takes an address keeps the array alive and stays within it.
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
_ONES = np.uint64(0x0101010101010101)
_HIGHS = np.uint64(0x8080808080808080)


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
def _trailing_zeros(typing: object, word: types.Integer) -> object:
    zero = ir.Constant(ir.IntType(1), 0)
    return types.int64(types.uint64), lambda context, builder, signature, given: builder.cttz(given[0], zero)


@nb.njit(nogil=True, cache=True)
def repeated(byte: int) -> int:
    """A word of eight equal bytes."""
    return np.uint64(byte) * _ONES


@nb.njit(nogil=True, cache=True)
def find_either(at: int, end: int, limit: int, first: int, second: int) -> int:
    """The address of the first of two bytes (`repeated`), or `end`; bytes before `limit` may be read."""
    while at + 8 <= limit and at < end:
        word = load64(at)
        a, b = word ^ first, word ^ second
        # The lowest high bit that is set is that of the first byte that is zero.
        hits = (((a - _ONES) & ~a) | ((b - _ONES) & ~b)) & _HIGHS
        if hits:
            return min(at + (_trailing_zeros(hits) >> 3), end)
        at += 8
    while at < end:
        byte = load8(at)
        if byte == first & np.uint64(255) or byte == second & np.uint64(255):
            return at
        at += 1
    return end


@nb.njit(nogil=True, cache=True)
def equal(a: int, b: int, size: int) -> bool:
    """Whether as many bytes at two addresses are the same; from the end, since keys rather begin alike."""
    while size >= 8:
        size -= 8
        if load64(a + size) != load64(b + size):
            return False
    while size:
        size -= 1
        if load8(a + size) != load8(b + size):
            return False
    return True
