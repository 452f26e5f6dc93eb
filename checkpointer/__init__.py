"""The commit log: durable commits of rows, dense arrays and stream positions, and their restore (FORMAT.md)."""

from checkpointer.commit import BlobRef, Commit, Kind, Link
from checkpointer.compact import compact
from checkpointer.digest import logical_digest
from checkpointer.log import CommitLog
from checkpointer.open_store import StoreOptions, open_store
from checkpointer.restore import Restored
from checkpointer.retention import RetentionOptions, collect_garbage, maintain
from checkpointer.revert import revert
from checkpointer.rows import TableRows
from checkpointer.store import Store
from checkpointer.verify import verify
from checkpointer.writer import Draft, Writer, WriterOptions, stage

__all__ = [
    "BlobRef",
    "Commit",
    "CommitLog",
    "Draft",
    "Kind",
    "Link",
    "Restored",
    "RetentionOptions",
    "Store",
    "StoreOptions",
    "TableRows",
    "Writer",
    "WriterOptions",
    "collect_garbage",
    "compact",
    "logical_digest",
    "maintain",
    "open_store",
    "revert",
    "stage",
    "verify",
]
