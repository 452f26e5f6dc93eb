"""Numba kernels of the serving tables: the id index, the row store and the pooled lookup; none holds the GIL.

The index is an open-addressing table of (id, slot) pairs with linear probing, at most half full. A deletion shifts the
rest of its probe chain back, so there are no tombstones and a lookup's cost does not grow with deletions.
Rows stay as published (`checkpointer/encoding.py`) and are decoded while they are pooled. Changes go a few ids at a
time, in three passes: one asks for the places in the index, one for those of the rows, one copies. Else each id would
wait for memory twice.
"""

# numba has no types, and inside a kernel Python's are not the ones that count.
# mypy: disable-error-code="untyped-decorator, import-untyped, no-any-return, return-value, assignment"

from typing import Any, Final

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.extending import intrinsic

EMPTY: Final = -1  # raw ids are never negative

# What a table's entry in the catalogue holds, in this order.
CATALOGUE_WIDTH: Final = 11
INDEX, MASK, ROWS, WIDTH, DIM, ENCODING, DIRECT_ROWS, CAPACITY, STATE, FREED, PRESENT = range(CATALOGUE_WIDTH)

# Where the rows of a table lie in a block.
RUN_WIDTH: Final = 3
RUN_TABLE, RUN_START, RUN_END = range(RUN_WIDTH)

# What an entry of the lookup plan holds, in this order.
PLAN_WIDTH: Final = 6
KEY, TABLE, GROUP_START, GROUP_WIDTH, COLUMN, MEAN = range(PLAN_WIDTH)

FP32, FP16, INT8, INT4 = range(4)

# Indices into the `state` of a table: rows that are there, slots in `freed`, slots ever used.
COUNT, FREE, USED = range(3)

_AHEAD: Final = 32
_LINE: Final = 64


@intrinsic
def _pointer(_typing: Any, address: Any) -> Any:
    """Turn an integer address into a pointer that `carray` takes."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.voidptr(address), generate


@intrinsic
def _prefetch(_typing: Any, address: Any) -> Any:
    """Ask for the cache line at an address, without waiting for it."""

    def generate(context: BaseContext, builder: ir.IRBuilder, _signature: Any, args: Any) -> ir.Value:
        flag, pointer = ir.IntType(32), ir.PointerType(ir.IntType(8))
        asks = ir.FunctionType(ir.VoidType(), [pointer, flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch", (pointer,), asks)
        # For reading (a line asked for writing leaves the other core's cache), to be kept, data.
        builder.call(function, [builder.inttoptr(args[0], pointer), flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.none(address), generate


@intrinsic
def _copy(_typing: Any, target: Any, source: Any, size: Any) -> Any:
    """Copy bytes between addresses that do not overlap."""

    def generate(context: BaseContext, builder: ir.IRBuilder, _signature: Any, args: Any) -> ir.Value:
        pointer = ir.PointerType(ir.IntType(8))
        to, of = (builder.inttoptr(arg, pointer) for arg in args[:2])
        cgutils.raw_memcpy(builder, to, of, args[2], 1)
        return context.get_dummy_value()

    return types.none(target, source, size), generate


@numba.njit(nogil=True, cache=True, inline="always")
def _home(key: int, mask: int) -> int:
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    return np.int64(mixed & np.uint64(mask))


@numba.njit(nogil=True, cache=True)
def find(index: np.ndarray, mask: int, key: int) -> int:
    """Return the slot of `key`, or -1."""
    at = _home(key, mask)
    while True:
        seen = index[2 * at]
        if seen == key:
            return index[2 * at + 1]
        if seen == EMPTY:
            return -1
        at = (at + 1) & mask


@numba.njit(nogil=True, cache=True)
def _remove(index: np.ndarray, mask: int, at: int) -> None:
    """Empty a place of the index, closing the gap in its probe chain."""
    hole = at
    at = (at + 1) & mask
    while index[2 * at] != EMPTY:
        # An entry may move into the hole only when its home is not between the hole and itself.
        distance = (at - _home(index[2 * at], mask)) & mask
        if distance >= ((at - hole) & mask):
            index[2 * hole] = index[2 * at]
            index[2 * hole + 1] = index[2 * at + 1]
            hole = at
        at = (at + 1) & mask
    index[2 * hole] = EMPTY


@numba.njit(nogil=True, cache=True)
def _place(
    table: np.ndarray, ids: np.ndarray, kept: np.ndarray, start: int, end: int, slots: np.ndarray, were: np.ndarray
) -> int:
    """Give every id its slot and the deleted ones none any more; return how far it came: a table may be full.

    `slots` are those that the ids have, or had; `were` says whether they had one.
    """
    mask = table[MASK]
    index = numba.carray(_pointer(table[INDEX]), (2 * (mask + 1),), np.int64)
    state = numba.carray(_pointer(table[STATE]), (3,), np.int64)
    # As large as can be: Python makes room for the deletions of a block before it starts.
    freed = numba.carray(_pointer(table[FREED]), (table[CAPACITY],), np.int64)
    for i in range(start, end):
        _prefetch(table[INDEX] + 16 * _home(ids[i], mask))
    for i in range(start, end):
        key = ids[i]
        at = _home(key, mask)
        while index[2 * at] != key and index[2 * at] != EMPTY:
            at = (at + 1) & mask
        there = index[2 * at] == key
        slot = np.int64(0)
        if there:
            slot = index[2 * at + 1]
            if not kept[i]:
                _remove(index, mask, at)
                freed[state[FREE]] = slot
                state[FREE] += 1
                state[COUNT] -= 1
        elif kept[i]:
            if 2 * (state[COUNT] + 1) > mask + 1:
                return i
            if state[FREE] > 0:
                state[FREE] -= 1
                slot = freed[state[FREE]]
            elif state[USED] < table[CAPACITY]:
                slot = state[USED]
                state[USED] += 1
            else:
                return i
            index[2 * at] = key
            index[2 * at + 1] = slot
            state[COUNT] += 1
        slots[i - start] = slot
        were[i - start] = there
    return end


@numba.njit(nogil=True, cache=True)
def _place_direct(table: np.ndarray, ids: np.ndarray, start: int, end: int, slots: np.ndarray, were: np.ndarray) -> int:
    """As `_place`, where a row's number is its slot."""
    state = numba.carray(_pointer(table[STATE]), (3,), np.int64)
    present = numba.carray(_pointer(table[PRESENT]), (table[DIRECT_ROWS],), np.bool_)
    for i in range(start, end):
        slots[i - start] = ids[i]
        were[i - start] = present[ids[i]]
        state[COUNT] += not present[ids[i]]
        present[ids[i]] = True
    return end


