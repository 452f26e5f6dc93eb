"""What can go wrong while serving; a version that is refused is a `publisher.errors.VersionError`.

PublisherError
├── RequestError            a request cannot be answered; `status` is the HTTP status that says so
└── StartError              the server cannot start: port taken, token file unreadable, option out of range
"""

from publisher.errors import PublisherError


class RequestError(PublisherError):
    """A request that cannot be answered, with the HTTP status that says so; `tensor` is the input at fault, or ""."""

    def __init__(self, status: int, message: str, tensor: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.tensor = tensor


def bad_input(tensor: str, what: str) -> RequestError:
    """What is wrong with an input.

    >>> str(bad_input("age", "is empty"))
    "input 'age' is empty"
    """
    return RequestError(400, f"input {tensor!r} {what}", tensor)


class StartError(PublisherError):
    """The server cannot start."""
