"""The tritonclient that tests ask replicas with."""

import tritonclient.http as triton


class Client(triton.InferenceServerClient):
    """Closed by who opened it, on leaving its block, and by nobody else.

    Its own `__del__` closes it again, in whatever thread the collector runs: gevent fails in those that it does not
    know, and the test that happens to run then fails with it.
    """

    def __init__(self, port: int) -> None:
        super().__init__(f"127.0.0.1:{port}", network_timeout=20.0, connection_timeout=20.0)

    def __del__(self) -> None:
        """Leave it."""
