"""Operators of custom features: the built-in ones, and users' own in Python (feature_generation.md 3.8)."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.json_format import MessageToDict
from rapidfuzz.distance import Levenshtein

from features.errors import FeatureConfigError
from protos import feature_pb2

Parameters = Mapping[str, object]
Result = list[str] | list[float] | list[list[float]]


class Operator(Protocol):
    """A user's own operator, in Python: made of `operator_params`, then called with rows.

    `operator_lib_file` names it as module:name, e.g. "acme.operators:PriceGap".
    """

    def __call__(self, *inputs: Sequence[str]) -> Result:
        """One text, number, or list of `value_dim` numbers for each row; an input has the rows' texts.

        Rows are distinct within a batch, and none has a missing input. Where it raises, it is called with fewer: only
        the rows that make it raise are bad.
        """
        ...


@runtime_checkable
class Described(Protocol):
    """An operator that says more of what its results depend on than its parameters do: a version, a word list."""

    def describe(self) -> Mapping[str, object]:
        """JSON, for the digest."""
        ...


SEQUENCE_FORMULA: Final = "SeqExpr"
LIBRARIES: Final = {
    "pyfg/lib/libedit_distance.so": "EditDistance",
    "pyfg/lib/libregex_replace.so": "RegexReplace",
    "pyfg/lib/libseq_expr.so": SEQUENCE_FORMULA,
}
"""What the peer's configurations call its built-in operators, which are ours too."""


class EditDistance:
    """Levenshtein's distance of two texts, over characters (utf-8) or bytes (latin, the default)."""

    def __init__(self, parameters: Parameters) -> None:
        """Raise ValueError for an unknown encoding."""
        encoding = parameters.get("encoding", "latin")
        if encoding not in ("utf-8", "utf8", "latin"):
            raise ValueError(f"encoding {encoding!r} must be utf-8 or latin")
        self._bytes = encoding == "latin"

    def __call__(self, *inputs: Sequence[str]) -> Result:
        first, second = inputs
        if self._bytes:
            return [float(Levenshtein.distance(a.encode(), b.encode())) for a, b in zip(first, second, strict=True)]
        return [float(Levenshtein.distance(a, b)) for a, b in zip(first, second, strict=True)]


class RegexReplace:
    r"""Replace what RE2 patterns match; \1 stands for the first group.

    >>> RegexReplace({"regex_pattern": "[^0-9]", "replacement": ""})(["id7"])
    ['7']
    """

    def __init__(self, parameters: Parameters) -> None:
        """Raise ValueError for a pattern that cannot be read."""
        # "regex_patten" is how the peer's documentation spells it.
        given = parameters.get("regex_pattern", parameters.get("regex_patten"))
        patterns = [given] if isinstance(given, str) else given
        if not isinstance(patterns, list) or not patterns or not all(isinstance(item, str) for item in patterns):
            raise ValueError("regex_pattern must be a pattern or a list of them")
        joined = patterns[0] if len(patterns) == 1 else "|".join(f"(?:{pattern})" for pattern in patterns)
        self._pattern = f"(?i){joined}" if parameters.get("icase") else joined
        self._replacement = str(parameters.get("replacement", ""))
        self._most = None if parameters.get("replace_all", True) else 1
        self(["x"])

    def __call__(self, *inputs: Sequence[str]) -> Result:
        (texts,) = inputs
        try:
            made = pc.replace_substring_regex(
                pa.array(texts, pa.large_string()),
                pattern=self._pattern,
                replacement=self._replacement,
                max_replacements=self._most,
            )
        except pa.ArrowInvalid as error:
            raise ValueError(str(error)) from error
        replaced: list[str] = made.to_pylist()
        return replaced


_BUILT_IN: Final[Mapping[str, tuple[int, type[EditDistance] | type[RegexReplace]]]] = {
    "EditDistance": (2, EditDistance),
    "RegexReplace": (1, RegexReplace),
}


def operator_name(message: feature_pb2.CustomFeature) -> str:
    """The built-in operator that is meant, or "" for a user's own; raise FeatureConfigError for another library."""
    name, library = message.operator_name, message.operator_lib_file
    if ":" in library and not library.endswith(".so"):
        return ""
    known = LIBRARIES.get(library)
    if library not in ("", *LIBRARIES):
        raise FeatureConfigError(
            f"feature {message.feature_name!r}: operator_lib_file {library!r} is no built-in library "
            f"({', '.join(LIBRARIES)}); compiled operators cannot be loaded: write it in Python, as module:name"
        )
    if name not in LIBRARIES.values() or (known is not None and known != name):
        raise FeatureConfigError(
            f"feature {message.feature_name!r}: operator {name!r} is not in {library or 'the built-in libraries'}; "
            f"there are {', '.join(LIBRARIES.values())}"
        )
    return name


def parameters_of(message: feature_pb2.CustomFeature) -> dict[str, object]:
    """`operator_params`."""
    found: dict[str, object] = MessageToDict(message.operator_params)
    return found


def read_operator(message: feature_pb2.CustomFeature, inputs: int) -> Operator:
    """Make an operator that is no formula; raise FeatureConfigError."""
    name, built_in = message.feature_name, operator_name(message)
    try:
        if not built_in:
            return _own(message)
        wanted, make = _BUILT_IN[built_in]
        if inputs != wanted:
            raise ValueError(f"{built_in} takes {wanted} inputs, not {inputs}")
        return make(parameters_of(message))
    except ValueError as error:
        raise FeatureConfigError(f"feature {name!r}: operator {message.operator_name!r}: {error}") from error


def _own(message: feature_pb2.CustomFeature) -> Operator:
    module, _, attribute = message.operator_lib_file.partition(":")
    try:
        make = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{message.operator_lib_file!r} cannot be imported: {error}") from error
    try:
        operator: Operator = make(parameters_of(message))
    except Exception as error:  # it is users' code, which may raise anything
        raise ValueError(f"{message.operator_lib_file!r} cannot be made: {type(error).__name__}: {error}") from error
    return operator


def as_numbers(result: Result, rows: int, dim: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """[rows, dim]; raise ValueError where the operator gave something else."""
    made = np.asarray(result, np.float64).reshape(rows, -1) if rows else np.empty((0, dim))
    if made.shape != (rows, dim):
        raise ValueError(f"the operator gave {made.shape} numbers, {(rows, dim)} were expected")
    return made
