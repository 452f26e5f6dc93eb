"""`headrace broker`: the embedded Kafka broker."""

import argparse
import signal
import threading
from pathlib import Path
from typing import TextIO

from headrace.commands.parsing import Commands, add_command, require
from protos.arguments import port


def add(commands: Commands) -> None:
    """Add the parser."""
    parser = add_command(
        commands,
        "broker",
        run,
        summary="run the embedded broker until it is interrupted; it keeps nothing when it stops",
        example="headrace broker --port 9092",
    )
    parser.add_argument("--port", type=port, default=9092, help="0 picks a free one (default: 9092)")
    parser.add_argument("--log", type=Path, default=Path("runs/broker.log"), help="default: runs/broker.log")
    parser.add_argument(
        "--topic", action="append", default=[], metavar="NAME[:PARTITIONS]", help="create it; repeatable"
    )


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Run the broker in the foreground."""
    from stream.broker import EmbeddedBroker

    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    with EmbeddedBroker(log_path=args.log.resolve(), port=args.port) as broker:
        _create_topics(broker.bootstrap, args.topic)
        out.write(f"broker ready on {broker.bootstrap}\n")
        out.flush()
        while broker.alive() and not stopped.wait(0.2):
            pass
        return 0 if stopped.is_set() else 1


def _create_topics(bootstrap: str, named: list[str]) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    topics = [_topic(text) for text in named]
    if not topics:
        return
    # The answers are lost when the client goes before they come.
    admin = AdminClient({"bootstrap.servers": bootstrap})
    made = admin.create_topics([NewTopic(name, partitions, 1) for name, partitions in topics])
    for future in made.values():
        future.result(20)


def _topic(text: str) -> tuple[str, int]:
    name, _, partitions = text.partition(":")
    require(bool(name) and (partitions or "1").isdigit(), f"--topic {text} is no NAME or NAME:PARTITIONS")
    return name, int(partitions or 1)
