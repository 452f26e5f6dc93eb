"""`headrace replay` and `headrace dlq` against the embedded broker."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkpointer.lock import acquire
from protos.load import load_config
from stream import open_source
from stream.cursor import Cursor
from stream.deadletter import DeadLetter
from stream.deadletter_replay import open_dead_letters


@pytest.fixture
def config(write_config: Callable[..., Path], embedded_broker: Any) -> Path:
    return write_config(brokers=embedded_broker.bootstrap, topic=embedded_broker.topic())


def read_all(path: Path, rows: int) -> list[pa.RecordBatch]:
    source = open_source(load_config(path))
    keys = source.partitions()
    source.start(keys, {})
    found: list[pa.RecordBatch] = []
    while sum(batch.num_rows for batch in found) < rows:
        chunk = source.read(10.0)
        assert chunk is not None
        found.append(chunk.rows)
    source.close()
    return found


def test_replay_sends_rows_in_event_time_order(headrace: Callable[..., Any], config: Path, tmp_path: Path) -> None:
    times = [5, 3, 9, 1]
    table = {"user_id": ["a", "b", "c", "d"], "slot": [1, 2, 3, 4], "price": [0.5] * 4, "clicked": [0.0, 1.0, 0.0, 1.0]}
    pq.write_table(pa.table({**table, "at": times, "event": list("wxyz")}), tmp_path / "events.parquet")
    ran = headrace("replay", config, tmp_path / "events.parquet", "--speed", "max")
    assert ran.code == 0, ran.errors
    assert ran.out.startswith("sent 4 events")
    found = [time for batch in read_all(config, 4) for time in batch.column("at").to_pylist()]
    assert found == sorted(times)


def test_replay_sends_nothing_where_a_column_that_is_read_is_missing(
    headrace: Callable[..., Any], config: Path, tmp_path: Path
) -> None:
    whole = pa.table({"user_id": ["a"], "slot": [1], "price": [0.5], "clicked": [1.0], "at": [5], "event": ["w"]})
    pq.write_table(whole, tmp_path / "a.parquet")
    pq.write_table(whole.drop_columns(["price", "clicked"]), tmp_path / "b.parquet")
    ran = headrace("replay", config, tmp_path)
    assert ran.code == 1
    assert "b.parquet lacks the columns clicked (label), price (feature price); it has user_id" in ran.errors
    assert ran.errors.count("\n") == 1
    source = open_source(load_config(config))
    source.start(source.partitions(), {})
    assert sum(source.lag().values()) == 0
    source.close()


def test_replay_names_a_file_that_is_not_there(headrace: Callable[..., Any], config: Path) -> None:
    ran = headrace("replay", config, "absent.parquet")
    assert ran.code == 1
    assert "absent.parquet" in ran.errors
    assert ran.errors.count("\n") == 1


def test_dlq_lists_shows_and_replays(headrace: Callable[..., Any], config: Path) -> None:
    loaded = load_config(config)
    topic = loaded.stream_config.topic
    sink = open_dead_letters(loaded, writer="rank0", code_version="test")
    letters = [
        DeadLetter(
            cursor=Cursor(topic=topic, partition=0, offset=offset),
            reason=reason,
            detail="why",
            raw=b"garbage",
            format="ARROW_IPC",
        )
        for offset, reason in enumerate(["undecodable", "undecodable", "empty"])
    ]
    sink.write(letters)
    sink.close()

    assert json.loads(headrace("dlq", "ls", config, "--json").out) == {"undecodable": 2, "empty": 1}
    assert "3  in all" in headrace("dlq", "ls", config).out
    misspelt = headrace("dlq", "ls", config, "--reason", "emty")
    assert (misspelt.code, misspelt.out) == (2, "")
    assert "no dead letter has reason 'emty'; there are empty, undecodable" in misspelt.errors
    shown = [
        json.loads(line) for line in headrace("dlq", "show", config, "--reason", "empty", "--json").out.splitlines()
    ]
    assert [letter["cursor"] for letter in shown] == [letters[2].key]
    assert shown[0]["raw"] == "garbage"  # what cannot be decoded is shown as it came
    assert "would send 2 dead letters" in headrace("dlq", "replay", config, "--reason", "undecodable", "--dry-run").out
    ran = headrace("dlq", "replay", config, "--reason", "undecodable")
    assert ran.out == "sent 2 dead letters to their topics again\n"
    assert headrace("dlq", "replay", config, "--reason", "undecodable").out.startswith("sent 0 ")
    assert json.loads(headrace("dlq", "ls", config, "--json").out) == {"empty": 1}
    assert "besides 2 replayed and 0 cleared" in headrace("dlq", "ls", config).out


def empty_letters(config: Path) -> list[Cursor]:
    sink = open_dead_letters(load_config(config), writer="rank0", code_version="test")
    keys = [Cursor(topic="t", partition=0, offset=offset) for offset in range(3)]
    sink.write([DeadLetter(cursor=key, reason="empty", detail="", raw=b"", format="JSON") for key in keys])
    sink.close()
    return keys


def test_dlq_refuses_a_second_beside_it(headrace: Callable[..., Any], config: Path) -> None:
    empty_letters(config)
    held = acquire(load_config(config).model_dir, "dead_letters.lock", "another replay")
    for command in ("replay", "clear"):
        refused = headrace("dlq", command, config)
        assert refused.code == 1 and "in use by another replay; wait until it ends" in refused.errors
    held.release()
    assert headrace("dlq", "clear", config).out.startswith("cleared 3 ")


def test_dlq_clears_by_time_and_cursor(headrace: Callable[..., Any], config: Path) -> None:
    keys = empty_letters(config)
    assert "would clear 0 " in headrace("dlq", "clear", config, "--until", "1h", "--dry-run").out
    assert headrace("dlq", "clear", config, "--key", keys[1].text).out == "cleared 1 dead letters\n"
    shown = headrace("dlq", "show", config, "--json").out.splitlines()
    assert [json.loads(line)["cursor"] for line in shown] == [keys[0].text, keys[2].text]
    assert headrace("dlq", "clear", config, "--since", "1h").out == "cleared 2 dead letters\n"
    assert json.loads(headrace("dlq", "ls", config, "--json").out) == {}
    everything = json.loads(headrace("dlq", "ls", config, "--all", "--json").out)
    assert everything == {"open": {}, "replayed": {}, "cleared": {"empty": 3}}
    unknown = headrace("dlq", "clear", config, "--key", "t//0/9/0")
    assert unknown.code == 2 and "no dead letter has cursor 't//0/9/0'" in unknown.errors
    with pytest.raises(SystemExit, match="2"):
        headrace("dlq", "ls", config, "--since", "yesterday")


def test_a_broker_that_is_down_is_one_line(headrace: Callable[..., Any], write_config: Callable[..., Path]) -> None:
    path = write_config(brokers="127.0.0.1:9")
    text = path.read_text().replace("stream_config {", 'stream_config { dead_letters { topic: "dead" } ')
    path.write_text(text)
    ran = headrace("dlq", "ls", path)
    assert ran.code == 1
    assert "127.0.0.1:9" in ran.errors.splitlines()[-1]
    assert "Traceback" not in ran.errors
