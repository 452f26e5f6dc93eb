"""What a configuration says about its sampler, turned once into a frozen value."""

from __future__ import annotations

from dataclasses import dataclass

from features.errors import FeatureConfigError
from protos import data_pb2, pipeline_pb2

Scalar = (
    data_pb2.NegativeSampler
    | data_pb2.NegativeSamplerV2
    | data_pb2.HardNegativeSampler
    | data_pb2.HardNegativeSamplerV2
)
Message = Scalar | data_pb2.TDMSampler

PROBABILITIES = ("UNIFORM", "ARITHMETIC", "RECIPROCAL")


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidates:
    """The grouped sequence whose items are the positives; negatives are appended to its last row."""

    sequence: str
    delimiter: str

    @property
    def prefix(self) -> str:
        """Of its columns."""
        return f"{self.sequence}__"


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplerOptions:
    """One sampler. Paths that it does not have are empty; `num_eval_sample` None: as in training."""

    kind: str  # the name of the field of data_config
    item_path: str
    user_path: str = ""
    positive_path: str = ""
    hard_path: str = ""
    edge_path: str = ""
    num_sample: int = 0
    num_eval_sample: int | None = None
    num_hard_sample: int = 0
    attributes: tuple[str, ...]
    item_id: str
    user_id: str = ""
    attr_delimiter: str = ":"
    field_delimiter: str = "\t"
    layers: tuple[int, ...] = ()
    remain_ratio: float = 1.0
    probability: str = "UNIFORM"
    candidates: Candidates | None = None

    @property
    def expands(self) -> bool:
        """Whether sampled rows are rows of the batch (TDM), instead of more items beside it."""
        return self.kind == "tdm_sampler"

    @property
    def columns(self) -> tuple[str, ...]:
        """What must be read of each row."""
        return tuple(name for name in (self.item_id, self.user_id) if name)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The columns of the batch that the attributes extend."""
        prefix = "" if self.candidates is None else self.candidates.prefix
        return tuple(prefix + name for name in self.attributes)

    def asked(self, evaluating: bool) -> int:
        """How many negatives a batch has."""
        return self.num_eval_sample if evaluating and self.num_eval_sample is not None else self.num_sample

    @classmethod
    def from_proto(cls, config: pipeline_pb2.EasyRecConfig) -> SamplerOptions | None:
        """The configured sampler, None where there is none; raise FeatureConfigError. Reads no file."""
        kind = config.data_config.WhichOneof("sampler")
        if kind is None:
            return None
        message: Message = getattr(config.data_config, kind)
        if not message.item_id_field:
            raise FeatureConfigError(f"{kind}: item_id_field is not set; name the column that holds the item's id")
        for name in ("attr_delimiter", "field_delimiter"):
            if message.HasField(name) and not getattr(message, name):
                raise FeatureConfigError(f"{kind}: {name} is empty; leave it out for the default")
        if isinstance(message, data_pb2.TDMSampler):
            return _tdm(message)
        return _scalar(kind, message, _candidates(config, kind, message.item_id_field))


def _scalar(kind: str, message: Scalar, candidates: Candidates | None) -> SamplerOptions:
    plain = isinstance(message, data_pb2.NegativeSampler)
    given = {field.name: value for field, value in message.ListFields()}

    def text(name: str) -> str:
        return str(given.get(name, ""))

    if not plain and not text("user_id_field"):
        raise FeatureConfigError(f"{kind}: user_id_field is not set; name the column that holds the user's id")
    return SamplerOptions(
        kind=kind,
        item_path=text("input_path" if plain else "item_input_path"),
        user_path=text("user_input_path"),
        positive_path=text("pos_edge_input_path"),
        hard_path=text("hard_neg_edge_input_path"),
        num_sample=message.num_sample,
        num_eval_sample=message.num_eval_sample if message.HasField("num_eval_sample") else None,
        num_hard_sample=int(given.get("num_hard_sample", 0)),
        attributes=tuple(message.attr_fields),
        item_id=message.item_id_field,
        user_id=text("user_id_field"),
        attr_delimiter=message.attr_delimiter,
        field_delimiter=message.field_delimiter or "\t",
        candidates=candidates,
    )


def _tdm(message: data_pb2.TDMSampler) -> SamplerOptions:
    layers = tuple(message.layer_num_sample)
    if len(layers) < 2 or layers[0] != 0:
        raise FeatureConfigError(
            f"tdm_sampler: layer_num_sample must begin with 0 (the root has no negatives) and name every level of the "
            f"tree, got {list(layers)}"
        )
    if not 0 <= message.remain_ratio <= 1:
        raise FeatureConfigError(f"tdm_sampler: remain_ratio must be in 0 ... 1, got {message.remain_ratio:g}")
    if message.probability_type not in PROBABILITIES:
        raise FeatureConfigError(
            f"tdm_sampler: probability_type {message.probability_type!r} is none of {', '.join(PROBABILITIES)}"
        )
    first = [name for name in ("tree_level", message.item_id_field) if name not in message.attr_fields]
    return SamplerOptions(
        kind="tdm_sampler",
        item_path=message.item_input_path,
        edge_path=message.edge_input_path,
        attributes=(*first, *message.attr_fields),
        item_id=message.item_id_field,
        attr_delimiter=message.attr_delimiter,
        field_delimiter=message.field_delimiter or "\t",
        layers=layers,
        remain_ratio=message.remain_ratio,
        probability=message.probability_type,
    )


def _candidates(config: pipeline_pb2.EasyRecConfig, kind: str, item_id: str) -> Candidates | None:
    """The grouped sequence that the item id belongs to."""
    for entry in config.feature_configs:
        if not entry.HasField("sequence_feature"):
            continue
        sequence = entry.sequence_feature
        if item_id.startswith(f"{sequence.sequence_name}__"):
            return Candidates(sequence=sequence.sequence_name, delimiter=sequence.sequence_delim or ";")
    for entry in config.feature_configs:
        for field, message in entry.ListFields():
            expression = getattr(message, "expression", "")
            is_sequence = field.name.startswith("sequence_") and field.name != "sequence_feature"
            if is_sequence and isinstance(expression, str) and expression.partition(":")[2] == item_id:
                raise FeatureConfigError(
                    f"{kind}: item_id_field {item_id!r} is a sequence outside a group; use a sequence_feature"
                )
    return None
