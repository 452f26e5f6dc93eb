"""The log: what was committed is what is read, restored and followed."""

import numpy as np
import pytest

from checkpointer import CommitLog, Draft, Kind, Writer, compact, logical_digest, stage
from checkpointer.commit import log_path
from checkpointer.epoch import EPOCH_PATH
from checkpointer.errors import ChainError, Flaw, NotCommittedError
from checkpointer.memory_store import MemoryStore
from checkpointer.seen import prune_seen
from protos.commit_pb2 import SeenIds, StreamState, Watermark


def test_restore_gives_back_every_commit(store, kit):
    trainer = kit.filled(store)
    log = CommitLog(store)
    for seq in trainer.history:
        trainer.check(log.restore(seq))
    assert log.restore().commit == log.head() == trainer.writer.head


def test_restore_reads_commits_of_several_ranks_and_world_sizes(store, kit):
    trainer = kit.toy(store)
    for step, world in enumerate([1, 2, 3, 8, 5, 2]):
        parts = [kit.rows(range(shard, 60, 8), step, shard=shard, deleted=[100 + shard]) for shard in range(8)]
        trainer.commit(parts, world=world)
    trainer.check(CommitLog(store).restore())


@pytest.mark.parametrize("old", [1, 2, 3, 4, 5, 6, 8])
@pytest.mark.parametrize("new", [1, 2, 3, 4, 5, 6, 8])
def test_logical_digest_survives_resharding(kit, old, new):
    """Shards of `old` ranks are restored and committed again as shards of `new` ranks, sizes not divisible."""
    store, again = MemoryStore(), MemoryStore()
    trainer = kit.toy(store)
    trainer.commit([kit.rows(range(shard, 101, old), 1, shard=shard) for shard in range(old)], world=old)
    trainer.commit(
        [kit.rows(range(shard, 57, old), 2, shard=shard, deleted=[60 + shard]) for shard in range(old)], world=old
    )
    state = CommitLog(store).restore()
    parts = list(state.tables)
    other = kit.toy(again)
    other.step = trainer.step - 1
    ids = np.concatenate([part.ids for part in parts])
    value = {key: 2.0 if key < 57 else 1.0 for key in ids.tolist()}
    shards = []
    for shard in range(new):
        mine = [key for key in ids.tolist() if key % new == shard]
        shards += [kit.rows([key for key in mine if value[key] == v], v, shard=shard) for v in (1.0, 2.0)]
    other.commit(shards, world=1)
    moved = CommitLog(again).restore()
    digests = [logical_digest(tables, {}, state.stream, state.commit.step) for tables in (parts, moved.tables)]
    assert digests[0] == digests[1]


def test_logical_digest_sees_every_change(store, kit):
    kit.filled(store)
    state = CommitLog(store).restore()
    parts = list(state.tables)
    first = parts[0]

    def digest(tables=parts, dense=state.dense, stream=state.stream, step=state.commit.step):
        return logical_digest(tables, dense, stream, step)

    changed = {name: column.copy() for name, column in first.columns.items()}
    changed["weight"][0, 0] += 1
    other_row = type(first)(
        table=first.table,
        shard=0,
        kind=first.kind,
        ids=first.ids,
        slots=first.slots,
        columns=changed,
        deleted=first.deleted,
    )
    others = [
        digest(tables=[other_row, *parts[1:]]),
        digest(tables=parts[1:]),
        digest(dense={**state.dense, "more": np.zeros(1)}),
        digest(stream=[kit.stream(99)]),
        digest(step=99),
    ]
    assert digest() == digest()
    assert digest() not in others and len(set(others)) == len(others)


def test_commits_follow_one_after_the_other(store, kit):
    trainer = kit.filled(store)
    log = CommitLog(store)
    assert [commit.seq for commit in log.commits()] == [1, 2, 3, 4, 5, 6]
    assert [commit.seq for commit in log.commits(after=4)] == [5, 6]
    assert list(log.commits(after=6)) == []
    trainer.commit([kit.rows([1], 9)])
    assert [commit.seq for commit in log.commits(after=6)] == [7]


def test_rows_of_a_commit_are_what_was_put(store, kit):
    trainer = kit.toy(store)
    commit = trainer.commit([kit.rows([3, 5], 1, deleted=[4], reset=True), kit.rows([], 1, table="gone", reset=True)])
    parts = list(CommitLog(store).rows(commit))
    assert [(part.table, part.ids.tolist(), part.deleted.tolist(), part.reset) for part in parts] == [
        ("user", [3, 5], [], True),
        ("user", [], [4], False),
        ("gone", [], [], True),
    ]
    assert commit.tables["user/zch"].put == 2 and commit.tables["gone/zch"].reset


