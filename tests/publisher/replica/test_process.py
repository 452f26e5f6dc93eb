"""The replica as a process of its own, asked by tritonclient: flips, rollback, death, draining."""

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from checkpointer.local_store import LocalStore
from publisher.replica.errors import StartError
from publisher.replica.options import ServeOptions
from publisher.replica.process import bind, serve_store
from tests.publisher.replica.client import Client
from tests.publisher.replica.conftest import VersionWriter

PROGRAM = """
import logging, sys
from pathlib import Path
logging.basicConfig(level=logging.INFO, stream=sys.stderr)
from publisher.replica import ServeOptions, serve
sys.exit(serve(sys.argv[1], ServeOptions(port=int(sys.argv[2]), poll_s=0.002, drain_s=5.0)))
"""
IDS = 50


@contextmanager
def replica(model_dir: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    with (model_dir.parent / "replica.log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(model_dir), str(port)], stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until_ready(port: int, timeout_s: float = 100.0) -> None:
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        try:
            with Client(port) as asker:
                if asker.is_server_ready():
                    return
        except OSError:
            pass
        time.sleep(0.02)
    raise TimeoutError("the replica does not get ready")


def inputs(rows: int) -> list[triton.InferInput]:
    """A request of which every id is in the tables."""
    columns = {
        "user_id": ("INT64", np.array([1], np.int64)),
        "item_id": ("INT64", np.arange(rows, dtype=np.int64)),
        "tags": ("BYTES", np.array([str(i % 8) for i in range(rows)], object)),
        "price": ("FP32", np.full(rows, 2.0, np.float32)),
    }
    tensors = []
    for name, (datatype, array) in columns.items():
        tensor = triton.InferInput(name, list(array.shape), datatype)
        tensor.set_data_from_numpy(array)
        tensors.append(tensor)
    return tensors


def hashed_ids(writer: VersionWriter) -> dict[str, list[int]]:
    """The raw ids under which user 1 and items 0 to IDS are looked up."""
    import pyarrow as pa

    from features import create_features
    from protos.load import parse_config
    from tests.publisher.replica.conftest import CONFIG

    rows = pa.record_batch(
        {
            "user_id": np.ones(IDS, np.int64),
            "item_id": np.arange(IDS),
            "tags": pa.array(["1"] * IDS),
            "price": np.ones(IDS, np.float32),
        }
    )
    batch = create_features(parse_config(CONFIG, json=False)).parse(rows, labels=False)
    sparse = batch.sparse_features["__BASE__"].to_dict()
    return {f"{name}_emb": sorted(set(sparse[name].values().tolist())) for name in ("user_id", "item_id")}


@pytest.fixture
def model(tmp_path: Path) -> tuple[Path, VersionWriter]:
    """A writer whose tables hold every id that the client asks for."""
    folder = tmp_path / "model"
    folder.mkdir()
    writer = VersionWriter(LocalStore(folder))
    for table, ids in hashed_ids(writer).items():
        writer.rows[table] = dict.fromkeys(ids, 0.0)
    return folder, writer


def consistent(result: triton.InferResult) -> int:
    """Return the version of an answer of which every number came from that version."""
    version = int(result.get_response()["model_version"])
    assert np.unique(result.as_numpy("rows")[:, :12]).tolist() == [version]
    assert np.unique(result.as_numpy("number")).tolist() == [version]
    return version


@pytest.mark.timeout(180)
def test_no_answer_is_torn_while_versions_flip_every_few_milliseconds(model: tuple[Path, VersionWriter]) -> None:
    folder, writer = model
    port = free_port()
    writer.publish(1, writer.everything(1.0))
    done = threading.Event()

    def ask(rows: int) -> list[int]:
        with Client(port) as asker:
            seen = []
            while not done.is_set():
                seen.append(consistent(asker.infer("headrace", inputs(rows))))
            return seen

    with replica(folder, port):
        until_ready(port)
        with ThreadPoolExecutor(3) as pool:
            askers = [pool.submit(ask, rows) for rows in (1, 7, IDS)]
            try:
                for number in range(2, 202):
                    back = number % 50 == 0
                    writer.publish(number, writer.everything(float(number)), rebase=number % 70 == 0)
                    if back:
                        writer.point(number - 1)
                    time.sleep(0.003)
            finally:
                done.set()
            seen = [versions for asker in askers for versions in [asker.result()]]
    assert sum(map(len, seen)) > 200
    assert len({version for versions in seen for version in versions}) > 50


@pytest.mark.timeout(120)
def test_rollback_is_served_within_a_second_and_stays(model: tuple[Path, VersionWriter]) -> None:
    folder, writer = model
    port = free_port()
    writer.publish(1, writer.everything(1.0))
    with replica(folder, port), Client(port) as asker:
        until_ready(port)
        writer.publish(2, writer.everything(2.0))
        while consistent(asker.infer("headrace", inputs(3))) != 2:
            time.sleep(0.01)
        started = time.monotonic()
        writer.point(1)
        while consistent(asker.infer("headrace", inputs(3))) != 1:
            assert time.monotonic() - started < 1.0
        writer.write(3, writer.everything(3.0))
        for _ in range(100):
            assert consistent(asker.infer("headrace", inputs(3))) == 1


@pytest.mark.timeout(120)
def test_killed_replica_comes_back_with_the_current_version(model: tuple[Path, VersionWriter]) -> None:
    folder, writer = model
    port = free_port()
    with replica(folder, port) as first:
        writer.publish(1, writer.everything(1.0))
        until_ready(port)
        with Client(port) as asker:
            assert consistent(asker.infer("headrace", inputs(2))) == 1
        first.kill()
        first.wait()
    writer.publish(2, writer.everything(2.0))
    with replica(folder, port), Client(port) as asker:
        until_ready(port)
        assert consistent(asker.infer("headrace", inputs(2))) == 2


@pytest.mark.timeout(120)
def test_terminated_replica_finishes_what_has_begun_and_refuses_the_rest(model: tuple[Path, VersionWriter]) -> None:
    folder, writer = model
    port = free_port()
    writer.publish(1, writer.everything(1.0))
    body, length = triton.InferenceServerClient.generate_request_body(inputs(2))
    head = (
        "POST /v2/models/headrace/infer HTTP/1.1\r\nHost: x\r\n"
        f"Content-Length: {len(body)}\r\nInference-Header-Content-Length: {length}\r\n\r\n"
    ).encode()
    with replica(folder, port) as process:
        until_ready(port)
        with socket.create_connection(("127.0.0.1", port), timeout=20) as begun:
            begun.sendall(head + body[:100])
            until_ready(port)  # who is answered came later: what has begun is known by then
            process.terminate()
            end = time.monotonic() + 5.0
            while time.monotonic() < end:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                except ConnectionRefusedError:
                    break
                time.sleep(0.02)
            else:
                pytest.fail("a draining replica still takes connections")
            begun.sendall(body[100:])
            answer = begun.recv(1 << 16)
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert b"headrace-version: 1" in answer
        assert process.wait(10) == 0


@pytest.mark.timeout(120)
def test_tritonclient_sees_model_and_errors(model: tuple[Path, VersionWriter]) -> None:
    folder, writer = model
    port = free_port()
    with replica(folder, port), Client(port) as asker:
        while True:
            try:
                assert asker.is_server_live()
                break
            except OSError:
                time.sleep(0.05)
        assert not asker.is_server_ready()
        writer.publish(1, writer.everything(1.0))
        until_ready(port)
        assert asker.is_model_ready("headrace")
        assert asker.is_model_ready("headrace", "1")
        metadata = asker.get_model_metadata("headrace")
        assert [entry["name"] for entry in metadata["inputs"]] == ["user_id", "item_id", "tags", "price"]
        assert asker.get_model_config("headrace")["max_batch_size"] == 0
        assert asker.get_model_repository_index()[0]["state"] == "READY"
        assert "binary_tensor_data" in asker.get_server_metadata()["extensions"]
        wanted = [triton.InferRequestedOutput("number", binary_data=False)]
        for compression in (None, "gzip", "deflate"):
            found = asker.infer("headrace", inputs(2), outputs=wanted, request_compression_algorithm=compression)
            assert [output["name"] for output in found.get_response()["outputs"]] == ["number"]
            assert found.as_numpy("number").tolist() == [[1.0], [1.0]]
        with pytest.raises(InferenceServerException, match="input 'price' is missing"):
            asker.infer("headrace", inputs(2)[:3])


def test_taken_port_is_one_clear_error(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = int(holder.getsockname()[1])
        with pytest.raises(StartError, match=f"cannot listen on 127.0.0.1 port {port}: Address already in use"):
            serve_store(LocalStore(tmp_path), ServeOptions(port=port))


@pytest.mark.parametrize("content", [None, "", "\n"])
def test_token_file_without_a_token_is_one_clear_error(tmp_path: Path, content: str | None) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content)
    with pytest.raises(StartError, match="token file .* (cannot be read|is empty)"):
        serve_store(LocalStore(tmp_path), ServeOptions(port=0, token_file=token))


@pytest.mark.parametrize("option", [{"port": 70_000}, {"name": "a/b"}, {"workers": 0}, {"poll_s": 0.0}])
def test_options_out_of_range_are_refused(option: dict[str, int]) -> None:
    with pytest.raises(StartError):
        ServeOptions(**option)


def test_bound_socket_is_free_again_at_once() -> None:
    first = bind("127.0.0.1", 0)
    port = first.getsockname()[1]
    first.close()
    bind("127.0.0.1", port).close()


def test_infer_body_is_json_where_nothing_is_binary() -> None:
    body, length = triton.InferenceServerClient.generate_request_body([])
    assert length is None
    assert json.loads(body)["inputs"] == []
