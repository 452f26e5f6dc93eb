"""Predicting refuses what nobody can write before it restores a model, and tells of rows that it leaves out."""

import logging
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.faults.stage import Stage
from checkpointer.errors import ChainError
from protos.pipeline_pb2 import EasyRecConfig
from stream.errors import WriteError
from tests.trainer.test_run import run
from trainer.evaluate import predict


def test_columns_are_refused_before_the_model_is_restored(
    configure: Callable[..., EasyRecConfig], stage: Stage
) -> None:
    config = configure()
    run(config)
    for blob in Path(config.model_dir).rglob("*.blob"):
        blob.write_bytes(b"")
    seen: list[str] = []

    def refuse(schema: pa.Schema) -> None:
        seen.extend(schema.names)
        raise WriteError("not these")

    path = str(stage.folder / "part-0.parquet")
    with pytest.raises(WriteError, match="not these"):
        next(predict(config, path=path, reserved=("item", "user"), accept=refuse))
    assert seen == ["item", "user"]
    with pytest.raises(ChainError):
        next(predict(config, path=path, reserved=("item", "user")))


def test_rows_without_a_prediction_are_told(
    configure: Callable[..., EasyRecConfig], stage: Stage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = configure()
    config.train_config.num_steps = 1
    run(config)
    rows = pq.read_table(stage.folder / "part-0.parquet").slice(0, 50)
    kinds = rows.column("kind").to_pylist()
    texts = [str(kind) if at != 7 else "x" for at, kind in enumerate(kinds)]
    table = rows.set_column(rows.schema.get_field_index("kind"), "kind", pa.array(texts))
    pq.write_table(table, tmp_path / "rows.parquet")
    with caplog.at_level(logging.WARNING, logger="trainer"):
        predicted = sum(batch.num_rows for batch in predict(config, path=str(tmp_path / "rows.parquet")))
    (line,) = [record.getMessage() for record in caplog.records if record.getMessage().startswith("rows left out=")]
    assert line.startswith(f"rows left out={50 - predicted} path={tmp_path}/rows.parquet first=")
    assert predicted < 50 and "kind" in line and "'x'" in line
