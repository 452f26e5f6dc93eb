"""Two ranks, one of which is killed: the job ends, and a restart goes on to what a run without kills leaves."""

import signal
from pathlib import Path

import pytest

from benchmarks.faults.harness import Result
from benchmarks.faults.processes import Process
from benchmarks.faults.stage import Stage
from stream.broker import free_port
from tests.faults.conftest import Bench

LEAVES_S = 90
"""What a rank may take to notice that the other is gone; its own limit is 60 s, a closed connection takes none."""


def start(bench: Bench, config: Path, kills: dict[int, str]) -> list[Process]:
    port = str(free_port())
    return [
        bench.start(
            "trainer",
            config,
            RANK=str(rank),
            LOCAL_RANK=str(rank),
            WORLD_SIZE="2",
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=port,
            HEADRACE_FAULT=kills.get(rank, ""),
        )
        for rank in range(2)
    ]


def train(bench: Bench, config: Path) -> None:
    for process in start(bench, config, {}):
        assert process.wait(LEAVES_S) == 0, process.text()


@pytest.fixture(scope="module")
def expected(zygote, stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Result:
    bench = Bench(zygote=zygote, folder=tmp_path_factory.mktemp("two"))
    config = stage.config(bench.folder / "expected")
    train(bench, config)
    return bench.result(config)


def test_two_ranks_account_for_every_row(expected: Result, stage: Stage) -> None:
    counts = dict(expected.accounting)
    assert counts.pop("received") == stage.rows == sum(counts.values())


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("rank", "kill"),
    [
        (0, "train.rows_updated:5"),
        (1, "train.rows_updated:5"),
        (1, "train.sealed:3"),
        (0, "train.durable:4"),
        (1, "commit.blob_synced:3"),
        (0, "commit.manifest_linked:3"),
    ],
)
def test_job_ends_with_one_rank_and_goes_on_after_a_restart(
    rank: int, kill: str, bench: Bench, stage: Stage, expected: Result
) -> None:
    config = stage.config(bench.folder / "killed")
    processes = start(bench, config, {rank: kill})
    killed, survivor = processes[rank], processes[1 - rank]
    assert killed.wait(LEAVES_S) == -signal.SIGKILL, killed.text()
    assert survivor.wait(LEAVES_S) == 1, survivor.text()
    last = survivor.verdict()
    assert last.startswith("trainer: ")
    assert f"rank {1 - rank} lost another rank" in last
    train(bench, config)
    assert bench.result(config).same_state(expected)
