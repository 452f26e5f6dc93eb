"""Optimizers from their configuration: fused into the tables' backward pass, and of the dense parameters."""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from fbgemm_gpu.split_table_batched_embeddings_ops_training import WeightDecayMode
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.distributed.optim.apply_optimizer_in_backward import _apply_optimizer_in_backward
from torch.optim import Optimizer
from torchrec.optim import Adagrad, RowWiseAdagrad
from torchrec.optim.optimizers import SGD

from protos.train_pb2 import DenseOptimizer as DenseProto
from protos.train_pb2 import PartOptimizer
from protos.train_pb2 import SparseOptimizer as SparseProto
from recmodels.errors import ModelConfigError, StateError
from recmodels.schedules import Constant, Schedule, create_schedule

log = logging.getLogger(__name__)
Setting = float | bool
Named = tuple[str, nn.Parameter]

_FUSED_ON_CPU = "sgd_optimizer, adagrad_optimizer or rowwise_adagrad_optimizer"


@dataclass(frozen=True, kw_only=True, slots=True)
class SparseOptimizer:
    """An optimizer inside the backward pass of the tables; `momentum1` is its only state, where it has any."""

    kind: type[Optimizer]
    rate: float
    settings: Mapping[str, Setting]
    schedule: Schedule

    def kwargs(self) -> dict[str, Setting]:
        """Keyword arguments for `kind`: a new dict each time, because DistributedModelParallel writes into it."""
        return {"lr": self.rate, **self.settings}

    def attach(self, parameters: Iterable[nn.Parameter]) -> None:
        """Mark the tables for this optimizer; call it before they are sharded."""
        for parameter in parameters:
            _apply_optimizer_in_backward(self.kind, [parameter], self.kwargs())

    def set_rate(self, fused: Optimizer, time: int) -> None:
        """Set the rate of the step after `time` finished steps (or epochs); call it before that step's forward."""
        for group in fused.param_groups:
            group["lr"] = self.schedule.rate(self.rate, time)
        # The tables read param_groups in step() alone, which does nothing else for fused optimizers.
        fused.step()


def sparse_optimizer(config: SparseProto) -> SparseOptimizer:
    """Read the optimizer of the tables; `ModelConfigError` for one that has no fused form on CPU."""
    field = config.WhichOneof("optimizer")
    if field is None:
        raise ModelConfigError(f"sparse_optimizer names no optimizer: write {_FUSED_ON_CPU}")
    chosen = getattr(config, field)
    settings: dict[str, Setting] = {}
    if field == "sgd_optimizer":
        kind: type[Optimizer] = SGD
    elif field == "adagrad_optimizer":
        kind = Adagrad
        if chosen.initial_accumulator_value != 0:
            raise ModelConfigError(
                "initial_accumulator_value of the fused adagrad_optimizer must be 0, got "
                f"{chosen.initial_accumulator_value}: rows start with an empty accumulator"
            )
    elif field == "rowwise_adagrad_optimizer":
        kind = RowWiseAdagrad
        _refuse_decay(chosen.weight_decay, chosen.weight_decay_mode)
    else:
        raise ModelConfigError(f"sparse optimizer {field} has no fused form on CPU: write {_FUSED_ON_CPU}")
    if chosen.gradient_clipping:
        settings |= {"gradient_clipping": True, "max_gradient": chosen.max_gradient}
    return SparseOptimizer(
        kind=kind,
        rate=_learning_rate(field, chosen.lr),
        settings=settings,
        schedule=create_schedule(config) or Constant(),
    )


def _refuse_decay(weight_decay: float, mode: int) -> None:
    """fbgemm's CPU kernels take weight decay and ignore it."""
    if weight_decay and mode == WeightDecayMode.NONE.value:
        log.warning("rowwise_adagrad weight_decay=%s has no effect with weight_decay_mode NONE", weight_decay)
    elif weight_decay:
        raise ModelConfigError(
            f"weight_decay {weight_decay} of rowwise_adagrad_optimizer is not applied on CPU: set it to 0"
        )


