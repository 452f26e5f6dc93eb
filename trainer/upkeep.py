"""Compaction and garbage collection of the commit log where no publisher does it: in a child process, under their lock.

`python -m trainer.upkeep CONFIG` is that child.
"""

import fcntl
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from checkpointer.due import CompactionDue
from checkpointer.errors import LockedError
from checkpointer.maintenance import maintain_model
from checkpointer.open_store import StoreOptions, open_store
from protos.boundary import guarded
from protos.load import load_config
from trainer.errors import TrainerConfigError

logger = logging.getLogger(__name__)

_NICE = 10
# publisher/lock.py; a publisher that runs does the upkeep itself.
_PUBLISHER_LOCK = "publisher.lock"


class Upkeep:
    """Start the child every `every` commits, one at a time; never when a publisher holds its lock.

    Also when compaction is due (checkpointer/due.py). The child judges by itself.
    """

    def __init__(
        self,
        config_path: str,
        directory: str,
        *,
        every: int,
        start: Callable[[str], subprocess.Popen[bytes]],
        due: CompactionDue,
    ):
        self._config_path = config_path
        self._directory = directory
        self._every = max(1, every)
        self._start = start
        self._due = due
        self._child: subprocess.Popen[bytes] | None = None

    def after_commit(self, seq: int, grown_bytes: int) -> None:
        """Tidy up when it is time; `grown_bytes` are the commit's."""
        self._due.add(grown_bytes)
        if not self._directory or self._at_work():
            return
        if (seq % self._every == 0 or self._due.due()) and not _is_held(Path(self._directory) / _PUBLISHER_LOCK):
            self._child = self._start(self._config_path)
            self._due.started()

    def _at_work(self) -> bool:
        if self._child is not None and self._child.poll() is not None:
            self._child = None
            self._due.ended()
        return self._child is not None

    def wait(self) -> None:
        """Wait for the child; a trainer that leaves does not, since the child needs nothing of it."""
        if self._child is not None:
            self._child.wait()


def start_child(config_path: str) -> subprocess.Popen[bytes]:
    """Start `python -m trainer.upkeep`."""
    return subprocess.Popen([sys.executable, "-m", "trainer.upkeep", config_path], stdin=subprocess.DEVNULL)


def _is_held(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def main(arguments: list[str]) -> int:
    """Tidy the log of one configuration, politely; give the exit code."""
    os.nice(_NICE)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    return guarded(lambda: _tidy(arguments), program="trainer.upkeep", errors=sys.stderr)


def _tidy(arguments: list[str]) -> int:
    if len(arguments) != 1:
        raise TrainerConfigError("usage: python -m trainer.upkeep CONFIG")
    config = load_config(arguments[0])
    store = open_store(config.model_dir, StoreOptions.from_proto(config.checkpoint_config.s3))
    try:
        maintain_model(store, config, now_ms=time.time_ns() // 1_000_000, holder=f"trainer of {store.url}")
    except LockedError as error:
        logger.info("the log is being tidied already: %s", error)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
