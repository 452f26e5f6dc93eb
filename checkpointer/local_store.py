"""A `Store` in a local directory: link(2) for put-if-absent, flock and rename for compare-and-swap, fsync for both."""

import fcntl
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import Lock

from checkpointer.errors import (
    ConflictError,
    ExistsError,
    NotFoundError,
    NotStoredError,
    OutcomeUnknownError,
    StoreError,
)
from checkpointer.faults import NO_FAULTS, FaultPoints
from checkpointer.store import Content, Entry, check_path, size_of

TEMPORARY = ".tmp-"
LOCK_FILE = ".swap.lock"
# The newest objects, which their readers follow within a second or two.
CACHED_BYTES = 64 << 20
# IOV_MAX of Linux.
_MOST_PIECES = 1024


class Cached:
    """What was written and is still in the page cache: of the oldest, its memory goes to what is written next.

    Otherwise a log that grows for days would take all memory that is free, and a trainer would pay for fresh pages with
    every commit. Whoever reads an old object reads it from the disk.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._objects: deque[tuple[Path, int]] = deque()
        self._bytes = 0
        self._lock = Lock()

    def make_room(self, size: int) -> None:
        """Drop the oldest objects until `size` more bytes fit."""
        with self._lock:
            while self._objects and self._bytes + size > self._max_bytes:
                path, gone = self._objects.popleft()
                self._bytes -= gone
                with suppress(OSError):  # removed meanwhile
                    _drop(path)

    def add(self, path: Path, size: int) -> None:
        """Remember an object that is durable."""
        with self._lock:
            self._objects.append((path, size))
            self._bytes += size


def _drop(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


class LocalStore:
    """Objects as files below `root`, which is created if its parent is there.

    Names that start with a dot are not objects: temporary files and the lock of compare-and-swap.
    """

    def __init__(self, root: str | Path, faults: FaultPoints = NO_FAULTS, *, cached_bytes: int = CACHED_BYTES) -> None:
        self.root = Path(root)
        self.url = str(self.root)
        self._faults = faults
        self._serial = count()
        self._known: set[Path] = set()
        self._cached = Cached(cached_bytes)

    def get(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """Read bytes."""
        check_path(path)
        try:
            with open(f"{self.url}/{path}", "rb", buffering=0) as file:
                return _read(file.fileno(), offset, length)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise NotFoundError(f"nothing lies under {path} in {self.url}") from None
        except OSError as error:
            raise StoreError(f"reading {path} in {self.url} failed: {_reason(error)}") from error

    def list(self, prefix: str, *, after: str = "") -> Iterator[Entry]:
        """List a folder in order."""
        paths = (f"{prefix}/{name}" for name in self._names(prefix, folders=False))
        yield from (Entry(path=path) for path in paths if path > after)

    def folders(self, prefix: str) -> Sequence[str]:
        """Name the folders below a folder."""
        return [f"{prefix}/{name}" for name in self._names(prefix, folders=True)]

    def put_if_absent(self, path: str, data: Content, *, point: str = "") -> None:
        """Write, fsync, link, fsync the directory."""
        check_path(path)
        final = self.root / path
        self._cached.make_room(size_of(data))
        with self._staged(final, data, point, sync=True) as staged:
            try:
                # link() fails if the name exists; rename() would silently replace it.
                os.link(staged, final)
            except FileExistsError:
                # Whoever linked it may have died before it was durable.
                self._sync(final)
                raise ExistsError(f"{path} is taken in {self.url}") from None
            except OSError as error:
                raise NotStoredError(f"linking {path} in {self.url} failed: {_reason(error)}") from error
        self._cached.add(final, size_of(data))
        self._settle(final, point)

    def compare_and_swap(self, path: str, old: bytes | None, new: bytes, *, point: str = "") -> None:
        """Under a lock: compare, write, fsync, rename, fsync the directory."""
        check_path(path)
        final = self.root / path
        self._make_directory(final.parent)
        with self._swap_lock(final.parent):
            try:
                current: bytes | None = self.get(path)
            except NotFoundError:
                current = None
            if current != old:
                raise ConflictError(f"{path} changed in {self.url}")
            with self._staged(final, new, point, sync=True) as staged:
                _rename(staged, final, self.url)
            self._settle(final, point)

    def overwrite(self, path: str, data: bytes) -> None:
        """Write and rename, without fsync."""
        check_path(path)
        final = self.root / path
        with self._staged(final, data, "", sync=False) as staged:
            _rename(staged, final, self.url)

    def delete(self, path: str) -> None:
        """Remove a file."""
        check_path(path)
        try:
            os.unlink(self.root / path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"deleting {path} in {self.url} failed: {_reason(error)}") from error

    def tidy(self, prefix: str, *, older_ms: int) -> None:
        """Remove temporary files, those of the root included, and empty subfolders.

        Ages are those of the file system itself: a clock that jumps must not remove what is being written.
        """
        folders = self.folders(prefix)
        for folder in ("", prefix, *folders):
            for leftover in _leftovers(self.root / folder, older_ms):
                leftover.unlink(missing_ok=True)
        for folder in folders:
            with suppress(OSError):  # not empty
                (self.root / folder).rmdir()
                self._known.discard(self.root / folder)

    @contextmanager
    def _staged(self, final: Path, data: Content, point: str, *, sync: bool) -> Iterator[Path]:
        """A temporary file beside `final` that holds `data`; it is removed whatever happens, if the process lives."""
        staged = final.parent / f"{TEMPORARY}{os.getpid()}-{id(self):x}-{next(self._serial)}"
        self._make_directory(final.parent)
        try:
            try:
                self._write(staged, data, point, sync=sync)
            except FileNotFoundError:
                # Another process removed the empty folder since it was made.
                self._known.discard(final.parent)
                self._make_directory(final.parent)
                self._write(staged, data, point, sync=sync)
            yield staged
        except OSError as error:
            raise NotStoredError(f"writing {final} failed: {_reason(error)}; nothing was stored") from error
        finally:
            # A failing disk must not hide what happened to the object; tidy() comes again.
            with suppress(OSError):
                staged.unlink()

    def _write(self, staged: Path, data: Content, point: str, *, sync: bool) -> None:
        descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            _write_all(descriptor, [data] if isinstance(data, bytes) else data)
            self._reached(point, "written")
            if sync:
                os.fsync(descriptor)
                self._reached(point, "synced")
        finally:
            os.close(descriptor)

    def _settle(self, final: Path, point: str) -> None:
        self._reached(point, "linked")
        self._sync(final)
        self._reached(point, "dirsynced")

    def _sync(self, final: Path) -> None:
        try:
            _sync_directory(final.parent)
        except OSError as error:
            raise OutcomeUnknownError(
                f"fsync of {final.parent} failed: {_reason(error)}; {final.name} may vanish"
            ) from error

    def _make_directory(self, directory: Path) -> None:
        if directory in self._known:
            return
        try:
            missing = [directory, *directory.parents]
            for folder in reversed(missing[: missing.index(self.root) + 1]):
                if not folder.is_dir():
                    folder.mkdir(exist_ok=True)
                    _sync_directory(folder.parent)
        except OSError as error:
            raise NotStoredError(f"creating {directory} failed: {_reason(error)}") from error
        self._known.add(directory)

    @contextmanager
    def _swap_lock(self, directory: Path) -> Iterator[None]:
        try:
            descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise NotStoredError(f"opening the lock of {directory} failed: {_reason(error)}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _names(self, prefix: str, *, folders: bool) -> Sequence[str]:
        check_path(prefix)
        try:
            with os.scandir(self.root / prefix) as entries:
                return sorted(entry.name for entry in entries if entry.name[0] != "." and _is_folder(entry) == folders)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise StoreError(f"listing {prefix} in {self.url} failed: {_reason(error)}") from error

    def _reached(self, point: str, step: str) -> None:
        if point:
            self._faults.reached(f"{point}_{step}")


def _read(descriptor: int, offset: int, length: int | None) -> bytes:
    end = os.fstat(descriptor).st_size if length is None else offset + length
    parts = []
    while offset < end:
        part = os.pread(descriptor, min(end - offset, 1 << 30), offset)
        if not part:
            break
        parts.append(part)
        offset += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a link that leads nowhere: who reads it is told, and the others are listed


def _write_all(descriptor: int, pieces: Sequence[bytes | memoryview]) -> None:
    left = [piece for piece in pieces if len(piece)]
    while left:
        written = os.writev(descriptor, left[:_MOST_PIECES])
        whole = 0
        while whole < len(left) and written >= len(left[whole]):
            written -= len(left[whole])
            whole += 1
        left = left[whole:]
        if written:
            left[0] = memoryview(left[0])[written:]


def _rename(staged: Path, final: Path, url: str) -> None:
    try:
        os.rename(staged, final)
    except OSError as error:
        raise NotStoredError(f"renaming to {final.name} in {url} failed: {_reason(error)}") from error


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _reason(error: OSError) -> str:
    return f"{error.strerror or error} (errno {error.errno})"


def _leftovers(directory: Path, older_ms: int) -> list[Path]:
    found = []
    with suppress(FileNotFoundError):
        changed = directory.stat().st_mtime
        for path in directory.glob(f"{TEMPORARY}*"):
            with suppress(FileNotFoundError):
                if (changed - path.stat().st_mtime) * 1000 > older_ms:
                    found.append(path)
    return found
