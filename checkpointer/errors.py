"""What can go wrong in the commit log.

CheckpointError
├── StoreError                 a store operation failed
│   ├── NotFoundError          nothing lies under this path
│   ├── ExistsError            put_if_absent: the path is taken; what lies there is untouched
│   ├── ConflictError          compare_and_swap: the content is no longer what was expected
│   ├── NotStoredError         failed for certain: nothing is visible (disk full, read-only, refused)
│   └── OutcomeUnknownError    it may or may not have happened (fsync of the directory failed, connection lost)
├── CommitError                an append did not end well
│   ├── NotCommittedError      for certain not in the log: the sealed rows count as touched again
│   ├── CommitUnknownError     may or may not be in the log: the writer settles it before its next append
│   └── FencedError            a newer producer took over: this one must stop
├── ChainError                 the log or a base is refused; `flaw` says why, `path` where
├── LockedError                another process holds the lock of this model directory
├── NoLockError                there is no place for a lock: the configuration has to name one
├── InvalidRowsError           rows that break the rules of `TableRows`
└── EncodingError              rows that a published encoding cannot hold
"""

from enum import StrEnum


class Flaw(StrEnum):
    """Why a commit, base or blob is refused (FORMAT.md, section 7)."""

    MISSING = "missing"
    DUPLICATED = "duplicated"
    REORDERED = "reordered"
    TRUNCATED = "truncated"
    ALTERED = "altered"
    FOREIGN = "foreign"
    NEWER_FORMAT = "newer-format"
    WORLD = "mixed-world"
    MALFORMED = "malformed"
    UNREADABLE = "unreadable"  # the storage does not give it


class CheckpointError(Exception):
    """The root of this package's errors."""


class StoreError(CheckpointError):
    """A store operation failed."""


class NotFoundError(StoreError):
    """Nothing lies under the path."""


class ExistsError(StoreError):
    """The path is taken; what lies there is untouched."""


class ConflictError(StoreError):
    """The content is no longer what the caller expected."""


class NotStoredError(StoreError):
    """The write failed for certain: nothing of it is visible."""


class OutcomeUnknownError(StoreError):
    """The write may or may not have happened."""


class CommitError(CheckpointError):
    """An append did not end well."""


class NotCommittedError(CommitError):
    """The commit is for certain not in the log."""


class CommitUnknownError(CommitError):
    """The commit may or may not be in the log."""


class FencedError(CommitError):
    """A newer producer took over this model directory."""


class ChainError(CheckpointError):
    """The log or a base is refused. `remedy` is what to do, by default what helps with damage under such a path."""

    def __init__(self, flaw: Flaw, path: str, detail: str, *, remedy: str | None = None) -> None:
        if remedy is None:
            remedy = "" if flaw is Flaw.NEWER_FORMAT else _remedy(path)
        super().__init__(f"{path}: {flaw.value}: {detail}{remedy and f'; {remedy}'}")
        self.flaw = flaw
        self.path = path
        self.detail = detail


def _remedy(path: str) -> str:
    if path.startswith("bases/"):
        return "restore it, or delete the base's manifest: an older base, and the log since then, may be enough"
    if path.startswith("log/"):
        return "restore it, or train on from a commit before it: headrace log revert MODEL_DIR SEQ"
    return ""


class LockedError(CheckpointError):
    """Another process holds the lock."""


class NoLockError(CheckpointError):
    """There is no place for a lock; the configuration has to name one."""


class InvalidRowsError(CheckpointError):
    """Rows that break the rules of `TableRows`."""


class EncodingError(CheckpointError):
    """Rows that a published encoding cannot hold."""
