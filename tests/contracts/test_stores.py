"""Every `Store` keeps the same promises: a directory, memory, the object-store client's memory, an S3 server."""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from obstore.store import MemoryStore as ObjectMemoryStore

from checkpointer.errors import ConflictError, ExistsError, NotFoundError, StoreError
from checkpointer.faults import STEPS
from checkpointer.local_store import LocalStore
from checkpointer.memory_store import MemoryStore
from checkpointer.object_store import ObjectStore
from checkpointer.open_store import StoreOptions, open_store
from checkpointer.store import Store
from tests.s3_server import s3_server


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The endpoint of a real server that speaks S3, with the bucket `models`."""
    with s3_server("models") as endpoint:
        yield endpoint


def open_s3(endpoint: str, path: Path) -> Store:
    """A directory of its own in the bucket."""
    path.mkdir(parents=True, exist_ok=True)
    credentials = path / "credentials"
    credentials.write_text("key\nsecret\n")
    options = StoreOptions(endpoint=endpoint, credentials_file=str(credentials), allow_http=True)
    return open_store(f"s3://models/{path.name}", options)


@pytest.fixture(params=["local", "memory", "object-memory", "s3"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Opens the same storage again and again, as other processes do."""
    if request.param == "local":
        return lambda: LocalStore(tmp_path / "model")
    if request.param == "s3":
        endpoint = request.getfixturevalue("s3")
        return lambda: open_s3(endpoint, tmp_path)
    only = MemoryStore() if request.param == "memory" else ObjectStore(ObjectMemoryStore(), "memory-objects://")
    return lambda: only


@pytest.fixture
def store(reopen: Callable[[], Store]) -> Store:
    return reopen()


def test_get_gives_what_was_put(store):
    store.put_if_absent("log/a.json", b"0123456789")
    assert store.get("log/a.json") == b"0123456789"


def test_pieces_are_one_object(store):
    pieces = [piece for n in range(1200) for piece in (str(n).encode(), memoryview(b"-%d-" % n), b"")]
    store.put_if_absent("log/a.blob", pieces)
    assert store.get("log/a.blob") == b"".join(pieces)


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [(0, 4, b"0123"), (3, 4, b"3456"), (8, 10, b"89"), (3, None, b"3456789"), (10, 5, b""), (20, 5, b""), (4, 0, b"")],
)
def test_get_reads_ranges_and_stops_at_the_end(store, offset, length, expected):
    store.put_if_absent("a", b"0123456789")
    assert store.get("a", offset=offset, length=length) == expected


@pytest.mark.parametrize("length", [None, 0, 3])
def test_get_names_what_is_absent(store, length):
    with pytest.raises(NotFoundError, match="log/none"):
        store.get("log/none", length=length)
    store.put_if_absent("log/a/b", b"1")
    with pytest.raises(NotFoundError):
        store.get("log/a", length=length)


def test_put_if_absent_never_overwrites(store, reopen):
    store.put_if_absent("log/1", b"first")
    with pytest.raises(ExistsError, match="log/1"):
        reopen().put_if_absent("log/1", b"second")
    assert store.get("log/1") == b"first"


def test_put_if_absent_has_one_winner(reopen):
    stores = [reopen() for _ in range(8)]
    for round_ in range(5):
        won: list[int] = []
        gate = threading.Barrier(len(stores))

        def race(index, round_=round_, won=won, gate=gate):
            gate.wait()
            try:
                stores[index].put_if_absent(f"race/{round_}", str(index).encode())
                won.append(index)
            except ExistsError:
                pass

        run([lambda index=index: race(index) for index in range(len(stores))])
        assert [str(index).encode() for index in won] == [stores[0].get(f"race/{round_}")]


def test_compare_and_swap_replaces_only_what_was_read(store, reopen):
    store.compare_and_swap("current.json", None, b"1")
    reopen().compare_and_swap("current.json", b"1", b"2")
    with pytest.raises(ConflictError):
        store.compare_and_swap("current.json", b"1", b"3")
    with pytest.raises(ConflictError):
        store.compare_and_swap("current.json", None, b"3")
    with pytest.raises(ConflictError):
        store.compare_and_swap("other.json", b"1", b"3")
    assert store.get("current.json") == b"2"


def test_compare_and_swap_loses_no_increment(reopen):
    stores = [reopen() for _ in range(4)]
    stores[0].compare_and_swap("counter", None, b"0")

    def count(store):
        done = 0
        while done < 10:
            old = store.get("counter")
            try:
                store.compare_and_swap("counter", old, str(int(old) + 1).encode())
                done += 1
            except ConflictError:
                continue

    run([lambda store=store: count(store) for store in stores])
    assert stores[0].get("counter") == b"40"


def test_overwrite_replaces_whatever_is_there(store):
    store.overwrite("log/_head", b"1")
    store.overwrite("log/_head", b"2")
    assert store.get("log/_head") == b"2"


