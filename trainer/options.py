"""What the trainer reads from a configuration, checked once."""

from dataclasses import dataclass

from protos.pipeline_pb2 import EasyRecConfig
from protos.sources import is_unbounded
from trainer.errors import TrainerConfigError
from trainer.marks import Marks

_SILENT_INTERVALS = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Cadence:
    """When a commit is due: every `steps` optimizer steps, or every `interval_ms` of the process clock.

    Steps make commit boundaries reproducible; the interval follows the clock. By steps, what was learnt is committed
    too when nothing has come for `silence_ms` (0: never), so that a stream that stops does not keep it back. Where
    commits lie changes no bit of what is learnt.

    >>> Cadence(interval_ms=500, steps=0).due(steps=3, elapsed_ms=499.0)
    False
    >>> Cadence(interval_ms=500, steps=3).due(steps=3, elapsed_ms=0.0)
    True
    >>> Cadence(interval_ms=500, steps=3, silence_ms=5000).due(steps=1, elapsed_ms=9000.0, silent_ms=5000.0)
    True
    """

    interval_ms: int
    steps: int
    silence_ms: int = 0

    def due(self, *, steps: int, elapsed_ms: float, silent_ms: float = 0.0) -> bool:
        """Whether a commit is due `steps` steps and `elapsed_ms` after the previous one, `silent_ms` after the last."""
        if self.steps:
            return steps >= self.steps or (steps > 0 and 0 < self.silence_ms <= silent_ms)
        # A clock that went back must not put commits off until it is there again.
        return self.interval_ms > 0 and steps > 0 and not 0 <= elapsed_ms < self.interval_ms


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainOptions:
    """Options of a run; a batch is `batch_size` rows per rank."""

    model_dir: str
    batch_size: int
    num_steps: int
    num_epochs: int
    cadence: Cadence
    marks: Marks
    log_every_steps: int
    tensorboard: bool
    summaries: tuple[str, ...]
    profile_dir: str
    clip_norm: float
    clip_value: float
    norm_type: float
    seed: int
    prefetch: int
    batch_threads: int  # at most; 0 and 1 are one
    in_step: bool  # ranks wait for each other's batches, which come or end: cut by count, from a bounded source
    drop_remainder: bool

    @classmethod
    def from_proto(cls, config: EasyRecConfig) -> "TrainOptions":
        """Read and check the options of `config`."""
        train, data, checkpoint = config.train_config, config.data_config, config.checkpoint_config
        if not config.model_dir:
            raise TrainerConfigError('model_dir is empty; set model_dir: "/path/of/the/model"')
        if not config.HasField("train_config") or not train.HasField("sparse_optimizer"):
            raise TrainerConfigError(
                "train_config.sparse_optimizer is not set; name one, e.g. rowwise_adagrad_optimizer"
            )
        if data.batch_size == 0:
            raise TrainerConfigError("data_config.batch_size is 0; set the rows of one batch of one rank")
        clip = train.grad_clipping
        kind = clip.clipping_type.lower() if train.HasField("grad_clipping") else "none"
        return cls(
            model_dir=config.model_dir,
            batch_size=data.batch_size,
            num_steps=train.num_steps,
            num_epochs=train.num_epochs,
            cadence=Cadence(
                interval_ms=checkpoint.commit_interval_ms,
                steps=checkpoint.commit_interval_steps,
                # Files are never silent, only slow.
                silence_ms=_SILENT_INTERVALS * checkpoint.commit_interval_ms if is_unbounded(config) else 0,
            ),
            marks=Marks.from_proto(train),
            log_every_steps=train.log_step_count_steps,
            tensorboard=train.use_tensorboard and "://" not in config.model_dir,
            summaries=tuple(train.tensorboard_summaries),
            profile_dir=f"{config.model_dir}/train_eval_trace" if train.is_profiling else "",
            clip_norm=clip.max_gradient if kind == "norm" else 0.0,
            clip_value=clip.max_gradient if kind == "value" else 0.0,
            norm_type=clip.norm_type,
            seed=config.seed,
            prefetch=config.stream_config.prefetch_batches,
            batch_threads=data.num_workers,
            in_step=not is_unbounded(config) and not config.stream_config.linger_ms,
            drop_remainder=data.drop_remainder,
        )
