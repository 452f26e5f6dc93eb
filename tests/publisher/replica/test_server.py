"""The HTTP server in this process: statuses, limits, tokens, headers and figures."""

import gzip
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from checkpointer.memory_store import MemoryStore
from publisher.export.host import this_host
from publisher.replica.follower import Follower
from publisher.replica.metrics import ReplicaMetrics
from publisher.replica.model import Side
from publisher.replica.options import ServeOptions
from publisher.replica.request import InputColumn
from publisher.replica.serving import Freshness, Predictions, Servable, TensorSpec
from publisher.replica.switch import Switch
from tests.publisher.replica.conftest import Change, VersionWriter
from tests.publisher.replica.running import Reply, Running, running

GOOD = {
    "inputs": [
        {"name": "user_id", "datatype": "INT64", "shape": [1], "data": [1]},
        {"name": "item_id", "datatype": "INT64", "shape": [2], "data": [3, 4]},
        {"name": "tags", "datatype": "BYTES", "shape": [2], "data": ["1", "2"]},
        {"name": "price", "datatype": "FP32", "shape": [2], "data": [1.0, 2.5]},
    ]
}


@pytest.fixture
def side(store: MemoryStore, writer: VersionWriter) -> Switch[Side]:
    switch: Switch[Side] = Switch()
    follower = Follower(
        store,
        switch,
        ReplicaMetrics(),
        host=this_host(),
        verifier=None,
        clock=lambda: 0.0,
        drain_s=1.0,
    )
    writer.publish(7, {"user_id_emb": Change(put={1: 1.0})})
    follower.poll()
    return switch


@pytest.fixture
def served(side: Switch[Side]) -> Iterator[Running]:
    with running(side, ServeOptions(max_request_bytes=20_000)) as server:
        yield server


def test_answer_names_the_version_in_body_and_header(served: Running) -> None:
    reply = served.infer({**GOOD, "id": "q"})
    assert reply.status == 200
    assert reply.headers["headrace-version"] == "7"
    body = json.loads(reply.text)
    assert (body["id"], body["model_name"], body["model_version"]) == ("q", "headrace", "7")
    assert {output["name"]: output["shape"] for output in body["outputs"]} == {"rows": [2, 13], "number": [2, 1]}


def test_answer_at_a_version_is_that_version_or_none(served: Running) -> None:
    assert served.ask("POST", "/v2/models/headrace/versions/7/infer", GOOD).status == 200
    reply = served.ask("POST", "/v2/models/headrace/versions/6/infer", GOOD)
    assert (reply.status, reply.error) == (404, "version '6' is not served; the replica serves version 7")
    assert served.ask("GET", "/v2/models/headrace/versions/6").status == 404
    assert served.ask("GET", "/v2/models/headrace/versions/7/ready").status == 200


def with_input(which: str, **fields: object) -> dict[str, object]:
    return {"inputs": [{**entry, **fields} if entry["name"] == which else entry for entry in GOOD["inputs"]]}


def without_input(name: str) -> dict[str, object]:
    return {"inputs": [entry for entry in GOOD["inputs"] if entry["name"] != name]}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (without_input("price"), "input 'price' is missing; the model reads user_id, item_id, tags, price"),
        (with_input("price", name="prise"), "input 'prise' is unknown; did you mean 'price'?"),
        (with_input("price", shape=[0], data=[]), "input 'price' is empty, and other inputs have 2 rows"),
        ({"inputs": []}, "input 'user_id' is missing"),
        (with_input("item_id", datatype="FP32", data=[1.0, float("inf")]), "(read by feature 'item_id')"),
        (with_input("price", data=[1.0, float("nan")]), "row 1: "),
        (with_input("price", datatype="BYTES", data=["1", "cheap"]), "row 1: "),
        ({**GOOD, "outputs": [{"name": "prob"}]}, "there is no output 'prob'; the model gives rows, number"),
        (b"{not json", "the request is not JSON"),
    ],
)
def test_bad_request_says_which_input_and_names_the_version(served: Running, body: object, message: str) -> None:
    reply = served.infer(body)
    assert (reply.status, reply.headers["headrace-version"]) == (400, "7")
    assert message in reply.error
    assert served.infer(GOOD).status == 200


