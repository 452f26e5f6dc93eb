"""Confluent schema-registry framing: a zero byte and a four-byte schema id before the payload."""

from __future__ import annotations

_HEADER = 5


def unframe(payload: bytes | None) -> bytes | None:
    """The payload without its frame, if it has one. No JSON text and no protobuf message starts with a zero byte.

    >>> unframe(bytes([0, 0, 0, 0, 7]) + b'{"id": 1}')
    b'{"id": 1}'
    >>> unframe(b'{"id": 1}')
    b'{"id": 1}'
    """
    return payload[_HEADER:] if payload and payload[0] == 0 and len(payload) > _HEADER else payload


def unframe_protobuf(payload: bytes | None, indexes: tuple[int, ...]) -> bytes | None:
    """The same for protobuf, where the path of the message type in its file follows the schema id.

    Raise ValueError where the path is not `indexes`: the message is of another type.

    >>> unframe_protobuf(bytes([0, 0, 0, 0, 7, 0, 8, 1]), (0,))
    b'\\x08\\x01'
    """
    if not payload or payload[0] != 0 or len(payload) <= _HEADER:
        return payload
    count, at = _varint(payload, _HEADER)
    # A single zero stands for the path (0), the first message of the file.
    found = [0] if count == 0 else []
    for _ in range(count):
        value, at = _varint(payload, at)
        found.append(value)
    if tuple(found) != indexes:
        raise ValueError(f"the frame names message {found} of its file, not {list(indexes)}")
    return payload[at:]


def _varint(payload: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint and the place after it."""
    value = shift = 0
    while at < len(payload) and shift < 35:
        byte = payload[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
    raise ValueError("the frame ends in the middle of a number")