def test_list_gives_one_folder_in_order(store):
    for name in ("log/2", "log/10", "log/1", "log/blobs/x", "logs/3", "other"):
        store.put_if_absent(name, name.encode())
    assert [entry.path for entry in store.list("log")] == ["log/1", "log/10", "log/2"]
    assert [entry.path for entry in store.list("log", after="log/1")] == ["log/10", "log/2"]
    assert list(store.list("none")) == []


def test_folders_are_those_directly_below(store):
    for name in ("log/blobs/2/x", "log/blobs/1/x", "log/blobs/1/y", "log/blobs/z"):
        store.put_if_absent(name, b"1")
    assert store.folders("log/blobs") == ["log/blobs/1", "log/blobs/2"]
    assert store.folders("none") == []


def test_delete_frees_the_name_and_may_be_repeated(store):
    store.put_if_absent("a/b", b"1")
    store.delete("a/b")
    store.delete("a/b")
    assert list(store.list("a")) == []
    store.put_if_absent("a/b", b"2")
    assert store.get("a/b") == b"2"


def test_tidy_keeps_every_object(store):
    store.put_if_absent("log/blobs/1/x", b"1")
    store.put_if_absent("log/a", b"1")
    store.tidy("log", older_ms=0)
    store.tidy("log/blobs", older_ms=0)
    assert store.get("log/blobs/1/x") == store.get("log/a") == b"1"


@pytest.mark.parametrize("path", ["", "/etc/passwd", "a//b", "../a", "a/..", "a/", "."])
def test_paths_stay_inside(store, path):
    for action in (
        lambda: store.get(path),
        lambda: store.put_if_absent(path, b""),
        lambda: store.overwrite(path, b""),
        lambda: store.delete(path),
        lambda: store.compare_and_swap(path, None, b""),
    ):
        with pytest.raises(StoreError, match="no path inside a store"):
            action()


def test_fault_points_are_passed_in_order(reopen, tmp_path):
    class Recorder:
        def __init__(self):
            self.points: list[str] = []

        def reached(self, point):
            self.points.append(point)

    recorder = Recorder()
    LocalStore(tmp_path / "recorded", recorder).put_if_absent("a/b", b"1", point="commit.blob")
    assert recorder.points == [f"commit.blob_{step}" for step in STEPS]
    recorder.points.clear()
    LocalStore(tmp_path / "recorded", recorder).compare_and_swap("c", None, b"1", point="epoch.claim")
    assert recorder.points == [f"epoch.claim_{step}" for step in STEPS]
    recorder.points.clear()
    MemoryStore(recorder).put_if_absent("a", b"1", point="commit.blob")
    assert recorder.points == ["commit.blob_written", "commit.blob_linked"]


def test_object_stores_prove_that_they_honour_conditions(s3, tmp_path):
    store = open_s3(s3, tmp_path)
    assert isinstance(store, ObjectStore)
    store.prove_conditional_puts("probe")
    assert list(store.list("probe")) == []


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://host/x", "a path or s3://"),
        ("s3://bucket", "s3://bucket/prefix"),
        ("s3://key:secret@bucket/x", "secrets and options do not belong"),
    ],
)
def test_open_store_refuses_other_urls(url, said):
    with pytest.raises(StoreError, match=said):
        open_store(url)


def test_s3_without_an_endpoint_and_a_file_of_credentials_is_that_of_the_environment(s3, monkeypatch):
    told = {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "ENDPOINT_URL": s3}
    for name, value in told.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    store = open_store("s3://models/environment", StoreOptions(allow_http=True))
    store.put_if_absent("a", b"1")
    assert store.get("a") == b"1"


def test_an_endpoint_that_is_not_there_is_a_clear_error(tmp_path):
    options = StoreOptions(endpoint="http://127.0.0.1:1", credentials_file=str(tmp_path / "none"), allow_http=True)
    with pytest.raises(StoreError, match="credentials file .* cannot be read"):
        open_store("s3://models/x", options)


def run(actions: list[Callable[[], None]]) -> None:
    """Run on a thread each; an error in one fails the test."""
    errors: list[BaseException] = []

    def guarded(action: Callable[[], None]) -> None:
        try:
            action()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_tidy_removes_only_what_is_much_older_than_the_latest_change(tmp_path):
    store = LocalStore(tmp_path)
    store.put_if_absent("log/a", b"1")
    for name, age_s in (("fresh", 10), ("old", 7200)):
        path = tmp_path / "log" / f".tmp-{name}"
        path.write_bytes(b"half")
        stamp = path.stat().st_mtime - age_s
        os.utime(path, (stamp, stamp))
    (tmp_path / "log/empty").mkdir()
    store.tidy("log", older_ms=3_600_000)
    assert sorted(path.name for path in (tmp_path / "log").iterdir()) == [".tmp-fresh", "a"]
