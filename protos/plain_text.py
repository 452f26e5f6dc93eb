"""Configurations in protobuf's text format."""

import logging
import re

from google.protobuf import text_format

from protos.errors import ConfigError, Reason
from protos.pipeline_pb2 import EasyRecConfig
from protos.unknown import unknown_field, unknown_value

logger = logging.getLogger(__name__)

_PLACE = re.compile(r"^\d+:\d+ : ")
_FIELD = re.compile(r'Message type "(?P<owner>[\w.]+)" has no field named "(?P<name>[\w.]+)"')
_ENUM = re.compile(r'Enum type "(?P<owner>[\w.]+)" has no value (?:named|with number) (?P<name>[\w-]+)')
_EXTENSION = re.compile(r'Extension "(?P<name>[\w.]+)" not registered')
_TWICE = re.compile(r"should not have multiple|is specified along with field")


def skim(text: str) -> EasyRecConfig:
    """What of `text` can be read without its plugins; ParseError where it is no text format."""
    lenient = EasyRecConfig()
    text_format.Merge(text, lenient, allow_unknown_extension=True, allow_unknown_field=True)
    return lenient


def plugins(text: str, source: str) -> list[str]:
    """The modules that `text` asks to import first, whatever else it holds."""
    try:
        return list(skim(text).plugins)
    except text_format.ParseError:
        return []  # `parse` meets the same error and words it


def parse(text: str, source: str) -> EasyRecConfig:
    """Parse `text`; a field given twice keeps its last value, as in the peer, and is logged."""
    config = EasyRecConfig()
    try:
        return text_format.Parse(text, config)
    except text_format.ParseError as error:
        if not _TWICE.search(str(error)):
            raise _explained(error, source) from None
        logger.warning("config field given twice, the last value counts source=%s detail=%s", source, error)
    config.Clear()
    try:
        return text_format.Merge(text, config)
    except text_format.ParseError as error:
        raise _explained(error, source) from None


def _explained(error: text_format.ParseError, source: str) -> ConfigError:
    message = str(error)
    line = error.GetLine()
    if found := _FIELD.search(message):
        return unknown_field(found["owner"], found["name"], source=source, line=line)
    if found := _ENUM.search(message):
        return unknown_value(found["owner"], found["name"], source=source, line=line)
    if found := _EXTENSION.search(message):
        detail = f"extension {found['name']} is not known; name the module that registers it under plugins"
        return ConfigError(detail, reason=Reason.UNKNOWN_FIELD, source=source, line=line)
    reason = Reason.BAD_VALUE if re.search(r"Couldn't parse|out of range", message) else Reason.SYNTAX
    detail = "".join(c if c.isprintable() else repr(c)[1:-1] for c in _PLACE.sub("", message))
    return ConfigError(f"is not valid text format: {detail}", reason=reason, source=source, line=line)
