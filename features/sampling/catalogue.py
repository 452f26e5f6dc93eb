"""The files and tables of a sampler in memory, read again when they change while training goes on."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from features.errors import SamplerError
from features.sampling.listing import Listed, OpenOdps, list_path
from features.sampling.options import SamplerOptions
from features.sampling.tables import EdgeTable, NodeTable, parse_edges, parse_nodes
from protos.s3_account import ENVIRONMENT, S3Account

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 30.0

Clock = Callable[[], float]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Tables:
    """What a sampler draws from; `positive` and `hard` lead from users to items, `ancestors` from leaves to nodes."""

    items: NodeTable
    positive: EdgeTable | None = None
    hard: EdgeTable | None = None
    ancestors: EdgeTable | None = None


class Catalogue:
    """Reads the files when it is made; `tables` looks for changes now and then.

    A change that cannot be read is logged and counted, and the tables stay as they are: a writer may be half-way.
    """

    def __init__(
        self,
        options: SamplerOptions,
        *,
        odps: OpenOdps,
        s3: S3Account = ENVIRONMENT,
        clock: Clock = time.monotonic,
        every_s: float = LOOK_EVERY_S,
    ) -> None:
        self._options = options
        self._listing = partial(list_path, delimiter=options.field_delimiter, odps=odps, s3=s3)
        self._clock = clock
        self._every_s = every_s
        self._looked = clock()
        self._reloads = self._failures = 0
        self._listed = _list_all(options, self._listing)
        self._tables = _load(options, self._listed)

    def tables(self) -> Tables:
        """The newest tables that could be read; the same object while nothing changed."""
        now = self._clock()
        if now - self._looked >= self._every_s:
            self._looked = now
            self._reload()
        return self._tables

    def totals(self) -> dict[str, int]:
        """How often changed files were read again, or could not be."""
        return {"reloads": self._reloads, "failed_reloads": self._failures}

    def _reload(self) -> None:
        try:
            listed = _list_all(self._options, self._listing)
            if _versions(listed) == _versions(self._listed):
                return
            tables = _load(self._options, listed)
        except SamplerError as error:
            self._failures += 1
            logger.warning("sampler kept=old failures=%d error=%s", self._failures, error)
            return
        self._listed, self._tables = listed, tables
        self._reloads += 1
        logger.info("sampler reloaded items=%d reloads=%d", len(tables.items.ids), self._reloads)


def _list_all(options: SamplerOptions, listing: Callable[[str], Listed]) -> dict[str, Listed]:
    named = {
        "item": options.item_path,
        "positive": options.positive_path,
        "hard": options.hard_path,
        "edge": options.edge_path,
    }
    needed: dict[str, tuple[str, ...]] = {
        "negative_sampler_v2": ("positive",),
        "hard_negative_sampler": ("hard",),
        "hard_negative_sampler_v2": ("positive", "hard"),
        "tdm_sampler": ("edge",),
    }
    for name in ("item", *needed.get(options.kind, ())):
        if not named[name]:
            raise SamplerError(f"{options.kind}: the path of its {name} file is empty; set it before training starts")
    return {name: listing(path) for name, path in named.items() if path}


def _versions(listed: dict[str, Listed]) -> dict[str, str]:
    return {name: one.version for name, one in listed.items()}


def _load(options: SamplerOptions, listed: dict[str, Listed]) -> Tables:
    nodes = listed["item"].lines(columns=3, weight=1)
    items = parse_nodes(nodes, attr_delimiter=options.attr_delimiter, attributes=options.attributes)
    edges = {name: parse_edges(one.lines(columns=3, weight=2)) for name, one in listed.items() if name != "item"}
    return Tables(items=items, positive=edges.get("positive"), hard=edges.get("hard"), ancestors=edges.get("edge"))
