"""Compaction starts when a restore would read too much beyond the state, and takes no more than its share of time."""

import itertools

import numpy as np

from checkpointer import CommitLog, compact
from checkpointer.due import CompactionDue, DueOptions, base_needed
from checkpointer.memory_store import MemoryStore
from checkpointer.restore import plan

ROWS = 4000


class Counting(MemoryStore):
    """Counts the bytes of blobs that are read."""

    read = 0

    def get(self, path, *, offset=0, length=None):
        data = super().get(path, offset=offset, length=length)
        self.read += len(data) * path.endswith(".blob")
        return data


def simulate(store, kit, options, *, commits: int, took_s: float = 0.0, touched: int = 60) -> list[float]:
    """Half-second commits of Zipf ids and a compactor beside them; what a restore reads over the base, each time."""
    now = itertools.count()
    clock = [0.0]
    random = np.random.default_rng(7)
    trainer = kit.toy(store)
    trainer.commit([kit.rows(range(ROWS), 0)])
    compact(store)
    due = CompactionDue(store, options, clock=lambda: clock[0])
    amplification: list[float] = []
    finishes, target = None, 0
    for _ in range(commits):
        clock[0] += 0.5
        ids = np.minimum(random.zipf(1.2, touched), ROWS) - 1
        commit = trainer.commit([kit.rows(set(ids.tolist()), next(now))])
        steps = plan(store, None)
        amplification.append(steps.read_bytes / steps.base.bytes)
        due.add(commit.grown_bytes)
        if finishes is None and due.due():
            due.started()
            finishes, target = clock[0] + took_s, commit.seq
        if finishes is not None and clock[0] >= finishes:
            compact(store, target)
            due.ended()
            finishes = None
    return amplification


def test_a_restore_never_reads_much_more_than_the_state(kit):
    store = Counting()
    amplification = simulate(store, kit, DueOptions(least_bytes=0), commits=150)
    assert max(amplification) <= 1.3
    steps = plan(store, None)
    store.read = 0
    list(CommitLog(store).restore().tables)
    assert store.read == steps.read_bytes, "what is said to be read is what is read"


def test_a_higher_ratio_writes_fewer_bases_and_reads_more(kit):
    lazy = simulate(MemoryStore(), kit, DueOptions(after_ratio=1.0, least_bytes=0), commits=150)
    assert 1.8 < max(lazy) <= 2.1


def test_compaction_that_takes_long_is_rarer_and_never_more_than_its_share(kit):
    """Two seconds each at a tenth of the time: one in twenty seconds, however much has grown."""
    store = MemoryStore()
    amplification = simulate(
        store, kit, DueOptions(after_ratio=0.05, max_share=0.1, least_bytes=0), commits=160, took_s=2.0
    )
    assert len([1 for entry in store.list("bases")]) <= 1 + 80 / 20 + 1
    assert max(amplification) > 1.3, "a restore reads more instead"


def test_what_is_due_and_cannot_begin_is_not_looked_up_again(kit):
    """Nobody may be there to compact, and reading a log of hundreds of manifests at every commit is dear."""
    manifests = itertools.count()

    class Watched(MemoryStore):
        def get(self, path, *, offset=0, length=None):
            if path.endswith(".json"):
                next(manifests)
            return super().get(path, offset=offset, length=length)

    store = Watched()
    trainer = kit.toy(store)
    due = CompactionDue(store, DueOptions(after_ratio=0.0, least_bytes=0))
    for number in range(3):
        trainer.commit([kit.rows([number], number)])
    assert due.due()
    seen = next(manifests)
    due.add(1)
    assert due.due()
    assert next(manifests) == seen + 1
    due.started()
    assert not due.due()


def test_dense_parts_are_no_growth(kit):
    store = MemoryStore()
    kit.filled(store, commits=30)
    compact(store, 1)
    steps = plan(store, None)
    assert steps.grown_bytes < sum(commit.bytes for commit in steps.commits)
    assert steps.read_bytes < steps.base.bytes + sum(commit.bytes for commit in steps.commits)


def test_a_log_without_a_base_needs_one_and_one_that_cannot_be_read_waits(kit):
    clock = [0.0]
    store = MemoryStore()
    due = CompactionDue(store, DueOptions(after_commits=5), clock=lambda: clock[0])
    assert not due.due(), "nothing to compact"
    kit.filled(store)
    assert not due.due(), "it looks again a little later"
    clock[0] = 11.0
    assert due.due() and base_needed(plan(store, None), DueOptions())
    due.started()
    assert not due.due(), "one at a time"
    compact(store)
    due.ended()
    clock[0] = 12.0
    assert not due.due()


def test_a_compaction_that_was_killed_is_begun_again_after_its_rest(kit):
    clock = [0.0]
    store = MemoryStore()
    kit.filled(store)
    due = CompactionDue(store, DueOptions(after_commits=5, max_share=0.25), clock=lambda: clock[0])
    assert due.due()
    due.started()
    clock[0] = 2.0
    due.ended()
    found = []
    for clock[0] in (2.0, 7.9, 8.1):
        found.append(due.due())
    assert found == [False, False, True]


def test_a_small_state_is_compacted_by_its_commits_alone():
    assert [DueOptions().reached(commits, 1 << 20, 1) for commits in (239, 240)] == [False, True]
    assert DueOptions().reached(1, 4 << 20, 20 << 20) and not DueOptions().reached(1, 4 << 20, 21 << 20)
