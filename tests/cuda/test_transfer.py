"""The way of batches to a real GPU."""

import threading

import torch
from torchrec.sparse.jagged_tensor import KeyedTensor

from features import Batch
from tests.trainer.test_transfer import tensors_of, whole_batch
from trainer.transfer import SideStream

GPU = torch.device("cuda", 0)
ROWS = 1 << 20


def test_every_tensor_of_a_batch_is_pinned() -> None:
    batch = whole_batch()
    pinned = tensors_of(batch.pin_memory())
    assert pinned.keys() == tensors_of(batch).keys() and all(tensor.is_pinned() for tensor in pinned.values())
    assert all(torch.equal(pinned[name], tensor) for name, tensor in tensors_of(batch).items())


def test_every_tensor_of_a_batch_arrives_as_it_was() -> None:
    batch = whole_batch()
    for pin in (True, False):
        moved = tensors_of(SideStream(GPU, pin=pin)(batch).receive())
        assert {tensor.device for tensor in moved.values()} == {GPU}
        assert all(torch.equal(moved[name].cpu(), tensor) for name, tensor in tensors_of(batch).items())


def test_batches_arrive_whole_while_the_step_computes_and_memory_is_used_again() -> None:
    send = SideStream(GPU, pin=True)
    sums: list[torch.Tensor] = []
    busy = torch.ones(2048, 2048, device=GPU)
    for number in range(50):
        held = KeyedTensor(["a"], [1], torch.full((ROWS, 1), float(number)))
        sent = send(Batch(size=ROWS, dense_features={"g": held}))
        for _ in range(4):
            busy = (busy @ busy).clamp(0, 1)
        received = sent.receive()
        # Queued behind the products, long after this batch is dropped here and the next one is on its way.
        sums.append(received.dense_features["g"].values().double().mean())
        del received, sent
    assert [float(value) for value in sums] == [float(number) for number in range(50)]


def test_a_thread_of_its_own_sends_to_the_right_device() -> None:
    last = torch.device("cuda", torch.cuda.device_count() - 1)
    send = SideStream(last, pin=True)
    found: list[Batch] = []
    thread = threading.Thread(target=lambda: found.append(send(whole_batch()).receive()))
    thread.start()
    thread.join()
    torch.cuda.synchronize(last)
    assert {tensor.device for tensor in tensors_of(found[0]).values()} == {last}
