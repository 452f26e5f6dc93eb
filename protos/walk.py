"""Walk the fields that a message has set, with their paths."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message


@dataclass(frozen=True, kw_only=True, slots=True)
class SetField:
    """One set field: `path` as a person would write it, `owner` the message that holds it."""

    path: str
    owner: Message
    field: FieldDescriptor
    value: object


def set_fields(message: Message, prefix: str = "") -> Iterator[SetField]:
    """The set fields of `message` itself, in the order of their numbers; elements of a repeated message one by one."""
    for field, value in message.ListFields():
        name = f"[{field.full_name}]" if field.is_extension else field.name
        path = f"{prefix}.{name}" if prefix else name
        if field.is_repeated and field.message_type is not None and not is_map(field):
            for index, element in enumerate(value):
                yield SetField(path=f"{path}[{index}]", owner=message, field=field, value=element)
        else:
            yield SetField(path=path, owner=message, field=field, value=value)


def strings(message: Message, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every string below `message`, with its path."""
    for item in set_fields(message, prefix):
        if is_map(item.field) or isinstance(item.value, str):
            values = [item.value] if isinstance(item.value, str) else _map_strings(item.value)
            yield from ((item.path, value) for value in values)
        elif isinstance(item.value, Message):
            yield from strings(item.value, item.path)
        elif item.field.is_repeated:
            yield from ((item.path, value) for value in _elements(item.value) if isinstance(value, str))


def is_map(field: FieldDescriptor) -> bool:
    """Whether `field` is a `map<K, V>`."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _map_strings(value: object) -> list[str]:
    items = value.items() if isinstance(value, Mapping) else ()
    return [text for pair in items for text in pair if isinstance(text, str)]


def _elements(value: object) -> Iterator[object]:
    return iter(value) if isinstance(value, Sequence) else iter(())
