"""Two ranks, one of which is killed: the job ends, and a restart goes on to what a run without kills leaves."""

import pytest

from benchmarks.faults.harness import LEAVES_S, Kill, Place, Result, plan, points, run_to_end, start_ranks
from benchmarks.faults.processes import Zygote
from benchmarks.faults.stage import Stage
from tests.faults.conftest import Bench

KILLS_PER_RUN = 6


@pytest.fixture(scope="module")
def expected(zygote: Zygote, stage: Stage) -> Result:
    return run_to_end(zygote, stage, stage.folder.parent / "two-expected", [], ranks=2)


@pytest.fixture(scope="module")
def reached(zygote: Zygote, stage: Stage) -> dict[Place, int]:
    return points(zygote, stage, stage.folder.parent / "two-points", ranks=2)


def test_two_ranks_account_for_every_row(expected: Result, stage: Stage) -> None:
    counts = dict(expected.accounting)
    assert counts.pop("received") == stage.rows == sum(counts.values())


def test_each_rank_has_its_own_points_and_rank_0_those_of_the_commit(reached: dict[Place, int]) -> None:
    by_rank = [{point for module, of, point in reached if (module, of) == ("trainer", rank)} for rank in (0, 1)]
    assert "train.rows_updated" in by_rank[0] & by_rank[1] and "commit.blob_synced" in by_rank[0] & by_rank[1]
    assert "commit.manifest_linked" in by_rank[0] - by_rank[1]


def test_survivor_says_that_another_rank_is_gone(bench: Bench, stage: Stage) -> None:
    kill = Kill(module="trainer", rank=0, point="train.rows_updated", nth=5)
    log = bench.folder / "ranks.log"
    ranks = start_ranks(bench.zygote, str(stage.config(bench.folder / "killed")), [kill.environment, {}], log=log)
    assert [process.wait(LEAVES_S) for process in ranks] == [-9, 1]
    last = ranks[1].verdict()
    assert last.startswith("trainer: ") and "rank 1 lost another rank" in last


@pytest.mark.timeout(600)
def test_killed_ranks_end_as_the_run_without_kills(
    zygote: Zygote, stage: Stage, expected: Result, reached: dict[Place, int]
) -> None:
    ranks = {place: count for place, count in reached.items() if place[0] == "trainer"}
    kills = plan(ranks, kills=KILLS_PER_RUN, seed=5)
    result = run_to_end(zygote, stage, stage.folder.parent / "two-killed", kills, ranks=2)
    assert result.kills >= KILLS_PER_RUN // 2, kills
    assert result.same_state(expected), kills
