"""Sampler files, configurations and sources for samplers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf import text_format

from protos.pipeline_pb2 import EasyRecConfig

ITEMS = 40


def write_nodes(path: Path, rows: list[tuple[object, float, str]], kind: str = "int64") -> str:
    """A node file."""
    lines = [f"id:{kind}\tweight:float\tattrs:string", *(f"{node}\t{weight}\t{text}" for node, weight, text in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def write_edges(path: Path, rows: list[tuple[object, object, float]]) -> str:
    """An edge file."""
    lines = ["userid:int64\titemid:int64\tweight:float", *(f"{a}\t{b}\t{w}" for a, b, w in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def id_feature(name: str, expression: str, more: str = "") -> str:
    """An entry of feature_configs."""
    inner = f'feature_name: "{name}" expression: "{expression}" num_buckets: 1000 embedding_dim: 4 {more}'
    return f"feature_configs {{ id_feature {{ {inner} }} }}\n"


def negative(path: object, num: int, second: str = "price", item: str = "item_id", more: str = "") -> str:
    """A NegativeSampler whose attributes are item_id and `second`."""
    fields = f'attr_fields: ["item_id", "{second}"] item_id_field: "{item}"'
    return f'negative_sampler {{ input_path: "{path}" num_sample: {num} {fields} {more} }}'


def make_config(data: str, features: str = "", mode: str = "FG_NORMAL") -> EasyRecConfig:
    """A configuration with an item id, an item price and a user id; attributes are item_id and price."""
    price = 'feature_configs { raw_feature { feature_name: "price" expression: "item:price" default_value: "0" } }'
    features = features or id_feature("item_id", "item:item_id") + price + id_feature("user_id", "user:user_id")
    text = f"""data_config {{
      batch_size: 8 dataset_type: ParquetDataset fg_mode: {mode} label_fields: "y" {data} }} {features}"""
    config = EasyRecConfig()
    text_format.Parse(text, config)
    return config


@pytest.fixture
def item_file(tmp_path: Path) -> str:
    """ITEMS items 0 …, item i with weight i + 1 and price i / 2."""
    return write_nodes(tmp_path / "items.txt", [(i, i + 1, f"{i}:{i / 2}") for i in range(ITEMS)])


@pytest.fixture
def negative_config(item_file: str) -> Callable[..., EasyRecConfig]:
    """A NegativeSampler of `num` negatives."""

    def make(num: int = 8, extra: str = "", features: str = "", more: str = "") -> EasyRecConfig:
        return make_config(negative(item_file, num, more=extra) + more, features)

    return make
