"""Receiving the bodies of requests: each within a size and a time, all of them together within a number of bytes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from publisher.replica.errors import RequestError


class Bodies:
    """Counts the bytes of the bodies that are there; a client that announces one and stalls holds what it sent."""

    def __init__(self, *, largest: int, held: int, timeout_s: float) -> None:
        """`largest` bytes of one body, `held` of all that are received and not yet answered."""
        self._largest = largest
        self._most_held = held
        self._timeout_s = timeout_s
        self._held = 0

    @asynccontextmanager
    async def received(self, request: web.Request) -> AsyncIterator[bytes]:
        """Wait for the whole body, decompressed, and hold it; RequestError 400, 408, 413 or 429 where that fails."""
        parts: list[bytes] = []
        size = 0
        try:
            try:
                self._check(request.content_length or 0)
                async with asyncio.timeout(self._timeout_s):
                    async for part in request.content.iter_any():
                        parts.append(part)
                        size += len(part)
                        self._held += len(part)
                        self._check(size)
            except TimeoutError:
                raise RequestError(408, f"the body did not arrive within {self._timeout_s:.0f} s") from None
            except web.RequestPayloadError as error:
                raise RequestError(400, f"the body cannot be read: {' '.join(str(error).split())}") from error
            except ConnectionError as error:
                raise RequestError(400, "the client left before its body was there") from error
            yield b"".join(parts)
        finally:
            self._held -= size

    def _check(self, size: int) -> None:
        if size > self._largest:
            raise RequestError(
                413, f"the body is larger than {self._largest} bytes; send fewer rows, or raise max_request_bytes"
            )
        if self._held > self._most_held:
            raise RequestError(429, f"over {self._most_held} bytes of requests are being answered; try again shortly")
