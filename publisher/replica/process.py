"""The serving process: binds, follows, answers, drains on SIGTERM."""

import asyncio
import gc
import logging
import signal
import socket
import sys
import time
from dataclasses import dataclass

import torch
from aiohttp import web

from checkpointer.store import Store
from publisher.export.host import this_host
from publisher.replica.alarm import StalenessAlarm
from publisher.replica.connections import allow_descriptors
from publisher.replica.errors import StartError
from publisher.replica.follower import Follower
from publisher.replica.metrics import ReplicaMetrics
from publisher.replica.model import Side
from publisher.replica.options import ServeOptions
from publisher.replica.seen import Seen
from publisher.replica.server import InferenceServer
from publisher.replica.switch import Switch
from publisher.replica.tables import warm_kernels
from publisher.replica.turns import REQUESTS_NS, linux, take_turns
from publisher.replica.watcher import Listener, Watcher
from publisher.signing import Verifier

logger = logging.getLogger(__name__)

# A worker waits this long for a thread that holds the interpreter before it asks for it; the default of 5 ms is the
# length of a request.
_SWITCH_INTERVAL_S = 0.00005
_READER_S = 1.0
_CLOSE_S = 1.0
_STOP_S = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Parts:
    """What runs beside the event loop."""

    watcher: Watcher
    listener: Listener | None

    def start(self) -> None:
        self.watcher.start()
        if self.listener is not None:
            self.listener.start()

    def stop(self) -> None:
        if self.listener is not None:
            self.listener.stop(_STOP_S)
        self.watcher.stop(_STOP_S)


def serve_store(store: Store, options: ServeOptions) -> int:
    """Serve what the pointer in a store names until SIGTERM or SIGINT; return the exit status.

    StartError when the address is taken or a file that the options name cannot be used.
    """
    listening = bind(options.host, options.port)
    try:
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        take_turns(REQUESTS_NS, nicer=0, call=linux())
        torch.set_num_threads(1)
        allow_descriptors(options.max_connections)
        metrics, switch = ReplicaMetrics(), Switch[Side]()
        server = InferenceServer(switch, options, metrics, time.time)
        parts = _parts(store, switch, metrics, options)
        # After that: this may take seconds, and what the options name wrongly is said at once.
        warm_kernels()
        # What is loaded by now lives as long as the process: no collection has to look at it again.
        gc.freeze()
        asyncio.run(_run(server, listening, parts, options))
    finally:
        listening.close()
    return 0


def bind(host: str, port: int) -> socket.socket:
    """Bind and listen; StartError says who is in the way."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(1024)
    except OSError as error:
        listening.close()
        raise StartError(
            f"cannot listen on {host} port {port}: {error.strerror}; choose another --port, or stop what holds this one"
        ) from error
    return listening


def _parts(store: Store, switch: Switch[Side], metrics: ReplicaMetrics, options: ServeOptions) -> _Parts:
    follower = Follower(
        store,
        switch,
        metrics,
        host=this_host(),
        verifier=Verifier.load(str(options.verify_key_file)) if options.verify_key_file else None,
        clock=time.monotonic,
        drain_s=_READER_S,
        seen=Seen(options.state_file, store.url),
    )
    alarm = StalenessAlarm(switch, options.staleness_alert_s, time.time)
    watcher = Watcher(follower, alarm, metrics, options.poll_s)
    found = options.notifications
    return _Parts(watcher=watcher, listener=Listener(found, watcher.wake, metrics) if found else None)


async def _run(server: InferenceServer, listening: socket.socket, parts: _Parts, options: ServeOptions) -> None:
    """Serve until told to stop, then drain: refuse new connections, finish what has begun, end."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stopping.set)
    runner = server.runner(shutdown_timeout=_CLOSE_S)
    await runner.setup()
    site = web.SockSite(runner, listening)
    await site.start()
    host, port = listening.getsockname()[:2]
    logger.info("serving model=%s url=http://%s:%d", options.name, f"[{host}]" if ":" in host else host, port)
    parts.start()
    await stopping.wait()
    logger.info("draining limit=%.1f s", options.drain_s)
    await site.stop()
    await server.drain(options.drain_s)
    await runner.cleanup()
    await loop.run_in_executor(None, parts.stop)
    server.close()
    logger.info("stopped")
