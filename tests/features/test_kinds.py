"""Kinds of features of a user's own: an extension field, a module, no edit of ours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import Message

from features import BASE, Feature, FeatureConfigError, Side, create_features
from features.columns import Columns, Floats
from features.generator import Dense, Kind, Setting
from features.kinds import BUILT_IN, Kinds
from features.plain import Plain
from protos import pipeline_pb2
from stream.row_errors import Faults


@dataclass(frozen=True)
class Doubled:
    """A generator outside our packages."""

    feature: Feature
    plain: Plain | None = None

    def generate(self, columns: Columns, faults: Faults | None) -> Dense:
        view = columns[self.feature.inputs[0]]
        assert isinstance(view, Floats)
        return Dense((2 * view.values).astype(np.float32))

    def describe(self) -> dict[str, object]:
        return {"factor": 2}


def build(message: Message, setting: Setting) -> Doubled:
    name = str(getattr(message, "feature_name"))  # noqa: B009 - a message made at run time
    return Doubled(
        Feature(
            name=name, kind="doubled", inputs=(name,), sides=(Side.USER,), is_sparse=False, value_dim=1, dense_dim=1
        )
    )


@pytest.fixture(scope="module")
def config() -> pipeline_pb2.EasyRecConfig:
    """A configuration that sets the extension field `plug.doubled`."""
    file = descriptor_pb2.FileDescriptorProto(name="plug.proto", package="plug", dependency=["protos/feature.proto"])
    message = file.message_type.add(name="Doubled")
    message.field.add(name="feature_name", number=1, type=9, label=1)
    extension = file.extension.add(name="doubled", number=20001, type=11, label=1)
    extension.type_name, extension.extendee = ".plug.Doubled", ".headrace.protos.FeatureConfig"
    descriptor_pool.Default().Add(file)
    message_factory.GetMessageClassesForFiles(["plug.proto"], descriptor_pool.Default())
    made = pipeline_pb2.EasyRecConfig()
    text_format.Parse('feature_configs { [plug.doubled] { feature_name: "f" } }', made)
    return made


def test_a_kind_of_a_users_own_is_found_by_its_extension_field(config: pipeline_pb2.EasyRecConfig) -> None:
    features = create_features(config, Kinds([*BUILT_IN, Kind(field="plug.doubled", build=build)]))
    batch = features.parse(pa.record_batch({"f": [1.5, 2.0]}))
    assert batch.dense_features[BASE].values().tolist() == [[3.0], [4.0]]


def test_an_unknown_kind_is_refused_by_name(config: pipeline_pb2.EasyRecConfig) -> None:
    with pytest.raises(FeatureConfigError, match=r"feature 'f': plug\.doubled is not supported yet"):
        create_features(config)


def test_a_field_has_one_kind() -> None:
    with pytest.raises(ValueError, match="registered twice"):
        Kinds([*BUILT_IN, Kind(field="id_feature", build=build)])


def test_a_plugin_that_is_not_there_is_named() -> None:
    config = pipeline_pb2.EasyRecConfig(plugins=["no_such_module"])
    with pytest.raises(FeatureConfigError, match="plugin 'no_such_module' cannot be imported"):
        create_features(config)
