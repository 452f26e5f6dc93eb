"""Request tensors to rows: every form of a column, every way to get one wrong."""

import numpy as np
import pyarrow as pa
import pytest

from publisher.replica.errors import RequestError
from publisher.replica.protocol import DTYPES, Tensor
from publisher.replica.request import InputColumn, Rows, to_rows

COLUMNS = (InputColumn(name="user_id", user=True), InputColumn(name="clicks", user=False))


def tensor(name: str, data: object, datatype: str = "INT64", shape: tuple[int, ...] | None = None) -> Tensor:
    array = pa.array(data, pa.string()) if datatype == "BYTES" else np.array(data, DTYPES[datatype])
    return Tensor(name=name, datatype=datatype, shape=shape or (len(array),), data=array)


def parts(*tensors: Tensor, columns: tuple[InputColumn, ...] = COLUMNS) -> Rows:
    return to_rows({t.name: t for t in tensors}, columns, max_rows=3)


def rows(*tensors: Tensor, columns: tuple[InputColumn, ...] = COLUMNS) -> dict[str, list[object]]:
    found = parts(*tensors, columns=columns)
    assert found.user is None
    return dict(found.items.to_pydict())


def test_rows_of_scalars_and_strings() -> None:
    assert rows(tensor("user_id", [1, 2]), tensor("clicks", ["a", "b"], "BYTES")) == {
        "user_id": [1, 2],
        "clicks": ["a", "b"],
    }


def test_one_row_of_the_user_stays_apart_from_those_of_items() -> None:
    found = parts(tensor("user_id", [7]), tensor("clicks", [1, 2, 3]))
    assert found.user is not None
    assert (found.user.to_pydict(), found.items.to_pydict()) == ({"user_id": [7]}, {"clicks": [1, 2, 3]})
    ragged = (tensor("user_id.values", [7, 8]), tensor("user_id.lengths", [2], "INT32"))
    user = parts(*ragged, tensor("clicks", [1, 2, 3])).user
    assert user is not None and user.to_pydict() == {"user_id": [[7, 8]]}


def test_one_row_of_the_user_and_one_item_are_one_row() -> None:
    assert rows(tensor("user_id", [7]), tensor("clicks", [1])) == {"user_id": [7], "clicks": [1]}


def test_user_columns_of_one_row_are_repeated_beside_others_of_all_rows() -> None:
    columns = (*COLUMNS, InputColumn(name="age", user=True))
    age = tensor("age", [30, 31, 32])
    found = rows(tensor("user_id", [7]), age, tensor("clicks", [1, 2, 3]), columns=columns)
    assert found == {"user_id": [7, 7, 7], "age": [30, 31, 32], "clicks": [1, 2, 3]}
    ragged = (tensor("user_id.values", [7, 8]), tensor("user_id.lengths", [2], "INT32"))
    assert rows(*ragged, age, tensor("clicks", [1, 2, 3]), columns=columns)["user_id"] == [[7, 8]] * 3


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([("values", [1, 2, 3]), ("lengths", [2, 0, 1])], [[1, 2], [], [3]]),
        (
            [("values", [1, 2, 3, 4]), ("key_lengths", [1, 2, 1]), ("lengths", [2, 0, 1])],
            [[[1], [2, 3]], [], [[4]]],
        ),
        ([("keys", [5, 6, 7]), ("values", [1, 2, 3]), ("lengths", [0, 2, 1])], [[], [(5, 1), (6, 2)], [(7, 3)]]),
        ([("values", [5, 6, 7]), ("weights", [1, 2, 3]), ("lengths", [0, 2, 1])], [[], [(5, 1), (6, 2)], [(7, 3)]]),
    ],
)
def test_rows_of_ragged_columns(parts: list[tuple[str, list[int]]], expected: list[object]) -> None:
    found = rows(tensor("user_id", [0, 0, 0]), *(tensor(f"clicks.{part}", data) for part, data in parts))
    assert found["clicks"] == expected


def test_rows_of_a_matrix_are_lists_and_of_one_column_scalars() -> None:
    found = rows(tensor("user_id", [1, 2], shape=(2, 1)), tensor("clicks", [1, 2, 3, 4], shape=(2, 2)))
    assert found == {"user_id": [1, 2], "clicks": [[1, 2], [3, 4]]}


