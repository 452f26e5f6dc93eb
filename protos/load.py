"""Read a pipeline configuration: text format, or JSON where the path ends in `.json`.

proto2's `required` is not enforced: whoever uses a field checks it. Parsing opens no file and no connection that the
configuration names; modules under `plugins` are imported first, since they register the extensions that it may use.
"""

import importlib
import logging
from pathlib import Path

from google.protobuf import text_format

from protos import json_text, plain_text
from protos.data_pb2 import FG_DAG, FG_NONE, FG_NORMAL, DataConfig, FgMode
from protos.errors import ConfigError, Reason
from protos.kafka_uri import fold_paths
from protos.pipeline_pb2 import EasyRecConfig
from protos.secrets import refuse_secrets

logger = logging.getLogger(__name__)


def load_config(path: str | Path) -> EasyRecConfig:
    """Read, parse and complete the configuration in `path`; ConfigError names file, line and remedy."""
    source = str(path)
    try:
        # Some editors begin UTF-8 with a mark.
        text = Path(path).read_text(encoding="utf-8").removeprefix("\ufeff")
    except OSError as error:
        detail = f"cannot be read: {error.strerror}; give the path of a pipeline configuration"
        raise ConfigError(detail, reason=Reason.FILE, source=source) from None
    except UnicodeDecodeError as error:
        detail = f"is not UTF-8 text (byte 0x{error.object[error.start]:02x} at {error.start}); save it as UTF-8"
        raise ConfigError(detail, reason=Reason.FILE, source=source) from None
    return parse_config(text, json=source.endswith(".json"), source=source)


def parse_config(text: str, *, json: bool, source: str = "") -> EasyRecConfig:
    """Parse `text` into a configuration whose compatible fields are resolved.

    >>> parse_config('model_dir: "m"', json=False).data_config.fg_mode == FG_NONE
    True
    """
    language = json_text if json else plain_text
    for module in language.plugins(text, source):
        _import_plugin(module, source)
    config = language.parse(text, source)
    refuse_secrets(config, source)
    config.data_config.fg_mode = resolve_fg_mode(config.data_config)
    return fold_paths(config, source)


def resolve_fg_mode(data: DataConfig) -> FgMode:
    """The mode that `fg_mode` names, unless the peer's older `fg_encoded` is set: it then wins."""
    if not data.HasField("fg_encoded"):
        return data.fg_mode
    if data.fg_encoded:
        return FG_NONE
    return FG_DAG if data.fg_threads > 0 else FG_NORMAL


def format_config(config: EasyRecConfig) -> str:
    """The text format of `config`, which `parse_config` reads back."""
    return text_format.MessageToString(config, as_utf8=True)


def _import_plugin(module: str, source: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError as error:
        detail = f"plugin {module!r} cannot be imported: {error}; install it, or put its folder on PYTHONPATH"
        raise ConfigError(detail, reason=Reason.PLUGIN, source=source) from error
    logger.debug("plugin imported module=%s", module)
