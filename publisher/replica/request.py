"""Request tensors to Arrow rows, the columns that the features read.

A scalar column `c` is one tensor `c` of shape [N] or [N, 1]; [N, k] gives lists of k. Ragged columns are several:

    c.values  c.lengths                  list: `lengths` values for each row
    c.values  c.lengths  c.key_lengths   list of lists: `lengths` steps for each row, `key_lengths` values for each step
    c.keys    c.values   c.lengths       map: `lengths` entries for each row
    c.values  c.weights  c.lengths       map of values to their weights
    c.nulls                              BOOL[N]: rows without a value, beside any of the above

A column that holds the user's values for all features may have one row for N items. Where all of them have, that row
stays apart, so that the user's features are made, and looked up, once (architecture.md section 4, Batch); else what has
one row is repeated.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from features.errors import RepeatError
from features.tiling import MOST_REPEATED
from publisher.replica.errors import RequestError, bad_input, quoted
from publisher.replica.protocol import Tensor
from stream.projection import cast, castable
from stream.row_errors import describe

_PARTS: Final = ("values", "lengths", "key_lengths", "keys", "weights", "nulls")
_FORMS: Final = (
    frozenset({"values", "lengths"}),
    frozenset({"values", "lengths", "key_lengths"}),
    frozenset({"values", "lengths", "keys"}),
    frozenset({"values", "lengths", "weights"}),
)
_INTEGERS: Final = frozenset({"INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"})


@dataclass(frozen=True, kw_only=True, slots=True)
class InputColumn:
    """A column that requests carry; `user` columns may have one row for N items."""

    name: str
    user: bool
    type: pa.DataType | None = None
    """As declared; None: whatever the client sends, as in training."""
    features: tuple[str, ...] = ()
    """Those that read it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """The rows of a request; `user` is the one row of the user's columns, where `items` lack those."""

    items: pa.RecordBatch
    user: pa.RecordBatch | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Column:
    """The tensors of one column, by part; a scalar column has the part ""."""

    name: str
    parts: Mapping[str, Tensor]

    @property
    def rows(self) -> int:
        """As many as the tensor that has one entry a row says."""
        tensor = self.parts.get("") or self.parts.get("lengths")
        return tensor.shape[0] if tensor else 0


def to_rows(inputs: Mapping[str, Tensor], columns: Iterable[InputColumn], max_rows: int) -> Rows:
    """Turn the tensors of a request into rows; a request without rows, or with more than `max_rows`, is refused."""
    wanted = {column.name: column for column in columns}
    given = _collect(inputs, wanted)
    missing = [name for name in wanted if name not in given]
    if missing:
        raise bad_input(missing[0], f"is missing; the model reads {', '.join(wanted)}")
    # Before arrays are made: rows of no values take no bytes of a body, yet offsets of an array.
    _limit(max((column.rows for column in given.values()), default=0), max_rows)
    arrays = {name: _typed(_array(given[name]), wanted[name]) for name in wanted}
    count = max((len(array) for array in arrays.values()), default=0)
    if count == 0:
        raise bad_input(next(iter(wanted), ""), "is empty: the request holds no rows")
    users = {name: array for name, array in arrays.items() if wanted[name].user}
    if users and count > 1 and all(len(array) == 1 for array in users.values()):
        items = {name: array for name, array in arrays.items() if name not in users}
        return Rows(items=_fitted(items, count, wanted), user=_fitted(users, 1, wanted))
    return Rows(items=_fitted(arrays, count, wanted))


def too_large(error: RepeatError) -> RequestError:
    """The error of a request that is too much, its user's row beside its items or all its rows together."""
    return RequestError(413, f"input {error}", error.column)


def _limit(count: int, most: int) -> None:
    if count > most:
        raise RequestError(413, f"the request holds {count} rows, at most {most} are answered at once; split it")


def _fitted(arrays: Mapping[str, pa.Array], count: int, wanted: Mapping[str, InputColumn]) -> pa.RecordBatch:
    fitted = [_fit(array, count, wanted[name]) for name, array in arrays.items()]
    return pa.RecordBatch.from_arrays(fitted, names=list(arrays))


def _collect(inputs: Mapping[str, Tensor], wanted: Mapping[str, InputColumn]) -> dict[str, _Column]:
    parts: dict[str, dict[str, Tensor]] = {}
    for name, tensor in inputs.items():
        column, part = _split(name, wanted)
        parts.setdefault(column, {})[part] = tensor
    return {name: _Column(name=name, parts=found) for name, found in parts.items()}


