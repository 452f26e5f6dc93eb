"""A process that has imported the trainer, publisher and command line, and forks one of them for each request.

Importing takes seconds, a fork milliseconds: a thousand kills become affordable, each a SIGKILL of a real process.
JSON lines come in and are answered: {"module", "arguments", "environment", "log", "user", "folder"} by {"pid"}, and
{"poll": pid} by {"status"}, null while it runs and negative for signals. A user is a number; it and the folder that the
process runs in are the zygote's own where they are null.
"""

import importlib
import json
import logging
import os
import signal
import sys
import threading
import traceback
from typing import IO

from checkpointer.faults_kill import faults_from

# Also what is imported late, pandas by pyarrow: another user may be able to import nothing, and to keep no kernels.
_PRELOAD = (
    "trainer.run", "trainer.evaluate", "publisher.run", "publisher.replica.process", "torch.utils.tensorboard",
    "pandas",
)  # fmt: skip


def main() -> None:
    """Serve requests until the input ends."""
    for module in _PRELOAD:
        importlib.import_module(module)
    # Whoever interrupts a test run means the tests, not what they have started; they end that themselves.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _answer({})
    for line in sys.stdin:
        request = json.loads(line)
        _answer({"status": _poll(int(request["poll"]))} if "poll" in request else {"pid": _fork(request)})


def _answer(value: dict[str, int | None]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _poll(pid: int) -> int | None:
    ended, raw = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(raw) if ended else None


def _fork(request: dict[str, object]) -> int:
    child = os.fork()
    if child == 0:
        _become(request)
    return child


def _become(request: dict[str, object]) -> None:
    """Run the requested module in this (forked) process and never return."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(str(request["log"]), "ab", buffering=0) as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    if (folder := request.get("folder")) is not None:
        os.chdir(str(folder))
    if (user := request.get("user")) is not None:
        os.setgroups([])
        os.setgid(int(str(user)))
        os.setuid(int(str(user)))
    arguments, environment = list(request["arguments"]), dict(request["environment"])  # type: ignore[call-overload]
    os.environ.update(environment)  # the rendezvous of several ranks reads it there
    logging.getLogger().handlers.clear()
    code = 1
    try:
        code = _run(str(request["module"]), arguments, environment, sys.stderr)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException:  # the process's boundary: the log shows it, the status says it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(module: str, arguments: list[str], environment: dict[str, str], errors: IO[str]) -> int:
    if module == "trainer":
        from trainer.__main__ import run

        # With OMP_NUM_THREADS, which this process was started with: kernels of several threads do not survive a fork.
        return run(arguments, {**os.environ, **environment})
    if module == "publisher":
        from protos.boundary import guarded
        from publisher.__main__ import run_until as publish

        faults = faults_from(environment.get("HEADRACE_FAULT", ""))

        def once() -> int:
            publish(arguments, threading.Event(), faults)
            return 0

        return guarded(once, program="publisher", errors=sys.stderr)
    if module == "headrace":
        from headrace.__main__ import run as command

        return command(arguments, out=sys.stdout, errors=sys.stderr, environment={**os.environ, **environment})
    errors.write(f"unknown module {module}\n")
    return 2


if __name__ == "__main__":
    main()
    # Nothing is left to do: unloading all that was imported takes long on a busy machine.
    os._exit(0)
