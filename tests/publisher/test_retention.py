"""Old versions go, and with them what only they named; what is served or pinned stays loadable."""

from dataclasses import replace

from checkpointer import Kind
from publisher.artefacts import description_path, store_artefact
from publisher.export.host import this_host
from publisher.pointer import rollback
from publisher.retention import Retention
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
    parents = ("serving_bases", "versions", "contracts", "compiled")
    folders = ["deltas", "dense", *(folder for parent in parents for folder in bench.store.folders(parent))]
    return {entry.path for folder in folders for entry in bench.store.list(folder)}


def assert_loadable(bench, version: int) -> None:
    found = read_version(bench.store, version)
    read_blob(bench.store, found.dense)
    for blob in (found.config, found.layout, found.described, *(asset.blob for asset in found.assets)):
        read_blob(bench.store, blob)
    for blob in (*found.base.blobs, *(blob for delta in found.deltas for blob in delta.blobs)):
        read_blob(bench.store, blob)


def test_sweep_keeps_the_newest_versions_loadable(bench):
    served(bench, 10)
    assert Retention(bench.store, 3).sweep() == 7
    assert list_versions(bench.store) == [8, 9, 10]
    for version in (8, 9, 10):
        assert_loadable(bench, version)
    assert not {path for path in paths(bench) if path.startswith("dense/") and int(path[6:26]) < 8}


def test_sweep_keeps_what_is_served_and_pinned(bench):
    served(bench, 10)
    rollback(bench.store, 2, lambda: 0)
    Retention(bench.store, 3).sweep()
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
    Retention(bench.store, 3).sweep()
    assert {int(path.split("/")[1][:20]) for path in paths(bench) if path.startswith("deltas/")} == {8, 9, 10}
    bases = {path.split("/")[1] for path in paths(bench) if path.startswith("serving_bases/")}
    assert {int(seq) for seq in bases} == {7}
    for version in (8, 9, 10):
        assert_loadable(bench, version)


def test_sweep_spares_a_base_that_is_being_written(bench):
    served(bench, 6)
    path = "serving_bases/00000000000000000002/abc.parquet"
    bench.store.put_if_absent(path, b"x")
    Retention(bench.store, 2).sweep(writing=frozenset({2}))
    assert path in paths(bench)
    Retention(bench.store, 2).sweep()
    assert path not in paths(bench)


def test_sweep_deletes_nothing_while_a_kept_version_is_damaged(bench):
    served(bench, 6)
    path = read_version(bench.store, 5).path
    bench.store.compare_and_swap(path, bench.store.get(path), b"{}")
    before = paths(bench)
    assert Retention(bench.store, 2).sweep() == 0
    assert paths(bench) == before


def of_contracts(bench) -> set[str]:
    return {path for path in paths(bench) if path.startswith(("contracts/", "compiled/"))}


def compile_for(bench, contract: str, payload: bytes) -> set[str]:
    artefact = store_artefact(bench.store, contract, "torch_script", payload, "", this_host())
    return {artefact.blob.path, description_path(contract, "torch_script", this_host())}


def test_sweep_deletes_contracts_and_compiled_halves_that_no_kept_version_names(bench):
    old, new = (replace(bench.contract, digest=name, assets=(("words.txt", name.encode()),)) for name in ("aa", "bb"))
    bench.trainer.contract = "aa"
    bench.trainer.base()
    bench.publish(contract=old)
    doomed = of_contracts(bench) | compile_for(bench, "aa", b"1")
    bench.trainer.contract = "bb"
    bench.trainer.commit({"user": [1]}, kind=Kind.BASE, reset=True)
    follower = bench.publish(contract=new)
    kept = (of_contracts(bench) - doomed) | compile_for(bench, "bb", b"2")
    retention = Retention(bench.store, 2)
    retention.sweep()
    retention.sweep()
    assert of_contracts(bench) == kept | doomed
    for number in range(2):
        bench.trainer.commit({"user": [number]})
        follower.step()
    retention.sweep()
    assert of_contracts(bench) == kept | doomed
    retention.sweep()
    assert of_contracts(bench) == kept
    for version in list_versions(bench.store):
        assert_loadable(bench, version)


def test_sweep_deletes_what_was_compiled_before_of_the_same_contract(bench):
    served(bench, 4)
    first = compile_for(bench, bench.contract.digest, b"1")
    second = compile_for(bench, bench.contract.digest, b"2")
    retention = Retention(bench.store, 2)
    retention.sweep()
    assert first | second <= of_contracts(bench)
    retention.sweep()
    assert first - second and not (first - second) & of_contracts(bench) and second <= of_contracts(bench)


def test_sweep_spares_what_versions_to_come_will_name(bench):
    served(bench, 4)
    path = f"contracts/ff/{'0' * 16}.asset"
    bench.store.put_if_absent(path, b"x")
    retention = Retention(bench.store, 2, holding=frozenset({path}))
    retention.sweep()
    retention.sweep()
    assert path in paths(bench)
    other = Retention(bench.store, 2)
    other.sweep()
    other.sweep()
    assert path not in paths(bench)


def test_publisher_sweeps_by_itself(bench):
    served(bench, 40, keep_versions=3)
    assert len(list_versions(bench.store)) <= 3 + 8
    assert_loadable(bench, 40)
