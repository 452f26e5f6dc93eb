"""The whole loop on one machine: broker, trainer, publisher, replica, producer and client, watched and measured."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.live import Live

from checkpointer import CommitLog
from checkpointer.local_store import LocalStore
from headrace.demo import folder, movielens
from headrace.demo.client import Client, Observed
from headrace.demo.curves import Figure, Recorded, figures
from headrace.demo.errors import DemoError
from headrace.demo.measure import commit_points, percentiles, rows_covered, second_half_auc, staleness_ms
from headrace.demo.processes import Child, spawn, wait_for
from headrace.demo.producer import EventProducer, create_topics
from headrace.demo.report import write_report, write_summary
from headrace.demo.view import Sample, table
from publisher.versions import list_versions, read_pointer, read_version
from stream.broker import EmbeddedBroker, free_port
from stream.progress import Progress

TOPIC = "movielens"
_START_S, _END_S = 120.0, 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoOptions:
    """`rate` is in events a second; `events` 0 means all of them."""

    out: Path
    cache: Path
    rate: float = 3000.0
    rows_per_message: int = 8
    events: int = 0
    dense_runtime: str = "AOT_INDUCTOR"
    seed: int = 7


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What one run of the loop left behind."""

    samples: list[Sample]
    observed: Observed
    producer: EventProducer
    began: float
    wall_s: float


def demo(options: DemoOptions, *, env: Mapping[str, str], console: Console) -> dict[str, object]:
    """Run the demo and return its summary, which is also in `out`/summary.json, beside report.html."""
    folder.make_folder(options.out, "--out")
    console.print("Reading MovieLens-100K (from the wheel of recbole) ...")
    events = movielens.events(movielens.fetch(options.cache))
    events = events.slice(0, options.events) if options.events else events
    folder.clear(options.out)
    (options.out / "model").mkdir()
    with EmbeddedBroker(log_path=options.out / "logs" / "broker.log") as broker:
        create_topics(broker.bootstrap, TOPIC, f"{TOPIC}.dead")
        config = _write_config(options, broker.bootstrap)
        run = _run_loop(options, events, config, broker.bootstrap, env={**env, "OMP_NUM_THREADS": "1"}, console=console)
    summary, drawn = _measure(options, events, run)
    write_summary(options.out / "summary.json", summary)
    write_report(options.out / "report.html", summary=summary, figures=drawn)
    return summary


def _write_config(options: DemoOptions, brokers: str) -> Path:
    text = resources.files("headrace.demo").joinpath("pipeline.config").read_text(encoding="utf-8")
    values = {
        "model_dir": str((options.out / "model").absolute()),
        "brokers": brokers,
        "topic": TOPIC,
        "dense_runtime": options.dense_runtime,
    }
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    path = options.out / "pipeline.config"
    path.write_text(text, encoding="utf-8")
    return path


def _run_loop(
    options: DemoOptions, events: pa.Table, config: Path, brokers: str, *, env: dict[str, str], console: Console
) -> Run:
    """Start the processes, stream the events, wait until all are served, and stop everything in order."""
    logs, port = options.out / "logs", free_port()
    started = time.time()
    children = [
        spawn("trainer", ["headrace", "train", str(config)], logs=logs, env=env),
        spawn("publisher", ["headrace", "publish", str(config)], logs=logs, env=env),
        spawn("replica", ["headrace", "serve", str(options.out / "model"), "--port", str(port)], logs=logs, env=env),
    ]
    store = LocalStore(str(options.out / "model"))
    producer = EventProducer(
        events, brokers=brokers, topic=TOPIC, rate=options.rate, rows_per_message=options.rows_per_message
    )
    client = Client(events, address=("127.0.0.1", port), model="headrace", seed=options.seed)
    try:
        console.print("Starting the trainer, the publisher and a replica ...")
        wait_for(lambda: _ready(port), children, what="the first served version", timeout_s=_START_S)
        client.start()
        producer.start()
        samples = _watch(store, events.num_rows, producer, client, children, console)
    finally:
        producer.stop()
        observed = client.stop()
        for child in children:
            child.stop()
    return Run(samples=samples, observed=observed, producer=producer, began=started, wall_s=time.time() - started)


