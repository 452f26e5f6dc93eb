"""What the command line says of configurations with features of every kind: schema, producer, estimate."""

import runpy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from features import FeatureSet, create_features
from headrace.estimate import estimate, ids_of
from headrace.event_schema import event_schema
from headrace.producer import producer_source
from protos.load import load_config
from stream import open_source

from .every_kind import FEATURES, GRAPH

GROUPED = (
    "id", "weighted", "raw", "binned", "combo", "combine", "mapped", "lookup", "vector", "labels", "match", "any",
    "expr", "overlap", "tokens", "dot", "kept", "distance", "digits", "word",
)  # fmt: skip


@pytest.fixture
def write(write_config: Callable[..., Path], tmp_path: Path) -> Callable[..., Path]:
    """Write the configuration; all features that no sequence holds are in a group of the model."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    Tokenizer(WordLevel({"a": 0, "b": 1, "c": 2}, unk_token="a")).save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "words.txt").write_text("x\ny\n")

    def run(mode: str, **options: str) -> Path:
        path = write_config(**options)
        graph = GRAPH if mode == "FG_DAG" else ""
        names = [*GROUPED, "final", "fixed"] if graph else GROUPED
        members = " ".join(f'feature_names: "{name}"' for name in names)
        text = path.read_text().replace("fg_mode: FG_NORMAL", f"fg_mode: {mode}")
        text = text.replace('group_name: "deep" ', f'group_name: "deep" {members} ')
        path.write_text(text + (FEATURES + graph).replace("$", str(tmp_path)))
        return path

    return run


def assert_names_all_columns(path: Path, features: FeatureSet) -> None:
    schema = event_schema(load_config(path))
    assert {column.name for column in schema.columns} == {*features.columns, "at", "event"}


@pytest.mark.parametrize("mode", ["FG_NORMAL", "FG_DAG", "FG_NONE", "FG_BUCKETIZE"])
def test_events_of_the_schema_are_accepted_by_every_kind(write: Callable[..., Path], tmp_path: Path, mode: str) -> None:
    path = write(mode)
    features = create_features(load_config(path))
    assert_names_all_columns(path, features)
    program = tmp_path / "producer.py"
    program.write_text(producer_source(load_config(path)))
    made = runpy.run_path(str(program))
    rows = pa.RecordBatch.from_pylist([made["event"]() for _ in range(200)], schema=made["SCHEMA"])
    assert features.validate(rows).details == ()
    assert features.parse(rows).size == 200
    wrong = {key: count for key, count in features.counts.totals().items() if key[1] == "rejected"}
    assert wrong == {}


def test_intermediate_features_of_a_graph_are_no_columns(headrace: Callable[..., Any], write: Callable[..., Path]):
    ran = headrace("config", "schema", write("FG_DAG"))
    columns = [line.split()[0] for line in ran.out.splitlines()[2:]]
    assert ran.code == 0 and {"x", "y", "seen__item", "seen__shop"} <= set(columns)
    assert not {"score", "A", "ALL", "final"} & set(columns)


@pytest.mark.parametrize(("mode", "form"), [("FG_DAG", "format: ARROW_IPC"), ("FG_NORMAL", "format: JSON")])
def test_the_printed_producer_of_every_kind_reaches_the_trainer(
    write: Callable[..., Path], headrace: Callable[..., Any], tmp_path: Path, embedded_broker: Any, mode: str, form: str
) -> None:
    path = write(mode, form=form, brokers=embedded_broker.bootstrap, topic=embedded_broker.topic())
    printed = headrace("config", "schema", path, "--producer")
    assert printed.code == 0
    program = tmp_path / "producer.py"
    program.write_text(printed.out, encoding="utf-8")
    subprocess.run([sys.executable, str(program), "200"], check=True, timeout=60, capture_output=True)
    config = load_config(path)
    features, source = create_features(config), open_source(config)
    source.start(source.partitions(), {})
    rows = 0
    while rows < 200:
        chunk = source.read(20.0)
        assert chunk is not None and chunk.dead == ()
        assert features.validate(chunk.rows).details == ()
        rows += chunk.rows.num_rows
    source.close()


def test_check_tells_what_every_kind_will_take(headrace: Callable[..., Any], write: Callable[..., Path]) -> None:
    ran = headrace("config", "check", write("FG_DAG"))
    assert ran.code == 0, ran.errors + ran.out
    for table in (
        "combo_emb",
        "labels_emb",
        "any_emb",
        "tokens_emb",
        "kept_emb",
        "digits_emb",
        "word_emb",
        "fixed_emb",
    ):
        assert f"  {table} " in ran.out
    for figure in ("memory of the model", "a commit, at most", "disk in a day, at most"):
        assert figure in ran.out


def test_estimate_knows_how_many_rows_files_and_buckets_make(write: Callable[..., Path]) -> None:
    found = {table.name: table for table in estimate(load_config(write("FG_NORMAL")), events_per_second=100).tables}
    rows = {name: found[f"{name}_emb"].rows for name in ("tokens", "word", "binned", "kept", "combine", "digits")}
    assert rows == {"tokens": 3, "word": 2, "binned": 3, "kept": 20, "combine": 9, "digits": 50}


def test_estimate_counts_every_step_of_a_sequence(write: Callable[..., Path]) -> None:
    features = {feature.name: feature for feature in create_features(load_config(write("FG_NORMAL"))).features}
    assert ids_of(features["id"]) == ids_of(features["combo"]) > 1
    assert ids_of(features["binned"]) == 1
    assert ids_of(features["visits"]) == 10
    assert ids_of(features["seen__item"]) == 20
    assert ids_of(replace(features["visits"], sequence_length=0)) > 10
