"""`Base`: what compaction wrote, the whole state at one commit, restorable by itself (FORMAT.md, section 8)."""

from collections.abc import Iterable
from dataclasses import dataclass

from checkpointer.canonical import Json, encode, seal, unseal
from checkpointer.chain import list_seqs
from checkpointer.commit import (
    BASES,
    FORMATS,
    BlobRef,
    Commit,
    Link,
    Part,
    Role,
    base_path,
    from_bytes,
    seq_of,
    to_json,
)
from checkpointer.epoch import read_claims
from checkpointer.errors import ChainError, Flaw, NotFoundError
from checkpointer.fields import Fields
from checkpointer.store import Store


@dataclass(frozen=True, kw_only=True, slots=True)
class Base:
    """The state at `commit`; `logical` is its logical digest."""

    commit: Commit
    logical: str
    blobs: tuple[BlobRef, ...]

    @property
    def seq(self) -> int:
        """The number of its commit."""
        return self.commit.seq

    @property
    def bytes(self) -> int:
        """The size of its blobs."""
        return sum(blob.bytes for blob in self.blobs)

    def parts(self, *roles: Role) -> Iterable[tuple[BlobRef, Part]]:
        """As `Commit.parts`; the rows of a table ascend over its parts."""
        return ((blob, part) for blob in self.blobs for part in blob.parts if part.role in roles)

    def check(self, link: Link) -> None:
        """Refuse a base that is not the state of the commit that the chain names."""
        if self.commit.link != link:
            raise ChainError(
                Flaw.FOREIGN, base_path(self.seq), f"it was made of another commit than {link.seq} of this log"
            )


def base_to_bytes(base: Base) -> bytes:
    """The manifest of a base."""
    blobs: list[Json] = [blob.to_json() for blob in base.blobs]
    value: dict[str, Json] = {
        "format": FORMATS.stop - 1,
        "seq": base.seq,
        "commit": {**to_json(base.commit), "digest": base.commit.digest},
        "logical": base.logical,
        "blobs": blobs,
    }
    return seal(value)[0]


def base_from_bytes(path: str, data: bytes) -> Base:
    """Read and check a base's manifest. Raises ChainError."""
    value, _ = unseal(path, data, FORMATS)
    fields = Fields(path, value)
    base = Base(
        commit=from_bytes(path, encode(fields.object("commit").values)),
        logical=fields.text("logical"),
        blobs=tuple(BlobRef.from_json(blob) for blob in fields.objects("blobs")),
    )
    if fields.integer("seq", 1) != base.seq or seq_of(path) != base.seq:
        raise ChainError(Flaw.REORDERED, path, f"it holds the base of commit {base.seq}")
    return base


def list_bases(store: Store) -> list[int]:
    """The numbers of the bases, ascending."""
    return [seq for entry in store.list(BASES) if (seq := seq_of(entry.path)) is not None]


def read_base(store: Store, seq: int) -> Base:
    """The base at `seq`."""
    try:
        data = store.get(base_path(seq))
    except NotFoundError:
        raise ChainError(Flaw.MISSING, base_path(seq), "there is no such base") from None
    return base_from_bytes(base_path(seq), data)


def newest_base(store: Store, until: int) -> Base | None:
    """The newest base at or before commit `until`."""
    seqs = [seq for seq in list_bases(store) if seq <= until]
    return read_base(store, seqs[-1]) if seqs else None


def lost_floor(store: Store) -> int:
    """Where a log whose claims were lost starts: with its first commit (0), or the oldest base it still reaches."""
    seqs = list_seqs(store)
    if read_claims(store).latest is not None or not seqs or seqs[0] == 1:
        return 0
    return min((seq for seq in list_bases(store) if seq >= seqs[0]), default=0)
