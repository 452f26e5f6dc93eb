"""Compaction: the state at a commit becomes a base, proven equal before anyone can see it (FORMAT.md, section 8)."""

import logging
from collections.abc import Iterable, Iterator

from checkpointer import blob as blobs
from checkpointer.bases import Base, base_to_bytes, list_bases, read_base
from checkpointer.blob import Piece
from checkpointer.canonical import sha256
from checkpointer.commit import BASES, BlobRef, base_path
from checkpointer.digest import TablesDigest, state_digest
from checkpointer.errors import ChainError, ExistsError, Flaw
from checkpointer.restore import Plan, Restored, plan, read_plan
from checkpointer.rows import TableRows
from checkpointer.seen import prune_seen
from checkpointer.store import Content, Store, size_of
from checkpointer.writer import put_blob

logger = logging.getLogger(__name__)

BLOB_BYTES = 64 << 20


def compact(store: Store, seq: int | None = None, *, seen_window_ms: int | None = None) -> Base:
    """Write the base of commit `seq`, by default the newest, and return it; where it is there already, only return it.

    Hold `lock.maintenance`. Training and readers go on; a crash anywhere leaves the old base or the new one.
    Of the ids seen, those are kept that a duplicate window of `seen_window_ms` can still reach, by default all.
    1. read base and deltas, write blobs  2. read them back, compare digests  3. link the manifest
    """
    steps = plan(store, seq)
    if steps.base is not None and not steps.commits:
        return steps.base
    state = read_plan(store, steps)
    if seen_window_ms is not None:
        prune_seen(state.stream, seen_window_ms)
    refs, written = _write(store, state)
    logical = state_digest(written, state.dense, state.stream, state.commit.step)
    base = Base(commit=state.commit, logical=logical, blobs=refs)
    prove(store, base)
    try:
        store.put_if_absent(base_path(base.seq), base_to_bytes(base), point="compact.manifest")
    except ExistsError:
        return read_base(store, base.seq)
    logger.info("compacted seq=%s deltas=%s bytes=%s", base.seq, len(steps.commits), base.bytes)
    return base


def prove(store: Store, base: Base) -> None:
    """Read a base back and compare its logical digest. Raises ChainError."""
    state = read_plan(store, Plan(base=base, commits=()))
    rows = TablesDigest()
    for part in state.tables:
        rows.add(part)
    found = state_digest(rows, state.dense, state.stream, state.commit.step)
    if found != base.logical:
        raise ChainError(
            Flaw.ALTERED, base_path(base.seq), f"its rows have digest {found}, it was made with {base.logical}"
        )


def remove_unfinished(store: Store) -> None:
    """Remove blobs of bases that never got a manifest and never will, and of bases that were removed."""
    finished = set(list_bases(store))
    for folder in store.folders(f"{BASES}/blobs"):
        name = folder.rsplit("/", 1)[-1]
        if finished and name.isdigit() and int(name) not in finished and int(name) < max(finished):
            for entry in list(store.list(folder)):
                store.delete(entry.path)


def blob_batches(tables: Iterable[TableRows], last: Iterable[Piece]) -> Iterator[tuple[Content, BlobRef]]:
    """Pieces of tables, then `last`, in blobs of bounded size; the paths of the blobs are only names yet."""
    batch: list[Piece] = []
    for rows in tables:
        batch += blobs.rows_pieces(rows)
        if sum(piece.part.bytes for piece in batch) >= BLOB_BYTES:
            yield _blob(batch)
            batch = []
    yield _blob([*batch, *last])


def _blob(batch: list[Piece]) -> tuple[Content, BlobRef]:
    data, parts = blobs.assemble(batch)
    name = sha256("".join(part.sha256 for part in parts).encode())[:16]
    return data, BlobRef(path=name, bytes=size_of(data), rank=0, parts=parts)


def _write(store: Store, state: Restored) -> tuple[tuple[BlobRef, ...], TablesDigest]:
    digest = TablesDigest()
    last = [blobs.dense_piece(state.dense), *(blobs.stream_piece(stream) for stream in state.stream)]
    refs: list[BlobRef] = []
    for data, blob in blob_batches(_digested(state.tables, digest), last):
        path = f"{BASES}/blobs/{state.commit.seq:020d}/{len(refs):06d}-{blob.path}.blob"
        put_blob(store, path, data, "compact.blob")
        refs.append(BlobRef(path=path, bytes=blob.bytes, rank=0, parts=blob.parts))
    return tuple(refs), digest


def _digested(tables: Iterable[TableRows], digest: TablesDigest) -> Iterator[TableRows]:
    for rows in tables:
        digest.add(rows)
        yield rows
