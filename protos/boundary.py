"""The process boundary: what an error becomes for the person at the terminal, one line and an exit code.

0 is done, 1 is failed, 2 is bad input or usage, 130 is interrupted. It lies below all packages, so that each process
(`headrace`, `trainer`, `publisher`) has the same one; it imports none of them.
"""

import logging
import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn, TextIO

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130

# Each package's root of errors, and which of its errors are the user's input. A class is looked up in a module that is
# loaded already: no package is imported just to be able to catch its errors.
_ROOTS: dict[str, tuple[str, ...]] = {
    "protos.errors": ("ConfigError",),
    "stream.errors": ("StreamError",),
    "features.errors": ("FeatureError",),
    "recmodels.errors": ("RecModelError",),
    "trainer.errors": ("TrainerError",),
    "checkpointer.errors": ("CheckpointError",),
    "publisher.errors": ("PublisherError",),
    "headrace.demo.errors": ("DemoError",),
    "headrace.errors": ("UsageError",),
    "confluent_kafka": ("KafkaException",),
}
_BAD_INPUT: dict[str, tuple[str, ...]] = {
    "protos.errors": ("ConfigError",),
    "features.errors": ("FeatureConfigError",),
    "recmodels.errors": ("ModelConfigError",),
    "trainer.errors": ("TrainerConfigError",),
    "checkpointer.errors": ("NoLockError",),
    "publisher.errors": ("PublisherConfigError", "KeyFileError"),
    "headrace.errors": ("UsageError",),
}


def guarded(run: Callable[[], int], *, program: str, errors: TextIO, show_traceback: bool = False) -> int:
    """Run a command; whatever it raises becomes one line on `errors`, and an exit code."""
    try:
        return run()
    except (Exception, KeyboardInterrupt) as error:
        line, code = explain(error)
        if show_traceback:
            traceback.print_exception(error, file=errors)
        errors.write(f"{program}: {line}\n")
        return code


def leave(code: int) -> NoReturn:
    """End this process with `code`, its output written, without the interpreter's finalization.

    gloo's threads outlive `destroy_process_group` and may still hold a tensor of the last collective: dropping it while
    the interpreter finalizes aborts the process, once in fifty times with two ranks (pytorch/pytorch#179291).
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def explain(error: BaseException) -> tuple[str, int]:
    """The line and the exit code for `error`.

    >>> explain(FileNotFoundError(2, "No such file or directory", "a.parquet"))
    ('a.parquet: No such file or directory', 1)
    >>> explain(KeyboardInterrupt())
    ('interrupted', 130)
    """
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", INTERRUPTED
    if _is_one_of(error, _ROOTS):
        return _text(error), BAD_INPUT if _is_one_of(error, _BAD_INPUT) else FAILED
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror, FAILED
    if isinstance(error, ModuleNotFoundError) and error.name:
        return (
            f"module {error.name} is not installed; run make install, or pip install the extra that brings it",
            FAILED,
        )
    return f"internal error: {type(error).__name__}: {_text(error)}; report it, with what --traceback shows", FAILED


def _is_one_of(error: BaseException, table: dict[str, tuple[str, ...]]) -> bool:
    loaded = [(sys.modules[module], names) for module, names in table.items() if module in sys.modules]
    return any(isinstance(error, getattr(module, name, ())) for module, names in loaded for name in names)


def _text(error: BaseException) -> str:
    # A KafkaException holds a KafkaError, which words itself.
    worded = getattr(error.args[0], "str", None) if error.args else None
    return str(worded() if callable(worded) else error).strip() or type(error).__name__
