"""Compaction and garbage collection keep what must restore, and little else."""

import pytest

from checkpointer import CommitLog, RetentionOptions, collect_garbage, compact, maintain, verify
from checkpointer.bases import list_bases
from checkpointer.chain import live_seqs
from checkpointer.errors import ChainError, LockedError
from checkpointer.lock import maintenance
from checkpointer.memory_store import MemoryStore
from checkpointer.restore import plan
from protos.checkpoint_pb2 import CheckpointConfig

LATE = 1 << 50


def files(store):
    """Everything below log and bases."""
    folders = ["log", "bases", *store.folders("log/blobs"), *store.folders("bases/blobs")]
    return [entry.path for folder in folders for entry in store.list(folder)]


def test_compaction_keeps_the_state_and_shortens_the_restore(store, kit):
    trainer = kit.filled(store, commits=9)
    compact(store, 7)
    steps = plan(store, None)
    assert steps.base.seq == 7 and [commit.seq for commit in steps.commits] == [8, 9]
    for seq in trainer.history:
        trainer.check(CommitLog(store).restore(seq))


def test_compaction_is_done_once(store, kit):
    kit.filled(store)
    first = compact(store)
    before = files(store)
    assert compact(store) == first and files(store) == before


def test_compaction_waits_until_it_pays(store, kit, tmp_path):
    trainer = kit.toy(store)
    options = RetentionOptions(compact_after_commits=5, compact_after_bytes_ratio=100.0)
    for step in range(11):
        trainer.commit([kit.rows(range(step, step + 10), step)])
        maintain(store, tmp_path, options, now_ms=0, holder="me")
    assert list_bases(store) == [1, 6, 11]


def test_compaction_follows_the_ratio_of_bytes(store, kit, tmp_path):
    trainer = kit.toy(store)
    trainer.commit([kit.rows(range(2000), 0)])
    options = RetentionOptions(
        compact_after_commits=1000, compact_after_bytes_ratio=0.5, compact_least_bytes=0, keep_bases=9
    )
    for step in range(40):
        trainer.commit([kit.rows(range(60), step)])
        maintain(store, tmp_path, options, now_ms=0, holder="me")
    assert 2 <= len(list_bases(store)) <= 4
    steps = plan(store, None)
    assert steps.grown_bytes <= 0.6 * steps.base.bytes


def test_collection_removes_what_is_old_and_keeps_the_newest(store, kit):
    trainer = kit.filled(store, commits=9)
    for seq in (3, 5, 8):
        compact(store, seq)
    collected = collect_garbage(store, RetentionOptions(keep_bases=2, keep_log_ms=0), now_ms=LATE)
    assert (collected.commits, collected.bases, collected.blobs) == (4, 1, 4)
    assert live_seqs(store) == [5, 6, 7, 8, 9] and list_bases(store) == [5, 8]
    for seq in range(5, 10):
        trainer.check(CommitLog(store).restore(seq))
    for seq in (2, 3, 4):
        with pytest.raises(ChainError, match="no commit|retention removed it"):
            CommitLog(store).restore(seq)
    assert verify(store).sound


def test_collection_keeps_the_log_of_its_time_restorable(store, kit):
    clock = iter(range(0, 100_000, 1000))
    trainer = kit.toy(store, kit.options(clock=lambda: next(clock)))
    for step in range(20):
        trainer.commit([kit.rows([step], step)])
        if step % 4 == 3:
            compact(store)
    collect_garbage(store, RetentionOptions(keep_bases=1, keep_log_ms=10_500), now_ms=20_000)
    assert live_seqs(store) == list(range(8, 21)) and list_bases(store) == [8, 12, 16, 20]
    for seq in range(8, 21):
        trainer.check(CommitLog(store).restore(seq))


def test_collection_never_removes_what_is_not_published(store, kit):
    kit.filled(store, commits=9)
    for seq in (3, 5, 8):
        compact(store, seq)
    collect_garbage(store, RetentionOptions(keep_bases=1, keep_log_ms=0), now_ms=LATE, published=4)
    assert [commit.seq for commit in CommitLog(store).commits(after=4)] == [5, 6, 7, 8, 9]
    collect_garbage(store, RetentionOptions(keep_bases=1, keep_log_ms=0), now_ms=LATE, published=9)
    assert live_seqs(store) == [8, 9]


def test_marked_and_pinned_commits_outlive_the_log(store, kit, tmp_path):
    trainer = kit.toy(store)
    options = RetentionOptions(compact_after_commits=3, keep_bases=1, keep_log_ms=0, keep_marked=2)
    for step in range(20):
        trainer.commit([kit.rows([step], step)], kept=step in (2, 6, 10))
        maintain(store, tmp_path, options, now_ms=LATE, holder="me", pinned=[5])
    for seq in (5, 7, 11):
        trainer.check(CommitLog(store).restore(seq))
    assert 3 not in list_bases(store)
    assert verify(store).sound


def test_collection_leaves_no_garbage(store, kit):
    trainer = kit.filled(store, commits=9)
    for seq in (3, 8):
        compact(store, seq)
    trainer.commit([kit.rows([1], 1)])
    compact(store)
    collect_garbage(store, RetentionOptions(keep_bases=1, keep_log_ms=0), now_ms=LATE)
    named = {"log/_head", "log/00000000000000000010.json", "bases/00000000000000000010.json"}
    base = plan(store, None).base
    named |= {blob.path for blob in (*base.blobs, *CommitLog(store).get(10).blobs)}
    assert set(files(store)) == named


