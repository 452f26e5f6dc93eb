"""Batch normalisation that a rank with one row or none can take part in."""

import torch.nn.functional as F
from torch import Tensor, nn


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation over all axes but the last; (B, C) or (B, T, C).

    Fewer than two rows have no variance: such a batch is normalised by the running statistics and leaves them alone,
    so that a rank without data can still join the step (`nn.BatchNorm1d` raises there).
    """

    def forward(self, input: Tensor) -> Tensor:
        rows = input.reshape(-1, input.shape[-1])
        if self.training and rows.shape[0] < 2:
            out = F.batch_norm(rows, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps)
        else:
            out = super().forward(rows)
        return out.reshape(input.shape)
