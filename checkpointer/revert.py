"""`revert`: train on from an older commit, on a new chain; nothing of the log is overwritten (FORMAT.md, section 6)."""

import logging

from checkpointer import blob as blobs
from checkpointer.commit import BlobRef, Commit, Kind
from checkpointer.compact import blob_batches
from checkpointer.restore import restore
from checkpointer.store import Store
from checkpointer.writer import Draft, Writer, WriterOptions, blob_folder, put_blob

logger = logging.getLogger(__name__)


def revert(store: Store, seq: int, options: WriterOptions, *, from_now: bool = False) -> Commit:
    """Append the state of commit `seq` as a base that starts a new chain. A running trainer is fenced.

    Training goes on from that commit's cursors or, with `from_now`, from the ends of the topics.
    Hold the trainer's lock, so that a running trainer is a refusal rather than a surprise.
    """
    state = restore(store, seq)
    writer = Writer.open(store, options)
    writer.start_chain()
    last = [blobs.dense_piece(state.dense), *(blobs.stream_piece(stream) for stream in state.stream)]
    refs: list[BlobRef] = []
    for data, blob in blob_batches(state.tables, last):
        path = f"{blob_folder(writer.next_seq)}/{writer.next_seq:020d}-r0-{blob.path}.blob"
        put_blob(store, path, data, "commit.blob")
        refs.append(BlobRef(path=path, bytes=blob.bytes, rank=0, parts=blob.parts))
    source = state.commit
    draft = Draft(
        kind=Kind.BASE,
        step=source.step,
        event_time_ms=source.event_time_ms,
        broker_time_ms=source.broker_time_ms,
        world=1,
        contract=source.contract,
        features=source.features,
        figures=source.figures,
        blobs=tuple(refs),
        from_now=from_now,
        forked=source.link,
    )
    commit = writer.append(draft)
    logger.info("reverted url=%s to=%s as=%s chain=%s", store.url, seq, commit.seq, commit.chain)
    return commit
