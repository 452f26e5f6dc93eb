"""Dead letters in a local folder: one JSON Lines file per writer, synced before a write returns."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path

from stream.cursor import Cursor
from stream.deadletter import DeadLetter
from stream.errors import DeadLetterError

_SUFFIX = ".dead.jsonl"


class FileDeadLetters:
    """A sink whose `write` returns when the letters are on disk. `writer` names the file: one per rank."""

    def __init__(
        self, folder: Path, *, writer: str, code_version: str, clock_ms: Callable[[], int] = lambda: -1
    ) -> None:
        self._clock_ms = clock_ms
        self._path = folder / f"{writer}{_SUFFIX}"
        self._code_version = code_version
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # Without a buffer: what it kept of a write that failed would come before the next one.
            self._file = self._path.open("ab", buffering=0)
            drop_torn_line(self._path)
            sync_folder(folder)
        except OSError as error:
            raise DeadLetterError(f"dead letters cannot be kept in {self._path}: {error.strerror}") from None

    def write(self, letters: Sequence[DeadLetter]) -> None:
        """Append the letters and sync; raise DeadLetterError where the disk does not take them."""
        now_ms = self._clock_ms()
        lines = b"".join(_line(letter, self._code_version, now_ms) for letter in letters)
        try:
            append(self._file, lines)
        except OSError as error:
            raise DeadLetterError(f"{self._path} did not take {len(letters)} dead letters: {error.strerror}") from None

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._file.close()


def read_folder(folder: Path) -> Iterator[DeadLetter]:
    """All letters of a folder, writer by writer, the first of each key."""
    seen: set[str] = set()
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                # A line without its end was never acknowledged.
                if line.endswith(b"\n") and (letter := _letter(line, path, number)).key not in seen:
                    seen.add(letter.key)
                    yield letter


def _line(letter: DeadLetter, code_version: str, at_ms: int) -> bytes:
    record = {
        "cursor": letter.key,
        "reason": letter.reason,
        "detail": letter.detail,
        "format": letter.format,
        "code_version": code_version,
        "at_ms": at_ms,
        "raw": base64.b64encode(letter.raw).decode(),
    }
    return json.dumps(record, ensure_ascii=True, sort_keys=True).encode() + b"\n"


def _letter(line: bytes, path: Path, number: int) -> DeadLetter:
    try:
        record = json.loads(line)
        return DeadLetter(
            cursor=Cursor.from_text(record["cursor"]),
            reason=record["reason"],
            detail=record["detail"],
            raw=base64.b64decode(record["raw"], validate=True),
            format=record["format"],
            at_ms=int(record.get("at_ms", -1)),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DeadLetterError(f"{path} line {number} holds no dead letter: {error}") from None


def append(file: FileIO, lines: bytes) -> None:
    """Add whole lines at the end and sync; of those that a full disk did not take nothing stays, if that can be."""
    end = os.fstat(file.fileno()).st_size
    left = memoryview(lines)
    try:
        while left:
            left = left[file.write(left) :]
        os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            os.ftruncate(file.fileno(), end)
        raise


def drop_torn_line(path: Path) -> None:
    """Cut off what a crash left of a last line, which was not acknowledged."""
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        os.truncate(path, content.rfind(b"\n") + 1)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
