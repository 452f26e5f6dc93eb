"""What features make of the rows of a file: shown, written, compared."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from features import Feature, FeatureSet, create_features
from features.columnar import differences, generated
from features.readers import readers
from headrace.errors import UsageError
from headrace.parquet_file import write_whole
from protos.pipeline_pb2 import EasyRecConfig
from stream import open_source
from stream.deadletter import DeadLetter
from stream.missing import naming_readers

logger = logging.getLogger(__name__)
SHOWN_DIFFERENCES = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """One feature of one row: the columns that it reads, and what it makes; for zch tables the id is a raw one."""

    feature: str
    inputs: dict[str, object]
    made: object
    table: str
    """The table and its rows, "" for a number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One row; `error` where it cannot be used."""

    row: int
    features: tuple[Shown, ...]
    error: str = ""


@dataclass(kw_only=True, slots=True)
class Comparison:
    """Rows that were compared, and for each feature that differs how often and the first times."""

    rows: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, list[str]] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Every feature that both have is the same in every row, and none is missing."""
        return not self.counts and not self.missing


def read_rows(
    config: EasyRecConfig, path: str, features: FeatureSet, also: Sequence[str] = ()
) -> Iterator[pa.RecordBatch]:
    """The columns of features, batch by batch, in the order of the file."""
    bounded = EasyRecConfig()
    bounded.CopyFrom(config)
    bounded.stream_config.stop_at_end = True
    source = open_source(bounded, path=path, columns=(*features.input_columns, *also))
    unreadable: list[DeadLetter] = []
    try:
        keys = source.partitions()
        with naming_readers(readers(features)):
            source.start(keys, {})
        while not all(source.ended(key) for key in keys):
            chunk = source.read(1.0)
            if chunk is None:
                continue
            unreadable += chunk.dead
            if chunk.rows.num_rows:
                yield chunk.rows
    finally:
        source.close()
        if unreadable:
            one = unreadable[0]
            logger.warning("unreadable=%d left out path=%s first=%s: %s", len(unreadable), path, one.key, one.detail)


def show(config: EasyRecConfig, path: str, count: int) -> list[Row]:
    """The first `count` rows."""
    features = create_features(config)
    found: list[Row] = []
    for rows in read_rows(config, path, features):
        rows = rows.slice(0, count - len(found))
        found += _rows(features, rows, len(found))
        if len(found) == count:
            break
    if not found:
        raise UsageError(f"{path} holds no rows that can be read")
    return found


def _rows(features: FeatureSet, rows: pa.RecordBatch, start: int) -> list[Row]:
    made, errors = generated(features, rows)
    told = dict(zip(errors.rows.tolist(), errors.details, strict=True))
    return [
        Row(
            row=start + at,
            error=told.get(at, ""),
            features=tuple(_shown(feature, rows, made, at) for feature in features.features),
        )
        for at in range(rows.num_rows)
    ]


def _shown(feature: Feature, rows: pa.RecordBatch, made: pa.RecordBatch, at: int) -> Shown:
    known = set(rows.schema.names)
    table = feature.embedding
    kind = "" if table is None else "raw id of zch" if table.zch is not None else "row"
    return Shown(
        feature=feature.name,
        inputs={name: rows.column(name)[at].as_py() for name in feature.inputs if name in known},
        made=made.column(feature.name)[at].as_py(),
        table="" if table is None else f"{kind} {table.name}[{table.num_embeddings}]",
    )


def as_text(rows: Sequence[Row]) -> Iterator[str]:
    """The rows for a person."""
    for row in rows:
        yield f"row {row.row}" + (f"  cannot be used: {row.error}" if row.error else "")
        for shown in row.features:
            inputs = ", ".join(f"{name}={_short(value)}" for name, value in shown.inputs.items()) or "(other features)"
            table = f"  ({shown.table})" if shown.table else ""
            yield f"  {shown.feature:24} {inputs} -> {_short(shown.made)}{table}"


def as_json(rows: Sequence[Row]) -> list[dict[str, object]]:
    """The rows for programs."""
    return [asdict(row) for row in rows]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def write(config: EasyRecConfig, path: str, out: Path) -> tuple[int, int]:
    """Write what all rows make, beside labels and weights; return the rows, and how many could not be used."""
    features = create_features(config)
    rejected = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal rejected
        for rows in read_rows(config, path, features, (*features.labels, *features.weights)):
            made, errors = generated(features, rows)
            rejected += len(errors.rows)
            yield _beside(made, rows, (*features.labels, *features.weights))

    return write_whole(out, batches()), rejected


def _beside(made: pa.RecordBatch, rows: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    kept = [name for name in names if name in rows.schema.names]
    return pa.RecordBatch.from_arrays([*made.columns, *map(rows.column, kept)], names=[*made.schema.names, *kept])


def compare(config: EasyRecConfig, path: str, expected: Path) -> Comparison:
    """Compare with a file that has a column for each feature, named after it."""
    features = create_features(config)
    table = _expected(expected)
    names = [feature.name for feature in features.features]
    result = Comparison(missing=tuple(name for name in names if name not in table.schema.names))
    for rows in read_rows(config, path, features):
        made, _ = generated(features, rows)
        if result.rows + rows.num_rows > table.num_rows:
            raise UsageError(f"{expected} has {table.num_rows} rows, and {path} has more")
        for name in [item for item in made.schema.names if item in table.schema.names]:
            theirs = table.column(name).slice(result.rows, rows.num_rows).combine_chunks()
            _note(result, name, differences(made.column(name), theirs))
        result.rows += rows.num_rows
    if result.rows != table.num_rows:
        raise UsageError(f"{expected} has {table.num_rows} rows, and {path} has {result.rows}")
    return result


def _expected(path: Path) -> pa.Table:
    try:
        with path.open("rb") as file:
            return pq.read_table(file).combine_chunks()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except pa.ArrowException as error:
        raise UsageError(f"{path} is no readable Parquet file: {error}") from None


def _note(result: Comparison, name: str, found: Sequence[tuple[int, object, object]]) -> None:
    if not found:
        return
    result.counts[name] = result.counts.get(name, 0) + len(found)
    told = result.first.setdefault(name, [])
    for row, ours, theirs in found[: SHOWN_DIFFERENCES - len(told)]:
        told.append(f"row {result.rows + row}: {_short(ours)}, expected {_short(theirs)}")
