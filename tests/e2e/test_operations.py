"""What an operator does to a running loop: replay, roll back, resume, revert, compact, and send dead letters again."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import Broker
from tests.e2e.conftest import Loop, events

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(800)]


def answering(loop: Loop) -> int:
    return int(str(loop.ask([0], [0])["model_version"]))


def produced_and_served(loop: Loop, first: int, count: int, trained: int) -> None:
    loop.produce(events(first, count))
    loop.trained(trained)
    loop.served()


def test_operator_rolls_back_and_goes_on(embedded_broker: Broker, make_loop: Callable[..., Loop]) -> None:
    loop = make_loop(embedded_broker, embedded_broker.topic())
    loop.start("trainer", "publisher", "replica")
    produced_and_served(loop, 0, 200, 200)
    produced_and_served(loop, 200, 200, 400)
    newest = answering(loop)
    chosen = newest - 1
    assert f"serving version {chosen}, pinned" in loop.command("rollback", loop.model_dir, str(chosen))
    loop.wait(lambda: answering(loop) == chosen, "the rollback")
    loop.produce(events(400, 200))
    loop.trained(600)
    assert answering(loop) == chosen
    status = loop.status()
    assert (status["version"]["served"], status["version"]["pinned"]) == (chosen, chosen)
    assert loop.children.pop("publisher").stop() == 0
    loop.start("publisher", options=("--resume",))
    loop.served()
    assert loop.status()["version"]["pinned"] is None


def test_operator_reverts_to_before_the_poison_and_skips_it(
    embedded_broker: Broker, make_loop: Callable[..., Loop]
) -> None:
    loop = make_loop(embedded_broker, embedded_broker.topic())
    loop.start("trainer", "publisher", "replica")
    produced_and_served(loop, 0, 300, 300)
    good = int(str(loop.status()["commit"]["seq"]))
    produced_and_served(loop, 300, 200, 500)
    assert loop.children.pop("trainer").stop() == 0
    loop.produce(events(500, 100))  # nobody will learn these
    assert "training goes on from it" in loop.command("log", "revert", loop.model_dir, str(good), "--from-now")
    loop.start("trainer")
    # What comes before the trainer has asked for the topic's end is skipped as well.
    loop.wait(lambda: "event=assigned" in loop.log("trainer"), "the start of the trainer")
    produced_and_served(loop, 600, 150, 450)
    assert loop.counts()["received"] == 450
    assert loop.children.pop("trainer").stop() == 0
    done = json.loads(loop.command("log", "compact", loop.model_dir, "--config", str(loop.config), "--json"))
    assert done["base"] == loop.status()["commit"]["seq"]
    assert "sound" in loop.command("log", "verify", loop.model_dir)
    loop.start("trainer")
    produced_and_served(loop, 750, 50, 500)


def test_offline_rows_and_dead_letters_go_into_the_topic(
    embedded_broker: Broker, make_loop: Callable[..., Loop], tmp_path: Path
) -> None:
    loop = make_loop(embedded_broker, embedded_broker.topic())
    rows = [json.loads(message) for message in events(0, 300)]
    rows[7]["clicked"] = None
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    loop.start("trainer")
    assert "300" in loop.command("replay", str(loop.config), str(tmp_path / "rows.parquet"), "--rate", "600")
    loop.trained(299)
    assert loop.counts()["dead_lettered"] == 1
    assert "null_label" in loop.command("dlq", "show", str(loop.config))
    loop.command("dlq", "replay", str(loop.config))
    # It is as bad as before, and is counted again.
    loop.wait(lambda: loop.counts().get("dead_lettered") == 2, "the second judgement")
    assert loop.counts()["received"] == 301
    # One letter, judged twice; a replay that is repeated sends it again once, and one that is cleared never.
    assert " 1  in all" in loop.command("dlq", "ls", str(loop.config))
    assert "attempts 2" in loop.command("dlq", "show", str(loop.config))
    assert "cleared 1 " in loop.command("dlq", "clear", str(loop.config))
    assert "sent 0 " in loop.command("dlq", "replay", str(loop.config))
