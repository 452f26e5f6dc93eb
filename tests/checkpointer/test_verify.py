"""`verify` names every broken thing in one run, and a lost end where anything says that there was more."""

import itertools
import threading
from pathlib import Path

import pytest

from checkpointer import CommitLog, RetentionOptions, Writer, collect_garbage, compact, verify
from checkpointer.commit import base_path, log_path
from checkpointer.errors import ChainError, Flaw
from checkpointer.evidence import Evidence
from checkpointer.local_store import LocalStore
from checkpointer.memory_store import MemoryStore


@pytest.fixture
def root(tmp_path, kit) -> Path:
    """A model directory with six commits, whose hint is the first one."""
    kit.filled(LocalStore(tmp_path / "model"))
    return tmp_path / "model"


def flaws(root: Path) -> set[tuple[Flaw, str]]:
    return {(finding.flaw, finding.path) for finding in verify(LocalStore(root)).findings}


def blob_of(root: Path, seq: int) -> str:
    return CommitLog(LocalStore(root)).get(seq).blobs[0].path


def link_to_nothing(path: Path) -> None:
    path.unlink()
    path.symlink_to("gone")


def test_a_broken_epoch_hides_no_other_flaw(root):
    compact(LocalStore(root), 4)
    blob = blob_of(root, 5)
    (root / "epoch.json").write_bytes(b"{}\n")
    link_to_nothing(root / log_path(2))
    (root / blob).write_bytes(b"")
    (root / base_path(4)).write_bytes(b"")
    assert flaws(root) == {
        (Flaw.ALTERED, "epoch.json"),
        (Flaw.MISSING, log_path(2)),
        (Flaw.TRUNCATED, blob),
        (Flaw.TRUNCATED, base_path(4)),
    }


def test_without_claims_a_wrong_parent_is_found_all_the_same(root, tmp_path, kit):
    kit.filled(LocalStore(tmp_path / "other"), seed=5)
    (root / log_path(4)).write_bytes((tmp_path / "other" / log_path(4)).read_bytes())
    (root / "epoch.json").write_bytes(b"")
    assert {(Flaw.TRUNCATED, "epoch.json"), (Flaw.FOREIGN, log_path(4)), (Flaw.FOREIGN, log_path(5))} <= flaws(root)


def test_a_log_without_claims_is_no_log(root):
    (root / "epoch.json").unlink()
    assert flaws(root) == {(Flaw.MISSING, "epoch.json")}


@pytest.mark.parametrize("seq", [1, 3, 6])
def test_a_manifest_that_is_a_broken_link_is_named(root, kit, seq):
    link_to_nothing(root / log_path(seq))
    assert (Flaw.MISSING, log_path(seq)) in flaws(root)
    with pytest.raises(ChainError, match="missing"):
        CommitLog(LocalStore(root)).restore()
    if seq == 6:
        with pytest.raises(ChainError, match="it is the newest: restore it, or delete it"):
            Writer.open(LocalStore(root), kit.options("later"))


@pytest.mark.parametrize("broken", ["manifest", "blob", "base", "epoch"])
def test_what_the_disk_does_not_give_is_named_and_the_rest_is_read(root, broken):
    compact(LocalStore(root), 4)
    paths = {"manifest": log_path(3), "blob": blob_of(root, 3), "base": base_path(4), "epoch": "epoch.json"}
    path = root / paths[broken]
    path.unlink()
    path.symlink_to(path.name)  # a loop: reading it fails, as a bad sector does
    link_to_nothing(root / log_path(5))
    found = verify(LocalStore(root)).findings
    assert any(one.flaw is Flaw.UNREADABLE and paths[broken] in f"{one.path} {one.detail}" for one in found)
    assert Flaw.MISSING in {one.flaw for one in found}


def test_all_numbers_that_are_missing_are_told(root):
    for seq in (3, 4):
        (root / log_path(seq)).unlink()
    found = verify(LocalStore(root)).findings
    assert [(one.flaw, one.path) for one in found] == [(Flaw.MISSING, log_path(3))] and "up to 4" in found[0].detail


def lose_two(root: Path) -> None:
    for seq in (5, 6):
        (root / log_path(seq)).unlink()


