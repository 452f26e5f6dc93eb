"""Published rows: float32 weights as fp32, fp16, int8 or int4 bytes of fixed width (FORMAT.md, section 9)."""

from enum import StrEnum

import numba
import numpy as np
import numpy.typing as npt

from checkpointer.errors import EncodingError

Weights = npt.NDArray[np.float32]
Rows = npt.NDArray[np.uint8]

_TAIL = 4  # fp16 scale, fp16 offset
_HALF_MAX = float(np.finfo(np.float16).max)


class Encoding(StrEnum):
    """How a row is stored."""

    FP32 = "fp32"
    FP16 = "fp16"
    INT8 = "int8"
    INT4 = "int4"


def row_bytes(encoding: Encoding, dim: int) -> int:
    """The width of an encoded row.

    >>> [row_bytes(encoding, 64) for encoding in Encoding]
    [256, 128, 68, 36]
    """
    match encoding:
        case Encoding.FP32:
            return 4 * dim
        case Encoding.FP16:
            return 2 * dim
        case Encoding.INT8:
            return dim + _TAIL
        case Encoding.INT4:
            return (dim + 1) // 2 + _TAIL


def encode(weights: Weights, encoding: Encoding) -> Rows:
    """Encode float32[n, D] as uint8[n, row_bytes]. Raises EncodingError for what is not finite or too large.

    int8 and int4 keep every value within half a step of the row's scale; the zero row stays exactly zero.
    """
    weights = np.ascontiguousarray(weights, np.float32)
    if encoding is not Encoding.FP32:
        _check_range(weights, encoding)
    match encoding:
        case Encoding.FP32:
            return weights.view(np.uint8).reshape(len(weights), row_bytes(encoding, weights.shape[1]))
        case Encoding.FP16:
            return (
                weights.astype(np.float16).view(np.uint8).reshape(len(weights), row_bytes(encoding, weights.shape[1]))
            )
        case Encoding.INT8:
            return _quantized(weights, 255, row_bytes(encoding, weights.shape[1]))
        case Encoding.INT4:
            return _quantized(weights, 15, row_bytes(encoding, weights.shape[1]))


def decode(rows: Rows, encoding: Encoding, dim: int) -> Weights:
    """Decode uint8[n, row_bytes] to float32[n, D]: code * scale + offset, in float32."""
    if rows.ndim != 2 or rows.shape[1] != row_bytes(encoding, dim):
        raise EncodingError(f"rows of {dim} x {encoding} take {row_bytes(encoding, dim)} bytes, got {list(rows.shape)}")
    rows = np.ascontiguousarray(rows)
    if encoding is Encoding.FP32:
        return rows.view(np.float32).reshape(len(rows), dim)
    if encoding is Encoding.FP16:
        return rows.view(np.float16).reshape(len(rows), dim).astype(np.float32)
    tail = np.ascontiguousarray(rows[:, -_TAIL:]).view(np.float16).astype(np.float32)
    codes = np.empty((len(rows), dim), np.uint8)
    if encoding is Encoding.INT8:
        codes[:] = rows[:, :dim]
    else:
        codes[:, 0::2] = rows[:, : (dim + 1) // 2] & 15
        codes[:, 1::2] = rows[:, : dim // 2] >> 4
    # No fused multiply-add: replicas must get the same bits.
    return codes.astype(np.float32) * tail[:, :1] + tail[:, 1:]


def _quantized(weights: Weights, levels: int, width: int) -> Rows:
    count, dim = weights.shape
    rows = np.zeros((count, width), np.uint8)
    if not count or not dim:
        return rows
    low, high = weights.min(axis=1), weights.max(axis=1)
    offset = _rounded(low, np.float16(-np.inf))
    scale = _rounded((high - offset.astype(np.float32)) / np.float32(levels), np.float16(np.inf))
    _quantize(weights, scale.astype(np.float32), offset.astype(np.float32), levels, rows)
    rows[:, -_TAIL:] = np.stack([scale, offset], axis=1).view(np.uint8)
    return rows


def _rounded(values: Weights, towards: np.float16) -> npt.NDArray[np.float16]:
    """The nearest fp16 that is not on the wrong side, so that the codes cover the whole row."""
    halves = values.astype(np.float16)
    wrong = halves.astype(np.float32) > values if towards < 0 else halves.astype(np.float32) < values
    stepped: npt.NDArray[np.float16] = np.where(wrong, np.nextafter(halves, towards), halves)
    return stepped


def _check_range(weights: Weights, encoding: Encoding) -> None:
    # One range for all three: int8 and int4 carry an fp16 offset, and their scale spans at most twice this.
    limit = _HALF_MAX if encoding is Encoding.FP16 else _HALF_MAX / 2
    if not len(weights) or not weights.shape[1]:
        return
    worst = np.abs(weights).max(axis=1)
    bad = np.flatnonzero(~(worst <= limit))
    if len(bad):
        raise EncodingError(
            f"row {bad[0]} holds {worst[bad[0]]}, which {encoding} cannot hold (at most {limit}); publish fp32 instead"
        )


@numba.njit(nogil=True, cache=True)
def _quantize(weights, scale, offset, levels, rows):  # type: ignore[no-untyped-def]
    for i in range(weights.shape[0]):
        for j in range(weights.shape[1]):
            code = 0
            if scale[i] > 0:
                code = min(levels, max(0, int(np.rint((weights[i, j] - offset[i]) / scale[i]))))
            if levels == 255:
                rows[i, j] = code
            else:
                rows[i, j >> 1] |= code << ((j & 1) << 2)
