"""The dense half of a configured model, without its embedding tables in memory."""

import torch
from torch import nn

from features import create_features
from protos.pipeline_pb2 import EasyRecConfig
from recmodels.registry import create_model
from recmodels.wrappers import DenseHalf


def build_dense_half(config: EasyRecConfig) -> nn.Module:
    """Build the model with its tables on the meta device; what is left has its own parameters."""
    model = create_model(config, create_features(config), device=torch.device("meta"))
    return DenseHalf(model).eval()
