"""Typed reading of the fields of a JSON object that came from storage; every surprise is a ChainError."""

from collections.abc import Mapping
from dataclasses import dataclass

from checkpointer.canonical import Json
from checkpointer.errors import ChainError, Flaw


@dataclass(frozen=True, slots=True)
class Fields:
    """The object `values`, read from `path`."""

    path: str
    values: Mapping[str, Json]

    def text(self, name: str) -> str:
        """A string."""
        value = self._get(name)
        if not isinstance(value, str):
            raise self.flaw(f"{name} must be a string, got {value!r}")
        return value

    def integer(self, name: str, least: int = 0) -> int:
        """An integer, at least `least`."""
        value = self._get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.flaw(f"{name} must be an integer >= {least}, got {value!r}")
        return value

    def flag(self, name: str) -> bool:
        """A boolean."""
        value = self._get(name)
        if not isinstance(value, bool):
            raise self.flaw(f"{name} must be true or false, got {value!r}")
        return value

    def numbers(self, name: str) -> dict[str, float]:
        """An object of numbers."""
        value = self.object(name).values
        found = {
            key: item for key, item in value.items() if isinstance(item, int | float) and not isinstance(item, bool)
        }
        if len(found) != len(value):
            raise self.flaw(f"{name} must hold numbers only")
        return {key: float(item) for key, item in found.items()}

    def object(self, name: str) -> "Fields":
        """A nested object."""
        value = self._get(name)
        if not isinstance(value, Mapping):
            raise self.flaw(f"{name} must be an object, got {value!r}")
        return Fields(self.path, value)

    def objects(self, name: str) -> list["Fields"]:
        """A list of objects."""
        value = self._get(name)
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            raise self.flaw(f"{name} must be a list of objects")
        return [Fields(self.path, item) for item in value]

    def has(self, name: str) -> bool:
        """Whether the field is there."""
        return name in self.values

    def flaw(self, detail: str) -> ChainError:
        """The error that says what is wrong here."""
        return ChainError(Flaw.MALFORMED, self.path, detail)

    def _get(self, name: str) -> Json:
        if name not in self.values:
            raise self.flaw(f"the field {name} is absent")
        return self.values[name]
