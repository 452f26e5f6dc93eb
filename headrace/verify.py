"""`headrace log verify`: the log with all it names, and the files that say which version of it is served."""

from collections.abc import Iterator
from dataclasses import dataclass

from checkpointer.errors import StoreError
from checkpointer.evidence import Evidence
from checkpointer.store import Store
from checkpointer.verify import Finding, Verification, verify
from publisher.errors import Reason, VersionError
from publisher.pointer import read_pin
from publisher.versions import PIN, POINTER, list_versions, manifest_path, read_pointer, read_version


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedFlaw:
    """What is wrong with a file of the served versions."""

    flaw: Reason | str
    path: str
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Verified:
    """What was found in the log, and in the pointer, the pin and the manifests of versions."""

    log: Verification
    served: tuple[ServedFlaw, ...]

    @property
    def flaws(self) -> tuple[Finding | ServedFlaw, ...]:
        """All of them."""
        return (*self.log.findings, *self.served)


def verify_model(store: Store) -> Verified:
    """Verify a model directory; blobs of versions are left to the replicas, which never use one unverified.

    The pointer is read before the log, so that a publisher at work is never ahead of what was listed.
    """
    named: list[Evidence] = []
    flaws = [*_pointers(store, named)]
    log = verify(store, named)
    return Verified(log=log, served=(*flaws, *_versions(store)))


def _pointers(store: Store, named: list[Evidence]) -> Iterator[ServedFlaw]:
    """Flaws of pointer and pin; what they name, which is also the number of a commit, goes to `named`."""
    for path, read in ((POINTER, read_pointer), (PIN, read_pin)):
        try:
            if (found := read(store)) is not None:
                named.append(Evidence(seq=found.version, witness=f"{path} names it"))
                if found.version not in list_versions(store):
                    yield ServedFlaw(flaw=Reason.MISSING, path=manifest_path(found.version), detail=f"{path} names it")
        except (VersionError, StoreError) as error:
            yield _flaw(path, error)


def _versions(store: Store) -> Iterator[ServedFlaw]:
    for version in list_versions(store):
        try:
            read_version(store, version)
        except (VersionError, StoreError) as error:
            # Retention may have removed it since it was listed.
            if version in list_versions(store):
                yield _flaw(manifest_path(version), error)


def _flaw(path: str, error: VersionError | StoreError) -> ServedFlaw:
    flaw = error.reason if isinstance(error, VersionError) else "unreadable"
    return ServedFlaw(flaw=flaw, path=path, detail=str(error).removeprefix(f"{path} "))
