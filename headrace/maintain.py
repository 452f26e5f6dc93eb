"""What an operator does to a commit log on demand: compact it, and go back to an older commit."""

import socket
import time
import uuid

from checkpointer.bases import list_bases, read_base
from checkpointer.commit import Commit
from checkpointer.local_store import LocalStore
from checkpointer.lock import TRAINER_LOCK, acquire
from checkpointer.log import CommitLog
from checkpointer.maintenance import maintain_model
from checkpointer.retention import compact_newest
from checkpointer.revert import revert
from checkpointer.store import Store
from checkpointer.writer import WriterOptions
from headrace import __version__
from headrace.errors import UsageError
from protos.pipeline_pb2 import EasyRecConfig


def compact_now(store: Store, config: EasyRecConfig, *, now_ms: int) -> dict[str, int]:
    """Compact and collect under the one lock for both; commits that are not yet published stay.

    LockedError when the publisher or the trainer is at it.
    """
    if CommitLog(store).head() is None:
        raise UsageError(f"{store.url} holds no commit yet; train first, or check the path")
    gone = maintain_model(store, config, now_ms=now_ms, holder="headrace log compact", compacting=compact_newest)
    base = read_base(store, list_bases(store)[-1])
    removed = {"removed_commits": gone.commits, "removed_bases": gone.bases, "removed_blobs": gone.blobs}
    return {"base": base.seq, "bytes": base.bytes, **removed}


def revert_to(store: Store, seq: int, *, from_now: bool) -> Commit:
    """Append the state of commit `seq` as the newest; LockedError while a trainer of this machine runs."""
    options = WriterOptions(
        token=f"{socket.gethostname()}/{uuid.uuid4().hex}",
        clock_ms=lambda: time.time_ns() // 1_000_000,
        new_chain=lambda: uuid.uuid4().hex,
        writer=f"headrace {__version__} log revert",
    )
    lock = acquire(store.root, TRAINER_LOCK, "headrace log revert") if isinstance(store, LocalStore) else None
    try:
        return revert(store, seq, options, from_now=from_now)
    finally:
        if lock is not None:
            lock.release()
