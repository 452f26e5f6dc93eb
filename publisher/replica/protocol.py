"""Open Inference Protocol v2 over HTTP: bodies to tensors and back, JSON and the binary tensor extension.

The protocol is KServe's `predict-api v2` with Triton's `binary_data` extension. Tensors are NumPy arrays here, those of
BYTES Arrow string arrays.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from publisher.replica.errors import RequestError, bad_input, quoted
from publisher.replica.kernels import split_strings

DTYPES: Final[Mapping[str, np.dtype]] = {
    "BOOL": np.dtype(np.bool_),
    "UINT8": np.dtype(np.uint8),
    "UINT16": np.dtype(np.uint16),
    "UINT32": np.dtype(np.uint32),
    "UINT64": np.dtype(np.uint64),
    "INT8": np.dtype(np.int8),
    "INT16": np.dtype(np.int16),
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "FP16": np.dtype(np.float16),
    "FP32": np.dtype(np.float32),
    "FP64": np.dtype(np.float64),
}
BYTES: Final = "BYTES"
HEADER_LENGTH: Final = "Inference-Header-Content-Length"
_NAMES: Final[Mapping[np.dtype, str]] = {dtype: name for name, dtype in DTYPES.items()}
_MOST_DIGITS: Final = 19
_UNSUPPORTED: Final = ("shared_memory_region", "classification")

Json = dict[str, "JsonValue"]
JsonValue = None | bool | int | float | str | list["JsonValue"] | Json


@dataclass(frozen=True, kw_only=True, slots=True)
class Tensor:
    """One input tensor; `data` is flat, whatever the shape."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: npt.NDArray[np.generic] | pa.StringArray


@dataclass(frozen=True, kw_only=True, slots=True)
class WantedOutput:
    """An output that the client asked for, and how it wants to have it."""

    name: str
    binary: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class InferRequest:
    """A parsed request; without `outputs` all are wanted, in binary form if `binary`."""

    id: str | None
    inputs: Mapping[str, Tensor]
    outputs: tuple[WantedOutput, ...]
    binary: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """A response body; `header_length` is set when binary tensors follow the JSON."""

    payload: bytes
    header_length: int | None


def _bad(message: str) -> RequestError:
    return RequestError(400, message)


def parse_request(body: bytes, header_length: str | None) -> InferRequest:
    """Parse a request body; `header_length` is the value of the Inference-Header-Content-Length header."""
    length = _header_length(body, header_length)
    header = _parse_json(body[:length])
    parameters = _object(header.get("parameters", {}), "parameters")
    default = parameters.get("binary_data_output", False)
    if not isinstance(default, bool):
        raise _bad(f"parameter 'binary_data_output' must be true or false, got {quoted(default)}")
    request_id = header.get("id")
    if request_id is not None and not isinstance(request_id, str):
        raise _bad(f"'id' must be a string, got {quoted(request_id)}")
    return InferRequest(
        id=request_id,
        inputs=_inputs(header, memoryview(body)[length:]),
        outputs=_wanted(header, default),
        binary=default,
    )


def _header_length(body: bytes, given: str | None) -> int:
    if given is None:
        return len(body)
    # Python refuses to read numbers of thousands of digits.
    if not given.isdecimal() or len(given) > _MOST_DIGITS or int(given) > len(body):
        raise _bad(f"header {HEADER_LENGTH} must be a length within the body of {len(body)} bytes, got {quoted(given)}")
    return int(given)


def _parse_json(text: bytes) -> Json:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _bad(f"the request is not JSON: {error}; binary tensors need the header {HEADER_LENGTH}") from error
    return _object(value, "the request")


def _object(value: JsonValue, what: str) -> Json:
    if not isinstance(value, dict):
        raise _bad(f"{what} must be a JSON object, got {type(value).__name__}")
    return value


def _objects(value: JsonValue, what: str) -> list[Json]:
    if not isinstance(value, list):
        raise _bad(f"{what} must be a JSON array, got {type(value).__name__}")
    return [_object(item, f"an entry of {what}") for item in value]


def _name(value: Json, what: str) -> str:
    name = value.get("name")
    if not isinstance(name, str) or not name:
        raise _bad(f"an entry of {what} has no name")
    return name


