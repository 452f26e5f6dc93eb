"""`headrace serve`: a serving replica."""

import argparse
from pathlib import Path
from typing import TextIO

from headrace.commands.parsing import Commands, add_command, add_model_dir, require
from protos.arguments import port


def add(commands: Commands) -> None:
    """Add the parser."""
    parser = add_command(
        commands,
        "serve",
        run,
        summary="serve the published model over HTTP (Open Inference Protocol v2)",
        example="headrace serve runs/model --port 8080",
    )
    add_model_dir(parser)
    parser.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1, this machine only")
    parser.add_argument("--port", type=port, default=8080, help="0 picks a free one (default: 8080)")
    parser.add_argument("--token-file", type=Path, help="requests must bring the token that it holds")
    parser.add_argument(
        "--verify-key-file", type=Path, help="Ed25519 public key: unsigned and foreign versions are refused"
    )
    parser.add_argument(
        "--state-file",
        type=Path,
        help="with a key: remembers which pointer was newest, so that a restart believes no older",
    )
    parser.add_argument("--config", metavar="CONFIG", help="take serve_config and verify_key_file from it")


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Serve until SIGTERM."""
    from dataclasses import replace

    from headrace.model_dir import await_model_dir
    from protos.load import load_config
    from protos.pipeline_pb2 import EasyRecConfig
    from publisher.replica.options import ServeOptions
    from publisher.replica.process import serve_store

    store = await_model_dir(args)
    config = load_config(args.config) if args.config else EasyRecConfig()
    options = ServeOptions.from_proto(config, host=args.host, port=args.port, token_file=args.token_file)
    if args.verify_key_file:
        options = replace(options, verify_key_file=args.verify_key_file)
    if args.state_file:
        require(options.verify_key_file is not None, "--state-file guards signed pointers: give --verify-key-file too")
        options = replace(options, state_file=args.state_file)
    return serve_store(store, options)
