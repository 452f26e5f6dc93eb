"""Canonical JSON that carries its own digest (FORMAT.md, section 3): the same value always has the same bytes."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from checkpointer.errors import ChainError, Flaw

Json: TypeAlias = "None | bool | int | float | str | Sequence[Json] | Mapping[str, Json]"


def sha256(*data: bytes | memoryview) -> str:
    """The digest of some bytes, one after the other, in hexadecimal.

    >>> sha256(b"a", b"b") == sha256(b"ab")
    True
    """
    digest = hashlib.sha256()
    for part in data:
        digest.update(part)
    return digest.hexdigest()


def encode(value: Mapping[str, Json]) -> bytes:
    """Sorted keys, no spaces, ASCII, one line feed at the end.

    >>> encode({"b": 1, "a": "ü"})
    b'{"a":"\\\\u00fc","b":1}\\n'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def seal(value: Mapping[str, Json]) -> tuple[bytes, str]:
    """The bytes of `value` with its digest added under "digest", and that digest."""
    digest = sha256(encode(value))
    return encode({**value, "digest": digest}), digest


def unseal(path: str, data: bytes, formats: range) -> tuple[dict[str, Json], str]:
    """The value without its digest, and the digest, both verified. Raises ChainError."""
    value = _parse(path, data)
    version = value.get("format")
    if isinstance(version, int) and not isinstance(version, bool) and version >= formats.stop:
        raise ChainError(
            Flaw.NEWER_FORMAT, path, f"format {version}, this reader knows up to {formats.stop - 1}; update headrace"
        )
    digest = value.pop("digest", None)
    if digest != sha256(encode(value)):
        raise ChainError(Flaw.ALTERED, path, "the digest does not fit the content")
    if data != encode({**value, "digest": digest}):
        raise ChainError(Flaw.ALTERED, path, "not in canonical form")
    if version not in formats:
        raise ChainError(
            Flaw.MALFORMED, path, f"format must be in {formats.start} ... {formats.stop - 1}, got {version!r}"
        )
    return value, str(digest)


def _parse(path: str, data: bytes) -> dict[str, Json]:
    if not data.endswith(b"}\n"):
        raise ChainError(Flaw.TRUNCATED, path, f"{len(data)} bytes that do not end like a manifest")
    try:
        value = json.loads(data.decode("ascii"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ChainError(Flaw.ALTERED, path, f"no JSON: {error}") from None
    if not isinstance(value, dict):
        raise ChainError(Flaw.MALFORMED, path, "no JSON object")
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")
