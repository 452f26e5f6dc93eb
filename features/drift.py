"""What changed between two descriptions of features (FeatureSet.describe), in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

MOST = 8
"""Differences that are told; more only says that there are more."""


def described(description: bytes) -> dict[str, object]:
    """What FeatureSet.description says of each feature, in order; raise ValueError.

    >>> described(b'[{"name":"a","kind":"id"}]')
    {'a': {'kind': 'id'}}
    """
    content = json.loads(description)
    if not isinstance(content, list) or not all(isinstance(part, dict) and "name" in part for part in content):
        raise ValueError("it is no list of features")
    return {str(part["name"]): {key: part[key] for key in part if key != "name"} for part in content}


def changes(old: Mapping[str, object], new: Mapping[str, object]) -> tuple[str, ...]:
    """Each feature that came, went or changed, with the part that did.

    >>> changes({"a": {"values": {"buckets": 10}}}, {"a": {"values": {"buckets": 20}}})
    ("feature 'a': values.buckets was 10, now 20",)
    """
    found = list(_all(old, new))
    return tuple(found[:MOST] + [f"and {len(found) - MOST} more"] * (len(found) > MOST))


def _all(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    yield from (f"feature {name!r} is gone" for name in old if name not in new)
    yield from (f"feature {name!r} is new" for name in new if name not in old)
    for name in new:
        if name in old:
            for path, before, after in _parts("", old[name], new[name]):
                yield f"feature {name!r}: {path} was {_short(before)}, now {_short(after)}"
    if sorted(old) == sorted(new) and list(old) != list(new):
        yield "the features are in another order"


def _parts(path: str, old: object, new: object) -> Iterator[tuple[str, object, object]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from _parts(f"{path}.{key}" if path else str(key), old.get(key), new.get(key))
    elif old != new:
        yield path, old, new


def _short(value: object) -> str:
    text = "unset" if value is None else repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
