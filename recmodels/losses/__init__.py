"""Losses by the name that a configuration gives them; each also says which predictions it makes of a model's output."""

from recmodels.losses.base import Loss, weighted_mean
from recmodels.losses.create import create_loss

__all__ = ["Loss", "create_loss", "weighted_mean"]
