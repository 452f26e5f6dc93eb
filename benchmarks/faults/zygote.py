"""A process that has imported the trainer and publisher, and forks one of them for each line it is given.

Importing takes seconds, a fork milliseconds: a thousand kills become affordable, each a SIGKILL of a real process.
A JSON line {"module", "arguments", "environment", "log"} goes in, a line {"status"} comes out, negative for signals.
"""

import importlib
import json
import logging
import os
import sys
import threading
import traceback
from typing import IO

from checkpointer.faults_kill import faults_from

_PRELOAD = ("trainer.run", "trainer.evaluate", "publisher.run", "torch.utils.tensorboard")


def main() -> None:
    """Serve requests until the input ends."""
    for module in _PRELOAD:
        importlib.import_module(module)
    sys.stdout.write("{}\n")
    sys.stdout.flush()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(request)
        _, raw = os.waitpid(child, 0)
        sys.stdout.write(json.dumps({"status": os.waitstatus_to_exitcode(raw)}) + "\n")
        sys.stdout.flush()


def _become(request: dict[str, object]) -> None:
    """Run the requested module in this (forked) process and never return."""
    with open(str(request["log"]), "ab", buffering=0) as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    arguments, environment = list(request["arguments"]), dict(request["environment"])  # type: ignore[call-overload]
    logging.getLogger().handlers.clear()
    code = 1
    try:
        code = _run(str(request["module"]), arguments, environment, sys.stderr)
    except BaseException:  # the process's boundary: the log shows it, the status says it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _run(module: str, arguments: list[str], environment: dict[str, str], errors: IO[str]) -> int:
    if module == "trainer":
        from trainer.__main__ import run

        return run(arguments, environment)
    if module == "publisher":
        from publisher.__main__ import run_until as publish

        publish(arguments, threading.Event(), faults_from(environment.get("HEADRACE_FAULT", "")))
        return 0
    errors.write(f"unknown module {module}\n")
    return 2


if __name__ == "__main__":
    main()