@numba.njit(nogil=True, cache=True)
def _places(
    table: np.ndarray, ids: np.ndarray, kept: np.ndarray, start: int, end: int, slots: np.ndarray, were: np.ndarray
) -> int:
    """`_place`, and ask for the rows."""
    if table[DIRECT_ROWS] >= 0:
        reached = _place_direct(table, ids, start, end, slots, were)
    else:
        reached = _place(table, ids, kept, start, end, slots, were)
    for i in range(reached - start):
        row = table[ROWS] + slots[i] * table[WIDTH]
        for line in range(row, row + table[WIDTH], _LINE):
            _prefetch(line)
    return reached


@numba.njit(nogil=True, cache=True)
def put(
    ids: np.ndarray, rows: np.ndarray, kept: np.ndarray, catalogue: np.ndarray, runs: np.ndarray, start: int
) -> int:
    """Insert, overwrite and delete the rows of a block from `start`; return how far it came: a table may be full."""
    slots, were = np.empty(_AHEAD, np.int64), np.empty(_AHEAD, np.bool_)
    source, width = rows.ctypes.data, rows.shape[1]
    for run in range(len(runs)):
        table = catalogue[runs[run, RUN_TABLE]]
        at, until = max(start, runs[run, RUN_START]), runs[run, RUN_END]
        while at < until:
            stop = min(at + _AHEAD, until)
            reached = _places(table, ids, kept, at, stop, slots, were)
            for i in range(at, reached):
                if kept[i]:
                    _copy(table[ROWS] + slots[i - at] * width, source + i * width, width)
            if reached < stop:
                return reached
            at = stop
    return len(ids)


@numba.njit(nogil=True, cache=True)
def exchange(
    ids: np.ndarray,
    rows: np.ndarray,
    kept: np.ndarray,
    old: np.ndarray,
    existed: np.ndarray,
    catalogue: np.ndarray,
    runs: np.ndarray,
    start: int,
) -> int:
    """As `put`, and hand out what was there: `existed` and, where it did, the `old` rows."""
    slots = np.empty(_AHEAD, np.int64)
    source, before, width = rows.ctypes.data, old.ctypes.data, rows.shape[1]
    for run in range(len(runs)):
        table = catalogue[runs[run, RUN_TABLE]]
        at, until = max(start, runs[run, RUN_START]), runs[run, RUN_END]
        while at < until:
            stop = min(at + _AHEAD, until)
            reached = _places(table, ids, kept, at, stop, slots, existed[at:stop])
            # In order: a row that takes the slot of a deleted one comes after it.
            for i in range(at, reached):
                row = table[ROWS] + slots[i - at] * width
                if existed[i]:
                    _copy(before + i * width, row, width)
                if kept[i]:
                    _copy(row, source + i * width, width)
            if reached < stop:
                return reached
            at = stop
    return len(ids)


