"""Which device a rank computes on, from what a machine may have."""

import pytest
import torch

from protos.train_pb2 import TrainConfig
from trainer.__main__ import run
from trainer.devices import CPU, Machine, allow_tf32, choose, settle
from trainer.errors import TrainerConfigError

TWO = Machine(gpus=2, built=True, kernels="cuda", nccl=True)
LACKING = [
    (Machine(), "torch is its CPU build"),
    (Machine(built=True, kernels="cuda", nccl=True), "torch sees no GPU"),
    (Machine(gpus=2, built=True, nccl=True), "fbgemm_gpu is its cpu build"),
    (Machine(gpus=2, built=True, kernels="cuda"), "without NCCL"),
]


@pytest.mark.parametrize("wanted", ["auto", "cuda"])
def test_each_rank_has_a_gpu_of_its_own(wanted: str) -> None:
    found = [choose(wanted, TWO, local_rank=rank, local_world=2) for rank in (0, 1)]
    assert found == [torch.device("cuda", 0), torch.device("cuda", 1)]


def test_cpu_can_be_forced() -> None:
    assert choose("cpu", TWO, local_rank=7, local_world=8) == CPU


@pytest.mark.parametrize(("machine", "reason"), LACKING)
def test_what_is_lacking_is_named_where_cuda_is_asked_for(machine: Machine, reason: str) -> None:
    with pytest.raises(TrainerConfigError, match=rf"--device cuda: .*{reason}; .*or pass --device cpu"):
        choose("cuda", machine)


@pytest.mark.parametrize(("machine", "reason"), LACKING)
def test_without_cuda_the_cpu_trains_and_gpus_that_stand_idle_are_told(
    machine: Machine, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert choose("auto", machine) == CPU
    assert (reason in caplog.text) == (machine.gpus > 0)


@pytest.mark.parametrize("wanted", ["auto", "cuda"])
def test_more_ranks_than_gpus_are_refused_on_every_rank(wanted: str) -> None:
    for rank in range(3):
        with pytest.raises(TrainerConfigError, match=r"3 ranks .* 2 GPU\(s\).*at most 2, or pass --device cpu"):
            choose(wanted, TWO, local_rank=rank, local_world=3)


def test_a_device_that_nobody_knows_is_refused() -> None:
    with pytest.raises(TrainerConfigError, match="'tpu' is none of auto, cpu, cuda"):
        choose("tpu", TWO)


def test_tf32_is_allowed_as_configured_and_left_alone_on_the_cpu() -> None:
    def allowed() -> tuple[bool, bool]:
        return torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32

    before = allowed()
    try:
        settle(CPU, TrainConfig(cudnn_allow_tf32=not before[0], cuda_matmul_allow_tf32=not before[1]))
        assert allowed() == before
        allow_tf32(TrainConfig())
        assert allowed() == (True, False)
        allow_tf32(TrainConfig(cudnn_allow_tf32=False, cuda_matmul_allow_tf32=True))
        assert allowed() == (False, True)
    finally:
        allow_tf32(TrainConfig(cudnn_allow_tf32=before[0], cuda_matmul_allow_tf32=before[1]))


@pytest.mark.skipif(not Machine.found().lacking, reason="this machine has CUDA")
def test_a_trainer_that_is_to_use_cuda_ends_with_one_line_where_there_is_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["no.config", "--device", "cuda", "--log-level", "error"], {}) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1 and "--device cuda: torch" in told[0]
