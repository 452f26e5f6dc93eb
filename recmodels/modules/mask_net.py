"""Blocks that gate their input by a mask computed from the embeddings of the same row."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from protos.model_pb2 import MaskBlock as MaskBlockProto
from protos.model_pb2 import MaskNetModule as MaskNetProto
from recmodels.errors import ModelConfigError
from recmodels.modules.mlp import MLP, MlpOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskBlockOptions:
    """The mask's hidden layer is `int(ratio * width)` wide, or `aggregation` where the ratio is 0."""

    ratio: float
    aggregation: int
    hidden: int

    def __post_init__(self) -> None:
        if self.hidden < 1 or self.ratio < 0 or (self.ratio == 0 and self.aggregation < 1):
            raise ModelConfigError(
                "a mask_block needs hidden_dim, and a positive reduction_ratio or aggregation_dim, got "
                f"{self.hidden}, {self.ratio}, {self.aggregation}"
            )

    @classmethod
    def from_proto(cls, proto: MaskBlockProto) -> "MaskBlockOptions":
        return cls(ratio=proto.reduction_ratio, aggregation=proto.aggregation_dim, hidden=proto.hidden_dim)

    def mask_width(self, width: int) -> int:
        return max(1, int(width * self.ratio)) if self.ratio else self.aggregation


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskNetOptions:
    """How many blocks, side by side or one after the other, and the MLP behind them."""

    blocks: int
    block: MaskBlockOptions
    top: MlpOptions | None
    parallel: bool

    def __post_init__(self) -> None:
        if self.blocks < 1:
            raise ModelConfigError(f"n_mask_blocks must be at least 1, got {self.blocks}")

    @classmethod
    def from_proto(cls, proto: MaskNetProto) -> "MaskNetOptions":
        return cls(
            blocks=proto.n_mask_blocks,
            block=MaskBlockOptions.from_proto(proto.mask_block),
            top=MlpOptions.from_proto(proto.top_mlp) if proto.HasField("top_mlp") else None,
            parallel=proto.use_parallel,
        )


class MaskBlock(nn.Module):
    """`relu(norm(W3 (inputs * mask)))` with `mask = W2 relu(W1 embedding)`. (B, width), (B, E) -> (B, hidden)."""

    def __init__(self, width: int, embedding_width: int, options: MaskBlockOptions) -> None:
        super().__init__()
        between = options.mask_width(width)
        self.mask = nn.Sequential(nn.Linear(embedding_width, between), nn.ReLU(), nn.Linear(between, width))
        self.output = nn.Sequential(nn.Linear(width, options.hidden), nn.LayerNorm(options.hidden), nn.ReLU())

    def forward(self, inputs: Tensor, embedding: Tensor) -> Tensor:
        out: Tensor = self.output(inputs * self.mask(embedding))
        return out


class MaskNetModule(nn.Module):
    """Mask blocks over one concatenated embedding. (B, E) -> (B, out_features).

    Source: Wang et al., MaskNet: Introducing Feature-Wise Multiplication to CTR Ranking Models, 2021.
    """

    def __init__(self, width: int, options: MaskNetOptions) -> None:
        super().__init__()
        self._parallel = options.parallel
        self.norm = nn.LayerNorm(width)
        hidden = options.block.hidden
        later = width if options.parallel else hidden
        widths = [width, *[later] * (options.blocks - 1)]
        self.blocks = nn.ModuleList(MaskBlock(own, width, options.block) for own in widths)
        joined = hidden * options.blocks if options.parallel else hidden
        self.top = MLP(joined, options.top) if options.top else None
        self.out_features = options.top.hidden_units[-1] if options.top else joined

    def forward(self, embedding: Tensor) -> Tensor:
        hidden = self.norm(embedding)
        if self._parallel:
            hidden = torch.cat([block(hidden, embedding) for block in self.blocks], dim=1)
        else:
            for block in self.blocks:
                hidden = block(hidden, embedding)
        out: Tensor = hidden if self.top is None else self.top(hidden)
        return out
