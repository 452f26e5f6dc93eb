"""Connections and bodies over real sockets: clients that stall, too many at once, and bytes that are no request."""

import json
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from publisher.replica.connections import allow_descriptors
from publisher.replica.options import ServeOptions
from publisher.replica.serving import Servable
from publisher.replica.switch import Switch
from tests.publisher.replica.running import Running, running
from tests.publisher.replica.test_server import Scripted, X

INFER = "/v2/models/headrace/infer"


@contextmanager
def serving(**options: float) -> Iterator[Running]:
    switch: Switch[Servable] = Switch()
    switch.flip(Scripted(lambda: None))
    with running(switch, ServeOptions(**options)) as server:
        yield server


def connect(server: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


def announced(size: int, sent: bytes = b"") -> bytes:
    return f"POST {INFER} HTTP/1.1\r\nHost: h\r\nContent-Length: {size}\r\n\r\n".encode() + sent


def read_all(connection: socket.socket) -> tuple[int, str, str]:
    """Status, content type and body of what comes until the server closes, or has sent the length that it announced."""
    received = b""
    while True:
        head, end, body = received.partition(b"\r\n\r\n")
        lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
        if end and lengths and len(body) >= int(lengths[0]):
            break
        part = connection.recv(65536)
        if not part:
            break
        received += part
    headers = {line.split(":")[0].lower(): line.split(":")[1].strip() for line in head.decode().split("\r\n")[1:]}
    return int(received.split(b" ")[1]), headers["content-type"].split(";")[0], body.decode()


def until(done: object) -> None:
    """Wait until a callable says so."""
    end = time.monotonic() + 20
    while not done():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.01)


def test_clients_that_stall_their_bodies_keep_nobody_out() -> None:
    with serving(max_concurrent=4) as server, ExitStack() as stalled:
        for number in range(16):
            connection = stalled.enter_context(connect(server))
            connection.sendall(announced(1000, b"{" * (number % 3)))
        assert server.infer(X).status == 200
        assert "headrace_replica_in_flight_requests 0.0" in server.ask("GET", "/metrics").text
        slow = stalled.enter_context(connect(server))
        body = json.dumps(X).encode()
        slow.sendall(announced(len(body), body[:10]))
        assert server.infer(X).status == 200
        slow.sendall(body[10:])
        assert read_all(slow)[0] == 200


def test_body_that_does_not_arrive_in_time_is_a_408() -> None:
    with serving(body_timeout_s=0.2) as server, connect(server) as connection:
        connection.sendall(announced(1000, b"{"))
        status, content_type, body = read_all(connection)
        assert (status, content_type) == (408, "application/json")
        assert "did not arrive within" in json.loads(body)["error"]
        assert server.infer(X).status == 200


def test_bodies_are_held_within_a_number_of_bytes_together() -> None:
    with serving(max_concurrent=2, max_request_bytes=1000) as server, ExitStack() as stalled:
        first, second = (stalled.enter_context(connect(server)) for _ in range(2))
        for connection in (first, second):
            connection.sendall(announced(1000, b" " * 980))
        until(lambda: server.server._bodies._held == 1960)
        reply = server.infer(X)
        assert (reply.status, reply.headers["Retry-After"]) == (429, "1")
        assert "over 2000 bytes of requests" in reply.error
        first.close()
        until(lambda: server.server._bodies._held == 980)
        assert server.infer(X).status == 200


def test_body_that_is_announced_too_large_is_refused_before_it_comes() -> None:
    with serving(max_request_bytes=1000) as server, connect(server) as connection:
        connection.sendall(announced(1001))
        status, _, body = read_all(connection)
        assert (status, "larger than 1000 bytes" in json.loads(body)["error"]) == (413, True)


def test_connections_over_the_limit_are_told_so_and_counted() -> None:
    with serving(max_connections=3) as server, ExitStack() as idle:
        held = [idle.enter_context(connect(server)) for _ in range(3)]
        # Each has been taken once it has answered.
        for connection in held:
            connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n")
            assert read_all(connection)[0] == 200
        with connect(server) as connection:
            connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n")
            status, content_type, body = read_all(connection)
        assert (status, content_type) == (503, "application/json")
        assert "3 connections are open, the limit (max_connections)" in json.loads(body)["error"]
        held[0].close()

        def answered() -> bool:
            with connect(server) as connection:
                connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n")
                return read_all(connection)[0] == 200

        until(answered)


