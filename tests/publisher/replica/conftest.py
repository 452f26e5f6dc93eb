"""A writer of serving versions, small enough to be read and independent of the publisher's loop."""

import contextlib
import hashlib
import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save as save_safetensors

from checkpointer.encoding import Encoding, encode, row_bytes
from checkpointer.errors import ExistsError, NotFoundError
from checkpointer.memory_store import MemoryStore
from checkpointer.store import Store
from protos.load import parse_config
from publisher.codec import encode_pointer, encode_version
from publisher.contract import Contract
from publisher.manifest import POINTER, Artefact, Base, Blob, Delta, Pointer, ServingVersion
from publisher.rows import ServingRows, encode_rows
from publisher.signing import Signer

CONFIG = """
model_dir: "unused"
data_config {
  label_fields: "label"
  fg_mode: FG_NORMAL
  input_fields { input_name: "user_id" input_type: INT64 }
  input_fields { input_name: "item_id" input_type: INT64 }
}
feature_configs { id_feature { feature_name: "user_id" expression: "user:user_id" embedding_dim: 4
  zch { zch_size: 1000 hash {} } } }
feature_configs { id_feature { feature_name: "item_id" expression: "item:item_id" embedding_dim: 4
  zch { zch_size: 1000 hash {} } } }
feature_configs { id_feature { feature_name: "tags" expression: "item:tags" embedding_dim: 4 num_buckets: 8
  pooling: "mean" } }
feature_configs { raw_feature { feature_name: "price" expression: "item:price" } }
model_config {
  feature_groups { group_name: "all" feature_names: "user_id" feature_names: "item_id" feature_names: "tags"
    feature_names: "price" group_type: DEEP }
  multi_tower { towers { input: "all" mlp { hidden_units: 4 } } final { hidden_units: 4 } }
  num_class: 1
  losses { binary_cross_entropy {} }
}
"""
TABLES = ("user_id_emb", "item_id_emb", "tags_emb")


class Witness(torch.nn.Module):
    """Shows what it was given: the group's tensor, and a weight that names the version."""

    def __init__(self) -> None:
        super().__init__()
        self.number = torch.nn.Parameter(torch.zeros(1))

    def forward(self, group: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"rows": group, "number": group[:, :1] * 0.0 + self.number}


def witness_script() -> bytes:
    sink = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.save(torch.jit.script(Witness()), sink)
    return sink.getvalue()


@dataclass(frozen=True, kw_only=True)
class Change:
    """What a version does to one table; `value` fills every row."""

    put: Mapping[int, float] = field(default_factory=dict)
    delete: Sequence[int] = ()
    reset: bool = False


