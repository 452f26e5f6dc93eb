"""Groups and tables from features and configuration, and everything that is refused on the way."""

from dataclasses import replace
from typing import Any

import pytest
from google.protobuf import text_format

from features import WEIGHTED, ZchSpec
from protos.model_pb2 import ModelConfig
from recmodels.errors import LayoutError, ModelConfigError
from recmodels.layout import create_layout


def features(lab: Any) -> list[Any]:
    return [lab.id_feature("cat_a", dim=16), lab.id_feature("cat_b", dim=8), lab.dense_feature("int_a")]


def test_deep_and_wide_groups_have_the_reference_dims(lab: Any) -> None:
    config = lab.model_config(("wide", "WIDE", ["cat_a", "cat_b"]), ("deep", "DEEP", ["cat_a", "cat_b", "int_a"]))
    layout = create_layout(features(lab), config)
    assert layout.group("wide").dims == [4, 4]
    assert layout.group("deep").dims == [16, 8, 1]
    assert layout.table_names() == ("cat_a_wide", "cat_b_wide", "cat_a", "cat_b")


def test_wide_dim_and_init_come_from_the_model(lab: Any) -> None:
    config = lab.model_config(("wide", "WIDE", ["cat_a"]))
    text_format.Merge(
        "deepfm { wide_embedding_dim: 2 wide_init_fn: 'nn.init.zeros_' deep { hidden_units: 8 } }", config
    )
    layout = create_layout(features(lab), config)
    assert layout.group("wide").dims == [2]
    assert (layout.table("cat_a_wide").init.kind, layout.table("cat_a_wide").init.a) == (3, 0.0)


def test_a_shared_table_holds_all_its_features(lab: Any) -> None:
    shared = [lab.id_feature("a", table="t"), lab.id_feature("b", table="t")]
    layout = create_layout(shared, lab.model_config(("g", "DEEP", ["b", "a"]), ("h", "DEEP", ["a"])))
    assert layout.table("t").features == ("b", "a")


@pytest.mark.parametrize(
    ("other", "field"),
    [
        ({"dim": 8}, "dim"),
        ({"pooling": "mean"}, "pooling"),
        ({"init_fn": "nn.init.zeros_"}, "init"),
        ({"num_embeddings": 65}, "num_embeddings"),
        ({"zch": ZchSpec(size=64)}, "zch"),
    ],
)
def test_a_shared_table_must_be_the_same_for_all(lab: Any, other: dict[str, Any], field: str) -> None:
    pair = [lab.id_feature("a"), lab.id_feature("b", **{"table": "a", **other})]
    with pytest.raises(LayoutError, match=f"'a' and 'b' share table 'a' but differ in {field}"):
        create_layout(pair, lab.model_config(("g", "DEEP", ["a", "b"])))


def group(text: str) -> ModelConfig:
    return text_format.Parse(f"feature_groups {{ group_name: 'g' {text} }}", ModelConfig())


def test_suffixes_make_tables_of_their_own(lab: Any) -> None:
    layout = create_layout(features(lab), group("feature_names: 'cat_a' group_type: WIDE embedding_name_suffix: 'x'"))
    assert layout.table_names() == ("cat_a_wide_x",)


def test_one_name_by_two_suffixes_is_refused(lab: Any) -> None:
    pair = [lab.id_feature("a"), lab.id_feature("a_x")]
    config = lab.model_config(("g", "DEEP", ["a_x"]))
    text_format.Merge(
        "feature_groups { group_name: 'h' feature_names: 'a' group_type: DEEP embedding_name_suffix: 'x' }", config
    )
    with pytest.raises(LayoutError, match="reached with the suffixes '' and 'x'"):
        create_layout(pair, config)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("group_type: DEEP feature_names: 'nope'", "no feature 'nope'"),
        ("group_type: DEEP", "no feature_names"),
        ("group_type: WIDE feature_names: 'int_a'", "'int_a' is dense"),
        ("group_type: DEEP feature_names: 'cat_a' feature_names: 'cat_a'", "names 'cat_a' twice"),
        ("group_type: SEQUENCE feature_names: 'cat_a'", "sequence groups and encoders come later"),
        (
            "group_type: DEEP feature_names: 'cat_a' sequence_groups { group_name: 's' feature_names: 'cat_b' }",
            "sequence groups and encoders come later",
        ),
    ],
)
def test_a_group_that_cannot_be_built_is_refused(lab: Any, text: str, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        create_layout(features(lab), group(text))


def test_a_group_may_not_mix_data_groups_but_weighted_ones(lab: Any) -> None:
    mixed = [lab.id_feature("a"), replace(lab.id_feature("b"), data_group=WEIGHTED, is_weighted=True)]
    layout = create_layout(mixed, lab.model_config(("g", "DEEP", ["a", "b"])))
    assert [table.weighted for table in layout.tables] == [False, True]
    mixed[1] = replace(mixed[1], data_group="__NEG__")
    with pytest.raises(LayoutError, match="mixes the data groups __BASE__, __NEG__"):
        create_layout(mixed, lab.model_config(("g", "DEEP", ["a", "b"])))


def test_the_same_group_name_twice_is_refused(lab: Any) -> None:
    with pytest.raises(LayoutError, match="'g' is declared twice"):
        create_layout(features(lab), lab.model_config(("g", "DEEP", ["cat_a"]), ("g", "DEEP", ["cat_b"])))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"dim": 0}, "both must be positive"),
        ({"data_type": "INT8"}, "cannot be trained"),
        ({"pooling": "max"}, "use sum or mean"),
        ({"zch": ZchSpec(size=64, policy="fifo")}, "policy 'fifo' is unknown"),
        ({"zch": ZchSpec(size=64, threshold_filtering_func="x")}, "threshold_filtering_func comes later"),
    ],
)
def test_a_table_that_cannot_be_trained_is_refused(lab: Any, setting: dict[str, Any], message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        create_layout([lab.id_feature("a", **setting)], lab.model_config(("g", "DEEP", ["a"])))


@pytest.mark.parametrize(
    "text", ["__import__('os')", "nn.init.uniform_,a", "nn.init.uniform_,c=1", "nn.init.constant_"]
)
def test_an_init_fn_is_parsed_and_never_evaluated(lab: Any, text: str) -> None:
    with pytest.raises(ModelConfigError, match="init_fn"):
        create_layout([lab.id_feature("a", init_fn=text)], lab.model_config(("g", "DEEP", ["a"])))


def test_the_digest_is_the_serving_contract(lab: Any) -> None:
    config = lab.model_config(("g", "DEEP", ["a"]))

    def digest(**settings: Any) -> str:
        return create_layout([lab.id_feature("a", **settings)], config).digest()

    assert digest() == digest(init_fn="nn.init.zeros_")
    assert digest(zch=ZchSpec(size=64)) == digest(zch=ZchSpec(size=128))
    assert len({digest(), digest(dim=8), digest(pooling="mean"), digest(zch=ZchSpec(size=64))}) == 4
