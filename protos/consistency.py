"""What the fields of a configuration must say together; each contradiction names thing, value and remedy."""

from collections.abc import Iterator

from protos import data_rules, feature_rules, model_rules, train_rules
from protos.errors import ConfigError
from protos.findings import Finding
from protos.pipeline_pb2 import EasyRecConfig
from protos.sources import declared_columns


def contradictions(config: EasyRecConfig) -> tuple[Finding, ...]:
    """All that contradicts itself in `config`, in the order of its sections."""
    return tuple(_all(config))


def _all(config: EasyRecConfig) -> Iterator[Finding]:
    if not config.model_dir:
        yield Finding(path="model_dir", text='is not set; write model_dir: "/path/of/the/model"')
    try:
        declared_columns(config)
    except ConfigError as error:
        yield Finding(path="data_config.input_fields_str", text=error.detail, reason=error.reason)
        return  # what follows compares with the declared columns
    yield from train_rules.findings(config)
    yield from data_rules.findings(config)
    yield from feature_rules.findings(config)
    yield from model_rules.findings(config)
