"""The dense half of a configured model, without its embedding tables in memory."""

import torch
from torch import nn

from features import FeatureSet, create_features
from protos.pipeline_pb2 import EasyRecConfig
from recmodels.registry import create_model
from recmodels.wrappers import DenseHalf


def build_dense_half(config: EasyRecConfig, features: FeatureSet | None = None) -> nn.Module:
    """Build the model with its tables on the meta device; what is left has its own parameters.

    Without `features` they are made from the files that the configuration names on this machine.
    """
    model = create_model(config, features or create_features(config), device=torch.device("meta"))
    return DenseHalf(model).eval()
