"""Whatever happens to the files of a log, readers refuse it by name and never give a wrong state."""

import json
import shutil
from pathlib import Path

import pytest

from checkpointer import CommitLog, RetentionOptions, Writer, collect_garbage, compact, verify
from checkpointer.bases import base_path
from checkpointer.canonical import encode, seal, sha256
from checkpointer.commit import from_bytes, log_path
from checkpointer.errors import ChainError, Flaw
from checkpointer.local_store import LocalStore


@pytest.fixture
def root(tmp_path, kit) -> Path:
    """A model directory with six commits."""
    kit.filled(LocalStore(tmp_path / "model"))
    return tmp_path / "model"


def refusal(root: Path) -> ChainError:
    """What a restore of the newest commit says."""
    with pytest.raises(ChainError) as caught:
        list(CommitLog(LocalStore(root)).restore().tables)
    return caught.value


def flaws(root: Path) -> set[tuple[Flaw, str]]:
    """What verify finds."""
    return {(finding.flaw, finding.path) for finding in verify(LocalStore(root)).findings}


def blob_of(root: Path, seq: int) -> str:
    """The path of a commit's blob."""
    return CommitLog(LocalStore(root)).get(seq).blobs[0].path


def reseal(path: Path, **changes: object) -> None:
    """Change fields of a manifest and give it a fitting digest, as a careless or hostile writer would."""
    value = json.loads(path.read_bytes())
    value.pop("digest")
    path.write_bytes(seal({**value, **changes})[0])


def test_a_sound_log_has_no_findings(root):
    compact(LocalStore(root), 3)
    report = verify(LocalStore(root))
    assert report.sound and (report.first, report.last, report.commits, report.bases) == (1, 6, 6, 1)


def test_a_missing_commit_is_named(root):
    (root / log_path(4)).unlink()
    error = refusal(root)
    assert (error.flaw, error.path) == (Flaw.MISSING, log_path(4))
    assert (Flaw.MISSING, log_path(4)) in flaws(root)


def test_a_missing_blob_is_named(root):
    path = blob_of(root, 5)
    (root / path).unlink()
    assert (refusal(root).flaw, refusal(root).path) == (Flaw.MISSING, path)
    assert (Flaw.MISSING, path) in flaws(root)


def test_a_missing_first_base_is_named(root):
    (root / log_path(1)).unlink()
    assert refusal(root).flaw is Flaw.MISSING
    assert (Flaw.MISSING, log_path(1)) in flaws(root)


def test_a_duplicated_commit_is_named(root):
    shutil.copy(root / log_path(6), root / log_path(7))
    assert (refusal(root).flaw, refusal(root).path) == (Flaw.DUPLICATED, log_path(7))
    assert (Flaw.DUPLICATED, log_path(7)) in flaws(root)


def test_reordered_commits_are_named(root):
    fourth, fifth = (root / log_path(4)).read_bytes(), (root / log_path(5)).read_bytes()
    (root / log_path(4)).write_bytes(fifth)
    (root / log_path(5)).write_bytes(fourth)
    assert refusal(root).flaw is Flaw.REORDERED
    assert {(Flaw.REORDERED, log_path(4)), (Flaw.REORDERED, log_path(5))} <= flaws(root)


def test_exchanged_blobs_are_named(root):
    fourth, fifth = root / blob_of(root, 5), root / blob_of(root, 6)
    data = fourth.read_bytes()
    fourth.write_bytes(fifth.read_bytes())
    fifth.write_bytes(data)
    assert refusal(root).flaw in (Flaw.ALTERED, Flaw.TRUNCATED)


@pytest.mark.parametrize("cut", [1, 2, 30])
def test_a_truncated_manifest_is_named(root, cut):
    path = root / log_path(6)
    path.write_bytes(path.read_bytes()[:-cut])
    assert refusal(root).flaw is Flaw.TRUNCATED
    assert (Flaw.TRUNCATED, log_path(6)) in flaws(root)


def test_an_empty_manifest_is_named(root):
    (root / log_path(6)).write_bytes(b"")
    assert refusal(root).flaw is Flaw.TRUNCATED


def test_a_truncated_blob_is_named(root):
    path = root / blob_of(root, 5)
    path.write_bytes(path.read_bytes()[:-1])
    assert (Flaw.TRUNCATED, blob_of(root, 5)) in flaws(root)