def test_blobs_staged_behind_a_lost_end_tell_of_it(root):
    lose_two(root)
    report = verify(LocalStore(root))
    assert [(one.flaw, one.path) for one in report.findings] == [(Flaw.MISSING, log_path(5))]
    assert "was staged after it" in report.findings[0].detail and report.staged == 6


def test_one_commit_that_is_only_staged_is_no_flaw_and_is_told(root):
    (root / log_path(6)).unlink()
    report = verify(LocalStore(root))
    assert report.sound and report.staged == 6


def test_after_a_clean_end_the_loss_of_the_last_commit_is_known(tmp_path, kit):
    trainer = kit.filled(LocalStore(tmp_path))
    trainer.writer.close()
    assert verify(LocalStore(tmp_path)).sound
    (tmp_path / log_path(6)).unlink()
    assert flaws(tmp_path) == {(Flaw.MISSING, log_path(6))}


def remove_blobs(root: Path, *seqs: int) -> None:
    for path in [path for seq in seqs for path in (root / "log/blobs").rglob(f"{seq:020d}-*")]:
        path.unlink()


def test_a_version_made_of_a_lost_commit_tells_of_it(root):
    LocalStore(root).put_if_absent(f"versions/{6:020d}/manifest.json", b"{}")
    (root / log_path(6)).unlink()
    assert flaws(root) == {(Flaw.MISSING, log_path(6))}


def test_a_base_of_a_lost_commit_tells_of_it(root):
    compact(LocalStore(root), 6)
    (root / log_path(6)).unlink()
    assert flaws(root) == {(Flaw.MISSING, log_path(6))}


def test_a_claim_made_after_a_lost_commit_tells_of_it(root, kit):
    Writer.open(LocalStore(root), kit.options("later"))
    (root / log_path(6)).unlink()
    (root / "log/_head").unlink()
    remove_blobs(root, 6)
    assert flaws(root) == {(Flaw.MISSING, log_path(6))}


def test_a_caller_may_know_of_a_lost_commit(root):
    report = verify(LocalStore(root), [Evidence(seq=9, witness="current.json serves it")])
    assert [(one.path, one.detail) for one in report.findings] == [(log_path(9), "current.json serves it")]


def test_a_hint_at_another_commit_is_named(root, tmp_path, kit):
    kit.filled(LocalStore(tmp_path / "other"), seed=5)
    (root / "log/_head").write_bytes((tmp_path / "other" / "log/_head").read_bytes())
    assert flaws(root) == {(Flaw.FOREIGN, log_path(1))}


def test_a_trainer_does_not_go_on_where_commits_were_lost(root, kit):
    Writer.open(LocalStore(root), kit.options("later"))  # its hint is the sixth
    (root / log_path(6)).unlink()
    before = (root / "epoch.json").read_bytes()
    for action in (
        lambda: Writer.open(LocalStore(root), kit.options("last")),
        lambda: CommitLog(LocalStore(root)).restore(),
    ):
        with pytest.raises(ChainError, match="delete that file to accept the loss"):
            action()
    assert (root / "epoch.json").read_bytes() == before
    (root / "log/_head").unlink()
    assert CommitLog(LocalStore(root)).restore().commit.seq == 5


class Interrupted:
    """A store that does something else before its `nth` call."""

    def __init__(self, store, nth, action):
        self._store, self._left, self._action = store, nth, action
        self._lock = threading.Lock()
        self.url = store.url

    def __getattr__(self, name):
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self._action()
        return getattr(self._store, name)

    @property
    def reached(self):
        return self._left <= 0


def test_retention_that_goes_on_meanwhile_is_no_damage(kit):
    """At whatever moment: bases and commits that were there when verify began are removed behind its back."""

    def retain():
        compact(store, 11)
        collect_garbage(store, RetentionOptions(keep_bases=1, keep_log_ms=0), now_ms=1 << 50)

    for nth in itertools.count(1):
        store = MemoryStore()
        trainer = kit.filled(store, commits=5)
        compact(store, 5)
        collect_garbage(store, RetentionOptions(keep_bases=1, keep_log_ms=0), now_ms=1 << 50)
        for step in range(6):
            trainer.commit([kit.rows(range(step, step + 5), step)])
        compact(store, 8)
        watched = Interrupted(store, nth, retain)
        assert verify(watched).findings == ()
        if not watched.reached:
            break
    assert nth > 30
