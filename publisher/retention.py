"""Deleting versions beyond `keep_versions`, and the files that no kept version names (FORMAT.md, section 6)."""

import logging
from collections.abc import Iterator

from checkpointer.store import Store
from publisher.artefacts import read_description
from publisher.errors import VersionError
from publisher.manifest import Blob, ServingVersion, manifest_path
from publisher.pointer import read_pin
from publisher.versions import list_versions, read_pointer, read_version

logger = logging.getLogger(__name__)

_FOLDERS = ("deltas", "dense")
_OF_CONTRACTS = ("contracts", "compiled")
_LEFTOVER_MS = 3_600_000


class Retention:
    """Sweeps the versions of one store; `holding` are files that versions to come will name."""

    def __init__(self, store: Store, keep: int, holding: frozenset[str] = frozenset()) -> None:
        self._store = store
        self._keep = keep
        self._holding = holding
        self._unnamed: frozenset[str] = frozenset()

    def sweep(self, *, writing: frozenset[int] = frozenset()) -> int:
        """Delete what retention no longer keeps; return the number of versions deleted.

        Manifests go first: a crash in between leaves files that nothing names, for the next sweep. `writing` are
        bases that a task is still at.
        """
        versions = list_versions(self._store)
        if not versions:
            return 0
        try:
            kept = _kept(self._store, versions, self._keep)
            read = [read_version(self._store, version) for version in kept]
            of_contracts = self._of_contracts(read)
        except VersionError as error:
            logger.error("nothing is deleted while it is not known what is kept: %s", error)
            return 0
        named = {blob.path for version in read for blob in _rows_and_dense(version)}
        oldest = min(kept)
        doomed = [version for version in versions if version not in kept]
        _delete_notes(self._store, doomed, oldest)
        for path in list(_candidates(self._store)):
            # A newer file may belong to a version whose manifest is not written yet.
            if path not in named and _seq(path) < oldest and _seq(path) not in writing:
                self._store.delete(path)
        self._sweep_contracts(of_contracts)
        logger.info("versions deleted count=%d oldest_kept=%d", len(doomed), oldest)
        return len(doomed)

    def _of_contracts(self, kept: list[ServingVersion]) -> set[str]:
        """The files of contracts and compiled halves that kept versions name, or versions to come may name."""
        named = {blob.path for version in kept for blob in _contract_files(version)} | self._holding
        for contract in {path.split("/")[1] for path in named if path.startswith("contracts/")}:
            for entry in self._store.list(f"compiled/{contract}"):
                if entry.path.endswith(".json"):
                    described = read_description(self._store, entry.path)
                    named |= {entry.path} | ({described.artefact.blob.path} if described else set())
        return named

    def _sweep_contracts(self, named: set[str]) -> None:
        """Delete the files of contracts that nothing names, and named nothing at the last sweep either.

        A file is written before the description or the manifest that names it, and its name has no number that tells
        whether that one is yet to come.
        """
        found = {
            entry.path
            for kind in _OF_CONTRACTS
            for folder in self._store.folders(kind)
            for entry in self._store.list(folder)
        }
        unnamed = found - named
        # Descriptions first: what they name is refused where it is gone.
        for path in sorted(unnamed & self._unnamed, key=lambda path: (not path.endswith(".json"), path)):
            self._store.delete(path)
        self._unnamed = frozenset(unnamed - self._unnamed)
        for kind in _OF_CONTRACTS:
            self._store.tidy(kind, older_ms=_LEFTOVER_MS)


def _delete_notes(store: Store, doomed: list[int], oldest: int) -> None:
    """Delete manifests, and refusals older than all that is kept."""
    for version in doomed:
        store.delete(manifest_path(version))
    for folder in store.folders("versions"):
        name = folder.rsplit("/", 1)[1]
        if name.isdigit() and int(name) < oldest:
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


def _rows_and_dense(version: ServingVersion) -> Iterator[Blob]:
    yield from version.base.blobs
    yield version.dense
    for delta in version.deltas:
        yield from delta.blobs


def _contract_files(version: ServingVersion) -> Iterator[Blob]:
    yield from (version.config, version.layout)
    yield from (asset.blob for asset in version.assets)
    yield from (artefact.blob for artefact in version.artefacts)
    if version.described is not None:
        yield version.described
