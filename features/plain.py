"""The short way for columns that hold what the batch holds: int64 ids and float32 numbers without nulls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from features.columns import Columns

Addresses = npt.NDArray[np.int64]

_INT64, _FLOAT32 = pa.int64().id, pa.float32().id


@dataclass(frozen=True, kw_only=True, slots=True)
class Plain:
    """A feature whose ids (0 ... limit) or number are its column's, when that is int64 or float32 without nulls."""

    limit: int | None = None
    """None: a number."""


@intrinsic
def _int64_at(typing: object, address: types.Integer) -> object:
    """The int64 values at an address."""
    return types.CPointer(types.int64)(types.int64), _pointer(ir.IntType(64))


@intrinsic
def _float32_at(typing: object, address: types.Integer) -> object:
    """The float32 values at an address."""
    return types.CPointer(types.float32)(types.int64), _pointer(ir.FloatType())


def _pointer(kind: ir.Type) -> object:
    def build(context: object, builder: ir.IRBuilder, signature: object, arguments: Sequence[ir.Value]) -> ir.Value:
        return builder.inttoptr(arguments[0], ir.PointerType(kind))

    return build


@nb.njit(nogil=True, cache=True)
def _word(address: int) -> int:
    return nb.carray(_int64_at(address), 1)[0]


@nb.njit(nogil=True, cache=True)
def find_values(struct: int, indices: Addresses, width: int, out: Addresses) -> bool:
    """Where the values of a struct's primitive children begin; False where one has nulls.

    The layout is that of ArrowArray in the C data interface, which is stable: words 1 null_count, 2 offset,
    5 buffers, 6 children.
    """
    children = _word(struct + 48)
    for place in range(len(indices)):
        child = _word(children + 8 * indices[place])
        buffers = _word(child + 40)
        if _word(buffers) != 0 and _word(child + 8) != 0:
            return False
        out[place] = _word(buffers + 8) + _word(child + 16) * width
    return True


@nb.njit(nogil=True, cache=True)
def copy_ids(addresses: Addresses, count: int, out: npt.NDArray[np.int64]) -> None:
    """Put the columns one behind the other."""
    for column in range(len(addresses)):
        source = nb.carray(_int64_at(addresses[column]), count)
        out[column * count : (column + 1) * count] = source


@nb.njit(nogil=True, cache=True)
def copy_numbers(addresses: Addresses, count: int, out: npt.NDArray[np.float32]) -> None:
    """Put the columns side by side, a few rows at a time so that those stay in cache."""
    block = 512
    for begin in range(0, count, block):
        end = min(begin + block, count)
        for column in range(len(addresses)):
            source = nb.carray(_float32_at(addresses[column]), count)
            for row in range(begin, end):
                out[row, column] = source[row]


@nb.njit(nogil=True, cache=True)
def ids_within(addresses: Addresses, count: int, limits: Addresses) -> bool:
    """Whether all ids are in 0 ... limit of their column."""
    found = np.uint64(0)
    for column in range(len(addresses)):
        source = nb.carray(_int64_at(addresses[column]), count)
        top = np.uint64(limits[column])
        for row in range(count):
            found |= np.uint64(np.uint64(source[row]) > top)
    return found == 0


@nb.njit(nogil=True, cache=True)
def numbers_finite(addresses: Addresses, count: int) -> bool:
    """Whether no number is NaN or infinite; on the bits, since a sum of floats would not vectorise."""
    mask = np.int32(0x7F800000)
    found = False
    for column in range(len(addresses)):
        source = nb.carray(_float32_at(addresses[column]), count).view(np.int32)
        for row in range(count):
            found |= (source[row] & mask) == mask
    return not found


class PlainGroup:
    """The features of one data group that are all plain."""

    def __init__(self, columns: Sequence[str], limits: Sequence[int] | None) -> None:
        """`limits` are those of ids; None for numbers."""
        self._columns = tuple(columns)
        self._limits = None if limits is None else np.array(limits, np.int64)
        self._type = _FLOAT32 if limits is None else _INT64
        self._width = 4 if limits is None else 8
        # One reference, swapped whole: threads share a group.
        self._found: tuple[pa.Schema, Addresses] | None = None

    def addresses(self, columns: Columns) -> Addresses | None:
        """Where the columns' values begin; None where one is of another type, has nulls or is missing."""
        indices = self._find(columns.rows.schema)
        if len(indices) == 0 or columns.count == 0:
            return None
        found = np.empty(len(indices), np.int64)
        return found if find_values(columns.struct_address(), indices, self._width, found) else None

    def _find(self, schema: pa.Schema) -> Addresses:
        """The columns' places, none unless all have the type; remembered, since schemas rarely change."""
        remembered = self._found
        if remembered is not None and remembered[0].equals(schema):
            return remembered[1]
        places = [schema.get_field_index(name) for name in self._columns]
        fitting = all(place >= 0 and schema.field(place).type.id == self._type for place in places)
        indices = np.array(places if fitting else [], np.int64)
        self._found = (schema, indices)
        return indices

    def valid(self, columns: Columns) -> bool:
        """Whether all rows are good; False says only that each must be looked at."""
        found = self.addresses(columns)
        if found is None:
            return False
        if self._limits is None:
            return numbers_finite(found, columns.count)
        return ids_within(found, columns.count, self._limits)