@numba.njit(nogil=True, cache=True)
def rehash(old: np.ndarray, index: np.ndarray, mask: int) -> None:
    """Insert the pairs of an index into a larger one."""
    for i in range(len(old) // 2):
        key = old[2 * i]
        if key == EMPTY:
            continue
        at = _home(key, mask)
        while index[2 * at] != EMPTY:
            at = (at + 1) & mask
        index[2 * at] = key
        index[2 * at + 1] = old[2 * i + 1]


@numba.njit(nogil=True, cache=True, inline="always")
def _half(row: np.ndarray, at: int, halves: np.ndarray) -> float:
    return halves[np.int64(row[at]) | (np.int64(row[at + 1]) << 8)]


@numba.njit(nogil=True, cache=True)
def _add_row(
    out: np.ndarray, address: int, dim: int, width: int, encoding: int, weight: float, halves: np.ndarray
) -> None:
    if encoding == FP32:
        floats = numba.carray(_pointer(address), (dim,), np.float32)
        for j in range(dim):
            out[j] += weight * floats[j]
    elif encoding == FP16:
        words = numba.carray(_pointer(address), (dim,), np.uint16)
        for j in range(dim):
            out[j] += weight * halves[words[j]]
    else:
        row = numba.carray(_pointer(address), (width,), np.uint8)
        scale = _half(row, width - 4, halves)
        offset = _half(row, width - 2, halves)
        if encoding == INT8:
            for j in range(dim):
                out[j] += weight * (np.float32(row[j]) * scale + offset)
        else:
            for j in range(dim):
                nibble = (row[j >> 1] >> ((j & 1) << 2)) & 15
                out[j] += weight * (np.float32(nibble) * scale + offset)


@numba.njit(nogil=True, cache=True)
def _row_address(table: np.ndarray, key: int) -> int:
    """Address of the row of `key`, or 0."""
    if table[DIRECT_ROWS] >= 0:
        if key < 0 or key >= table[DIRECT_ROWS]:
            return 0
        return table[ROWS] + key * table[WIDTH]
    mask = table[MASK]
    index = numba.carray(_pointer(table[INDEX]), (2 * (mask + 1),), np.int64)
    slot = find(index, mask, key)
    if slot < 0:
        return 0
    return table[ROWS] + slot * table[WIDTH]


@numba.njit(nogil=True, cache=True)
def _row_addresses(table: np.ndarray, values: np.ndarray, addresses: np.ndarray) -> None:
    """Addresses of the rows of `values`, or 0, and ask for the rows: after a flip none may be in the cache."""
    for start in range(0, len(values), _AHEAD):
        end = min(start + _AHEAD, len(values))
        if table[DIRECT_ROWS] < 0:
            for i in range(start, end):
                _prefetch(table[INDEX] + 16 * _home(values[i], table[MASK]))
        for i in range(start, end):
            addresses[i] = _row_address(table, values[i])
            if addresses[i] != 0:
                for line in range(addresses[i], addresses[i] + table[WIDTH], _LINE):
                    _prefetch(line)


@numba.njit(nogil=True, cache=True)
def pool(
    catalogue: np.ndarray,
    plan: np.ndarray,
    values: np.ndarray,
    starts: np.ndarray,
    weights: np.ndarray,
    halves: np.ndarray,
    batch: int,
    out: np.ndarray,
    found: np.ndarray,
) -> None:
    """Pool every entry of the plan for all rows of a batch.

    `values` holds the ids of all keys, `starts` (keys × batch + 1) their bounds, `weights` goes with it or is empty.
    `out` is flat: group after group, each row-major. Misses add zero and count in means. `found[t]`: lookups, hits.
    """
    addresses = np.empty(len(values), np.int64)
    for e in range(len(plan)):
        entry = plan[e]
        table = catalogue[entry[TABLE]]
        dim = table[DIM]
        first, last = starts[entry[KEY] * batch], starts[(entry[KEY] + 1) * batch]
        _row_addresses(table, values[first:last], addresses[first:last])
        for b in range(batch):
            begin = starts[entry[KEY] * batch + b]
            end = starts[entry[KEY] * batch + b + 1]
            base = entry[GROUP_START] * batch + b * entry[GROUP_WIDTH] + entry[COLUMN]
            target = out[base : base + dim]
            for i in range(begin, end):
                found[entry[TABLE], 0] += 1
                if addresses[i] == 0:
                    continue
                found[entry[TABLE], 1] += 1
                weight = weights[i] if len(weights) > 0 else np.float32(1.0)
                _add_row(target, addresses[i], dim, table[WIDTH], table[ENCODING], weight, halves)
            if entry[MEAN] and end - begin > 1:
                for j in range(dim):
                    target[j] /= np.float32(end - begin)


@numba.njit(nogil=True, cache=True)
def bounds(lengths: np.ndarray, starts: np.ndarray) -> None:
    """Write the running sum of `lengths` into `starts`, which is one longer."""
    total = 0
    starts[0] = 0
    for i in range(len(lengths)):
        total += lengths[i]
        starts[i + 1] = total


@numba.njit(nogil=True, cache=True)
def split_strings(payload: np.ndarray, offsets: np.ndarray, text: np.ndarray) -> bool:
    """Split strings that each follow their length in 4 little-endian bytes; False when they do not fill the payload."""
    at = 0
    end = 0
    offsets[0] = 0
    for i in range(len(offsets) - 1):
        if at + 4 > len(payload):
            return False
        size = np.int64(0)
        for j in range(4):
            size |= np.int64(payload[at + j]) << (8 * j)
        at += 4
        if at + size > len(payload) or end + size > len(text):
            return False
        for j in range(size):
            text[end + j] = payload[at + j]
        at += size
        end += size
        offsets[i + 1] = end
    return at == len(payload)
