"""Ranks: one as a plain process, several under torchrun's agent."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainer.devices import Machine

PROGRAM = """
import os, sys
from headrace.launch import launch
sys.exit(launch(sys.argv[2:], nproc=int(sys.argv[1]), environment=os.environ))
"""


def launched(*arguments: str, nproc: int = 1) -> list[str]:
    return [sys.executable, "-c", PROGRAM, str(nproc), *arguments]


def test_launch_starts_that_many_ranks(tmp_path: Path) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import os, pathlib\n"
        f"pathlib.Path({str(tmp_path)!r}, 'rank' + os.environ['RANK']).write_text(os.environ['WORLD_SIZE'])\n"
    )
    subprocess.run(launched(str(worker), nproc=2), check=True, timeout=120)
    assert (tmp_path / "rank0").read_text() == (tmp_path / "rank1").read_text() == "2"


@pytest.mark.parametrize(("code", "nproc"), [(1, 1), (2, 2)])
def test_launch_gives_the_exit_code_of_a_rank_and_adds_no_traceback(tmp_path: Path, code: int, nproc: int) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text(f"import sys\nsys.stderr.write('trainer: one clear line\\n')\nsys.exit({code})\n")
    ran = subprocess.run(launched(str(worker), nproc=nproc), check=False, timeout=120, capture_output=True, text=True)
    assert ran.returncode == code
    assert "one clear line" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("nproc", [1, 2])
def test_launch_lets_ranks_finish_on_sigterm(tmp_path: Path, nproc: int) -> None:
    worker = tmp_path / "worker.py"
    ready, done = tmp_path / "ready", tmp_path / "done"
    worker.write_text(
        "import pathlib, signal, sys, time\n"
        "import os\nrank = os.environ.get('RANK', '0')\n"
        f"signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path({str(done)!r} + rank).touch(), sys.exit(0)))\n"
        f"pathlib.Path({str(ready)!r} + rank).touch()\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(launched(str(worker), nproc=nproc), stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not all(Path(f"{ready}{rank}").exists() for rank in range(nproc)) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert all(Path(f"{done}{rank}").exists() for rank in range(nproc))
    assert process.returncode == 0
    assert "Traceback" not in errors


@pytest.mark.skipif(not Machine.found().lacking, reason="this machine has CUDA")
def test_a_device_that_is_not_there_is_told_once_for_all_ranks(
    headrace: Callable[..., Any], write_config: Callable[..., Path]
) -> None:
    ran = headrace("train", write_config(), "--nproc", "2", "--device", "cuda")
    assert ran.code == 2
    (line,) = ran.errors.strip().splitlines()
    assert "--device cuda: torch" in line and "or pass --device cpu" in line
