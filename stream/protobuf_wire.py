"""What protobuf messages say on the wire that their decoder would pass over: other types, numbers that are too big.

A field that a producer sends with another wire type is an unknown field to a protobuf parser, hence absent, hence 0; a
number past 32 bits is cut to them. Both are found here, before decoding, in all messages of a run at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from numba import njit

_VARINT, _FIXED64, _LENGTH, _GROUP, _GROUP_END, _FIXED32 = range(6)
_WIRE_NAMES = ("a varint", "64 bits", "bytes", "a group", "a group", "32 bits")
_ANY, _INT32, _UINT32, _BOOL = range(4)
_WIRE, _TOO_BIG = 1, 2
_DEPTH = 64

_F = FieldDescriptor
_WIRES = {
    _F.TYPE_DOUBLE: _FIXED64, _F.TYPE_FIXED64: _FIXED64, _F.TYPE_SFIXED64: _FIXED64, _F.TYPE_FLOAT: _FIXED32,
    _F.TYPE_FIXED32: _FIXED32, _F.TYPE_SFIXED32: _FIXED32, _F.TYPE_STRING: _LENGTH, _F.TYPE_BYTES: _LENGTH,
    _F.TYPE_MESSAGE: _LENGTH, _F.TYPE_GROUP: _GROUP,
}  # fmt: skip
# Zigzag numbers of 32 bits are the same as unsigned ones before they are unfolded.
_BOUNDS = {
    _F.TYPE_INT32: _INT32,
    _F.TYPE_ENUM: _INT32,
    _F.TYPE_UINT32: _UINT32,
    _F.TYPE_SINT32: _UINT32,
    _F.TYPE_BOOL: _BOOL,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """Message `index` of a run is not what the descriptor says."""

    index: int
    detail: str


class WireCheck:
    """Compares the fields of these names, and what they hold, with the descriptor."""

    def __init__(self, descriptor: Descriptor, names: Collection[str]) -> None:
        types = [descriptor]
        fields: list[FieldDescriptor] = []
        rows: list[tuple[int, ...]] = []
        firsts = [0]
        for message in types:
            read = [field for field in message.fields if message is not descriptor or field.name in names]
            for field in sorted(read, key=lambda field: field.number):
                inner = field.message_type
                if inner is not None and inner not in types:
                    types.append(inner)
                wire = _WIRES.get(field.type, _VARINT)
                packs = field.is_repeated and wire not in (_LENGTH, _GROUP)
                at = -1 if inner is None or wire == _GROUP else types.index(inner)
                fields.append(field)
                rows.append((field.number, wire, packs, _BOUNDS.get(field.type, _ANY), at))
            firsts.append(len(rows))
        self._fields = fields
        self._table = np.array(rows, np.int64).reshape(-1, 5)
        self._firsts = np.array(firsts, np.int64)

    def faults(self, payloads: Sequence[bytes]) -> list[Fault]:
        """The messages that differ, with the first difference of each; broken ones are the decoder's to find."""
        sizes = np.fromiter((len(payload) for payload in payloads), np.int64, len(payloads))
        stops = np.cumsum(sizes)
        data = np.frombuffer(b"".join(payloads), np.uint8)
        found = _scan(data, stops - sizes, stops, self._table, self._firsts)
        return [Fault(index=int(at), detail=self._detail(*found[at].tolist())) for at in np.flatnonzero(found[:, 0])]

    def _detail(self, reason: int, row: int, said: int) -> str:
        field = self._fields[row]
        kind = next(name for name, number in _TYPES.items() if number == field.type)
        where = f"field {field.full_name} = {field.number} is {kind}"
        if reason == _WIRE:
            return f"{where}, and the message has {_WIRE_NAMES[said]} there"
        return f"{where}, and the message has {said} there"


_TYPES = {name.removeprefix("TYPE_").lower(): getattr(_F, name) for name in dir(_F) if name.startswith("TYPE_")}


