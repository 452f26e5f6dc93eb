"""What a feature kind builds: a generator of ids or numbers from columns, and what it is told when it is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

from features.columns import Columns
from features.elements import Tokens
from features.plain import Plain
from features.spec import Feature
from stream.row_errors import Faults


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """Ids of all rows, flat; `lengths` None means one id in every row."""

    values: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32] | None = None
    weights: npt.NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """float32, shape [rows] where the feature has one number, else [rows, dim]."""

    values: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Strings:
    """What a stub without a bucketizer hands to other features: tokens of all rows, flat."""

    values: Tokens
    lengths: npt.NDArray[np.int32] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """A sequence: `lengths` steps for each row, and what was made of each step as if it were a row."""

    made: Sparse | Dense | Strings
    lengths: npt.NDArray[np.int32]


Made = Sparse | Dense | Strings | Steps


class Generator(Protocol):
    """Computes one feature."""

    @property
    def feature(self) -> Feature:
        """What is computed."""
        ...

    @property
    def plain(self) -> Plain | None:
        """Set where an int64 or float32 column without nulls is the feature as it stands."""
        ...

    def generate(self, columns: Columns, faults: Faults | None) -> Made:
        """Compute the feature of all rows.

        With `faults`, only note the rows that cannot be used: what is returned means nothing. Without, all rows must
        have passed before. Raise ColumnTypeError where a column's type has no meaning.
        """
        ...

    def describe(self) -> dict[str, object]:
        """What the values depend on, as JSON: hash functions, buckets, boundaries, defaults."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """What the whole configuration says about generating features."""

    encoded: bool
    """FG_NONE: the columns are named after features and hold ids and numbers."""
    graph: bool = False
    """FG_DAG: `feature:` and `const:` inputs are no columns, and features may be stubs."""
    bucketize: bool = False
    """FG_BUCKETIZE: the columns are named after features and hold what is left to bucketize."""
    multival_separator: str
    read_text: Callable[[str], str]
    """Read a vocabulary file; raise OSError."""
    read_bytes: Callable[[str], bytes]
    """Read a tokenizer's model; raise OSError."""
    farm_hash: bool = False
    """Hash with FarmHash's Fingerprint64 instead of MurmurHash64A."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A kind of feature: `field` is its name in FeatureConfig, or the full name of a user's extension field."""

    field: str
    build: Callable[[Message, Setting], Generator]
