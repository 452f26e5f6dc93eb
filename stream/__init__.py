"""Rows from topics and files, with cursors; NumPy and Arrow, never torch. The seams are in docs/interfaces.md."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from protos.pipeline_pb2 import EasyRecConfig
    from stream.source import Source


def open_source(
    config: EasyRecConfig,
    *,
    path: str | None = None,
    clock: Callable[[], float] = time.time,
    columns: Collection[str] | None = None,
    epoch: int | None = None,
    splits: int = 1,
) -> Source:
    """The source that `data_config.dataset_type` and the path name; raise SourceError where it cannot be opened.

    `path` is `train_input_path` where it is None; `columns` prunes what is read. Files are shuffled as configured in
    this pass of training, `epoch` (None: not training, in their order), and each is split into `splits` partitions.
    """
    # Replicas import features, and those stream.hashing: they need no Kafka client.
    from stream.opening import open_configured

    return open_configured(config, path=path, clock=clock, columns=columns, epoch=epoch, splits=splits)
