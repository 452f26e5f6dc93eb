"""Where a rank computes: decided once, at the entry point, from what the machine has, and passed down from there."""

import logging
from dataclasses import dataclass

import torch
import torch.distributed as dist

from protos.train_pb2 import TrainConfig
from trainer.errors import TrainerConfigError

logger = logging.getLogger(__name__)

CPU = torch.device("cpu")
WANTED = ("auto", "cpu", "cuda")


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """What torch and fbgemm find to compute on; `kernels` is the variant of fbgemm_gpu, cpu or cuda."""

    gpus: int = 0
    built: bool = False  # torch itself, for CUDA
    kernels: str = "cpu"
    nccl: bool = False

    @classmethod
    def found(cls) -> "Machine":
        """This machine."""
        built, gpus = torch.version.cuda is not None, torch.cuda.device_count() if torch.cuda.is_available() else 0
        if not gpus:
            return cls(built=built)
        # Importing it takes a second, and where there is no GPU it matters to nobody.
        import fbgemm_gpu

        return cls(gpus=gpus, built=built, kernels=fbgemm_gpu.__variant__, nccl=dist.is_nccl_available())

    @property
    def lacking(self) -> str:
        """Why this machine cannot train on CUDA; empty where it can."""
        if not self.built:
            return "torch is its CPU build"
        if not self.gpus:
            return "torch sees no GPU"
        if self.kernels != "cuda":
            return f"fbgemm_gpu is its {self.kernels} build"
        return "" if self.nccl else "torch is built without NCCL"


def choose(wanted: str, machine: Machine, *, local_rank: int = 0, local_world: int = 1) -> torch.device:
    """The device of rank `local_rank` of `local_world` on this machine: a GPU of its own where there are any, else CPU.

    >>> choose("auto", Machine(gpus=2, built=True, kernels="cuda", nccl=True), local_rank=1, local_world=2)
    device(type='cuda', index=1)
    >>> choose("auto", Machine())
    device(type='cpu')
    """
    if wanted not in WANTED:
        raise TrainerConfigError(f"device {wanted!r} is none of {', '.join(WANTED)}")
    lacking = machine.lacking
    if wanted == "cuda" and lacking:
        raise TrainerConfigError(
            f"--device cuda: {lacking}; install headrace for CUDA as README.md says, or pass --device cpu"
        )
    if wanted == "cpu" or lacking:
        if wanted == "auto" and machine.gpus:
            logger.warning("%d GPU(s) are not used: %s; pass --device cpu to say so", machine.gpus, lacking)
        return CPU
    if local_world > machine.gpus:
        raise TrainerConfigError(
            f"{local_world} ranks on this machine have {machine.gpus} GPU(s), and each needs one: start at most "
            f"{machine.gpus}, or pass --device cpu"
        )
    return torch.device("cuda", local_rank)


def settle(device: torch.device, config: TrainConfig) -> None:
    """Make `device` the one that this process computes on, before anything does, with the TF32 that is configured."""
    if device.type == "cpu":
        return
    torch.cuda.set_device(device)
    allow_tf32(config)


def allow_tf32(config: TrainConfig) -> None:
    """Let matrix products of float32 on CUDA be rounded to TF32, as configured; of the whole process."""
    # torch's newer fp32_precision makes every later look at these flags, some in torch itself, raise.
    torch.backends.cudnn.allow_tf32 = config.cudnn_allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = config.cuda_matmul_allow_tf32
