"""Every commit becomes a version that a replica can load, from nothing and from any version before."""

import json

import numpy as np
import pytest
from safetensors.numpy import load

from checkpointer import CommitLog, Kind
from checkpointer.commit import Link, log_path
from checkpointer.compact import compact
from checkpointer.encoding import Encoding, decode, encode
from checkpointer.errors import NotFoundError
from checkpointer.memory_store import MemoryStore
from checkpointer.retention import RetentionOptions, collect_garbage
from publisher.errors import LogReplacedError, PublisherBusyError
from publisher.manifest import POINTER
from publisher.versions import list_versions, read_blob, read_pointer, read_version


def test_nothing_is_published_before_the_first_commit(bench):
    assert bench.publisher().step() is False
    assert read_pointer(bench.store) is None


def test_first_commit_becomes_a_base_and_the_next_a_delta(bench):
    bench.trainer.base()
    follower = bench.publish()
    assert bench.current().version == 1 and bench.current().deltas == ()
    bench.trainer.commit({"user": [5, 12], "item": [2]}, delete=[9])
    assert follower.step()
    version = bench.current()
    assert (version.version, version.previous, version.base.seq) == (2, 1, 1)
    assert [(delta.after, delta.seq, delta.rows) for delta in version.deltas] == [(1, 2, 4)]
    assert bench.same(bench.held(version), bench.trainer.rows)


def test_version_carries_what_the_commit_says(bench):
    commit = bench.trainer.base()
    bench.publish()
    version = bench.current()
    assert (version.commit, version.chain, version.step) == (commit.digest, commit.chain, commit.step)
    assert (version.broker_time_ms, version.watermark_ms) == (commit.broker_time_ms, 10)
    assert version.metrics == {"auc": 0.7, "auc_rows": 20_000.0}
    assert read_blob(bench.store, version.config) == bench.contract.config


def test_dense_is_stripped_to_what_is_served(bench):
    commit = bench.trainer.base()
    bench.publish()
    served = load(read_blob(bench.store, bench.current().dense))
    assert list(served) == ["w"]
    assert np.array_equal(served["w"], CommitLog(bench.store).dense(commit)["parameter/w"])


def test_moving_average_is_served_where_training_keeps_one(bench):
    average = np.full((7, 1), 0.25, np.float32)
    bench.trainer.commit({"item": range(bench.items)}, kind=Kind.BASE, reset=True, dense={"optimizer/ema/w": average})
    bench.publish()
    assert np.array_equal(load(read_blob(bench.store, bench.current().dense))["w"], average)


def test_stream_ranges_join_from_version_to_version(bench):
    bench.trainer.base()
    follower = bench.publish()
    bench.trainer.commit({"user": [1]})
    follower.step()
    (part,) = bench.current().stream
    assert (part.start_offset, part.start_row, part.end_offset, part.end_row) == (10, 2, 20, 2)
    (first,) = read_version(bench.store, 1).stream
    assert (first.start_offset, first.end_offset) == (-1, 10)


@pytest.mark.parametrize("seed", range(3))
def test_base_and_deltas_equal_the_full_state_from_every_version(bench, seed):
    bench.trainer.base()
    follower = bench.publisher(rebase_after_deltas=4)
    random = np.random.default_rng(seed)
    states = {}
    for _ in range(12):
        for _ in range(random.integers(1, 4)):
            put = {"user": random.choice(30, 5, replace=False), "item": random.choice(bench.items, 2, replace=False)}
            gone = [key for key in random.choice(30, 4, replace=False).tolist() if key not in put["user"]]
            bench.trainer.commit(put, delete=gone)
        while follower.step():
            pass
        version = bench.current()
        rows = {name: dict(table) for name, table in bench.trainer.rows.items()}
        assert bench.same(bench.held(version), rows)
        for earlier, held in states.values():
            assert bench.same(bench.held(version, earlier, held), rows)
        states[version.version] = version, rows


def test_publisher_that_is_behind_merges_commits_into_one_delta(bench):
    bench.trainer.base()
    bench.publish()
    for _ in range(5):
        bench.trainer.commit({"user": [1, 2], "item": [3]}, delete=[5])
    follower = bench.publisher()
    assert follower.step() and not follower.step()
    version = bench.current()
    assert [(delta.after, delta.seq, delta.rows) for delta in version.deltas] == [(1, 6, 4)]
    assert bench.same(bench.held(version), bench.trainer.rows)


def test_publisher_far_behind_publishes_in_portions(bench):
    bench.trainer.base()
    bench.publish()
    for _ in range(7):
        bench.trainer.commit({"user": [1]})
    bench.publish(max_commits_at_once=3)
    assert [delta.seq for delta in bench.current().deltas] == [4, 7, 8]


def test_publisher_beyond_its_memory_starts_from_a_base(bench):
    bench.trainer.base()
    bench.publish()
    bench.trainer.commit({"user": range(100)})
    bench.publish(max_pending_bytes=1000)
    version = bench.current()
    assert version.base.seq == 2 and version.deltas == ()
    assert bench.same(bench.held(version), bench.trainer.rows)


