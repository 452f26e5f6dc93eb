"""`headrace config check|schema`: what a configuration means before anything runs."""

import argparse
from typing import TextIO

from headrace.commands.parsing import Commands, add_command, add_device, add_family
from protos.arguments import positive_number
from protos.dispositions import Report


def add(commands: Commands) -> None:
    """Add the parsers."""
    family = add_family(commands, "config", summary="judge a configuration, or print what producers must send")
    check = add_command(
        family,
        "check",
        run_check,
        summary="print errors, notices, and what the configuration will take: memory, bytes per commit, disk per day",
        example="headrace config check pipeline.config --events-per-second 5000",
    )
    check.add_argument("config", metavar="CONFIG")
    check.add_argument(
        "--events-per-second", type=positive_number, default=1000.0, help="expected traffic (default: 1000)"
    )
    add_device(check, "the device that will train")
    schema = add_command(
        family,
        "schema",
        run_schema,
        summary="print the events that producers must send, or a producer that runs",
        example="headrace config schema pipeline.config --producer > producer.py",
    )
    schema.add_argument("config", metavar="CONFIG")
    schema.add_argument("--producer", action="store_true", help="print a Python program that sends such events")


def run_check(args: argparse.Namespace, out: TextIO) -> int:
    """Print what was found; exit code 2 when there are errors."""
    from protos.dispositions import check
    from protos.load import load_config
    from protos.sources import reads_kafka

    config = load_config(args.config)
    report = check(config)
    if report.errors:
        _write(report, out)
        out.write(f"{args.config}: {len(report.errors)} error(s), {len(report.notices)} notice(s)\n")
        return 2
    # These bring torch, which takes seconds: errors are told before. Features read their files, which may be amiss too.
    from features import create_features, refuse_misfits
    from features.readers import readers
    from headrace.estimate import estimate
    from stream.feed_options import FeedOptions
    from stream.missing import naming_readers
    from stream.opening import make_decoder
    from trainer.devices import Machine, choose

    device = choose(args.device, Machine.found()).type
    report = check(config, device=device)
    _write(report, out)
    features = create_features(config)
    refuse_misfits(features, config.data_config)
    if reads_kafka(config):
        # Of a format that has a schema of its own, that must hold every column; it says what cannot be told from 0.
        columns = FeedOptions.from_proto(config, columns=features.columns).all_columns
        with naming_readers(readers(features)):
            make_decoder(config, columns)
    found = estimate(config, events_per_second=args.events_per_second)
    out.write(f"{args.config}: ok, {len(report.notices)} notice(s), for training on {device}\n")
    out.write(found.text())
    return 0


def _write(report: Report, out: TextIO) -> None:
    for error in report.errors:
        out.write(f"error   {error}\n")
    for notice in report.notices:
        out.write(f"notice  {notice}\n")


def run_schema(args: argparse.Namespace, out: TextIO) -> int:
    """Print the event schema or the producer."""
    from headrace.checked import load_checked

    config = load_checked(args.config)
    from headrace.event_schema import event_schema
    from headrace.producer import producer_source

    out.write(producer_source(config) if args.producer else event_schema(config).text())
    return 0
