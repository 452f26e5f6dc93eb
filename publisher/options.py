"""What the publisher reads from a configuration, checked once."""

from dataclasses import dataclass

from checkpointer.due import DueOptions
from protos.pipeline_pb2 import EasyRecConfig
from protos.publish_pb2 import DenseRuntime, RowEncoding
from publisher.errors import PublisherConfigError
from publisher.gate import GateOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishOptions:
    """`encoding` is fp32, fp16, int8 or int4; `runtime` aot_inductor, torch_script or eager."""

    encoding: str = "fp32"
    runtime: str = "aot_inductor"
    gate: GateOptions = GateOptions()
    poll_s: float = 0.05
    notify_topic: str = ""
    signing_key_file: str = ""
    keep_versions: int = 20
    rebase_after_deltas: int = 64
    max_pending_bytes: int = 1 << 28
    max_commits_at_once: int = 64
    compaction: DueOptions = DueOptions()

    def __post_init__(self) -> None:
        if self.keep_versions < 2:
            raise PublisherConfigError(f"publish_config.keep_versions must be at least 2, got {self.keep_versions}")
        if self.rebase_after_deltas < 1:
            raise PublisherConfigError("publish_config.rebase_after_deltas must be at least 1, got 0")
        if self.poll_s <= 0.0:
            raise PublisherConfigError("publish_config.poll_interval_ms must be at least 1, got 0")

    @classmethod
    def from_proto(cls, config: EasyRecConfig) -> "PublishOptions":
        """Read and check `publish_config`."""
        publish = config.publish_config
        try:
            gate = GateOptions.from_proto(publish.gate)
        except ValueError as error:
            raise PublisherConfigError(f"publish_config.{error}") from None
        return cls(
            encoding=RowEncoding.Name(publish.row_encoding).lower(),
            runtime=DenseRuntime.Name(publish.dense_runtime).lower(),
            gate=gate,
            poll_s=publish.poll_interval_ms / 1000.0,
            notify_topic=publish.notify_topic,
            signing_key_file=publish.signing_key_file,
            keep_versions=publish.keep_versions,
            rebase_after_deltas=publish.rebase_after_deltas,
            compaction=DueOptions.from_proto(config.checkpoint_config),
        )
