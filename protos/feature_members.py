"""The features of a configuration, of whatever kind and wherever they stand, and the columns that they read."""

from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf.message import Message

from protos.data_pb2 import FG_BUCKETIZE, FG_DAG, FG_NONE
from protos.feature_pb2 import SequenceFeature
from protos.pipeline_pb2 import EasyRecConfig

INPUTS = {
    "id_feature": ("expression",),
    "raw_feature": ("expression",),
    "combo_feature": ("expression",),
    "combine_feature": ("expression",),
    "lookup_feature": ("map", "key"),
    "match_feature": ("nested_map", "pkey", "skey"),
    "expr_feature": ("variables",),
    "overlap_feature": ("query", "title"),
    "tokenize_feature": ("expression",),
    "kv_dot_product": ("query", "document"),
    "bool_mask_feature": ("expression",),
    "custom_feature": ("expression",),
}
"""The fields of each kind that say side:column."""

_EVERY_KEY = "ALL"
"""What `pkey` or `skey` of a match feature says instead of a column."""

_SINGLE_INPUT = ("id_feature", "raw_feature", "tokenize_feature", "combine_feature")
_SEQUENCE = "sequence_"


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One feature: `kind` is its field without "sequence_", `group` the grouped sequence that it is in, if any."""

    path: str
    kind: str
    message: Message
    group: str = ""
    is_sequence: bool = False

    @property
    def name(self) -> str:
        """What the rest of the configuration calls it."""
        return f"{self.group}__{self.text('feature_name')}" if self.group else self.text("feature_name")

    def has(self, field: str) -> bool:
        """Whether its message has such a field."""
        return field in self.message.DESCRIPTOR.fields_by_name

    def text(self, field: str) -> str:
        """A field that is a string; "" where there is none."""
        return str(getattr(self.message, field)) if self.has(field) else ""

    def texts(self, field: str) -> tuple[str, ...]:
        """A field of one string or several."""
        value = getattr(self.message, field, ())
        return (value,) if isinstance(value, str) else tuple(value)

    def expressions(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each field that says side:column, and what it says."""
        for field in INPUTS[self.kind]:
            texts = self.texts(field)
            if field not in ("pkey", "skey") or texts != (_EVERY_KEY,):
                yield field, texts

    def number(self, field: str) -> int:
        """A field that is an integer or a flag; 0 where there is none."""
        return int(getattr(self.message, field)) if self.has(field) else 0

    def numbers(self, field: str) -> tuple[float, ...]:
        """A field of numbers."""
        return tuple(getattr(self.message, field, ()))

    def nested(self, field: str, inner: str) -> int | None:
        """An integer of a message that is set; None where it is not."""
        if not self.has(field) or not self.message.HasField(field):
            return None
        return int(getattr(getattr(self.message, field), inner))

    def set_fields(self) -> tuple[str, ...]:
        """The names of the fields that are set, by number."""
        return tuple(field.name for field, _ in self.message.ListFields())


def members(config: EasyRecConfig) -> Iterator[Member]:
    """All features of our kinds; those of a user's own are judged by whoever registered them."""
    for index, entry in enumerate(config.feature_configs):
        kind, path = entry.WhichOneof("feature"), f"feature_configs[{index}]"
        if kind is None:
            continue
        message = getattr(entry, kind)
        if not isinstance(message, SequenceFeature):
            bare = kind.removeprefix(_SEQUENCE)
            yield Member(path=f"{path}.{kind}", kind=bare, message=message, is_sequence=bare != kind)
            continue
        for at, member in enumerate(message.features):
            inner = member.WhichOneof("feature")
            if inner is not None:
                yield Member(
                    path=f"{path}.{kind}.features[{at}].{inner}", kind=inner, message=getattr(member, inner),
                    group=message.sequence_name, is_sequence=True,
                )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Read:
    """A column that a feature reads: `field` names it, as input number `at`; `stepped`: it holds a sequence."""

    field: str
    at: int
    column: str
    stepped: bool


def columns_read(config: EasyRecConfig, member: Member) -> Iterator[Read]:
    """Each column of the rows that a feature reads."""
    mode = config.data_config.fg_mode
    if mode in (FG_NONE, FG_BUCKETIZE):
        if not member.number("stub_type"):
            yield Read(field="feature_name", at=0, column=member.name, stepped=member.is_sequence)
        return
    inputs = [(field, text.partition(":")) for field, texts in member.expressions() for text in texts]
    named = set(member.texts("sequence_fields"))
    single = member.kind in _SINGLE_INPUT or len(inputs) == 1
    for at, (field, (side, _, column)) in enumerate(inputs):
        if mode == FG_DAG and side in ("feature", "const"):
            continue
        by_side = side == "item" or (single and side != "feature")
        stepped = member.is_sequence and (column in named if named else by_side)
        prefixed = f"{member.group}__{column}" if member.group and stepped else column
        yield Read(field=field, at=at, column=prefixed, stepped=stepped)
