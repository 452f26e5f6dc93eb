"""Batches on their way to a device: what is ordered before what, on which thread, and that nothing is left behind."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields

import pytest
import torch
from torchrec.sparse.jagged_tensor import JaggedTensor, KeyedJaggedTensor, KeyedTensor

from features import Batch
from stream.feed import Cut
from tests.trainer.test_prefetch import Listed, cut
from trainer.devices import CPU
from trainer.prefetch import Prefetcher
from trainer.transfer import Sent, SideStream, open_transfer

GPU = torch.device("cuda", 1)


@dataclass(kw_only=True)
class Streams:
    """torch.cuda as far as order goes: it writes down what would be queued where."""

    queued: list[tuple[str, str]] = field(default_factory=list)
    current: str = "compute"

    def Stream(self, device: torch.device) -> "Queue":  # noqa: N802
        assert device == GPU
        return Queue(self, "side")

    @contextmanager
    def stream(self, stream: "Queue") -> Iterator[None]:
        before, self.current = self.current, stream.name
        yield
        self.current = before

    def current_stream(self, device: torch.device) -> "Queue":
        assert device == GPU
        return Queue(self, self.current)

    def note(self, what: str, stream: str | None = None) -> None:
        self.queued.append((stream or self.current, what))


@dataclass(frozen=True)
class Queue:
    streams: Streams
    name: str

    def record_event(self) -> str:
        self.streams.note("event", self.name)
        return "the copy's event"

    def wait_event(self, event: str) -> None:
        self.streams.note(f"wait for {event}", self.name)


@dataclass(frozen=True, eq=False)
class Held:
    """A tensor that tells where it goes."""

    streams: Streams
    place: str = "host"

    def pin_memory(self) -> "Held":
        self.streams.note("pin")
        return Held(self.streams, "pinned")

    def to(self, device: torch.device, *, non_blocking: bool) -> "Held":
        assert non_blocking
        self.streams.note(f"copy from {self.place} memory")
        return Held(self.streams, str(device))

    def record_stream(self, stream: Queue) -> None:
        self.streams.note(f"{self.place} is used", stream.name)


@pytest.mark.parametrize("pin", [True, False])
def test_a_copy_is_queued_beside_the_step_which_waits_for_it_and_keeps_its_memory(pin: bool) -> None:
    streams = Streams()
    send = SideStream(GPU, pin=pin, streams=streams)  # type: ignore[arg-type]
    made = Batch(size=1, labels={"label": Held(streams)})  # type: ignore[dict-item]
    sent = send(made)
    copy = [("side", "pin"), ("side", "copy from pinned memory")] if pin else [("side", "copy from host memory")]
    assert streams.queued == [*copy, ("side", "event")]
    received = sent.receive()
    assert streams.queued[-2:] == [("compute", "wait for the copy's event"), ("compute", "cuda:1 is used")]
    assert sent.host is made and received.size == 1
    assert received.labels["label"].place == "cuda:1"  # type: ignore[attr-defined]


def test_on_the_cpu_a_batch_stays_what_it_is() -> None:
    batch = Batch(size=3)
    sent = open_transfer(CPU, pin=True)(batch)
    assert sent.host is batch and sent.receive() is batch


class Watched:
    """A transfer that writes down who sends and who receives what."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, str]] = []
        self.received: list[tuple[int, int]] = []

    def __call__(self, batch: Batch) -> Sent:
        self.sent.append((batch.size, threading.current_thread().name))

        def receive() -> Batch:
            self.received.append((batch.size, threading.get_ident()))
            return Batch(size=batch.size)

        return Sent(host=batch, receive=receive)


@pytest.mark.parametrize("threads", [1, 3])
def test_batches_are_sent_ahead_and_received_in_order_by_the_thread_that_trains(threads: int) -> None:
    made: dict[int, Batch] = {}
    watched = Watched()

    def make(of: Cut) -> Batch:
        number = int(of.rows.column("n")[0].as_py())
        made[number] = Batch(size=number)
        return made[number]

    feed = Listed([cut(number) for number in range(1, 10)])
    prefetcher = Prefetcher(feed, make, depth=2, threads=threads, transfer=watched)  # type: ignore[arg-type]
    taken: list[int] = []
    try:
        while not prefetcher.finished:
            item = prefetcher.next(30.0)
            if item is None:
                continue
            if item.batch is None:
                assert item.host is None and item.cut.rows.num_rows == 0
                continue
            taken.append(item.batch.size)
            assert item.host is made[item.batch.size] and item.batch is not item.host
            assert watched.received == [(number, threading.get_ident()) for number in taken]
    finally:
        prefetcher.close()
    assert taken == [1, 2, 3, 4, 5, 6, 8, 9]
    assert sorted(number for number, _ in watched.sent) == taken
    assert all(name.startswith("batches") for _, name in watched.sent)


def whole_batch() -> Batch:
    """A batch with something in every field that holds tensors."""
    number, lengths = torch.ones(2), torch.ones(2, dtype=torch.int32)
    jagged = JaggedTensor(values=number, lengths=lengths, weights=number)
    keyed = KeyedJaggedTensor(keys=["a"], values=lengths.long(), lengths=lengths, weights=number, stride=2)
    dense = KeyedTensor(keys=["a"], length_per_key=[1], values=number.view(2, 1))
    tensors = {"labels": number, "sample_weights": number, "additional_infos": lengths}
    batch = Batch(
        size=2,
        dense_features={"g": dense},
        sparse_features={"g": keyed},
        jagged_labels={"l": jagged},
        sequence_mulval_lengths={"g": keyed},
        sequence_dense_features={"s": jagged},
        **{name: {"x": tensor} for name, tensor in tensors.items()},  # type: ignore[arg-type]
    )
    dicts = {f.name for f in fields(batch) if isinstance(getattr(batch, f.name), dict)}
    assert all(getattr(batch, name) for name in dicts) and len(dicts) == 8
    return batch


def tensors_of(batch: Batch) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for item in fields(batch):
        held = getattr(batch, item.name)
        for value in held.values() if isinstance(held, dict) else ():
            if isinstance(value, torch.Tensor):
                found[item.name] = value
                continue
            found[f"{item.name}.values"] = value.values()
            if not isinstance(value, KeyedTensor):
                found[f"{item.name}.lengths"], found[f"{item.name}.weights"] = value.lengths(), value.weights()
    return found


def test_every_tensor_of_a_batch_moves() -> None:
    batch = whole_batch()
    moved = tensors_of(batch.to(torch.device("meta"), non_blocking=True))
    before = tensors_of(batch)
    assert len(before) == 16 and moved.keys() == before.keys()
    assert {str(tensor.device) for tensor in moved.values()} == {"meta"}
    assert all(moved[name].dtype == tensor.dtype for name, tensor in before.items())
    assert all(moved[name].shape == tensor.shape for name, tensor in before.items())


def test_every_tensor_of_a_batch_is_kept_until_the_stream_has_used_it() -> None:
    streams = Streams()
    names = [item.name for item in fields(Batch) if item.name not in ("size", "reserves", "tile_size")]
    batch = Batch(size=2, **{name: {"x": Held(streams, name)} for name in names})  # type: ignore[arg-type]
    batch.record_stream(Queue(streams, "compute"))  # type: ignore[arg-type]
    assert streams.queued == [("compute", f"{name} is used") for name in names]
