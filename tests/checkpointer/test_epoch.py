"""Two producers on one log: exactly one history, and a fenced zombie never becomes visible."""

import itertools
import random
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpointer import (
    CommitLog,
    Draft,
    Kind,
    RetentionOptions,
    Writer,
    WriterOptions,
    collect_garbage,
    compact,
    stage,
    verify,
)
from checkpointer.commit import START, log_path
from checkpointer.epoch import EPOCH_PATH, Claim, Claims, Standing, claim_epoch, read_claims, seal_claim
from checkpointer.errors import ChainError, CheckpointError, CommitUnknownError, FencedError, NotCommittedError
from checkpointer.memory_store import MemoryStore


def draft(store, writer, step, kind=Kind.DELTA) -> Draft:
    """A commit that changes nothing."""
    return Draft(
        kind=kind,
        step=step,
        event_time_ms=-1,
        broker_time_ms=-1,
        world=1,
        contract="",
        features="",
        blobs=stage(store, seq=writer.next_seq, rank=0, rows=[], dense={"step": np.array([step])}),
    )


def append(store, writer, step):
    """Append, the first commit as a base."""
    return writer.append(draft(store, writer, step, Kind.DELTA if writer.head else Kind.BASE))


def test_an_older_producer_is_fenced_at_its_next_append(store, kit):
    old = Writer.open(store, kit.options("old"))
    append(store, old, 1)
    new = Writer.open(store, kit.options("new"))
    assert (new.head.seq, new.epoch) == (1, 2)
    with pytest.raises(FencedError, match="newer producer|another producer"):
        append(store, old, 2)
    append(store, new, 3)
    append(store, new, 4)
    with pytest.raises(FencedError):
        append(store, old, 5)
    assert [commit.epoch for commit in CommitLog(store).commits()] == [1, 2, 2]
    assert [commit.step for commit in CommitLog(store).commits()] == [1, 3, 4]
    assert verify(store).void == (2,) and verify(store).sound


def test_a_zombies_entry_is_stepped_over_and_never_overwritten(store, kit):
    old = Writer.open(store, kit.options("old"))
    append(store, old, 1)
    new = Writer.open(store, kit.options("new"))
    with pytest.raises(FencedError):
        append(store, old, 2)
    zombie = store.get(log_path(2))
    commit = append(store, new, 3)
    assert commit.seq == 3 and commit.parent.seq == 1
    assert store.get(log_path(2)) == zombie
    assert CommitLog(store).head() == commit


def test_a_zombie_is_harmless_after_garbage_collection(store, kit):
    trainer = kit.filled(store, commits=3)
    zombie = trainer.writer
    later = kit.toy(store, kit.options("later"))
    later.state, later.step = trainer.state, trainer.step
    for step in range(4):
        later.commit([kit.rows([step], step)])
    compact(store)
    collect_garbage(store, RetentionOptions(keep_bases=1, keep_log_ms=0), now_ms=1 << 50)
    assert read_claims(store).floor == 7
    with pytest.raises(FencedError):
        append(store, zombie, 99)
    assert store.get(log_path(4))
    assert verify(store).sound and CommitLog(store).head() == later.writer.head
    later.check(CommitLog(store).restore())
    third = Writer.open(store, kit.options("third"))
    assert third.head == later.writer.head


def test_an_entry_that_a_claim_leaves_undecided_is_adopted_by_the_next_producer(store, kit):
    old = Writer.open(store, kit.options("old"))
    append(store, old, 1)
    claim_epoch(store, "dies after its claim", 1)
    with pytest.raises(FencedError):
        append(store, old, 2)
    assert CommitLog(store).head().seq == 1
    assert read_claims(store).judge(2, 1) is Standing.UNDECIDED
    new = Writer.open(store, kit.options("new"))
    assert new.head.seq == 2 and CommitLog(store).head().seq == 2
    append(store, new, 3)
    assert [commit.step for commit in CommitLog(store).commits()] == [1, 2, 3]


def test_a_producer_overtaken_while_opening_is_fenced(store, kit):
    claim = claim_epoch(store, "slow", 0)
    Writer.open(store, kit.options("fast"))
    with pytest.raises(FencedError, match="fast .epoch 2. took over"):
        seal_claim(store, claim, 1)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 20)), max_size=6),
    st.integers(1, 40),
    st.integers(1, 8),
    st.integers(0, 40),
)
def test_raising_the_floor_changes_no_judgement_above_it(steps, seq, epoch, floor):
    claims, first = [], 1
    for index, (gap, pending) in enumerate(steps):
        first += gap
        sealed = first if pending % 4 else 0
        claims.append(
            Claim(epoch=index + 1, known=first - 1 - (pending % 2 if first > 1 else 0), first=sealed, token="t")
        )
    whole = Claims(claims=tuple(claims))
    raised = whole.raised(floor)
    if seq >= floor and epoch <= len(claims):
        oldest = raised.claims[0].epoch if raised.claims else 0
        before = whole.judge(seq, epoch)
        # An entry of an epoch older than the oldest kept claim is above that claim's start, so it never counted.
        assert raised.judge(seq, epoch) is before or (epoch < oldest and before is not Standing.COUNTS)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["open", "append", "crash"])), min_size=5, max_size=40))
def test_any_order_of_openings_and_appends_has_one_history(actions):
    check_history(MemoryStore(), actions)


