"""What can go wrong in features.

FeatureError
├── FeatureConfigError       the configuration describes no feature that can be built
├── SamplerError             a sampler's files cannot be read, or say something that has no meaning
├── OperatorError            a user's own operator failed
├── RepeatError              what the rows of a request hold is too much for all of them at once
└── ColumnTypeError          a column's type has no meaning for its feature; validate() reports it row by row
"""

from __future__ import annotations


class FeatureError(Exception):
    """Any error of this package."""


class FeatureConfigError(FeatureError):
    """The configuration describes no feature that can be built."""


class ColumnTypeError(FeatureError):
    """A column's type has no meaning for its feature."""


class RepeatError(FeatureError):
    """What the rows of a request hold is too much for all of them at once; `column` is what holds it."""

    def __init__(self, column: str, what: str) -> None:
        super().__init__(f"{column!r} {what}; send fewer rows at once")
        self.column = column


class OperatorError(FeatureError):
    """A user's own operator failed."""


class SamplerError(FeatureError):
    """A sampler's files cannot be read, or say something that has no meaning."""
