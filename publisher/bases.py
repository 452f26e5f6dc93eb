"""Serving bases: every served row at one commit, streamed from a restore into files of bounded size."""

import logging
from collections.abc import Iterator
from dataclasses import asdict

import numpy as np

from checkpointer.encoding import Encoding, encode
from checkpointer.log import CommitLog
from checkpointer.rows import TableRows
from checkpointer.store import Store
from publisher.blobs import put, put_once
from publisher.changes import SERVED, check_rows
from publisher.codec import decode_base
from publisher.errors import UnfitRowsError
from publisher.fields import Fields, canonical
from publisher.gate import bad_rows
from publisher.manifest import Base, Blob, Table
from publisher.rows import ServingRows, encode_rows
from publisher.versions import fetch

logger = logging.getLogger(__name__)


def base_listing(seq: int, encoding: str) -> str:
    """Name the listing of a base.

    >>> base_listing(7, "int8")
    'serving_bases/00000000000000000007/int8.json'
    """
    return f"serving_bases/{seq:020d}/{encoding}.json"


def find_base(store: Store, seq: int, encoding: str) -> Base | None:
    """Read the listing of a base that is complete; None where there is none."""
    path = base_listing(seq, encoding)
    payload = fetch(store, path)
    return None if payload is None else decode_base(Fields.parse(payload, path))


def build_base(log: CommitLog, store: Store, seq: int, tables: tuple[Table, ...], encoding: str) -> Base:
    """Write every served row of commit `seq` of `log` to `store`, part by part, then the listing.

    Raises UnfitRowsError where a row is not finite: the gate refuses such a commit.
    """
    found = find_base(store, seq, encoding)
    if found is not None:
        return found
    known = {table.name: table for table in tables}
    blobs: list[Blob] = []
    count = 0
    for part in _served(log.restore(seq).tables):
        check_rows(part, known)
        weights = part.columns["weight"].astype(np.float32, copy=False)
        bad = bad_rows(part.table, part.ids, weights)
        if bad is not None:
            raise UnfitRowsError(bad)
        rows = encode(weights, Encoding(encoding))
        none = np.empty(0, dtype=np.int64)
        for payload in encode_rows([ServingRows(table=part.table, ids=part.ids, rows=rows, deleted=none)]):
            blobs.append(put(store, f"serving_bases/{seq:020d}/", ".parquet", payload, point="publish.base"))
        count += len(part)
    base = Base(seq=seq, rows=count, blobs=tuple(blobs))
    _list(store, base, encoding)
    logger.info("serving base written seq=%d rows=%d parts=%d", seq, count, len(blobs))
    return base


def _served(parts: Iterator[TableRows]) -> Iterator[TableRows]:
    return (part for part in parts if part.kind in SERVED and len(part))


def _list(store: Store, base: Base, encoding: str) -> None:
    put_once(store, base_listing(base.seq, encoding), canonical(asdict(base)), point="publish.base_listing")
