"""Rows, dense arrays and canonical JSON: what goes in comes out, and what breaks the rules is refused."""

import json

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from checkpointer import canonical, dense
from checkpointer.errors import ChainError, Flaw, InvalidRowsError
from checkpointer.rows import TableRows

EMPTY = np.empty(0, np.int64)


def table_rows(**changes):
    fields = {
        "table": "user",
        "shard": 0,
        "kind": "zch",
        "ids": np.array([1, 2]),
        "slots": np.array([5, 6]),
        "columns": {"weight": np.zeros((2, 3), np.float32)},
        "deleted": EMPTY,
    }
    return TableRows(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ids": np.array([2, 1])}, "ascending"),
        ({"ids": np.array([1, 1])}, "distinct"),
        ({"ids": np.array([-1, 1])}, "not negative"),
        ({"ids": np.array([1, 2], np.int32)}, "int64"),
        ({"deleted": np.array([3, 3])}, "deleted must be ascending"),
        ({"deleted": np.array([2])}, "both put and deleted"),
        ({"slots": np.array([5])}, "2 ids but 1 slots"),
        ({"kind": "other"}, "kind must be one of"),
        ({"columns": {"weight": np.zeros((3, 3), np.float32)}}, "must be .2. or"),
        ({"columns": {"weight": np.zeros((2, 3, 1), np.float32)}}, "must be .2. or"),
        ({"columns": {"id": np.zeros(2)}}, "is taken"),
        ({"columns": {"weight": np.zeros((2, 3), ">f4")}}, "little-endian"),
        ({"columns": {"weight": np.array(["a", "b"])}}, "not a plain"),
    ],
)
def test_rows_that_break_a_rule_are_refused(changes, said):
    table_rows()
    with pytest.raises(InvalidRowsError, match=said):
        table_rows(**changes)


DTYPES = [
    "float64",
    "float32",
    "float16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dense_arrays_come_back_bit_for_bit(dtype):
    arrays = {
        "a/b": np.arange(6).reshape(2, 3).astype(dtype),
        "empty": np.zeros((0, 4), dtype),
        "one": np.ones((), dtype),
    }
    back = dense.from_bytes("x", dense.to_bytes(arrays))
    assert {name: (array.dtype, array.shape, array.tobytes()) for name, array in back.items()} == {
        name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()
    }


def test_dense_bytes_are_safetensors_both_ways():
    arrays = {"b": np.arange(4, dtype=np.float32), "a": np.eye(3)}
    theirs = safetensors.numpy.load(dense.to_bytes(arrays))
    ours = dense.from_bytes("x", safetensors.numpy.save(arrays, metadata={"k": "v"}))
    for name, array in arrays.items():
        assert np.array_equal(theirs[name], array) and np.array_equal(ours[name], array)


def test_dense_bytes_do_not_depend_on_order_or_strides():
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert dense.to_bytes({"a": array.T, "b": array}) == dense.to_bytes({"b": array.copy(), "a": array.T.copy()})


def test_a_dense_array_without_a_plain_type_is_refused():
    with pytest.raises(InvalidRowsError, match="cannot store type"):
        dense.to_bytes({"a": np.array(["x"])})


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"{",
        b'{"a":1}',
        b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}',
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,400]}}',
        b'{"a":{"dtype":"F32","shape":[-1],"data_offsets":[4,0]}}',
        b'{"a":{"dtype":"X","shape":[1],"data_offsets":[0,4]}}',
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}}',
    ],
)
def test_a_wrong_dense_header_is_refused(header):
    with pytest.raises(ChainError, match="x"):
        dense.from_bytes("x", len(header).to_bytes(8, "little") + header + bytes(16))


@given(st.binary(max_size=200))
def test_any_dense_bytes_are_decoded_or_refused(data):
    try:
        dense.from_bytes("x", data)
    except ChainError as error:
        assert error.flaw in (Flaw.TRUNCATED, Flaw.MALFORMED)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text().filter(lambda key: key not in ("digest", "format")), JSON, max_size=5))
def test_canonical_json_comes_back_and_has_one_form(value):
    data, digest = canonical.seal({**value, "format": 1})
    assert canonical.unseal("x", data, range(1, 2)) == ({**value, "format": 1}, digest)
    assert canonical.seal(dict(reversed(list({**value, "format": 1}.items()))))[0] == data


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_canonical_json_has_no_nan(value):
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical.seal({"a": value})


def test_other_spellings_of_the_same_value_are_refused():
    data, _ = canonical.seal({"format": 1, "a": 1})
    spaced = json.dumps(json.loads(data)).encode() + b"\n"
    with pytest.raises(ChainError, match="not in canonical form"):
        canonical.unseal("x", spaced, range(1, 2))


@given(st.binary(max_size=60))
def test_any_manifest_bytes_are_refused_by_name(data):
    with pytest.raises(ChainError):
        canonical.unseal("x", data + b"}\n", range(1, 2))


def test_deeply_nested_json_is_refused():
    with pytest.raises(ChainError):
        canonical.unseal("x", b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n", range(1, 2))
