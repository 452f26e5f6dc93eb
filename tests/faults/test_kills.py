"""A few dozen kills -9 of real processes: what is left is bit for bit what a run without kills leaves."""

import pytest

from benchmarks.faults.harness import Kill, Place, Result, plan, points, run_to_end
from benchmarks.faults.processes import Zygote
from benchmarks.faults.stage import Stage, prepare

KILLS_PER_RUN = 8


@pytest.fixture(scope="module")
def expected(zygote: Zygote, stage: Stage) -> Result:
    return run_to_end(zygote, stage, stage.folder.parent / "expected", [])


@pytest.fixture(scope="module")
def reached(zygote: Zygote, stage: Stage) -> dict[Place, int]:
    return points(zygote, stage, stage.folder.parent / "points")


def test_run_without_kills_accounts_for_every_row(expected: Result, stage: Stage) -> None:
    counts = dict(expected.accounting)
    assert counts.pop("received") == stage.rows == sum(counts.values())
    assert all(counts[name] > 0 for name in ("trained", "late", "dead_lettered", "filtered", "duplicate"))
    assert len(expected.letters) == counts["dead_lettered"]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(4))
def test_killed_runs_end_as_the_run_without_kills(
    seed: int, zygote: Zygote, stage: Stage, expected: Result, reached: dict[Place, int]
) -> None:
    kills = plan(reached, kills=KILLS_PER_RUN, seed=seed)
    result = run_to_end(zygote, stage, stage.folder.parent / f"run-{seed}", kills)
    assert result.kills >= KILLS_PER_RUN // 2, kills
    assert result.same_state(expected), kills


def test_harness_notices_a_lost_batch(zygote: Zygote, stage: Stage, expected: Result) -> None:
    shorter = prepare(stage.folder.parent / "shorter", rows=stage.rows - 64)
    result = run_to_end(zygote, shorter, stage.folder.parent / "lost", [])
    assert not result.same_state(expected)


def test_kill_happens_at_the_point(zygote: Zygote, stage: Stage) -> None:
    kill = Kill(module="trainer", point="train.rows_updated", nth=3)
    assert zygote.run("trainer", [str(stage.config(stage.folder.parent / "at"))], kill.environment) == -9