def test_few_of_those_who_are_refused_are_told_why_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is told keeps a descriptor for a while; thousands would leave the replica none to read versions with."""
    monkeypatch.setattr("publisher.replica.connections._LINGER_S", 60.0)
    with serving(max_connections=1) as server, connect(server) as held, ExitStack() as opened:
        held.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n")
        assert read_all(held)[0] == 200
        refused = [opened.enter_context(connect(server)) for _ in range(100)]
        assert sum(bool(connection.recv(1)) for connection in refused) == 64


def test_body_that_cannot_be_read_leaves_no_trace_of_ours_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with serving() as server, connect(server) as connection:
        head = f"POST {INFER} HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\n"
        connection.sendall(head.encode() + b"hello")
        assert read_all(connection)[0] == 400
        until(lambda: "body not understood" in caplog.text)
        assert not [record for record in caplog.records if record.exc_info]


def test_soft_limit_on_open_files_is_raised_for_the_connections(caplog: pytest.LogCaptureFixture) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
        allow_descriptors(512)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (min(1536, hard), hard)
        allow_descriptors(1 << 40)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
        assert "lower max_connections" in caplog.text
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


LINE = "a" * 20_000


@pytest.mark.parametrize(
    ("sent", "status", "says"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "not understood"),
        (b"HELLO\r\n\r\n", 400, "not understood"),
        (b"GET /v2 HTTP/9\r\nHost: h\r\n\r\n", 400, "not understood"),
        (f"GET /{LINE} HTTP/1.1\r\nHost: h\r\n\r\n".encode(), 400, "not understood"),
        (f"GET /v2 HTTP/1.1\r\nHost: h\r\nX: {LINE}\r\n\r\n".encode(), 400, "not understood"),
        (b"GET /v2 HTTP/1.1\r\n" + b"X: y\r\n" * 500 + b"\r\n", 400, "not understood"),
        (b"GET /v2 HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400, "not understood"),
        (b"GET /v2 HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n", 400, "not understood"),
        (f"POST {INFER} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".encode(), 400, ""),
        (b"GET /v2 HTTP/1.1\r\nHost: h\r\nExpect: everything\r\n\r\n", 417, "Expectation Failed"),
        (b"GET /v3 HTTP/1.1\r\nHost: h\r\nExpect: everything\r\n\r\n", 417, "Expectation Failed"),
        (b"PATCH /v2 HTTP/1.1\r\nHost: h\r\n\r\n", 405, "'PATCH' is not allowed"),
        (b"GET /a%0d%0ab HTTP/1.1\r\nHost: h\r\n\r\n", 404, r"'/a\r\nb'"),
        (b"GET /" + b"b" * 4000 + b" HTTP/1.1\r\nHost: h\r\n\r\n", 404, "'/bbb"),
        (b"GET /v2/models/" + b"c" * 4000 + b" HTTP/1.1\r\nHost: h\r\n\r\n", 404, "there is no model 'ccc"),
    ],
)
def test_whatever_is_refused_is_told_in_a_short_document(sent: bytes, status: int, says: str) -> None:
    with serving() as server:
        with connect(server) as connection:
            connection.sendall(sent)
            found, content_type, body = read_all(connection)
        assert (found, content_type) == (status, "application/json")
        assert says in json.loads(body)["error"]
        assert len(body) < 700
        assert server.infer(X).status == 200


@pytest.mark.parametrize(
    "body",
    [
        {"inputs": [], "id": ["x"] * 10_000},
        {"inputs": [{"name": "n" * 9000, "datatype": "INT64", "shape": [1], "data": [1]}]},
        {"inputs": [{"name": "x", "datatype": "d" * 9000, "shape": [1], "data": [1]}]},
        {"inputs": [{"name": "x", "datatype": "INT64", "shape": "s" * 9000, "data": [1]}]},
        {"inputs": [{"name": "x", "datatype": "INT64", "shape": [["s"] * 9000], "data": [1]}]},
        {"inputs": [{"name": "x", "datatype": "INT64", "shape": [1] * 9000, "data": []}]},
        {"inputs": [{"name": "x", "datatype": "INT64", "shape": [1], "data": ["v" * 9000]}]},
        {"inputs": [{"name": "x", "datatype": "BYTES", "shape": [1], "data": [{"k": "v" * 9000}]}]},
        {**X, "outputs": [{"name": "o" * 9000}]},
        {**X, "parameters": {"binary_data_output": "p" * 9000}},
    ],
)
def test_what_a_client_sent_is_repeated_in_part_only(body: object) -> None:
    with serving() as server:
        reply = server.infer(body)
        assert reply.status == 400
        assert len(reply.text) < 400
