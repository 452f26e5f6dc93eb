"""Run by torchrun from test_models.py: train every example on two ranks, one of which lacks rows once."""

import importlib.util
import logging
import sys
import warnings
from pathlib import Path
from types import ModuleType

import torch
import torch.distributed as dist

from protos.boundary import leave
from recmodels.wrappers import DenseHalf


def load_contract() -> ModuleType:
    path = Path(__file__).with_name("test_models.py")
    spec = importlib.util.spec_from_file_location("contract", path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["contract"] = module
    spec.loader.exec_module(module)
    return module


def differing(state: dict[str, torch.Tensor]) -> list[str]:
    """Names of the parameters that the two ranks disagree on; running statistics are each rank's own."""
    names = []
    for name, own in state.items():
        both = [torch.empty_like(own) for _ in range(2)]
        dist.all_gather(both, own.contiguous())
        if not name.endswith(("running_mean", "running_var", "num_batches_tracked")) and not torch.equal(*both):
            names.append(name)
    return names


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    dist.init_process_group("gloo")
    rank, contract = dist.get_rank(), load_contract()
    wrong = []
    for name, texts in contract.EXAMPLES.items():
        for text in texts:
            learner = contract.trained(contract.config_of(text), dist.group.WORLD)
            torch.manual_seed(rank)
            for step in range(4):
                learner.step(contract.rows(0 if (rank, step) == (1, 2) else 32, 2 * step + rank))
            state = DenseHalf(learner.model).state_dict()
            wrong += [f"{name}: {parameter} differs" for parameter in differing(state)]
            wrong += [f"{name}: {key} is not finite" for key, value in state.items() if not value.isfinite().all()]
    dist.barrier()
    dist.destroy_process_group()
    sys.stderr.write("\n".join(wrong))
    leave(int(bool(wrong)))


if __name__ == "__main__":
    main()
