"""Negative samples and sample masks: more rows or items for a batch, drawn from tables in memory."""

from features.sampling.draw import Draw
from features.sampling.maker import BatchMaker, open_maker
from features.sampling.options import SamplerOptions

__all__ = ["BatchMaker", "Draw", "SamplerOptions", "open_maker"]
