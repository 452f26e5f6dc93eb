"""Arrays between ranks as safetensors: no pickle on any path that reads from the network."""

from collections.abc import Mapping

import numpy as np
from safetensors.numpy import load, save


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Serialize named arrays.

    >>> unpack_arrays(pack_arrays({"a": np.arange(3)}))["a"].tolist()
    [0, 1, 2]
    """
    data: bytes = save({name: np.ascontiguousarray(value) for name, value in arrays.items()})
    return data


def unpack_arrays(data: bytes) -> dict[str, np.ndarray]:
    """Read what `pack_arrays` wrote."""
    arrays: dict[str, np.ndarray] = load(data)
    return arrays
