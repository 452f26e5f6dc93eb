"""What the model layer raises.

RecModelError
├── ModelConfigError       the configuration asks for a model, loss, metric or optimizer that cannot be built
│   └── UnknownModelError  no registered model has the name that the configuration gives
└── StateError             a saved state does not fit the object that is to take it
"""


class RecModelError(Exception):
    """Anything that the model layer refuses to do."""


class ModelConfigError(RecModelError, ValueError):
    """The configuration names something that cannot be built; the message says what and what to write instead."""


class UnknownModelError(ModelConfigError):
    """No registered model has this name."""


class StateError(RecModelError, ValueError):
    """A saved state does not fit the object that is to take it."""
