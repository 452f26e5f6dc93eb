"""A process that leaves has said everything, and runs nothing more."""

import subprocess
import sys

SCRIPT = """
import atexit, logging, sys
from protos.boundary import leave
atexit.register(lambda: print("finalized"))
logging.basicConfig(stream=sys.stderr, format="%(message)s")
sys.stdout.write("out")
logging.warning("logged")
leave(3)
"""


def test_leave_writes_what_was_said_and_skips_finalization() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out", "logged\n")
