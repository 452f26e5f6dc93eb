"""Texts of a batch, each distinct one once: what tokenizers and users' own code are given."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from features import kernels, view_kernels
from features.columns import Column, Columns, Integers, Lists, Text
from features.elements import Tokens
from features.errors import ColumnTypeError
from features.judge import Judge
from features.views import offsets_of, packed, take

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    """The distinct texts, and which one each row has; -1 where the row has none."""

    texts: list[str]
    of_row: Int64s


def distinct_texts(columns: Columns, name: str, judge: Judge) -> Distinct:
    """Find the distinct texts of a column; null and "" are missing.

    Bytes that are no UTF-8, and several texts, make a bad row.
    """
    array, valid = _array(_single(columns[name], judge), name)
    encoded = array.dictionary_encode()
    of_row = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
    texts, bad = _decoded(encoded.dictionary)
    if bad:
        judge.rows(np.isin(of_row, bad), "invalid_utf8")
    empty = np.array([not text for text in texts], np.bool_)
    missing = ~valid if valid is not None else np.zeros(len(of_row), np.bool_)
    if len(empty):
        missing |= empty[of_row]
    return Distinct(texts, np.where(missing, -1, of_row))


def _decoded(found: pa.Array) -> tuple[list[str], list[int]]:
    """The texts, and which of them are no UTF-8: "" stands for those."""
    try:
        return found.cast(pa.large_string()).to_pylist(), []
    except pa.ArrowInvalid:
        pass  # Arrow does not say which.
    texts, bad = [], []
    for index, raw in enumerate(found.to_pylist()):
        try:
            texts.append(raw.decode())
        except UnicodeDecodeError:
            texts.append("")
            bad.append(index)
    return texts, bad


def _single(view: Column, judge: Judge) -> Column:
    """What a stub hands on is a list of at most one text a row."""
    if not isinstance(view, Lists) or not isinstance(view.child, Text):
        return view
    lengths = np.diff(view.offsets)
    judge.rows(lengths > 1, "several_texts")
    return take(view.child, np.where(lengths > 0, view.offsets[:-1], -1))


def _array(view: Column, name: str) -> tuple[pa.Array, npt.NDArray[np.bool_] | None]:
    """The texts as Arrow binaries: numbers in decimal."""
    if isinstance(view, Text):
        offsets, data = packed(view)
    elif isinstance(view, Integers):
        data, starts, ends = kernels.format_integers(np.ascontiguousarray(view.values))
        offsets = np.append(starts, ends[-1:] if len(ends) else [0]).astype(np.int64)
    else:
        raise ColumnTypeError(f"column {name!r} must hold one text a row")
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers), view.valid


def spread(pieces: list[list[int]], of_row: Int64s, fill: list[int]) -> tuple[Int64s, Int32s]:
    """The ids of each row from those of each distinct text; rows without a text have `fill`."""
    every = [*pieces, fill]
    offsets = offsets_of(np.fromiter(map(len, every), np.int64, len(every)))
    flat = np.fromiter(chain.from_iterable(every), np.int64, int(offsets[-1]))
    # -1 is the last piece, which is `fill`.
    ids, lengths = view_kernels.gather_lists(flat, offsets, np.where(of_row < 0, len(pieces), of_row))
    return ids, lengths


def spread_tokens(texts: list[str], of_row: Int64s) -> tuple[Tokens, Int32s]:
    """One token for each row that has a text that is not empty."""
    raw = [text.encode() for text in texts]
    ends = np.cumsum([len(item) for item in raw], dtype=np.int64)
    starts = np.append(np.zeros(1, np.int64), ends)[:-1]
    sizes = np.append(ends - starts, 0)
    present = sizes[of_row] > 0
    chosen = of_row[present]
    return Tokens(np.frombuffer(b"".join(raw), np.uint8), starts[chosen], ends[chosen]), present.astype(np.int32)
