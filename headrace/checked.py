"""Load a configuration for a command: errors stop it, notices are logged."""

import logging

from protos.dispositions import check
from protos.load import load_config
from protos.pipeline_pb2 import EasyRecConfig

logger = logging.getLogger(__name__)


def load_checked(path: str) -> EasyRecConfig:
    """The configuration in `path`; raise ConfigError when it has errors."""
    config = load_config(path)
    report = check(config)
    report.raise_for_errors(path)
    for notice in report.notices:
        logger.warning("config notice source=%s %s", path, notice)
    return config
