"""Rules for the model: its groups, the groups that each model needs, losses and metrics."""

from collections import Counter
from collections.abc import Iterable, Iterator

from protos.feature_members import members
from protos.findings import Finding
from protos.model_pb2 import ModelConfig
from protos.module_pb2 import WIDE
from protos.nearest import suggestion
from protos.pipeline_pb2 import EasyRecConfig


def findings(config: EasyRecConfig) -> Iterator[Finding]:
    """What contradicts itself about the model."""
    model = config.model_config
    own = any(field.is_extension for field, _ in model.ListFields())
    if model.WhichOneof("model") is None and not own:
        yield Finding(path="model_config", text="names no model; write deepfm { ... } or multi_tower { ... }")
    yield from _groups(config)
    yield from _needed_groups(model)
    yield from _widths(config)
    yield from _grouping(config)
    if not model.losses and not own:
        yield Finding(path="model_config.losses", text="is empty; write losses { binary_cross_entropy {} }")
    if model.num_class != 1 and any(loss.HasField("binary_cross_entropy") for loss in model.losses):
        text = "does not fit binary_cross_entropy; write 1"
        yield Finding(path="model_config.num_class", value=str(model.num_class), text=text)


def unread_features(config: EasyRecConfig) -> tuple[str, ...]:
    """The features that no group names, no feature is made of, and that are no stubs, which nobody expects in one."""
    model = config.model_config
    named = {name for group in model.feature_groups for name in group.feature_names}
    named |= {name for group in model.feature_groups for part in group.sequence_groups for name in part.feature_names}
    for member in members(config):
        texts = [text for _, some in member.expressions() for text in some]
        named |= {text.removeprefix("feature:") for text in texts if text.startswith("feature:")}
        if member.number("stub_type"):
            named.add(member.name)
    return tuple(name for name, _ in _features(config) if name not in named) if model.feature_groups else ()


def _groups(config: EasyRecConfig) -> Iterator[Finding]:
    kinds = {name: dense for name, dense in _features(config)}
    groups = config.model_config.feature_groups
    if not groups:
        yield Finding(path="model_config.feature_groups", text="is empty; the model needs features")
    for name, count in Counter(group.group_name for group in groups).items():
        if count > 1:
            text = f"is the name of {count} groups; rename all but one"
            yield Finding(path="model_config.feature_groups", value=repr(name), text=text)
    for index, group in enumerate(groups):
        path = f"model_config.feature_groups[{index}]"
        if not group.group_name:
            yield Finding(path=f"{path}.group_name", text="is not set; every group needs a name")
        where = f"(group {group.group_name!r})"
        if not group.feature_names and not group.sequence_groups:
            yield Finding(path=f"{path}.feature_names", value=where, text="is empty; name the features of the group")
        for feature, count in Counter(group.feature_names).items():
            if count > 1:
                text = f"holds {feature!r} {count} times; keep one"
                yield Finding(path=f"{path}.feature_names", value=where, text=text)
            if feature not in kinds:
                text = f"names feature {feature!r}, which does not exist; {suggestion(feature, kinds)}"
                yield Finding(path=f"{path}.feature_names", value=where, text=text)
            elif group.group_type == WIDE and kinds[feature]:
                text = f"is WIDE but {feature!r} has no table; bucketize it (boundaries), or use a DEEP group"
                yield Finding(path=f"{path}.feature_names", value=where, text=text)


def _features(config: EasyRecConfig) -> Iterator[tuple[str, bool]]:
    """Each feature's name and whether it is dense; kinds that are refused elsewhere count as sparse."""
    for feature in config.feature_configs:
        kind = feature.WhichOneof("feature")
        part = getattr(feature, kind) if kind is not None else None
        if part is not None and "feature_name" in part.DESCRIPTOR.fields_by_name:
            yield part.feature_name, kind == "raw_feature" and not part.boundaries
        elif part is not None:
            yield from ((f"{part.sequence_name}__{name}", False) for name in _inner_names(part.features))
        for extension, own in feature.ListFields():
            if extension.is_extension and "feature_name" in own.DESCRIPTOR.fields_by_name:
                yield own.feature_name, False


def _inner_names(features: object) -> Iterator[str]:
    for inner in features if isinstance(features, Iterable) else ():
        kind = inner.WhichOneof("feature")
        if kind is not None:
            yield getattr(inner, kind).feature_name


def _needed_groups(model: ModelConfig) -> Iterator[Finding]:
    names = {group.group_name: group.group_type for group in model.feature_groups}
    kind = model.WhichOneof("model")
    if kind == "deepfm":
        for need in ("wide", "deep"):
            if need not in names:
                text = f"needs a feature group {need!r}; {suggestion(need, names)}"
                yield Finding(path="model_config.deepfm", text=text)
        if names.get("wide", WIDE) != WIDE:
            text = "must be WIDE; write group_type: WIDE"
            yield Finding(path="model_config.feature_groups", value="'wide'", text=text)
    if kind == "multi_tower":
        for index, tower in enumerate(model.multi_tower.towers):
            if tower.input not in names:
                text = f"is no feature group; {suggestion(tower.input, names)}"
                path = f"model_config.multi_tower.towers[{index}].input"
                yield Finding(path=path, value=repr(tower.input), text=text)
        if not model.multi_tower.towers:
            yield Finding(path="model_config.multi_tower.towers", text="is empty; give at least one tower")


def _grouping(config: EasyRecConfig) -> Iterator[Finding]:
    """Metrics and losses that group rows do it by the first id of a sparse feature."""
    sparse = {name for name, dense in _features(config) if not dense}
    model = config.model_config
    named = [
        (f"losses[{i}].jrc_loss.session_name", loss.jrc_loss.session_name, loss.HasField("jrc_loss"))
        for i, loss in enumerate(model.losses)
    ]
    for index, metric in enumerate(model.metrics):
        kind = metric.WhichOneof("metric")
        if kind in ("grouped_auc", "grouped_xauc"):
            named.append((f"metrics[{index}].{kind}.grouping_key", getattr(metric, kind).grouping_key, True))
    for path, name, asked in named:
        if asked and name not in sparse:
            text = f"is no feature with ids; {suggestion(name, sparse)}"
            yield Finding(path=f"model_config.{path}", value=repr(name), text=text)


def _widths(config: EasyRecConfig) -> Iterator[Finding]:
    """The factorization machine multiplies embeddings with one another: their dimensions must be equal."""
    model = config.model_config
    if model.WhichOneof("model") != "deepfm":
        return
    named = {group.group_name: group for group in model.feature_groups}
    group = named.get("fm") or named.get("deep")
    if group is None:
        return
    dims: dict[int, str] = {}
    for feature in config.feature_configs:
        kind = feature.WhichOneof("feature")
        part = getattr(feature, kind) if kind in ("id_feature", "raw_feature") else None
        if part is not None and part.feature_name in group.feature_names:
            dense = kind == "raw_feature" and not part.boundaries
            dims.setdefault(part.value_dim if dense else part.embedding_dim, part.feature_name)
    if len(dims) > 1:
        shown = ", ".join(f"{name} has {dim}" for dim, name in sorted(dims.items()))
        text = f"needs equal dimensions in group {group.group_name!r}: {shown}; make them equal, or add a group 'fm'"
        yield Finding(path="model_config.deepfm", text=text)
