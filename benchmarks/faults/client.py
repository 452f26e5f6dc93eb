"""A client that keeps asking one replica the same, and remembers what each version answered."""

import http.client
import json
import threading
import time
from collections import defaultdict

REQUEST = json.dumps(
    {
        "inputs": [
            {"name": name, "shape": [3], "datatype": "INT64", "data": data}
            for name, data in (("user", [1, 2, 3]), ("item", [1, 2, 3]), ("kind", [1, 2, 3]))
        ]
    }
)


class Client:
    """Asks the same again and again, on a new connection after each failure, until it is closed.

    A version that gave two different answers was torn. `strange` are answers that no replica should give.
    """

    def __init__(self, port: int) -> None:
        self.answers: dict[str, set[str]] = defaultdict(set)
        self.failures = 0
        self.newest = 0
        self.strange: list[str] = []
        self._port = port
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @property
    def torn(self) -> list[str]:
        """Versions that did not always answer alike."""
        return [version for version, outputs in self.answers.items() if len(outputs) > 1]

    def close(self) -> None:
        """Stop asking."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        while not self._stop.is_set():
            try:
                connection.request("POST", "/v2/models/headrace/infer", REQUEST)
                response = connection.getresponse()
                body = json.loads(response.read())
            except (OSError, http.client.HTTPException, ValueError):
                connection.close()
                self.failures += 1
                time.sleep(0.02)
                continue
            if response.status == 200:
                self.answers[body["model_version"]].add(json.dumps(body["outputs"]))
                self.newest = int(body["model_version"])
            elif response.status != 503:
                self.strange.append(f"{response.status}: {body}")
            time.sleep(0.002)
        connection.close()