class DenseOptimizer:
    """The optimizers of all dense parameters, their schedules, and the moving average of the parameters.

    `step()` runs at the rate of the finished steps so far, so that a restored run continues with the same rates.
    One batch: `begin()`, backward of `scaled(loss)`, and where `count()` says so `step()`.
    """

    def __init__(
        self,
        parameters: Iterable[Named],
        parts: Sequence["Part"],
        ema_decay: float | None,
        accumulate: int = 1,
        scaler: GradScaler | None = None,
    ) -> None:
        self.steps = 0
        self.epochs = 0
        self.accumulated = 0
        """Batches whose gradients wait for the rest of their step: `accumulate` batches make one."""
        self._accumulate = max(1, accumulate)
        self._decay = ema_decay
        self._scaler = scaler or GradScaler("cpu", enabled=False)
        self._named = {name: parameter for name, parameter in parameters if parameter.requires_grad}
        self._average: dict[str, Tensor] = {}
        self._optimizers: list[tuple[Part, Optimizer]] = []
        taken: set[str] = set()
        for part in parts:
            names = [name for name in self._named if name not in taken and part.pattern.search(name)]
            taken.update(names)
            if names:
                self._optimizers.append((part, part.build([self._named[name] for name in names])))
            elif part.pattern.pattern:
                log.warning("part_optimizers regex_pattern=%r takes no parameter", part.pattern.pattern)

    @property
    def batches(self) -> int:
        """Batches so far: the clock of the tables' schedule, whose rows learn from every batch."""
        return self.steps * self._accumulate + self.accumulated

    def begin(self) -> None:
        """Before backward: drop the gradients that a step has used."""
        if not self.accumulated:
            for _, optimizer in self._optimizers:
                optimizer.zero_grad()

    def scaled(self, loss: Tensor) -> Tensor:
        """The loss whose gradients `count()` expects: the loss itself, but in FP16."""
        scaled: Tensor = self._scaler.scale(loss)
        return scaled

    @property
    def scale(self) -> float:
        """How many times too large gradients are between backward and `count()`; asking waits for the device."""
        return float(self._scaler.get_scale())

    def count(self) -> bool:
        """After backward: whether the gradients, now the mean over their batches, are due for clipping and a step."""
        self.accumulated += 1
        if self.accumulated < self._accumulate:
            return False
        self.accumulated = 0
        if self._accumulate > 1:
            for parameter in self._named.values():
                if parameter.grad is not None:
                    parameter.grad.div_(self._accumulate)
        for optimizer in self._due():
            self._scaler.unscale_(optimizer)
        return True

    def step(self) -> None:
        """Apply the gradients at this step's rates, those that overflow in FP16 aside; then let the average follow."""
        for (_, optimizer), rate in zip(self._optimizers, self.rates(), strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rate
        due = self._due()
        for optimizer in due:
            self._scaler.step(optimizer)
        if due:
            self._scaler.update()
        self.steps += 1
        if self._decay is not None:
            self._follow(self._decay)

    def _due(self) -> list[Optimizer]:
        """The optimizers with gradients; of others GradScaler would ask what it has not looked at."""
        return [optimizer for _, optimizer in self._optimizers if any(p.grad is not None for p in _owned(optimizer))]

    def rates(self) -> list[float]:
        """The learning rate of the next step, for each optimizer in use."""
        return [
            part.schedule.rate(part.rate, self.epochs if part.schedule.by_epoch else self.steps)
            for part, _ in self._optimizers
        ]

    def averaged(self) -> dict[str, Tensor]:
        """The moving averages by parameter name; empty without `ema` or before the first step."""
        return dict(self._average)

    @torch.no_grad()
    def _follow(self, decay: float) -> None:
        for name, parameter in self._named.items():
            if name in self._average:
                self._average[name].lerp_(parameter, 1 - decay)
            else:
                self._average[name] = parameter.detach().clone()

    def state(self) -> dict[str, np.ndarray]:
        """Flat arrays for the commit: `steps`, `optimizer/<parameter>/<part>`, `ema/<parameter>`.

        Within a step of several batches also `accumulated` and `gradient/<parameter>`; in FP16 `scaler`, the scale and
        the steps since it changed.
        """
        flat = {"steps": np.array([self.steps, self.epochs], np.int64)}
        for _, optimizer in self._optimizers:
            for name, parameter in self._named.items():
                for part, value in optimizer.state.get(parameter, {}).items():
                    if value is not None:
                        flat[f"optimizer/{name}/{part}"] = value.detach().cpu().numpy().copy()
        flat |= {f"ema/{name}": tensor.cpu().numpy().copy() for name, tensor in self._average.items()}
        if self._scaler.is_enabled():
            scaler = self._scaler.state_dict()
            flat["scaler"] = np.array([scaler["scale"], scaler["_growth_tracker"]], np.float64)
        return flat | self._accumulated_state()

    def _accumulated_state(self) -> dict[str, np.ndarray]:
        if not self.accumulated:
            return {}
        held = {name: parameter.grad for name, parameter in self._named.items() if parameter.grad is not None}
        flat = {f"gradient/{name}": gradient.cpu().numpy().copy() for name, gradient in held.items()}
        return flat | {"accumulated": np.array([self.accumulated], np.int64)}

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Take over a saved state; `StateError` where it is that of other parameters or of another optimizer."""
        self.steps, self.epochs = (int(count) for count in state["steps"])
        # With another number of batches to a step, what was begun is finished by it.
        self.accumulated = min(int(state["accumulated"][0]), self._accumulate - 1) if "accumulated" in state else 0
        saved: dict[str, dict[str, np.ndarray]] = {}
        for key, array in state.items():
            kind, _, rest = key.partition("/")
            if kind == "optimizer":
                name, _, part = rest.rpartition("/")
                saved.setdefault(name, {})[part] = array
            elif kind == "ema":
                self._average[rest] = _tensor_like(self._parameter(rest), array, key)
            elif kind == "gradient":
                parameter = self._parameter(rest)
                parameter.grad = _tensor_like(parameter, array, key)
        for name, parts in saved.items():
            self._load_parameter(name, parts)
        self._load_scale(state.get("scaler"))

    def _load_scale(self, saved: np.ndarray | None) -> None:
        """Go on at the saved scale; gradients that wait, made in another precision, are brought to this one."""
        held = 1.0 if saved is None else float(saved[0])
        if saved is not None and self._scaler.is_enabled():
            mine = {"scale": held, "_growth_tracker": int(saved[1])}
            self._scaler.load_state_dict(self._scaler.state_dict() | mine)
        elif saved is not None:
            log.info("loss scale %s of the commit is left out: this precision needs none", held)
        if self.accumulated and self.scale != held:
            for parameter in self._named.values():
                if parameter.grad is not None:
                    parameter.grad.mul_(self.scale / held)

    def _load_parameter(self, name: str, parts: Mapping[str, np.ndarray]) -> None:
        parameter = self._parameter(name)
        part, optimizer = self._owner(parameter)
        expected = part.state_parts()
        if expected != set(parts):
            raise StateError(
                f"the saved optimizer state of {name!r} is {sorted(parts)}, this optimizer keeps {sorted(expected)}: "
                "configure the optimizer that the commit was trained with, or start a new model_dir"
            )
        for key, array in parts.items():
            tensor = _tensor_like(parameter, array, f"{name}/{key}")
            # Step counters are scalars, which only a fused optimizer keeps beside its parameters.
            fused = tensor.ndim == 0 and optimizer.defaults.get("fused")
            optimizer.state[parameter][key] = tensor.to(parameter.device) if fused else tensor

    def _parameter(self, name: str) -> nn.Parameter:
        if name not in self._named:
            raise StateError(f"the saved optimizer state is of {name!r}, which this model does not have")
        return self._named[name]

    def _owner(self, parameter: nn.Parameter) -> tuple["Part", Optimizer]:
        for part, optimizer in self._optimizers:
            if any(parameter is own for own in _owned(optimizer)):
                return part, optimizer
        raise StateError("a parameter with a saved optimizer state is in no optimizer")


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One optimizer and the parameters, by regular expression anywhere in the name, that it takes."""

    pattern: re.Pattern[str]
    build: Callable[[list[nn.Parameter]], Optimizer]
    rate: float
    schedule: Schedule

    def state_parts(self) -> set[str]:
        """Names of what the optimizer keeps per parameter, found by a step on a throw-away one."""
        probe = nn.Parameter(torch.zeros(1))
        probe.grad = torch.zeros(1)
        optimizer = self.build([probe])
        optimizer.step()
        return {name for name, value in optimizer.state[probe].items() if value is not None}


def dense_optimizer(
    config: DenseProto, parameters: Iterable[Named], accumulate: int = 1, scaler: GradScaler | None = None
) -> DenseOptimizer:
    """Read the dense optimizer: of `part_optimizers` the first whose pattern matches, else the main one.

    `accumulate` batches make one of its steps. `scaler` scales the loss (recmodels/scaling.py).
    """
    schedule = create_schedule(config) or Constant()
    parts = [_part(part, part.regex_pattern, create_schedule(part) or schedule) for part in config.part_optimizers]
    decay = config.ema.decay if config.HasField("ema") else None
    if decay is not None and not 0 <= decay < 1:
        raise ModelConfigError(f"decay of ema must lie in [0, 1), got {decay}")
    return DenseOptimizer(parameters, [*parts, _part(config, "", schedule)], decay, accumulate, scaler)


def _part(config: DenseProto | PartOptimizer, pattern: str, schedule: Schedule) -> Part:
    field = config.WhichOneof("optimizer")
    if field is None:
        raise ModelConfigError(
            "dense_optimizer (or one of its part_optimizers) names no optimizer: write adam_optimizer {}"
        )
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ModelConfigError(
            f"regex_pattern {pattern!r} of part_optimizers is no regular expression: {error}"
        ) from None
    rate = _learning_rate(field, getattr(config, field).lr)
    return Part(pattern=compiled, build=_builder(config, field), rate=rate, schedule=schedule)


def _builder(config: DenseProto | PartOptimizer, field: str) -> Callable[[list[nn.Parameter]], Optimizer]:
    """A constructor of the torch optimizer with the settings of the configuration."""
    if field == "sgd_optimizer":
        sgd = config.sgd_optimizer
        return lambda parameters: torch.optim.SGD(
            parameters, sgd.lr, sgd.momentum, sgd.dampening, sgd.weight_decay, sgd.nesterov, fused=sgd.fused or None
        )
    if field == "adagrad_optimizer":
        grad = config.adagrad_optimizer
        return lambda parameters: torch.optim.Adagrad(
            parameters,
            grad.lr,
            weight_decay=grad.weight_decay,
            initial_accumulator_value=grad.initial_accumulator_value,
            eps=grad.eps,
            fused=grad.fused or None,
        )
    if field in ("adam_optimizer", "adamw_optimizer"):
        adam = getattr(config, field)
        kind = torch.optim.Adam if field == "adam_optimizer" else torch.optim.AdamW
        return lambda parameters: kind(
            parameters,
            adam.lr,
            (adam.beta1, adam.beta2),
            adam.eps,
            adam.weight_decay,
            adam.amsgrad,
            fused=adam.fused or None,
        )
    if field == "adadelta_optimizer":
        delta = config.adadelta_optimizer
        return lambda parameters: torch.optim.Adadelta(parameters, delta.lr, delta.rho, delta.eps, delta.weight_decay)
    prop = config.rmsprop_optimizer
    return lambda parameters: torch.optim.RMSprop(parameters, prop.lr, prop.alpha, prop.eps, prop.weight_decay)


def _learning_rate(field: str, rate: float) -> float:
    if rate < 0:
        raise ModelConfigError(f"lr of {field} must not be negative, got {rate}")
    return rate


def _owned(optimizer: Optimizer) -> list[nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _tensor_like(parameter: nn.Parameter, array: np.ndarray, key: str) -> Tensor:
    """A tensor of the array where the parameter lives; a scalar, of no shape to check, on the CPU."""
    tensor = torch.from_numpy(array.copy())
    if tensor.ndim == 0:
        return tensor
    if tensor.shape != parameter.shape:
        raise StateError(f"saved state {key!r} has shape {tuple(tensor.shape)}, the parameter {tuple(parameter.shape)}")
    return tensor.to(parameter.device)
