"""Connections, below aiohttp's handlers: bounded in number, and their errors are documents like all others."""

import asyncio
import logging
import resource
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from aiohttp import web

from publisher.replica.answers import error_document, error_response

logger = logging.getLogger(__name__)

# One that asks nothing for so long, or does not end its headers, is closed.
_IDLE_S: Final = 75.0
# For a client that is refused to read why, before what it sent meanwhile resets its connection.
_LINGER_S: Final = 1.0
# Of so many at once; who comes in greater numbers must not take all descriptors of the process.
_MOST_LINGERING: Final = 64

# For files, threads' pipes, and connections that are refused or not yet taken.
_OTHER_DESCRIPTORS: Final = 1024

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """How many connections there may be at once, and what counts those that are refused."""

    most: int
    refused: Callable[[], object]


def allow_descriptors(most_connections: int) -> None:
    """Raise the soft limit on open files (ulimit -n), often 1,024, so that connections leave some for files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = most_connections + _OTHER_DESCRIPTORS
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
    if allowed < needed:
        logger.warning(
            "open files limit=%d needed=%d: raise the hard limit (ulimit -Hn), or lower max_connections",
            allowed,
            needed,
        )


class Runner(web.AppRunner):
    """Runs an application on bounded connections."""

    def __init__(self, app: web.Application, bound: Bound, *, shutdown_timeout: float) -> None:
        super().__init__(app, access_log=None, shutdown_timeout=shutdown_timeout)
        self._bound = bound

    async def _make_server(self) -> web.Server:
        """aiohttp has no other place where the class of its connections could be chosen."""
        return _Server(await super()._make_server(), self._bound)


class _Server(web.Server):
    """Answers as another server does, over connections of ours."""

    def __init__(self, answering: web.Server, bound: Bound) -> None:
        super().__init__(partial(_answered, answering.request_handler), request_factory=answering.request_factory)
        self._bound = bound
        self.lingering = 0

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, self._bound)


async def _answered(answer: Answer, request: web.BaseRequest) -> web.StreamResponse:
    """Answer; what aiohttp refuses before any handler is asked, an Expect that it does not know, is a document too."""
    try:
        return await answer(request)
    except web.HTTPException as error:
        return error_response(error.status, error.reason)


class _Connection(web.RequestHandler):
    """One connection; when there are too many, it is told so and closed."""

    __slots__ = ("_bound", "_refused", "_server")

    def __init__(self, server: _Server, bound: Bound) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(server, loop=loop, keepalive_timeout=_IDLE_S, access_log=None)  # type: ignore[arg-type]
        self._server = server
        self._bound = bound
        self._refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, or refuse."""
        self._refused = len(self._server.connections) >= self._bound.most
        if not self._refused:
            super().connection_made(transport)
            return
        self._bound.refused()
        self._server.lingering += 1
        if not isinstance(transport, asyncio.Transport) or self._server.lingering > _MOST_LINGERING:
            transport.close()
            return
        transport.write(_refusal(self._bound.most))
        transport.write_eof()
        asyncio.get_running_loop().call_later(_LINGER_S, transport.close)

    def data_received(self, data: bytes) -> None:
        """Parse; what a refused client says is not heard."""
        if not self._refused:
            super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End."""
        if self._refused:
            self._server.lingering -= 1
        else:
            super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what no handler was asked for: bytes that are no HTTP, headers that are too long."""
        what = " ".join((message or str(exc) or "the replica failed").split())
        logger.info("request not understood status=%d error=%r", status, what[:200])
        if request.writer.output_size > 0:
            raise ConnectionError("a part of the response has been sent already")
        response = error_response(status, f"the request is not understood: {what}")
        response.force_close()
        return response

    def log_exception(self, message: str, *, exc_info: BaseException | None = None) -> None:
        """Log; the rest of a body that cannot be read, after its answer, is the client's fault and no trace of ours."""
        if isinstance(exc_info, web.RequestPayloadError):
            logger.info("body not understood error=%r", str(exc_info)[:200])
        else:
            logger.error("%s", message, exc_info=exc_info)


def _refusal(most: int) -> bytes:
    body = error_document(f"{most} connections are open, the limit (max_connections); try again shortly")
    head = (
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
