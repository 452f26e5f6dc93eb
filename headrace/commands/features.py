"""`headrace features`: what each feature makes of the rows of a file."""

import argparse
import json
from pathlib import Path
from typing import TextIO

from headrace.commands.parsing import Commands, add_command
from protos.arguments import at_least


def add(commands: Commands) -> None:
    """Add the parser."""
    parser = add_command(
        commands,
        "features",
        run_features,
        summary="show what each feature makes of the first rows of a file, write it for all, or compare it",
        example="headrace features pipeline.config --data rows.parquet --rows 3",
    )
    parser.add_argument("config", metavar="CONFIG")
    parser.add_argument("--data", required=True, metavar="PATH", help="a file, or what train_input_path may be")
    parser.add_argument("--rows", type=at_least(1), default=5, help="how many rows are shown (default: 5)")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write all rows to a Parquet file, a column per feature"
    )
    parser.add_argument(
        "--compare", type=Path, metavar="EXPECTED", help="a Parquet file of such columns; exit code 1 where they differ"
    )


def run_features(args: argparse.Namespace, out: TextIO) -> int:
    """Show, write or compare."""
    from headrace.checked import load_checked, reading_from
    from headrace.features import as_json, as_text, show, write

    config = reading_from(load_checked(args.config), args.data)
    if args.out is not None:
        rows, rejected = write(config, args.data, args.out)
        out.write(f"{args.out}: {rows} rows, {rejected} of them cannot be used and are null\n")
    if args.compare is not None:
        return _compare(args, out)
    if args.out is None:
        found = show(config, args.data, args.rows)
        if args.json:
            out.write(json.dumps(as_json(found), indent=2, ensure_ascii=False, default=str) + "\n")
        else:
            out.writelines(f"{line}\n" for line in as_text(found))
    return 0


def _compare(args: argparse.Namespace, out: TextIO) -> int:
    from dataclasses import asdict

    from headrace.checked import load_checked, reading_from
    from headrace.features import compare

    result = compare(reading_from(load_checked(args.config), args.data), args.data, args.compare)
    if args.json:
        out.write(json.dumps(asdict(result), indent=2) + "\n")
        return 0 if result.equal else 1
    for name in result.missing:
        out.write(f"{name}: no such column in {args.compare}\n")
    for name, count in result.counts.items():
        out.write(f"{name}: {count} of {result.rows} rows differ\n")
        out.writelines(f"  {line}\n" for line in result.first[name])
    if result.equal:
        out.write(f"{result.rows} rows are equal in every feature\n")
    return 0 if result.equal else 1
