"""The HTTP server: Open Inference Protocol v2, health, metrics, and the limits around them.

Every error is `{"error": message}`. Statuses: 400 a bad request, 401 no or a wrong token, 404 an unknown model, version
or path, 408 a body that does not arrive, 413 a body over the limit, 429 too many requests at once, 503 nothing to serve
yet. Health needs no token, so that probes need no secret; everything else does where one is configured. A request
counts as one that is being answered once its body is there: clients that stall keep nobody else out.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from prometheus_client.metrics_core import Metric

from publisher.replica import describe
from publisher.replica.answers import error_response
from publisher.replica.auth import Token
from publisher.replica.bodies import Bodies
from publisher.replica.connections import Bound, Runner
from publisher.replica.errors import RequestError, quoted
from publisher.replica.metrics import ReplicaMetrics, counted, feature_counters, gauge, labelled
from publisher.replica.options import ServeOptions
from publisher.replica.protocol import HEADER_LENGTH, Body, encode_response, parse_request
from publisher.replica.request import to_rows, with_readers
from publisher.replica.serving import Servable
from publisher.replica.switch import Reading

logger = logging.getLogger(__name__)

VERSION_HEADER: Final = "headrace-version"
_QUIET_S: Final = 0.1
_OPEN_PATHS: Final = frozenset({"/v2/health/live", "/v2/health/ready"})
_ANSWERED_BY: Final = web.RequestKey("answered_by", int)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    """What a worker hands back: a body, or the error instead, and the version that made it."""

    version: int | None
    body: Body | None = None
    error: RequestError | None = None


class InferenceServer:
    """Answers requests from whatever the switch holds; runs on one event loop with a few worker threads."""

    def __init__(
        self,
        switch: Reading[Servable],
        options: ServeOptions,
        metrics: ReplicaMetrics,
        wall_clock: Callable[[], float],
    ) -> None:
        self._switch = switch
        self._options = options
        self._metrics = metrics
        self._wall_clock = wall_clock
        self._token = Token(options.token_file) if options.token_file else None
        self._workers = ThreadPoolExecutor(options.workers, thread_name_prefix="infer")
        # As much as could be in the bodies of as many requests as are answered at once.
        most = options.max_request_bytes
        held = most * options.max_concurrent
        self._bodies = Bodies(largest=most, held=held, timeout_s=options.body_timeout_s)
        self._in_flight = 0
        self._active = 0
        self._draining = False
        metrics.watch(self._figures)

    def runner(self, *, shutdown_timeout: float) -> Runner:
        """Return what serves the routes on a socket."""
        bound = Bound(most=self._options.max_connections, refused=self._metrics.refused_connections.inc)
        return Runner(self._application(), bound, shutdown_timeout=shutdown_timeout)

    def _application(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        model = "/v2/models/{model}"
        app.add_routes(
            [
                web.get("/v2", self._server_metadata),
                web.get("/v2/health/live", self._live),
                web.get("/v2/health/ready", self._ready),
                web.post("/v2/repository/index", self._index),
                web.get("/metrics", self._render_metrics),
            ]
        )
        for prefix in (model, model + "/versions/{version}"):
            app.add_routes(
                [
                    web.get(prefix, self._model_metadata),
                    web.get(prefix + "/ready", self._model_ready),
                    web.get(prefix + "/config", self._model_config),
                    web.post(prefix + "/infer", self._infer),
                ]
            )
        return app

    async def drain(self, limit_s: float) -> None:
        """Answer `not ready`, end each connection with its next answer, return once no request has come for a moment.

        aiohttp's own shutdown drops what still arrives on open connections, also the rest of a body.
        """
        self._draining = True
        loop = asyncio.get_running_loop()
        end = loop.time() + limit_s
        quiet = loop.time()
        while loop.time() < end and loop.time() - quiet < _QUIET_S:
            await asyncio.sleep(_QUIET_S / 10)
            if self._active:
                quiet = loop.time()

    def close(self) -> None:
        """End the worker threads, after what they are doing."""
        self._workers.shutdown(wait=True)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Check the token, turn every error into its document, name the version."""
        response: web.StreamResponse
        self._active += 1
        try:
            self._authorize(request)
            response = await handler(request)
        except RequestError as error:
            response = error_response(error.status, str(error))
        except web.HTTPException as error:
            response = error_response(error.status, _http_message(error, request))
        except Exception:
            logger.exception("request failed path=%s", quoted(request.path))
            response = error_response(500, "the replica failed; its log says why")
        finally:
            self._active -= 1
        if self._draining:
            response.force_close()
        side = self._switch.current
        version = request.get(_ANSWERED_BY, side.number if side else None)
        if version is not None:
            response.headers[VERSION_HEADER] = str(version)
        return response

    def _authorize(self, request: web.Request) -> None:
        if self._token is None or request.path in _OPEN_PATHS:
            return
        if not self._token.allows(request.headers.get("Authorization")):
            raise RequestError(401, "no or a wrong token; send the header 'Authorization: Bearer TOKEN'")

    async def _live(self, _request: web.Request) -> web.Response:
        return web.json_response({"live": True})

    async def _ready(self, _request: web.Request) -> web.Response:
        self._require_ready()
        return web.json_response({"ready": True})

    async def _model_ready(self, request: web.Request) -> web.Response:
        self._require_model(request)
        self._require_ready()
        return web.json_response({"name": self._options.name, "ready": True})

    async def _server_metadata(self, _request: web.Request) -> web.Response:
        return web.json_response(describe.server(self._options.name))

    async def _index(self, _request: web.Request) -> web.Response:
        return web.json_response(describe.index(self._options.name, self._switch.current))

    async def _model_metadata(self, request: web.Request) -> web.Response:
        return web.json_response(describe.model(self._options.name, self._require_model(request)))

    async def _model_config(self, request: web.Request) -> web.Response:
        return web.json_response(describe.config(self._options.name, self._require_model(request)))

    async def _render_metrics(self, _request: web.Request) -> web.Response:
        text = self._metrics.render()
        return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    def _require_ready(self) -> None:
        side = self._switch.current
        if self._draining:
            raise RequestError(503, "not ready: the replica is shutting down")
        if side is None:
            raise RequestError(503, "not ready: no verified version has been published yet")
        stale = self._stale_by(side)
        if self._options.unready_when_stale and stale > 0:
            raise RequestError(503, f"not ready: version {side.number} is stale by {stale:.1f} s")

    def _stale_by(self, side: Servable) -> float:
        fresh = side.freshness
        return fresh.staleness_s(self._wall_clock()) - self._options.staleness_alert_s if fresh else 0.0

    def _require_model(self, request: web.Request) -> Servable:
        """Return the current side when the path names its model and, where it does, its version."""
        self._check_name(request)
        side = self._switch.current
        if side is None:
            raise RequestError(503, "not ready: no verified version has been published yet")
        _check_version(request.match_info.get("version"), side)
        return side

    def _check_name(self, request: web.Request) -> None:
        name = request.match_info["model"]
        if name != self._options.name:
            raise RequestError(404, f"there is no model {quoted(name)}; this replica serves {self._options.name!r}")

    async def _infer(self, request: web.Request) -> web.Response:
        loop = asyncio.get_running_loop()
        started = loop.time()
        status = "500"
        try:
            response = await self._admitted(request)
            status = str(response.status)
            return response
        except RequestError as error:
            status = str(error.status)
            raise
        except web.HTTPException as error:
            status = str(error.status)
            raise
        finally:
            self._metrics.latency.labels(status).observe(loop.time() - started)
            if status != "200":
                self._metrics.failures.labels(status).inc()

    async def _admitted(self, request: web.Request) -> web.Response:
        self._check_name(request)
        async with self._bodies.received(request) as body:
            answer = await self._worked(body, request)
        if answer.version is not None:
            request[_ANSWERED_BY] = answer.version
        if answer.body is None:
            raise answer.error or RequestError(500, "the replica failed; its log says why")
        return _infer_response(answer.body)

    async def _worked(self, body: bytes, request: web.Request) -> _Answer:
        if self._in_flight >= self._options.max_concurrent:
            raise RequestError(429, f"{self._in_flight} requests are being answered, the limit; try again shortly")
        self._in_flight += 1
        self._metrics.in_flight.inc()
        try:
            header, version = request.headers.get(HEADER_LENGTH), request.match_info.get("version")
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._workers, self._answer, body, header, version)
        finally:
            self._in_flight -= 1
            self._metrics.in_flight.dec()

    def _answer(self, body: bytes, header_length: str | None, version: str | None) -> _Answer:
        """Answer one request on a worker thread, from one side."""
        with self._switch.reading() as side:
            if side is None:
                error = RequestError(503, "not ready: no verified version has been published yet")
                return _Answer(version=None, error=error)
            try:
                _check_version(version, side)
                request = parse_request(body, header_length)
                rows = to_rows(request.inputs, side.columns, self._options.max_rows)
                predictions = side.predict(rows.items, rows.user)
                answered = encode_response(request, self._options.name, str(side.number), predictions)
            except RequestError as error:
                return _Answer(version=side.number, error=with_readers(error, side.columns))
            self._metrics.rows.inc(rows.items.num_rows)
            return _Answer(version=side.number, body=answered)

    def _figures(self) -> Iterator[Metric]:
        """Compute what depends on now and on the side in service."""
        side = self._switch.current
        yield gauge("ready", "Whether a verified version is served.", float(side is not None and not self._draining))
        if side is None:
            return
        fresh = side.freshness
        if fresh is not None:
            age = fresh.staleness_s(self._wall_clock())
            text = "Age of the newest event that the served version has learned, by the clock named."
            yield labelled("staleness_seconds", text, "basis", {fresh.basis: age})
            yield gauge("stale", "1 while the age is over staleness_alert_ms.", float(self._stale_by(side) > 0))
        sizes, lookups = side.sizes(), side.lookups()
        yield labelled("table_rows", "Rows of a table.", "table", {t: float(n) for t, (n, _) in sizes.items()})
        yield labelled("table_bytes", "Memory of one copy.", "table", {t: float(b) for t, (_, b) in sizes.items()})
        yield counted("table_lookups", "Ids looked up.", "table", {t: float(n) for t, (n, _) in lookups.items()})
        yield counted("table_hits", "Ids found.", "table", {t: float(h) for t, (_, h) in lookups.items()})
        yield feature_counters(side.feature_counts())


def _check_version(version: str | None, side: Servable) -> None:
    if version is not None and version != str(side.number):
        raise RequestError(404, f"version {quoted(version)} is not served; the replica serves version {side.number}")


def _infer_response(body: Body) -> web.Response:
    if body.header_length is None:
        return web.Response(body=body.payload, content_type="application/json")
    headers = {HEADER_LENGTH: str(body.header_length)}
    return web.Response(body=body.payload, content_type="application/octet-stream", headers=headers)


def _http_message(error: web.HTTPException, request: web.Request) -> str:
    if error.status == 404:
        return f"there is no {quoted(request.path)}; see /v2"
    if error.status == 405:
        return f"{quoted(request.method)} is not allowed on {quoted(request.path)}"
    return error.reason
