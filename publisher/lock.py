"""One publisher per model directory; where no lock can be seen, the compare-and-swap of the pointer still guards."""

from collections.abc import Iterator
from contextlib import contextmanager

from checkpointer.errors import LockedError
from checkpointer.lock import acquire, lock_directory
from checkpointer.store import Store
from publisher.errors import PublisherBusyError

PUBLISHER_LOCK = "publisher.lock"


@contextmanager
def publisher_lock(store: Store, lock_dir: str, holder: str) -> Iterator[None]:
    """Hold the lock in `lock_dir`, by default the model directory where that is local; raises PublisherBusyError."""
    directory = lock_directory(lock_dir, store)
    if not directory:
        yield
        return
    try:
        lock = acquire(directory, PUBLISHER_LOCK, holder)
    except LockedError as error:
        raise PublisherBusyError(f"another publisher runs: {error}") from None
    with lock:
        yield