@njit(cache=True)
def _varint(data: npt.NDArray[np.uint8], at: int, stop: int) -> tuple[np.uint64, int]:
    """The number and the place behind it; a place of -1 where it does not end."""
    value = np.uint64(0)
    for count in range(10):
        if at + count >= stop:
            return value, -1
        byte = np.uint64(data[at + count])
        value |= (byte & np.uint64(0x7F)) << np.uint64(7 * count)
        if byte < np.uint64(0x80):
            return value, at + count + 1
    return value, -1


@njit(cache=True)
def _fits(value: np.uint64, bound: int) -> bool:
    if bound == _INT32:
        return -0x80000000 <= np.int64(value) <= 0x7FFFFFFF
    if bound == _UINT32:
        return value <= np.uint64(0xFFFFFFFF)
    return bound != _BOOL or value <= np.uint64(1)


@njit(cache=True)
def _row(table: npt.NDArray[np.int64], first: int, stop: int, number: int, guess: int) -> int:
    """The row of a field number; most messages have their fields in order, so `guess` is the one behind the last."""
    if first <= guess < stop and table[guess, 0] == number:
        return guess
    for row in range(first, stop):
        if table[row, 0] == number:
            return row
    return -1


@njit(cache=True)
def _past(data: npt.NDArray[np.uint8], at: int, stop: int) -> int:
    """The place behind a number; -1 where it does not end."""
    for place in range(at, min(at + 10, stop)):
        if data[place] < 0x80:
            return place + 1
    return -1


@njit(cache=True)
def _scan(
    data: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    stops: npt.NDArray[np.int64],
    table: npt.NDArray[np.int64],
    firsts: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """[n, 3]: reason (0: none), row of the table, and the wire type or the number that was found."""
    found = np.zeros((len(starts), 3), np.int64)
    ends = np.empty(_DEPTH, np.int64)
    kinds = np.empty(_DEPTH, np.int64)
    for message in range(len(starts)):
        depth, groups, at, row = 0, 0, starts[message], -1
        ends[0], kinds[0] = stops[message], 0
        while depth >= 0:
            if at >= ends[depth]:
                depth -= 1
                continue
            if data[at] < 0x80:
                tag, at = np.uint64(data[at]), at + 1
            else:
                tag, at = _varint(data, at, ends[depth])
            wire, number = np.int64(tag & np.uint64(7)), np.int64(tag >> np.uint64(3))
            if at < 0 or wire > _FIXED32:
                break
            row = -1 if groups else _row(table, firsts[kinds[depth]], firsts[kinds[depth] + 1], number, row + 1)
            packed = row >= 0 and table[row, 2] == 1 and wire == _LENGTH
            if row >= 0 and wire != _GROUP_END and wire != table[row, 1] and not packed:
                found[message] = (_WIRE, row, wire)
                break
            if wire == _VARINT and (row < 0 or table[row, 3] == _ANY):
                at = _past(data, at, ends[depth])
                if at < 0:
                    break
            elif wire == _VARINT:
                value, at = _varint(data, at, ends[depth])
                if at < 0:
                    break
                if not _fits(value, table[row, 3]):
                    found[message] = (_TOO_BIG, row, np.int64(value))
                    break
            elif wire == _LENGTH:
                value, at = _varint(data, at, ends[depth])
                if at < 0 or value > np.uint64(ends[depth] - at):
                    break
                stop = at + np.int64(value)
                if packed and table[row, 1] == _VARINT and table[row, 3] != _ANY:
                    while 0 <= at < stop:
                        value, at = _varint(data, at, stop)
                        if at >= 0 and not _fits(value, table[row, 3]):
                            found[message] = (_TOO_BIG, row, np.int64(value))
                            at = -1
                    if at < 0:
                        break
                elif row >= 0 and table[row, 4] >= 0 and depth + 1 < _DEPTH:
                    depth += 1
                    ends[depth], kinds[depth] = stop, table[row, 4]
                else:
                    at = stop
            elif wire == _GROUP:
                groups += 1
            elif wire == _GROUP_END:
                groups -= 1
            else:
                at += 8 if wire == _FIXED64 else 4
    return found
