"""The configuration of a command, and what a path on its command line makes of it."""

from headrace.errors import UsageError
from protos.checked import load_checked
from protos.data_pb2 import CsvDataset, KafkaDataset, OdpsDataset, ParquetDataset
from protos.kafka_uri import is_kafka_uri
from protos.pipeline_pb2 import EasyRecConfig
from protos.secrets import secret_part

__all__ = ["load_checked", "reading_from"]


def reading_from(config: EasyRecConfig, path: str) -> EasyRecConfig:
    """`config` with the data set type that `path` names, where the stream's own does not fit it.

    Who trains on a topic evaluates on files: `.parquet`, `.csv` (also compressed), `odps://` and `kafka://` say
    themselves what they are.
    """
    found = secret_part(path) if "://" in path else None
    if found is not None:
        raise UsageError(f"the input carries {found} in its URI; secrets are named by file in the configuration")
    kinds = {f".csv{packed}": CsvDataset for packed in ("", ".gz", ".bz2", ".zst", ".lz4")}
    kinds[".parquet"] = ParquetDataset
    kind = next((kind for suffix, kind in kinds.items() if path.endswith(suffix)), config.data_config.dataset_type)
    if is_kafka_uri(path):
        kind = KafkaDataset
    elif path.startswith("odps://"):
        kind = OdpsDataset
    elif path and kind == KafkaDataset:
        raise UsageError(
            f"{path} is no topic; write a path that ends in .parquet or .csv, an odps:// or a kafka:// path"
        )
    changed = EasyRecConfig()
    changed.CopyFrom(config)
    changed.data_config.dataset_type = kind
    return changed
