"""Learning rates as pure functions of the step (or the epoch): what a run restored at a step continues with."""

import bisect
import math
from dataclasses import dataclass
from typing import Protocol

from protos.train_pb2 import DenseOptimizer, PartOptimizer, SparseOptimizer
from recmodels.errors import ModelConfigError


class Schedule(Protocol):
    """A learning rate over time."""

    @property
    def by_epoch(self) -> bool:
        """Whether time counts in epochs, not in steps."""

    def rate(self, base: float, time: int) -> float:
        """The rate of the step after `time` finished ones, given the optimizer's own rate; a base of 0 stays 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Constant:
    """The optimizer's own rate, always."""

    by_epoch: bool = False

    def rate(self, base: float, time: int) -> float:
        return base


@dataclass(frozen=True, kw_only=True, slots=True)
class Warmup:
    """A straight line from `start` to the base rate over `size` steps, before anything else."""

    start: float = 0.0
    size: int = 0

    def rate(self, base: float, time: int) -> float:
        return self.start + (base - self.start) * time / self.size


@dataclass(frozen=True, kw_only=True, slots=True)
class ExponentialDecay:
    """`base * factor ^ (t / size)` after the warm-up, not below `lowest`; by whole powers if `staircase`."""

    size: int
    factor: float = 0.95
    staircase: bool = True
    warmup: Warmup = Warmup()
    lowest: float = 0.0
    by_epoch: bool = False

    def __post_init__(self) -> None:
        _positive("decay_size of exponential_decay_learning_rate", self.size)

    def rate(self, base: float, time: int) -> float:
        if base == 0:
            return 0.0
        if time < self.warmup.size:
            return self.warmup.rate(base, time)
        power = (time - self.warmup.size) / self.size
        return max(base * self.factor ** (math.floor(power) if self.staircase else power), self.lowest)


@dataclass(frozen=True, kw_only=True, slots=True)
class ManualSteps:
    """`rates[i]` once more than `sizes[i]` steps are done; before, the base rate (`warmup`: a line to `rates[0]`)."""

    sizes: tuple[int, ...]
    rates: tuple[float, ...]
    warmup: bool = False
    by_epoch: bool = False

    def __post_init__(self) -> None:
        if not self.sizes or len(self.sizes) != len(self.rates) or list(self.sizes) != sorted(set(self.sizes)):
            raise ModelConfigError(
                "manual_step_learning_rate needs ascending schedule_sizes with one of learning_rates each, got "
                f"{list(self.sizes)} and {list(self.rates)}"
            )

    def rate(self, base: float, time: int) -> float:
        if base == 0:
            return 0.0
        index = bisect.bisect_left(self.sizes, time)
        if index > 0:
            return self.rates[index - 1]
        return base + (self.rates[0] - base) * time / self.sizes[0] if self.warmup and self.sizes[0] else base


@dataclass(frozen=True, kw_only=True, slots=True)
class CosineAnnealing:
    """Half a cosine from the base rate to `lowest` over `length` steps after the warm-up, and `lowest` from then on.

    Source: Loshchilov and Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, 2017, equation 5.
    """

    length: int
    lowest: float = 0.0
    warmup: Warmup = Warmup()
    by_epoch: bool = False

    def __post_init__(self) -> None:
        _positive("T_max of cosine_annealing_learning_rate", self.length)

    def rate(self, base: float, time: int) -> float:
        if base == 0:
            return 0.0
        if time < self.warmup.size:
            return self.warmup.rate(base, time)
        return _cosine(base, self.lowest, min(time - self.warmup.size, self.length) / self.length)


@dataclass(frozen=True, kw_only=True, slots=True)
class CosineRestarts:
    """`CosineAnnealing` that starts over after `first` steps, each period `factor` times as long as the one before."""

    first: int
    factor: int = 1
    lowest: float = 0.0
    warmup: Warmup = Warmup()
    by_epoch: bool = False

    def __post_init__(self) -> None:
        _positive("T_0 of cosine_annealing_warm_restarts_learning_rate", self.first)
        _positive("T_mult of cosine_annealing_warm_restarts_learning_rate", self.factor)

    def rate(self, base: float, time: int) -> float:
        if base == 0:
            return 0.0
        if time < self.warmup.size:
            return self.warmup.rate(base, time)
        position, period = time - self.warmup.size, self.first
        if self.factor == 1:
            position %= period
        while position >= period:
            position, period = position - period, period * self.factor
        return _cosine(base, self.lowest, position / period)


def create_schedule(config: DenseOptimizer | PartOptimizer | SparseOptimizer) -> Schedule | None:
    """The schedule that an optimizer's config names; None if it names none."""
    kind = config.WhichOneof("learning_rate")
    if kind is None:
        return None
    if kind == "exponential_decay_learning_rate":
        decay = config.exponential_decay_learning_rate
        return ExponentialDecay(
            size=decay.decay_size,
            factor=decay.decay_factor,
            staircase=decay.staircase,
            warmup=Warmup(start=decay.warmup_learning_rate, size=decay.warmup_size),
            lowest=decay.min_learning_rate,
            by_epoch=decay.by_epoch,
        )
    if kind == "manual_step_learning_rate":
        steps = config.manual_step_learning_rate
        sizes, rates = tuple(steps.schedule_sizes), tuple(steps.learning_rates)
        return ManualSteps(sizes=sizes, rates=rates, warmup=steps.warmup, by_epoch=steps.by_epoch)
    if kind == "cosine_annealing_learning_rate":
        cosine = config.cosine_annealing_learning_rate
        warmup = Warmup(start=cosine.warmup_learning_rate, size=cosine.warmup_size)
        return CosineAnnealing(
            length=cosine.T_max, lowest=cosine.min_learning_rate, warmup=warmup, by_epoch=cosine.by_epoch
        )
    if kind == "cosine_annealing_warm_restarts_learning_rate":
        restarts = config.cosine_annealing_warm_restarts_learning_rate
        return CosineRestarts(
            first=restarts.T_0,
            factor=restarts.T_mult,
            lowest=restarts.min_learning_rate,
            warmup=Warmup(start=restarts.warmup_learning_rate, size=restarts.warmup_size),
            by_epoch=restarts.by_epoch,
        )
    return Constant()


def _cosine(base: float, lowest: float, progress: float) -> float:
    return lowest + (base - lowest) * 0.5 * (1 + math.cos(math.pi * progress))


def _positive(name: str, value: int) -> None:
    if value < 1:
        raise ModelConfigError(f"{name} must be set to at least 1, got {value}")
