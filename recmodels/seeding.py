"""Initial parameters that depend on a seed and a parameter's place in the model, and on nothing else."""

import hashlib

import torch
from torch import nn

from recmodels.errors import ModelConfigError

_EMBEDDINGS = "embedding_group"


def seed_parameters(model: nn.Module, seed: int) -> None:
    """Draw every dense parameter anew, from a generator seeded by `seed` and the name of the module that owns it.

    So replicas and ranks agree, whatever was built before, and adding a layer leaves the others' start alone. The
    embedding layer is left as it is: its tables may be sharded, and seed themselves.
    """
    with torch.random.fork_rng(devices=[]):
        for name, module in model.named_modules():
            if name.split(".")[0] == _EMBEDDINGS or not any(True for _ in module.parameters(recurse=False)):
                continue
            reset = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
            if reset is None:
                raise ModelConfigError(
                    f"module {name or 'model'!r} ({type(module).__name__}) owns parameters but has no "
                    "reset_parameters(): add one, so that every rank starts from the same values"
                )
            torch.manual_seed(_key(seed, name))
            reset()


def _key(seed: int, name: str) -> int:
    digest = hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
