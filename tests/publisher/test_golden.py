"""What was published once stays readable, and the same commits are still published as the same bytes."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from checkpointer.local_store import LocalStore
from publisher.artefacts import store_artefact
from publisher.errors import Reason, VersionError
from publisher.export.host import Host
from publisher.pointer import read_pin, rollback
from publisher.signing import Signer
from publisher.versions import list_versions, read_blob, read_pointer, read_version

ROOT = Path(__file__).parents[1] / "golden" / "publisher"
GOLDEN = ROOT / "format-1"
# Written before versions brought files and before the pointer was signed.
FIRST = ROOT / "format-1-first"
SIGNER = Signer(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
HOST = Host(torch="2.0", machine="x86_64", isa=frozenset())
WRITTEN = ("versions", "serving_bases", "deltas", "dense", "contracts", "compiled", "current.json", "pin.json")


def write_golden(bench, asset: bytes = b"red\ngreen\n") -> None:
    """Three versions, a refusal, and a rollback to the second; no test writes them where they lie.

    `rows.json` has what a replica must then hold of each version.
    """
    description = b'[{"group":"__BASE__","inputs":["user_id"],"kind":"id","name":"user_id","values":{}}]'
    contract = replace(bench.contract, assets=(("/data/words.txt", asset),), described=description)
    bench.trainer.base()
    rows = {1: copied(bench)}
    follower = bench.publish(signer=SIGNER, contract=contract)
    for number in (2, 3):
        bench.trainer.commit({"user": [number, 12], "item": [2]}, delete=[5] if number == 2 else [])
        rows[number] = copied(bench)
        follower.step()
    bench.trainer.commit({"user": [7]}, weights=np.full((1, 4), np.nan, np.float32))
    follower.step()
    store_artefact(bench.store, contract.digest, "torch_script", b"no program", "", HOST)
    rollback(bench.store, 2, lambda: 9_000, signer=SIGNER)
    (bench.store.root / "rows.json").write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n")


def copied(bench) -> dict[str, dict[str, list[float]]]:
    return {
        table: {str(key): row.tolist() for key, row in sorted(rows.items())}
        for table, rows in bench.trainer.rows.items()
    }


def files(root: Path) -> dict[str, bytes]:
    found = (path for name in WRITTEN for path in [root / name, *(root / name).rglob("*")])
    return {str(path.relative_to(root)): path.read_bytes() for path in found if path.is_file() and path.name[0] != "."}


def test_the_publisher_still_writes_the_golden_bytes(local_bench):
    """A change here is a change of format: it needs a decision record, and the old bytes must stay readable."""
    written_with = (GOLDEN / "pyarrow.txt").read_text().strip()
    if written_with != pa.__version__:
        pytest.skip(f"Parquet names its writer: the golden bytes are of pyarrow {written_with}, not {pa.__version__}")
    write_golden(local_bench)
    written, golden = files(local_bench.store.root), files(GOLDEN)
    assert written.keys() == golden.keys()
    assert [name for name in golden if written[name] != golden[name]] == []


@pytest.mark.parametrize("golden", [GOLDEN, FIRST], ids=lambda path: path.name)
def test_golden_versions_still_load(make_bench, tmp_path: Path, golden: Path):
    shutil.copytree(golden, tmp_path / "model")
    bench = make_bench(LocalStore(tmp_path / "model"))
    expected = json.loads((golden / "rows.json").read_text())
    before, held = None, None
    assert list_versions(bench.store) == [1, 2, 3]
    for number in (1, 2, 3):
        version = read_version(bench.store, number, verifier=SIGNER.verifier)
        of_contract = [version.config, version.layout, *(asset.blob for asset in version.assets)]
        assert all(read_blob(bench.store, blob) for blob in (version.dense, *of_contract))
        rows = {
            table: {int(key): np.array(row, np.float32) for key, row in part.items()}
            for table, part in expected[str(number)].items()
        }
        assert bench.same(bench.held(version), rows)
        held = bench.held(version, before, held)
        assert bench.same(held, rows)
        before = version
    assert (read_pointer(bench.store).version, read_pin(bench.store).version) == (2, 2)
    assert bench.refusals(4) == ["not_finite"]


def test_golden_pointer_is_verified_where_it_was_signed():
    assert read_pointer(LocalStore(GOLDEN), verifier=SIGNER.verifier).version == 2
    with pytest.raises(VersionError) as refusal:
        read_pointer(LocalStore(FIRST), verifier=SIGNER.verifier)
    assert refusal.value.reason is Reason.UNSIGNED


def test_golden_versions_bring_their_files():
    now, then = (read_version(LocalStore(golden), 3) for golden in (GOLDEN, FIRST))
    assert [(asset.name, read_blob(LocalStore(GOLDEN), asset.blob)) for asset in now.assets] == [
        ("/data/words.txt", b"red\ngreen\n")
    ]
    assert now.described is not None and read_blob(LocalStore(GOLDEN), now.described)
    assert then.assets == () and then.described is None
