"""One pass over the source: which partitions are this rank's, and the feed and prefetcher that read them."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from features import Batch, FeatureSet
from features.readers import readers
from features.sampling.draw import Draw
from features.sampling.maker import BatchMaker
from protos.pipeline_pb2 import EasyRecConfig
from protos.stream_pb2 import LATEST
from stream import open_source
from stream.feed import Cut, Feed, FeedOptions
from stream.files import FileSource, known_splits
from stream.missing import naming_readers
from stream.progress import RecordedCut
from stream.source import PartitionKey, Source
from trainer.position import Position
from trainer.prefetch import Prefetcher
from trainer.transfer import Transfer, in_place
from trainer.workers import Workers


@dataclass(frozen=True, kw_only=True, slots=True)
class Pass:
    """An open feed and its prefetcher."""

    feed: Feed
    prefetcher: Prefetcher


def own_partitions(partitions: Sequence[PartitionKey], workers: Workers) -> tuple[PartitionKey, ...]:
    """This rank's partitions: a pure function of the partition's number and the world size."""
    return tuple(key for key in partitions if key[1] % workers.world_size == workers.rank)


@contextmanager
def open_pass(
    config: EasyRecConfig,
    features: FeatureSet,
    maker: BatchMaker,
    position: Position,
    workers: Workers,
    *,
    depth: int,
    threads: int,
    transfer: Transfer = in_place,
    cuts: Sequence[RecordedCut] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Pass]:
    """Read on from `position`; after a revert with --from-now, from the ends of the partitions.

    A partition that the restored commit did not know is new: it starts at its earliest row, whatever the configured
    start position, which is for the first start only. `threads` make batches and send them, `depth` ahead. `cuts` are
    the recorded batches of an earlier run.
    """
    options = FeedOptions.from_proto(config, columns=features.columns)
    source = _open_shared(config, position, workers, options)
    own = own_partitions(source.partitions(), workers)
    known = position.progress.cursors
    first = tuple(key for key in own if key in known) if known else own
    with naming_readers(readers(features)):
        feed = Feed(
            source, options, validate=features.validate, progress=position.progress, keys=first, clock=clock, cuts=cuts
        )
        for key in own:
            if key not in first:
                feed.add_partition(key)
    epoch = position.epoch

    def make(cut: Cut) -> Batch:
        return maker.make(cut.rows, Draw.after(cut.cursors, seed=config.seed, epoch=epoch))

    prefetcher = Prefetcher(feed, make, depth=depth, threads=threads, transfer=transfer)
    try:
        yield Pass(feed=feed, prefetcher=prefetcher)
    finally:
        prefetcher.close()
        feed.close()


def _open_shared(config: EasyRecConfig, position: Position, workers: Workers, options: FeedOptions) -> Source:
    """The source; fewer files than ranks are split, so that each rank has a part.

    A pass that has begun goes on with the parts it began with, whatever the number of ranks now.
    """
    told = _starting_now(config) if position.from_now else config

    def opened(splits: int) -> Source:
        return open_source(told, columns=options.all_columns, epoch=position.epoch, splits=splits)

    known = known_splits(position.progress.cursors.values())
    source = opened(known or 1)
    count = len(source.partitions())
    if known is not None or not isinstance(source, FileSource) or not 0 < count < workers.world_size:
        return source
    source.close()
    return opened(-(-workers.world_size // count))


def join_new_partitions(feed: Feed, workers: Workers) -> None:
    """Read the partitions of this rank that have appeared since; at a commit, so that its cuts count alike."""
    for key in new_partitions(feed, workers):
        feed.add_partition(key)


def new_partitions(feed: Feed, workers: Workers) -> tuple[PartitionKey, ...]:
    """This rank's partitions that are not read yet."""
    return tuple(key for key in own_partitions(feed.known_partitions, workers) if key not in feed.partitions)


def _starting_now(config: EasyRecConfig) -> EasyRecConfig:
    changed = EasyRecConfig()
    changed.CopyFrom(config)
    changed.stream_config.start = LATEST
    return changed
