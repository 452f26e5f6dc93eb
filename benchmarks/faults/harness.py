"""Runs the trainer and the publisher to the end, killed at seeded points, and compares with a run without kills."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.faults.processes import Zygote
from benchmarks.faults.stage import Stage
from checkpointer import CommitLog
from checkpointer.digest import logical_digest
from checkpointer.local_store import LocalStore
from publisher.rows import read_rows
from publisher.versions import Base, Delta, read_current
from stream.deadletter_file import read_folder
from stream.progress import Progress

KILLED = -9


@dataclass(frozen=True, kw_only=True, slots=True)
class Kill:
    """SIGKILL `module` when it reaches `point` for the `nth` time."""

    module: str
    point: str
    nth: int

    @property
    def environment(self) -> dict[str, str]:
        """What the entry point reads."""
        return {"HEADRACE_FAULT": f"{self.point}:{self.nth}"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What a finished run left. `digest` is over all state (checkpointer/digest.py), `served` over the served rows."""

    digest: str
    served: str
    accounting: dict[str, int]
    letters: frozenset[str]
    kills: int

    def same_state(self, other: "Result") -> bool:
        """Whether nothing tells the two runs apart but the number of kills."""
        return (self.digest, self.served, self.accounting, self.letters) == (
            other.digest,
            other.served,
            other.accounting,
            other.letters,
        )


def points(zygote: Zygote, stage: Stage, model_dir: Path) -> dict[tuple[str, str], int]:
    """How often each point is reached, by (module, point), in a run without kills."""
    counts: Counter[tuple[str, str]] = Counter()
    config = str(stage.config(model_dir))
    for module, arguments in (("trainer", [config]), ("publisher", [config, "--once"])):
        record = model_dir.with_suffix(f".{module}-points")
        status = zygote.run(module, arguments, {"HEADRACE_FAULT": f"record={record}"})
        if status != 0:
            raise RuntimeError(f"{module} ended with status {status}; see the zygote's log")
        counts.update((module, point) for point in record.read_text().splitlines())
    return dict(counts)


def plan(reached: Mapping[tuple[str, str], int], *, kills: int, seed: int) -> list[Kill]:
    """Draw kills: every point in turn, in a shuffled order, each early enough that there is work left for the next."""
    random = np.random.default_rng(seed)
    order = [sorted(reached)[index] for index in random.permutation(len(reached))]
    chosen = (order[number % len(order)] for number in range(kills))
    return [
        Kill(module=module, point=point, nth=int(random.integers(1, max(2, reached[module, point] // kills))))
        for module, point in chosen
    ]


_AFTER_A_COMMIT = Kill(module="trainer", point="train.durable", nth=1)


def run_to_end(zygote: Zygote, stage: Stage, model_dir: Path, kills: list[Kill]) -> Result:
    """Train and publish everything. Each kill ends a process once; the publisher's come after one of the trainer's.

    A kill whose point is not reached any more, since earlier lives went past it, does not happen and is not counted.
    """
    config = str(stage.config(model_dir))
    arguments = {"trainer": [config], "publisher": [config, "--once"]}
    happened = 0
    for kill in kills:
        if kill.module == "publisher":
            # Something new to publish, or the point is never reached.
            happened += _run(zygote, "trainer", arguments, _AFTER_A_COMMIT)
        happened += _run(zygote, kill.module, arguments, kill)
    for module in arguments:
        _run(zygote, module, arguments, None)
    return read_result(model_dir, happened)


def _run(zygote: Zygote, module: str, arguments: Mapping[str, list[str]], kill: Kill | None) -> bool:
    """Run one process; whether it was killed as planned. Any other failure is an error."""
    status = zygote.run(module, arguments[module], kill.environment if kill else {})
    if status not in (0, KILLED) or (status == KILLED and kill is None):
        raise RuntimeError(f"{module} ended with status {status} after {kill}; see the zygote's log")
    return status == KILLED


def read_result(model_dir: Path, kills: int = 0) -> Result:
    """What the model directory holds after `kills`."""
    store = LocalStore(str(model_dir))
    restored = CommitLog(store).restore()
    digest = logical_digest(restored.tables, restored.dense, restored.stream, restored.commit.step)
    counts = list(Progress.from_proto(restored.stream).accounting.values())
    names = ("received", "trained", "late", "dead_lettered", "filtered", "duplicate", "remainder")
    accounting = {name: sum(getattr(count, name) for count in counts) for name in names}
    return Result(
        digest=digest,
        served=_served(store),
        accounting=accounting,
        letters=frozenset(letter.key for letter in read_folder(model_dir / "dead_letters")),
        kills=kills,
    )


def _served(store: LocalStore) -> str:
    """A digest of what a replica would look up: every row of the version that the pointer names, and its dense half."""
    version = read_current(store)
    if version is None:
        return ""
    tables: dict[str, dict[int, bytes]] = {}
    steps: list[Base | Delta] = [version.base, *version.plan(None).deltas]
    for step in steps:
        for name in step.resets if isinstance(step, Delta) else ():
            tables.pop(name, None)
        for rows in (rows for blob in step.blobs for rows in read_rows(store, version.tables, blob)):
            table = tables.setdefault(rows.table, {})
            for raw in rows.deleted.tolist():
                table.pop(raw, None)
            table.update(zip(rows.ids.tolist(), map(bytes, rows.rows), strict=True))
    total = hashlib.sha256(version.dense.digest.encode())
    for name in sorted(tables):
        for raw, row in sorted(tables[name].items()):
            total.update(f"{name}/{raw}".encode() + row)
    return total.hexdigest()
