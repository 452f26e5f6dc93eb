"""Publishing works the same on every store: local, in memory, and S3 by conditional writes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from obstore.store import MemoryStore as ObjectMemoryStore

from checkpointer.local_store import LocalStore
from checkpointer.memory_store import MemoryStore
from checkpointer.object_store import ObjectStore
from checkpointer.open_store import StoreOptions, open_store
from publisher.pointer import resume, rollback
from publisher.retention import Retention
from publisher.versions import list_versions, read_pointer
from tests.s3_server import s3_server


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with s3_server("models") as endpoint:
        yield endpoint


@pytest.fixture(params=["local", "memory", "object-memory", "s3"])
def everywhere(request: pytest.FixtureRequest, make_bench, tmp_path: Path):
    if request.param == "local":
        return make_bench(LocalStore(tmp_path / "model"))
    if request.param == "memory":
        return make_bench(MemoryStore())
    if request.param == "object-memory":
        return make_bench(ObjectStore(ObjectMemoryStore(), "memory-objects://"))
    credentials = tmp_path / "credentials"
    credentials.write_text("key\nsecret\n")
    endpoint = request.getfixturevalue("s3")
    options = StoreOptions(endpoint=endpoint, credentials_file=str(credentials), allow_http=True)
    return make_bench(open_store(f"s3://models/{tmp_path.name}", options))


def test_publish_roll_back_resume_and_sweep(everywhere):
    bench = everywhere
    bench.trainer.base()
    follower = bench.publish()
    for number in range(4):
        bench.trainer.commit({"user": [number, 8], "item": [number]}, delete=[9 + number])
        follower.step()
    assert bench.same(bench.held(bench.current()), bench.trainer.rows)
    rollback(bench.store, None, lambda: 9)
    bench.trainer.commit({"user": [2]})
    bench.publish()
    assert read_pointer(bench.store).version == 4
    resume(bench.store)
    bench.publish()
    assert read_pointer(bench.store).version == 6
    Retention(bench.store, 2).sweep()
    assert list_versions(bench.store) == [5, 6]
    assert bench.same(bench.held(bench.current()), bench.trainer.rows)
