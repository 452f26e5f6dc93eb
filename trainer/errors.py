"""Errors of the trainer.

TrainerError
├── TrainerConfigError   the configuration cannot be trained
├── RestoreError         a commit does not fit this model
└── WorkerError          another rank failed, or its answer did not come in time
"""

from checkpointer.errors import CheckpointError
from features.errors import FeatureError
from protos.errors import ConfigError
from recmodels.errors import RecModelError
from stream.errors import StreamError


class TrainerError(Exception):
    """Root of the trainer's errors."""


class TrainerConfigError(TrainerError):
    """The configuration cannot be trained as it stands."""


class RestoreError(TrainerError):
    """A commit cannot be restored into this model."""


class WorkerError(TrainerError):
    """Another rank failed, or its answer did not come in time."""


EXPECTED = (TrainerError, ConfigError, StreamError, FeatureError, RecModelError, CheckpointError)
"""What a trainer process reports in one line; anything else is a defect and shows its traceback."""
