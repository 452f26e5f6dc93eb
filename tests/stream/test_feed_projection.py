"""Projection: one schema whatever the chunks have, and the rows that do not fit it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from stream.projection import Projection, concatenate, widen
from stream.row_errors import RowErrors

DECLARED = pa.schema([("a", pa.int32()), ("b", pa.float32()), ("c", pa.string())])


def reasons(errors: RowErrors) -> dict[int, str]:
    return dict(zip(errors.rows.tolist(), errors.reasons, strict=True))


def test_projection_orders_columns_and_drops_others() -> None:
    rows, errors = Projection(("b", "a"), None)(pa.record_batch({"a": [1], "x": ["?"], "b": [2.0]}))
    assert rows.to_pylist() == [{"b": 2.0, "a": 1}]
    assert not errors


def test_projection_passes_fitting_rows_through_untouched() -> None:
    project = Projection(("a", "b"), None)
    first = pa.record_batch({"a": [1], "b": [2.0]})
    project(first)
    assert project(first)[0] is first


@pytest.mark.parametrize(
    ("column", "expected", "bad"),
    [
        (pa.array([1, 2**40, None], pa.int64()), [1, None, None], {1: "wrong_type"}),
        (pa.array([1, 2, 3], pa.int8()), [1, 2, 3], {}),
        (pa.array([None, None, None], pa.null()), [None, None, None], {}),
        (pa.array([1.0, 2.0, 3.0]), [None, None, None], dict.fromkeys(range(3), "wrong_type")),
        (pa.array(["1", "2", "3"]), [None, None, None], dict.fromkeys(range(3), "wrong_type")),
        (pa.array([7, 8, 7]).dictionary_encode(), [7, 8, 7], {}),
    ],
)
def test_projection_casts_to_declared_types(column: pa.Array, expected: list[object], bad: dict[int, str]) -> None:
    rows, errors = Projection(("a",), DECLARED)(pa.record_batch({"a": column}))
    assert rows.column("a").to_pylist() == expected
    assert rows.schema.field("a").type == pa.int32()
    assert reasons(errors) == bad


def test_projection_rounds_integers_into_declared_floats() -> None:
    rows, errors = Projection(("b",), DECLARED)(pa.record_batch({"b": [1, 2**53 + 1]}))
    assert rows.column("b").to_pylist() == [1.0, 2.0**53]
    assert not errors


def test_projection_finds_the_few_rows_that_do_not_fit_among_many() -> None:
    values = [1] * 1000
    values[17] = values[900] = 2**40
    _, errors = Projection(("a",), DECLARED)(pa.record_batch({"a": values}))
    assert reasons(errors) == {17: "wrong_type", 900: "wrong_type"}
    assert "1099511627776" in errors.details[0]


def test_projection_reports_a_missing_column_for_every_row() -> None:
    rows, errors = Projection(("a", "b"), None)(pa.record_batch({"a": [1, 2]}))
    assert reasons(errors) == {0: "missing_column", 1: "missing_column"}
    assert rows.schema.names == ["a", "b"]


def test_projection_widens_undeclared_types_and_refuses_others() -> None:
    project = Projection(("a",), None)
    kinds = [pa.array([1], pa.int32()), pa.array([2], pa.int64()), pa.array([3], pa.int16()), pa.array([4.5])]
    parts = [project(pa.record_batch({"a": kind})) for kind in kinds]
    assert not any(errors for _, errors in parts)
    joined = concatenate([rows for rows, _ in parts])
    assert joined.column("a").to_pylist() == [1, 2, 3, 4.5]
    _, errors = project(pa.record_batch({"a": ["five"]}))
    assert reasons(errors) == {0: "wrong_type"}


def test_projection_takes_a_type_only_from_a_column_that_has_one() -> None:
    project = Projection(("a",), None)
    nothing, _ = project(pa.record_batch({"a": pa.array([None], pa.null())}))
    something, errors = project(pa.record_batch({"a": ["x"]}))
    assert not errors
    assert concatenate([nothing, something]).column("a").to_pylist() == [None, "x"]


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (pa.int8(), pa.uint32(), pa.int64()),
        (pa.int64(), pa.float32(), pa.float64()),
        (pa.string(), pa.large_string(), pa.large_string()),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), pa.list_(pa.int64())),
        (pa.null(), pa.bool_(), pa.bool_()),
        (pa.bool_(), pa.int64(), None),
        (pa.string(), pa.int64(), None),
    ],
)
def test_widen_is_symmetric(one: pa.DataType, other: pa.DataType, both: pa.DataType | None) -> None:
    assert widen(one, other) == widen(other, one) == both
