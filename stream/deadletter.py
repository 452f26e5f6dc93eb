"""Rows and messages that could not be used, with raw bytes, cursor and reason (architecture.md section 3, item 12)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from stream.cursor import Cursor


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadLetter:
    """One message, or one row of a message, that was not trained on.

    `raw` is the message's payload, or the single row as an Arrow IPC stream where only a row of it is bad;
    `format` says how to read it: a `MessageFormat` name, "CSV" or "PARQUET".
    """

    cursor: Cursor
    reason: str  # a code: undecodable, empty, schema, ...
    detail: str
    raw: bytes
    format: str
    at_ms: int = -1  # when it was kept, by the clock of whoever keeps it; -1: not kept yet, or not known

    @property
    def key(self) -> str:
        """Equal for letters about the same row, however often it was read."""
        return self.cursor.text


class DeadLetterSink(Protocol):
    """Where dead letters go: at least once, deduplicated by key."""

    def write(self, letters: Sequence[DeadLetter]) -> None:
        """Return when all are acknowledged; raise DeadLetterError otherwise.

        DeadLettersWaitError after some seconds of an outage, so that whoever waits can look around, and try again.
        """
        ...

    def close(self) -> None:
        """Let go of connections and files; a second call does nothing."""
        ...


class MemoryDeadLetters:
    """A sink for tests and for runs that keep no dead letters."""

    def __init__(self) -> None:
        self._letters: dict[str, DeadLetter] = {}

    def write(self, letters: Sequence[DeadLetter]) -> None:
        """Keep the letters, the first of each key."""
        for letter in letters:
            self._letters.setdefault(letter.key, letter)

    def read(self) -> Iterable[DeadLetter]:
        """The letters in the order of writing."""
        return tuple(self._letters.values())

    def close(self) -> None:
        """Do nothing: the letters stay readable."""
