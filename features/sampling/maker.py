"""Rows to batches of training and evaluation: sampled, masked, generated."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from features.batch import Batch
from features.feature_set import FeatureSet, Masks
from features.sampling.catalogue import Catalogue
from features.sampling.draw import Draw
from features.sampling.negative import NegativeSampler, Sampled
from features.sampling.options import SamplerOptions
from features.sampling.tdm import TdmSampler
from protos import pipeline_pb2
from protos.s3_account import data_account
from stream.opening import odps_options

Bools = npt.NDArray[np.bool_]
Sampler = NegativeSampler | TdmSampler


class BatchMaker:
    """Makes batches for several threads; what is random in one depends on its `Draw` and the samplers' files."""

    def __init__(
        self,
        features: FeatureSet,
        sampler: Sampler | None,
        *,
        mask_probability: float = 0.0,
        negative_mask_probability: float = 0.0,
    ) -> None:
        self._features = features
        self._sampler = sampler
        self._sampling = threading.Lock()  # a sampler counts, and reads its files again
        self._probability = mask_probability
        self._negative_probability = negative_mask_probability

    def totals(self) -> Mapping[str, int]:
        """What the sampler counted since the start; nothing without one."""
        return {} if self._sampler is None else self._sampler.totals()

    def make(self, rows: pa.RecordBatch, draw: Draw) -> Batch:
        """The batch of rows that passed `validate`."""
        sampled = self._sample(rows, draw)
        masks = None if draw.evaluating else self._masks(sampled, draw)
        batch = self._features.parse(sampled.rows, items=sampled.items, masks=masks)
        if not sampled.infos:
            return batch
        return replace(batch, additional_infos=_tensors(sampled.infos))

    def _sample(self, rows: pa.RecordBatch, draw: Draw) -> Sampled:
        if self._sampler is None:
            return Sampled(rows=rows)
        with self._sampling:
            return self._sampler.sample(rows, draw)

    def _masks(self, sampled: Sampled, draw: Draw) -> Masks | None:
        """Bernoulli draws for each row, and for each sampled one; none where nothing can be masked."""
        if not (self._probability or self._negative_probability):
            return None
        random = draw.generator("mask")
        count = sampled.rows.num_rows
        if sampled.negative is not None:
            chance = np.where(sampled.negative, self._negative_probability, self._probability)
            return Masks(rows=random.random(count) < chance, items=None)
        rows = random.random(count) < self._probability
        more = draw.generator("negative mask").random(sampled.added) < self._negative_probability
        return Masks(rows=rows, items=np.concatenate((rows, more)))


def open_maker(
    config: pipeline_pb2.EasyRecConfig, features: FeatureSet, *, clock: Callable[[], float] = time.monotonic
) -> BatchMaker:
    """Read the sampler's files, where there is one; raise SamplerError. `clock` counts seconds."""
    options = SamplerOptions.from_proto(config)
    sampler: Sampler | None = None
    if options is not None:
        catalogue = Catalogue(
            options, odps=partial(odps_options, config.data_config), s3=data_account(config), clock=clock
        )
        if options.expands:
            sampler = TdmSampler(options, catalogue, features.unusable, features.labels)
        else:
            sampler = NegativeSampler(options, catalogue, features.unusable)
    data = config.data_config
    return BatchMaker(
        features,
        sampler,
        mask_probability=data.sample_mask_prob,
        negative_mask_probability=data.negative_sample_mask_prob,
    )


def _tensors(infos: Mapping[str, npt.NDArray[np.int32]]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(np.array(values, np.int32)) for name, values in infos.items()}
