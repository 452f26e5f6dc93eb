"""A commit away from its log: as a model directory that is served, or as plain files that other programs read."""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pyarrow as pa
from safetensors.numpy import save_file

from checkpointer.log import CommitLog
from checkpointer.open_store import StoreOptions, open_store
from checkpointer.rows import TableRows
from headrace.errors import UsageError
from headrace.export_files import with_files_of_its_own, write_files
from headrace.parquet_file import write_whole
from protos.load import format_config
from protos.pipeline_pb2 import EasyRecConfig
from protos.publish_pb2 import AOT_INDUCTOR, TORCH_SCRIPT
from publisher.contract import Contract, served_state
from publisher.errors import ContractError
from publisher.export.build import build_dense_half
from publisher.export.compile import compile_dense
from publisher.export.offline import export_model

_RUNTIMES = {"aot_inductor": AOT_INDUCTOR, "torch_script": TORCH_SCRIPT}


@dataclass(frozen=True, kw_only=True, slots=True)
class Exported:
    """What was written."""

    seq: int
    tables: int
    rows: int


def export_commit(config: EasyRecConfig, folder: Path, *, seq: int | None, runtime: str) -> Exported:
    """Write commit `seq` (default: the newest) to `folder`.

    `tables/NAME.parquet` holds ids (raw ids of a zero-collision table, else row numbers) and float32 rows, ascending;
    `dense.safetensors` the dense weights; `dense.RUNTIME` the compiled dense half, one float32 tensor per group in the
    order of `layout.json`; `pipeline.config` the configuration, and `files/` what its features read, by names that are
    relative to `folder`.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty; give a new folder")
    log = CommitLog(open_store(config.model_dir, StoreOptions.from_proto(config.checkpoint_config.s3)))
    if log.head() is None:
        raise UsageError(f"{config.model_dir} holds no commit yet; train first")
    contract = Contract.of(config)
    state = log.restore(seq)
    if state.commit.contract != contract.digest:
        raise ContractError(
            f"commit {state.commit.seq} was trained under another configuration; export it with its own"
        )
    moved, files = with_files_of_its_own(config, contract)
    folder.mkdir(parents=True, exist_ok=True)
    write_files(files, folder)
    tables, rows = _write_tables(state.tables, folder / "tables")
    save_file(served_state(state.dense), folder / "dense.safetensors")
    with tempfile.TemporaryDirectory() as scratch:
        compiled = compile_dense(runtime, build_dense_half(config), contract.widths, Path(scratch))
    (folder / f"dense.{runtime}").write_bytes(compiled)
    (folder / "layout.json").write_bytes(contract.layout)
    (folder / "pipeline.config").write_text(format_config(moved), encoding="utf-8")
    return Exported(seq=state.commit.seq, tables=tables, rows=rows)


def export_version(config: EasyRecConfig, out_dir: str, *, seq: int | None, runtime: str | None) -> Exported:
    """Write commit `seq` (default: the newest) to `out_dir`, a path or s3://, as a model directory with one version."""
    changed = EasyRecConfig()
    changed.CopyFrom(config)
    if runtime:
        changed.publish_config.dense_runtime = _RUNTIMES[runtime]
    published = export_model(changed, out_dir, clock_ms=lambda: time.time_ns() // 1_000_000, seq=seq)
    version = published.version
    return Exported(seq=version.version, tables=len(Contract.of(config).tables), rows=version.base.rows)


def _write_tables(parts: Iterator[TableRows], folder: Path) -> tuple[int, int]:
    tables = rows = 0
    served = (part for part in parts if part.kind != "admission" and len(part))
    for name, group in groupby(served, key=lambda part: part.table):
        rows += write_whole(folder / f"{name}.parquet", map(_batch, group))
        tables += 1
    return tables, rows


def _batch(part: TableRows) -> pa.RecordBatch:
    weight = part.columns["weight"]
    flat = pa.array(weight.reshape(-1).astype("float32"))
    lists = pa.FixedSizeListArray.from_arrays(flat, weight.shape[1])
    return pa.RecordBatch.from_arrays([pa.array(part.ids), lists], names=["id", "weight"])