def check_history(store, actions):
    """What an append reported as durable stays in the history; what it reported as not committed never appears."""
    chains, steps = itertools.count(), itertools.count(1)
    writers: dict[int, Writer] = {}
    durable: list[int] = []
    refused: set[int] = set()
    for who, action in actions:
        if action == "open":
            writers[who] = Writer.open(
                store,
                WriterOptions(token=f"w{who}", clock_ms=lambda: 1, new_chain=lambda: f"c{next(chains)}", writer="t"),
            )
        elif action == "crash":
            writers.pop(who, None)
        elif who in writers:
            step = next(steps)
            try:
                append(store, writers[who], step)
                durable.append(step)
            except FencedError:
                del writers[who]
            except NotCommittedError:
                refused.add(step)
    history = [commit.step for commit in CommitLog(store).commits()]
    assert [step for step in history if step in set(durable)] == durable
    assert not refused & set(history)
    assert verify(store).sound


class Machine:
    """Steps through the store operations of several producers in a seeded order, one operation at a time.

    Each producer is a generator that yields before every operation, so that 10,000 races take seconds, not hours.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.entries: dict[int, tuple[int, int, int]] = {}  # seq -> epoch, parent, mark
        self.claims = Claims()
        self.durable: list[int] = []
        self.marks = 0

    def producer(self, appends: int):
        """`Writer.open` and `Writer.append`, operation by operation."""
        yield
        known = self.latest(lambda: self.claims)
        yield
        epoch = (self.claims.latest.epoch if self.claims.latest else 0) + 1
        self.claims = Claims(claims=(*self.claims.claims, Claim(epoch=epoch, known=known, first=0, token="")))
        yield
        before = self.claims.before(epoch)
        listed = sorted(self.entries)
        yield
        head = max((seq for seq in listed if before.judge(seq, self.entries[seq][0]) is not Standing.VOID), default=0)
        yield
        if self.claims.latest.epoch != epoch:
            return
        sealed = Claim(epoch=epoch, known=known, first=head + 1, token="")
        self.claims = Claims(claims=(*self.claims.claims[:-1], sealed))
        following = head + 1
        for _ in range(appends):
            self.marks += 1
            mark = self.marks
            while True:
                yield
                if following not in self.entries:
                    self.entries[following] = (epoch, head, mark)
                    yield
                    if self.claims.latest.epoch != epoch:
                        return
                    break
                yield
                if self.claims.latest.epoch != epoch:
                    return
                assert self.claims.judge(following, self.entries[following][0]) is Standing.VOID
                following += 1
            self.durable.append(mark)
            head, following = following, following + 1

    def latest(self, claims) -> int:
        """The newest entry that counts."""
        return max((s for s, e in self.entries.items() if claims().judge(s, e[0]) is Standing.COUNTS), default=0)

    def run(self) -> None:
        """Interleave three or four producers, some of which die on the way; then one opens and appends in peace."""
        running = [self.producer(self.random.randint(0, 3)) for _ in range(self.random.randint(2, 4))]
        while running:
            chosen = self.random.choice(running)
            if self.random.random() < 0.02 or next(chosen, self) is self:
                running.remove(chosen)
            self.check()
        for _ in self.producer(1):
            self.check()
        self.finish()

    def check(self) -> None:
        """Counted entries form one chain, and no durable commit is ever void."""
        standing = {seq: self.claims.judge(seq, entry[0]) for seq, entry in sorted(self.entries.items())}
        parent = START.seq
        for seq in [seq for seq in standing if standing[seq] is Standing.COUNTS]:
            assert self.entries[seq][1] == parent
            parent = seq
        void = {self.entries[seq][2] for seq in standing if standing[seq] is Standing.VOID}
        assert not void & set(self.durable)

    def finish(self) -> None:
        """When nobody is opening, every durable commit counts, in order."""
        counted = [s for s in sorted(self.entries) if self.claims.judge(s, self.entries[s][0]) is Standing.COUNTS]
        marks = [self.entries[seq][2] for seq in counted]
        assert [mark for mark in marks if mark in self.durable] == self.durable


def test_ten_thousand_races_have_one_history():
    for seed in range(10_000):
        Machine(seed).run()


def test_racing_threads_have_one_history(kit):
    for seed in range(30):
        store = MemoryStore()
        durable: list[tuple[int, int]] = []
        jitter = random.Random(seed)

        def produce(name, store=store, durable=durable, jitter=jitter):
            writer = Writer.open(store, kit.options(name))
            for step in range(jitter.randint(1, 6)):
                try:
                    commit = append(store, writer, step)
                    durable.append((commit.seq, commit.epoch))
                except (FencedError, CommitUnknownError):
                    return

        def guarded(name, produce=produce):
            # Overtaken while opening: also an end.
            try:
                produce(name)
            except CheckpointError as error:
                assert isinstance(error, FencedError)

        threads = [threading.Thread(target=guarded, args=(f"w{index}",)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        history = {(commit.seq, commit.epoch) for commit in CommitLog(store).commits()}
        assert set(durable) <= history
        assert verify(store).sound


def test_lost_claims_are_made_anew_from_the_log(store, kit):
    for token in ("a", "b"):
        trainer = kit.toy(store, kit.options(token))
        for step in range(4):
            trainer.commit([kit.rows([step], step)])
    for seq in (2, 5):
        compact(store, seq)
    collect_garbage(store, RetentionOptions(keep_bases=1, keep_log_ms=0), now_ms=1 << 50)
    store.delete(EPOCH_PATH)
    later = Writer.open(store, kit.options("c"))
    claims = read_claims(store)
    assert (later.epoch, later.next_seq, claims.floor) == (3, 9, 5)
    assert verify(store).sound and CommitLog(store).restore().commit.seq == 8


def test_broken_claims_tell_the_remedy(store, kit):
    kit.filled(store)
    store.overwrite(EPOCH_PATH, b"{")
    with pytest.raises(ChainError, match="stop all trainers of this directory and delete it"):
        Writer.open(store, kit.options("later"))
