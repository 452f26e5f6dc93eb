"""Typed access to a JSON object that somebody else may have written."""

import json
from collections.abc import Iterator
from typing import NoReturn

from publisher.errors import Reason, VersionError


def canonical(value: object) -> bytes:
    """Serialize to the one byte string that digests and signatures cover.

    >>> canonical({"b": 1, "a": [True, "é"]}).decode()
    '{"a":[true,"é"],"b":1}'
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


class Fields:
    """One JSON object; every accessor refuses a missing or wrongly typed field by name."""

    def __init__(self, value: object, what: str) -> None:
        if not isinstance(value, dict):
            raise VersionError(Reason.FORMAT, f"{what} must be a JSON object, got {type(value).__name__}")
        self._value = value
        self._what = what

    @classmethod
    def parse(cls, payload: bytes, what: str) -> "Fields":
        """Parse bytes that must be one canonical JSON object."""
        try:
            value = json.loads(payload)
            same = canonical(value) == payload
        except (ValueError, RecursionError) as error:
            raise VersionError(Reason.CORRUPT, f"{what} is not JSON: {error}") from error
        if not same:
            raise VersionError(Reason.CORRUPT, f"{what} is not canonical JSON: it was edited or damaged")
        return cls(value, what)

    def text(self, name: str) -> str:
        """A string."""
        value = self._get(name)
        return value if isinstance(value, str) else self._refuse(name, "a string")

    def integer(self, name: str) -> int:
        """An integer."""
        value = self._get(name)
        return value if type(value) is int else self._refuse(name, "an integer")

    def optional_integer(self, name: str) -> int | None:
        """An integer, or null."""
        return None if self._get(name) is None else self.integer(name)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings."""
        value = self._list(name)
        return tuple(v if isinstance(v, str) else self._refuse(name, "a list of strings") for v in value)

    def numbers(self, name: str) -> dict[str, float]:
        """An object of numbers."""
        value = self._get(name)
        if not isinstance(value, dict):
            self._refuse(name, "an object of numbers")
        return {
            key: float(number) if type(number) in (int, float) else self._refuse(f"{name}.{key}", "a number")
            for key, number in value.items()
        }

    def nested(self, name: str) -> "Fields":
        """A nested object."""
        return Fields(self._get(name), f"{self._what}: {name}")

    def optional_nested(self, name: str) -> "Fields | None":
        """A nested object, or null."""
        return None if self._get(name) is None else self.nested(name)

    def added_nested(self, name: str) -> "Fields | None":
        """A nested object, or null; an older program did not write the field."""
        return self.optional_nested(name) if name in self._value else None

    def objects(self, name: str) -> "Iterator[Fields]":
        """A list of objects."""
        return (Fields(value, f"{self._what}: {name}[{i}]") for i, value in enumerate(self._list(name)))

    def added_objects(self, name: str) -> "Iterator[Fields]":
        """A list of objects; an older program did not write the field."""
        return self.objects(name) if name in self._value else iter(())

    def without(self, name: str) -> dict[str, object]:
        """The object's fields but one."""
        return {key: value for key, value in self._value.items() if key != name}

    def _get(self, name: str) -> object:
        if name not in self._value:
            raise VersionError(Reason.FORMAT, f"{self._what} has no field {name!r}")
        return self._value[name]

    def _list(self, name: str) -> list[object]:
        value = self._get(name)
        return value if isinstance(value, list) else self._refuse(name, "a list")

    def _refuse(self, name: str, expected: str) -> NoReturn:
        value = self._value.get(name)
        raise VersionError(Reason.FORMAT, f"{self._what}: {name} must be {expected}, got {value!r}")
