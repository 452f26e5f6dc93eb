"""Serving latency while versions flip, over the latency at rest, beside the ratio of two runs at rest.

One replica process with DeepFM's shape (26 sparse features × dim 16, 13 dense, MLP 512-256-128 as TorchScript) and one
client that asks as fast as it is answered. Segments at rest and with a flip every half second take turns. Every row of
a delta, and one dense weight, hold the version's number, so each answer shows whether it is torn. The versions are
written beforehand: what is measured is the replica, which reads, verifies, applies (twice) and flips.
"""

import hashlib
import http.client
import io
import json
import logging
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save
from torch import Tensor, nn

from benchmarks.figure import Figure, run_script
from benchmarks.figure import load as load_average
from checkpointer.encoding import Encoding, encode
from checkpointer.errors import ExistsError, NotFoundError
from checkpointer.local_store import LocalStore
from protos.load import parse_config
from publisher.codec import encode_pointer, encode_version
from publisher.contract import Contract
from publisher.manifest import POINTER, Artefact, Base, Blob, Delta, Pointer, ServingVersion
from publisher.rows import ServingRows, encode_rows
from stream.broker import free_port

SPARSE, DENSE, DIM = 26, 13, 16
REPLICA = """
import sys
from pathlib import Path
from publisher.replica import ServeOptions, serve
sys.exit(serve(sys.argv[1], ServeOptions(port=int(sys.argv[2]))))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """Sizes of the run."""

    table_rows: int
    delta_rows: int
    batch: int
    segment_s: float
    segments: int
    cadence_s: float
    encoding: Encoding


@dataclass(kw_only=True, slots=True)
class Seen:
    """What the client saw in the segments of one kind."""

    latencies: list[float] = field(default_factory=list)
    versions: set[int] = field(default_factory=set)
    torn: int = 0
    failed: int = 0

    def quantile(self, q: float) -> float:
        """Milliseconds."""
        return float(np.quantile(self.latencies, q) * 1e3)


class Dense(nn.Module):
    """The dense half's work, and what proves that one version did all of it."""

    def __init__(self) -> None:
        super().__init__()
        widths = [SPARSE * DIM + DENSE, 512, 256, 128, 1]
        layers = [m for a, b in zip(widths, widths[1:], strict=False) for m in (nn.Linear(a, b), nn.ReLU())]
        self.mlp = nn.Sequential(*layers[:-1])
        self.number = nn.Parameter(torch.zeros(1))

    def forward(self, group: Tensor) -> dict[str, Tensor]:
        sparse = group[:, : 26 * 16]
        low, high = sparse.min(dim=1, keepdim=True)[0], sparse.max(dim=1, keepdim=True)[0]
        probs = torch.sigmoid(self.mlp(group))
        return {"probs": probs, "low": low, "high": high, "number": low * 0.0 + self.number}


def config() -> str:
    """Encoded ids, so that the rows can be named."""
    sparse = [
        f'feature_configs {{ id_feature {{ feature_name: "c{i}" expression: "item:c{i}" embedding_dim: {DIM} '
        "zch { zch_size: 200000 hash {} } } }"
        for i in range(SPARSE)
    ]
    dense = [
        f'feature_configs {{ raw_feature {{ feature_name: "i{i}" expression: "item:i{i}" }} }}' for i in range(DENSE)
    ]
    names = " ".join(
        f'feature_names: "{n}"' for n in [f"c{i}" for i in range(SPARSE)] + [f"i{i}" for i in range(DENSE)]
    )
    model = (
        f'model_config {{ feature_groups {{ group_name: "all" {names} group_type: DEEP }} '
        'multi_tower { towers { input: "all" mlp { hidden_units: 4 } } final { hidden_units: 4 } } num_class: 1 '
        "losses { binary_cross_entropy {} } }"
    )
    return "\n".join(['model_dir: "unused"', 'data_config { label_fields: "label" }', *sparse, *dense, model])


