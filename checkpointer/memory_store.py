"""A `Store` in memory: for tests, and for runs that keep nothing."""

from collections.abc import Iterator, Sequence
from threading import Lock

from checkpointer.errors import ConflictError, ExistsError, NotFoundError
from checkpointer.faults import NO_FAULTS, FaultPoints
from checkpointer.store import Content, Entry, check_path, joined


class MemoryStore:
    """Objects in a dictionary; safe for threads.

    >>> store = MemoryStore()
    >>> store.put_if_absent("log/a", b"1")
    >>> store.get("log/a"), [entry.path for entry in store.list("log")]
    (b'1', ['log/a'])
    """

    def __init__(self, faults: FaultPoints = NO_FAULTS) -> None:
        self.url = "memory://"
        self._faults = faults
        self._objects: dict[str, bytes] = {}
        self._lock = Lock()

    def get(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """Read bytes."""
        check_path(path)
        data = self._objects.get(path)
        if data is None:
            raise NotFoundError(f"nothing lies under {path} in {self.url}")
        return data[offset:] if length is None else data[offset : offset + length]

    def list(self, prefix: str, *, after: str = "") -> Iterator[Entry]:
        """List a folder in order."""
        check_path(prefix)
        with self._lock:
            found = sorted(path for path in self._objects if _inside(path, prefix) and path > after)
        yield from (Entry(path=path) for path in found)

    def folders(self, prefix: str) -> Sequence[str]:
        """Name the folders below a folder."""
        check_path(prefix)
        with self._lock:
            tails = (path[len(prefix) + 1 :] for path in self._objects if path.startswith(prefix + "/"))
            return sorted({f"{prefix}/{tail.split('/')[0]}" for tail in tails if "/" in tail})

    def put_if_absent(self, path: str, data: Content, *, point: str = "") -> None:
        """Store what is not there yet."""
        check_path(path)
        self._reached(point, "written")
        with self._lock:
            if path in self._objects:
                raise ExistsError(f"{path} is taken in {self.url}")
            self._objects[path] = joined(data)
        self._reached(point, "linked")

    def compare_and_swap(self, path: str, old: bytes | None, new: bytes, *, point: str = "") -> None:
        """Replace exactly `old`."""
        check_path(path)
        self._reached(point, "written")
        with self._lock:
            if self._objects.get(path) != old:
                raise ConflictError(f"{path} changed in {self.url}")
            self._objects[path] = bytes(new)
        self._reached(point, "linked")

    def overwrite(self, path: str, data: bytes) -> None:
        """Replace whatever is there."""
        check_path(path)
        with self._lock:
            self._objects[path] = bytes(data)

    def delete(self, path: str) -> None:
        """Remove what is there."""
        check_path(path)
        with self._lock:
            self._objects.pop(path, None)

    def tidy(self, prefix: str, *, older_ms: int) -> None:
        """Nothing is ever left here."""

    def _reached(self, point: str, step: str) -> None:
        if point:
            self._faults.reached(f"{point}_{step}")


def _inside(path: str, prefix: str) -> bool:
    return path.startswith(prefix + "/") and "/" not in path[len(prefix) + 1 :]
