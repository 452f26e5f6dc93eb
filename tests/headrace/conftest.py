"""The command line as a test drives it, and a small configuration and commit log for it."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from checkpointer import Kind, TableRows, Writer, WriterOptions, stage
from checkpointer.local_store import LocalStore
from checkpointer.writer import Draft
from headrace.__main__ import run
from protos.commit_pb2 import StreamState

CONFIG = """
model_dir: "{model_dir}"
train_config {{
  sparse_optimizer {{ rowwise_adagrad_optimizer {{ lr: 0.02 }} constant_learning_rate {{}} }}
  dense_optimizer {{ adam_optimizer {{ lr: 0.001 }} constant_learning_rate {{}} }}
}}
data_config {{ batch_size: 64 dataset_type: KafkaDataset fg_mode: FG_NORMAL label_fields: "clicked" {declared} }}
feature_configs {{
  id_feature {{ feature_name: "user_id" expression: "user:user_id" embedding_dim: 16 zch {{ zch_size: 1000 }} }}
}}
feature_configs {{
  id_feature {{ feature_name: "slot" expression: "context:slot" embedding_dim: 16 num_buckets: 10 }}
}}
feature_configs {{ raw_feature {{ feature_name: "price" expression: "item:price" }} }}
model_config {{
  feature_groups {{ group_name: "wide" feature_names: "user_id" group_type: WIDE }}
  feature_groups {{ group_name: "fm" feature_names: "user_id" feature_names: "slot" group_type: DEEP }}
  feature_groups {{ group_name: "deep" feature_names: "user_id" feature_names: "price" group_type: DEEP }}
  deepfm {{ deep {{ hidden_units: 8 }} }}
  losses {{ binary_cross_entropy {{}} }}
}}
stream_config {{
  brokers: "{brokers}" topic: "{topic}" {format} event_time_field: "at" event_id_field: "event" stop_at_end: true
}}
"""

DECLARED = """
input_fields { input_name: "user_id" input_type: STRING }
input_fields { input_name: "slot" input_type: INT64 }
input_fields { input_name: "price" input_type: FLOAT }
input_fields { input_name: "clicked" input_type: INT32 }
input_fields { input_name: "at" input_type: INT64 }
input_fields { input_name: "event" input_type: STRING }
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    errors: str


@pytest.fixture
def headrace() -> Callable[..., Ran]:
    """Run a command in this process."""

    def call(*arguments: object) -> Ran:
        out, errors = io.StringIO(), io.StringIO()
        code = run([str(argument) for argument in arguments], out=out, errors=errors, environment={})
        return Ran(code=code, out=out.getvalue(), errors=errors.getvalue())

    return call


@pytest.fixture
def write_config(tmp_path: Path) -> Callable[..., Path]:
    """Write the small configuration with changes."""

    def write(
        *, form: str = "format: ARROW_IPC", declared: str = "", brokers: str = "127.0.0.1:9", topic: str = "clicks"
    ) -> Path:
        path = tmp_path / "pipeline.config"
        text = CONFIG.format(model_dir=tmp_path / "model", declared=declared, brokers=brokers, topic=topic, format=form)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    """A commit log of a base and two deltas."""
    folder = tmp_path / "log_dir"
    folder.mkdir()
    store = LocalStore(folder)
    options = WriterOptions(token="test", clock_ms=lambda: 1_700_000_000_000, new_chain=lambda: "c" * 32, writer="test")
    writer = Writer.open(store, options)
    for step in (1, 2, 3):
        state = StreamState()
        state.cursors.add(topic="clicks", partition=0, offset=step * 10)
        state.accounting.add(topic="clicks", received=step * 10, trained=step * 10)
        blobs = stage(
            store,
            seq=writer.next_seq,
            rank=0,
            rows=[rows(step)],
            dense={"parameter/w": np.full(2, step, np.float32)},
            stream=state,
        )
        writer.append(
            Draft(
                kind=Kind.BASE if step == 1 else Kind.DELTA,
                step=step,
                event_time_ms=step,
                broker_time_ms=-1,
                world=1,
                contract="contract",
                features="features",
                blobs=blobs,
                figures={"auc": 0.5},
            )
        )
    return folder


def rows(step: int) -> TableRows:
    return TableRows(
        table="user",
        shard=0,
        kind="zch",
        ids=np.array([step, step + 10]),
        slots=np.array([step, step + 10]),
        columns={
            "weight": np.full((2, 4), step, np.float32),
            "momentum1": np.zeros(2, np.float32),
            "last_seen_ms": np.zeros(2, np.int64),
        },
        deleted=np.array([], np.int64),
    )
