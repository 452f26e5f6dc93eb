"""`python -m benchmarks.publisher_process MODEL_DIR TABLE:DIM ...`: a publisher of tables that no pipeline describes.

It follows the log as `headrace publish` does, until its standard input ends.
"""

import logging
import sys
import threading
import time
from collections.abc import Sequence

from checkpointer.local_store import LocalStore
from publisher.background import NoBackground
from publisher.contract import Contract
from publisher.follow import Publisher, Surroundings
from publisher.manifest import Table
from publisher.metrics import PublisherMetrics
from publisher.notify import NoNotifier
from publisher.options import PublishOptions

DIGEST = "benchmark"


def main(arguments: Sequence[str]) -> int:
    """Publish until the input ends."""
    logging.disable(logging.INFO)
    folder, *named = arguments
    tables = tuple(
        Table(name=name, kind="zch", dim=int(dim)) for name, _, dim in (text.rpartition(":") for text in named)
    )
    contract = Contract(
        digest=DIGEST,
        features=DIGEST,
        tables=tables,
        widths=(sum(table.dim for table in tables),),
        config=b"",
        layout=b"{}",
    )
    around = Surroundings(
        background=NoBackground(),
        notifier=NoNotifier(),
        metrics=PublisherMetrics(),
        clock_ms=lambda: time.time_ns() // 1_000_000,
    )
    options = PublishOptions(runtime="eager")
    publisher = Publisher(LocalStore(folder), contract, options, around)
    stop = threading.Event()
    threading.Thread(target=_stop_at_end_of_input, args=(stop,), daemon=True).start()
    while not stop.is_set():
        if not publisher.step():
            stop.wait(options.poll_s)
    return 0


def _stop_at_end_of_input(stop: threading.Event) -> None:
    sys.stdin.read()
    stop.set()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
