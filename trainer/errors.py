"""Errors of the trainer.

TrainerError
├── TrainerConfigError   the configuration cannot be trained
├── RestoreError         a commit does not fit this model
├── DivergedError        the loss is not finite any more
└── WorkerError          another rank failed, or its answer did not come in time
"""


class TrainerError(Exception):
    """Root of the trainer's errors."""


class TrainerConfigError(TrainerError):
    """The configuration cannot be trained as it stands."""


class RestoreError(TrainerError):
    """A commit cannot be restored into this model."""


class DivergedError(TrainerError):
    """The loss is not finite; nothing of that step was learnt."""


class WorkerError(TrainerError):
    """Another rank failed, or its answer did not come in time."""
