"""Runs trainer and publisher to the end, killed at seeded points, and compares with a run without kills."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.faults.processes import Process, Zygote
from benchmarks.faults.stage import Stage
from checkpointer import CommitLog
from checkpointer.digest import logical_digest
from checkpointer.local_store import LocalStore
from publisher.rows import read_rows
from publisher.versions import Base, Delta, read_current
from stream.broker import free_port
from stream.deadletter_file import read_folder
from stream.progress import Progress

KILLED = -9
LEAVES_S = 90.0
"""What a rank may take to notice that another is gone; its own limit is 60 s, a closed connection takes none."""

Place = tuple[str, int, str]
"""A module, its rank (the publisher is rank 0), and a point that it reaches."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kill:
    """SIGKILL `module` when it reaches `point` for the `nth` time."""

    module: str
    point: str
    nth: int
    rank: int = 0

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


def points(zygote: Zygote, stage: Stage, model_dir: Path, *, ranks: int = 1) -> dict[Place, int]:
    """How often each point is reached in a run without kills."""
    counts: Counter[Place] = Counter()
    config = str(stage.config(model_dir))
    records = [model_dir.with_suffix(f".points-{rank}") for rank in range(ranks)]
    started = start_ranks(zygote, config, [{"HEADRACE_FAULT": f"record={record}"} for record in records])
    _all_ended_well(started)
    for rank, record in enumerate(records):
        counts.update(("trainer", rank, point) for point in record.read_text().splitlines())
    record = model_dir.with_suffix(".points-publisher")
    _all_ended_well([zygote.start("publisher", [config, "--once"], {"HEADRACE_FAULT": f"record={record}"})])
    counts.update(("publisher", 0, point) for point in record.read_text().splitlines())
    return dict(counts)


def plan(reached: Mapping[Place, int], *, kills: int, seed: int) -> list[Kill]:
    """Draw kills: every point in turn, in a shuffled order, each early enough that there is work left for the next."""
    random = np.random.default_rng(seed)
    order = [sorted(reached)[index] for index in random.permutation(len(reached))]
    chosen = (order[number % len(order)] for number in range(kills))
    return [
        Kill(
            module=place[0], rank=place[1], point=place[2], nth=int(random.integers(1, max(2, reached[place] // kills)))
        )
        for place in chosen
    ]


_AFTER_A_COMMIT = Kill(module="trainer", point="train.durable", nth=1)


def run_to_end(zygote: Zygote, stage: Stage, model_dir: Path, kills: list[Kill], *, ranks: int = 1) -> Result:
    """Train and publish everything. Each kill ends a process once; the publisher's come after one of the trainer's.

    A kill whose point is not reached any more, since earlier lives went past it, does not happen and is not counted.
    """
    config = str(stage.config(model_dir))
    happened = 0
    for kill in kills:
        if kill.module == "publisher":
            # Something new to publish, or the point is never reached.
            happened += _train(zygote, config, ranks, _AFTER_A_COMMIT)
            happened += _publish(zygote, config, kill)
        else:
            happened += _train(zygote, config, ranks, kill)
    _train(zygote, config, ranks, None)
    _publish(zygote, config, None)
    return read_result(model_dir, happened)


def start_ranks(
    zygote: Zygote, config: str, environments: list[dict[str, str]], *, log: Path | None = None
) -> list[Process]:
    """Start one trainer, or the ranks of one, each with its part of the environment."""
    if len(environments) == 1:
        return [zygote.start("trainer", [config], environments[0], log=log)]
    shared = {"WORLD_SIZE": str(len(environments)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    return [
        zygote.start("trainer", [config], {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank), **own}, log=log)
        for rank, own in enumerate(environments)
    ]


def _all_ended_well(processes: list[Process]) -> None:
    statuses = [process.wait() for process in processes]
    if any(statuses):
        raise RuntimeError(f"processes ended with {statuses}; see {processes[0].log}")


def _train(zygote: Zygote, config: str, ranks: int, kill: Kill | None) -> bool:
    """Train until the end or the kill; whether it happened. The other ranks of one that was killed must end too."""
    killed = [kill is not None and kill.rank == rank for rank in range(ranks)]
    environments = [kill.environment if kill is not None and own else {} for own in killed]
    statuses = [process.wait(LEAVES_S) for process in start_ranks(zygote, config, environments)]
    if not any(statuses):
        return False
    expected = all(status == KILLED if own else status in (0, 1) for own, status in zip(killed, statuses, strict=True))
    if kill is None or not expected:
        raise RuntimeError(f"ranks ended with {statuses} after {kill}; see the zygote's log")
    return True


def _publish(zygote: Zygote, config: str, kill: Kill | None) -> bool:
    """Publish what there is; whether the kill happened."""
    status = zygote.run("publisher", [config, "--once"], kill.environment if kill else {})
    if status not in (0, KILLED) or (status == KILLED and kill is None):
        raise RuntimeError(f"the publisher ended with {status} after {kill}; see the zygote's log")
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