class Versions:
    """Writes versions whose hot rows and one dense weight hold their number."""

    def __init__(self, folder: Path, load: Load) -> None:
        self.store = LocalStore(folder)
        self.load = load
        self.contract = Contract.of(parse_config(config(), json=False))
        hot = load.delta_rows // SPARSE
        random = np.random.default_rng(0)
        self.ids = [np.unique(random.integers(0, 1 << 62, load.table_rows)) for _ in range(SPARSE)]
        self.hot = [np.sort(random.choice(ids, hot, replace=False)) for ids in self.ids]
        self.module = Dense()
        sink = io.BytesIO()
        torch.jit.save(torch.jit.script(self.module), sink)
        self.artefact = Artefact(
            runtime="torch_script",
            blob=self._put("compiled/dense.ts", sink.getvalue()),
            torch=torch.__version__,
            machine="x86_64",
            isa="",
        )
        self.last: ServingVersion | None = None
        self.generation = 0

    def _put(self, path: str, payload: bytes) -> Blob:
        try:
            self.store.put_if_absent(path, payload)
        except ExistsError as error:
            raise SystemExit(f"{path} is there already: {error}") from None
        return Blob.of(path, payload)

    def write(self, number: int) -> None:
        """Write the next version: a base first, then deltas of the hot rows."""
        picked = self.ids if self.last is None else self.hot
        parts = [
            ServingRows(
                table=table.name,
                ids=ids,
                rows=encode(np.full((len(ids), DIM), number, np.float32), self.load.encoding),
                deleted=np.empty(0, np.int64),
            )
            for table, ids in zip(self.contract.tables, picked, strict=True)
        ]
        blobs = tuple(
            self._put(f"rows/{number}-{i}.parquet", part) for i, part in enumerate(map(b"".join, encode_rows(parts)))
        )
        state = {name: value.detach().numpy() for name, value in self.module.named_parameters()}
        dense = self._put(f"dense/{number}.safetensors", save({**state, "number": np.array([number], np.float32)}))
        self.last = self._next(number, blobs, dense)
        self.store.put_if_absent(self.last.path, encode_version(self.last, None))

    def _next(self, number: int, blobs: tuple[Blob, ...], dense: Blob) -> ServingVersion:
        rows = sum(map(len, self.ids))
        if self.last is not None:
            delta = Delta(after=self.last.version, seq=number, rows=rows, resets=(), blobs=blobs)
            return replace(self.last, version=number, deltas=(*self.last.deltas, delta), dense=dense)
        return ServingVersion(
            version=number, previous=None, chain="c", commit="d", series="c", contract=self.contract.digest,
            features=self.contract.features, step=number, event_time_ms=0, watermark_ms=0, broker_time_ms=-1,
            created_ms=0, encoding=str(self.load.encoding), tables=self.contract.tables,
            base=Base(seq=number, rows=rows, blobs=blobs), deltas=(), dense=dense, artefacts=(self.artefact,),
            config=self._put("config", self.contract.config), layout=self._put("layout", self.contract.layout),
            stream=(), metrics={},
        )  # fmt: skip

    def point(self, number: int) -> None:
        """Publish."""
        manifest = self.store.get(f"versions/{number:020d}/manifest.json")
        self.generation += 1
        digest = hashlib.sha256(manifest).hexdigest()
        pointer = Pointer(version=number, digest=digest, generation=self.generation, swapped_ms=0)
        try:
            old: bytes | None = self.store.get(POINTER)
        except NotFoundError:
            old = None
        self.store.compare_and_swap(POINTER, old, encode_pointer(pointer))


