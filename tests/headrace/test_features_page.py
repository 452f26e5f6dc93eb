"""docs/features.md shows what works."""

import re
from pathlib import Path

import pyarrow as pa
import pytest
from google.protobuf import text_format

from features import FeatureSet, create_features
from protos.pipeline_pb2 import EasyRecConfig

PAGE = Path(__file__).parents[2] / "docs" / "features.md"


@pytest.fixture
def shown(tmp_path: Path) -> FeatureSet:
    (text,) = re.findall(r"```textproto\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    vocabulary = tmp_path / "vocabulary.txt"
    vocabulary.write_text("unknown\nhats\nshoes\n")
    config = text_format.Parse(text.replace('"vocabulary.txt"', f'"{vocabulary}"'), EasyRecConfig())
    declared = {field.input_name for field in config.data_config.input_fields}
    assert declared == {*create_features(config).input_columns, "click"}
    return create_features(config)


def test_the_features_of_the_page_make_of_a_row_what_it_says(shown: FeatureSet) -> None:
    row = {
        "user": "ann", "price": 100.0, "pieces": 3, "category": "shoes", "brand": "acme", "tags": ["sale", "red"],
        "clicked__item": list(range(12)), "clicked__price": [float(n) for n in range(12)], "click": 1,
    }  # fmt: skip
    rows = pa.table({name: [value] for name, value in row.items()})
    rates = pa.array([[("acme", 0.5), ("bolt", 0.1)]], pa.map_(pa.string(), pa.float32()))
    (batch,) = rows.append_column("brand_rates", rates).to_batches()
    assert not shown.validate(batch)
    shorter = batch.set_column(batch.schema.get_field_index("clicked__price"), "clicked__price", pa.array([[1.0, 2.0]]))
    assert shown.validate(shorter).reasons == ("unequal_steps",)
    made = shown.made(batch)
    assert made["category"].values.tolist() == [2]
    assert made["price"].values.reshape(-1).tolist() == pytest.approx([2.0])
    assert made["total"].values.reshape(-1).tolist() == [300.0]
    assert made["brand_rate"].values.reshape(-1).tolist() == [0.5]
    assert made["tags"].lengths.tolist() == [2]
    first_ten = shown.made(
        batch.set_column(batch.schema.get_field_index("clicked__item"), "clicked__item", pa.array([list(range(10))]))
    )["clicked__item"]
    assert made["clicked__item"].lengths.tolist() == [10]
    assert made["clicked__item"].made.values.tolist() == first_ten.made.values.tolist()
    assert made["clicked__price"].made.values.reshape(-1).tolist() == [float(n) for n in range(10)]
