"""What each field of a configuration means here: honoured, mapped, a no-op with a notice, or refused with the reason.

`dispositions.tsv` is the one table. Of the rows of a field the first that fits counts: `field=VALUE` fits that value
only, and `when` names a condition of this module. `*` stands for all fields of a message of which none is honoured.
"""

import enum
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct

from protos import consistency, kafka_uri
from protos.errors import ConfigError, Reason
from protos.feature_pb2 import CustomFeature, IdFeature
from protos.findings import Finding
from protos.model_rules import unread_features
from protos.pipeline_pb2 import EasyRecConfig
from protos.sources import brings_schema, is_unbounded, reads_kafka, reads_tables
from protos.walk import SetField, set_fields


class Disposition(enum.StrEnum):
    """What happens to a field that a configuration sets."""

    HONOURED = "honoured"
    MAPPED = "mapped"
    NO_OP = "no-op"
    REFUSED = "refused"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One row of the table; an empty `value` fits every value, an empty `when` always."""

    disposition: Disposition
    value: str
    when: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What a check found: with errors nothing runs; notices say what is taken otherwise than written."""

    errors: tuple[Finding, ...]
    notices: tuple[Finding, ...]

    def raise_for_errors(self, source: str = "") -> None:
        """Raise ConfigError with every error, one a line, when there are any."""
        if self.errors:
            detail = "\n  ".join(str(error) for error in self.errors)
            raise ConfigError(detail, reason=self.errors[0].reason, source=source)


def check(config: EasyRecConfig, *, device: str = "") -> Report:
    """Judge every set field of `config`, then what the fields say together.

    `device` is the type of the one that trains, cpu or cuda. Who does not know it gets no notices that depend on it;
    no error does.
    """
    found = [*_judge(Scene(config=config, device=device), config, ""), *_kafka_settings(config), *_unread(config)]
    errors = [finding for finding in found if finding.disposition == Disposition.REFUSED]
    notices = [finding for finding in found if finding.disposition != Disposition.REFUSED]
    return Report(errors=(*errors, *consistency.contradictions(config)), notices=tuple(notices))


def rules_of(message: str, field: str) -> tuple[Rule, ...]:
    """The rules of `field` of the message with that full name, in order; empty where the table knows none.

    >>> rules_of("headrace.protos.EasyRecConfig", "model_dir")[0].disposition
    <Disposition.HONOURED: 'honoured'>
    """
    table = _table()
    name = message.removeprefix("headrace.protos.")
    return table.get((name, field)) or table.get((name, "*"), ())


@functools.cache
def _table() -> dict[tuple[str, str], tuple[Rule, ...]]:
    table: dict[tuple[str, str], tuple[Rule, ...]] = {}
    text = resources.files("protos").joinpath("dispositions.tsv").read_text(encoding="utf-8")
    for line in text.splitlines()[2:]:
        message, name, disposition, when, reason = [*line.split("\t"), "", ""][:5]
        field, _, value = name.partition("=")
        rule = Rule(disposition=Disposition(disposition), value=value, when=when, reason=reason)
        table[message, field] = (*table.get((message, field), ()), rule)
    return table


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """What a condition looks at: all of the configuration, and the type of the device, where it is known."""

    config: EasyRecConfig
    device: str = ""


CONDITIONS: dict[str, Callable[[Scene, Message], bool]] = {
    "kafka": lambda scene, _: reads_kafka(scene.config),
    "odps": lambda scene, _: reads_tables(scene.config),
    "schema": lambda scene, _: brings_schema(scene.config),
    "zch": lambda _, owner: isinstance(owner, IdFeature | CustomFeature) and owner.HasField("zch"),
    "unbounded": lambda scene, _: is_unbounded(scene.config),
    "gpu": lambda scene, _: scene.device != "cpu",
    "gpu in fp16": lambda scene, _: scene.device != "cpu" and scene.config.train_config.mixed_precision == "FP16",
}


def _judge(scene: Scene, message: Message, prefix: str) -> Iterator[Finding]:
    told: set[int] = set()
    for item in set_fields(message, prefix):
        if item.field.is_extension:
            continue  # a user's own: whoever registered it judges it
        rule = _rule_for(scene, item)
        fine = rule.disposition == Disposition.HONOURED or _is_default(item, rule)
        if not fine and item.field.number not in told:
            told.add(item.field.number)  # of a repeated field once, not for each element
            yield Finding(
                path=item.path.removesuffix("[0]"),
                value=_shown(item),
                text=f"{_VERBS[rule.disposition]}: {rule.reason}",
                reason=Reason.REFUSED,
                disposition=rule.disposition,
            )
        goes_on = rule.disposition in (Disposition.HONOURED, Disposition.MAPPED)
        if goes_on and isinstance(item.value, Message) and not isinstance(item.value, Struct):
            yield from _judge(scene, item.value, item.path)


_VERBS = {Disposition.MAPPED: "is mapped", Disposition.NO_OP: "has no effect", Disposition.REFUSED: "is refused"}


def _rule_for(scene: Scene, item: SetField) -> Rule:
    rules = rules_of(item.owner.DESCRIPTOR.full_name, item.field.name)
    value = _value_name(item)
    for rule in rules:
        if rule.value in ("", value) and (not rule.when or CONDITIONS[rule.when](scene, item.owner)):
            return rule
    raise LookupError(f"dispositions.tsv has no row that fits {item.field.full_name}; add one")


def _value_name(item: SetField) -> str:
    if item.field.enum_type is not None and isinstance(item.value, int):
        return item.field.enum_type.values_by_number[item.value].name
    return item.value if isinstance(item.value, str) else ""


def _is_default(item: SetField, rule: Rule) -> bool:
    """Whether a scalar is set to what it would be anyway."""
    plain = item.field.message_type is None and not item.field.is_repeated
    return plain and not rule.value and bool(item.value == item.field.default_value)


def _shown(item: SetField) -> str:
    if item.field.message_type is not None or item.field.is_repeated:
        return ""
    name = _value_name(item)
    if item.field.type == FieldDescriptor.TYPE_STRING:
        return repr(name)
    return name or (str(item.value).lower() if isinstance(item.value, bool) else str(item.value))


def _unread(config: EasyRecConfig) -> Iterator[Finding]:
    if names := unread_features(config):
        text = "in no feature group: no model reads it, though it is made, and requests must bring its columns"
        yield Finding(
            path="feature_configs", value=", ".join(map(repr, names)), text=text, disposition=Disposition.NO_OP
        )


def _kafka_settings(config: EasyRecConfig) -> Iterator[Finding]:
    for name in ("train_input_path", "eval_input_path"):
        path = getattr(config, name)
        if not kafka_uri.is_kafka_uri(path):
            continue
        try:
            settings = kafka_uri.parse_kafka_uri(path).settings
        except ConfigError as error:
            yield Finding(path=name, text=error.detail, reason=error.reason)
            continue
        for key in settings:
            if key in kafka_uri.NO_OPS:
                text = f"has no effect: {kafka_uri.NO_OPS[key]}"
                where = f"{name}?{key}"
                yield Finding(path=where, value="", text=text, reason=Reason.REFUSED, disposition=Disposition.NO_OP)
