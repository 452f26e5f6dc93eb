"""Losses from their configuration."""

from protos.metric_pb2 import LossConfig
from recmodels.errors import ModelConfigError
from recmodels.losses.base import Loss
from recmodels.losses.binary import BinaryCrossEntropy, BinaryFocal
from recmodels.losses.categorical import JointRankingCalibration, SoftmaxCrossEntropy
from recmodels.losses.regression import SquaredError


def create_loss(config: LossConfig, num_class: int) -> Loss:
    """Build the loss that `config` names, refusing a `num_class` that it cannot work with."""
    kind = config.WhichOneof("loss")
    if kind == "binary_cross_entropy":
        _need(kind, num_class, num_class == 1, "1")
        return BinaryCrossEntropy(label_smoothing=config.binary_cross_entropy.label_smoothing)
    if kind == "binary_focal_loss":
        _need(kind, num_class, num_class == 1, "1")
        return BinaryFocal(gamma=config.binary_focal_loss.gamma, alpha=config.binary_focal_loss.alpha)
    if kind == "l2_loss":
        _need(kind, num_class, num_class == 1, "1")
        return SquaredError()
    if kind == "softmax_cross_entropy":
        _need(kind, num_class, num_class > 1, "2 or more")
        return SoftmaxCrossEntropy(label_smoothing=config.softmax_cross_entropy.label_smoothing)
    if kind == "jrc_loss":
        _need(kind, num_class, num_class == 2, "2")
        return JointRankingCalibration(session=config.jrc_loss.session_name, alpha=config.jrc_loss.alpha)
    named = config.WhichOneof("sid_loss") or "an empty losses entry"
    raise ModelConfigError(
        f"{named} is not a loss of ranking models: write one of binary_cross_entropy, softmax_cross_entropy, l2_loss, "
        "jrc_loss, binary_focal_loss"
    )


def _need(kind: str, num_class: int, fits: bool, wanted: str) -> None:
    if not fits:
        raise ModelConfigError(f"{kind} needs num_class {wanted}, got {num_class}: set num_class in model_config")
