"""What can go wrong while serving; a version that is refused is a `publisher.errors.VersionError`.

PublisherError
├── RequestError            a request cannot be answered; `status` is the HTTP status that says so
└── StartError              the server cannot start: port taken, token file unreadable, option out of range
"""

from reprlib import Repr
from typing import Final

from publisher.errors import PublisherError

_LONGEST: Final = 100
_BRIEF: Final = Repr()
_BRIEF.maxstring = _BRIEF.maxother = _LONGEST


class RequestError(PublisherError):
    """A request that cannot be answered, with the HTTP status that says so; `tensor` is the input at fault, or ""."""

    def __init__(self, status: int, message: str, tensor: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.tensor = tensor


def quoted(value: object) -> str:
    """A value that a client sent, as Python writes it, escaped, and of that 100 characters at most.

    >>> quoted([[1, 2], {"b": None}]), len(quoted("a" * 1000))
    ("[[1, 2], {'b': None}]", 100)
    """
    # A part of what is long or deep: either may be as large as a request.
    text = _BRIEF.repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def bad_input(tensor: str, what: str) -> RequestError:
    """What is wrong with an input.

    >>> str(bad_input("age", "is empty"))
    "input 'age' is empty"
    """
    return RequestError(400, f"input {quoted(tensor)} {what}", tensor)


class StartError(PublisherError):
    """The server cannot start."""
