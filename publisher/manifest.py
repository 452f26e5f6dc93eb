"""What a serving version is, in memory; FORMAT.md says what it is on disk."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

FORMAT = 1
POINTER = "current.json"
PIN = "pin.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Blob:
    """A file of a version: its name in the store, its length in bytes, its SHA-256 in hex."""

    path: str
    size: int
    digest: str

    @classmethod
    def of(cls, path: str, payload: bytes) -> "Blob":
        """Describe a payload that is stored under `path`."""
        return cls(path=path, size=len(payload), digest=hashlib.sha256(payload).hexdigest())


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A served embedding table; ids are raw ids ("zch") or row numbers ("direct")."""

    name: str
    kind: str
    dim: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Base:
    """Every row as of commit `seq`."""

    seq: int
    rows: int
    blobs: tuple[Blob, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Delta:
    """What the commits in (after, seq] changed; tables in `resets` lose every earlier row first."""

    after: int
    seq: int
    rows: int
    resets: tuple[str, ...]
    blobs: tuple[Blob, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Artefact:
    """A compiled dense half and the host it was compiled for."""

    runtime: str
    blob: Blob
    torch: str
    machine: str
    isa: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Asset:
    """A file that the version's features read; `name` is what its configuration calls it."""

    name: str
    blob: Blob


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamRange:
    """Rows of one partition that this version learned since the previous one: from start to before end."""

    topic: str
    topic_id: str
    partition: int
    start_offset: int
    start_row: int
    end_offset: int
    end_row: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingVersion:
    """One joint state of the model, as served: the manifest `versions/<version>/manifest.json`.

    `series` changes whenever deltas before `base` can no longer be applied on top of an earlier version (another chain,
    another row encoding). `broker_time_ms` is the append time of the newest event that it learned, or -1.
    `described` is what its features are, to name what differs from a reader's; older versions have none, and no assets.
    """

    version: int
    previous: int | None
    chain: str
    commit: str
    series: str
    contract: str
    features: str
    step: int
    event_time_ms: int
    watermark_ms: int
    broker_time_ms: int
    created_ms: int
    encoding: str
    tables: tuple[Table, ...]
    base: Base
    deltas: tuple[Delta, ...]
    dense: Blob
    artefacts: tuple[Artefact, ...]
    config: Blob
    layout: Blob
    stream: tuple[StreamRange, ...]
    metrics: Mapping[str, float]
    assets: tuple[Asset, ...] = ()
    described: Blob | None = None

    @property
    def path(self) -> str:
        """The name of its manifest in the store."""
        return manifest_path(self.version)

    def plan(self, loaded: "ServingVersion | None") -> "Plan":
        """Say what to read to get from `loaded` (or from nothing) to this version."""
        if loaded is not None and loaded.series == self.series and loaded.version <= self.version:
            deltas = tuple(delta for delta in self.deltas if delta.seq > loaded.version)
            if not deltas and loaded.version == self.version:
                return Plan(base=None, deltas=())
            if deltas and deltas[0].after == loaded.version:
                return Plan(base=None, deltas=deltas)
        return Plan(base=self.base, deltas=tuple(delta for delta in self.deltas if delta.seq > self.base.seq))


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What to read: a base to start from, or None to go on from what is loaded, then deltas in order."""

    base: Base | None
    deltas: tuple[Delta, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pointer:
    """Which version is served; `generation` grows with every swap, so that no two pointers have the same bytes."""

    version: int
    digest: str
    generation: int
    swapped_ms: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Pin:
    """A rollback holds the pointer at `version`."""

    version: int
    pinned_ms: int


def manifest_path(version: int) -> str:
    """Name the manifest of a version.

    >>> manifest_path(42)
    'versions/00000000000000000042/manifest.json'
    """
    return f"versions/{version:020d}/manifest.json"


def refusal_path(version: int) -> str:
    """Name the note that the gate leaves for people."""
    return f"versions/{version:020d}/refused.json"