def test_bad_value_names_its_column(served: Running) -> None:
    assert "price" in served.infer(with_input("price", data=[1.0, float("inf")])).error


def test_body_over_the_limit_is_refused(served: Running) -> None:
    large = with_input("item_id", data=[1] * 10_000, shape=[10_000])
    reply = served.infer(large)
    assert reply.status == 413
    assert "larger than 20000 bytes" in reply.error


def test_compressed_body_over_the_limit_is_refused(served: Running) -> None:
    bomb = gzip.compress(b" " * 5_000_000)
    assert len(bomb) < 20_000
    assert served.infer(bomb, Content_Encoding="gzip").status == 413
    good = gzip.compress(json.dumps(GOOD).encode())
    assert served.infer(good, Content_Encoding="gzip").status == 200


def test_body_that_is_not_compressed_as_it_says_is_refused(served: Running) -> None:
    assert served.infer(b"not gzip", Content_Encoding="gzip").status == 400
    assert served.infer(GOOD).status == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("POST", "/v2/models/other/infer", 404, "there is no model 'other'; this replica serves 'headrace'"),
        ("GET", "/v2/models/other", 404, "there is no model 'other'"),
        ("GET", "/v3", 404, "there is no '/v3'; see /v2"),
        ("GET", "/v2/models/headrace/infer", 405, "'GET' is not allowed on '/v2/models/headrace/infer'"),
    ],
)
def test_wrong_address_is_an_error_document(served: Running, method: str, path: str, status: int, message: str) -> None:
    reply = served.ask(method, path)
    assert (reply.status, reply.headers["Content-Type"].split(";")[0]) == (status, "application/json")
    assert message in reply.error


def test_replica_without_a_version_is_live_but_not_ready() -> None:
    with running(Switch[Side](), ServeOptions()) as server:
        assert server.ask("GET", "/v2/health/live").status == 200
        for method, path in (
            ("GET", "/v2/health/ready"),
            ("GET", "/v2/models/headrace"),
            ("POST", "/v2/models/headrace/infer"),
        ):
            reply = server.ask(method, path, GOOD)
            assert (reply.status, "no verified version" in reply.error) == (503, True)
            assert "headrace-version" not in reply.headers
        index = json.loads(server.ask("POST", "/v2/repository/index").text)
        assert index[0]["state"] == "UNAVAILABLE"
        assert "headrace_replica_ready 0.0" in server.ask("GET", "/metrics").text


def test_draining_replica_answers_but_is_not_ready(served: Running) -> None:
    drained = served.call(served.server.drain(limit_s=5.0))
    ready = served.ask("GET", "/v2/health/ready")
    assert (ready.status, ready.headers["Connection"]) == (503, "close")
    assert served.ask("GET", "/v2/health/live").status == 200
    assert served.infer(GOOD).status == 200
    assert not drained.done()
    drained.result(2.0)


@pytest.mark.parametrize(("unready", "status"), [(False, 200), (True, 503)])
def test_staleness_is_an_alert_and_takes_out_of_service_only_on_request(
    side: Switch[Side], unready: bool, status: int
) -> None:
    options = ServeOptions(staleness_alert_s=5.0, unready_when_stale=unready)
    with running(side, options, now_s=1.7e9 + 9.0) as server:
        assert server.ask("GET", "/v2/health/ready").status == status
        assert server.infer(GOOD).status == 200
        text = server.ask("GET", "/metrics").text
        assert 'headrace_replica_staleness_seconds{basis="broker"} 9.0' in text
        assert "headrace_replica_stale 1.0" in text
    with running(side, options, now_s=1.7e9 + 4.0) as server:
        assert server.ask("GET", "/v2/health/ready").status == 200
        assert "headrace_replica_stale 0.0" in server.ask("GET", "/metrics").text


