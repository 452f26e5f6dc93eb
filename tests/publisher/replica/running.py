"""A server in the test's process, and a published model of any configuration for it to serve."""

import asyncio
import http.client
import itertools
import json
import threading
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import torch
from aiohttp import web

from checkpointer import Draft, Kind, TableRows, Writer, WriterOptions, stage
from checkpointer.memory_store import MemoryStore
from checkpointer.store import Store
from features import create_features
from protos.commit_pb2 import StreamState
from protos.load import parse_config
from publisher.background import NoBackground
from publisher.contract import Contract
from publisher.export.host import this_host
from publisher.follow import Publisher, Surroundings
from publisher.metrics import PublisherMetrics
from publisher.notify import NoNotifier
from publisher.options import PublishOptions
from publisher.replica.follower import Follower
from publisher.replica.metrics import ReplicaMetrics
from publisher.replica.model import Side
from publisher.replica.options import ServeOptions
from publisher.replica.process import bind
from publisher.replica.server import InferenceServer
from publisher.replica.serving import Servable
from publisher.replica.switch import Reading, Switch
from recmodels.layout import create_layout
from recmodels.registry import create_model
from recmodels.wrappers import DenseHalf


@dataclass(frozen=True, kw_only=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def error(self) -> str:
        return str(json.loads(self.text)["error"])


class Running:
    """A server on a free port, its loop on another thread."""

    def __init__(self, server: InferenceServer, metrics: ReplicaMetrics) -> None:
        self.server = server
        self.metrics = metrics
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))
        self._thread.start()
        assert self._ready.wait(10)

    async def _run(self) -> None:
        listening = bind("127.0.0.1", 0)
        self.port = listening.getsockname()[1]
        runner = self.server.runner(shutdown_timeout=1.0)
        await runner.setup()
        await web.SockSite(runner, listening).start()
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()
        self.server.close()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    def call(self, work: Coroutine[None, None, None]) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Reply:
        payload = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            named = {key.replace("_", "-"): value for key, value in headers.items()}
            connection.request(method, path, payload, named)
            response = connection.getresponse()
            return Reply(status=response.status, headers=dict(response.getheaders()), text=response.read().decode())
        finally:
            connection.close()

    def infer(self, body: object, **headers: str) -> Reply:
        return self.ask("POST", "/v2/models/headrace/infer", body, **headers)


@contextmanager
def running(switch: Reading[Servable], options: ServeOptions, now_s: float = 1.7e9) -> Iterator[Running]:
    metrics = ReplicaMetrics()
    server = Running(InferenceServer(switch, options, metrics, lambda: now_s), metrics)
    try:
        yield server
    finally:
        server.close()


class Model:
    """A model with random weights; its tables know two thirds of the raw ids of some rows."""

    def __init__(self, text: str, rows: pa.RecordBatch) -> None:
        self.config = parse_config(text, json=False)
        self.features = create_features(self.config)
        self.contract = Contract.of(self.config)
        self.layout = create_layout(self.features.features, self.config.model_config)
        torch.manual_seed(0)
        self.half = DenseHalf(create_model(self.config, self.features)).eval()
        self.batch = self.features.parse(rows, labels=False)
        random = np.random.default_rng(0)
        self.tables: dict[str, tuple[str, np.ndarray, np.ndarray]] = {}
        for table in self.contract.tables:
            spec = self.layout.table(table.name)
            ids = np.arange(spec.num_embeddings, dtype=np.int64)
            if table.kind == "zch":
                found = self.batch.sparse_features[spec.data_group].to_dict()
                ids = np.unique(np.concatenate([found[name].values().numpy() for name in spec.features]))
                ids = ids[np.arange(len(ids)) % 3 != 0]
            self.tables[table.name] = table.kind, ids, random.normal(size=(len(ids), table.dim)).astype(np.float32)

    def commit(self, store: Store) -> None:
        """Append the model to a log, as a trainer does."""
        options = WriterOptions(token="t", clock_ms=lambda: 1, new_chain=lambda: "chain", writer="test")
        writer = Writer.open(store, options)
        rows = [
            TableRows(
                table=name, shard=0, kind=kind, ids=ids, slots=ids, columns={"weight": weights},
                deleted=np.empty(0, np.int64), reset=True,
            )
            for name, (kind, ids, weights) in self.tables.items()
        ]  # fmt: skip
        dense = {f"parameter/{name}": value.numpy() for name, value in self.half.state_dict().items()}
        blobs = stage(store, seq=writer.next_seq, rank=0, rows=rows, dense=dense, stream=StreamState())
        draft = Draft(
            kind=Kind.BASE, step=1, event_time_ms=1, broker_time_ms=2, world=1, contract=self.contract.digest,
            features=self.contract.features, blobs=blobs, figures={"auc": 0.7, "auc_rows": 20_000.0}, forked=None,
        )  # fmt: skip
        writer.append(draft)

    def served(self, runtime: str) -> tuple[Switch[Side], Store]:
        """What a replica serves of a store that the real publisher filled."""
        store, clock = MemoryStore(), itertools.count(10)
        self.commit(store)
        around = Surroundings(
            background=NoBackground(), notifier=NoNotifier(), metrics=PublisherMetrics(),
            clock_ms=lambda: next(clock), signer=None,
        )  # fmt: skip
        publisher = Publisher(store, self.contract, PublishOptions(runtime=runtime), around)
        while publisher.step():
            pass
        switch: Switch[Side] = Switch()
        follower = Follower(
            store, switch, ReplicaMetrics(), host=this_host(), verifier=None, clock=lambda: 0.0, drain_s=1.0,
        )  # fmt: skip
        assert follower.poll()
        return switch, store
