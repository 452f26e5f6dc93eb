"""A client that keeps asking the served model for predictions, and remembers when each version first answered."""

import http.client
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

USER_COLUMNS = ("user_id", "age", "gender", "occupation", "zip3")
ITEM_COLUMNS = ("item_id", "year", "genres")
_DATATYPES = {pa.int64(): "INT64", pa.float32(): "FP32", pa.string(): "BYTES"}


@dataclass(kw_only=True, slots=True)
class Observed:
    """What the client saw; times are wall-clock seconds."""

    sent_at: list[float] = field(default_factory=list)
    latency_ms: list[float] = field(default_factory=list)
    failed: int = 0
    failures: list[str] = field(default_factory=list)
    first_answer: dict[int, float] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        """Requests answered or failed."""
        return len(self.latency_ms) + self.failed


def request_body(table: pa.Table, user_row: int, item_rows: np.ndarray) -> bytes:
    """Encode an infer request (Open Inference Protocol, JSON): one user's row and the items' rows."""
    inputs = [_tensor(table, name, np.array([user_row])) for name in USER_COLUMNS]
    inputs += [_tensor(table, name, item_rows) for name in ITEM_COLUMNS]
    return json.dumps({"inputs": inputs}).encode()


class Client:
    """Send requests from a thread of its own until stopped; every request picks a user and `items` items.

    `seed` fixes what is asked; `interval_s` is the pause between requests.
    """

    def __init__(
        self,
        table: pa.Table,
        *,
        address: tuple[str, int],
        model: str,
        seed: int,
        items: int = 20,
        interval_s: float = 0.005,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.observed = Observed()
        self._table = table
        self._address = address
        self._path = f"/v2/models/{model}/infer"
        self._random = np.random.default_rng(seed)
        self._items = items
        self._interval_s = interval_s
        self._clock = clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="client", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def stop(self) -> Observed:
        """Stop and return what was seen."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        return self.observed

    def _run(self) -> None:
        connection = http.client.HTTPConnection(*self._address, timeout=10)
        while not self._stop.wait(self._interval_s):
            rows = self._random.integers(0, self._table.num_rows, size=1 + self._items)
            body = request_body(self._table, int(rows[0]), rows[1:])
            sent = self._clock()
            try:
                version = self._ask(connection, body)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._fail(f"{type(error).__name__}: {error}")
                connection.close()
                continue
            answered = self._clock()
            self.observed.sent_at.append(sent)
            self.observed.latency_ms.append((answered - sent) * 1000)
            self.observed.first_answer.setdefault(version, answered)
        connection.close()

    def _ask(self, connection: http.client.HTTPConnection, body: bytes) -> int:
        connection.request("POST", self._path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = json.loads(response.read())
        if response.status != 200:
            raise ValueError(f"status {response.status}: {answer.get('error', answer)}")
        scores = np.array(answer["outputs"][0]["data"])
        if len(scores) != self._items or not np.isfinite(scores).all():
            raise ValueError(f"expected {self._items} finite scores, got {scores}")
        return int(answer["model_version"])

    def _fail(self, reason: str) -> None:
        self.observed.failed += 1
        if len(self.observed.failures) < 20:
            self.observed.failures.append(reason)


def _tensor(table: pa.Table, name: str, rows: np.ndarray) -> dict[str, object]:
    column = table[name]
    values = column.take(pa.array(rows)).to_pylist()
    return {"name": name, "shape": [len(values)], "datatype": _DATATYPES[column.type], "data": values}
