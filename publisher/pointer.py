"""Moving the pointer: forward by the publisher, back and pinned by a rollback (FORMAT.md, section 4)."""

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass

from checkpointer.errors import ConflictError
from checkpointer.store import Store
from publisher.codec import decode_pin, decode_pointer, encode_pin, encode_pointer, is_signed
from publisher.errors import Reason, VersionError
from publisher.manifest import PIN, POINTER, Pin, Pointer, manifest_path
from publisher.signing import Signer
from publisher.versions import fetch, list_versions, read_version

logger = logging.getLogger(__name__)

Clock = Callable[[], int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A version to point at, and the digest of its manifest."""

    version: int
    digest: str


def read_pin(store: Store) -> Pin | None:
    """Read the pin; None where nothing is pinned."""
    payload = fetch(store, PIN)
    return None if payload is None else decode_pin(payload, PIN)


def advance(store: Store, target: Target, clock_ms: Clock, *, signer: Signer | None = None) -> Pointer | None:
    """Point at a newer version; None where a pin holds the pointer, or it is there or further already.

    A publisher with a key does not believe a pointer that it has not signed, and points anew.
    """
    while True:
        payload = fetch(store, POINTER)
        current = None if payload is None else decode_pointer(payload, POINTER)
        # The pin is read after the pointer: a rollback writes it before it moves the pointer, so either it is seen
        # here, or the pointer is no longer what was read.
        there = current is not None and current.version >= target.version and _believed(payload, signer)
        if read_pin(store) is not None or there:
            return None
        moved = _swap(store, payload, current, target, clock_ms, signer)
        if moved is not None:
            return moved


def _believed(payload: bytes | None, signer: Signer | None) -> bool:
    if payload is None or signer is None:
        return payload is not None
    try:
        decode_pointer(payload, POINTER, signer.verifier)
    except VersionError as error:
        logger.error("pointer is written anew: %s", error)
        return False
    return True


def rollback(store: Store, version: int | None, clock_ms: Clock, *, signer: Signer | None = None) -> Pointer:
    """Serve an older version, by default the one before, and pin it until `resume`.

    Where the pointer is signed it must be signed again: replicas with a key refuse any other.
    """
    payload = fetch(store, POINTER)
    if payload is None:
        raise VersionError(Reason.MISSING, f"nothing is served from {store.url} yet: there is nothing to roll back")
    if signer is None and is_signed(payload, POINTER):
        raise VersionError(
            Reason.UNSIGNED,
            f"the pointer of {store.url} is signed, and replicas may refuse one that is not: "
            "give --config with publish_config.signing_key_file",
        )
    chosen = version if version is not None else _before(store, decode_pointer(payload, POINTER).version)
    read_version(store, chosen, verifier=signer.verifier if signer else None)
    digest = hashlib.sha256(store.get(manifest_path(chosen))).hexdigest()
    _pin(store, Pin(version=chosen, pinned_ms=clock_ms()))
    while True:
        found = fetch(store, POINTER)
        current = None if found is None else decode_pointer(found, POINTER)
        # Also where it points there already: a publisher that read the pointer before the pin must lose its swap.
        moved = _swap(store, found, current, Target(version=chosen, digest=digest), clock_ms, signer)
        if moved is not None:
            logger.warning("rolled back version=%d from=%s", chosen, current.version if current else None)
            return moved


def resume(store: Store) -> bool:
    """Remove the pin, so that the publisher moves on; say whether there was one."""
    pinned = read_pin(store) is not None
    store.delete(PIN)
    return pinned


def _swap(
    store: Store,
    payload: bytes | None,
    current: Pointer | None,
    target: Target,
    clock_ms: Clock,
    signer: Signer | None,
) -> Pointer | None:
    fresh = Pointer(
        version=target.version,
        digest=target.digest,
        generation=current.generation + 1 if current else 1,
        swapped_ms=clock_ms(),
    )
    try:
        store.compare_and_swap(POINTER, payload, encode_pointer(fresh, signer), point="publish.pointer")
    except ConflictError:
        return None
    return fresh


def _pin(store: Store, pin: Pin) -> None:
    while True:
        try:
            store.compare_and_swap(PIN, fetch(store, PIN), encode_pin(pin), point="rollback.pin")
            return
        except ConflictError:
            continue


def _before(store: Store, version: int) -> int:
    older = [number for number in list_versions(store) if number < version]
    if not older:
        raise VersionError(Reason.MISSING, f"there is no version before {version} in {store.url}")
    return older[-1]
