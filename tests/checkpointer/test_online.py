"""Writing, compacting, collecting and reading at once; and a writer killed at any time, again and again."""

import multiprocessing
import os
import random
import signal
import threading
import time

import numpy as np

from checkpointer import CommitLog, RetentionOptions, maintain, verify
from checkpointer.errors import ChainError, FencedError, Flaw
from checkpointer.local_store import LocalStore

TIGHT = RetentionOptions(compact_after_commits=5, keep_bases=2, keep_log_ms=0)


def test_readers_see_whole_commits_while_everything_runs(tmp_path, kit):
    """A reader may find that retention went past what it was reading; it never gets a wrong state."""
    store = LocalStore(tmp_path / "model")
    trainer = kit.filled(store)
    stop = threading.Event()
    failures: list[BaseException] = []
    checked = [0]

    def read() -> None:
        log = CommitLog(LocalStore(tmp_path / "model"))
        while not stop.is_set():
            try:
                restored = log.restore()
                found = kit.as_state(restored.tables)
            except ChainError as error:
                if error.flaw is not Flaw.MISSING:
                    raise
                continue
            while restored.commit.seq not in trainer.history:
                time.sleep(0.001)  # the commit is visible before the writer has noted it
            assert found == trainer.history[restored.commit.seq]
            checked[0] += 1

    def look_after() -> None:
        while not stop.is_set():
            maintain(LocalStore(tmp_path / "model"), tmp_path, TIGHT, now_ms=1 << 50, holder="me")

    def guarded(action) -> None:
        try:
            action()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(action,)) for action in (read, read, look_after)]
    for thread in threads:
        thread.start()
    random_ids = np.random.default_rng(1)
    for step in range(80):
        touched = random_ids.choice(60, 10, replace=False)
        trainer.commit([kit.rows(touched[:7], step, deleted=touched[7:])])
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert checked[0] > 5
    trainer.check(CommitLog(store).restore())
    assert verify(store).sound


def test_a_writer_killed_at_any_time_goes_on_where_it_was(tmp_path, kit):
    """Each life restores, checks itself against what the commits before it must have left, and is killed."""
    root = tmp_path / "model"
    kit.filled(LocalStore(root))

    def live() -> None:
        store = LocalStore(root)
        trainer = kit.toy(store, kit.options(f"life {os.getpid()}"))
        restored = CommitLog(store).restore(trainer.writer.head.seq)
        trainer.state, trainer.step = kit.as_state(restored.tables), restored.commit.step
        while True:
            touched = np.random.default_rng(trainer.step).choice(60, 10, replace=False)
            trainer.commit([kit.rows(touched[:7], trainer.step + 1, deleted=touched[7:])])
            if trainer.step % 7 == 0:
                maintain(store, tmp_path, TIGHT, now_ms=1 << 50, holder="me")

    dice = random.Random(7)
    steps = [6]
    while len(steps) < 21 or steps[-1] <= 20:
        process = multiprocessing.get_context("fork").Process(target=live)
        process.start()
        time.sleep(dice.uniform(0.02, 0.25))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert process.exitcode == -signal.SIGKILL, "it ended by itself"
        steps.append(CommitLog(LocalStore(root)).restore().commit.step)
    assert steps == sorted(steps)
    assert verify(LocalStore(root)).sound
    unbroken = kit.filled(LocalStore(tmp_path / "unbroken"))
    while unbroken.step < steps[-1]:
        touched = np.random.default_rng(unbroken.step).choice(60, 10, replace=False)
        unbroken.commit([kit.rows(touched[:7], unbroken.step + 1, deleted=touched[7:])])
    assert kit.as_state(CommitLog(LocalStore(root)).restore().tables) == unbroken.state


def test_a_taken_over_writer_stops_while_the_new_one_goes_on(tmp_path, kit):
    root = tmp_path / "model"
    old = kit.filled(LocalStore(root))
    new = kit.toy(LocalStore(root), kit.options("new"))
    new.state, new.step = dict(old.state), old.step
    outcome: list[type[BaseException]] = []

    def go_on() -> None:
        try:
            while True:
                old.commit([kit.rows([1], 99)])
        except FencedError as error:
            outcome.append(type(error))

    thread = threading.Thread(target=go_on)
    thread.start()
    for step in range(10):
        new.commit([kit.rows([step], step)])
    thread.join()
    assert outcome == [FencedError]
    new.check(CommitLog(LocalStore(root)).restore())
    assert verify(LocalStore(root)).sound
