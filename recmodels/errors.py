"""What the model layer raises.

RecModelError
├── ModelConfigError       the configuration asks for a model, loss, metric or optimizer that cannot be built
│   ├── UnknownModelError  no registered model has the name that the configuration gives
│   ├── LayoutError        feature groups or tables contradict each other or the features
│   └── ShardingError      a table cannot be laid out over the ranks as asked
├── StateError             a saved state does not fit the object that is to take it
│   └── TableRowsError     rows of the commit log do not fit the table
├── SealError              tables are sealed, confirmed or restored out of order
└── IdError                an id is outside its table
"""


class RecModelError(Exception):
    """Anything that the model layer refuses to do."""


class ModelConfigError(RecModelError, ValueError):
    """The configuration names something that cannot be built; the message says what and what to write instead."""


class UnknownModelError(ModelConfigError):
    """No registered model has this name."""


class StateError(RecModelError, ValueError):
    """A saved state does not fit the object that is to take it."""


class LayoutError(ModelConfigError):
    """Feature groups or tables contradict each other or the features."""


class ShardingError(ModelConfigError):
    """A table cannot be laid out over the ranks as asked."""


class TableRowsError(StateError):
    """Rows of the commit log do not fit the table that is to take them."""


class SealError(RecModelError, RuntimeError):
    """Tables were sealed, confirmed or restored out of order."""


class IdError(RecModelError, ValueError):
    """An id is outside its table: features must be validated before they are looked up."""