def test_rows_take_nulls_beside_scalars_and_lists() -> None:
    nulls = tensor("clicks.nulls", [False, True], "BOOL")
    assert rows(tensor("user_id", [1, 2]), tensor("clicks", [3, 4]), nulls)["clicks"] == [3, None]
    ragged = (tensor("clicks.values", [3, 4]), tensor("clicks.lengths", [1, 1]))
    assert rows(tensor("user_id", [1, 2]), *ragged, nulls)["clicks"] == [[3], None]


def test_rows_take_columns_with_dots_in_their_names() -> None:
    columns = (InputColumn(name="a.values", user=False),)
    assert rows(tensor("a.values", [1]), columns=columns) == {"a.values": [1]}


USER = tensor("user_id", [1, 2])


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ([USER], "input 'clicks' is missing; the model reads user_id, clicks"),
        ([USER, tensor("click", [1, 2])], "input 'click' is unknown; did you mean 'clicks'?"),
        ([USER, tensor("click.values", [1, 2])], "input 'click.values' is unknown; did you mean 'clicks'?"),
        ([tensor("user_id", []), tensor("clicks", [])], "the request holds no rows"),
        ([USER, tensor("clicks", [])], "input 'clicks' is empty, and other inputs have 2 rows"),
        ([USER, tensor("clicks", [1])], "input 'clicks' has 1 rows, and other inputs 2"),
        ([tensor("user_id", [1, 2]), tensor("clicks", [1, 2, 3])], "input 'user_id' has 2 rows, and other inputs 3"),
        ([USER, tensor("clicks.values", [1])], "input 'clicks' is given as clicks.values"),
        ([USER, tensor("clicks", [1, 2]), tensor("clicks.values", [1])], "given as clicks, clicks.values"),
        ([USER, tensor("clicks.nulls", [True, True], "BOOL")], "given as clicks.nulls"),
        (
            [USER, tensor("clicks.values", [1, 2]), tensor("clicks.lengths", [-1, 3])],
            "input 'clicks.lengths' holds the negative length -1 at row 0",
        ),
        (
            [USER, tensor("clicks.values", [1, 2]), tensor("clicks.lengths", [1, 2])],
            "input 'clicks.lengths' adds up to 3, and 'clicks.values' holds 2",
        ),
        (
            [USER, tensor("clicks.values", [1, 2]), tensor("clicks.lengths", [1.0, 1.0], "FP32")],
            "input 'clicks.lengths' has datatype FP32; lengths are INT32 or INT64",
        ),
        (
            [USER, tensor("clicks.values", [1, 2]), tensor("clicks.lengths", [1, 1]), tensor("clicks.weights", [1])],
            "input 'clicks.weights' holds 1 entries, and 'clicks.values' 2",
        ),
        ([USER, tensor("clicks", [1] * 8, shape=(2, 2, 2))], "input 'clicks' has shape [2, 2, 2]"),
        ([USER, tensor("clicks", [1, 2]), tensor("clicks.nulls", [0, 1])], "input 'clicks.nulls' has datatype INT64"),
        (
            [USER, tensor("clicks", [1, 2]), tensor("clicks.nulls", [True], "BOOL")],
            "input 'clicks.nulls' holds 1 rows, and its column 2",
        ),
    ],
)
def test_rows_refuse_by_name(tensors: list[Tensor], message: str) -> None:
    with pytest.raises(RequestError) as caught:
        rows(*tensors)
    assert message in str(caught.value)
    assert caught.value.status == 400


def test_lengths_near_the_limit_of_int64_do_not_wrap() -> None:
    wrapping = tensor("clicks.lengths", [2**63 - 1, 2**63 - 1])
    with pytest.raises(RequestError, match="adds up to"):
        rows(USER, tensor("clicks.values", []), wrapping)


def test_rows_without_values_are_counted_before_arrays_are_made() -> None:
    # Offsets of so many rows would take 8 GB.
    wide = tensor("clicks", [], "INT64", shape=(2**31 - 1, 0))
    with pytest.raises(RequestError, match="the request holds 2147483647 rows") as caught:
        parts(tensor("user_id", [1]), wide)
    assert caught.value.status == 413


def test_more_rows_than_are_answered_at_once_are_refused() -> None:
    with pytest.raises(RequestError, match="the request holds 4 rows, at most 3 are answered at once") as caught:
        rows(tensor("user_id", [1]), tensor("clicks", [1, 2, 3, 4]))
    assert caught.value.status == 413
