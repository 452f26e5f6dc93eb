"""How a batch gets from the thread that made it to the device that learns from it, beside the step that runs there."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

import torch

from features import Batch


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """A batch on its way. `receive()`, once, gives it to what the calling thread does on the device from then on."""

    host: Batch  # as it was made, in the CPU's memory
    receive: Callable[[], Batch]


Transfer: TypeAlias = Callable[[Batch], Sent]
"""Sends a batch to which nothing writes any more; on any thread."""


class Streams(Protocol):
    """What of torch.cuda orders work on a device."""

    def Stream(self, device: torch.device) -> torch.cuda.Stream: ...  # noqa: N802

    def stream(self, stream: torch.cuda.Stream) -> AbstractContextManager[object]: ...

    def current_stream(self, device: torch.device) -> torch.cuda.Stream: ...


def in_place(batch: Batch) -> Sent:
    """To the CPU: the batch is there."""
    return Sent(host=batch, receive=lambda: batch)


class SideStream:
    """To a GPU: copies on a stream of their own, which `pin`ned memory does not hold up, while the step's computes."""

    def __init__(self, device: torch.device, *, pin: bool, streams: Streams = torch.cuda) -> None:
        self._device = device
        self._pin = pin
        self._streams = streams
        self._stream = streams.Stream(device)

    def __call__(self, batch: Batch) -> Sent:
        # The stream's device becomes this thread's; a new thread has the first one.
        with self._streams.stream(self._stream):
            source = batch.pin_memory() if self._pin else batch
            moved = source.to(self._device, non_blocking=True)
            arrived = self._stream.record_event()
        return Sent(host=batch, receive=partial(self._receive, moved, arrived))

    def _receive(self, moved: Batch, arrived: torch.cuda.Event) -> Batch:
        current = self._streams.current_stream(self._device)
        current.wait_event(arrived)
        # The memory is the side stream's: without this its next copy may overwrite what the step still reads.
        moved.record_stream(current)
        return moved


def open_transfer(device: torch.device, *, pin: bool) -> Transfer:
    """The way to `device`."""
    return in_place if device.type == "cpu" else SideStream(device, pin=pin)