def _wanted(header: Json, default: bool) -> tuple[WantedOutput, ...]:
    wanted = []
    for entry in _objects(header.get("outputs", []), "outputs"):
        name = _name(entry, "outputs")
        parameters = _object(entry.get("parameters", {}), f"output {quoted(name)}: parameters")
        _refuse_unsupported(parameters, f"output {quoted(name)}")
        wanted.append(WantedOutput(name=name, binary=parameters.get("binary_data", default) is True))
    return tuple(wanted)


def _refuse_unsupported(parameters: Json, what: str) -> None:
    for parameter in _UNSUPPORTED:
        if parameter in parameters:
            raise _bad(f"{what}: parameter {parameter!r} is not supported; send tensors in the body")


def _inputs(header: Json, binary: memoryview) -> dict[str, Tensor]:
    if "inputs" not in header:
        raise _bad("the request has no 'inputs'")
    inputs: dict[str, Tensor] = {}
    at = 0
    for entry in _objects(header["inputs"], "inputs"):
        name = _name(entry, "inputs")
        if name in inputs:
            raise bad_input(name, "is given twice")
        size = _binary_size(entry, name)
        if size is None:
            inputs[name] = _json_tensor(entry, name)
            continue
        if at + size > len(binary):
            raise bad_input(name, f"announces {size} bytes, {len(binary) - at} are left in the body")
        inputs[name] = _binary_tensor(entry, name, binary[at : at + size])
        at += size
    if at != len(binary):
        raise _bad(f"{len(binary) - at} bytes follow the last binary tensor; check binary_data_size of the inputs")
    return inputs


def _binary_size(entry: Json, name: str) -> int | None:
    parameters = _object(entry.get("parameters", {}), f"input {quoted(name)}: parameters")
    _refuse_unsupported(parameters, f"input {quoted(name)}")
    size = parameters.get("binary_data_size")
    if size is None:
        return None
    if type(size) is not int or size < 0:
        raise bad_input(name, f"has a binary_data_size that is no number of bytes: {quoted(size)}")
    if "data" in entry:
        raise bad_input(name, "has both 'data' and 'binary_data_size'; send one of them")
    return size


def _datatype(entry: Json, name: str) -> str:
    datatype = entry.get("datatype")
    if not isinstance(datatype, str) or (datatype != BYTES and datatype not in DTYPES):
        raise bad_input(name, f"has datatype {quoted(datatype)}, known are {', '.join((*DTYPES, BYTES))}")
    return datatype


def _shape(entry: Json, name: str) -> tuple[int, ...]:
    shape = entry.get("shape")
    if not isinstance(shape, list) or not shape:
        raise bad_input(name, f"needs a 'shape' of at least one dimension, got {quoted(shape)}")
    for size in shape:
        if type(size) is not int or not 0 <= size < 1 << 31:
            raise bad_input(name, f"has a shape with {quoted(size)}; dimensions are numbers of rows or values")
    return tuple(size for size in shape if isinstance(size, int))


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _binary_tensor(entry: Json, name: str, payload: memoryview) -> Tensor:
    datatype, shape = _datatype(entry, name), _shape(entry, name)
    count = _elements(shape)
    if datatype == BYTES:
        return Tensor(name=name, datatype=datatype, shape=shape, data=_strings(name, payload, count))
    expected = count * DTYPES[datatype].itemsize
    if len(payload) != expected:
        raise bad_input(
            name, f"of shape {quoted(list(shape))} and {datatype} takes {expected} bytes, got {len(payload)}"
        )
    # A copy, so that it is aligned whatever the length of the JSON before it.
    data = np.frombuffer(bytes(payload), DTYPES[datatype])
    if datatype == "BOOL" and len(data) and int(data.view(np.uint8).max()) > 1:
        raise bad_input(name, "is BOOL and holds bytes other than 0 and 1")
    return Tensor(name=name, datatype=datatype, shape=shape, data=data)


