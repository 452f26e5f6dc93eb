"""From a configuration to its features (reference: models_and_features.md section 1)."""

from __future__ import annotations

import importlib
from dataclasses import replace

from features.errors import FeatureConfigError
from features.feature_set import FeatureSet
from features.files import Files, LocalFiles, text_of
from features.generator import Setting
from features.kinds import REGISTRY, Kinds
from features.masking import with_masks
from features.sampling.options import SamplerOptions
from features.spec import WEIGHTED, Feature
from protos import data_pb2, feature_pb2, pipeline_pb2
from protos.s3_account import data_account
from stream.decode_schema import declared_schema
from stream.errors import SourceError

MOST_TOLD = 3


def create_features(
    config: pipeline_pb2.EasyRecConfig, kinds: Kinds = REGISTRY, *, files: Files | None = None
) -> FeatureSet:
    """Build all features; plugins are imported, vocabulary files read now and from `files`, by default this machine's.

    Raise FeatureConfigError.
    """
    for plugin in config.plugins:
        _import_plugin(plugin)
    data = config.data_config
    setting = _setting(data, files or LocalFiles(data_account(config)))
    if not config.feature_configs:
        raise FeatureConfigError("feature_configs is empty: a model needs at least one feature")
    generators = [made for entry in config.feature_configs for made in kinds.build(entry, setting)]
    generators = with_masks(generators, config)
    stubs = _stubs(config)
    if setting.bucketize:
        generators = [item for item in generators if item.feature.name not in stubs]
    made = [replace(item.feature, is_stub=item.feature.name in stubs) for item in generators]
    features = _grouped(made)
    _check_names(features, data)
    return FeatureSet(
        generators, features, data.label_fields, data.sample_weight_fields, connected=data.fg_mode == data_pb2.FG_DAG,
        sampler=SamplerOptions.from_proto(config), force_base=data.force_base_data_group,
    )  # fmt: skip


def _import_plugin(name: str) -> None:
    """Let a user's module register its kinds of features."""
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise FeatureConfigError(f"plugin {name!r} cannot be imported: {error}") from error


def _setting(data: data_pb2.DataConfig, files: Files) -> Setting:
    encoded = data.fg_mode == data_pb2.FG_NONE
    return Setting(
        encoded=encoded, multival_separator=data.fg_encoded_multival_sep or "\x03", read_bytes=files.read,
        read_text=lambda path: text_of(files.read(path)),
        farm_hash=data.use_farm_hash_to_bucketize,
        graph=data.fg_mode in (data_pb2.FG_DAG, data_pb2.FG_BUCKETIZE),
        bucketize=data.fg_mode == data_pb2.FG_BUCKETIZE,
    )  # fmt: skip


def _stubs(config: pipeline_pb2.EasyRecConfig) -> set[str]:
    """The names of the features that only others need."""
    found = set()
    for entry in config.feature_configs:
        for _, message in entry.ListFields():
            if not isinstance(message, feature_pb2.SequenceFeature):
                found.add(message.feature_name if getattr(message, "stub_type", False) else "")
                continue
            for member in message.features:
                for _, inner in member.ListFields():
                    name = f"{message.sequence_name}__{inner.feature_name}"
                    found.add(name if getattr(inner, "stub_type", False) else "")
    return found - {""}


def _grouped(features: list[Feature]) -> list[Feature]:
    """Weighted features, and those that share a table with one, have a data group of their own."""
    tables = {feature.embedding.name for feature in features if feature.is_weighted and feature.embedding}
    return [
        replace(feature, data_group=WEIGHTED) if feature.embedding and feature.embedding.name in tables else feature
        for feature in features
    ]


def _check_names(features: list[Feature], data: data_pb2.DataConfig) -> None:
    names = [feature.name for feature in features]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FeatureConfigError(f"feature names must be unique, {', '.join(map(repr, twice))} occur twice")
    targets = [*data.label_fields, *data.sample_weight_fields]
    if len(set(targets)) != len(targets):
        raise FeatureConfigError("label_fields and sample_weight_fields must not name a column twice")
    _check_tables(features)


def refuse_misfits(features: FeatureSet, data: data_pb2.DataConfig) -> None:
    """Raise FeatureConfigError where a feature cannot read a column as it is declared.

    Apart from building, since it loads what only those need who make batches.
    """
    try:
        schema = declared_schema(data)
    except SourceError as error:
        raise FeatureConfigError(str(error)) from None
    misfits = [] if schema is None else list(features.misfits(schema).values())
    if misfits:
        more = f"; and {len(misfits) - MOST_TOLD} more" if len(misfits) > MOST_TOLD else ""
        raise FeatureConfigError(f"{'; '.join(misfits[:MOST_TOLD])}{more} (data_config declares its type)")


def _check_tables(features: list[Feature]) -> None:
    """Features that share a table must agree on it."""
    tables: dict[str, Feature] = {}
    for feature in features:
        table = feature.embedding
        if table is None:
            continue
        other = tables.setdefault(table.name, feature)
        if other.embedding is None or other.embedding == table:
            continue
        if replace(other.embedding, pooling=table.pooling) != table:
            raise FeatureConfigError(
                f"features {other.name!r} and {feature.name!r} share table {table.name!r} but describe it differently"
            )