class Client:
    """Asks for hot rows with the binary extension, over one connection."""

    def __init__(self, port: int, versions: Versions, batch: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        random = np.random.default_rng(1)
        self._bodies = [self._body(versions, batch, random) for _ in range(64)]
        self._at = 0

    @staticmethod
    def _body(versions: Versions, batch: int, random: np.random.Generator) -> tuple[bytes, str]:
        columns = {f"c{i}": ("INT64", random.choice(versions.hot[i], batch)) for i in range(SPARSE)}
        columns |= {f"i{i}": ("FP32", random.random(batch, np.float32)) for i in range(DENSE)}
        inputs = [
            {"name": n, "datatype": t, "shape": [batch], "parameters": {"binary_data_size": a.nbytes}}
            for n, (t, a) in columns.items()
        ]
        head = json.dumps({"inputs": inputs}).encode()
        return head + b"".join(array.tobytes() for _, array in columns.values()), str(len(head))

    def ask(self, seen: Seen) -> None:
        """Ask once; note latency, version, and whether the answer is torn."""
        body, length = self._bodies[self._at % len(self._bodies)]
        self._at += 1
        started = time.perf_counter()
        self._connection.request("POST", "/v2/models/headrace/infer", body, {"Inference-Header-Content-Length": length})
        response = self._connection.getresponse()
        payload = response.read()
        seen.latencies.append(time.perf_counter() - started)
        if response.status != 200:
            seen.failed += 1
            return
        answer = json.loads(payload)
        version = int(answer["model_version"])
        seen.versions.add(version)
        numbers = {value for output in answer["outputs"] if output["name"] != "probs" for value in output["data"]}
        seen.torn += numbers != {float(version)}

    def ready(self) -> bool:
        """Whether the replica has loaded the base."""
        try:
            self._connection.request("GET", "/v2/health/ready")
            response = self._connection.getresponse()
            response.read()
        except OSError:
            self._connection.close()
            return False
        return response.status == 200


def compare(load: Load, folder: Path) -> dict[str, Seen]:
    """Run the segments; the kinds take turns so that the machine's drift meets all of them."""
    versions = Versions(folder, load)
    flips = int(load.segments * load.segment_s / load.cadence_s) + load.segments
    for number in range(1, flips + 2):
        versions.write(number)
    versions.point(1)
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", REPLICA, str(folder), str(port)], stderr=subprocess.DEVNULL)
    try:
        client = Client(port, versions, load.batch)
        while not client.ready():
            time.sleep(0.1)
        return _segments(load, client, versions)
    finally:
        process.terminate()
        process.wait()


def _segments(load: Load, client: Client, versions: Versions) -> dict[str, Seen]:
    seen = {kind: Seen() for kind in ("rest", "swap", "rest again")}
    for _ in range(300):
        client.ask(Seen())
    number = 1
    for _ in range(load.segments):
        for kind, into in seen.items():
            end = time.perf_counter() + load.segment_s
            due = time.perf_counter()
            while time.perf_counter() < end:
                if kind == "swap" and time.perf_counter() >= due:
                    number += 1
                    versions.point(number)
                    due += load.cadence_s
                client.ask(into)
            # The last flip's other side is brought along outside of what is at rest.
            time.sleep(0.5)
    return seen


def _figure(seen: dict[str, Seen]) -> Figure:
    """The figure beside what it must be compared with."""
    rest, again, swap = (seen[kind].quantile(0.99) for kind in ("rest", "rest again", "swap"))
    noise = max(rest, again) / min(rest, again)
    ratio, bound = swap / ((rest + again) / 2), max(1.05, noise)
    requests = sum(len(s.latencies) for s in seen.values())
    torn, failed = sum(s.torn for s in seen.values()), sum(s.failed for s in seen.values())
    return Figure(
        name="lookup_p99_during_swap",
        value=swap,
        unit="ms",
        floor_or_peer=(rest + again) / 2,
        ratio=ratio,
        goal=f"ratio <= {bound:.3f}, the larger of 1.05 and two runs at rest; nothing torn or failed",
        meets=ratio <= bound and torn == 0 and failed == 0,
        note=f"p50 {seen['swap'].quantile(0.5):.2f} ms, at rest {seen['rest'].quantile(0.5):.2f} ms; two runs at rest: "
        f"p99 {rest:.2f} and {again:.2f} ms, ratio {noise:.3f}; {torn} torn, {failed} failed of {requests} requests; "
        f"{len(seen['swap'].versions)} versions; {load_average()}",
    )


def measure(quick: bool) -> list[Figure]:
    """Deltas of 100,000 rows, requests of 100 items."""
    logging.disable(logging.INFO)
    warnings.simplefilter("ignore")
    load = Load(
        table_rows=5_000 if quick else 100_000,
        delta_rows=5_000 if quick else 100_000,
        batch=100,
        segment_s=1.0 if quick else 5.0,
        segments=1 if quick else 6,
        cadence_s=0.5,
        encoding=Encoding.FP32,
    )
    with tempfile.TemporaryDirectory() as folder:
        return [_figure(compare(load, Path(folder)))]


if __name__ == "__main__":
    sys.exit(run_script(sys.argv[1:], __doc__, measure))
