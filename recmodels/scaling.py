"""Loss scaling of FP16 training: gradients that float16 would round to nothing, and rows that learn from the true ones.

A loss that is `scale` times as large has gradients that are. GradScaler divides those of the dense parameters before
their step, and leaves a step out whose gradients overflow; the tables, whose optimizer runs inside the backward pass,
get theirs divided on the way.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import GradScaler

from protos.train_pb2 import GradScaler as GradScalerProto
from recmodels.errors import ModelConfigError


def create_scaler(config: GradScalerProto, *, mixed_precision: str, device_type: str) -> GradScaler:
    """The scaler that `config` names for FP16; for any other precision one that changes nothing."""
    if mixed_precision != "FP16":
        return GradScaler(device_type, enabled=False)
    if config.init_scale <= 0 or config.growth_factor <= 1 or not 0 < config.backoff_factor < 1:
        raise ModelConfigError(
            "grad_scaler needs init_scale > 0, growth_factor > 1 and backoff_factor between 0 and 1, got "
            f"{config.init_scale}, {config.growth_factor} and {config.backoff_factor}"
        )
    if config.growth_interval < 1:
        raise ModelConfigError(f"growth_interval of grad_scaler must be at least 1 step, got {config.growth_interval}")
    return GradScaler(
        device_type,
        init_scale=config.init_scale,
        growth_factor=config.growth_factor,
        backoff_factor=config.backoff_factor,
        growth_interval=config.growth_interval,
    )


def unscale_rows(embedding: nn.Module, scaler: GradScaler) -> None:
    """Give the tables behind `embedding`, which makes a tensor per group, the gradients of the unscaled loss.

    Where any of them overflows, rows learn nothing in that step, as the dense half learns nothing.
    """
    if scaler.is_enabled():
        embedding.register_forward_hook(partial(_unscale_groups, scaler))


def _unscale_groups(
    scaler: GradScaler, module: nn.Module, inputs: object, groups: dict[str, Tensor]
) -> dict[str, Tensor]:
    trained = {name: group for name, group in groups.items() if group.requires_grad}
    if not trained:
        return groups
    one = torch.ones((), device=next(iter(trained.values())).device)
    # All groups at once: one may be a part of another, whose gradient a hook of its own would divide twice.
    unscaled = _Unscaled.apply(scaler.scale(one), *trained.values())  # type: ignore[no-untyped-call]
    return groups | dict(zip(trained, unscaled, strict=True))


class _Unscaled(torch.autograd.Function):
    """The tensors themselves, whose gradients are divided by the scale."""

    @staticmethod
    def forward(context: Any, scale: Tensor, *groups: Tensor) -> tuple[Tensor, ...]:
        context.save_for_backward(scale)
        return tuple(group.view_as(group) for group in groups)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (scale,) = context.saved_tensors
        finite = torch.stack([torch.isfinite(gradient).all() for gradient in gradients]).all()
        # A zero times an infinity is no zero: the gradients are chosen, not multiplied, and nobody waits to know which.
        return None, *(torch.where(finite, gradient / scale, torch.zeros_like(gradient)) for gradient in gradients)
