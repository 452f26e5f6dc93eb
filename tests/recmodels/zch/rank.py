"""One rank of a small world: trains its share of global batches, and leaves what it sealed and read in a folder.

Run as `python rank.py RANK WORLD_SIZE FOLDER FIRST_STEP STEPS KIND [FOLDER_TO_LOAD]`; KIND is host or device.
"""

import logging
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from google.protobuf import text_format

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)

from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward  # noqa: E402
from torchrec.optim.rowwise_adagrad import RowWiseAdagrad  # noqa: E402
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor  # noqa: E402
from writer import Writer  # noqa: E402  (beside this script)

from checkpointer.rows import TableRows, no_ids  # noqa: E402
from features import BASE, WEIGHTED, Batch, EmbeddingSpec, Feature, Side, ZchSpec  # noqa: E402
from protos.boundary import leave  # noqa: E402
from protos.model_pb2 import ModelConfig  # noqa: E402
from recmodels.embedding_group import EmbeddingGroup  # noqa: E402
from recmodels.layout import create_layout  # noqa: E402
from recmodels.sharding import shard  # noqa: E402
from recmodels.tables import ShardedTables  # noqa: E402
from recmodels.zch.device_lookup import DeviceLookup  # noqa: E402
from recmodels.zch.host_lookup import HostLookup  # noqa: E402

ROWS = 8
FEATURES = {
    "u": EmbeddingSpec(name="u", num_embeddings=64, dim=4, zch=ZchSpec(size=64, buckets=4, max_probe=8)),
    "a": EmbeddingSpec(name="a", num_embeddings=64, dim=4, pooling="mean", zch=ZchSpec(size=64, admission_count=3)),
    "i": EmbeddingSpec(name="i", num_embeddings=50, dim=8, pooling="mean", sharding_types=("row_wise",)),
    "j": EmbeddingSpec(name="j", num_embeddings=50, dim=8, sharding_types=("table_wise",)),
    "w": EmbeddingSpec(name="w", num_embeddings=64, dim=4, pooling="mean", zch=ZchSpec(size=64)),
    "s": EmbeddingSpec(name="s", num_embeddings=64, dim=4, zch=ZchSpec(size=64, policy="lru", eviction_interval=2)),
}
CONFIG = """
feature_groups { group_name: 'deep' group_type: DEEP
  feature_names: 'u' feature_names: 'a' feature_names: 'i' feature_names: 'j' feature_names: 'w' }
feature_groups { group_name: 'sorted' group_type: DEEP feature_names: 's' }
feature_groups { group_name: 'wide' group_type: WIDE feature_names: 'u' feature_names: 'i' }
"""


def make_features() -> list[Feature]:
    plain = [
        Feature(
            name=name, kind="id", inputs=(name,), sides=(Side.USER,), is_sparse=True, value_dim=0, embedding=embedding
        )
        for name, embedding in FEATURES.items()
    ]
    return [replace(f, data_group=WEIGHTED, is_weighted=True) if f.name == "w" else f for f in plain]


def global_bags(step: int) -> dict[str, list[list[int]]]:
    """Ids by feature and row, the same for every world size; 62-bit ones for hashed tables."""
    rng = np.random.default_rng(step)
    bags = {}
    for name, spec in FEATURES.items():
        high = 40 if spec.zch is None else 90
        scale = 1 if spec.zch is None else 0x2AAAAAAAAAAAAB
        bags[name] = [(rng.integers(0, high, rng.integers(0, 4)) * scale).tolist() for _ in range(ROWS)]
    return bags


def jagged(bags: dict[str, list[list[int]]], *, weighted: bool) -> KeyedJaggedTensor:
    values = torch.tensor([v for rows in bags.values() for bag in rows for v in bag], dtype=torch.int64)
    return KeyedJaggedTensor(
        keys=list(bags),
        values=values,
        lengths=torch.tensor([len(bag) for rows in bags.values() for bag in rows], dtype=torch.int32),
        weights=(values % 7).float() if weighted else None,
        stride=len(next(iter(bags.values()))),
    )


def share(step: int, rank: int, world_size: int) -> Batch:
    """This rank's rows of a global batch: at two ranks the first gets 6 of 8, in every third step all of them."""
    cut = ROWS if world_size == 1 or step % 3 == 2 else 6
    own = slice(0, cut) if rank == 0 else slice(cut, ROWS)
    bags = {name: rows[own] for name, rows in global_bags(step).items()}
    weighted = {"w": bags.pop("w")}
    groups = {BASE: jagged(bags, weighted=False), WEIGHTED: jagged(weighted, weighted=True)}
    return Batch(size=own.stop - own.start, sparse_features=groups)


def dump(folder: Path, rank: int, rows: list[TableRows]) -> None:
    for part in rows:
        np.savez(
            folder / f"{rank}-{part.table}-{part.kind}.npz",
            ids=part.ids, slots=part.slots, deleted=part.deleted, shard=part.shard, **part.columns,
        )  # fmt: skip


def stored(folder: Path) -> Iterator[TableRows]:
    """What the ranks of a run have sealed, as a restore hands it over."""
    for path in sorted(folder.glob("*-*-*.npz")):
        _, table, kind = path.stem.split("-")
        with np.load(path) as held:
            columns = {name: held[name] for name in held.files if name not in ("ids", "slots", "deleted", "shard")}
            yield TableRows(
                table=table, shard=int(held["shard"]), kind=kind, ids=held["ids"], slots=held["slots"],
                columns=columns, deleted=no_ids(),
            )  # fmt: skip


def main(rank: int, world_size: int, folder: Path, first: int, steps: int, kind: str, load: Path | None) -> None:
    store = dist.FileStore(str(folder / "store"), world_size)
    dist.init_process_group("gloo", rank=rank, world_size=world_size, store=store, timeout=timedelta(seconds=60))
    features = make_features()
    layout = create_layout(features, text_format.Parse(CONFIG, ModelConfig()))
    group = EmbeddingGroup(features, layout, torch.device("cpu"), seed=5)
    apply_optimizer_in_backward(RowWiseAdagrad, group.sparse_parameters(), {"lr": 0.1})
    lookup_of = HostLookup if kind == "host" else partial(DeviceLookup, operator=Writer())
    dmp = shard(group, layout, process_group=dist.group.WORLD, device=torch.device("cpu"), lookup_of=lookup_of)
    tables = ShardedTables.of(dmp, layout)
    if load is not None:
        tables.load(stored(load))
        tables.touch_all()
    for step in range(first, first + steps):
        tables.set_event_time(1000 + step)
        dmp.train()
        groups = dmp(share(step, rank, world_size))
        # TorchRec averages table gradients over ranks.
        loss = sum((g * torch.arange(1.0, g.shape[1] + 1)).sum() for g in groups.values()) * world_size
        loss.backward()
        tables.after_step()
    dump(folder, rank, tables.seal())
    tables.confirm()
    dmp.eval()
    with torch.no_grad():
        groups = dmp(share(999, rank, world_size))
    np.savez(folder / f"read{rank}.npz", **{name: tensor.numpy() for name, tensor in groups.items()})
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(
        int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]),
        sys.argv[6], Path(sys.argv[7]) if len(sys.argv) > 7 else None,
    )  # fmt: skip
    leave(0)
