"""Old versions go, and with them what only they named; what is served or pinned stays loadable."""

from publisher.pointer import rollback
from publisher.retention import sweep
from publisher.versions import list_versions, read_blob, read_version


def served(bench, count: int, **options: object):
    bench.trainer.base()
    follower = bench.publisher(**options)
    follower.step()
    for number in range(count - 1):
        bench.trainer.commit({"user": [number]})
        follower.step()
    return follower


def paths(bench) -> set[str]:
    folders = ["deltas", "dense", *bench.store.folders("serving_bases"), *bench.store.folders("versions")]
    return {entry.path for folder in folders for entry in bench.store.list(folder)}


def assert_loadable(bench, version: int) -> None:
    found = read_version(bench.store, version)
    read_blob(bench.store, found.dense)
    for blob in (*found.base.blobs, *(blob for delta in found.deltas for blob in delta.blobs)):
        read_blob(bench.store, blob)


def test_sweep_keeps_the_newest_versions_loadable(bench):
    served(bench, 10)
    assert sweep(bench.store, 3) == 7
    assert list_versions(bench.store) == [8, 9, 10]
    for version in (8, 9, 10):
        assert_loadable(bench, version)
    assert not {path for path in paths(bench) if path.startswith("dense/") and int(path[6:26]) < 8}


def test_sweep_keeps_what_is_served_and_pinned(bench):
    served(bench, 10)
    rollback(bench.store, 2, lambda: 0)
    sweep(bench.store, 3)
    assert list_versions(bench.store) == [2, 8, 9, 10]
    assert_loadable(bench, 2)


def test_sweep_deletes_deltas_and_bases_that_nobody_names(bench, local_bench):
    bench = local_bench
    served(bench, 6, encoding="fp32")
    bench.trainer.commit({"user": [1]})
    follower = bench.publish(encoding="int8")
    for _ in range(3):
        bench.trainer.commit({"user": [1]})
        follower.step()
    sweep(bench.store, 3)
    assert {int(path.split("/")[1][:20]) for path in paths(bench) if path.startswith("deltas/")} == {8, 9, 10}
    bases = {path.split("/")[1] for path in paths(bench) if path.startswith("serving_bases/")}
    assert {int(seq) for seq in bases} == {7}
    for version in (8, 9, 10):
        assert_loadable(bench, version)


def test_sweep_spares_a_base_that_is_being_written(bench):
    served(bench, 6)
    path = "serving_bases/00000000000000000002/abc.parquet"
    bench.store.put_if_absent(path, b"x")
    sweep(bench.store, 2, writing=frozenset({2}))
    assert path in paths(bench)
    sweep(bench.store, 2)
    assert path not in paths(bench)


def test_sweep_deletes_nothing_while_a_kept_version_is_damaged(bench):
    served(bench, 6)
    path = read_version(bench.store, 5).path
    bench.store.compare_and_swap(path, bench.store.get(path), b"{}")
    before = paths(bench)
    assert sweep(bench.store, 2) == 0
    assert paths(bench) == before


def test_publisher_sweeps_by_itself(bench):
    served(bench, 40, keep_versions=3)
    assert len(list_versions(bench.store)) <= 3 + 8
    assert_loadable(bench, 40)
