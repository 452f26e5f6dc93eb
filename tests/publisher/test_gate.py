"""What the gate refuses is not served, and is judged again with what comes next."""

import json
from dataclasses import replace

import numpy as np
import pytest

from publisher.errors import PublisherError
from publisher.gate import GateOptions
from publisher.manifest import refusal_path
from publisher.options import PublishOptions
from publisher.pointer import rollback
from publisher.versions import list_versions, read_pointer

NAN_ROW = np.full((1, 4), np.nan, np.float32)


def test_row_that_is_not_finite_keeps_the_last_version(bench):
    bench.trainer.base()
    follower = bench.publish()
    bench.trainer.commit({"user": [5]}, weights=NAN_ROW)
    assert follower.step()
    assert read_pointer(bench.store).version == 1
    assert bench.refusals(2) == ["not_finite"]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_value_in_one_row_is_enough(bench, value):
    bench.trainer.base()
    follower = bench.publish()
    weights = bench.trainer.weights(50, 4)
    weights[31, 2] = value
    bench.trainer.commit({"user": range(50)}, weights=weights)
    follower.step()
    assert bench.refusals(2) == ["not_finite"]


def test_huge_but_finite_values_pass(bench):
    bench.trainer.base()
    follower = bench.publish()
    bench.trainer.commit({"user": [1]}, weights=np.full((1, 4), 3e38, np.float32))
    follower.step()
    assert bench.current().version == 2


def test_refused_rows_are_served_once_they_are_mended(bench):
    bench.trainer.base()
    follower = bench.publish()
    bench.trainer.commit({"user": [5]}, weights=NAN_ROW)
    follower.step()
    bench.trainer.commit({"user": [5, 1]})
    follower.step()
    version = bench.current()
    assert [(delta.after, delta.seq) for delta in version.deltas] == [(1, 3)]
    assert bench.same(bench.held(version), bench.trainer.rows)


def test_refused_rows_that_nobody_mends_keep_being_refused(bench):
    bench.trainer.base()
    follower = bench.publish()
    bench.trainer.commit({"user": [5]}, weights=NAN_ROW)
    follower.step()
    bench.trainer.commit({"user": [1]})
    follower.step()
    assert bench.refusals(3) == ["not_finite"]
    assert list_versions(bench.store) == [1]


def test_restart_judges_a_refused_commit_again(bench):
    bench.trainer.base()
    bench.publish()
    bench.trainer.commit({"user": [5]}, weights=NAN_ROW)
    bench.publish()
    bench.publish()
    assert read_pointer(bench.store).version == 1
    bench.trainer.commit({"user": [5]})
    bench.publish()
    assert bench.same(bench.held(bench.current()), bench.trainer.rows)


def test_dense_value_that_is_not_finite_is_refused(bench):
    bench.trainer.base()
    follower = bench.publish()
    bench.trainer.commit({"user": [5]}, dense={"parameter/w": np.array([[np.inf]], np.float32)})
    follower.step()
    assert bench.refusals(2) == ["not_finite"]


def test_optimizer_state_that_is_not_finite_is_not_the_gates_business(bench):
    bench.trainer.base()
    follower = bench.publish()
    bench.trainer.commit({"user": [5]}, dense={"optimizer/w": np.array([np.inf], np.float32)})
    follower.step()
    assert bench.current().version == 2


def test_first_commit_with_a_bad_row_is_refused_and_the_next_one_served(bench):
    bench.trainer.base()
    bench.trainer.commit({"user": [5]}, weights=NAN_ROW)
    follower = bench.publish()
    assert bench.refusals(2) == ["not_finite"] and read_pointer(bench.store) is None
    bench.trainer.commit({"user": [5]})
    follower.step()
    version = bench.current()
    assert version.base.seq == 3 and bench.same(bench.held(version), bench.trainer.rows)


def test_auc_that_falls_is_refused_until_it_recovers(bench):
    bench.trainer.base()
    follower = bench.publish()
    bench.trainer.commit({"user": [1]}, auc=0.64)
    follower.step()
    assert bench.refusals(2) == ["auc_drop"]
    bench.trainer.commit({"user": [2]}, auc=0.66)
    follower.step()
    assert bench.current().version == 3


