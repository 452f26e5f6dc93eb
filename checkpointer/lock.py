"""Locks of a model directory that die with their process: the trainer's, and that of compaction and collection.

A lock is a flock(2) on a file below the lock directory. The producer epoch (epoch.py) fences whom no lock reaches.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from checkpointer.errors import LockedError, NotStoredError
from checkpointer.local_store import LocalStore
from checkpointer.store import Store

TRAINER_LOCK = "trainer.lock"
MAINTENANCE_LOCK = "maintenance.lock"


def lock_directory(configured: str, store: Store) -> str:
    """The folder of the locks: as configured (lock_dir), else the model directory where that is local, else ""."""
    return configured or (str(store.root) if isinstance(store, LocalStore) else "")


class ProcessLock:
    """A held lock; `release`, the end of its `with` block or that of the process frees it."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Free the lock. The file stays: removing it would let two processes lock two files."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.release()

    @property
    def owned(self) -> bool:
        """Whether nobody took the lock over by putting another file in its place."""
        return self._descriptor is not None and _same_file(self._descriptor, self.path)


def acquire(directory: str | Path, name: str, holder: str, *, remedy: str = "stop it first") -> ProcessLock:
    """Take a lock at once, or raise LockedError that names its holder. `holder` describes this process in one line."""
    path = Path(directory) / name
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = os.pread(descriptor, 1000, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise LockedError(f"{directory} is in use by {other or 'another process'}; {remedy}") from None
        if _same_file(descriptor, path):
            return _described(path, descriptor, holder)
        os.close(descriptor)  # taken over between open and flock


def take_over(directory: str | Path, name: str, holder: str) -> ProcessLock:
    """Take a lock whoever holds it: a new file takes the place of the old, which its holder keeps locked in vain.

    The holder goes on until its next append meets the newer epoch, or until it looks at `owned`.
    """
    path = Path(directory) / name
    fresh = path.with_name(f"{name}.{os.getpid()}")
    descriptor = _open(fresh)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.rename(fresh, path)
    return _described(path, descriptor, holder)


def wait_for(directory: str | Path, name: str, holder: str, *, pause: Callable[[], None]) -> ProcessLock:
    """Take a lock as soon as its holder is gone; `pause` sleeps between tries, or raises to give up."""
    while True:
        try:
            return acquire(directory, name, holder)
        except LockedError:
            pause()


@contextmanager
def maintenance(directory: str | Path, holder: str) -> Iterator[None]:
    """Hold the lock of compaction and garbage collection. Raises LockedError."""
    with acquire(directory, MAINTENANCE_LOCK, holder):
        yield


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise NotStoredError(f"the lock {path} cannot be opened: {error.strerror}") from error


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _described(path: Path, descriptor: int, holder: str) -> ProcessLock:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{holder}\n".encode(), 0)
    return ProcessLock(path, descriptor)
