"""What can go wrong in stream.

StreamError
├── SourceError              the source cannot be opened or read as configured
│   ├── BrokerUnreachableError
│   ├── AuthenticationError
│   ├── TopicMissingError
│   └── MissingColumnsError  a file or table lacks columns that are to be read
├── PositionError            a cursor that no longer leads to the rows that follow it
│   ├── TopicRecreatedError  the topic was deleted and created anew
│   ├── FileReplacedError    the file has other contents than when the cursor was made
│   ├── OffsetLostError      retention removed the next messages
│   └── LogTruncatedError    the log ends before the cursor: the broker lost messages
├── DeadLetterError          dead letters were not acknowledged
│   └── DeadLettersWaitError brokers are away: write the same letters again, and it goes on waiting
├── FeedError                the feed cannot go on as configured
│   ├── DeadLetterRateError  too large a share of the rows is bad
│   └── CutReplayError       recorded cuts do not fit the rows
├── ReplayError              events that cannot be replayed
├── WriteError               rows that cannot be written as asked
└── EmbeddedBrokerError      the embedded broker does not start, or stopped
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType


class StreamError(Exception):
    """Any error of this package."""


class SourceError(StreamError):
    """The source cannot be opened or read as configured."""


class BrokerUnreachableError(SourceError):
    """No broker answered within the deadline."""


class AuthenticationError(SourceError):
    """The broker refused the credentials or the certificate, or does not allow access."""


class TopicMissingError(SourceError):
    """The topic does not exist."""


class MissingColumnsError(SourceError):
    """A file or table lacks columns that are to be read; `readers` says for whom."""

    def __init__(
        self,
        where: str,
        missing: Sequence[str],
        there: Sequence[str],
        readers: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        self.where, self.missing, self.there = where, tuple(missing), tuple(there)
        named = [f"{name} ({', '.join(readers[name])})" if readers.get(name) else name for name in missing]
        columns = "column" if len(named) == 1 else "columns"
        super().__init__(f"{where} lacks the {columns} {', '.join(named)}; it has {', '.join(there)}")


class PositionError(StreamError):
    """A cursor no longer leads to the rows that follow it."""


class TopicRecreatedError(PositionError):
    """The topic was deleted and created anew."""


class FileReplacedError(PositionError):
    """The file has other contents than when the cursor was made."""


class OffsetLostError(PositionError):
    """Retention removed the next messages."""


class LogTruncatedError(PositionError):
    """The log ends before the cursor, or was rewritten before it: the broker lost messages."""


class DeadLetterError(StreamError):
    """Dead letters were not acknowledged."""


class DeadLettersWaitError(DeadLetterError):
    """Brokers are away and may come back: nothing is decided yet, and the same letters are to be written again."""


class FeedError(StreamError):
    """The feed cannot go on as configured."""


class DeadLetterRateError(FeedError):
    """Too large a share of the rows is bad."""


class CutReplayError(FeedError):
    """Recorded cuts do not fit the rows."""


class ReplayError(StreamError):
    """Events that cannot be replayed."""


class WriteError(StreamError):
    """Rows that cannot be written as asked."""


class EmbeddedBrokerError(StreamError):
    """The embedded broker does not start, or stopped."""
