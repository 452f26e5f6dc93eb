"""Gradient clipping, by the total norm of all gradients or by each element."""

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor, nn

from protos.train_pb2 import GradClipping
from recmodels.errors import ModelConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class Clipping:
    """Gradient clipping: `norm` scales all gradients to a total norm of at most `limit`, `value` cuts each element."""

    kind: str = "none"
    limit: float = 1.0
    norm_type: float = 2.0

    def __post_init__(self) -> None:
        if self.kind not in ("none", "norm", "value"):
            raise ModelConfigError(f"clipping_type must be none, norm or value, got {self.kind!r}")

    @classmethod
    def from_proto(cls, proto: GradClipping) -> "Clipping":
        return cls(kind=proto.clipping_type, limit=proto.max_gradient, norm_type=proto.norm_type)


def clip_gradients(parameters: Iterable[nn.Parameter], clipping: Clipping, *, norm: Tensor | None = None) -> None:
    """Clip the gradients in place. `norm` is the total norm over all ranks, where these are not all parameters."""
    owners = [parameter for parameter in parameters if parameter.grad is not None]
    if clipping.kind == "value":
        nn.utils.clip_grad_value_(owners, clipping.limit)
    elif clipping.kind == "norm":
        gradients = [parameter.grad for parameter in owners if parameter.grad is not None]
        total = nn.utils.get_total_norm(gradients, clipping.norm_type) if norm is None else norm
        nn.utils.clip_grads_with_norm_(owners, clipping.limit, total)
