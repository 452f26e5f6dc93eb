"""The shape that several figures share: DeepFM on 26 ids × dim 16, 100,000 rows each, and 13 numbers; its events.

The WIDE group, which DeepFM must have, holds one id: the tables are those of the figure online_tax, and one more.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
from google.protobuf import text_format

from protos.pipeline_pb2 import EasyRecConfig

SPARSE, DENSE, DIM, ROWS, BATCH = 26, 13, 16, 100_000, 4096


def pipeline(model_dir: Path, *, stream: str = "", checkpoint: str = "", path: str = "", batch: int = BATCH) -> str:
    """The pipeline's configuration as text; `stream` and `checkpoint` are what those messages hold besides."""
    ids = [f"c{n}" for n in range(SPARSE)]
    numbers = [f"d{n}" for n in range(DENSE)]
    features = [
        f'feature_configs {{ id_feature {{ feature_name: "{name}" expression: "item:{name}" embedding_dim: {DIM} '
        f"zch {{ zch_size: {ROWS} hash {{}} }} }} }}"
        for name in ids
    ]
    features += [
        f'feature_configs {{ raw_feature {{ feature_name: "{name}" expression: "item:{name}" }} }}' for name in numbers
    ]
    names = {group: " ".join(f'feature_names: "{n}"' for n in members) for group, members in
             (("wide", ids[:1]), ("fm", ids), ("deep", ids + numbers))}  # fmt: skip
    kind = "ParquetDataset" if path else "KafkaDataset"
    return "\n".join(
        [
            f'model_dir: "{model_dir}"',
            f'train_input_path: "{path}"',
            "seed: 1",
            "train_config { sparse_optimizer { rowwise_adagrad_optimizer { lr: 0.02 } constant_learning_rate {} }",
            "  dense_optimizer { adam_optimizer { lr: 0.001 } constant_learning_rate {} } use_tensorboard: false }",
            f'data_config {{ dataset_type: {kind} batch_size: {batch} fg_mode: FG_NONE label_fields: "label" }}',
            f"stream_config {{ {stream} }}" if stream else "",
            f"checkpoint_config {{ commit_interval_ms: 500 {checkpoint} }}",
            *features,
            "model_config {",
            f'  feature_groups {{ group_name: "wide" group_type: WIDE {names["wide"]} }}',
            f'  feature_groups {{ group_name: "fm" group_type: DEEP {names["fm"]} }}',
            f'  feature_groups {{ group_name: "deep" group_type: DEEP {names["deep"]} }}',
            "  deepfm { deep { hidden_units: [512, 256, 128] } }",
            "  losses { binary_cross_entropy {} }",
            "}",
        ]
    )


def parse(text: str) -> EasyRecConfig:
    """The configuration as a message."""
    return text_format.Parse(text, EasyRecConfig())


def zipf(rng: np.random.Generator, count: int, *, exponent: float = 1.2) -> np.ndarray:
    """Ids of Zipf's law over ROWS values, scattered over 62 bits; exponent 0 makes them uniform."""
    cumulative = np.cumsum(1.0 / np.arange(1, ROWS + 1) ** exponent)
    drawn = np.minimum(np.searchsorted(cumulative / cumulative[-1], rng.random(count)), ROWS - 1).astype(np.int64)
    scattered: np.ndarray = ((drawn + 1) * np.int64(0x1E3779B97F4A7C15)) & np.int64(2**62 - 1)
    return scattered


def events(rows: int, *, seed: int, exponent: float = 1.2) -> pa.RecordBatch:
    """Rows of the shape, without nulls."""
    rng = np.random.default_rng(seed)
    columns: dict[str, np.ndarray] = {f"c{n}": zipf(rng, rows, exponent=exponent) for n in range(SPARSE)}
    columns |= {f"d{n}": rng.standard_normal(rows, np.float32) for n in range(DENSE)}
    columns["label"] = rng.integers(0, 2, rows).astype(np.float32)
    return pa.record_batch({name: pa.array(values) for name, values in columns.items()})


def messages(rows: pa.RecordBatch, per_message: int) -> list[bytes]:
    """The rows as Arrow IPC streams of `per_message` rows."""
    payloads = []
    for start in range(0, rows.num_rows, per_message):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_batch(rows.slice(start, per_message))
        payloads.append(sink.getvalue().to_pybytes())
    return payloads
