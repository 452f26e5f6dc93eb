"""Node and edge files, attribute texts, merging."""

from __future__ import annotations

import logging

import numpy as np
import pyarrow as pa
import pytest

from features.errors import SamplerError
from features.sampling.attributes import typed
from features.sampling.lines import lines_of_text
from features.sampling.merge import appended, flattened, merged_candidates
from features.sampling.tables import NodeTable, parse_edges, parse_nodes, to_ids


def _nodes(lines: list[str], *, attributes: list[str] | None = None, delimiter: str = ":") -> NodeTable:
    data = "\n".join(lines).encode() + b"\n"
    read = lines_of_text(data, "items.txt", delimiter="\t", columns=3, weight=1)
    return parse_nodes(read, attr_delimiter=delimiter, attributes=attributes or ["a", "b"])


HEADER = "id:int64\tweight:float\tattrs:string"


def test_nodes_are_sorted_and_the_first_of_an_id_wins() -> None:
    table = _nodes([HEADER, "7\t1.5\tx:y", "-3\t0.5\tp:q", "7\t9.0\tz:z"])
    assert table.ids.tolist() == [-3, 7]
    assert table.weights.tolist() == [0.5, 1.5]
    assert [column.to_pylist() for column in table.attributes] == [["p", "x"], ["q", "y"]]
    assert table.find(np.array([7, 8, -3])).tolist() == [1, 2, 0]


def test_nodes_split_the_line_before_the_attributes() -> None:
    table = _nodes(["id:int64\tweight:float\tfeature:string", "1\t1.0\tone"], attributes=["a"], delimiter="\t")
    assert table.attributes[0].to_pylist() == ["one"]


def test_nodes_take_text_ids_from_the_header() -> None:
    table = _nodes(["id:string\tweight:double\tattrs:string", "ä\t1\tx:y", "b\t2\tp:q"])
    assert table.text_ids
    wanted = to_ids(pa.array(["b", "ä", "c"]), text=True)
    found = table.find(wanted)
    assert sorted(found.tolist()[:2]) == [0, 1]
    assert found[2] == 2
    assert table.weights[found[0]] == 2.0


def test_nodes_skip_and_name_bad_lines(caplog: pytest.LogCaptureFixture) -> None:
    good = [f"{i}\t1.0\tx:y" for i in range(100)]
    with caplog.at_level(logging.WARNING):
        table = _nodes([HEADER, *good, "x\t1.0\tx:y", "101\t-1\tx:y", "102\t1.0\tonly", "103\tnan\tx:y"])
    assert table.skipped == 4
    assert len(table.ids) == 100
    assert "skipped_lines=4" in caplog.text


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1\t1.0\tx:y"], "first line must name 3 columns"),
        (["id:int64\tattrs:string\tweight:float", "1\tx:y\t1.0"], "column 2 must be the weight"),
        ([HEADER], "no usable line"),
        ([HEADER, "1\t1.0\tx:y", "2\t1.0\tx"], "1 of 2 lines are malformed; the first is '2"),
        ([HEADER, f"{2**63}\t1.0\tx:y"], "no usable line"),
    ],
)
def test_nodes_refuse_files_that_are_something_else(lines: list[str], message: str) -> None:
    with pytest.raises(SamplerError, match=message):
        _nodes(lines)


def test_edges_lead_from_a_source_to_the_heaviest_first() -> None:
    data = b"u:int64\ti:int64\tweight:float\n1\t10\t0.5\n2\t20\t1\n1\t11\t2.5\n1\t12\t2.5\n"
    edges = parse_edges(lines_of_text(data, "edges.txt", delimiter="\t", columns=3, weight=2))
    starts, ends = edges.spans(np.array([1, 2, 3]))
    assert [edges.targets[a:b].tolist() for a, b in zip(starts, ends, strict=True)] == [[11, 12, 10], [20], []]