def test_restart_republishes_everything_since_the_last_version(bench):
    bench.trainer.base()
    bench.publish()
    bench.trainer.commit({"user": [1]})
    bench.trainer.commit({"user": [2]})
    bench.publish()
    bench.trainer.commit({"user": [3]})
    bench.publish()
    version = bench.current()
    assert [(delta.after, delta.seq) for delta in version.deltas] == [(1, 3), (3, 4)]
    assert bench.same(bench.held(version), bench.trainer.rows)


def test_restart_points_at_a_version_whose_swap_was_lost(bench):
    bench.trainer.base()
    bench.publish()
    bench.store.delete(POINTER)
    assert bench.publisher().step() is False
    assert bench.current().version == 1


def test_commits_that_retention_removed_are_replaced_by_a_base(bench):
    bench.trainer.base()
    bench.publish()
    for _ in range(3):
        bench.trainer.commit({"user": [1, 4]})
    compact(bench.store)
    collect_garbage(bench.store, RetentionOptions(keep_bases=1, keep_log_ms=0), now_ms=10_000)
    with pytest.raises(NotFoundError):
        bench.store.get(log_path(2))
    bench.publish()
    version = bench.current()
    assert version.base.seq == 4 and bench.same(bench.held(version), bench.trainer.rows)


def test_log_that_was_replaced_is_refused(bench, make_bench):
    bench.trainer.base()
    follower = bench.publish()
    for _ in range(3):
        bench.trainer.commit({"user": [1]})
        follower.step()
    fresh = make_bench(MemoryStore())
    fresh.trainer.base()
    for folder in ("versions", *bench.store.folders("versions")):
        for entry in bench.store.list(folder):
            fresh.store.put_if_absent(entry.path, bench.store.get(entry.path))
    follower = fresh.publisher()
    with pytest.raises(LogReplacedError, match="version 4 is newer than the newest commit, 1"):
        for _ in range(300):
            follower.step()


def test_new_encoding_starts_a_new_series(bench):
    bench.trainer.base()
    bench.publish()
    bench.trainer.commit({"user": [1]})
    bench.publish(encoding="int8")
    version = bench.current()
    assert version.encoding == "int8" and version.base.seq == 2
    assert version.series != read_version(bench.store, 1).series
    assert version.plan(read_version(bench.store, 1)).base is not None


@pytest.mark.parametrize("encoding", list(Encoding))
def test_rows_are_served_as_encoded(bench, encoding):
    bench.trainer.base()
    bench.publish(encoding=encoding.value)
    bench.trainer.commit({"user": [1, 7]})
    bench.publish(encoding=encoding.value)
    expected = {
        name: {key: decode(encode(row[None], encoding), encoding, len(row))[0] for key, row in rows.items()}
        for name, rows in bench.trainer.rows.items()
    }
    assert bench.same(bench.held(bench.current()), expected)


def test_reverted_chain_starts_a_new_series(bench):
    first = bench.trainer.base()
    follower = bench.publish()
    bench.trainer.commit({"user": [1]})
    follower.step()
    bench.trainer.writer.start_chain()
    bench.trainer.commit(
        {"user": [2], "item": range(bench.items)},
        kind=Kind.BASE,
        reset=True,
        forked=Link(seq=1, digest=first.digest),
    )
    follower.step()
    version = bench.current()
    assert version.base.seq == 3 and version.series != read_version(bench.store, 2).series
    assert bench.same(bench.held(version), bench.trainer.rows)


def test_reset_in_a_delta_drops_earlier_rows(bench):
    bench.trainer.base()
    follower = bench.publish()
    bench.trainer.commit({"user": [40]}, reset=True)
    follower.step()
    assert bench.current().deltas[-1].resets == ("user", "item")
    assert bench.same(bench.held(bench.current()), bench.trainer.rows)


def test_zero_row_is_not_a_deletion(bench):
    bench.trainer.base()
    follower = bench.publish()
    bench.trainer.commit({"user": [1]}, weights=np.zeros((1, 4), np.float32))
    follower.step()
    assert bench.held(bench.current())["user"][1].tolist() == [0.0] * 4


def test_replicas_are_told_once_per_swap(bench):
    bench.trainer.base()
    follower = bench.publish()
    bench.trainer.commit({"user": [1]})
    follower.step()
    follower.step()
    assert [told.version for told in bench.told.notifications] == [1, 2]
    assert bench.told.notifications[-1].digest == read_pointer(bench.store).digest


def test_two_publishers_with_the_same_configuration_agree(bench):
    bench.trainer.base()
    one, other = bench.publisher(), bench.publisher()
    for _ in range(4):
        one.step()
        bench.trainer.commit({"user": [1, 2]})
        other.step()
        one.step()
    other.step()
    assert list_versions(bench.store) == [1, 2, 3, 4, 5]
    assert bench.same(bench.held(bench.current()), bench.trainer.rows)


def test_two_publishers_with_different_configurations_are_told_apart(bench):
    bench.trainer.base()
    one, other = bench.publisher(), bench.publisher(encoding="int8")
    one.step()
    with pytest.raises(PublisherBusyError, match="another configuration"):
        other.step()


def test_manifest_is_canonical_and_holds_no_file_twice(bench):
    bench.trainer.base()
    follower = bench.publish()
    for _ in range(3):
        bench.trainer.commit({"user": [1]})
        follower.step()
    payload = json.loads(bench.store.get(bench.current().path))
    assert len({delta["blobs"][0]["path"] for delta in payload["deltas"]}) == 3