def _watch(
    store: LocalStore, total: int, producer: EventProducer, client: Client, children: list[Child], console: Console
) -> list[Sample]:
    """Sample four times a second until the served version covers every event."""
    samples: list[Sample] = []
    began, sent_all = time.time(), 0.0
    with Live(console=console, refresh_per_second=4) as live:
        while True:
            for child in children:
                child.check()
            sample = _sample(store, producer, client.observed, time.time() - began)
            samples.append(sample)
            finished = producer.done
            live.update(table(sample, total, "serving" if finished else "streaming"))
            sent_all = sent_all or (time.time() if finished else 0.0)
            if finished and sample.trained >= producer.sent and sample.version >= sample.commits:
                break
            if finished and time.time() - sent_all > _END_S:
                left = producer.sent - sample.trained
                raise DemoError(f"{left} events are not served {_END_S:.0f} s after the last; see the logs folder")
            time.sleep(0.25)
    if not console.is_terminal:
        console.print()  # rich ends a table in a file without a newline
    return samples


def _sample(store: LocalStore, producer: EventProducer, observed: Observed, at: float) -> Sample:
    head, pointer = CommitLog(store).head(), read_pointer(store)
    served = max(observed.first_answer, default=0)
    version = read_version(store, served) if served and pointer is not None else None
    return Sample(
        at=at,
        sent=producer.sent,
        trained=int(head.figures.get("rows", 0)) if head else 0,
        auc=head.figures.get("auc_all", float("nan")) if head else float("nan"),
        commits=head.seq if head else 0,
        version=served,
        versions=len(observed.first_answer),
        staleness_ms=time.time() * 1000 - version.broker_time_ms if version and version.broker_time_ms > 0 else -1.0,
        requests=observed.requests,
        failed=observed.failed,
        latency_ms=observed.latency_ms[-1] if observed.latency_ms else -1.0,
    )


def _measure(options: DemoOptions, events: pa.Table, run: Run) -> tuple[dict[str, object], list[Figure]]:
    store = LocalStore(str(options.out / "model"))
    log = CommitLog(store)
    commits = list(log.commits())
    points = commit_points(commits)
    versions = [read_version(store, number) for number in list_versions(store)]
    pointer = read_pointer(store)
    labels = events["label"].to_numpy()
    baseline = movielens.item_mean_scores(events)
    covered = {commit.seq: rows_covered(log, commit, options.rows_per_message) for commit in commits}
    stale_at, stale = staleness_ms(covered, run.observed, run.producer)
    counts = Progress.from_proto(log.stream(commits[-1])).accounting[TOPIC]
    training = [point for point in points if point.trained > 0]
    seconds = training[-1].at - training[0].at if len(training) > 1 else float("nan")
    rows = sum(delta.rows for version in versions for delta in version.deltas[-1:])
    size = sum(blob.size for version in versions for delta in version.deltas[-1:] for blob in delta.blobs)
    summary: dict[str, object] = {
        "events": counts.received,
        "trained": counts.trained,
        "late": counts.late,
        "dead_lettered": counts.dead_lettered,
        "filtered": counts.filtered,
        "duplicate": counts.duplicate,
        "remainder": counts.remainder,
        "progressive_auc": round(points[-1].auc, 4),
        "progressive_auc_second_half": round(second_half_auc(log, points, counts.trained), 4),
        "baseline_auc_item_mean": round(movielens.auc(baseline, labels), 4),
        "commits": len(commits),
        "versions": pointer.generation if pointer else 0,
        "swaps": max(0, len(run.observed.first_answer) - 1),
        "requests": run.observed.requests,
        "failed_requests": run.observed.failed,
        "staleness_ms": percentiles(stale),
        "delta_bytes_per_row": round(size / rows, 1) if rows else float("nan"),
        "train_examples_per_s": round((training[-1].trained - training[0].trained) / seconds, 1),
        "wall_s": round(run.wall_s, 1),
    }
    recorded = Recorded(
        began=run.producer.sent_at[0] if len(run.producer.sent_at) else run.began,
        samples=run.samples,
        observed=run.observed,
        points=points,
        scores=baseline,
        labels=labels,
        stale_at=stale_at,
        stale_ms=stale,
    )
    return summary, figures(recorded)


def _ready(port: int) -> bool:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/v2/health/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
