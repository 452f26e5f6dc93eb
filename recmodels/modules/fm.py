"""Second-order interactions in linear time."""

from torch import Tensor, nn


class FactorizationMachine(nn.Module):
    """Sum of all pairwise products: half of (square of sum minus sum of squares). (B, N, D) -> (B, D).

    Source: Rendle, Factorization Machines, 2010, lemma 3.1; kept per dimension, not summed over D.
    """

    def forward(self, fields: Tensor) -> Tensor:
        return 0.5 * (fields.sum(dim=1).square() - fields.square().sum(dim=1))
