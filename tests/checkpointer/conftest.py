"""A toy trainer that commits random rows and knows, the naive way, what a restore must give back."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from checkpointer import Commit, Draft, Kind, Restored, Store, TableRows, Writer, WriterOptions, stage
from checkpointer.faults import NO_FAULTS, FaultPoints
from checkpointer.local_store import LocalStore
from checkpointer.memory_store import MemoryStore
from protos.commit_pb2 import Accounting, Cursor, SeenIds, StreamState, Watermark

# Machines that are busy or compile a kernel on the way are slow, not wrong.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

Row = tuple[bytes, ...]
State = dict[tuple[str, str], dict[int, Row]]


def options(
    token: str = "trainer", clock: Callable[[], int] | None = None, faults: FaultPoints = NO_FAULTS
) -> WriterOptions:
    """Deterministic writer options."""
    chains = itertools.count()
    return WriterOptions(
        token=token,
        clock_ms=clock or (lambda: 1_700_000_000_000),
        new_chain=lambda: f"{token}-{next(chains)}",
        writer="test",
        faults=faults,
    )


def rows(
    ids: Iterable[int],
    value: float,
    *,
    deleted: Iterable[int] = (),
    reset: bool = False,
    table: str = "user",
    shard: int = 0,
    kind: str = "zch",
    dim: int = 4,
) -> TableRows:
    """Rows whose every column follows from their id and `value`."""
    keys = np.array(sorted(ids), np.int64)
    return TableRows(
        table=table,
        shard=shard,
        kind=kind,
        ids=keys,
        slots=keys % 1000,
        columns={
            "weight": (keys[:, None] % 97 + np.arange(dim) + value).astype(np.float32),
            "momentum1": (keys % 13 + value).astype(np.float32),
            "last_seen_ms": keys % 7 + int(value * 10),
        },
        deleted=np.array(sorted(deleted), np.int64),
        reset=reset,
    )


def stream(step: int) -> StreamState:
    """A stream state that has moved `step` rows."""
    return StreamState(
        cursors=[Cursor(topic="events", topic_id="t", partition=0, leader_epoch=0, offset=step, row=3)],
        watermarks=[Watermark(topic="events", partition=0, event_time_ms=1000 * step)],
        accounting=[Accounting(topic="events", received=step + 1, trained=step, late=1)],
        seen=[SeenIds(topic="events", partition=0, ids=[step, step + (1 << 63)], event_time_ms=[1000 * step] * 2)],
    )


def as_state(tables: Iterable[TableRows]) -> State:
    """Restored rows as plain dictionaries; refuses rows that do not ascend."""
    state: State = {}
    for part in tables:
        held = state.setdefault(part.key, {})
        assert not len(part.deleted) and not part.reset
        assert not held or part.ids[0] > max(held)
        for index, key in enumerate(part.ids.tolist()):
            held[key] = _row(part, index)
    return {key: held for key, held in state.items() if held}


def _row(part: TableRows, index: int) -> Row:
    columns = [part.columns[name][index].tobytes() for name in sorted(part.columns)]
    return (int(part.slots[index]).to_bytes(8, "little"), *columns)


@dataclass
class Toy:
    """Commits to a store and keeps the state that each commit must restore to."""

    store: Store
    writer: Writer
    state: State = field(default_factory=dict)
    history: dict[int, State] = field(default_factory=dict)
    step: int = 0

    def commit(
        self, parts: Sequence[TableRows], *, kind: Kind | None = None, world: int = 1, kept: bool = False
    ) -> Commit:
        """Commit parts, shared out over `world` ranks."""
        self.step += 1
        kind = kind or (Kind.DELTA if self.writer.head else Kind.BASE)
        blobs = [
            ref
            for rank in range(world)
            for ref in stage(
                self.store,
                seq=self.writer.next_seq,
                rank=rank,
                rows=parts[rank::world],
                dense={f"parameter/w{rank}": np.full(3, self.step, np.float32)},
                stream=stream(self.step),
            )
        ]
        draft = Draft(
            kind=kind,
            step=self.step,
            event_time_ms=1000 * self.step,
            broker_time_ms=-1,
            world=world,
            contract="c0ffee",
            features="feed",
            figures={"auc": 0.7},
            blobs=tuple(blobs),
            kept=kept,
        )
        commit = self.writer.append(draft)
        self.apply(parts, kind)
        self.history[commit.seq] = {key: dict(held) for key, held in self.state.items()}
        return commit

    def apply(self, parts: Sequence[TableRows], kind: Kind) -> None:
        """What a commit does, one id at a time."""
        if kind is Kind.BASE:
            self.state = {}
        for part in parts:
            if part.reset:
                self.state.pop(part.key, None)
        for part in parts:
            for key in part.deleted.tolist():
                self.state.get(part.key, {}).pop(key, None)
        for part in parts:
            held = self.state.setdefault(part.key, {})
            held.update((key, _row(part, index)) for index, key in enumerate(part.ids.tolist()))
        self.state = {key: held for key, held in self.state.items() if held}

    def check(self, restored: Restored) -> None:
        """Refuse a restored state that is not the one committed."""
        assert as_state(restored.tables) == self.history[restored.commit.seq]
        assert [float(array[0]) for array in restored.dense.values()] == [restored.commit.step] * len(restored.dense)
        assert restored.stream[0].cursors[0].offset == restored.commit.step


def toy(store: Store, writer_options: WriterOptions | None = None) -> Toy:
    """A toy trainer that has just opened the log."""
    return Toy(store=store, writer=Writer.open(store, writer_options or options()))


def filled(store: Store, commits: int = 6, seed: int = 0) -> Toy:
    """A toy trainer with a few random commits behind it."""
    trainer = toy(store)
    random = np.random.default_rng(seed)
    for index in range(commits):
        put = random.choice(50, 12, replace=False)
        trainer.commit(
            [rows(put[:8], index, deleted=put[8:], reset=index == 3), rows(put[:3], index, table="item", dim=2)]
        )
    return trainer


@dataclass(frozen=True)
class Kit:
    """The helpers above, since test modules cannot import each other."""

    options: Callable[..., WriterOptions] = options
    rows: Callable[..., TableRows] = rows
    stream: Callable[[int], StreamState] = stream
    as_state: Callable[[Iterable[TableRows]], State] = as_state
    toy: Callable[..., Toy] = toy
    filled: Callable[..., Toy] = filled


@pytest.fixture(scope="session")
def kit() -> Kit:
    return Kit()


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    stores: Mapping[str, Callable[[], Store]] = {"local": lambda: LocalStore(tmp_path / "model"), "memory": MemoryStore}
    return stores[request.param]()
