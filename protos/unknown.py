"""Errors about names that the schema does not have, with the nearest one that it has."""

from google.protobuf import descriptor_pool

from protos.errors import ConfigError, Reason
from protos.nearest import suggestion


def unknown_field(message: str, field: str, *, source: str, line: int | None) -> ConfigError:
    """Message `message` (a full name) has no field `field`."""
    owner = descriptor_pool.Default().FindMessageTypeByName(message)
    detail = f"{owner.name} has no field {field}; {suggestion(field, owner.fields_by_name)}"
    return ConfigError(detail, reason=Reason.UNKNOWN_FIELD, source=source, line=line)


def unknown_value(enum: str, value: str, *, source: str, line: int | None) -> ConfigError:
    """Enum `enum` (a full name) has no value `value`."""
    values = descriptor_pool.Default().FindEnumTypeByName(enum)
    detail = f"{values.name} has no value {value}; {suggestion(value, values.values_by_name)}"
    return ConfigError(detail, reason=Reason.BAD_VALUE, source=source, line=line)
