"""Rows from files, each file one partition: what the Parquet and CSV sources share.

A path is a comma list of files, folders and globs, local or fsspec URLs. The files are sorted by path over the whole
list; partition i is the i-th, or, where files are split into s parts for more ranks than files, part i % s of file
i // s. A cursor's topic is the whole path, its topic id a digest of the file, its offset a row group, a block or a pool
of the shuffle.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import fsspec

from protos.s3_account import ENVIRONMENT, S3Account
from stream.cursor import Cursor, PartitionKey
from stream.errors import FileReplacedError, PositionError, SourceError
from stream.shuffle import Shuffle, ShuffledReader
from stream.source import Chunk
from stream.urls import OPEN_ERRORS, READ_ERRORS, locate, reason

_VERSIONS = ("ETag", "etag", "e_tag", "mtime", "LastModified", "last_modified", "created")
"""What file systems call what changes with a file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InputFile:
    """A file as it was when it was listed."""

    path: str
    fs: fsspec.AbstractFileSystem
    size: int
    digest: str  # of path, size and the time or tag of the last change

    def open(self) -> BinaryIO:
        """Open for reading; raise FileReplacedError where it is not the listed file any more."""
        self.check()
        file: BinaryIO = self.fs.open(self.path, "rb")
        return file

    def check(self) -> None:
        """Raise FileReplacedError where the file changed since it was listed."""
        try:
            with self.reading():
                found = describe_file(self.fs, self.path)
        except FileNotFoundError:
            raise FileReplacedError(f"file {self.path} was removed while it was read") from None
        if found.digest != self.digest:
            raise FileReplacedError(f"file {self.path} was replaced while it was read: start over, or restore it")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Name the file in what reading it may raise, unless it is not there."""
        try:
            yield
        except FileNotFoundError:
            raise
        except READ_ERRORS as error:
            raise SourceError(f"{self.path} cannot be read: {reason(error)}") from None


def list_files(path: str, suffix: str | tuple[str, ...], s3: S3Account = ENVIRONMENT) -> tuple[InputFile, ...]:
    """The files of a path, sorted; raise SourceError where a part of it matches nothing.

    Folders are searched, with all below them, for files of a suffix whose names start with neither `.` nor `_`.
    """
    files: list[InputFile] = []
    for part in path.split(","):
        if not part.strip():
            # fsspec would take the working directory.
            what = f"a part of input path {path!r}" if path.strip() else "the input path"
            raise SourceError(f"{what} is empty; name files, folders or patterns, in training with train_input_path")
        try:
            fs, inner = locate(part, s3)
            found = _matches(fs, inner, suffix)
            files += [describe_file(fs, name) for name in found]
        except OPEN_ERRORS as error:
            raise SourceError(f"input path {part!r} cannot be listed: {reason(error)}") from None
        if not found:
            raise SourceError(f"input path {part!r} {_nothing(fs, inner, suffix)}")
    return tuple(sorted(files, key=lambda file: file.path))


def _matches(fs: fsspec.AbstractFileSystem, path: str, suffix: str | tuple[str, ...]) -> list[str]:
    if any(character in path for character in "*?["):
        return [name for name in fs.glob(path) if fs.isfile(name)]
    if not fs.isdir(path):
        return [path] if fs.exists(path) else []
    return [
        name for name in fs.find(path) if name.endswith(suffix) and not name.rsplit("/", 1)[-1].startswith((".", "_"))
    ]


def _nothing(fs: fsspec.AbstractFileSystem, path: str, suffix: str | tuple[str, ...]) -> str:
    if any(character in path for character in "*?[") or not fs.isdir(path):
        return "matches no file"
    return f"is a folder without a file that ends in {suffix if isinstance(suffix, str) else suffix[0]}"


def describe_file(fs: fsspec.AbstractFileSystem, path: str) -> InputFile:
    """The file as it is now; raise OSError where it cannot be found."""
    fs.invalidate_cache(path)
    info = fs.info(path)
    version = next((info[key] for key in _VERSIONS if info.get(key)), "")
    text = f"{path}\n{info['size']}\n{version}"
    digest = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
    return InputFile(path=path, fs=fs, size=int(info["size"]), digest=digest)


class FileReader(Protocol):
    """Reads one file from any place in it."""

    @property
    def units(self) -> int:
        """How many row groups or blocks the file has."""
        ...

    def read(self, start: Cursor) -> Chunk:
        """A chunk from a place before the last unit's end, of at least a unit or some rows, perhaps of no rows."""
        ...

    def rows_of(self, unit: int) -> int | None:
        """How many rows a unit has; None: unknown without reading."""
        ...

    def close(self) -> None:
        """Close the file; it opens again when read."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """In which order and parts files are read, and whose they are. `splits` is the number of parts of each file."""

    splits: int = 1
    shuffle: Shuffle | None = None
    s3: S3Account = ENVIRONMENT

    def topic_id(self, file: InputFile, part: int) -> str:
        """What the offsets of a cursor depend on."""
        split = f"-part{part}of{self.splits}" if self.splits > 1 else ""
        return file.digest + split + ("" if self.shuffle is None else self.shuffle.tag)


def known_splits(cursors: Iterable[Cursor]) -> int | None:
    """The `splits` that cursors were made with; None: there are none."""
    for cursor in cursors:
        found = re.search(r"-part\d+of(\d+)", cursor.topic_id)
        return int(found.group(1)) if found else 1
    return None


class FileSource:
    """A bounded `Source` over files; partitions take turns chunk by chunk."""

    def __init__(
        self,
        path: str,
        files: tuple[InputFile, ...],
        make_reader: Callable[[InputFile], FileReader],
        tag: str = "",
        reading: Reading | None = None,
    ) -> None:
        self._path = path
        self._tag = tag  # part of the topic id: what else the meaning of offsets depends on
        self._files = files
        self._make_reader = make_reader
        self._reading = Reading() if reading is None else reading
        self._readers: dict[PartitionKey, FileReader] = {}
        self._spans: dict[PartitionKey, range] = {}
        self._at: dict[PartitionKey, Cursor] = {}
        self._turn: deque[PartitionKey] = deque()
        self._held: frozenset[PartitionKey] = frozenset()

    def partitions(self) -> tuple[PartitionKey, ...]:
        """One per file, or part of a file, in the order of their paths."""
        return tuple((self._path, i) for i in range(len(self._files) * self._reading.splits))

    def start(self, keys: Iterable[PartitionKey], cursors: Mapping[PartitionKey, Cursor]) -> None:
        """Read files from their cursors, else from the first row; raise FileReplacedError for other files' cursors."""
        for key in sorted(keys):
            self._open(key, cursors.get(key))

    def add(self, key: PartitionKey) -> None:
        """Read one more file from its first row."""
        self._open(key, None)

    def _file(self, key: PartitionKey) -> InputFile:
        return self._files[key[1] // self._reading.splits]

    def _open(self, key: PartitionKey, cursor: Cursor | None) -> None:
        if key not in self.partitions():
            raise SourceError(f"no file {key[1]} in input path {key[0]!r}; {self._path!r} has {len(self._files)} files")
        file = self._file(key)
        part = key[1] % self._reading.splits
        topic_id = self._reading.topic_id(file, part) + self._tag
        if cursor is not None and cursor.topic_id not in ("", topic_id):
            raise FileReplacedError(_replaced(key, file, cursor, topic_id))
        reader = self._make_reader(file)
        span = range(reader.units * part // self._reading.splits, reader.units * (part + 1) // self._reading.splits)
        if self._reading.shuffle is not None:
            reader = ShuffledReader(reader, span, self._reading.shuffle, key[1])
            span = range(reader.units)
        if cursor is None:
            cursor = Cursor(topic=key[0], partition=key[1], topic_id=topic_id, offset=span.start)
        if not span.start <= cursor.offset <= span.stop:
            raise PositionError(
                f"cursor {cursor.text} is behind the end of {file.path}, which has {reader.units} units"
            )
        self._readers[key] = reader
        self._spans[key] = span
        self._at[key] = cursor
        self._turn.append(key)

    def read(self, timeout_s: float) -> Chunk | None:
        """The next chunk of the next file that has one; never waits."""
        for _ in range(len(self._turn)):
            key = self._turn[0]
            self._turn.rotate(-1)
            while key not in self._held and not self.ended(key):
                chunk = self._readers[key].read(self._at[key])
                self._at[key] = chunk.end
                if self.ended(key):
                    self._readers[key].close()
                    self._file(key).check()
                if chunk.rows.num_rows or chunk.dead:
                    return chunk
        return None

    def hold(self, keys: Collection[PartitionKey]) -> None:
        """Give nothing of these."""
        self._held = frozenset(keys)

    def ended(self, key: PartitionKey) -> bool:
        """The file was given to its end."""
        return self._at[key].offset >= self._spans[key].stop

    def position(self, key: PartitionKey) -> Cursor:
        """The row after the last one given."""
        return self._at[key]

    def lag(self) -> Mapping[PartitionKey, int]:
        """Row groups or blocks not yet given in full."""
        return {key: self._spans[key].stop - cursor.offset for key, cursor in self._at.items()}

    def skipped(self) -> Mapping[PartitionKey, int]:
        """None: what is listed stays, or reading fails."""
        return {}

    def acknowledge(self, cursors: Mapping[PartitionKey, Cursor]) -> None:
        """Do nothing: nobody listens."""

    def close(self) -> None:
        """Close the files; a second call does nothing."""
        for reader in self._readers.values():
            reader.close()


def _replaced(key: PartitionKey, file: InputFile, cursor: Cursor, topic_id: str) -> str:
    if cursor.topic_id.startswith(file.digest):
        return (
            f"file {key[1]} of input path {key[0]!r}, {file.path}, is read in another order than when the cursor was "
            f"made ({cursor.topic_id.removeprefix(file.digest) or 'as it is'!r}, now "
            f"{topic_id.removeprefix(file.digest) or 'as it is'!r}): restore shuffle, seed, batch size and delimiter"
        )
    return (
        f"file {key[1]} of input path {key[0]!r}, {file.path}, is not the file that the cursor was made for: "
        "it was replaced, or files were added or removed before it"
    )
