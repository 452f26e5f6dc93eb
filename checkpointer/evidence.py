"""What a model directory says about commits that were there, apart from the log itself: a lost end leaves no gap."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from checkpointer import chain
from checkpointer.bases import list_bases
from checkpointer.commit import LOG, base_path
from checkpointer.epoch import EPOCH_PATH, Claims
from checkpointer.store import Store

STAGED = "was staged after it"

T = TypeVar("T")


class Attempts(Protocol):
    """Runs an action; None where it failed, which is then on record."""

    def attempt(self, action: Callable[[], T]) -> T | None:
        """The result, or None."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """Why commit `seq` must have been in the log: `witness` says what names it."""

    seq: int
    witness: str


def gather(store: Store, claims: Claims | None, attempts: Attempts) -> tuple[list[Evidence], int]:
    """The newest commit that each kind of file speaks of, and the newest number that blobs were staged under.

    Read before the log is listed, so that a trainer that goes on meanwhile is never taken for a loss.
    """
    found = [*_of_claims(claims)] if claims else []
    if hint := attempts.attempt(lambda: chain.read_hint(store)):
        found.append(Evidence(seq=hint.seq, witness=f"{chain.HINT_PATH} names it"))
    if bases := attempts.attempt(lambda: list_bases(store)):
        found.append(Evidence(seq=bases[-1], witness=f"{base_path(bases[-1])} is its base"))
    if version := attempts.attempt(lambda: published_version(store)):
        found.append(Evidence(seq=version, witness=f"version {version} was published from it"))
    number, path = attempts.attempt(lambda: _staged_last(store)) or (0, "")
    if number > 1:
        # The writer has one commit in flight: it stages the next one when the last is linked.
        found.append(Evidence(seq=number - 1, witness=f"{path} {STAGED}"))
    return found, number


def lost(evidence: list[Evidence], last: int) -> Iterator[Evidence]:
    """What is said of commits after `last`, one line for each number."""
    by_seq: defaultdict[int, list[str]] = defaultdict(list)
    for one in evidence:
        if one.seq > last:
            by_seq[one.seq].append(one.witness)
    for seq, witnesses in sorted(by_seq.items()):
        yield Evidence(seq=seq, witness="; ".join(witnesses))


def published_version(store: Store) -> int | None:
    """The newest complete version, which is the number of its commit (publisher/FORMAT.md); None: there is none."""
    folders = {
        int(name): folder for folder in store.folders("versions") if (name := folder.rsplit("/", 1)[1]).isdigit()
    }
    complete = (
        seq
        for seq in sorted(folders, reverse=True)
        if any(entry.path == f"{folders[seq]}/manifest.json" for entry in store.list(folders[seq]))
    )
    return next(complete, None)


def _of_claims(claims: Claims) -> Iterator[Evidence]:
    """`known` counted when a producer claimed, `first` follows a commit, `floor` is one."""
    for claim in claims.claims:
        seq = max(claim.known, claim.first - 1)
        yield Evidence(seq=seq, witness=f"{EPOCH_PATH}: producer {claim.epoch} began after it")
    yield Evidence(seq=claims.floor, witness=f"{EPOCH_PATH}: the log starts with it")


def _staged_last(store: Store) -> tuple[int, str]:
    """The highest number that a blob was staged under, and that blob."""
    for folder in reversed(store.folders(f"{LOG}/blobs")):
        numbered = [(number, entry.path) for entry in store.list(folder) if (number := staged_under(entry.path))]
        if numbered:
            return max(numbered)
    return 0, ""


def staged_under(path: str) -> int | None:
    """The number in a blob's name; None for other names."""
    number = path.rsplit("/", 1)[-1][:20]
    return int(number) if number.isascii() and number.isdigit() else None
