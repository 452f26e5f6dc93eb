"""`Store`: the few operations that the log, the bases and the served versions need from storage, and nothing else.

Paths are relative, with `/` between their parts. Every implementation passes tests/contracts/test_stores.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from checkpointer.errors import StoreError

Content: TypeAlias = "bytes | Sequence[bytes | memoryview]"
"""What an object holds, in one piece or in several (of single bytes), which need not be copied together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One stored object."""

    path: str


class Store(Protocol):
    """Strongly consistent storage: what a write that returned did is seen by every later read."""

    url: str

    def get(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """Read bytes, fewer than `length` (or none) where the object ends. Raises NotFoundError."""

    def list(self, prefix: str, *, after: str = "") -> Iterator[Entry]:
        """What lies in the folder `prefix` itself, ascending by path, from the first path > `after`."""

    def folders(self, prefix: str) -> Sequence[str]:
        """The folders directly below the folder `prefix`, as paths, ascending; empty ones may or may not be named."""

    def put_if_absent(self, path: str, data: Content, *, point: str = "") -> None:
        """Make `data` durable and visible at once. Raises ExistsError, NotStoredError, OutcomeUnknownError.

        What ExistsError speaks of is durable.
        """

    def compare_and_swap(self, path: str, old: bytes | None, new: bytes, *, point: str = "") -> None:
        """Replace content `old` (None: nothing there) by `new`, durably and at once. Raises ConflictError too."""

    def overwrite(self, path: str, data: bytes) -> None:
        """Replace whatever is there; the last writer wins, a crash of the machine may undo it. For hints."""

    def delete(self, path: str) -> None:
        """Remove what is there; it is no error if nothing is."""

    def tidy(self, prefix: str, *, older_ms: int) -> None:
        """Remove what crashed writers left in a folder, so much older than its latest change, and empty subfolders."""


def joined(data: Content) -> bytes:
    """The same in one piece."""
    return data if isinstance(data, bytes) else b"".join(data)


def size_of(data: Content) -> int:
    """How many bytes that is.

    >>> size_of(b"abc"), size_of([b"ab", memoryview(b"c")])
    (3, 3)
    """
    return len(data) if isinstance(data, bytes) else sum(map(len, data))


def check_path(path: str) -> None:
    """Refuse paths that could leave the store."""
    if not path or any(part in ("", ".", "..") for part in path.split("/")):
        raise StoreError(f"{path!r} is no path inside a store")
