"""Ranks under torchrun's agent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import sys
from headrace.launch import launch
sys.exit(launch(sys.argv[2:], nproc=int(sys.argv[1])))
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


@pytest.mark.parametrize("code", [1, 2])
def test_launch_gives_the_exit_code_of_a_rank_and_adds_no_traceback(tmp_path: Path, code: int) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text(f"import sys\nsys.stderr.write('trainer: one clear line\\n')\nsys.exit({code})\n")
    ran = subprocess.run(launched(str(worker)), check=False, timeout=120, capture_output=True, text=True)
    assert ran.returncode == code
    assert "one clear line" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_launch_lets_a_rank_finish_on_sigterm(tmp_path: Path) -> None:
    worker = tmp_path / "worker.py"
    ready, done = tmp_path / "ready", tmp_path / "done"
    worker.write_text(
        "import pathlib, signal, sys, time\n"
        f"signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path({str(done)!r}).touch(), sys.exit(0)))\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(launched(str(worker)), stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not ready.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert done.exists()
    assert process.returncode == 0
    assert "Traceback" not in errors
