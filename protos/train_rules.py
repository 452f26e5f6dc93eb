"""What `train_config` must say to mean something."""

from collections.abc import Iterator

from protos.findings import Finding
from protos.nearest import suggestion
from protos.pipeline_pb2 import EasyRecConfig

# Loss and learning rate are always drawn; naming them changes nothing.
SUMMARIES = frozenset({"loss", "learning_rate", "parameter", "global_gradient_norm", "gradient_norm", "gradient"})


def findings(config: EasyRecConfig) -> Iterator[Finding]:
    """What contradicts itself about training."""
    train = config.train_config
    for name in train.tensorboard_summaries:
        if name not in SUMMARIES:
            text = f"is no summary; {suggestion(name, SUMMARIES)}"
            yield Finding(path="train_config.tensorboard_summaries", value=repr(name), text=text)
    quorum = train.save_checkpoints_timestamp_quorum
    if not 0 < quorum <= 1:
        text = "is no share of the ranks; write a number above 0, at most 1"
        yield Finding(path="train_config.save_checkpoints_timestamp_quorum", value=f"{quorum:g}", text=text)
    if train.fine_tune_ckpt_param_map and not train.fine_tune_checkpoint:
        text = "maps names of a fine_tune_checkpoint, which is not set"
        yield Finding(path="train_config.fine_tune_ckpt_param_map", text=text)
    if train.is_profiling and "://" in config.model_dir:
        text = "writes its trace into a local model_dir; set is_profiling: false"
        yield Finding(path="train_config.is_profiling", value="true", text=text)
