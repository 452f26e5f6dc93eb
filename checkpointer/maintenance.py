"""Compaction and garbage collection as a whole configuration says: the same for trainer, publisher and operator."""

from collections.abc import Callable

from checkpointer.errors import NoLockError
from checkpointer.evidence import published_version
from checkpointer.lock import lock_directory
from checkpointer.retention import Collected, RetentionOptions, compact_if_due, maintain
from checkpointer.store import Store
from protos.pipeline_pb2 import EasyRecConfig


def maintain_model(
    store: Store,
    config: EasyRecConfig,
    *,
    now_ms: int,
    holder: str,
    compacting: Callable[[Store, RetentionOptions], None] = compact_if_due,
) -> Collected:
    """Compact, then collect what neither the configuration nor the newest version needs any more.

    LockedError when somebody else is at it, NoLockError where no lock could say so.
    """
    directory = lock_directory(config.checkpoint_config.lock_dir, store)
    if not directory:
        raise NoLockError(
            f"{store.url} is not local, and compaction needs a lock: set checkpoint_config.lock_dir to a folder that "
            "trainer and publisher see"
        )
    options = RetentionOptions.of(config)
    published = published_version(store)
    return maintain(store, directory, options, now_ms=now_ms, holder=holder, published=published, compacting=compacting)
