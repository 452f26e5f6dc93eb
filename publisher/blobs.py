"""Writing files whose names say what is in them, so that writing them again changes nothing."""

from checkpointer.canonical import sha256
from checkpointer.errors import ExistsError
from checkpointer.store import Content, Store, joined, size_of
from publisher.errors import Reason, VersionError
from publisher.manifest import Blob


def put(store: Store, stem: str, suffix: str, payload: Content, *, point: str) -> Blob:
    """Store a payload under a name made from its digest."""
    digest = sha256(*([payload] if isinstance(payload, bytes) else payload))
    path = f"{stem}{digest[:16]}{suffix}"
    if not put_once(store, path, payload, point=point) and store.get(path) != joined(payload):
        raise VersionError(
            Reason.CORRUPT, f"{path} in {store.url} is there with other bytes than its name says: delete it"
        )
    return Blob(path=path, size=size_of(payload), digest=digest)


def put_once(store: Store, path: str, payload: Content, *, point: str) -> bool:
    """Store a payload unless the name is taken; say whether it was free."""
    try:
        store.put_if_absent(path, payload, point=point)
    except ExistsError:
        return False
    return True
