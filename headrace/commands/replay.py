"""`headrace replay`: offline events into Kafka."""

import argparse
from typing import TextIO

from headrace.commands.parsing import Commands, add_command
from protos.arguments import at_least, positive_number


def add(commands: Commands) -> None:
    """Add the parser."""
    parser = add_command(
        commands,
        "replay",
        run,
        summary="send the rows of Parquet files to the topic, in event-time order",
        example="headrace replay pipeline.config events.parquet --speed 60",
    )
    parser.add_argument("config", metavar="CONFIG")
    parser.add_argument("parquet", metavar="PARQUET", help="a file or a pattern")
    parser.add_argument("--rows-per-message", type=at_least(1), default=128, metavar="N", help="default: 128")
    parser.add_argument("--key", metavar="COLUMN", help="rows with equal values go to one partition, in order")
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument(
        "--speed",
        type=_speed,
        default=None,
        metavar="FACTOR|max",
        help="that much faster than the events' own time (default: max)",
    )
    pace.add_argument("--rate", type=positive_number, metavar="N", help="events per second")


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Send the events."""
    from features import create_features
    from headrace.checked import load_checked
    from headrace.event_schema import event_schema
    from stream.feed_options import FeedOptions
    from stream.missing import naming_readers
    from stream.opening import kafka_options
    from stream.replay import Replay, replay_options
    from stream.replay_order import require_everywhere

    config = load_checked(args.config)
    options = replay_options(
        config,
        speed=args.speed,
        rate=args.rate,
        rows_per_message=args.rows_per_message,
        key_column=args.key,
    )
    columns = FeedOptions.from_proto(config, columns=create_features(config).columns).all_columns or ()
    with naming_readers({column.name: column.used_by for column in event_schema(config).columns}):
        # Before brokers are asked, who may be far away.
        require_everywhere(args.parquet, columns, options.s3)
    sent = Replay(kafka_options(config), options).run(args.parquet)
    out.write(f"sent {sent} events to {config.stream_config.topic}\n")
    return 0


def _speed(text: str) -> float | None:
    """The factor; None for max."""
    return None if text == "max" else positive_number(text)