def test_auc_is_compared_with_the_version_that_is_served(bench):
    bench.trainer.base()
    follower = bench.publish()
    bench.trainer.commit({"user": [1]}, auc=0.66)
    follower.step()
    rollback(bench.store, 1, lambda: 0)
    bench.trainer.commit({"user": [1]}, auc=0.64)
    follower.step()
    assert bench.refusals(3) == ["auc_drop"]


@pytest.mark.parametrize("rows", [9_999.0, 0.0])
def test_auc_of_few_rows_does_not_judge(bench, rows):
    bench.trainer.base()
    follower = bench.publish()
    bench.trainer.commit({"user": [1]}, auc=0.1, auc_rows=rows)
    follower.step()
    assert bench.current().version == 2


def test_row_cap_counts_net_rows(bench):
    gate = GateOptions(max_rows=3)
    bench.trainer.base()
    follower = bench.publish(gate=gate)
    bench.trainer.commit({"user": [1, 2]}, delete=[5])
    follower.step()
    assert bench.current().version == 2
    bench.trainer.commit({"user": [1, 2, 3, 4]})
    follower.step()
    assert bench.refusals(3) == ["too_many_rows"]


def test_row_cap_does_not_trip_over_a_pause(bench):
    bench.trainer.base()
    bench.publish()
    for number in range(5):
        bench.trainer.commit({"user": [10 * number, 10 * number + 1]})
    bench.publish(gate=GateOptions(max_rows=3))
    assert bench.current().version == 6
    assert bench.same(bench.held(bench.current()), bench.trainer.rows)


def test_commit_under_another_contract_is_refused(bench):
    bench.trainer.base()
    follower = bench.publish()
    bench.trainer.contract = "other"
    bench.trainer.features = "another"
    bench.trainer.commit({"user": [1]})
    follower.step()
    assert bench.refusals(2) == ["contract", "contract"]
    assert read_pointer(bench.store).version == 1


@pytest.mark.parametrize(
    ("note", "told"),
    [
        (b'{"user_id":{"hash":"farm"}}', "(feature 'user_id': hash was 'farm', now 'murmur')"),
        (b'["user_id"]', "was started for feed5eed: restart"),
        (b"{", "was started for feed5eed: restart"),
    ],
)
def test_commit_of_other_features_is_refused_by_what_differs(bench, note, told):
    contract = replace(bench.contract, described=b'[{"name":"user_id","hash":"murmur"}]')
    bench.trainer.base()
    follower = bench.publish(contract=contract)
    bench.trainer.features = "another"
    bench.store.put_if_absent("features/another.json", note)
    bench.trainer.commit({"user": [1]})
    follower.step()
    assert told in json.loads(bench.store.get(refusal_path(2)))["reasons"][0]["detail"]


def test_commit_with_rows_outside_the_contract_is_refused(bench):
    bench.trainer.base()
    narrow = replace(bench.contract, tables=bench.contract.tables[:1])
    bench.publish(contract=narrow)
    assert bench.refusals(1) == ["contract"]


def test_weights_that_the_encoding_cannot_hold_are_refused(bench):
    bench.trainer.base()
    follower = bench.publish(encoding="int8")
    bench.trainer.commit({"user": [1]}, weights=np.full((1, 4), 1e6, np.float32))
    follower.step()
    assert bench.refusals(2) == ["encoding"]
    bench.trainer.commit({"user": [1]})
    follower.step()
    assert bench.current().version == 3


def test_refusals_are_counted_by_reason(bench):
    bench.trainer.base()
    follower = bench.publish()
    bench.trainer.commit({"user": [5]}, weights=NAN_ROW, auc=0.1)
    follower.step()
    registry = bench.metrics.registry
    for reason in ("not_finite", "auc_drop"):
        assert registry.get_sample_value("headrace_publisher_refusals_total", {"reason": reason}) == 1.0
    assert registry.get_sample_value("headrace_publisher_lag_commits") == 1.0


def test_options_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="max_auc_drop"):
        GateOptions(max_auc_drop=0.0)
    with pytest.raises(PublisherError, match="keep_versions"):
        PublishOptions(keep_versions=1)
