"""The trainer's lock: one holder, freed by death, taken over on request."""

import multiprocessing
import os
import signal

import pytest

from checkpointer.errors import LockedError
from checkpointer.lock import TRAINER_LOCK, acquire, take_over, wait_for


def test_a_second_trainer_is_refused_by_name(tmp_path):
    lock = acquire(tmp_path, TRAINER_LOCK, "host-a pid 1")
    with pytest.raises(LockedError, match="in use by host-a pid 1; stop it first$"):
        acquire(tmp_path, TRAINER_LOCK, "host-b pid 2")
    lock.release()
    acquire(tmp_path, TRAINER_LOCK, "host-b pid 2").release()


def test_the_lock_dies_with_its_process(tmp_path):
    ready = multiprocessing.Event()

    def hold():
        acquire(tmp_path, TRAINER_LOCK, "child")
        ready.set()
        signal.pause()

    process = multiprocessing.get_context("fork").Process(target=hold)
    process.start()
    assert ready.wait(10)
    with pytest.raises(LockedError):
        acquire(tmp_path, TRAINER_LOCK, "me")
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    acquire(tmp_path, TRAINER_LOCK, "me").release()


def test_take_over_leaves_the_old_holder_with_nothing(tmp_path):
    old = acquire(tmp_path, TRAINER_LOCK, "old")
    new = take_over(tmp_path, TRAINER_LOCK, "new")
    assert (old.owned, new.owned) == (False, True)
    old.release()
    with pytest.raises(LockedError, match="in use by new"):
        acquire(tmp_path, TRAINER_LOCK, "third")
    new.release()
    acquire(tmp_path, TRAINER_LOCK, "third").release()


def test_a_standby_gets_the_lock_when_it_is_free(tmp_path):
    held = acquire(tmp_path, TRAINER_LOCK, "old")
    pauses = []

    def pause():
        pauses.append(1)
        if len(pauses) == 3:
            held.release()

    wait_for(tmp_path, TRAINER_LOCK, "standby", pause=pause).release()
    assert len(pauses) == 3


def test_a_lock_in_an_impossible_place_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Exception, match="lock .* cannot be opened"):
        acquire(tmp_path / "file" / "dir", TRAINER_LOCK, "me")
