"""The commit log: durable commits of rows, dense arrays and stream positions, and their restore (FORMAT.md)."""

from checkpointer.commit import BlobRef, Commit, Kind, Link
from checkpointer.log import CommitLog
from checkpointer.restore import Restored
from checkpointer.rows import TableRows
from checkpointer.writer import Draft, Writer, WriterOptions, stage

__all__ = [
    "BlobRef",
    "Commit",
    "CommitLog",
    "Draft",
    "Kind",
    "Link",
    "Restored",
    "TableRows",
    "Writer",
    "WriterOptions",
    "stage",
]