def _strings(name: str, payload: memoryview, count: int) -> pa.StringArray:
    if 4 * count > len(payload):
        raise bad_input(name, f"holds {len(payload)} bytes, too few for {count} strings with their lengths")
    offsets = np.empty(count + 1, np.int32)
    text = np.empty(len(payload) - 4 * count, np.uint8)
    if not split_strings(np.frombuffer(payload, np.uint8), offsets, text):
        raise bad_input(name, f"is broken: the strings and their 4-byte lengths do not fill its {len(payload)} bytes")
    array = pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise bad_input(name, f"holds bytes that are not UTF-8: {error}") from error
    return array


def _json_tensor(entry: Json, name: str) -> Tensor:
    datatype, shape = _datatype(entry, name), _shape(entry, name)
    data = entry.get("data")
    if not isinstance(data, list):
        raise bad_input(name, "has no 'data' array")
    flat = _flatten(data)
    if len(flat) != _elements(shape):
        raise bad_input(name, f"of shape {quoted(list(shape))} takes {_elements(shape)} values, got {len(flat)}")
    array = _string_values(name, flat) if datatype == BYTES else _numbers(name, datatype, flat)
    return Tensor(name=name, datatype=datatype, shape=shape, data=array)


def _flatten(data: list[JsonValue]) -> list[JsonValue]:
    """All values, looked at once however deep they are: a request must not stop a replica."""
    if not any(isinstance(value, list) for value in data):
        return data
    flat: list[JsonValue] = []
    open_lists = [iter(data)]
    while open_lists:
        for value in open_lists[-1]:
            if isinstance(value, list):
                open_lists.append(iter(value))
                break
            flat.append(value)
        else:
            open_lists.pop()
    return flat


def _string_values(name: str, flat: list[JsonValue]) -> pa.StringArray:
    for at, value in enumerate(flat):
        if not isinstance(value, str):
            raise bad_input(name, f"is BYTES and holds {quoted(value)} at position {at}; send strings")
    try:
        return pa.array(flat, pa.string())
    except UnicodeEncodeError as error:
        raise bad_input(name, f"holds text that is not UTF-8: {error}") from error


def _numbers(name: str, datatype: str, flat: list[JsonValue]) -> npt.NDArray[np.generic]:
    dtype = DTYPES[datatype]
    allowed: tuple[type, ...] = {"b": (bool,), "f": (int, float)}.get(dtype.kind, (int,))
    for at, value in enumerate(flat):
        if type(value) not in allowed:
            raise bad_input(name, f"is {datatype} and holds {quoted(value)} at position {at}")
    try:
        return np.array(flat, dtype)
    except (OverflowError, ValueError) as error:
        raise bad_input(name, f"is {datatype} and holds a value out of range: {error}") from error


def encode_response(
    request: InferRequest,
    model: str,
    version: str,
    outputs: Mapping[str, npt.NDArray[np.generic]],
) -> Body:
    """Serialize predictions; outputs that nobody asked for are left out."""
    wanted = request.outputs or tuple(WantedOutput(name=name, binary=request.binary) for name in outputs)
    parts: list[bytes] = []
    entries: list[JsonValue] = []
    for output in wanted:
        if output.name not in outputs:
            raise _bad(f"there is no output {quoted(output.name)}; the model gives {', '.join(outputs)}")
        entries.append(_encode_output(output, outputs[output.name], parts))
    header: Json = {"model_name": model, "model_version": version, "outputs": entries}
    if request.id is not None:
        header["id"] = request.id
    text = json.dumps(header, separators=(",", ":")).encode()
    return Body(payload=b"".join([text, *parts]), header_length=len(text) if parts else None)


def _encode_output(output: WantedOutput, array: npt.NDArray[np.generic], parts: list[bytes]) -> Json:
    shape: Sequence[int] = array.shape
    entry: Json = {"name": output.name, "datatype": _NAMES[array.dtype], "shape": list(shape)}
    if output.binary:
        payload = np.ascontiguousarray(array).tobytes()
        parts.append(payload)
        entry["parameters"] = {"binary_data_size": len(payload)}
    else:
        entry["data"] = array.ravel().tolist()
    return entry


def wire_type(dtype: np.dtype) -> str:
    """Return the protocol's name of a NumPy dtype.

    >>> wire_type(np.dtype("float32"))
    'FP32'
    """
    return _NAMES[dtype]
