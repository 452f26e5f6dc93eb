"""The stream that the kills interrupt: small, and with everything in it that must be accounted for."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stream.encode import encode_rows

CONFIG = """
{files}
model_dir: "{model_dir}"
seed: 11
train_config {{
  sparse_optimizer {{ rowwise_adagrad_optimizer {{ lr: 0.05 }} constant_learning_rate {{}} }}
  dense_optimizer {{ adam_optimizer {{ lr: 0.001 }} constant_learning_rate {{}} }}
  num_epochs: 1
  use_tensorboard: false
}}
data_config {{ batch_size: 64 dataset_type: {kind} fg_mode: FG_NORMAL label_fields: "label" }}
stream_config {{
  {stream}
  event_time_field: "time_ms"
  event_id_field: "event_id"
  allowed_lateness_ms: 20000
  duplicate_window_ms: 100000
  filters {{ column: "kind" operator: NE value: "9" }}
  dead_letters {{ max_share: 0.9 path: "{model_dir}/dead_letters" }}
}}
checkpoint_config {{ commit_interval_steps: 2 compact_after_commits: 24 }}
feature_configs {{ id_feature {{ feature_name: "user" expression: "user:user" embedding_dim: 8
  zch {{ zch_size: 256 hash {{ ttl_ms: 60000 buckets: 4 max_probe: 16 }} }} }} }}
feature_configs {{ id_feature {{ feature_name: "item" expression: "item:item" embedding_dim: 8
  zch {{ zch_size: 512 hash {{ admission_count: 2 admission_capacity: 256 buckets: 4 }} }} }} }}
feature_configs {{ id_feature {{ feature_name: "kind" expression: "item:kind" embedding_dim: 8 num_buckets: 16 }} }}
model_config {{
  feature_groups {{ group_name: "wide" group_type: WIDE feature_names: ["user", "item", "kind"] }}
  feature_groups {{ group_name: "deep" group_type: DEEP feature_names: ["user", "item", "kind"] }}
  deepfm {{ deep {{ hidden_units: [16] }} }}
  losses {{ binary_cross_entropy {{}} }}
}}
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A folder with the data, and the configuration of a model directory in it; from a topic where `stream` names one.

    `stream` is text in stream_config, for example `brokers: "b:9092" topic: "t" stop_at_end: true`.
    """

    folder: Path
    rows: int
    stream: str = ""

    def config(self, model_dir: Path, *changes: tuple[str, str]) -> Path:
        """Write the configuration for `model_dir`, beside it; each of `changes` replaces a text by another."""
        path = model_dir.with_suffix(".config")
        files = "" if self.stream else f'train_input_path: "{self.folder}/part-*.parquet"'
        kind = "KafkaDataset" if self.stream else "ParquetDataset"
        text = CONFIG.format(files=files, stream=self.stream, kind=kind, model_dir=model_dir)
        for old, new in changes:
            if old not in text:
                raise ValueError(f"the configuration of the stage holds no {old!r}")
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
        return path

    def messages(self, part: int, rows: int = 7) -> list[bytes]:
        """The rows of one part as Arrow messages of `rows` rows, for one partition of a topic."""
        table = pq.read_table(self.folder / f"part-{part}.parquet").combine_chunks()
        return [encode_rows(batch, "ARROW_IPC")[0] for batch in table.to_batches(max_chunksize=rows)]


def prepare(folder: Path, *, seed: int = 3, rows: int = 3000, parts: int = 3) -> Stage:
    """Write the events: Zipf ids that come and go; null labels, repeats, stragglers and filtered kinds among them."""
    random = np.random.default_rng(seed)
    time = np.cumsum(random.exponential(100.0, rows)).astype(np.int64)
    late = random.random(rows) < 0.02
    label = (random.random(rows) < 0.4).astype(np.float32)
    ids = np.arange(rows) + 10_000
    repeated = random.random(rows) < 0.03
    ids[repeated] = ids[np.maximum(np.flatnonzero(repeated) - 3 * random.integers(1, 20, repeated.sum()), 0)]
    table = pa.table(
        {
            "user": random.zipf(1.2, rows).astype(np.int64) % (1 << 40) + (time // 60_000) * 7,
            "item": random.zipf(1.3, rows).astype(np.int64) % 5000,
            "kind": random.integers(0, 10, rows),
            "event_id": pa.array([f"e{number}" for number in ids]),
            "time_ms": np.where(late, np.maximum(time - 90_000, 0), time),
            "label": pa.array(label, mask=random.random(rows) < 0.02),
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(parts):
        pq.write_table(table.take(np.arange(part, rows, parts)), folder / f"part-{part}.parquet", row_group_size=200)
    return Stage(folder=folder, rows=rows)
