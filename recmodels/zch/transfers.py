"""Arrays between the host and a device, through pinned memory where the device is a GPU."""

import numpy as np
import torch
from torch import Tensor

from checkpointer.rows import Column


def to_host(tensor: Tensor) -> Column:
    """A copy on the host; it waits for what the device has been asked to do before."""
    if tensor.device.type != "cuda":
        return np.array(tensor.detach().numpy())
    pinned = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    pinned.copy_(tensor.detach(), non_blocking=True)
    torch.cuda.current_stream(tensor.device).synchronize()
    return np.asarray(pinned.numpy())


def to_device(array: Column, device: torch.device) -> Tensor:
    """The array on a device, as what is asked of the device afterwards sees it."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    if device.type != "cuda":
        return tensor
    # PyTorch keeps the pinned copy until the device has read it.
    return tensor.pin_memory().to(device, non_blocking=True)
