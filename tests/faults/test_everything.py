"""Two ranks, publisher, replica and a real Apache Kafka: each is killed once while rows arrive, and nothing tells."""

import shutil
from pathlib import Path

import pytest

from benchmarks.broker import KAFKA, ApacheKafka
from benchmarks.faults.mixed import PARTS, ROWS_PER_KILL, VICTIMS, run_mixed
from benchmarks.faults.processes import Zygote
from benchmarks.faults.stage import prepare


@pytest.mark.kafka
@pytest.mark.timeout(900)
@pytest.mark.skipif(not KAFKA.exists() or shutil.which("java") is None, reason="no Apache Kafka, or no java")
def test_any_process_may_die_and_nothing_is_lost_or_learnt_twice(zygote: Zygote, tmp_path: Path) -> None:
    kills = len(VICTIMS)
    stage = prepare(tmp_path / "data", rows=ROWS_PER_KILL * (kills + 1), parts=PARTS)
    with ApacheKafka(tmp_path / "kafka") as kafka:
        mixed = run_mixed(zygote, kafka, stage, tmp_path, kills=kills, seed=11)
    assert mixed.killed == dict.fromkeys(VICTIMS, 1)
    assert mixed.found.accounting["received"] == stage.rows
    assert mixed.found.same_state(mixed.expected)
    assert not mixed.torn and not mixed.strange and mixed.versions_answered > 1
    assert mixed.served == mixed.published
