"""Two ranks, one of which is killed: the job ends, and a restart goes on to what a run without kills leaves."""

import signal

import pytest

from benchmarks.faults.harness import Result
from benchmarks.faults.stage import Stage
from tests.faults.conftest import Bench

LEAVES_S = 90
"""What a rank may take to notice that the other is gone; its own limit is 60 s, a closed connection takes none."""


def test_two_ranks_account_for_every_row(expected_of_two: Result, stage: Stage) -> None:
    counts = dict(expected_of_two.accounting)
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
    rank: int, kill: str, bench: Bench, stage: Stage, expected_of_two: Result
) -> None:
    config = stage.config(bench.folder / "killed")
    processes = bench.start_two(config, kills={rank: kill})
    killed, survivor = processes[rank], processes[1 - rank]
    assert killed.wait(LEAVES_S) == -signal.SIGKILL, killed.text()
    assert survivor.wait(LEAVES_S) == 1, survivor.text()
    last = survivor.verdict()
    assert last.startswith("trainer: ")
    assert f"rank {1 - rank} lost another rank" in last
    bench.train_two(config)
    assert bench.result(config).same_state(expected_of_two)
