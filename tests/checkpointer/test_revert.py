"""A revert trains on from an older commit, on a new chain, and overwrites nothing."""

import pytest

from checkpointer import CommitLog, Kind, RetentionOptions, collect_garbage, compact, logical_digest, revert, verify
from checkpointer.commit import log_path
from checkpointer.errors import ChainError, FencedError


def digest(state):
    return logical_digest(state.tables, state.dense, state.stream, state.commit.step)


@pytest.mark.parametrize("from_now", [False, True])
def test_revert_gives_back_the_older_state_on_a_new_chain(store, kit, from_now):
    trainer = kit.filled(store)
    log = CommitLog(store)
    before = digest(log.restore(3))
    manifests = {seq: store.get(log_path(seq)) for seq in range(1, 7)}
    commit = revert(store, 3, kit.options("person"), from_now=from_now)
    assert (commit.seq, commit.kind, commit.forked, commit.from_now) == (7, Kind.BASE, log.get(3).link, from_now)
    assert commit.chain != trainer.writer.head.chain and commit.parent == trainer.writer.head.link
    assert digest(log.restore()) == before
    assert {seq: store.get(log_path(seq)) for seq in range(1, 7)} == manifests
    assert verify(store).sound


def test_training_goes_on_on_the_new_chain(store, kit):
    trainer = kit.filled(store)
    commit = revert(store, 3, kit.options("person"))
    with pytest.raises(FencedError):
        trainer.commit([kit.rows([1], 1)])
    later = kit.toy(store, kit.options("later"))
    later.state, later.step = trainer.history[3], 3
    later.commit([kit.rows([1], 1)])
    later.check(CommitLog(store).restore())
    assert CommitLog(store).head().chain == commit.chain
    assert verify(store).sound


def test_revert_to_a_base_after_the_log_is_gone(store, kit):
    trainer = kit.filled(store)
    compact(store, 2)
    compact(store, 6)
    collect_garbage(store, RetentionOptions(keep_bases=2, keep_log_ms=0, keep_marked=0), now_ms=1 << 50)
    revert(store, 2, kit.options("person"))
    restored = CommitLog(store).restore()
    assert kit.as_state(restored.tables) == trainer.history[2]


def test_revert_of_several_ranks_keeps_every_stream_state(store, kit):
    trainer = kit.toy(store)
    trainer.commit([kit.rows([1], 1), kit.rows([2], 1)], world=2)
    revert(store, 1, kit.options("person"))
    restored = CommitLog(store).restore()
    assert len(restored.stream) == 2 and set(restored.dense) == {"parameter/w0", "parameter/w1"}


def test_revert_to_nothing_says_so(store, kit):
    kit.filled(store)
    with pytest.raises(ChainError, match="there is no commit 9"):
        revert(store, 9, kit.options("person"))
    assert CommitLog(store).head().seq == 6
