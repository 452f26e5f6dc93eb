"""What a local store leaves in the page cache."""

import os
from pathlib import Path

from checkpointer.local_store import LocalStore

SIZE = 1 << 20


def cached(path: Path) -> bool:
    """Whether the first page can be read without the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.preadv(descriptor, [bytearray(4096)], 0, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def test_store_drops_its_oldest_objects_from_the_page_cache(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, cached_bytes=2 * SIZE)
    objects = {f"log/{number}": os.urandom(SIZE) for number in range(4)}
    for path, data in objects.items():
        store.put_if_absent(path, data)
    assert [cached(tmp_path / f"log/{number}") for number in (0, 1, 3)] == [False, False, True]
    assert all(store.get(path) == data for path, data in objects.items())


def test_store_goes_on_when_what_it_wrote_is_gone(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, cached_bytes=SIZE)
    store.put_if_absent("log/1", bytes(SIZE))
    store.delete("log/1")
    store.put_if_absent("log/2", bytes(SIZE))
    assert store.get("log/2") == bytes(SIZE)


def test_a_write_cut_short_goes_on_where_it_ended(tmp_path, monkeypatch):
    """writev(2) takes at most 2 GiB at once, and less where a signal comes."""
    write = os.writev
    monkeypatch.setattr(os, "writev", lambda file, pieces: write(file, [memoryview(b"".join(pieces))[:7]]))
    pieces = [b"abc", b"", b"defgh", memoryview(b"ijklmnopqrs"), b"t"]
    store = LocalStore(tmp_path)
    store.put_if_absent("log/a.blob", pieces)
    assert store.get("log/a.blob") == b"abcdefghijklmnopqrst"
