"""The pointer goes forward by publishing, back by a rollback, and stays pinned whatever happens at the same time."""

import itertools
import threading
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from publisher.codec import decode_pin, encode_pin
from publisher.errors import VersionError
from publisher.pointer import Target, advance, is_pinned, read_pin, resume, rollback
from publisher.signing import Signer
from publisher.versions import read_pointer


def served(bench, count: int):
    bench.trainer.base()
    follower = bench.publish()
    for _ in range(count - 1):
        bench.trainer.commit({"user": [1]})
        follower.step()
    return follower


def test_rollback_goes_to_the_version_before_and_pins(bench):
    follower = served(bench, 3)
    rollback(bench.store, None, lambda: 9)
    assert read_pointer(bench.store).version == 2
    assert read_pin(bench.store).version == 2
    bench.trainer.commit({"user": [1]})
    follower.step()
    assert read_pointer(bench.store).version == 2


def test_rollback_twice_goes_back_two(bench):
    served(bench, 3)
    rollback(bench.store, None, lambda: 9)
    rollback(bench.store, None, lambda: 9)
    assert read_pointer(bench.store).version == 1


def test_rollback_of_a_signed_pointer_needs_its_key(bench):
    signer = Signer(Ed25519PrivateKey.generate())
    bench.trainer.base()
    follower = bench.publish(signer=signer)
    bench.trainer.commit({"user": [1]})
    follower.step()
    before = bench.store.get("current.json")
    with pytest.raises(VersionError, match="give --config with publish_config.signing_key_file"):
        rollback(bench.store, None, lambda: 9)
    assert bench.store.get("current.json") == before and read_pin(bench.store) is None
    rollback(bench.store, None, lambda: 9, signer=signer)
    assert read_pointer(bench.store, verifier=signer.verifier).version == 1


def test_resume_moves_on_to_the_newest_version(bench):
    follower = served(bench, 2)
    rollback(bench.store, 1, lambda: 9)
    bench.trainer.commit({"user": [1]})
    follower.step()
    assert resume(bench.store) is True
    follower.step()
    assert read_pointer(bench.store).version == 3
    assert resume(bench.store) is False


def test_pin_survives_a_restart_of_the_publisher(bench):
    served(bench, 2)
    rollback(bench.store, 1, lambda: 9)
    bench.trainer.commit({"user": [1]})
    bench.publish()
    assert read_pointer(bench.store).version == 1


def test_rollback_to_a_version_that_is_not_there_changes_nothing(bench):
    served(bench, 2)
    before = bench.store.get("current.json")
    with pytest.raises(VersionError, match="version 7 is not there"):
        rollback(bench.store, 7, lambda: 9)
    assert bench.store.get("current.json") == before and read_pin(bench.store) is None


def test_rollback_before_anything_is_served_says_so(bench):
    with pytest.raises(VersionError, match="nothing is served"):
        rollback(bench.store, None, lambda: 9)


def test_rollback_of_the_only_version_says_so(bench):
    served(bench, 1)
    with pytest.raises(VersionError, match="no version before 1"):
        rollback(bench.store, None, lambda: 9)


def test_pointer_never_goes_back_by_publishing(bench):
    served(bench, 3)
    assert advance(bench.store, Target(version=2, digest="x"), lambda: 0) is None
    assert read_pointer(bench.store).version == 3


def test_every_swap_has_its_own_generation(bench):
    served(bench, 3)
    first = read_pointer(bench.store).generation
    rollback(bench.store, 3, lambda: 9)
    assert read_pointer(bench.store).generation == first + 1


class Interleaved:
    """A store that lets somebody else act between a read of the pin and the swap of the pointer."""

    def __init__(self, store, act):
        self._store = store
        self._act = act

    def __getattr__(self, name):
        return getattr(self._store, name)

    def compare_and_swap(self, path, old, new, *, point=""):
        act, self._act = self._act, None
        if act is not None:
            act()
        self._store.compare_and_swap(path, old, new, point=point)


@pytest.mark.parametrize("target", [1, 2])
def test_rollback_between_the_pin_and_the_swap_wins(bench, target):
    served(bench, 2)
    bench.trainer.commit({"user": [1]})
    late = Interleaved(bench.store, lambda: rollback(bench.store, target, lambda: 9))
    assert advance(late, Target(version=3, digest="x"), lambda: 0) is None
    assert read_pointer(bench.store).version == target


