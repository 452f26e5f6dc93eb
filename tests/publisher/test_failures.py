"""Storage that fails, before or after it did its work, at any step: tried again, everything is published once."""

import pytest

from checkpointer.errors import NotStoredError, OutcomeUnknownError, StoreError
from publisher.versions import list_versions, read_pointer


class Failing:
    """A store whose n-th write fails: for certain, or after it happened."""

    def __init__(self, store, nth: int, *, after: bool) -> None:
        self._store, self._left, self._after = store, nth, after
        self.failed = False

    def __getattr__(self, name):
        return getattr(self._store, name)

    def put_if_absent(self, path, data, *, point=""):
        self._write(lambda: self._store.put_if_absent(path, data, point=point))

    def compare_and_swap(self, path, old, new, *, point=""):
        self._write(lambda: self._store.compare_and_swap(path, old, new, point=point))

    def _write(self, write) -> None:
        self._left -= 1
        if self._left != 0:
            write()
            return
        self.failed = True
        if self._after:
            write()
            raise OutcomeUnknownError("the connection was lost")
        raise NotStoredError("no space left on device")


def insist(follower, times: int = 3) -> None:
    """Step as the process does: a failed step is tried again, and nothing else happens meanwhile."""
    for _ in range(times):
        try:
            follower.step()
        except StoreError:
            continue


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("nth", range(1, 9))
def test_failed_write_is_made_good_without_another_commit(bench, nth, after):
    bench.trainer.base()
    bench.publish()
    bench.trainer.commit({"user": [1, 7]}, delete=[5])
    store = Failing(bench.store, nth, after=after)
    try:
        follower = bench.publisher(store=store)
    except StoreError:
        follower = bench.publisher(store=store)
    insist(follower)
    assert store.failed or nth > 4
    assert read_pointer(bench.store).version == 2
    assert bench.same(bench.held(bench.current()), bench.trainer.rows)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("nth", range(1, 9))
def test_failed_write_of_the_first_version_is_made_good(bench, nth, after):
    bench.trainer.base()
    store = Failing(bench.store, nth, after=after)
    try:
        follower = bench.publisher(store=store)
    except StoreError:
        follower = bench.publisher(store=store)
    insist(follower)
    assert list_versions(bench.store) == [1]
    assert bench.same(bench.held(bench.current()), bench.trainer.rows)
    bench.trainer.commit({"user": [2]})
    insist(follower)
    assert bench.same(bench.held(bench.current()), bench.trainer.rows)