def test_ids_of_text_columns_are_cast_and_nulls_are_zero() -> None:
    assert to_ids(pa.array(["12", None]), text=False).tolist() == [12, 0]
    with pytest.raises(SamplerError, match="ids must be integers"):
        to_ids(pa.array(["x"]), text=False)


@pytest.mark.parametrize(
    ("texts", "kind", "want"),
    [
        (["1\x1d2", "3", ""], pa.list_(pa.int64()), [[1, 2], [3], None]),
        (["1\x1d2", "3", ""], pa.large_list(pa.float32()), [[1.0, 2.0], [3.0], None]),
        (["a:1\x1db:2", "c:3", ""], pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", 2)], [("c", 3)], []]),
        (["1:2"], pa.map_(pa.int32(), pa.float32()), [[(1, 2.0)]]),
        ([""] * 8, pa.int64(), [None] * 8),
        ([""] * 8, pa.float32(), [None] * 8),
        (["", "x"], pa.string(), ["", "x"]),
        (["7"], pa.dictionary(pa.int32(), pa.string()), ["7"]),
    ],
)
def test_attributes_take_the_type_of_the_column(texts: list[str], kind: pa.DataType, want: list[object]) -> None:
    made, bad = typed(pa.array(texts), kind)
    assert made.to_pylist() == want
    assert not bad.any()


@pytest.mark.parametrize(
    ("texts", "kind", "bad"),
    [
        (["1", "x", "2"], pa.int64(), [False, True, False]),
        (["1\x1dx", "2"], pa.list_(pa.int64()), [True, False]),
        (["a:1", "b", "c:x", "a:b:c"], pa.map_(pa.string(), pa.int64()), [False, True, True, True]),
    ],
)
def test_attributes_that_do_not_fit_are_marked(texts: list[str], kind: pa.DataType, bad: list[bool]) -> None:
    made, found = typed(pa.array(texts), kind)
    assert found.tolist() == bad
    assert made.type == kind
    assert [value is None for value in made.to_pylist()] == bad


def test_flattened_gives_the_items_and_their_numbers() -> None:
    items, lengths = flattened(pa.array(["1;2", "3"]), ";")
    assert items.to_pylist() == ["1", "2", "3"]
    assert lengths.tolist() == [2, 1]
    items, lengths = flattened(pa.array([[1, 2], None, [3]]), ";")
    assert items.to_pylist() == [1, 2, 3]
    assert lengths.tolist() == [2, 0, 1]


def test_candidates_of_strings_go_to_the_last_row() -> None:
    column, lengths = merged_candidates(pa.array(["1;2", "3;4;5"]), pa.array([10, 20]), ";")
    assert column.to_pylist() == ["1;2", "3;4;5;10;20"]
    assert lengths.tolist() == [2, 3]


@pytest.mark.parametrize("sampled", [pa.array([10, 20]), pa.array([[10], [20]])])
@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.large_list(pa.int64())])
def test_candidates_of_lists_go_to_the_last_row(sampled: pa.Array, kind: pa.DataType) -> None:
    column, lengths = merged_candidates(pa.array([[1, 2], [3]], kind), sampled, ";")
    assert column.to_pylist() == [[1, 2], [3, 10, 20]]
    assert column.type == kind
    assert lengths.tolist() == [2, 1]


def test_candidates_without_negatives_are_unchanged() -> None:
    column = pa.array([[1, 2], [3]])
    merged, lengths = merged_candidates(column, pa.array([], pa.int64()), ";")
    assert merged.equals(column)
    assert lengths.tolist() == [2, 1]


def test_candidates_of_an_empty_batch_are_dropped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    merged, lengths = merged_candidates(pa.array([], pa.list_(pa.int64())), pa.array([1]), ";")
    assert (len(merged), len(lengths)) == (0, 0)
    assert "dropped=1" in caplog.text


def test_appended_decodes_and_widens() -> None:
    encoded = pa.array(["a", "b"]).dictionary_encode()
    assert appended(encoded, pa.array(["c"])).to_pylist() == ["a", "b", "c"]