def test_a_commit_whose_blobs_were_staged_under_a_fenced_number_survives(kit):
    store = MemoryStore()
    trainer = kit.filled(store, commits=3)
    zombie = kit.toy(store, kit.options("zombie"))
    zombie.step = 3
    later = kit.toy(store, kit.options("later"))
    later.state, later.step = trainer.state, trainer.step
    with pytest.raises(Exception, match="producer"):
        zombie.commit([kit.rows([9], 9)])
    commit = later.commit([kit.rows([8], 8)])
    assert commit.seq == 5 and commit.blobs[0].path.startswith("log/blobs/00000000000000000/00000000000000000004-")
    compact(store)
    collect_garbage(store, RetentionOptions(keep_bases=1, keep_log_ms=0), now_ms=LATE)
    assert verify(store).sound
    later.check(CommitLog(store).restore())


def test_a_jumping_clock_never_removes_what_restores(store, kit):
    times = iter([10**12, 0, 10**15, 5, 10**12, 7, 10**9, 1, 3])
    trainer = kit.toy(store, kit.options(clock=lambda: next(times)))
    for step in range(9):
        trainer.commit([kit.rows([step], step)])
        compact(store)
        for now in (0, LATE):
            collect_garbage(store, RetentionOptions(keep_bases=1, keep_log_ms=1000), now_ms=now)
        trainer.check(CommitLog(store).restore())
        assert verify(store).sound


def test_maintenance_has_one_lock(kit, tmp_path):
    store = MemoryStore()
    kit.filled(store)
    with (
        maintenance(tmp_path, "the publisher"),
        pytest.raises(LockedError, match="in use by the publisher"),
    ):
        maintain(store, tmp_path, RetentionOptions(), now_ms=0, holder="me")
    maintain(store, tmp_path, RetentionOptions(), now_ms=0, holder="me")


def test_options_come_from_the_configuration():
    options = RetentionOptions.from_proto(CheckpointConfig(keep_log_ms=5), keep_marked=3, seen_window_ms=7)
    assert (options.compact_after_commits, options.keep_bases, options.keep_log_ms) == (240, 2, 5)
    assert (options.keep_marked, options.seen_window_ms, options.compact_after_bytes_ratio) == (
        3,
        7,
        pytest.approx(0.2),
    )


def test_many_commits_stay_few_files_and_a_short_restore(kit, tmp_path):
    """A day of half-second commits, small: 1,000 commits under the default cadence of compaction."""
    clock = [0]
    store = MemoryStore()
    trainer = kit.toy(store, kit.options(clock=lambda: clock[0]))
    options = RetentionOptions(keep_log_ms=60_000)
    for step in range(1_000):
        clock[0] += 500
        trainer.commit([kit.rows([step % 97, step % 89 + 100], step)])
        if step % 10 == 0:
            maintain(store, tmp_path, options, now_ms=clock[0], holder="me", published=step)
    steps = plan(store, None)
    assert len(steps.commits) <= 250
    assert len(live_seqs(store)) <= 2 * 250 + 120
    assert len(list(store.folders("log/blobs"))) <= 3
    trainer.check(CommitLog(store).restore())


def test_the_log_of_a_long_window_is_collected_too(kit, tmp_path):
    """The window spans many compactions: without bases inside it the floor could never climb."""
    clock = [0]
    store = MemoryStore()
    trainer = kit.toy(store, kit.options(clock=lambda: clock[0]))
    options = RetentionOptions(compact_after_commits=10, keep_bases=2, keep_log_ms=100_000)
    for step in range(600):
        clock[0] += 500
        trainer.commit([kit.rows([step % 7], step)])
        if step % 5 == 0:
            maintain(store, tmp_path, options, now_ms=clock[0], holder="me")
            assert len(list_bases(store)) <= 2 + 1 + 4 + 1
            assert len(live_seqs(store)) <= 1.25 * 200 + 30
    for seq in live_seqs(store)[::40]:
        trainer.check(CommitLog(store).restore(seq))
    assert len(live_seqs(store)) >= 200
    assert verify(store).sound


@pytest.mark.parametrize("ahead_ms", [10**12, -(10**12)])
def test_the_log_stays_short_after_a_clock_that_jumped_for_a_while(ahead_ms, kit, tmp_path):
    """Bases with times of the jump must not be the last that the floor climbs on."""
    clock = [10**13]
    store = MemoryStore()
    trainer = kit.toy(store, kit.options(clock=lambda: clock[0]))
    options = RetentionOptions(compact_after_commits=10, keep_bases=2, keep_log_ms=20_000)
    for step in range(300):
        clock[0] += 500 + {50: ahead_ms, 61: -ahead_ms}.get(step, 0)
        trainer.commit([kit.rows([step % 7], step)])
        if step % 5 == 0:
            maintain(store, tmp_path, options, now_ms=clock[0], holder="me")
    assert len(live_seqs(store)) <= 1.25 * 40 + 30
    assert verify(store).sound


def test_a_foreign_file_among_the_blobs_stops_no_collection(kit, monkeypatch):
    monkeypatch.setattr("checkpointer.writer.BLOBS_PER_FOLDER", 2)
    store = MemoryStore()
    trainer = kit.filled(store, commits=3)
    store.put_if_absent("log/blobs/00000000000000000/notes.txt", b"not ours")
    for _ in range(4):
        trainer.commit([kit.rows([1], 1)])
        compact(store)
        collect_garbage(store, RetentionOptions(keep_bases=1, keep_log_ms=0), now_ms=LATE)
    left = [path for path in files(store) if path.startswith("log/blobs")]
    assert len(left) == 2 and left[0].endswith("notes.txt")
