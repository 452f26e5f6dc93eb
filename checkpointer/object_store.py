"""A `Store` in an object store: If-None-Match for put-if-absent, If-Match for compare-and-swap."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.exceptions import NotFoundError as ObjectNotFoundError
from obstore.store import MemoryStore as ObjectMemoryStore
from obstore.store import S3Store

from checkpointer.errors import ConflictError, ExistsError, NotFoundError, OutcomeUnknownError, StoreError
from checkpointer.faults import NO_FAULTS, FaultPoints
from checkpointer.store import Content, Entry, check_path, joined

if TYPE_CHECKING:
    from obstore import GetResult, UpdateVersion

T = TypeVar("T")


class ObjectStore:
    """Objects below the prefix of `objects`, which must honour conditional puts: `prove_conditional_puts` finds out."""

    def __init__(self, objects: S3Store | ObjectMemoryStore, url: str, faults: FaultPoints = NO_FAULTS) -> None:
        self.url = url
        self._objects = objects
        self._faults = faults

    def get(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """Read bytes."""
        check_path(path)
        if offset == 0 and length is None:
            return self._call(path, "reading", lambda: bytes(obstore.get(self._objects, path).bytes()))
        # An endpoint refuses a range that starts after the end, so the size comes first.
        size = self._call(path, "reading", lambda: obstore.head(self._objects, path))["size"]
        end = size if length is None else min(size, offset + length)
        if end <= offset:
            return b""
        return self._call(path, "reading", lambda: bytes(obstore.get_range(self._objects, path, start=offset, end=end)))

    def list(self, prefix: str, *, after: str = "") -> Iterator[Entry]:
        """List a folder in order."""
        check_path(prefix)
        if after and not after.startswith(prefix + "/"):
            after = "" if after < prefix + "/" else after
        found = self._call(prefix, "listing", lambda: self._listed(prefix, after))
        yield from sorted(found, key=lambda entry: entry.path)

    def folders(self, prefix: str) -> Sequence[str]:
        """Name the folders below a folder."""
        check_path(prefix)
        result = self._call(prefix, "listing", lambda: obstore.list_with_delimiter(self._objects, prefix + "/"))
        return sorted(result["common_prefixes"])

    def put_if_absent(self, path: str, data: Content, *, point: str = "") -> None:
        """Store what is not there yet."""
        check_path(path)
        self._reached(point, "written")
        try:
            obstore.put(self._objects, path, joined(data), mode="create", use_multipart=False)
        except AlreadyExistsError:
            raise ExistsError(f"{path} is taken in {self.url}") from None
        except BaseError as error:
            raise OutcomeUnknownError(f"storing {path} in {self.url} failed: {_reason(error)}") from error
        self._reached(point, "linked")

    def compare_and_swap(self, path: str, old: bytes | None, new: bytes, *, point: str = "") -> None:
        """Replace exactly `old`."""
        check_path(path)
        self._reached(point, "written")
        if old is None:
            self._create(path, new)
        else:
            self._replace(path, old, new)
        self._reached(point, "linked")

    def overwrite(self, path: str, data: bytes) -> None:
        """Replace whatever is there."""
        check_path(path)
        self._call(path, "storing", lambda: obstore.put(self._objects, path, data, use_multipart=False))

    def delete(self, path: str) -> None:
        """Remove what is there."""
        check_path(path)
        try:
            self._call(path, "deleting", lambda: obstore.delete(self._objects, path))
        except NotFoundError:
            return

    def tidy(self, prefix: str, *, older_ms: int) -> None:
        """Nothing is ever left in an object store: a put is whole or absent."""

    def prove_conditional_puts(self, probe: str) -> None:
        """Refuse an endpoint that ignores conditional puts; `probe` is a path that nothing else uses."""
        self.overwrite(probe, b"1")
        stale = self._tag(self._call(probe, "reading", lambda: obstore.get(self._objects, probe)))
        self.overwrite(probe, b"2")
        try:
            obstore.put(self._objects, probe, b"3", mode="create", use_multipart=False)
        except AlreadyExistsError:
            pass
        else:
            raise StoreError(f"{self.url} ignores If-None-Match: two writers would overwrite each other")
        try:
            obstore.put(self._objects, probe, b"4", mode=stale, use_multipart=False)
        except PreconditionError:
            pass
        else:
            raise StoreError(f"{self.url} ignores If-Match: two writers would overwrite each other")
        self.delete(probe)

    def _listed(self, prefix: str, after: str) -> Sequence[Entry]:
        pages = obstore.list(self._objects, prefix + "/", offset=after or None)
        return [
            Entry(path=meta["path"]) for page in pages for meta in page if "/" not in meta["path"][len(prefix) + 1 :]
        ]

    def _create(self, path: str, new: bytes) -> None:
        try:
            self.put_if_absent(path, new)
        except ExistsError:
            raise ConflictError(f"{path} is there already in {self.url}") from None

    def _replace(self, path: str, old: bytes, new: bytes) -> None:
        try:
            found = self._call(path, "reading", lambda: obstore.get(self._objects, path))
        except NotFoundError:
            raise ConflictError(f"{path} is gone from {self.url}") from None
        tag = self._tag(found)
        if self._call(path, "reading", lambda: bytes(found.bytes())) != old:
            raise ConflictError(f"{path} changed in {self.url}")
        try:
            obstore.put(self._objects, path, new, mode=tag, use_multipart=False)
        except PreconditionError:
            # Perhaps our own put, repeated by the client after a lost answer; only the caller can tell by reading.
            raise ConflictError(f"{path} changed in {self.url}") from None
        except BaseError as error:
            raise OutcomeUnknownError(f"replacing {path} in {self.url} failed: {_reason(error)}") from error

    def _tag(self, found: "GetResult") -> "UpdateVersion":
        tag, version = found.meta["e_tag"], found.meta["version"]
        if tag is None:
            raise StoreError(f"{self.url} gives no entity tags: compare-and-swap cannot work there")
        return {"e_tag": tag} if version is None else {"e_tag": tag, "version": version}

    def _call(self, path: str, what: str, action: Callable[[], T]) -> T:
        try:
            return action()
        except (ObjectNotFoundError, FileNotFoundError):
            raise NotFoundError(f"nothing lies under {path} in {self.url}") from None
        except BaseError as error:
            raise StoreError(f"{what} {path} in {self.url} failed: {_reason(error)}") from error

    def _reached(self, point: str, step: str) -> None:
        if point:
            self._faults.reached(f"{point}_{step}")


def _reason(error: BaseError) -> str:
    return " ".join(str(error).split("\n", 1)[0].split())