def _split(name: str, wanted: Mapping[str, InputColumn]) -> tuple[str, str]:
    if name in wanted:
        return name, ""
    column, _, part = name.rpartition(".")
    if part in _PARTS and column in wanted:
        return column, part
    near = difflib.get_close_matches(column if part in _PARTS else name, list(wanted), 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise bad_input(name, f"is unknown; {hint}the model reads {', '.join(wanted)}")


def _array(column: _Column) -> pa.Array:
    parts = frozenset(column.parts) - {"nulls"}
    if parts == {""}:
        array = _scalars(column.parts[""])
    elif parts in _FORMS:
        array = _ragged(column)
    else:
        found = ", ".join(f"{column.name}.{part}" if part else column.name for part in sorted(column.parts))
        raise bad_input(
            column.name,
            f"is given as {found}; send {column.name} alone, or {column.name}.values and "
            f"{column.name}.lengths with .key_lengths, .keys or .weights",
        )
    nulls = column.parts.get("nulls")
    return array if nulls is None else _with_nulls(array, _mask(nulls, len(array)), column.name)


def _typed(array: pa.Array, column: InputColumn) -> pa.Array:
    """The column as training would have it: of the declared type, where its values go into that."""
    target = column.type
    if target is None or array.type == target:
        return array
    if not castable(array.type, target):
        raise bad_input(column.name, f"holds {array.type}, which does not go into the declared {target}")
    made, misfits = cast(array, target)
    if misfits is not None:
        row = int(np.argmax(misfits))
        held = describe(column.name, array, row)
        raise bad_input(column.name, f"does not fit the declared {target} at row {row}: {held}")
    return made


def _values(tensor: Tensor) -> pa.Array:
    return tensor.data if isinstance(tensor.data, pa.Array) else pa.array(tensor.data)


def _scalars(tensor: Tensor) -> pa.Array:
    values = _values(tensor)
    if len(tensor.shape) == 1 or tensor.shape[1:] == (1,):
        return values
    if len(tensor.shape) > 2:
        raise bad_input(tensor.name, f"has shape {quoted(list(tensor.shape))}; send [rows] or [rows, values]")
    rows, width = tensor.shape
    return pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32) * np.int32(width)), values)


def _flat(tensor: Tensor) -> pa.Array:
    if len(tensor.shape) != 1 and tensor.shape[1:] != (1,):
        raise bad_input(tensor.name, f"has shape {quoted(list(tensor.shape))}; send one dimension")
    return _values(tensor)


def _offsets(tensor: Tensor, total: int, of: str) -> npt.NDArray[np.int32]:
    """Turn lengths into offsets, which must end at `total` entries of the tensor `of`."""
    if tensor.datatype not in _INTEGERS or isinstance(tensor.data, pa.Array):
        raise bad_input(tensor.name, f"has datatype {tensor.datatype}; lengths are INT32 or INT64")
    _flat(tensor)
    lengths = tensor.data.astype(np.int64)
    if len(lengths) and int(lengths.min()) < 0:
        at = int(np.argmin(lengths))
        raise bad_input(tensor.name, f"holds the negative length {lengths[at]} at row {at}")
    if len(lengths) and int(lengths.max()) > total or int(lengths.sum()) != total:
        raise bad_input(tensor.name, f"adds up to {int(lengths.sum())}, and {of!r} holds {total}")
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def _ragged(column: _Column) -> pa.Array:
    values, lengths = column.parts["values"], column.parts["lengths"]
    inner = _flat(values)
    if "key_lengths" in column.parts:
        steps = column.parts["key_lengths"]
        inner = pa.ListArray.from_arrays(pa.array(_offsets(steps, len(inner), values.name)), inner)
        return pa.ListArray.from_arrays(pa.array(_offsets(lengths, len(inner), steps.name)), inner)
    offsets = pa.array(_offsets(lengths, len(inner), values.name))
    for part, keys_first in (("keys", False), ("weights", True)):
        if part in column.parts:
            other = _flat(column.parts[part])
            if len(other) != len(inner):
                raise bad_input(
                    column.parts[part].name, f"holds {len(other)} entries, and {values.name!r} {len(inner)}"
                )
            keys, items = (inner, other) if keys_first else (other, inner)
            return pa.MapArray.from_arrays(offsets, keys, items)
    return pa.ListArray.from_arrays(offsets, inner)


def _mask(tensor: Tensor, rows: int) -> npt.NDArray[np.bool_]:
    if tensor.datatype != "BOOL" or isinstance(tensor.data, pa.Array):
        raise bad_input(tensor.name, f"has datatype {tensor.datatype}; send BOOL, true where the row has no value")
    if len(tensor.data) != rows:
        raise bad_input(tensor.name, f"holds {len(tensor.data)} rows, and its column {rows}")
    return tensor.data.astype(np.bool_)


def _with_nulls(array: pa.Array, nulls: npt.NDArray[np.bool_], name: str) -> pa.Array:
    if not nulls.any():
        return array
    picked = np.arange(len(array), dtype=np.int64)
    try:
        return array.take(pa.array(picked, mask=nulls))
    except pa.ArrowException as error:
        raise bad_input(name, f"cannot have .nulls: {error}") from error


def with_readers(error: RequestError, columns: Iterable[InputColumn]) -> RequestError:
    """An error about an input that also names the features that read it."""
    wanted = {column.name: column for column in columns}
    column = wanted.get(error.tensor) or wanted.get(error.tensor.rpartition(".")[0])
    if column is None or not column.features:
        return error
    names = ", ".join(map(repr, column.features))
    return RequestError(error.status, f"{error} (read by feature {names})", error.tensor)


def _fit(array: pa.Array, count: int, column: InputColumn) -> pa.Array:
    if len(array) == count:
        return array
    if len(array) == 1 and column.user:
        size = array.nbytes
        if size * count > MOST_REPEATED:
            what = f"takes {size} bytes in one row, too many to lie beside {count} rows"
            raise too_large(RepeatError(column.name, what))
        return array.take(pa.array(np.zeros(count, np.int64)))
    if len(array) == 0:
        raise bad_input(column.name, f"is empty, and other inputs have {count} rows")
    remedy = (
        "one row or as many as the items" if column.user else f"{count}: only user columns may have one row for all"
    )
    raise bad_input(column.name, f"has {len(array)} rows, and other inputs {count}; send {remedy}")
