"""A Parquet file that is there whole or not at all."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.errors import UsageError


def write_whole(path: Path, batches: Iterable[pa.RecordBatch]) -> int:
    """Write `batches` under a temporary name and rename at the end; return the number of rows.

    UsageError when there are no batches: a file without columns helps nobody; and where no file can be there.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file in it")
    staged = path.with_name(f".{path.name}.part")
    rows = 0
    writer: pq.ParquetWriter | None = None
    try:
        for batch in batches:
            if writer is None:
                _make_folder(path.parent)
                writer = pq.ParquetWriter(staged, batch.schema)
            writer.write_batch(batch)
            rows += batch.num_rows
        if writer is None:
            raise UsageError(f"there are no rows to write to {path}; check the input")
        writer.close()
        staged.replace(path)
    finally:
        if writer is not None:
            writer.close()
        if path.parent.is_dir():
            staged.unlink(missing_ok=True)
    return rows


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"the folder {folder} cannot be made: {error.strerror}") from None