def test_head_starts_at_the_hint_and_needs_no_listing(kit):
    class Counting(MemoryStore):
        listed = 0

        def list(self, prefix, *, after=""):
            self.listed += 1
            return super().list(prefix, after=after)

    store = Counting()
    trainer = kit.filled(store)
    before = store.listed
    assert CommitLog(store).head() == trainer.writer.head
    assert store.listed == before
    store.overwrite("log/_head", b"torn")
    assert CommitLog(store).head() == trainer.writer.head
    assert store.listed == before + 1


def test_head_names_commits_that_the_hint_knows_and_the_log_lost(store, kit):
    trainer = kit.filled(store)
    Writer.open(store, kit.options("later"))
    store.delete(log_path(trainer.writer.head.seq))
    with pytest.raises(ChainError, match="delete that file to accept the loss") as caught:
        CommitLog(store).head()
    assert caught.value.flaw is Flaw.MISSING


def test_first_commit_must_be_a_base(store, kit):
    trainer = kit.toy(store)
    with pytest.raises(NotCommittedError, match="must be a base"):
        trainer.commit([kit.rows([1], 1)], kind=Kind.DELTA)


def test_append_refuses_a_draft_that_no_reader_would_accept(store, kit):
    trainer = kit.toy(store)
    blobs = stage(store, seq=1, rank=1, rows=[kit.rows([1], 1)])
    with pytest.raises(NotCommittedError, match="mixed-world"):
        trainer.writer.append(kit_draft(blobs))
    assert CommitLog(store).head() is None


def kit_draft(blobs):
    return Draft(
        kind=Kind.BASE, step=1, event_time_ms=-1, broker_time_ms=-1, world=1, contract="", features="", blobs=blobs
    )


def test_an_id_put_twice_in_one_commit_is_refused(store, kit):
    trainer = kit.toy(store)
    trainer.commit([kit.rows([1], 1)])
    trainer.commit([kit.rows([1, 2], 1, shard=0), kit.rows([2], 1, shard=1)])
    with pytest.raises(ChainError, match="puts id 2 twice"):
        list(CommitLog(store).restore().tables)


def test_a_column_may_change_only_with_reset(store, kit):
    trainer = kit.toy(store)
    trainer.commit([kit.rows([1], 1)])
    trainer.commit([kit.rows([2], 1, dim=8)])
    with pytest.raises(ChainError, match="without a RESET"):
        list(CommitLog(store).restore().tables)
    trainer.commit([kit.rows([3], 1, dim=8, reset=True)])
    assert [part.ids.tolist() for part in CommitLog(store).restore().tables] == [[3]]


def test_zero_rows_and_odd_floats_come_back_bit_for_bit(store, kit):
    trainer = kit.toy(store)
    part = kit.rows(range(5), 0)
    weight = part.columns["weight"]
    weight[0] = 0.0
    weight[1] = -0.0
    weight[2, :2] = np.frombuffer(b"\x01\x00\xa0\x7f\xff\xff\xff\xff", np.float32)
    weight[3] = np.float32(1e-45)
    weight[4, 0] = np.inf
    trainer.commit([part])
    trainer.check(CommitLog(store).restore())


def test_restore_gathers_the_ids_seen_since_the_base(store, kit):
    trainer = kit.filled(store, commits=4)
    seen = CommitLog(store).restore().stream[0].seen[0]
    assert sorted(seen.ids) == [1, 2, 3, 4, *(step + (1 << 63) for step in (1, 2, 3, 4))]
    compact(store, seen_window_ms=1500)
    trainer.commit([kit.rows([1], 1)])
    seen = CommitLog(store).restore().stream[0].seen[0]
    times = dict(zip(seen.ids, seen.event_time_ms, strict=True))
    assert sorted(set(times.values())) == [3000, 4000, 5000]


def test_a_base_keeps_what_the_window_of_a_partition_that_lags_still_reaches():
    ahead, behind, unknown = (
        SeenIds(topic="events", partition=partition, ids=[1, 2], event_time_ms=times)
        for partition, times in ((0, [9_000, 100_000]), (1, [1_000, 2_000]), (2, [0, 1]))
    )
    marks = [
        Watermark(topic="events", partition=partition, event_time_ms=at) for partition, at in ((0, 100_000), (1, 2_000))
    ]
    # Two ranks, each with a partition of its own; `with_seen` puts all ids on the first.
    states = [StreamState(seen=[ahead, behind, unknown], watermarks=marks[:1]), StreamState(watermarks=marks[1:])]
    prune_seen(states, 1_500)
    assert [list(seen.ids) for seen in states[0].seen] == [[2], [1, 2], [1, 2]]


def test_restore_of_an_empty_directory_says_so(store):
    assert CommitLog(store).head() is None
    assert list(CommitLog(store).commits()) == []
    with pytest.raises(ChainError, match="no commit to restore"):
        CommitLog(store).restore()


def test_claims_lie_in_the_epoch_file(store, kit):
    first = kit.toy(store)
    second = kit.toy(store)
    assert (first.writer.epoch, second.writer.epoch) == (1, 2)
    assert b'"epoch":2' in store.get(EPOCH_PATH)
