"""Error documents, `{"error": message}`, and how much of a client's own text they repeat."""

import json
from collections.abc import Mapping
from typing import Final

from aiohttp import web

_LONGEST: Final = 2000


def error_document(message: str) -> bytes:
    """The document; what is longer than 2000 characters is cut.

    >>> error_document("no model")
    b'{"error": "no model"}'
    """
    if len(message) > _LONGEST:
        message = message[:_LONGEST] + "… (cut)"
    return json.dumps({"error": message}).encode()


def error_headers(status: int) -> Mapping[str, str]:
    """What the status wants beside it."""
    if status == 401:
        return {"WWW-Authenticate": "Bearer"}
    return {"Retry-After": "1"} if status in (429, 503) else {}


def error_response(status: int, message: str) -> web.Response:
    """The response of an error."""
    return web.Response(
        body=error_document(message), status=status, headers=error_headers(status), content_type="application/json"
    )
