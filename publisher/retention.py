"""Deleting versions beyond `keep_versions`, and the files that no kept version names (FORMAT.md, section 6)."""

import logging
from collections.abc import Iterator

from checkpointer.store import Store
from publisher.errors import VersionError
from publisher.manifest import Blob, ServingVersion, manifest_path
from publisher.pointer import read_pin
from publisher.versions import list_versions, read_pointer, read_version

logger = logging.getLogger(__name__)

_FOLDERS = ("deltas", "dense")


def sweep(store: Store, keep: int, *, writing: frozenset[int] = frozenset()) -> int:
    """Delete what retention no longer keeps; return the number of versions deleted.

    Manifests go first: a crash in between leaves files that nothing names, for the next sweep. `writing` are
    bases that a task is still at.
    """
    versions = list_versions(store)
    kept = _kept(store, versions, keep)
    if not kept:
        return 0
    try:
        named = {blob.path for version in kept for blob in _blobs(read_version(store, version))}
    except VersionError as error:
        logger.error("nothing is deleted while a kept version cannot be read: %s", error)
        return 0
    oldest = min(kept)
    doomed = [version for version in versions if version not in kept]
    _delete_notes(store, doomed, oldest)
    for path in list(_candidates(store)):
        # A newer file may belong to a version whose manifest is not written yet.
        if path not in named and _seq(path) < oldest and _seq(path) not in writing:
            store.delete(path)
    logger.info("versions deleted count=%d oldest_kept=%d", len(doomed), oldest)
    return len(doomed)


def _delete_notes(store: Store, doomed: list[int], oldest: int) -> None:
    """Delete manifests, and refusals older than all that is kept."""
    for version in doomed:
        store.delete(manifest_path(version))
    for folder in store.folders("versions"):
        if int(folder.rsplit("/", 1)[1]) < oldest:
            store.delete(f"{folder}/refused.json")


def _kept(store: Store, versions: list[int], keep: int) -> set[int]:
    """The newest `keep`, the served one, the pinned one."""
    pointer, pin = read_pointer(store), read_pin(store)
    special = {pointer.version if pointer else None, pin.version if pin else None}
    return {*versions[-keep:], *(version for version in versions if version in special)}


def _candidates(store: Store) -> Iterator[str]:
    for folder in (*_FOLDERS, *store.folders("serving_bases")):
        yield from (entry.path for entry in store.list(folder))


def _seq(path: str) -> int:
    """The commit's number in a file's name.

    >>> _seq("deltas/00000000000000000042-8899.parquet"), _seq("serving_bases/00000000000000000040/int8.json")
    (42, 40)
    """
    return int(path.split("/")[1][:20])


def _blobs(version: ServingVersion) -> Iterator[Blob]:
    yield from version.base.blobs
    yield version.dense
    for delta in version.deltas:
        yield from delta.blobs
