"""The compiled dense half takes over from TorchScript amid requests, and then takes every version's weights."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from checkpointer.memory_store import MemoryStore
from publisher.export.compile import compile_dense
from publisher.export.host import this_host
from publisher.manifest import Artefact
from publisher.replica.follower import Follower
from publisher.replica.metrics import ReplicaMetrics
from publisher.replica.model import Side
from publisher.replica.switch import Switch
from tests.publisher.replica.conftest import VersionWriter, Witness

ROWS = pa.record_batch(
    {
        "user_id": np.ones(8, np.int64),
        "item_id": np.arange(8),
        "tags": pa.array([str(i) for i in range(8)]),
        "price": np.ones(8, np.float32),
    }
)


class AnyGroups(Witness):
    """What `DenseHalf` looks like to the compiler."""

    def forward(self, *groups: torch.Tensor) -> dict[str, torch.Tensor]:
        return super().forward(groups[0])


def compiled_artefact(writer: VersionWriter, scratch: Path) -> Artefact:
    with torch.random.fork_rng():
        payload = compile_dense("aot_inductor", AnyGroups(), (13,), scratch)
    host = this_host()
    return Artefact(
        runtime="aot_inductor",
        blob=writer._put("compiled", payload, "pt2"),
        torch=host.torch,
        machine=host.machine,
        isa=" ".join(sorted(host.isa)),
    )


@pytest.mark.timeout(280)
def test_compiled_half_takes_over_and_no_answer_is_torn(
    store: MemoryStore, writer: VersionWriter, tmp_path: Path
) -> None:
    switch: Switch[Side] = Switch()
    follower = Follower(
        store,
        switch,
        ReplicaMetrics(),
        host=this_host(),
        verifier=None,
        clock=lambda: 0.0,
        drain_s=5.0,
    )
    writer.publish(1, writer.everything(1.0))
    assert follower.poll()
    done = threading.Event()
    torn: list[tuple[int, dict[str, list[float]]]] = []

    def ask() -> set[str]:
        runtimes = set()
        while not done.is_set():
            with switch.reading() as side:
                assert side is not None
                found = side.predict(ROWS)
                numbers = {*np.unique(found["number"]).tolist(), *np.unique(found["rows"][:, 8:12]).tolist()}
                if numbers != {float(side.number)}:
                    torn.append((side.number, {name: array.tolist() for name, array in found.items()}))
                runtimes.add(side.dense.runner.runtime)
        return runtimes

    compiled = compiled_artefact(writer, tmp_path)
    with ThreadPoolExecutor(2) as pool:
        asking = [pool.submit(ask) for _ in range(2)]
        try:
            for number in range(2, 60):
                if number == 20:
                    writer.artefacts = (compiled, *writer.artefacts)
                writer.publish(number, writer.everything(float(number)))
                assert follower.poll()
        finally:
            done.set()
        runtimes = [future.result() for future in asking]
    assert torn == []
    assert all(found == {"torch_script", "aot_inductor"} for found in runtimes)
    served = switch.current
    assert served is not None
    assert (served.number, served.dense.runner.runtime) == (59, "aot_inductor")
