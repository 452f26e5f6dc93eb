"""Marks beside dead letters: which were sent again and as what, which a person has done with (docs/streams.md).

A mark only says more about a letter; letters themselves are never changed or removed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from stream.deadletter import DeadLetter
from stream.deadletter_file import drop_torn_line, sync_folder
from stream.errors import DeadLetterError

_FILE = "marks.jsonl"


class Action(StrEnum):
    """What was done with a letter."""

    SENDING = "sending"  # about to be sent again; `ends` are the topic's ends before that
    REPLAYED = "replayed"  # acknowledged as the message at `sent_as`
    CLEARED = "cleared"  # somebody has looked at it and wants nothing more


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """One thing done with the letter `key`; `sent_as` is topic, partition, offset."""

    key: str
    action: Action
    at_ms: int
    sent_as: tuple[str, int, int] | None = None
    ends: Mapping[str, int] = field(default_factory=dict)  # partition (as text) -> offset

    def to_bytes(self) -> bytes:
        """One line of JSON, without its end."""
        return json.dumps(asdict(self), sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, data: bytes, place: str) -> Mark:
        """Read one; DeadLetterError names `place`."""
        try:
            value = json.loads(data)
            sent = value["sent_as"]
            return cls(
                key=str(value["key"]),
                action=Action(value["action"]),
                at_ms=int(value["at_ms"]),
                sent_as=(str(sent[0]), int(sent[1]), int(sent[2])) if sent else None,
                ends={str(partition): int(end) for partition, end in value["ends"].items()},
            )
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise DeadLetterError(f"{place} holds no mark of a dead letter: {error}") from None


class Marks(Protocol):
    """Where marks are kept: beside the letters."""

    def read(self) -> Iterable[Mark]:
        """All marks in the order of writing."""
        ...

    def write(self, marks: Sequence[Mark]) -> None:
        """Return when all are durable; raise DeadLetterError otherwise."""
        ...


class FileMarks:
    """Marks in the folder of the letters."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE

    def read(self) -> Iterator[Mark]:
        """All marks; a line without its end was never acknowledged."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):
                    yield Mark.from_bytes(line, f"{self._path} line {number}")

    def write(self, marks: Sequence[Mark]) -> None:
        """Append and sync."""
        try:
            with self._path.open("ab") as file:
                drop_torn_line(self._path)
                file.write(b"".join(mark.to_bytes() + b"\n" for mark in marks))
                file.flush()
                os.fsync(file.fileno())
            sync_folder(self._path.parent)
        except OSError as error:
            raise DeadLetterError(f"{self._path} did not take {len(marks)} marks: {error.strerror}") from None


class Status(StrEnum):
    """Where a letter stands."""

    OPEN = "open"
    REPLAYED = "replayed"
    CLEARED = "cleared"


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A letter and what became of it; `attempts` counts how often its row was refused, itself included."""

    letter: DeadLetter
    status: Status
    attempts: int
    sending: Mark | None = None  # a replay that ended before it was known whether the letter was sent


def entries(letters: Iterable[DeadLetter], marks: Iterable[Mark]) -> Iterator[Entry]:
    """Each letter, in order, once for all its attempts: what was sent again and refused again is the newer letter."""
    last: dict[str, Mark] = {}
    parents: dict[tuple[str, int, int], str] = {}
    for mark in marks:
        # What was cleared stays so.
        if mark.key not in last or last[mark.key].action is not Action.CLEARED:
            last[mark.key] = mark
        if mark.sent_as is not None:
            parents[mark.sent_as] = mark.key
    kept = {letter.key: letter for letter in letters}
    parent_of = {key: parent for key, letter in kept.items() if (parent := _parent(letter, parents, kept))}
    superseded = set(parent_of.values())
    for key, letter in kept.items():
        if key not in superseded:
            newest = last.get(key)
            yield Entry(
                letter=letter,
                status=_STATUS[newest.action] if newest else Status.OPEN,
                attempts=_attempts(key, parent_of),
                sending=newest if newest and newest.action is Action.SENDING else None,
            )


_STATUS = {Action.SENDING: Status.OPEN, Action.REPLAYED: Status.REPLAYED, Action.CLEARED: Status.CLEARED}


def _parent(
    letter: DeadLetter, parents: Mapping[tuple[str, int, int], str], kept: Mapping[str, DeadLetter]
) -> str | None:
    """The letter whose message, sent again, this one is about."""
    parent = parents.get((letter.cursor.topic, letter.cursor.partition, letter.cursor.offset))
    if parent is None or parent not in kept or parent == letter.key:
        return None
    # A topic that was made anew counts its messages from 0 again.
    return parent if kept[parent].cursor.topic_id == letter.cursor.topic_id else None


def _attempts(key: str, parent_of: Mapping[str, str]) -> int:
    count = 1
    while (parent := parent_of.get(key)) is not None:
        key, count = parent, count + 1
    return count
