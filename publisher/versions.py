"""Reading serving versions: nothing is used before its digest, and its signature where there is a key, are verified."""

import hashlib

from checkpointer.errors import NotFoundError
from checkpointer.store import Store
from publisher.codec import VERSION_REMEDY, decode_pointer, decode_version
from publisher.errors import Reason, VersionError
from publisher.manifest import (
    PIN,
    POINTER,
    Artefact,
    Base,
    Blob,
    Delta,
    Plan,
    Pointer,
    ServingVersion,
    StreamRange,
    Table,
    manifest_path,
)
from publisher.signing import Verifier

__all__ = [
    "PIN",
    "POINTER",
    "Artefact",
    "Base",
    "Blob",
    "Delta",
    "Plan",
    "Pointer",
    "ServingVersion",
    "StreamRange",
    "Table",
    "fetch",
    "list_versions",
    "manifest_path",
    "read_blob",
    "read_current",
    "read_pointer",
    "read_version",
]


def fetch(store: Store, path: str) -> bytes | None:
    """Read an object; None where there is none."""
    try:
        return store.get(path)
    except NotFoundError:
        return None


def read_pointer(store: Store, *, verifier: Verifier | None = None) -> Pointer | None:
    """Read which version is served; None before the first one."""
    payload = fetch(store, POINTER)
    return None if payload is None else decode_pointer(payload, POINTER, verifier)


def read_version(
    store: Store, version: int, *, verifier: Verifier | None = None, digest: str | None = None
) -> ServingVersion:
    """Read and verify one manifest; `digest` is what a pointer or a notification says its bytes hash to."""
    path = manifest_path(version)
    payload = fetch(store, path)
    if payload is None:
        raise VersionError(Reason.MISSING, f"version {version} is not there: no {path}")
    if digest is not None and hashlib.sha256(payload).hexdigest() != digest:
        raise VersionError(
            Reason.CORRUPT, f"{path} is not the manifest that was named: expected digest {digest}; {VERSION_REMEDY}"
        )
    found = decode_version(payload, path, verifier)
    if found.version != version:
        raise VersionError(Reason.FOREIGN, f"{path} is the manifest of version {found.version}")
    return found


def read_current(store: Store, *, verifier: Verifier | None = None) -> ServingVersion | None:
    """Read the version that is served; None before the first one."""
    pointer = read_pointer(store, verifier=verifier)
    if pointer is None:
        return None
    return read_version(store, pointer.version, verifier=verifier, digest=pointer.digest)


def read_blob(store: Store, blob: Blob) -> bytes:
    """Read a file of a version; refuse it when it is absent, cut short or altered."""
    payload = fetch(store, blob.path)
    if payload is None:
        raise VersionError(Reason.MISSING, f"{blob.path} is not there")
    if len(payload) != blob.size:
        raise VersionError(Reason.TRUNCATED, f"{blob.path} has {len(payload)} bytes, its manifest says {blob.size}")
    if hashlib.sha256(payload).hexdigest() != blob.digest:
        raise VersionError(Reason.CORRUPT, f"{blob.path} does not match the digest in its manifest")
    return payload


def list_versions(store: Store) -> list[int]:
    """List the numbers of the complete versions, ascending."""
    folders = ((folder, folder.rsplit("/", 1)[1]) for folder in store.folders("versions"))
    return [
        int(name)
        for folder, name in folders
        if name.isascii() and name.isdigit() and any(e.path == f"{folder}/manifest.json" for e in store.list(folder))
    ]
