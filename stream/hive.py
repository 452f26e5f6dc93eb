"""Columns from folders named `key=value`, as Hive writes partitions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa

from stream.errors import SourceError

_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True, eq=False)
class PathColumns:
    """What the path of one file says; a column that the file itself has wins."""

    values: Mapping[str, pa.Scalar]

    def beside(self, names: Collection[str], columns: Collection[str] | None) -> PathColumns:
        """Those that are wanted and that the file with columns `names` lacks."""
        wanted = self.values if columns is None else columns
        return PathColumns({k: v for k, v in self.values.items() if k in wanted and k not in names})

    def add(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with these columns behind their own; a batch without columns is a batch without rows."""
        if not self.values or (not rows.num_columns and not rows.num_rows):
            return rows
        arrays = [*rows.columns, *(pa.repeat(value, rows.num_rows) for value in self.values.values())]
        return pa.RecordBatch.from_arrays(arrays, names=[*rows.schema.names, *self.values])


def path_columns(path: str, declared: pa.Schema | None = None) -> PathColumns:
    """The columns of a path: strings, or of their declared type; raise SourceError where a value is none of it.

    >>> path_columns("/data/dt=20240401/city=a%20b/part-0.parquet").values
    {'dt': <pyarrow.StringScalar: '20240401'>, 'city': <pyarrow.StringScalar: 'a b'>}
    """
    values = {}
    for part in path.split("/")[:-1]:
        key, equals, text = part.partition("=")
        if not equals or not key:
            continue
        name = unquote(key)
        kind = pa.string() if declared is None or name not in declared.names else declared.field(name).type
        text = unquote(text)
        try:
            values[name] = pa.scalar(None if text == _NULL else text, pa.string()).cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SourceError(f"folder {part!r} of {path}: the value is no {kind}: {error}") from None
    return PathColumns(values)
