"""Fields of equal width from a sparse group and, mapped to the same width, a dense one."""

import torch
from torch import Tensor, nn

from recmodels.base_model import Groups
from recmodels.errors import ModelConfigError
from recmodels.modules.interaction import equal_width
from recmodels.modules.mlp import MLP, MlpOptions


class FieldTokens(nn.Module):
    """Groups to (B, fields, width): the mapped dense group first, where there is one, then each sparse feature.

    The groups are named `sparse` and `dense`; a single group of any name is the sparse one.
    """

    def __init__(self, groups: Groups, dense_mlp: MlpOptions | None) -> None:
        super().__init__()
        names = groups.group_names()
        self._sparse = names[0] if len(names) == 1 else "sparse"
        if not groups.has_group(self._sparse):
            raise ModelConfigError(f"feature groups must be named sparse and dense, or be only one, got {names}")
        dims = groups.group_dims(self._sparse)
        self.width, self._sparse_fields = equal_width(dims, group=self._sparse), len(dims)
        self.dense: MLP | None = None
        if len(names) > 1 and groups.has_group("dense"):
            self.dense = self._dense_mlp(groups.group_total_dim("dense"), dense_mlp)
        self.fields = self._sparse_fields + (self.dense is not None)

    def _dense_mlp(self, width: int, options: MlpOptions | None) -> MLP:
        if options is None or options.hidden_units[-1] != self.width:
            got = "no dense_mlp" if options is None else f"{options.hidden_units[-1]}"
            raise ModelConfigError(
                f"the last of hidden_units in dense_mlp must be {self.width}, the width of the sparse features, "
                f"so that the dense group can interact with them; got {got}"
            )
        return MLP(width, options)

    def forward(self, groups: dict[str, Tensor]) -> Tensor:
        fields = groups[self._sparse].reshape(-1, self._sparse_fields, self.width)
        if self.dense is None:
            return fields
        return torch.cat([self.dense(groups["dense"]).unsqueeze(1), fields], dim=1)
