"""`headrace evaluate|predict|export`: what is done with a commit away from the stream."""

import argparse
import json
from pathlib import Path
from typing import TextIO

from headrace.commands.parsing import Commands, add_command, add_device
from protos.arguments import at_least

_RUNTIMES = ("aot_inductor", "torch_script")


def add(commands: Commands) -> None:
    """Add the parsers."""
    evaluate = add_command(
        commands,
        "evaluate",
        run_evaluate,
        summary="compute the configured metrics of a commit on files or a bounded topic",
        example="headrace evaluate pipeline.config --input held_out.parquet",
    )
    evaluate.add_argument("--input", default="", metavar="PATH", help="default: eval_input_path")
    evaluate.add_argument("--json", action="store_true", help="for programs")
    predict = _add_predict(commands)
    export = add_command(
        commands,
        "export",
        run_export,
        summary="write a commit as a model directory of its own, which headrace serve serves; or as plain files",
        example="headrace export pipeline.config --output exported --runtime torch_script",
    )
    export.add_argument("--output", required=True, metavar="FOLDER", help="new or empty; also s3://bucket/prefix")
    export.add_argument(
        "--runtime", choices=_RUNTIMES, help="of the dense half (default: publish_config.dense_runtime)"
    )
    export.add_argument(
        "--plain", action="store_true", help="files for other programs: Parquet tables, safetensors, the compiled half"
    )
    for parser in (evaluate, predict):
        add_device(parser, "where to compute")
    for parser in (evaluate, predict, export):
        parser.add_argument("config", metavar="CONFIG")
        parser.add_argument("--seq", type=at_least(1), help="the commit (default: the newest)")


def _add_predict(commands: Commands) -> argparse.ArgumentParser:
    predict = add_command(
        commands,
        "predict",
        run_predict,
        summary="predict rows with a commit, into Parquet, CSV or a MaxCompute table, in the order of the input",
        example="headrace predict pipeline.config --input rows.parquet --output scores.parquet --reserve item_id",
    )
    predict.add_argument("--input", required=True, metavar="PATH")
    predict.add_argument("--output", required=True, metavar="FILE", help="a path, an fsspec URL or odps://...")
    predict.add_argument(
        "--format",
        default="",
        choices=["parquet", "csv", "odps"],
        help="default: by the ending of the output's name; without one CSV for a CsvDataset, else Parquet",
    )
    predict.add_argument(
        "--reserve",
        default="",
        metavar="COLUMNS",
        help="input columns to keep, separated by commas; ALL_COLUMNS; ALL_EFFECTIVE_COLUMNS: what features need",
    )
    predict.add_argument("--columns", default="", metavar="NAMES", help="only these predictions, separated by commas")
    predict.add_argument(
        "--features", action="store_true", help="add a column __features__: what each feature made of the row"
    )
    return predict


def run_evaluate(args: argparse.Namespace, out: TextIO) -> int:
    """Print the metrics."""
    from headrace.checked import load_checked, reading_from
    from trainer.devices import Machine, choose
    from trainer.evaluate import evaluate

    device = choose(args.device, Machine.found())
    config = load_checked(args.config, device=device.type)
    config = reading_from(config, args.input or config.eval_input_path)
    result = evaluate(config, path=args.input, seq=args.seq, device=device)
    shown = {"commit": result.commit, "rows": result.rows, "rejected": result.rejected, **result.metrics}
    if args.json:
        out.write(json.dumps(shown, indent=2) + "\n")
    else:
        out.writelines(f"{name:24} {value}\n" for name, value in shown.items())
    return 0


def run_predict(args: argparse.Namespace, out: TextIO) -> int:
    """Write the predictions."""
    from headrace.checked import load_checked, reading_from
    from stream.writing import check_output, write_rows
    from trainer.devices import Machine, choose
    from trainer.evaluate import predict

    device = choose(args.device, Machine.found())
    config = reading_from(load_checked(args.config, device=device.type), args.input)
    batches = predict(
        config,
        path=args.input,
        columns=_names(args.columns),
        reserved=_names(args.reserve),
        explain=args.features,
        seq=args.seq,
        device=device,
        accept=lambda schema: check_output(args.output, schema, config, args.format),
    )
    rows = write_rows(args.output, batches, config, args.format)
    out.write(f"wrote {rows} rows to {args.output}\n")
    return 0


def run_export(args: argparse.Namespace, out: TextIO) -> int:
    """Write a serving version, or plain files."""
    from headrace.checked import load_checked
    from headrace.export import export_commit, export_version

    config = load_checked(args.config)
    if args.plain:
        runtime = args.runtime or "torch_script"
        found = export_commit(config, Path(args.output), seq=args.seq, runtime=runtime)
    else:
        found = export_version(config, args.output, seq=args.seq, runtime=args.runtime)
    out.write(f"exported commit {found.seq}: {found.rows} rows of {found.tables} tables to {args.output}\n")
    if not args.plain:
        out.write(f"serve it: headrace serve {args.output}\n")
    return 0


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
