"""How a model directory stands: commits, the served version, accounting, and the lag where brokers can be asked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from checkpointer.commit import Commit
from checkpointer.log import CommitLog
from checkpointer.store import Store
from headrace.checked import load_checked
from headrace.model_dir import no_commits
from protos.commit_pb2 import StreamState
from protos.plain_text import skim
from protos.stream_pb2 import StreamConfig
from publisher.pointer import read_pin
from publisher.versions import list_versions, read_blob, read_current

Section = dict[str, object]

_BROKER_S = 5.0
_COUNTS = ("received", "trained", "late", "dead_lettered", "filtered", "duplicate", "remainder")


def status(store: Store, *, config_path: str | None, now_ms: int) -> dict[str, Section]:
    """All sections; `config_path` names a configuration whose brokers know the topics' ends."""
    log = CommitLog(store)
    head = log.head()
    if head is None:
        raise no_commits(store.url)
    states = log.stream(head)
    return {
        "commit": _commit(head, now_ms),
        "version": _version(store, head, now_ms),
        "accounting": _accounting(states),
        "watermark_ms": _watermarks(states),
        "lag": _lag(states, _stream_config(store, config_path)),
    }


def _commit(head: Commit, now_ms: int) -> Section:
    return {
        "seq": head.seq,
        "step": head.step,
        "age_ms": max(0, now_ms - head.committed_ms),
        "world": head.world,
        "epoch": head.epoch,
        **{name: round(value, 6) for name, value in head.figures.items()},
    }


def _version(store: Store, head: Commit, now_ms: int) -> Section:
    """Staleness counts from the newest event that the served version learned, by the broker's clock where known."""
    current = read_current(store)
    if current is None:
        return {"served": "none yet"}
    pinned = read_pin(store)
    known = current.broker_time_ms >= 0
    newest = current.broker_time_ms if known else current.event_time_ms
    return {
        "served": current.version,
        "behind_commits": head.seq - current.version,
        "pinned": pinned.version if pinned else None,
        "versions": len(list_versions(store)),
        "staleness_ms": max(0, now_ms - newest) if newest >= 0 else None,
        "staleness_from": "broker time" if known else "event time",
    }


def _accounting(states: Sequence[StreamState]) -> Section:
    totals: dict[str, dict[str, int]] = {}
    for state in states:
        for counted in state.accounting:
            topic = totals.setdefault(counted.topic, dict.fromkeys(_COUNTS, 0))
            for name in _COUNTS:
                topic[name] += getattr(counted, name)
    return {topic: " ".join(f"{name}={count}" for name, count in counts.items()) for topic, counts in totals.items()}


def _watermarks(states: Sequence[StreamState]) -> Section:
    return {f"{mark.topic}/{mark.partition}": mark.event_time_ms for state in states for mark in state.watermarks}


def _stream_config(store: Store, config_path: str | None) -> StreamConfig | None:
    """Of the configuration that is named, else of the served version; None where neither tells brokers."""
    if config_path:
        return load_checked(config_path).stream_config
    current = read_current(store)
    if current is None:
        return None
    # Only the brokers are asked for: the version's plugins are not imported, its other paths not touched.
    found = skim(read_blob(store, current.config).decode()).stream_config
    return found if found.brokers else None


def _lag(states: Sequence[StreamState], config: StreamConfig | None) -> Section:
    from stream.errors import StreamError
    from stream.kafka_client import KafkaClient
    from stream.kafka_options import KafkaOptions

    if config is None:
        return {"unknown": "files have none; for topics pass --config CONFIG, whose brokers know their ends"}
    cursors = {(cursor.topic, cursor.partition): cursor.offset for state in states for cursor in state.cursors}
    client = KafkaClient(replace(KafkaOptions.from_proto(config), deadline_s=_BROKER_S))
    try:
        ends: Mapping[tuple[str, int], int] = client.ends(cursors)
    except StreamError as error:
        return {"unknown": str(error)}
    finally:
        client.close()
    return {f"{topic}/{partition}": ends[topic, partition] - offset for (topic, partition), offset in cursors.items()}
