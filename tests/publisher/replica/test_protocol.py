"""Bodies to tensors and back, against tritonclient's own encoder and decoder."""

import json
import struct
import time

import numpy as np
import pytest
import tritonclient.http as triton
from hypothesis import given, settings
from hypothesis import strategies as st

from publisher.replica.errors import RequestError
from publisher.replica.protocol import DTYPES, InferRequest, encode_response, parse_request


def triton_body(inputs: list[tuple[str, str, np.ndarray]], *, binary: bool = True) -> tuple[bytes, str | None]:
    tensors = []
    for name, datatype, array in inputs:
        tensor = triton.InferInput(name, list(array.shape), datatype)
        tensor.set_data_from_numpy(array, binary_data=binary)
        tensors.append(tensor)
    body, length = triton.InferenceServerClient.generate_request_body(tensors)
    return body, None if length is None else str(length)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("datatype", sorted(DTYPES))
def test_request_of_every_datatype_equals_what_triton_sent(datatype: str, binary: bool) -> None:
    if datatype == "FP16" and not binary:
        pytest.skip("tritonclient does not send FP16 as JSON")
    array = np.array([[0, 1], [1, 0], [1, 1]]).astype(DTYPES[datatype])
    body, length = triton_body([("x", datatype, array)], binary=binary)
    found = parse_request(body, length).inputs["x"]
    assert (found.datatype, found.shape) == (datatype, (3, 2))
    assert np.array_equal(found.data, array.ravel())


@given(st.lists(st.text(max_size=20), min_size=1, max_size=20), st.booleans())
@settings(max_examples=60, deadline=None)
def test_request_of_strings_equals_what_triton_sent(texts: list[str], binary: bool) -> None:
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    body, length = triton_body([("x", "BYTES", np.array(texts, object))], binary=binary)
    assert parse_request(body, length).inputs["x"].data.to_pylist() == texts


def test_request_takes_nested_json_data() -> None:
    body = {"inputs": [{"name": "x", "datatype": "INT64", "shape": [2, 2], "data": [[1, 2], [3, 4]]}]}
    assert parse_request(json.dumps(body).encode(), None).inputs["x"].data.tolist() == [1, 2, 3, 4]


def test_depth_of_json_data_does_not_multiply_the_work() -> None:
    def taken(data: bytes) -> float:
        head = b'{"inputs": [{"name": "x", "datatype": "INT64", "shape": [50001], "data": ['
        begun = time.thread_time()
        found = parse_request(head + data + b",1" * 50_000 + b"]}]}", None).inputs["x"]
        assert len(found.data) == 50_001
        return time.thread_time() - begun

    taken(b"1")
    assert taken(b"[" * 900 + b"1" + b"]" * 900) < 30 * taken(b"1")


def test_response_is_what_triton_reads() -> None:
    outputs = {"probs": np.array([[0.25], [0.5]], np.float32), "ids": np.array([1, 2], np.int64)}
    request = InferRequest(id="r1", inputs={}, outputs=(), binary=True)
    body = encode_response(request, "m", "7", outputs)
    found = triton.InferenceServerClient.parse_response_body(body.payload, header_length=body.header_length)
    assert found.get_response()["id"] == "r1"
    assert found.get_response()["model_version"] == "7"
    assert np.array_equal(found.as_numpy("probs"), outputs["probs"])
    assert np.array_equal(found.as_numpy("ids"), outputs["ids"])


