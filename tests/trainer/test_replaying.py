"""A run cut by linger, replayed from its recorded cuts, ends in the same bits."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.faults.stage import Stage
from checkpointer import CommitLog
from checkpointer.local_store import LocalStore
from headrace.maintain import revert_to
from protos.data_pb2 import KafkaDataset
from protos.pipeline_pb2 import EasyRecConfig
from protos.stream_pb2 import ARROW_IPC
from stream.encode import encode_rows
from stream.progress import recorded_cuts
from tests.conftest import Broker
from tests.trainer.test_run import digest_of, run, totals
from trainer.errors import TrainerConfigError
from trainer.launch import Launch
from trainer.run import train

Configure = Callable[..., EasyRecConfig]


def rows_in(config: EasyRecConfig) -> list[tuple[int, ...]]:
    log = CommitLog(LocalStore(config.model_dir))
    return [cut.rows for commit in log.commits() for cut in recorded_cuts(log.stream(commit)) if sum(cut.rows)]


def messages(stage: Stage, partition: int) -> list[bytes]:
    table = pq.read_table(stage.folder / f"part-{partition}.parquet")
    return [part for batch in table.to_batches(max_chunksize=9) for part in encode_rows(batch, "ARROW_IPC")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Live:
    """The stage's rows as a topic that fills while it is read."""

    broker: Broker
    topic: str
    stage: Stage
    configure: Configure

    def config(self, name: str, *, linger_ms: int, commit_steps: int) -> EasyRecConfig:
        config = self.configure(name)
        config.ClearField("train_input_path")
        config.data_config.dataset_type = KafkaDataset
        stream = config.stream_config
        stream.brokers, stream.topic, stream.format = self.broker.bootstrap, self.topic, ARROW_IPC
        stream.linger_ms, stream.stop_idle_ms = linger_ms, 2500
        config.checkpoint_config.commit_interval_steps = commit_steps
        config.checkpoint_config.commit_interval_ms = 200
        return config

    def run(self, config: EasyRecConfig) -> EasyRecConfig:
        """Train while the topic fills."""
        producer = threading.Thread(target=self._fill, args=(config,))
        producer.start()
        run(config)
        producer.join()
        return config

    def _fill(self, config: EasyRecConfig) -> None:
        while CommitLog(LocalStore(config.model_dir)).head() is None:
            time.sleep(0.05)
        parts = [messages(self.stage, partition) for partition in (0, 1)]
        for number, pair in enumerate(zip(*parts, strict=False)):
            for partition, value in enumerate(pair):
                self.broker.produce(self.topic, [value], partition)
            if number % 3 == 0:
                time.sleep(0.06)


@pytest.fixture
def topic(stage: Stage, configure: Configure, embedded_broker: Broker) -> Live:
    return Live(broker=embedded_broker, topic=embedded_broker.topic(2), stage=stage, configure=configure)


def test_replay_of_a_lingering_run_is_bit_identical(topic: Live) -> None:
    live = topic.run(topic.config("live", linger_ms=30, commit_steps=0))
    assert len({sum(rows) for rows in rows_in(live)}) > 2, "the live run was not cut by linger"
    # Other commits, no linger, everything there at once: only the recorded cuts make it the same.
    again = topic.config("again", linger_ms=0, commit_steps=3)
    train(again, Launch(replay_cuts=live.model_dir), threading.Event())
    assert rows_in(again) == rows_in(live)
    assert totals(again) == totals(live)
    assert digest_of(again) == digest_of(live)
    without = topic.config("without", linger_ms=0, commit_steps=3)
    run(without)
    assert totals(without) == totals(live) and digest_of(without) != digest_of(live)


def test_replay_of_a_reverted_run_leaves_out_what_was_undone(configure: Configure) -> None:
    reverted, again = configure("reverted"), configure("again")
    run(reverted)
    revert_to(LocalStore(reverted.model_dir), 3, from_now=False)
    run(reverted)
    train(again, Launch(replay_cuts=reverted.model_dir), threading.Event())
    assert totals(again) == totals(reverted)
    assert digest_of(again) == digest_of(reverted)
    revert_to(LocalStore(reverted.model_dir), 3, from_now=True)
    with pytest.raises(TrainerConfigError, match="skipped to the ends of the topics"):
        train(configure("third"), Launch(replay_cuts=reverted.model_dir), threading.Event())


def test_replay_needs_a_new_directory_and_a_log(configure: Configure, tmp_path: Path) -> None:
    config = configure()
    (tmp_path / "empty").mkdir()
    with pytest.raises(TrainerConfigError, match="holds no commit"):
        train(config, Launch(replay_cuts=str(tmp_path / "empty")), threading.Event())
    run(config)
    with pytest.raises(TrainerConfigError, match="from the beginning"):
        train(config, Launch(replay_cuts=config.model_dir), threading.Event())


def test_replay_of_part_of_a_source_stops_there(configure: Configure) -> None:
    part, again = configure("part"), configure("again")
    part.train_config.num_steps = 4
    run(part)
    train(again, Launch(replay_cuts=part.model_dir), threading.Event())
    assert digest_of(again) == digest_of(part)
    assert pa.array(rows_in(again)).equals(pa.array(rows_in(part)))
