"""Moving the pointer: forward by the publisher, back and pinned by a rollback (FORMAT.md, section 4)."""

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass

from checkpointer.errors import ConflictError
from checkpointer.store import Store
from publisher.codec import decode_pin, decode_pointer, encode_pin, encode_pointer, is_signed
from publisher.errors import NewerFormatError, Reason, VersionError
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


def is_pinned(store: Store, *, signer: Signer | None = None) -> bool:
    """Whether a pin holds the pointer; one that is damaged holds it too, since somebody put it there.

    A publisher with a key does not believe a pin that it has not signed: who has none must not hold versions up.
    """
    payload = fetch(store, PIN)
    try:
        return payload is not None and bool(decode_pin(payload, PIN, signer.verifier if signer else None))
    except NewerFormatError:
        raise
    except VersionError as error:
        believed = error.reason not in (Reason.UNSIGNED, Reason.FOREIGN)
        logger.error("%s: %s", "the pointer stays where it is" if believed else "the pin is not believed", error)
        return believed


def _current(payload: bytes | None) -> Pointer | None:
    """The pointer; None where there is none, or none that can be read."""
    try:
        return None if payload is None else decode_pointer(payload, POINTER)
    except NewerFormatError:
        raise
    except VersionError:
        return None


def advance(store: Store, target: Target, clock_ms: Clock, *, signer: Signer | None = None) -> Pointer | None:
    """Point at a newer version; None where a pin holds the pointer, or it is there or further already.

    A publisher with a key does not believe a pointer that it has not signed, and points anew.
    """
    while True:
        payload = fetch(store, POINTER)
        current = _current(payload)
        # The pin is read after the pointer: a rollback writes it before it moves the pointer, so either it is seen
        # here, or the pointer is no longer what was read.
        there = current is not None and current.version >= target.version and _believed(payload, signer)
        if is_pinned(store, signer=signer) or there:
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
    if payload is None and (version is None or not list_versions(store)):
        raise VersionError(Reason.MISSING, f"nothing is served from {store.url} yet: there is nothing to roll back")
    current = _current(payload)
    chosen = version if version is not None else _before(store, current)
    read_version(store, chosen, verifier=signer.verifier if signer else None)
    manifest = store.get(manifest_path(chosen))
    # A pointer that cannot be read was signed if the manifests are.
    if signer is None and is_signed(payload if payload and current else manifest, POINTER):
        raise VersionError(
            Reason.UNSIGNED,
            f"the pointer of {store.url} is signed, and replicas may refuse one that is not: "
            "give --config with publish_config.signing_key_file",
        )
    digest = hashlib.sha256(manifest).hexdigest()
    is_pinned(store)  # a newer program's pin is not ours to replace
    _pin(store, Pin(version=chosen, pinned_ms=clock_ms()), signer)
    while True:
        found = fetch(store, POINTER)
        current = _current(found)
        # Also where it points there already: a publisher that read the pointer before the pin must lose its swap.
        moved = _swap(store, found, current, Target(version=chosen, digest=digest), clock_ms, signer)
        if moved is not None:
            logger.warning("rolled back version=%d from=%s", chosen, current.version if current else None)
            return moved


def resume(store: Store) -> bool:
    """Remove the pin, damaged or not, so that the publisher moves on; say whether there was one."""
    pinned = is_pinned(store)
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
    now_ms = clock_ms()
    if current is not None:
        generation = current.generation + 1
    else:
        if payload is not None:
            logger.error("%s cannot be read and is written anew", POINTER)
        # Replicas with a key refuse a lower number than they saw. Where the count is lost, none can be above the clock.
        generation = 1 if payload is None and list_versions(store) == [target.version] else now_ms
    fresh = Pointer(version=target.version, digest=target.digest, generation=generation, swapped_ms=now_ms)
    try:
        store.compare_and_swap(POINTER, payload, encode_pointer(fresh, signer), point="publish.pointer")
    except ConflictError:
        return None
    return fresh


def _pin(store: Store, pin: Pin, signer: Signer | None) -> None:
    payload = encode_pin(pin, signer)
    while True:
        try:
            store.compare_and_swap(PIN, fetch(store, PIN), payload, point="rollback.pin")
            return
        except ConflictError:
            continue


def _before(store: Store, current: Pointer | None) -> int:
    versions = list_versions(store)
    if current is None:
        known = f"there are versions {versions[0]} to {versions[-1]}" if versions else "there are no versions"
        raise VersionError(
            Reason.CORRUPT,
            f"{POINTER} of {store.url} cannot be read, so that nothing says which version is the one before; name it: "
            f"headrace rollback MODEL_DIR SEQ ({known})",
        )
    older = [number for number in versions if number < current.version]
    if not older:
        raise VersionError(Reason.MISSING, f"there is no version before {current.version} in {store.url}")
    return older[-1]
