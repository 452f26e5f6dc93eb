"""Configurations in protobuf's JSON mapping."""

import json
import re

from google.protobuf import json_format

from protos.errors import ConfigError, Reason
from protos.pipeline_pb2 import EasyRecConfig
from protos.unknown import unknown_field, unknown_value

_FIELD = re.compile(r'Message type "(?P<owner>[\w.]+)" has no field named "(?P<name>[^"]+)"')
_ENUM = re.compile(r"Invalid enum value (?P<name>\S+) for enum type (?P<owner>[\w.]+?)(?: at|\.*$)")
_LEADING = re.compile(r"^(?:Failed to (?:load JSON|parse \w+ field): )+")
_JSON_LINE = re.compile(r"line (\d+) column")


def plugins(text: str, source: str) -> list[str]:
    """The modules that `text` asks to import first, whatever else it holds."""
    try:
        document = json.loads(text)
    except ValueError:
        return []  # `parse` meets the same error and words it
    named = document.get("plugins", []) if isinstance(document, dict) else []
    return [name for name in named if isinstance(name, str)] if isinstance(named, list) else []


def parse(text: str, source: str) -> EasyRecConfig:
    """Parse `text`; names may be the proto's or JSON's camel case."""
    try:
        return json_format.Parse(text, EasyRecConfig())
    except json_format.ParseError as error:
        raise _explained(str(error), text, source) from None


def _explained(message: str, text: str, source: str) -> ConfigError:
    if found := _FIELD.search(message):
        line = _only_line(text, found["name"])
        return unknown_field(found["owner"], found["name"], source=source, line=line)
    if found := _ENUM.search(message):
        line = _only_line(text, found["name"])
        return unknown_value(found["owner"], found["name"], source=source, line=line)
    place = _JSON_LINE.search(message)
    line = int(place[1]) if place else None
    reason = Reason.SYNTAX if message.startswith("Failed to load JSON") else Reason.BAD_VALUE
    detail = _LEADING.sub("", message).splitlines()[0].rstrip(".")
    field = re.search(r"Failed to parse (\w+) field: (?!Failed)", message)
    if field:
        detail = f"{field[1]}: {detail}"
        line = _only_line(text, field[1])
    return ConfigError(f"is not a valid configuration: {detail}", reason=reason, source=source, line=line)


def _only_line(text: str, word: str) -> int | None:
    """The line of the one place where `word` stands quoted; None where it stands in several."""
    lines = [number for number, line in enumerate(text.splitlines(), start=1) if f'"{word}"' in line]
    return lines[0] if len(lines) == 1 else None
