"""`Commit`: what one manifest says, and its form as canonical JSON (FORMAT.md, section 3)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from checkpointer.canonical import Json, seal, unseal
from checkpointer.errors import ChainError, Flaw
from checkpointer.fields import Fields

FORMATS = range(1, 2)
LOG = "log"
BASES = "bases"


class Kind(StrEnum):
    """A base says everything by itself; a delta says what changed since its parent."""

    BASE = "base"
    DELTA = "delta"


class Role(StrEnum):
    """What one part of a blob holds."""

    ROWS = "rows"  # Parquet: PUTs
    DELETED = "deleted"  # Parquet: DELs
    DENSE = "dense"  # safetensors
    STREAM = "stream"  # protobuf, headrace.protos.StreamState


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Consecutive bytes of a blob; `table`, `kind`, `shard` and `reset` are those of the rows."""

    role: Role
    offset: int
    bytes: int
    sha256: str
    rows: int = 0
    table: str = ""
    kind: str = ""
    shard: int = 0
    reset: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """As `TableRows.key`."""
        return (self.table, self.kind)

    def to_json(self) -> dict[str, Json]:
        """The form inside a manifest."""
        value: dict[str, Json] = {
            "role": self.role.value,
            "offset": self.offset,
            "bytes": self.bytes,
            "sha256": self.sha256,
        }
        if self.role in (Role.ROWS, Role.DELETED):
            value |= {
                "rows": self.rows,
                "table": self.table,
                "kind": self.kind,
                "shard": self.shard,
                "reset": self.reset,
            }
        return value

    @classmethod
    def from_json(cls, fields: Fields) -> "Part":
        """Read the form inside a manifest."""
        try:
            role = Role(fields.text("role"))
        except ValueError:
            raise fields.flaw(f"unknown role {fields.text('role')!r}") from None
        offset, size, digest = fields.integer("offset"), fields.integer("bytes"), fields.text("sha256")
        if role not in (Role.ROWS, Role.DELETED):
            return cls(role=role, offset=offset, bytes=size, sha256=digest)
        return cls(
            role=role,
            offset=offset,
            bytes=size,
            sha256=digest,
            rows=fields.integer("rows"),
            table=fields.text("table"),
            kind=fields.text("kind"),
            shard=fields.integer("shard"),
            reset=fields.flag("reset"),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class BlobRef:
    """A blob that one rank has made durable; it travels to rank 0 as JSON."""

    path: str
    bytes: int
    rank: int
    parts: tuple[Part, ...]

    def to_json(self) -> dict[str, Json]:
        """The form inside a manifest."""
        parts: list[Json] = [part.to_json() for part in self.parts]
        return {"path": self.path, "bytes": self.bytes, "rank": self.rank, "parts": parts}

    @classmethod
    def from_json(cls, fields: Fields) -> "BlobRef":
        """Read the form inside a manifest."""
        parts = tuple(Part.from_json(part) for part in fields.objects("parts"))
        blob = cls(path=fields.text("path"), bytes=fields.integer("bytes"), rank=fields.integer("rank"), parts=parts)
        if any(part.offset + part.bytes > blob.bytes for part in parts):
            raise fields.flaw(f"a part ends after its blob {blob.path}")
        return blob


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """Another commit, by number and digest; seq 0 with an empty digest stands before the first one."""

    seq: int
    digest: str

    def to_json(self) -> dict[str, Json]:
        """The form inside a manifest."""
        return {"seq": self.seq, "digest": self.digest}

    @classmethod
    def from_json(cls, fields: Fields) -> "Link":
        """Read the form inside a manifest."""
        return cls(seq=fields.integer("seq"), digest=fields.text("digest"))


START = Link(seq=0, digest="")


@dataclass(frozen=True, kw_only=True, slots=True)
class TableCounts:
    """What one commit does to one table."""

    put: int
    deleted: int
    reset: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Commit:
    """One instant of training. `digest` is that of the manifest."""

    seq: int
    digest: str
    parent: Link
    chain: str  # drawn when a chain starts: by the first commit, and by a revert
    epoch: int  # of the producer
    kind: Kind
    step: int
    event_time_ms: int  # newest trained, -1: none
    broker_time_ms: int  # newest trained, -1: none
    committed_ms: int  # by the writer's clock
    world: int
    contract: str  # digest of the serving contract
    features: str  # digest of the feature set
    figures: Mapping[str, float]
    blobs: tuple[BlobRef, ...]
    kept: bool = False  # save_checkpoints_*: retention keeps a base of it
    from_now: bool = False  # after a revert: start at the topics' ends instead of the cursors
    forked: Link | None = None  # a revert: the commit whose state this is
    writer: str = ""

    @property
    def path(self) -> str:
        """Where the manifest lies in the log."""
        return log_path(self.seq)

    @property
    def link(self) -> Link:
        """This commit, as its child names it."""
        return Link(seq=self.seq, digest=self.digest)

    @property
    def bytes(self) -> int:
        """The size of its blobs."""
        return sum(blob.bytes for blob in self.blobs)

    @property
    def grown_bytes(self) -> int:
        """What a restore of a later commit reads of it: all but the dense parts."""
        return sum(part.bytes for blob in self.blobs for part in blob.parts if part.role is not Role.DENSE)

    def parts(self, *roles: Role) -> Iterable[tuple[BlobRef, Part]]:
        """Its parts of these roles, by rank, then in the order they were written."""
        return ((blob, part) for blob in self.blobs for part in blob.parts if part.role in roles)

    @property
    def tables(self) -> dict[str, TableCounts]:
        """Row counts by "table/kind"."""
        counts: dict[str, TableCounts] = {}
        for _, part in self.parts(Role.ROWS, Role.DELETED):
            name = f"{part.table}/{part.kind}"
            old = counts.get(name, TableCounts(put=0, deleted=0, reset=False))
            put = part.rows if part.role is Role.ROWS else 0
            counts[name] = TableCounts(
                put=old.put + put, deleted=old.deleted + part.rows - put, reset=old.reset or part.reset
            )
        return counts


def log_path(seq: int) -> str:
    """The manifest of a commit.

    >>> log_path(42)
    'log/00000000000000000042.json'
    """
    return f"{LOG}/{seq:020d}.json"


def base_path(seq: int) -> str:
    """The manifest of a base that compaction wrote."""
    return f"{BASES}/{seq:020d}.json"


def seq_of(path: str) -> int | None:
    """The number in a manifest's name; None for other names."""
    name = path.rsplit("/", 1)[-1]
    stem, dot, ending = name.partition(".")
    return int(stem) if (dot and ending == "json" and len(stem) == 20 and stem.isascii() and stem.isdigit()) else None


def to_bytes(commit: Commit) -> tuple[bytes, str]:
    """The manifest and its digest; `commit.digest` is not looked at."""
    return seal(to_json(commit))


def to_json(commit: Commit) -> dict[str, Json]:
    """The manifest as a value, without its digest."""
    blobs: list[Json] = [blob.to_json() for blob in commit.blobs]
    tables: dict[str, Json] = {
        name: {"put": counts.put, "deleted": counts.deleted, "reset": counts.reset}
        for name, counts in commit.tables.items()
    }
    value: dict[str, Json] = {
        "format": FORMATS.stop - 1,
        "seq": commit.seq,
        "parent": commit.parent.to_json(),
        "chain": commit.chain,
        "epoch": commit.epoch,
        "kind": commit.kind.value,
        "step": commit.step,
        "event_time_ms": commit.event_time_ms,
        "broker_time_ms": commit.broker_time_ms,
        "committed_ms": commit.committed_ms,
        "world": commit.world,
        "contract": commit.contract,
        "features": commit.features,
        "figures": dict(commit.figures),
        "tables": tables,
        "blobs": blobs,
        "kept": commit.kept,
        "from_now": commit.from_now,
        "writer": commit.writer,
    }
    if commit.forked is not None:
        value["forked"] = commit.forked.to_json()
    return value


def from_bytes(path: str, data: bytes) -> Commit:
    """Read and check one manifest by itself; its place in the chain is the reader's business. Raises ChainError."""
    value, digest = unseal(path, data, FORMATS)
    fields = Fields(path, value)
    if fields.text("kind") not in (Kind.BASE, Kind.DELTA):
        raise fields.flaw(f"unknown kind {fields.text('kind')!r}")
    commit = Commit(
        seq=fields.integer("seq", 1),
        digest=digest,
        parent=Link.from_json(fields.object("parent")),
        chain=fields.text("chain"),
        epoch=fields.integer("epoch", 1),
        kind=Kind(fields.text("kind")),
        step=fields.integer("step"),
        event_time_ms=fields.integer("event_time_ms", -1),
        broker_time_ms=fields.integer("broker_time_ms", -1),
        committed_ms=fields.integer("committed_ms"),
        world=fields.integer("world", 1),
        contract=fields.text("contract"),
        features=fields.text("features"),
        figures=fields.numbers("figures"),
        blobs=tuple(BlobRef.from_json(blob) for blob in fields.objects("blobs")),
        kept=fields.flag("kept"),
        from_now=fields.flag("from_now"),
        forked=Link.from_json(fields.object("forked")) if fields.has("forked") else None,
        writer=fields.text("writer"),
    )
    _check_counts(fields, commit)
    return commit


def _check_counts(fields: Fields, commit: Commit) -> None:
    said = {
        name: TableCounts(put=table.integer("put"), deleted=table.integer("deleted"), reset=table.flag("reset"))
        for name in fields.object("tables").values
        for table in [fields.object("tables").object(name)]
    }
    if said != commit.tables:
        raise fields.flaw("the row counts per table are not those of the parts")
    ranks = sorted({blob.rank for blob in commit.blobs})
    if ranks != list(range(commit.world)):
        raise ChainError(Flaw.WORLD, fields.path, f"world size {commit.world}, but blobs of ranks {ranks}")
    if commit.parent.seq >= commit.seq:
        raise fields.flaw(f"its parent has number {commit.parent.seq}")
