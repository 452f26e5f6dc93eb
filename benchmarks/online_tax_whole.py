"""Figure online_tax_whole: a step with ZCH, touched rows, sealing, writer and publisher, over plain TorchRec DMP's.

The model and both steps are those of online_tax. Blocks of plain steps, alone on the machine, and of ours take turns in
one process; during ours, commits are sealed every 7 steps (half a second, on a machine that does nothing else), written
to a local disk by the trainer's committer, and published by another process on the same two cores. A plain block begins
when all of that has come to rest.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Self

import numpy as np
import torch

from benchmarks import online_tax
from benchmarks.figure import Figure, load, run_script
from benchmarks.online_tax import Variant
from benchmarks.publisher_process import DIGEST
from checkpointer import TableRows, Writer, WriterOptions
from checkpointer.local_store import LocalStore
from protos.commit_pb2 import StreamState
from publisher.versions import read_pointer
from recmodels.metrics import ProgressiveMetrics
from recmodels.tables import ShardedTables
from stream.deadletter_file import FileDeadLetters
from trainer.commit_writer import CommitWriter, Identity
from trainer.committer import Committer, Snapshot
from trainer.workers import Rank, Workers

GOAL = 1.15


class Whole:
    """Our step, its commits, and the publisher's process; a context manager."""

    def __init__(self, folder: Path, variant: Variant, tables: ShardedTables, workers: Workers) -> None:
        self._folder, self._variant, self._tables = folder, variant, tables
        self._store = LocalStore(str(folder))
        options = WriterOptions(
            token=DIGEST, clock_ms=lambda: time.time_ns() // 1_000_000, new_chain=lambda: DIGEST, writer=DIGEST
        )
        self._metrics = ProgressiveMetrics()
        self._committer = Committer(
            CommitWriter(
                self._store,
                writer=Writer.open(self._store, options),
                workers=workers,
                sink=FileDeadLetters(folder / "dead_letters", writer=DIGEST, code_version=DIGEST),
                identity=Identity(contract=DIGEST, features=DIGEST),
                new_metrics=ProgressiveMetrics,
            ).write
        )
        self._last = variant.steps
        self._seq = 0
        self.sealed: list[int] = []

    def __enter__(self) -> Self:
        self._tables.touch_all()
        rows = self._commit()
        names = sorted({(part.table, part.columns["weight"].shape[1]) for part in rows})
        command = [sys.executable, "-m", "benchmarks.publisher_process", str(self._folder)]
        self._publisher = subprocess.Popen([*command, *(f"{n}:{d}" for n, d in names)], stdin=subprocess.PIPE)
        self.rest()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._publisher.communicate(timeout=30)
        self._committer.close()

    def publisher_s(self) -> float:
        """Processor seconds of the publisher so far."""
        fields = Path(f"/proc/{self._publisher.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def step(self) -> None:
        """One step of training, and what is due of committing."""
        self._variant.step(time.perf_counter)
        self._settle(0.0)
        if not self._committer.busy and self._variant.steps - self._last >= online_tax.SEAL_EVERY:
            self._last = self._variant.steps
            self.sealed.append(sum(len(part) for part in self._commit()))

    def rest(self) -> None:
        """Wait until everything committed is published."""
        self._settle(None)
        while (pointer := read_pointer(self._store)) is None or pointer.version < self._seq:
            if self._publisher.poll() is not None:
                raise RuntimeError(f"the publisher ended with status {self._publisher.returncode}")
            time.sleep(0.05)
        time.sleep(0.3)

    def _settle(self, timeout_s: float | None) -> None:
        outcome = self._committer.outcome(timeout_s)
        if outcome is None:
            return
        if outcome.commit is None:
            raise RuntimeError(f"a commit failed: {outcome.error}")
        self._seq = outcome.commit.seq
        self._tables.confirm()

    def _commit(self) -> list[TableRows]:
        rows = self._tables.seal()
        self._committer.submit(
            Snapshot(
                step=self._variant.steps,
                event_time_ms=self._variant.steps,
                broker_time_ms=-1,
                full=self._seq == 0,
                keep=False,
                tables=tuple(rows),
                dense=_dense(self._variant),
                metrics=self._metrics.state(),
                stream=StreamState(),
            )
        )
        return rows


def _dense(variant: Variant) -> dict[str, np.ndarray]:
    """Copies of the dense parameters and their optimizer's state."""
    found: dict[str, np.ndarray] = {}
    for group in variant.optimizer.param_groups:
        for number, parameter in enumerate(group["params"]):
            found[f"parameter/{number}"] = parameter.detach().numpy().copy()
            for name, value in variant.optimizer.state[parameter].items():
                found[f"optimizer/{number}/{name}"] = torch.as_tensor(value).numpy().copy()
    return found


def measure(quick: bool) -> list[Figure]:
    """Blocks of plain steps and of ours, in turns."""
    rounds, steps = (1, 4) if quick else (5, 40)
    torch.manual_seed(0)
    workers = Workers(Rank())
    plain = online_tax.plain(online_tax.make_batches(30, 1, bounded=True))
    ours = online_tax.ours(online_tax.make_batches(30, 1, bounded=False), zch=True, seal_every=0)
    if ours.tables is None:
        raise RuntimeError("our variant has tables")
    for _ in range(steps):
        plain.step(time.perf_counter)
        ours.step(time.perf_counter)
    blocks: list[tuple[float, float]] = []
    used: list[float] = []
    with tempfile.TemporaryDirectory() as folder, Whole(Path(folder), ours, ours.tables, workers) as whole:
        for _ in range(rounds):
            marks = [time.process_time()]
            alone = _seconds(lambda: plain.step(time.perf_counter), steps)
            marks.append(time.process_time())
            publisher_s = whole.publisher_s()
            blocks.append((_seconds(whole.step, steps), alone))
            whole.rest()
            marks.append(time.process_time())
            used += [marks[1] - marks[0], marks[2] - marks[1], whole.publisher_s() - publisher_s]
        sealed = whole.sealed
    workers.close()
    spent = [1e3 * sum(used[part::3]) / (rounds * steps) for part in range(3)]
    cpu = f"processor ms a step: plain {spent[0]:.0f}, ours with writer {spent[1]:.0f}, publisher {spent[2]:.0f}"
    return [_figure(blocks, sealed, cpu)]


def _seconds(step: Callable[[], None], steps: int) -> float:
    """A step's seconds, the mean of a block."""
    started = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - started) / steps


def _figure(blocks: Sequence[tuple[float, float]], sealed: Sequence[int], cpu: str) -> Figure:
    ratio = median(ours / plain for ours, plain in blocks)
    rows = f"{len(sealed)} commits of {median(sealed):.0f} rows" if sealed else "no commit"
    spread = ", ".join(f"{ours / plain:.3f}" for ours, plain in blocks)
    return Figure(
        name="online_tax_whole",
        value=1e3 * median(ours for ours, _ in blocks),
        unit="ms a step",
        floor_or_peer=1e3 * median(plain for _, plain in blocks),
        ratio=ratio,
        goal=f"ratio <= {GOAL}",
        meets=ratio <= GOAL,
        note=f"median of {len(blocks)} rounds ({spread}); {rows}; {cpu}; {load()}",
    )


if __name__ == "__main__":
    sys.exit(run_script(sys.argv[1:], __doc__, measure))
