"""One publisher process: opens what a configuration names, follows the log until it is told to stop."""

import logging
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from checkpointer.errors import StoreError
from checkpointer.store import Store
from protos.pipeline_pb2 import EasyRecConfig
from publisher.background import Background, Children
from publisher.contract import Contract
from publisher.errors import PublisherBusyError
from publisher.follow import Publisher, Surroundings
from publisher.lock import publisher_lock
from publisher.manifest import Pointer
from publisher.metrics import PublisherMetrics
from publisher.notify import KafkaNotifier, NoNotifier, Notification, Notifier
from publisher.options import PublishOptions
from publisher.pointer import resume, rollback
from publisher.signing import Signer
from stream.kafka_client import client_settings
from stream.kafka_options import KafkaOptions

logger = logging.getLogger(__name__)

_RETRY_S = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Invocation:
    """How a publisher was started: `command` starts a background task when a task's name and arguments are added."""

    command: Sequence[str]
    unpin: bool
    once: bool
    pid: int
    clock_ms: Callable[[], int]


def follow(
    config: EasyRecConfig, store: Store, how: Invocation, stop: threading.Event, metrics: PublisherMetrics
) -> None:
    """Publish commits until `stop` is set, or once until there is nothing left.

    Where a pin is to be removed and another publisher runs, that one goes on, and this one leaves.
    """
    options = PublishOptions.from_proto(config)
    signer = Signer.load(options.signing_key_file) if options.signing_key_file else None
    contract = Contract.of(config)
    holder = f"publisher {socket.gethostname()}:{how.pid}"
    if how.unpin and resume(store):
        logger.info("pin removed url=%s", store.url)
    with ExitStack() as held:
        try:
            held.enter_context(publisher_lock(store, config.checkpoint_config.lock_dir, holder))
        except PublisherBusyError as error:
            if not how.unpin:
                raise
            logger.info("going on is left to the publisher that runs: %s", error)
            return
        notifier = _notifier(config, options, metrics)
        background = Children(how.command)
        around = Surroundings(
            background=background, notifier=notifier, metrics=metrics, clock_ms=how.clock_ms, signer=signer
        )
        try:
            _loop(Publisher(store, contract, options, around), options, how.once, stop, metrics)
        finally:
            _close(background, notifier)


def roll_back(config: EasyRecConfig, store: Store, version: int | None, clock_ms: Callable[[], int]) -> Pointer:
    """Serve an older version, signed and told to replicas as `publish_config` says (publisher/pointer.py)."""
    options = PublishOptions.from_proto(config)
    signer = Signer.load(options.signing_key_file) if options.signing_key_file else None
    notifier = _notifier(config, options, PublisherMetrics())
    pointer = rollback(store, version, clock_ms, signer=signer)
    notifier.notify(Notification.of(pointer))
    notifier.close()
    return pointer


def _loop(
    publisher: Publisher, options: PublishOptions, once: bool, stop: threading.Event, metrics: PublisherMetrics
) -> None:
    """Storage that fails is tried again, since replicas go on serving meanwhile; damage in the log ends the process."""
    while not stop.is_set():
        try:
            worked = publisher.step()
        except StoreError as error:
            metrics.failures.inc()
            logger.error("step failed, tried again in %.1f s error=%s", _RETRY_S, error)
            stop.wait(_RETRY_S)
            continue
        if not worked:
            if once:
                return
            stop.wait(options.poll_s)


def _notifier(config: EasyRecConfig, options: PublishOptions, metrics: PublisherMetrics) -> Notifier:
    if not options.notify_topic:
        return NoNotifier()
    settings = client_settings(KafkaOptions.from_proto(config.stream_config))
    return KafkaNotifier(options.notify_topic, settings, metrics.lost.inc)


def _close(background: Background, notifier: Notifier) -> None:
    background.close()
    notifier.close()