@pytest.mark.parametrize("round", range(5))
def test_rollback_against_busy_publishers_always_ends_pinned(local_bench, round):
    bench = local_bench
    served(bench, 3)
    numbers = itertools.count(4)
    stop = threading.Event()

    def push() -> None:
        while not stop.is_set():
            advance(bench.store, Target(version=next(numbers), digest="x"), lambda: 0)

    threads = [threading.Thread(target=push) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        rollback(bench.store, 2, lambda: 9)
        after = read_pointer(bench.store)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert after.version == 2
    assert read_pointer(bench.store) == after


DAMAGES = {"cut": b'{"digest":"', "empty": b"", "garbled": b"\xff\x00\xfe", "other type": b"[]", "no format": b"{}"}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_pointer_is_written_anew_with_the_next_version(bench, damage):
    follower = served(bench, 2)
    before = read_pointer(bench.store).generation
    bench.store.overwrite("current.json", DAMAGES[damage])
    with pytest.raises(VersionError, match="headrace rollback MODEL_DIR SEQ writes it anew"):
        read_pointer(bench.store)
    bench.trainer.commit({"user": [1]})
    follower.step()
    after = read_pointer(bench.store)
    assert after.version == 3 and after.generation > before


@pytest.mark.parametrize("damage", DAMAGES)
def test_rollback_mends_a_damaged_pointer_when_it_is_told_where_to(bench, damage):
    served(bench, 3)
    before = read_pointer(bench.store).generation
    bench.store.overwrite("current.json", DAMAGES[damage])
    with pytest.raises(VersionError, match=r"name it: headrace rollback MODEL_DIR SEQ \(there are versions 1 to 3\)"):
        rollback(bench.store, None, lambda: 9)
    assert read_pin(bench.store) is None
    assert rollback(bench.store, 2, lambda: 10**12).generation > before
    assert (read_pointer(bench.store).version, read_pin(bench.store).version) == (2, 2)


def test_a_deleted_pointer_comes_back_above_every_number_that_was_seen(bench):
    served(bench, 3)
    before = read_pointer(bench.store).generation
    bench.store.delete("current.json")
    assert rollback(bench.store, 1, lambda: 10**12).generation > before


def test_a_damaged_signed_pointer_still_needs_the_key(bench):
    signer = Signer(Ed25519PrivateKey.generate())
    bench.trainer.base()
    bench.publish(signer=signer)
    bench.store.overwrite("current.json", b"")
    with pytest.raises(VersionError, match="signing_key_file"):
        rollback(bench.store, 1, lambda: 9)
    assert rollback(bench.store, 1, lambda: 10**12, signer=signer).version == 1


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_pin_holds_the_pointer_until_somebody_decides(bench, damage):
    follower = served(bench, 2)
    rollback(bench.store, 1, lambda: 9)
    bench.store.overwrite("pin.json", DAMAGES[damage])
    bench.trainer.commit({"user": [1]})
    follower.step()
    assert read_pointer(bench.store).version == 1
    with pytest.raises(VersionError, match="publish CONFIG --resume removes it"):
        read_pin(bench.store)
    assert resume(bench.store) is True
    follower.step()
    assert read_pointer(bench.store).version == 3


@pytest.mark.parametrize("path", ["current.json", "pin.json"])
def test_what_a_newer_program_wrote_is_left_alone(bench, path):
    follower = served(bench, 2)
    bench.store.overwrite(path, b'{"format":2}')
    bench.trainer.commit({"user": [1]})
    for action in (lambda: rollback(bench.store, 1, lambda: 9), follower.step):
        with pytest.raises(VersionError, match="upgrade headrace"):
            action()
    assert bench.store.get(path) == b'{"format":2}'


def test_a_pin_is_signed_and_only_our_own_holds_the_pointer(bench):
    ours, foreign = (Signer(Ed25519PrivateKey.generate()) for _ in range(2))
    bench.trainer.base()
    follower = bench.publish(signer=ours)
    bench.trainer.commit({"user": [1]})
    follower.step()
    rollback(bench.store, 1, lambda: 9, signer=ours)
    signed = bench.store.get("pin.json")
    pin = decode_pin(signed, "pin.json", ours.verifier)
    assert (pin.version, is_pinned(bench.store, signer=ours)) == (1, True)
    target = Target(version=2, digest="d" * 64)
    assert advance(bench.store, target, lambda: 9, signer=ours) is None
    for forged in (encode_pin(pin), encode_pin(pin, foreign), encode_pin(replace(pin, version=2), foreign)):
        bench.store.overwrite("pin.json", forged)
        assert not is_pinned(bench.store, signer=ours)
        # Without a key whoever pins is believed.
        assert is_pinned(bench.store)
    assert advance(bench.store, target, lambda: 9, signer=ours).version == 2
    bench.store.overwrite("pin.json", signed)
    assert is_pinned(bench.store, signer=ours)
