"""Load a configuration for a process: errors stop it, notices are logged."""

import logging

from protos.dispositions import check
from protos.load import load_config
from protos.pipeline_pb2 import EasyRecConfig

logger = logging.getLogger(__name__)


def load_checked(path: str, *, notices: bool = True, device: str = "") -> EasyRecConfig:
    """The configuration in `path`; raise ConfigError when it has errors.

    Without `notices` another process that loads the same file says them. `device` is the type of the one that trains,
    where it is known.
    """
    config = load_config(path)
    report = check(config, device=device)
    report.raise_for_errors(path)
    for notice in report.notices if notices else ():
        logger.warning("config notice source=%s %s", path, notice)
    return config
