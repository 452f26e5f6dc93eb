"""What can go wrong between a commit and a served version.

PublisherError
├── VersionError            a version, or a part of it, is refused; `reason` says why
│   └── NewerFormatError     a newer program wrote it: this one must not touch it
├── PublisherConfigError    the configuration cannot be published as it stands
├── PublisherBusyError      another publisher holds the directory
├── KeyFileError            a signing or verification key cannot be used
├── DenseRuntimeError       a compiled artefact does not load, run or take these weights here
├── LogReplacedError        the commit log does not reach the versions that were made from it
├── ExportError             there is nothing to export, or no room for it
├── UnfitRowsError          rows that are not finite, met while a serving base was written
└── ContractError           a commit was trained under another serving contract
"""

from enum import StrEnum


class Reason(StrEnum):
    """Why a version is refused."""

    MISSING = "missing"  # named, and not there
    TRUNCATED = "truncated"  # shorter or longer than its manifest says
    CORRUPT = "corrupt"  # other bytes than its digest says, or not decodable
    FORMAT = "format"  # written by a newer or another program
    FOREIGN = "foreign"  # another chain, name or key than asked for
    UNSIGNED = "unsigned"  # a key is configured, the manifest or the pointer carries no signature
    REPLAYED = "replayed"  # a pointer from before one that was seen
    BROKEN_CHAIN = "broken_chain"  # deltas that do not follow one another
    CONTRACT = "contract"  # another serving contract than the reader's


class PublisherError(Exception):
    """Base of every error of this package."""


class VersionError(PublisherError):
    """A serving version, or a part of it, is refused."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class NewerFormatError(VersionError):
    """A newer program wrote this file: it is neither damaged nor ours to replace."""

    def __init__(self, what: str, found: int, known: int) -> None:
        super().__init__(Reason.FORMAT, f"{what} has format {found}, this program reads {known}: upgrade headrace")


class PublisherConfigError(PublisherError):
    """The configuration cannot be published as it stands."""


class PublisherBusyError(PublisherError):
    """Another publisher holds the directory."""


class KeyFileError(PublisherError):
    """A signing or verification key cannot be used."""


class DenseRuntimeError(PublisherError):
    """A compiled artefact does not load, run or take these weights here."""


class ContractError(PublisherError):
    """A commit was trained under another serving contract than the one frozen at start."""


class LogReplacedError(PublisherError):
    """The commit log does not reach the versions that were made from it."""


class ExportError(PublisherError):
    """There is nothing to export, or no room for it."""


class UnfitRowsError(PublisherError):
    """Rows that are not finite were met while a serving base was written."""
