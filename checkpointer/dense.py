"""Named arrays as safetensors, written the same way every time and read with every offset checked."""

import json
from collections.abc import Mapping

import numpy as np

from checkpointer.errors import ChainError, Flaw, InvalidRowsError
from checkpointer.rows import Column

_NAMES = {
    "|b1": "BOOL",
    "|i1": "I8",
    "<i2": "I16",
    "<i4": "I32",
    "<i8": "I64",
    "|u1": "U8",
    "<u2": "U16",
    "<u4": "U32",
    "<u8": "U64",
    "<f2": "F16",
    "<f4": "F32",
    "<f8": "F64",
}
_TYPES = {name: np.dtype(dtype) for dtype, name in _NAMES.items()}


def to_bytes(arrays: Mapping[str, Column]) -> bytes:
    """Encode arrays in order of name.

    >>> from_bytes("x", to_bytes({"a": np.float32([1, 2])}))["a"].tolist()
    [1.0, 2.0]
    """
    return b"".join(to_buffers(arrays))


def to_buffers(arrays: Mapping[str, Column]) -> list[bytes | memoryview]:
    """The same bytes in pieces, most of which are the arrays' own memory."""
    header: dict[str, dict[str, object]] = {}
    bodies: list[bytes | memoryview] = []
    end = 0
    for name in sorted(arrays):
        array = arrays[name]
        if array.dtype.str not in _NAMES or name == "__metadata__":
            raise InvalidRowsError(f"dense array {name!r}: cannot store type {array.dtype}")
        bodies.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        start, end = end, end + array.nbytes
        header[name] = {"dtype": _NAMES[array.dtype.str], "shape": list(array.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return [len(text).to_bytes(8, "little") + text, *bodies]


def from_bytes(path: str, data: bytes) -> dict[str, Column]:
    """Decode arrays; they are read-only views of `data`. Raises ChainError."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > len(data) - 8:
        raise ChainError(Flaw.TRUNCATED, path, "the safetensors header is cut")
    try:
        header = json.loads(data[8 : 8 + size])
        entries = [
            (str(name), str(entry["dtype"]), [int(n) for n in entry["shape"]], [int(n) for n in entry["data_offsets"]])
            for name, entry in header.items()
            if name != "__metadata__"
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ChainError(Flaw.MALFORMED, path, f"no safetensors header: {error}") from None
    body = memoryview(data)[8 + size :]
    return {name: _array(path, name, dtype, shape, body, offsets) for name, dtype, shape, offsets in entries}


def _array(path: str, name: str, dtype: str, shape: list[int], body: memoryview, offsets: list[int]) -> Column:
    if dtype not in _TYPES or len(offsets) != 2 or any(n < 0 for n in shape):
        raise ChainError(Flaw.MALFORMED, path, f"array {name!r} has type {dtype}, shape {shape}, offsets {offsets}")
    start, end = offsets
    items = int(np.prod(shape, dtype=object))
    if not 0 <= start <= end <= len(body) or end - start != items * _TYPES[dtype].itemsize:
        raise ChainError(Flaw.MALFORMED, path, f"array {name!r} does not fit its bytes")
    array: Column = np.frombuffer(body[start:end], _TYPES[dtype]).reshape(shape)
    return array
