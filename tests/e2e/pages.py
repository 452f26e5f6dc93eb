"""The commands and the code of our documents, and somebody who types them in a folder."""

import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.faults.processes import Process, Zygote
from headrace.__main__ import build_parser
from headrace.commands.train import of_a_rank
from stream.broker import free_port

ROOT = Path(__file__).parents[2]
PATIENCE_S = 240


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def command_blocks(page: str) -> list[list[str]]:
    """What a page indents by four blanks outside of fences: a list of commands for each run of such lines."""
    blocks: list[list[str]] = [[]]
    for line in re.sub(r"^```.*?^```", "", text_of(page), flags=re.DOTALL | re.MULTILINE).splitlines():
        if line.startswith("    "):
            blocks[-1].append(line.split("#")[0].strip())
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def fenced(page: str, language: str = "") -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(page), flags=re.DOTALL | re.MULTILINE)


@dataclass(kw_only=True, slots=True)
class Reader:
    """Types commands in `folder`; `replaced` puts what is there in place of what a page names."""

    zygote: Zygote
    folder: Path
    replaced: Mapping[str, str] = field(default_factory=dict)
    running: dict[str, Process] = field(default_factory=dict)

    def start(self, line: str) -> Process:
        """Begin a command of ours; it counts as running, under its name, until it is stopped."""
        arguments = self._words(line)
        self.running[arguments[0]] = self._fork("headrace", arguments)
        return self.running[arguments[0]]

    def type(self, line: str) -> str:
        """Run a command to its end; what it said."""
        process = self._fork("headrace", self._words(line))
        assert process.wait(PATIENCE_S) == 0, f"{line}: {process.text()}"
        return process.text()

    def train(self, line: str) -> str:
        """Run `headrace train` to its end: its ranks are forked here, not by torchrun's agent, which imports anew."""
        args = build_parser().parse_args(self._words(line))
        ranks = {"WORLD_SIZE": str(args.nproc), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        started = [
            self._fork("trainer", of_a_rank(args), {**ranks, "RANK": str(rank), "LOCAL_RANK": str(rank)})
            for rank in range(args.nproc)
        ]
        for process in started:
            assert process.wait(PATIENCE_S) == 0, f"{line}: {process.text()}"
        return "".join(process.text() for process in started)

    def shell(self, line: str) -> str:
        """Run another program to its end."""
        words = shlex.split(line)
        words[0] = sys.executable if words[0] == "python" else words[0]
        ran = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        assert ran.returncode == 0, f"{line}: {ran.stderr}"
        return ran.stdout

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition; fail with the logs when a process ends or time runs out."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            for name, process in self.running.items():
                status = process.poll()
                assert status is None, f"{name} ended with {status} before {what}: {process.text()}"
            logs = "\n".join(process.text()[-2000:] for process in self.running.values())
            assert time.monotonic() < deadline, f"{what} did not come: {logs}"
            time.sleep(0.05)

    def stop(self, name: str) -> None:
        process = self.running.pop(name)
        process.signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, process.text()

    def pause(self) -> None:
        for process in self.running.values():
            process.signal(signal.SIGSTOP)

    def go_on(self) -> None:
        for process in self.running.values():
            process.signal(signal.SIGCONT)

    def _words(self, line: str) -> list[str]:
        for old, new in self.replaced.items():
            line = line.replace(old, new)
        program, *arguments = shlex.split(line)
        assert program == "headrace", line
        return arguments

    def _fork(self, module: str, arguments: list[str], environment: Mapping[str, str] | None = None) -> Process:
        log = self.folder / f"{module}-{time.monotonic_ns()}.log"
        return self.zygote.start(module, arguments, environment, log=log, folder=self.folder)


@dataclass(kw_only=True, slots=True)
class Loop:
    """The loop of the README, and what it needs to be told apart from others."""

    reader: Reader
    port: int

    def version(self) -> int:
        """Of the model that the replica serves; 0 before the first."""
        url = f"http://127.0.0.1:{self.port}/v2/health/ready"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return int(answer.headers["headrace-version"])
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return 0

    def copy(self, folder: Path, model_dir: str = "runs/clicks") -> Reader:
        """Somebody else, in a new folder with the model as it is now and its configuration."""
        folder.mkdir()
        self.reader.pause()
        try:
            shutil.copytree(self.reader.folder / "runs/clicks", folder / model_dir)
        finally:
            self.reader.go_on()
        config = (self.reader.folder / "pipeline.config").read_text().replace("runs/clicks", model_dir)
        (folder / "pipeline.config").write_text(config)
        return Reader(zygote=self.reader.zygote, folder=folder)
