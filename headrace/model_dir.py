"""MODEL_DIR on the command line: a local directory, or s3://bucket/prefix with the options to reach it."""

import argparse
import os
from pathlib import Path

from checkpointer.open_store import StoreOptions, open_store
from checkpointer.store import Store
from headrace.errors import UsageError
from protos.secrets import secret_part


def open_model_dir(args: argparse.Namespace) -> Store:
    """The store that the arguments of `add_model_dir` name; UsageError for a local directory that is not there."""
    url = args.model_dir
    if _is_local(url) and not Path(url).is_dir():
        raise UsageError(f"{url} is no directory; give the model_dir of the configuration, which its trainer makes")
    return _open(args)


def no_commits(url: str) -> UsageError:
    """The error of commands that look at commits."""
    return UsageError(f"{url} holds no commit yet; train first, or check the path")


def await_model_dir(args: argparse.Namespace) -> Store:
    """The same for a process that waits until the directory is made; UsageError where nobody is likely to make it.

    A trainer makes a relative path with its parents, an absolute one is rather a mount that is not there. OSError where
    the directory is there and cannot be read.
    """
    url = args.model_dir
    if _is_local(url):
        path = Path(url)
        if path.exists():
            os.scandir(path).close()
        elif path.is_absolute() and not path.parent.is_dir():
            raise UsageError(f"{url} cannot come to be: {path.parent} is no directory; correct the path")
    return _open(args)


def _is_local(url: str) -> bool:
    return "://" not in url


def _open(args: argparse.Namespace) -> Store:
    url = args.model_dir
    found = None if _is_local(url) else secret_part(url)
    if found is not None:
        raise UsageError(f"MODEL_DIR carries {found} in its URI; put it into a file and pass --s3-credentials-file")
    options = StoreOptions(
        endpoint=args.s3_endpoint,
        region=args.s3_region,
        credentials_file=args.s3_credentials_file,
        allow_http=args.s3_allow_http,
    )
    return open_store(url, options)
