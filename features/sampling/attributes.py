"""Attribute texts of item tables as columns of the types that the batch has (data_and_samplers.md 4.2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from features.errors import SamplerError

_ENTRY, _PAIR = "\x1d", ":"

Bools = npt.NDArray[np.bool_]


def typed(texts: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Bools]:
    """The texts as a column, and which of them do not fit (they become null).

    Numbers and lists: an empty text is null; strings stay as they are; a map of an empty text is an empty map.

    >>> typed(pa.array(["3", "", "x"]), pa.int64())[0].to_pylist()
    [3, None, None]
    """
    if pa.types.is_dictionary(kind):
        return typed(texts, kind.value_type)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pc.cast(texts, kind), np.zeros(len(texts), np.bool_)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _numbers(texts, kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _lists(texts, kind)
    if pa.types.is_map(kind):
        return _maps(texts, kind)
    raise SamplerError(f"attributes of a sampler cannot be of type {kind}: use numbers, strings, lists or maps")


def _numbers(texts: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Bools]:
    empty = pc.equal(texts, "")
    filled = pc.if_else(empty, pa.scalar(None, texts.type), texts)
    try:
        return pc.cast(filled, kind), np.zeros(len(texts), np.bool_)
    except pa.ArrowInvalid:
        return _cast_halves(filled, kind)


def _cast_halves(texts: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Bools]:
    """Halve until the texts that are no numbers are alone."""
    try:
        return pc.cast(texts, kind), np.zeros(len(texts), np.bool_)
    except pa.ArrowInvalid:
        if len(texts) == 1:
            return pa.nulls(1, kind), np.ones(1, np.bool_)
    half = len(texts) // 2
    left, right = _cast_halves(texts.slice(0, half), kind), _cast_halves(texts.slice(half), kind)
    return pa.concat_arrays([left[0], right[0]]), np.concatenate((left[1], right[1]))


def _lists(texts: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Bools]:
    parts = pc.split_pattern(texts, _ENTRY)
    values, bad_values = typed(parts.flatten(), kind.value_type)
    lengths = np.asarray(pc.list_value_length(parts), np.int64)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    bad = _rows_with(bad_values, offsets)
    made = pa.LargeListArray.from_arrays(pa.array(offsets), values)
    hidden = pa.array(np.asarray(pc.equal(texts, "")) | bad)
    made = pc.if_else(hidden, pa.scalar(None, made.type), made)
    target = pa.list_(kind.value_type) if pa.types.is_fixed_size_list(kind) else kind
    return made.cast(target), bad


def _maps(texts: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Bools]:
    parts = pc.split_pattern(texts, _ENTRY)
    empty = np.asarray(pc.equal(texts, ""), np.bool_)
    lengths = np.where(empty, 0, np.asarray(pc.list_value_length(parts), np.int64))
    entries = parts.filter(pa.array(~empty)).flatten()
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    pairs = pc.split_pattern(entries, _PAIR)
    fits = np.asarray(pc.list_value_length(pairs)) == 2
    blank = pa.scalar(["0", "0"], pairs.type)
    flat = pc.if_else(pa.array(fits), pairs, blank).flatten()
    keys, bad_keys = typed(flat.take(pa.array(np.arange(0, len(flat), 2))), kind.key_type)
    items, bad_items = typed(flat.take(pa.array(np.arange(1, len(flat), 2))), kind.item_type)
    # A map's key is never null: what is no key makes the whole row bad.
    keys = pc.fill_null(keys, pa.scalar(0 if pa.types.is_integer(kind.key_type) else "", kind.key_type))
    bad = _rows_with(~fits | bad_keys | bad_items, offsets)
    made = pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items).cast(kind)
    if bad.any():
        made = pa.array([None if hide else pair for hide, pair in zip(bad, made.to_pylist(), strict=True)], kind)
    return made, bad


def _rows_with(bad: Bools, offsets: npt.NDArray[np.int64]) -> Bools:
    """Rows of a list that hold a bad value."""
    counted = np.concatenate(([0], np.cumsum(bad)))
    return np.asarray(counted[offsets[1:]] > counted[offsets[:-1]], np.bool_)


Check = Callable[[pa.RecordBatch], Bools]
"""Which rows of an item table no feature can be made of."""