def one(**fields: object) -> bytes:
    return json.dumps({"inputs": [{"name": "x", "datatype": "INT64", "shape": [1], "data": [1], **fields}]}).encode()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "the request is not JSON"),
        (b"[]", "the request must be a JSON object, got list"),
        (b"\xff\xfe", "the request is not JSON"),
        (b"[" * 100_000, "the request is not JSON"),
        (b"{}", "the request has no 'inputs'"),
        (b'{"inputs": 3}', "inputs must be a JSON array"),
        (b'{"inputs": [3]}', "an entry of inputs must be a JSON object"),
        (b'{"inputs": [{}]}', "an entry of inputs has no name"),
        (b'{"inputs": [], "id": 3}', "'id' must be a string, got 3"),
        (b'{"inputs": [], "parameters": {"binary_data_output": 1}}', "'binary_data_output' must be true or false"),
        (b'{"inputs": [], "outputs": [{"name": "p", "parameters": {"classification": 3}}]}', "'classification' is not"),
        (one(datatype="INT65"), "input 'x' has datatype 'INT65', known are BOOL"),
        (one(datatype=["INT64"]), "input 'x' has datatype ['INT64'], known are"),
        (one(shape=[]), "input 'x' needs a 'shape'"),
        (one(shape=["1"]), "input 'x' has a shape with '1'"),
        (one(shape=[-1]), "input 'x' has a shape with -1"),
        (one(shape=[True]), "input 'x' has a shape with True"),
        (one(shape=[2]), "input 'x' of shape [2] takes 2 values, got 1"),
        (one(data=1), "input 'x' has no 'data' array"),
        (one(data=["1"]), "input 'x' is INT64 and holds '1' at position 0"),
        (one(data=[1.5]), "input 'x' is INT64 and holds 1.5 at position 0"),
        (one(data=[True]), "input 'x' is INT64 and holds True at position 0"),
        (one(data=[None]), "input 'x' is INT64 and holds None at position 0"),
        (one(data=[2**63]), "holds a value out of range"),
        (one(datatype="INT8", data=[200]), "holds a value out of range"),
        (one(datatype="BYTES"), "input 'x' is BYTES and holds 1 at position 0; send strings"),
        (one(datatype="BYTES", data=["\ud800"]), "not UTF-8"),
        (one(datatype="BOOL", data=[1]), "input 'x' is BOOL and holds 1"),
        (one(parameters={"binary_data_size": 8}), "has both 'data' and 'binary_data_size'"),
        (one(parameters={"binary_data_size": -8}), "has a binary_data_size that is no number of bytes: -8"),
        (one(parameters={"shared_memory_region": "r"}), "'shared_memory_region' is not supported"),
        (one(parameters=[]), "input 'x': parameters must be a JSON object"),
    ],
)
def test_request_is_refused_by_name(body: bytes, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_request(body, None)
    assert message in str(caught.value)
    assert caught.value.status == 400


def test_request_refuses_a_name_given_twice() -> None:
    entry = {"name": "x", "datatype": "INT64", "shape": [1], "data": [1]}
    with pytest.raises(RequestError, match="input 'x' is given twice"):
        parse_request(json.dumps({"inputs": [entry, entry]}).encode(), None)


def binary_body(datatype: str, shape: list[int], payload: bytes, size: int | None = None) -> tuple[bytes, str]:
    entry = {
        "name": "x",
        "datatype": datatype,
        "shape": shape,
        "parameters": {"binary_data_size": len(payload) if size is None else size},
    }
    header = json.dumps({"inputs": [entry]}).encode()
    return header + payload, str(len(header))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (binary_body("INT64", [2], b"\0" * 8), "of shape [2] and INT64 takes 16 bytes, got 8"),
        (binary_body("INT64", [1], b"\0" * 8, 16), "input 'x' announces 16 bytes, 8 are left in the body"),
        (binary_body("INT64", [1], b"\0" * 8, 0), "takes 8 bytes, got 0"),
        (binary_body("INT64", [0], b"\0" * 8, 0), "8 bytes follow the last binary tensor"),
        (binary_body("BOOL", [1], b"\2"), "input 'x' is BOOL and holds bytes other than 0 and 1"),
        (binary_body("BYTES", [3], b"\0" * 8), "too few for 3 strings"),
        (binary_body("BYTES", [1], struct.pack("<I", 9) + b"abc"), "do not fill its 7 bytes"),
        (binary_body("BYTES", [1], struct.pack("<I", 1) + b"abc"), "do not fill its 7 bytes"),
        (binary_body("BYTES", [1], struct.pack("<I", 2**32 - 1) + b"abc"), "do not fill its 7 bytes"),
        (binary_body("BYTES", [1], struct.pack("<I", 2) + b"\xff\xfe"), "not UTF-8"),
    ],
)
def test_binary_tensor_is_refused_by_name(body: tuple[bytes, str], message: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_request(*body)
    assert message in str(caught.value)


@pytest.mark.parametrize("length", ["x", "-1", "99999", "1.0", "", pytest.param("9" * 5000, id="digits")])
def test_header_length_must_lie_within_the_body(length: str) -> None:
    with pytest.raises(
        RequestError, match="Inference-Header-Content-Length must be a length within the body of 2 bytes"
    ):
        parse_request(b"{}", length)


@given(st.binary(max_size=200), st.none() | st.integers(0, 220).map(str))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_refused_and_nothing_worse(body: bytes, length: str | None) -> None:
    try:
        parse_request(body, length)
    except RequestError as error:
        assert error.status == 400
