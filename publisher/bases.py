"""Serving bases: every served row at one commit, streamed from a restore into files of bounded size."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import asdict

import numpy as np

from checkpointer.encoding import Encoding, encode
from checkpointer.log import CommitLog
from checkpointer.rows import TableRows
from checkpointer.store import Store
from publisher.blobs import put, put_once
from publisher.changes import SERVED, check_rows
from publisher.codec import decode_base
from publisher.errors import UnfitRowsError, VersionError
from publisher.fields import Fields, canonical
from publisher.gate import bad_rows
from publisher.manifest import Base, Blob, Table
from publisher.rows import ServingRows, encode_rows
from publisher.versions import fetch

logger = logging.getLogger(__name__)

_BATCH_BYTES = 32 << 20


def base_listing(seq: int, encoding: str) -> str:
    """Name the listing of a base.

    >>> base_listing(7, "int8")
    'serving_bases/00000000000000000007/int8.json'
    """
    return f"serving_bases/{seq:020d}/{encoding}.json"


def find_base(store: Store, seq: int, encoding: str) -> Base | None:
    """Read the listing of a base that is complete; None where there is none, or none that can be read."""
    path = base_listing(seq, encoding)
    payload = fetch(store, path)
    try:
        return None if payload is None else decode_base(Fields.parse(payload, path))
    except VersionError as error:
        logger.error("the base is written anew: %s", error)
        return None


def build_base(log: CommitLog, store: Store, seq: int, tables: tuple[Table, ...], encoding: str) -> Base:
    """Write every served row of commit `seq` of `log` to `store`, part by part, then the listing.

    Raises UnfitRowsError where a row is not finite: the gate refuses such a commit.
    """
    found = find_base(store, seq, encoding)
    if found is not None:
        return found
    store.delete(base_listing(seq, encoding))  # one that is damaged would be in the way of the one to come
    blobs: list[Blob] = []
    count = 0
    for parts in _batches(_encoded(log.restore(seq).tables, tables, encoding)):
        for payload in encode_rows(parts):
            blobs.append(put(store, f"serving_bases/{seq:020d}/", ".parquet", payload, point="publish.base"))
        count += sum(len(part) for part in parts)
    base = Base(seq=seq, rows=count, blobs=tuple(blobs))
    put_once(store, base_listing(seq, encoding), canonical(asdict(base)), point="publish.base_listing")
    logger.info("serving base written seq=%d rows=%d files=%d", seq, count, len(blobs))
    return base


def _encoded(parts: Iterable[TableRows], tables: Iterable[Table], encoding: str) -> Iterator[ServingRows]:
    """Check and encode what is served, a part at a time."""
    known = {table.name: table for table in tables}
    for part in parts:
        if part.kind not in SERVED or not len(part):
            continue
        check_rows(part, known)
        weights = part.columns["weight"].astype(np.float32, copy=False)
        bad = bad_rows(part.table, part.ids, weights)
        if bad is not None:
            raise UnfitRowsError(bad)
        rows = encode(weights, Encoding(encoding))
        yield ServingRows(table=part.table, ids=part.ids, rows=rows, deleted=np.empty(0, dtype=np.int64))


def _batches(parts: Iterable[ServingRows]) -> Iterator[list[ServingRows]]:
    """Small tables share files; a table appears once in a batch, since its rows ascend within a file."""
    batch: list[ServingRows] = []
    size = 0
    for part in parts:
        if size >= _BATCH_BYTES or any(part.table == other.table for other in batch):
            yield batch
            batch, size = [], 0
        batch.append(part)
        size += part.rows.nbytes
    if batch:
        yield batch