def test_every_flipped_bit_of_a_manifest_is_refused(root):
    data = (root / log_path(6)).read_bytes()
    for position in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[position // 8] ^= 1 << (position % 8)
        with pytest.raises(ChainError):
            from_bytes(log_path(6), bytes(flipped))


def test_a_flipped_bit_of_a_blob_is_refused(root):
    path = root / blob_of(root, 6)
    data = path.read_bytes()
    for position in range(0, len(data) * 8, 61):
        flipped = bytearray(data)
        flipped[position // 8] ^= 1 << (position % 8)
        path.write_bytes(bytes(flipped))
        assert Flaw.ALTERED in {flaw for flaw, _ in flaws_of_commit(root, 6)}, position


def flaws_of_commit(root: Path, seq: int) -> set[tuple[Flaw, str]]:
    log = CommitLog(LocalStore(root))
    found: set[tuple[Flaw, str]] = set()
    commit = log.get(seq)
    for read in (lambda: list(log.rows(commit)), lambda: log.dense(commit), lambda: log.stream(commit)):
        try:
            read()
        except ChainError as error:
            found.add((error.flaw, error.path))
    return found


def test_a_commit_of_another_model_is_named(root, tmp_path, kit):
    other = kit.toy(LocalStore(tmp_path / "other"), kit.options("another"))
    for step in range(7):
        other.commit([kit.rows([step], step)])
    shutil.copy(tmp_path / "other" / log_path(7), root / log_path(7))
    assert (Flaw.FOREIGN, log_path(7)) in flaws(root)
    with pytest.raises(ChainError, match="foreign"):
        list(CommitLog(LocalStore(root)).commits())
    assert refusal(root).flaw is Flaw.FOREIGN


def test_a_log_whose_middle_is_of_another_model_is_named(root, tmp_path, kit):
    kit.filled(LocalStore(tmp_path / "other"), seed=5)
    shutil.copy(tmp_path / "other" / log_path(4), root / log_path(4))
    assert (refusal(root).flaw, refusal(root).path) == (Flaw.FOREIGN, log_path(4))


def test_a_base_of_another_model_is_named(root, tmp_path, kit):
    other = LocalStore(tmp_path / "other")
    kit.filled(other, seed=5)
    compact(other, 4)
    shutil.copytree(tmp_path / "other" / "bases", root / "bases")
    assert (refusal(root).flaw, refusal(root).path) == (Flaw.FOREIGN, base_path(4))
    assert (Flaw.FOREIGN, base_path(4)) in flaws(root)


def test_a_newer_format_is_named_before_anything_else(root):
    (root / log_path(6)).write_bytes(encode({"format": 2, "something": "unknown"}))
    error = refusal(root)
    assert error.flaw is Flaw.NEWER_FORMAT and "update headrace" in str(error)


def test_a_mixed_world_is_named(root):
    reseal(root / log_path(6), world=2)
    assert refusal(root).flaw is Flaw.WORLD


def test_wrong_row_counts_are_named(root):
    reseal(root / log_path(6), tables={"user/zch": {"put": 1, "deleted": 0, "reset": False}})
    assert refusal(root).flaw is Flaw.MALFORMED


@pytest.mark.parametrize("field", ["seq", "parent", "chain", "epoch", "kind", "blobs", "figures", "tables", "kept"])
def test_a_field_of_the_wrong_type_is_named(root, field):
    for value in (None, "x", -1, {"a": "b"}, ["a"]):
        path = root / log_path(6)
        before = path.read_bytes()
        reseal(path, **{field: value})
        if field == "chain" and value == "x":
            assert refusal(root).flaw is Flaw.FOREIGN
        else:
            assert refusal(root).flaw in (Flaw.MALFORMED, Flaw.REORDERED), value
        path.write_bytes(before)


def test_a_rewritten_parent_is_refused(root):
    reseal(root / log_path(5), step=1)
    error = refusal(root)
    assert error.flaw is Flaw.FOREIGN and error.path == log_path(5)


def test_a_base_with_altered_rows_is_found_by_its_logical_digest(root):
    """Digests of bytes can be made to fit by whoever rewrites them; the logical digest tells all the same."""
    store = LocalStore(root)
    base = compact(store, 6)
    first = base.blobs[0]
    data = bytearray((root / first.path).read_bytes())
    part = next(part for part in first.parts if part.role == "dense")
    data[part.offset + part.bytes - 1] ^= 1
    (root / first.path).write_bytes(bytes(data))
    value = json.loads((root / base_path(6)).read_bytes())
    value.pop("digest")
    for said in value["blobs"][0]["parts"]:
        said["sha256"] = sha256(bytes(data[said["offset"] : said["offset"] + said["bytes"]]))
    (root / base_path(6)).write_bytes(seal(value)[0])
    assert (Flaw.ALTERED, base_path(6)) in flaws(root)


def test_verify_names_all_flaws_at_once(root):
    (root / log_path(3)).unlink()
    blob = blob_of(root, 6)
    (root / blob).write_bytes(b"")
    found = flaws(root)
    assert {(Flaw.MISSING, log_path(3)), (Flaw.TRUNCATED, blob)} <= found


def test_a_writer_does_not_open_a_log_with_a_damaged_end(root, kit):
    path = root / log_path(6)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ChainError, match="truncated"):
        Writer.open(LocalStore(root), kit.options("later"))


def test_followers_are_told_when_retention_went_past_them(root):
    store = LocalStore(root)
    compact(store, 4)
    collect_garbage(store, RetentionOptions(keep_bases=1, keep_log_ms=0), now_ms=1 << 50)
    assert [commit.seq for commit in CommitLog(store).commits(after=4)] == [5, 6]
    for after in (0, 2):
        with pytest.raises(ChainError, match="restore") as caught:
            list(CommitLog(store).commits(after=after))
        assert caught.value.flaw is Flaw.MISSING


def test_a_log_that_lost_its_start_or_its_base_is_named(root):
    store = LocalStore(root)
    compact(store, 4)
    collect_garbage(store, RetentionOptions(keep_bases=1, keep_log_ms=0), now_ms=1 << 50)
    (root / log_path(4)).rename(root / "kept")
    assert (Flaw.MISSING, log_path(4)) in flaws(root)
    (root / "kept").rename(root / log_path(4))
    assert flaws(root) == set()
    (root / base_path(4)).unlink()
    assert (Flaw.MISSING, base_path(4)) in flaws(root)
    assert refusal(root).flaw is Flaw.MISSING
