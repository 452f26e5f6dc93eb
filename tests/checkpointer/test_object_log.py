"""The whole log in object stores: the client's memory, and a server that speaks S3."""

import pytest
from obstore.store import MemoryStore as ObjectMemoryStore

from checkpointer import CommitLog, RetentionOptions, Writer, collect_garbage, compact, revert, stage, verify
from checkpointer.commit import log_path
from checkpointer.errors import CommitUnknownError, FencedError, NotCommittedError, OutcomeUnknownError, StoreError
from checkpointer.object_store import ObjectStore
from checkpointer.open_store import StoreOptions, open_store
from tests.s3_server import s3_server


@pytest.fixture(scope="module")
def s3():
    """The endpoint of a server that speaks S3, with the bucket `models`."""
    with s3_server("models") as endpoint:
        yield endpoint


def open_s3(endpoint, path):
    (path / "credentials").write_text("key\nsecret\n")
    options = StoreOptions(endpoint=endpoint, credentials_file=str(path / "credentials"), allow_http=True)
    return open_store(f"s3://models/runs/{path.name}", options)


@pytest.fixture(params=["memory", "s3"])
def objects(request, tmp_path):
    if request.param == "memory":
        return ObjectStore(ObjectMemoryStore(), "memory-objects://")
    return open_s3(request.getfixturevalue("s3"), tmp_path)


def test_a_log_lives_its_life_in_an_object_store(objects, kit):
    trainer = kit.filled(objects, commits=8)
    for seq in (3, 6):
        compact(objects, seq)
    collected = collect_garbage(objects, RetentionOptions(keep_bases=1, keep_log_ms=0), now_ms=1 << 50)
    assert (collected.commits, collected.bases) == (5, 1)
    for seq in (6, 7, 8):
        trainer.check(CommitLog(objects).restore(seq))
    assert verify(objects).sound
    commit = revert(objects, 7, kit.options("person"))
    assert (commit.seq, kit.as_state(CommitLog(objects).restore().tables)) == (9, trainer.history[7])
    assert verify(objects).sound


def test_an_older_producer_is_fenced_in_an_object_store(objects, kit):
    old = kit.filled(objects)
    new = kit.toy(objects, kit.options("new"))
    new.state, new.step = dict(old.state), old.step
    with pytest.raises(FencedError):
        old.commit([kit.rows([1], 99)])
    new.commit([kit.rows([1], 7)])
    new.check(CommitLog(objects).restore())
    assert verify(objects).void == (7,)


def test_an_endpoint_that_goes_away_is_an_error_and_not_a_commit(tmp_path, kit):
    """The client gives up; what it cannot know is unknown, what needs a manifest is not committed."""
    options = StoreOptions(endpoint="http://127.0.0.1:9", allow_http=True, credentials_file=str(tmp_path / "c"))
    (tmp_path / "c").write_text("key\nsecret\n")
    objects = open_store("s3://models/none", options)
    with pytest.raises(StoreError, match="reading epoch.json in s3://models/none failed|listing"):
        Writer.open(objects, kit.options())


def test_a_lost_answer_is_settled(kit):
    class Lossy(ObjectStore):
        lose = False

        def put_if_absent(self, path, data, *, point=""):
            super().put_if_absent(path, data, point=point)
            if self.lose and path.endswith(".json"):
                raise OutcomeUnknownError("connection reset")

    objects = Lossy(ObjectMemoryStore(), "memory-objects://")
    trainer = kit.filled(objects)
    objects.lose = True
    with pytest.raises(CommitUnknownError):
        trainer.commit([kit.rows([5], 9)])
    objects.lose = False
    trainer.step -= 1
    trainer.apply([kit.rows([5], 9)], trainer.writer.head.kind)
    assert trainer.commit([kit.rows([5, 6], 9)]).seq == 8
    trainer.check(CommitLog(objects).restore())


def test_a_repeated_put_meets_its_own_manifest(kit):
    """The client repeats a PUT whose answer was lost; the second meets the first and must not look like a rival."""

    class Repeating(ObjectStore):
        def put_if_absent(self, path, data, *, point=""):
            super().put_if_absent(path, data, point=point)
            if path.startswith("log/0"):
                super().put_if_absent(path, data, point=point)

    objects = Repeating(ObjectMemoryStore(), "memory-objects://")
    trainer = kit.filled(objects)
    assert trainer.writer.head.seq == 6 and verify(objects).sound


def test_foreign_content_under_a_blob_name_is_refused(objects, kit):
    trainer = kit.toy(objects)
    path = stage(objects, seq=1, rank=0, rows=[kit.rows([1], 1)])[0].path
    objects.overwrite(path, b"something else")
    with pytest.raises(NotCommittedError, match="is there with other content"):
        stage(objects, seq=1, rank=0, rows=[kit.rows([1], 1)])
    assert trainer.writer.next_seq == 1 and not [e for e in objects.list("log") if e.path == log_path(1)]
