"""The serving contract that a publisher freezes at start: tables, groups and digests of a configuration."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from checkpointer.rows import Column
from checkpointer.store import Store
from features import create_features
from features.drift import changes, described
from features.files import LocalFiles, NotedFiles
from protos.load import format_config
from protos.pipeline_pb2 import EasyRecConfig
from protos.s3_account import data_account
from publisher.fields import canonical
from publisher.manifest import Table
from publisher.versions import fetch
from recmodels.layout import Layout, create_layout

_SERVED, _AVERAGE = "parameter/", "optimizer/ema/"


@dataclass(frozen=True, kw_only=True, slots=True)
class Contract:
    """What every commit of a model directory must have been trained under.

    `config` is the pipeline configuration in text format, `layout` the layout in canonical JSON; `widths` are those of
    the group tensors. `assets` are the files that features read, by the names that `config` gives them, as they were at
    start; `described` is what the features are (FeatureSet.description): its SHA-256 is the digest `features`.
    """

    digest: str
    features: str
    tables: tuple[Table, ...]
    widths: tuple[int, ...]
    config: bytes
    layout: bytes
    assets: tuple[tuple[str, bytes], ...] = ()
    described: bytes = b"[]"

    @classmethod
    def of(cls, config: EasyRecConfig) -> "Contract":
        """Compute the contract of a configuration; raises what features and layout raise."""
        files = NotedFiles(LocalFiles(data_account(config)))
        features = create_features(config, files=files)
        layout = create_layout(features.features, config.model_config)
        return cls(
            digest=layout.digest(),
            features=features.digest(),
            tables=serving_tables(layout),
            widths=tuple(sum(group.dims) for group in layout.groups),
            config=format_config(config).encode(),
            layout=canonical(json.loads(json.dumps(asdict(layout)))),
            assets=tuple(sorted(files.noted.items())),
            described=features.description(),
        )


def serving_tables(layout: Layout) -> tuple[Table, ...]:
    """The tables of a layout, as a manifest lists them."""
    return tuple(
        Table(name=table.name, kind="direct" if table.zch is None else "zch", dim=table.dim) for table in layout.tables
    )


def drift(store: Store, trained: str, contract: Contract) -> str:
    """In words, what is different from the features with digest `trained`; "" where nothing is, or it is not known.

    The trainer notes what they were (trainer/feature_record.py); a note that is damaged only says less.
    """
    payload = None if trained == contract.features else fetch(store, f"features/{trained}.json")
    if payload is None:
        return ""
    try:
        noted, ours = json.loads(payload), described(contract.described)
    except ValueError:
        return ""
    return "; ".join(changes(noted, ours)) if isinstance(noted, dict) else ""


def served_state(dense: Mapping[str, Column]) -> dict[str, Column]:
    """Strip a commit's dense arrays to those that serving needs, named as in `DenseHalf.state_dict()`.

    Where training keeps a moving average of a parameter (dense_optimizer.ema), the average is served.
    """
    served = {name.removeprefix(_SERVED): value for name, value in dense.items() if name.startswith(_SERVED)}
    return served | {name.removeprefix(_AVERAGE): value for name, value in dense.items() if name.startswith(_AVERAGE)}