def test_token_guards_everything_but_health_and_is_read_again(side: Switch[Side], tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    with running(side, ServeOptions(token_file=token)) as server:
        assert server.ask("GET", "/v2/health/ready").status == 200
        for path in ("/v2", "/metrics", "/v2/models/headrace"):
            assert server.ask("GET", path).status == 401
        for wrong in ("Bearer wrong", "s3cret", "Basic s3cret", "Bearer s3cret2", "Bearer "):
            reply = server.infer(GOOD, Authorization=wrong)
            assert (reply.status, reply.headers["WWW-Authenticate"]) == (401, "Bearer")
            assert "s3cret" not in reply.text
        assert server.infer(GOOD, Authorization="Bearer s3cret").status == 200
        token.write_text("")
        assert server.infer(GOOD, Authorization="Bearer s3cret").status == 200
        token.write_text("changed")
        assert server.infer(GOOD, Authorization="Bearer s3cret").status == 401
        assert server.infer(GOOD, Authorization="Bearer changed").status == 200


class Scripted:
    """A version that does what a test says."""

    number = 5
    freshness: Freshness | None = None
    columns = (InputColumn(name="x", user=False),)
    inputs = (TensorSpec(name="x", datatype="INT64", shape=(-1,)),)
    outputs = (TensorSpec(name="y", datatype="INT64", shape=(-1,)),)

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    def predict(self, items: pa.RecordBatch, user: pa.RecordBatch | None = None) -> Predictions:
        self._act()
        return {"y": np.arange(items.num_rows)}

    def sizes(self) -> Mapping[str, tuple[int, int]]:
        return {"t": (3, 100)}

    def feature_counts(self) -> Mapping[tuple[str, str], int]:
        return {("f", "null"): 3}

    def lookups(self) -> Mapping[str, tuple[int, int]]:
        return {"t": (10, 4)}


X = {"inputs": [{"name": "x", "datatype": "INT64", "shape": [1], "data": [1]}]}


def test_requests_over_the_limit_are_told_to_come_back() -> None:
    release, entered = threading.Event(), threading.Semaphore(0)

    def hold() -> None:
        entered.release()
        assert release.wait(10)

    switch: Switch[Servable] = Switch()
    switch.flip(Scripted(hold))
    with running(switch, ServeOptions(max_concurrent=2)) as server:
        replies: list[Reply] = []
        threads = [threading.Thread(target=lambda: replies.append(server.infer(X))) for _ in range(2)]
        for thread in threads:
            thread.start()
        assert entered.acquire(timeout=10)
        assert entered.acquire(timeout=10)
        assert "headrace_replica_in_flight_requests 2.0" in server.ask("GET", "/metrics").text
        reply = server.infer(X)
        assert (reply.status, reply.headers["Retry-After"]) == (429, "1")
        assert "2 requests are being answered" in reply.error
        release.set()
        for thread in threads:
            thread.join()
        assert [reply.status for reply in replies] == [200, 200]
        assert server.infer(X).status == 200


def test_failure_of_ours_is_a_500_without_its_insides() -> None:
    def fail() -> None:
        raise KeyError("inner workings")

    switch: Switch[Servable] = Switch()
    switch.flip(Scripted(fail))
    with running(switch, ServeOptions()) as server:
        reply = server.infer(X)
        assert (reply.status, reply.error) == (500, "the replica failed; its log says why")
        assert server.ask("GET", "/v2/health/live").status == 200


def test_figures_count_requests_rows_failures_and_tables() -> None:
    switch: Switch[Servable] = Switch()
    switch.flip(Scripted(lambda: None))
    with running(switch, ServeOptions()) as server:
        server.infer(X)
        server.infer({"inputs": []})
        text = server.ask("GET", "/metrics").text
    for line in (
        'headrace_replica_request_seconds_count{status="200"} 1.0',
        'headrace_replica_request_seconds_count{status="400"} 1.0',
        'headrace_replica_failed_requests_total{status="400"} 1.0',
        "headrace_replica_rows_total 1.0",
        'headrace_replica_table_rows{table="t"} 3.0',
        'headrace_replica_table_lookups_total{table="t"} 10.0',
        'headrace_replica_feature_total{feature="f",outcome="null"} 3.0',
        'headrace_replica_table_hits_total{table="t"} 4.0',
    ):
        assert line in text
