"""`epoch.json`: which producer may append, when older ones are void, where the log starts (FORMAT.md)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, auto

from checkpointer.canonical import Json, seal, unseal
from checkpointer.errors import ChainError, ConflictError, FencedError, Flaw, NotFoundError
from checkpointer.fields import Fields
from checkpointer.store import Store

EPOCH_PATH = "epoch.json"
_FORMATS = range(1, 2)
_REMEDY = "restore it, or stop all trainers of this directory and delete it: the next one makes it anew from the log"


class Standing(Enum):
    """What an entry of the log is worth."""

    COUNTS = auto()
    VOID = auto()
    UNDECIDED = auto()  # a newer producer has claimed but not yet said where it starts


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One producer's claim. `known` counted before it; from `first` on (0: not yet said) older epochs are void."""

    epoch: int
    known: int
    first: int
    token: str

    def to_json(self) -> dict[str, Json]:
        """The form inside epoch.json."""
        return {"epoch": self.epoch, "known": self.known, "first": self.first, "token": self.token}

    @classmethod
    def from_json(cls, fields: Fields) -> "Claim":
        """Read the form inside epoch.json."""
        return cls(
            epoch=fields.integer("epoch", 1),
            known=fields.integer("known"),
            first=fields.integer("first"),
            token=fields.text("token"),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Claims:
    """All claims that can still matter, oldest first. Entries numbered below `floor` are garbage."""

    claims: tuple[Claim, ...] = ()
    floor: int = 0

    @property
    def latest(self) -> Claim | None:
        """The producer that may append."""
        return self.claims[-1] if self.claims else None

    def judge(self, seq: int, epoch: int) -> Standing:
        """What entry `seq` of `epoch` is worth, if these claims were read after the entry was.

        >>> claims = Claims(claims=(Claim(epoch=2, known=7, first=0, token="host:1234"),))
        >>> claims.judge(7, 1).name, claims.judge(8, 1).name, claims.judge(8, 2).name
        ('COUNTS', 'UNDECIDED', 'COUNTS')
        """
        newer = [claim for claim in self.claims if claim.epoch > epoch]
        if not newer or seq <= newer[0].known:
            return Standing.COUNTS
        sealed = [claim for claim in newer if claim.first]
        if not sealed:
            return Standing.UNDECIDED
        return Standing.COUNTS if seq < sealed[0].first else Standing.VOID

    def before(self, epoch: int) -> "Claims":
        """The claims as they were before `epoch` was claimed."""
        return replace(self, claims=tuple(claim for claim in self.claims if claim.epoch < epoch))

    def raised(self, floor: int) -> "Claims":
        """With a floor, and without the claims that cannot matter above it."""
        if floor <= self.floor:
            return self
        settled = [index for index, claim in enumerate(self.claims) if 0 < claim.first <= floor]
        if not settled:
            return replace(self, floor=floor)
        # What is older than the last settled claim is void under any number: retention freed the numbers below.
        oldest = replace(self.claims[settled[-1]], known=0, first=1)
        return Claims(claims=(oldest, *self.claims[settled[-1] + 1 :]), floor=floor)


def read_claims(store: Store) -> Claims:
    """The claims; none where nobody ever wrote."""
    return _read(store)[0]


def claim_epoch(store: Store, token: str, known: int, *, after: int = 0, floor: int = 0) -> Claim:
    """Become the newest producer. `known` is the number of a commit that counts, or 0.

    `after`, an epoch below the new one, and `floor` are for a log whose claims were lost.
    """
    while True:
        claims, old = _read(store)
        if old is None:
            claims = Claims(floor=floor)
        newest = claims.latest.epoch if claims.latest else after
        claim = Claim(epoch=newest + 1, known=known, first=0, token=token)
        try:
            _swap(store, old, replace(claims, claims=(*claims.claims, claim)), "epoch.claim")
        except ConflictError:
            continue
        return claim


def seal_claim(store: Store, claim: Claim, first: int) -> Claim:
    """Say where the claim starts. Raises FencedError when a newer one is there."""
    sealed = replace(claim, first=first)
    change_claims(store, claim, lambda claims: replace(claims, claims=(*claims.claims[:-1], sealed)), "epoch.seal")
    return sealed


def still_latest(store: Store, claim: Claim) -> bool:
    """Whether `claim` still names the newest producer."""
    return _names(read_claims(store), claim)


def change_claims(store: Store, claim: Claim | None, change: Callable[[Claims], Claims], point: str) -> None:
    """Swap in changed claims; with `claim`, only while that is the latest."""
    while True:
        claims, old = _read(store)
        if claim is not None and not _names(claims, claim):
            raise FencedError(f"{_who(claims)} took over {store.url}; this producer (epoch {claim.epoch}) must stop")
        changed = change(claims)
        if changed == claims:
            return
        try:
            _swap(store, old, changed, point)
        except ConflictError:
            continue
        return


def _names(claims: Claims, claim: Claim) -> bool:
    latest = claims.latest
    return latest is not None and (latest.epoch, latest.token) == (claim.epoch, claim.token)


def _who(claims: Claims) -> str:
    return f"{claims.latest.token} (epoch {claims.latest.epoch})" if claims.latest else "nobody"


def _read(store: Store) -> tuple[Claims, bytes | None]:
    try:
        data = store.get(EPOCH_PATH)
    except NotFoundError:
        return Claims(), None
    try:
        return _parse(data), data
    except ChainError as error:
        if error.flaw is Flaw.NEWER_FORMAT:
            raise
        raise ChainError(error.flaw, error.path, error.detail, remedy=_REMEDY) from None


def _parse(data: bytes) -> Claims:
    value, _ = unseal(EPOCH_PATH, data, _FORMATS)
    fields = Fields(EPOCH_PATH, value)
    claims = tuple(Claim.from_json(claim) for claim in fields.objects("claims"))
    return Claims(claims=claims, floor=fields.integer("floor"))


def _swap(store: Store, old: bytes | None, claims: Claims, point: str) -> None:
    listed: list[Json] = [claim.to_json() for claim in claims.claims]
    data, _ = seal({"format": _FORMATS.stop - 1, "claims": listed, "floor": claims.floor})
    store.compare_and_swap(EPOCH_PATH, old, data, point=point)
