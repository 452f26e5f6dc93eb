"""FORMAT.md and the golden log: what is written down and what was written once stays readable."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from checkpointer import CommitLog, compact, logical_digest, verify
from checkpointer.bases import base_from_bytes, base_path
from checkpointer.canonical import encode
from checkpointer.chain import HINT_PATH, read_hint
from checkpointer.commit import Kind, from_bytes, log_path, to_bytes
from checkpointer.epoch import EPOCH_PATH, Standing, read_claims
from checkpointer.faults import POINTS
from checkpointer.local_store import LocalStore
from checkpointer.memory_store import MemoryStore

ROOT = Path(__file__).parents[2]
FORMAT = (ROOT / "checkpointer/FORMAT.md").read_text(encoding="utf-8")
GOLDEN = ROOT / "tests/golden/checkpointer/format-1"
EXAMPLES = dict(re.findall(r"```json (\w+)\n(.*?)```", FORMAT, re.DOTALL))


def example(name: str) -> bytes:
    """An example, laid out for the eye in the document, in its canonical form."""
    return encode(json.loads(EXAMPLES[name]))


def test_every_example_has_a_test():
    assert set(EXAMPLES) == {"manifest", "head", "epoch", "base"}
    assert FORMAT.count("```json") == len(EXAMPLES)


def test_the_manifest_example_is_read_and_written_back():
    commit = from_bytes(log_path(42), example("manifest"))
    assert (commit.seq, commit.parent.seq, commit.kind, commit.tables["user_id/zch"].put) == (42, 41, Kind.DELTA, 2)
    assert to_bytes(commit) == (example("manifest"), commit.digest)


def test_every_field_of_the_manifest_is_described():
    table = FORMAT.split("## 4.")[0]
    for field in json.loads(EXAMPLES["manifest"]):
        assert f"`{field}`" in table, field


def test_the_base_example_is_read():
    base = base_from_bytes(base_path(42), example("base"))
    assert (base.seq, base.logical) == (42, "f" * 64)


def test_the_hint_and_epoch_examples_are_read():
    store = MemoryStore()
    store.overwrite(HINT_PATH, example("head"))
    store.overwrite(EPOCH_PATH, example("epoch"))
    assert read_hint(store).seq == 42
    assert [read_claims(store).judge(seq, 2) for seq in (40, 41, 42)] == [
        Standing.COUNTS,
        Standing.COUNTS,
        Standing.VOID,
    ]


def test_the_writer_still_writes_the_golden_bytes(kit, tmp_path):
    """A change here is a change of format: it needs a new number, a decision record and another golden log."""
    written_with = (GOLDEN / "pyarrow.txt").read_text().strip()
    if written_with != pa.__version__:
        pytest.skip(f"Parquet names its writer: the golden log is of pyarrow {written_with}, here is {pa.__version__}")
    write_golden(kit, tmp_path)
    for path in sorted(GOLDEN.rglob("*")):
        if path.is_file() and path.suffix != ".txt":
            assert (tmp_path / path.relative_to(GOLDEN)).read_bytes() == path.read_bytes(), path


def test_the_golden_log_still_reads():
    store = LocalStore(GOLDEN)
    assert verify(store).sound
    state = CommitLog(store).restore()
    expected = (GOLDEN / "logical_digest.txt").read_text().strip()
    assert logical_digest(state.tables, state.dense, state.stream, state.commit.step) == expected


def write_golden(kit, root):
    """The commits of the golden log; no test writes them where it lies."""
    store = LocalStore(root)
    trainer = kit.filled(store)
    compact(store, 4)
    trainer.commit([kit.rows([7], 7, deleted=[8]), kit.rows([3], 1, table="country", kind="direct")], kept=True)
    return store


@pytest.mark.parametrize("point", POINTS)
def test_fault_points_have_plain_names(point):
    assert re.fullmatch(r"[a-z]+\.[a-z]+_[a-z]+", point)
