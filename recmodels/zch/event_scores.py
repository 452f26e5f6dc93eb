"""Event time as fbgemm's operator takes it: positive int32 scores, higher ones seen later."""

import torch
from torch import Tensor, nn
from torchrec.sparse.jagged_tensor import JaggedTensor

_MIDDLE = 1 << 30
_MARGIN = 1 << 29
_LAST = (1 << 31) - 1


class EventClock:
    """Milliseconds since the epoch as scores around the present, coarser than a millisecond for ages over three days.

    A score is (ms // unit) - base, within [1, 2^31 - 1]: what is older or newer than the range has its first or last.
    `ttl_ms` is at most 2^28 units, so that everything has expired before it falls out of the range.
    """

    def __init__(self, ttl_ms: int) -> None:
        self.unit = 1 + (max(0, ttl_ms) >> 28)
        self._base = -_MIDDLE

    def move(self, now_ms: int) -> bool:
        """Bring `now_ms` back to the middle of the range if it has come near an end; whether scores have changed."""
        at = now_ms // self.unit - self._base
        if _MARGIN <= at <= _LAST - _MARGIN:
            return False
        self._base = now_ms // self.unit - _MIDDLE
        return True

    def score(self, ms: int) -> int:
        return min(max(1, ms // self.unit - self._base), _LAST)

    def scores(self, ms: Tensor) -> Tensor:
        """The same of int64 times, int32."""
        return (torch.div(ms, self.unit, rounding_mode="floor") - self._base).clamp(1, _LAST).to(torch.int32)


class GivenScores(nn.Module):
    """Stands where TorchRec has its eviction module, which would read hours off the wall clock."""

    def __init__(self) -> None:
        super().__init__()
        self.score = 1
        self.threshold = 1

    def forward(self, feature: JaggedTensor) -> tuple[Tensor, int]:
        """The score of each id, and the one below which rows give way."""
        return torch.full_like(feature.values(), self.score, dtype=torch.int32), self.threshold