class VersionWriter:
    """Writes versions of the witness model; keeps the rows that a replica must then have."""

    def __init__(self, store: Store, *, encoding: Encoding = Encoding.FP32, signer: Signer | None = None) -> None:
        self.store = store
        self.encoding = encoding
        self.signer = signer
        self.points_as: Signer | None = signer
        self.contract = Contract.of(parse_config(CONFIG, json=False))
        self.rows: dict[str, dict[int, float]] = {table: {} for table in TABLES}
        self.rows["tags_emb"] = dict.fromkeys(range(8), 0.0)
        self.manifest: ServingVersion | None = None
        self.generation = 0
        self.now_ms = 1_700_000_000_000
        self.artefacts = (
            Artefact(
                runtime="torch_script",
                blob=self._put("compiled", witness_script(), "ts"),
                torch=torch.__version__,
                machine="x86_64",
                isa="",
            ),
        )
        self.state: dict[str, np.ndarray] | None = None

    def _put(self, folder: str, payload: bytes, suffix: str) -> Blob:
        path = f"{folder}/{hashlib.sha256(payload).hexdigest()[:16]}.{suffix}"
        with contextlib.suppress(ExistsError):
            self.store.put_if_absent(path, payload)
        return Blob.of(path, payload)

    def _encoded(self, values: Sequence[float]) -> np.ndarray:
        if not values:
            return np.empty((0, row_bytes(self.encoding, 4)), np.uint8)
        return encode(np.repeat(np.array(values, np.float32)[:, None], 4, axis=1), self.encoding)

    def blobs(self, changes: Mapping[str, Change], folder: str) -> tuple[Blob, ...]:
        parts = [
            ServingRows(
                table=table,
                ids=np.array(sorted(change.put), np.int64),
                rows=self._encoded([change.put[i] for i in sorted(change.put)]),
                deleted=np.array(sorted(change.delete), np.int64),
            )
            for table, change in changes.items()
        ]
        return tuple(self._put(folder, payload, "parquet") for payload in map(b"".join, encode_rows(parts)))

    def write(self, number: int, changes: Mapping[str, Change] = {}, *, rebase: bool = False) -> ServingVersion:  # noqa: B006
        """Write version `number`; the pointer stays."""
        for table, change in changes.items():
            rows = {} if change.reset else self.rows[table]
            self.rows[table] = {i: v for i, v in rows.items() if i not in set(change.delete)} | dict(change.put)
        last = self.manifest
        if last is None or rebase:
            base = Base(
                seq=number,
                rows=0,
                blobs=self.blobs({table: Change(put=rows) for table, rows in self.rows.items()}, "serving_bases"),
            )
            deltas: tuple[Delta, ...] = ()
        else:
            base = last.base
            resets = tuple(table for table, change in changes.items() if change.reset)
            delta = Delta(after=last.version, seq=number, rows=0, resets=resets, blobs=self.blobs(changes, "deltas"))
            deltas = (*last.deltas, delta)
        self.manifest = self._manifest(number, base, deltas)
        self.store.put_if_absent(self.manifest.path, encode_version(self.manifest, self.signer))
        return self.manifest

    def _manifest(self, number: int, base: Base, deltas: tuple[Delta, ...]) -> ServingVersion:
        state = self.state or {"number": np.array([number], np.float32)}
        return ServingVersion(
            version=number,
            previous=None,
            chain="c",
            commit="d",
            series=f"c-{base.seq}" if not deltas else (self.manifest.series if self.manifest else "c"),
            contract=self.contract.digest,
            features=self.contract.features,
            step=number,
            event_time_ms=self.now_ms,
            watermark_ms=self.now_ms,
            broker_time_ms=self.now_ms,
            created_ms=self.now_ms,
            encoding=str(self.encoding),
            tables=self.contract.tables,
            base=base,
            deltas=deltas,
            dense=self._put("dense", save_safetensors(dict(state)), "safetensors"),
            artefacts=self.artefacts,
            config=self._put("contracts", self.contract.config, "config"),
            layout=self._put("contracts", self.contract.layout, "layout"),
            stream=(),
            metrics={},
        )

    def point(self, number: int) -> None:
        """Publish version `number`."""
        payload = self.store.get(f"versions/{number:020d}/manifest.json")
        self.generation += 1
        pointer = Pointer(
            version=number,
            digest=hashlib.sha256(payload).hexdigest(),
            generation=self.generation,
            swapped_ms=self.now_ms,
        )
        try:
            old: bytes | None = self.store.get(POINTER)
        except NotFoundError:
            old = None
        self.store.compare_and_swap(POINTER, old, encode_pointer(pointer, self.points_as))

    def publish(self, number: int, changes: Mapping[str, Change] = {}, *, rebase: bool = False) -> ServingVersion:  # noqa: B006
        """Write version `number` and point at it."""
        manifest = self.write(number, changes, rebase=rebase)
        self.point(number)
        return manifest

    def everything(self, value: float) -> dict[str, Change]:
        """Set every known row, and all of `tags_emb`, to one value."""
        return {table: Change(put=dict.fromkeys(rows, value)) for table, rows in self.rows.items()}


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def writer(store: MemoryStore) -> VersionWriter:
    return VersionWriter(store)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """torch says that TorchScript is deprecated; it is what serves until AOTInductor has compiled."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning"))
