"""`verify`: read everything, believe nothing, and name every flaw (FORMAT.md, section 7)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from checkpointer import blob as blobs
from checkpointer import chain
from checkpointer.bases import Base, list_bases, read_base
from checkpointer.commit import START, BlobRef, Commit, Part, Role, base_path, log_path
from checkpointer.compact import prove
from checkpointer.epoch import EPOCH_PATH, Claims, Standing, read_claims
from checkpointer.errors import ChainError, Flaw, StoreError
from checkpointer.evidence import Evidence, gather, lost
from checkpointer.restore import ahead
from checkpointer.store import Store

_PARTS_AHEAD = 4

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One flaw."""

    flaw: Flaw
    path: str
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification:
    """What was read and what is wrong with it.

    No flaws are `void` entries of fenced producers, and `staged`, the number of a commit that has blobs and no manifest
    (0: none): a trainer at work has one, one that was killed leaves one, and a lost manifest leaves the same.
    """

    first: int
    last: int
    commits: int
    bases: int
    void: tuple[int, ...]
    staged: int
    bytes: int
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


class Findings:
    """Collects flaws so that one does not hide the next."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.found: list[Finding] = []

    def attempt(self, action: Callable[[], T]) -> T | None:
        """The result, or None and a finding."""
        try:
            return action()
        except ChainError as error:
            self.add(error)
        except StoreError as error:
            self.add(ChainError(Flaw.UNREADABLE, self._url, str(error)))
        return None

    @contextmanager
    def unless(self, gone: Callable[[], bool]) -> Iterator[None]:
        """Drop what is found meanwhile, if it turns out that retention removed what was looked at."""
        before = len(self.found)
        yield
        if len(self.found) > before:
            found, self.found = self.found, self.found[:before]
            if not self.attempt(gone):
                self.found = found

    def add(self, error: ChainError) -> None:
        """Keep a flaw, once."""
        finding = Finding(flaw=error.flaw, path=error.path, detail=error.detail)
        if finding not in self.found:
            self.found.append(finding)


@dataclass(kw_only=True, slots=True)
class _Log:
    """What the log holds: every number that is listed, and the entries that could be read."""

    seqs: Sequence[int]
    commits: dict[int, Commit] = field(default_factory=dict)
    void: list[int] = field(default_factory=list)

    def start_at(self, floor: int) -> None:
        """Forget what retention removed, or is removing, since the log was listed."""
        self.seqs = [seq for seq in self.seqs if seq >= floor]
        self.commits = {seq: commit for seq, commit in self.commits.items() if seq >= floor}


def verify(store: Store, named: Sequence[Evidence] = ()) -> Verification:
    """Check every manifest, every link, every byte of every blob, and every base against its digest.

    `named` are commits that the caller knows to have been there.
    """
    findings = Findings(store.url)
    claims = findings.attempt(lambda: read_claims(store))
    evidence, staged = gather(store, claims, findings)
    listed = findings.attempt(lambda: chain.list_seqs(store)) or []
    # Retention may have gone on meanwhile: what is below the floor of now need not be whole.
    claims = findings.attempt(lambda: read_claims(store)) or claims
    log = _read_log(store, listed, claims, findings)
    claims, base_seqs = _bases_with_claims(store, claims, findings)
    if claims is not None:
        log.start_at(claims.floor)
    bases = _read_bases(store, base_seqs, findings)
    _check_start(log, base_seqs, claims, findings)
    if log.seqs or staged or claims is None or claims.latest:  # else there never was a log: an exported model
        _check_end(store, log, [*evidence, *named], findings)
    for base in bases.values():
        if base.seq in log.commits:
            findings.attempt(partial(base.check, log.commits[base.seq].link))
    last = max(log.seqs, default=0)
    return Verification(
        first=min(log.commits, default=0),
        last=max(log.commits, default=0),
        commits=len(log.commits),
        bases=len(bases),
        void=tuple(log.void),
        staged=staged if staged > last else 0,
        bytes=sum(commit.bytes for commit in log.commits.values()) + sum(base.bytes for base in bases.values()),
        findings=tuple(findings.found),
    )


def _read_log(store: Store, listed: Sequence[int], claims: Claims | None, findings: Findings) -> _Log:
    log = _Log(seqs=[seq for seq in listed if claims is None or seq >= claims.floor])
    previous: Commit | None = None
    linked = True  # the entry before could be read: what comes now can be compared with it
    for place, seq in enumerate(log.seqs):
        if place and seq > log.seqs[place - 1] + 1:
            findings.add(_gap(log.seqs[place - 1] + 1, seq - 1))
            linked = False
        entry = findings.attempt(partial(chain.read_listed, store, seq, floors=claims is not None))
        if entry is None:
            linked = False
            continue
        if claims is None:
            # Nobody can say what counts; a parent that is there must be the one that its child names all the same.
            previous = log.commits.get(entry.parent.seq)
            linked = previous is not None or entry.parent == START
        elif (findings.attempt(lambda: read_claims(store)) or claims).judge(seq, entry.epoch) is not Standing.COUNTS:
            log.void.append(seq)
            continue
        if linked and (previous is not None or entry.parent == START):
            findings.attempt(partial(chain.check_child, previous, entry))
        with findings.unless(partial(_collected, store, seq, claims)):
            _check_parts(store, entry.parts(*Role), findings)
        log.commits[seq] = previous = entry
        linked = True
    return log


def _gap(first: int, last: int) -> ChainError:
    upto = f", nor are those up to {last}" if last > first else ""
    return ChainError(Flaw.MISSING, log_path(first), f"it is not there{upto}, but later commits are")


def _read_bases(store: Store, seqs: Sequence[int], findings: Findings) -> dict[int, Base]:
    bases: dict[int, Base] = {}
    for seq in seqs:
        with findings.unless(partial(_removed, store, seq)):
            base = findings.attempt(partial(read_base, store, seq))
            if base is None:
                continue
            bases[seq] = base
            if _check_parts(store, base.parts(*Role), findings):
                findings.attempt(partial(prove, store, base))
    return bases


def _collected(store: Store, seq: int, claims: Claims | None) -> bool:
    """Whether retention has gone past commit `seq` by now."""
    return claims is not None and seq < read_claims(store).floor


def _removed(store: Store, seq: int) -> bool:
    """Whether a base that was listed is no longer."""
    return seq not in list_bases(store)


def _bases_with_claims(store: Store, claims: Claims | None, findings: Findings) -> tuple[Claims | None, Sequence[int]]:
    """The claims of now, and the bases that were there while their floor was the floor."""
    while True:
        before = findings.attempt(lambda: read_claims(store)) or claims
        seqs = findings.attempt(lambda: list_bases(store)) or []
        after = findings.attempt(lambda: read_claims(store)) or claims
        if before is None or after is None or before.floor == after.floor:
            return before, seqs


def _check_parts(store: Store, parts: Iterable[tuple[BlobRef, Part]], findings: Findings) -> bool:
    with ThreadPoolExecutor(_PARTS_AHEAD, "verify") as pool:
        flaws = [flaw for flaw in ahead(pool, partial(_flaw, store), parts, _PARTS_AHEAD) if flaw is not None]
    for flaw in flaws:
        findings.add(flaw)
    return not flaws


def _flaw(store: Store, found: tuple[BlobRef, Part]) -> ChainError | None:
    blob, part = found
    try:
        if part.role in (Role.ROWS, Role.DELETED):
            blobs.read_rows(store, blob, part)
        elif part.role is Role.DENSE:
            blobs.read_dense(store, [found])
        else:
            blobs.read_stream(store, blob, part)
    except ChainError as error:
        return error
    except StoreError as error:
        return ChainError(Flaw.UNREADABLE, blob.path, str(error))
    return None


def _check_start(log: _Log, bases: Sequence[int], claims: Claims | None, findings: Findings) -> None:
    """The log must start with the first commit, or at the floor with a base there."""
    if not log.seqs:
        return
    first = log.seqs[0]
    floor = claims.floor if claims else first if first in bases else 0
    if claims and claims.latest is None:
        findings.add(ChainError(Flaw.MISSING, EPOCH_PATH, "whoever writes a log claims it there first"))
    if floor == 0 and first in log.commits and (parent := log.commits[first].parent) != START:
        findings.add(ChainError(Flaw.MISSING, log_path(parent.seq), f"commit {first} names it as its parent"))
    if floor and first != floor:
        findings.add(ChainError(Flaw.MISSING, log_path(floor), "the log starts with it"))
    if floor and floor not in bases:
        findings.add(ChainError(Flaw.MISSING, base_path(floor), "the log starts there"))


def _check_end(store: Store, log: _Log, evidence: list[Evidence], findings: Findings) -> None:
    """The newest commits must not be missing, nor be others than those that readers start from."""
    for one in lost(evidence, max(log.seqs, default=0)):
        findings.add(ChainError(Flaw.MISSING, log_path(one.seq), one.witness))
    hint = findings.attempt(lambda: chain.read_hint(store))
    commit = log.commits.get(hint.seq) if hint else None
    if hint and commit and commit.digest != hint.digest:
        findings.add(ChainError(Flaw.FOREIGN, commit.path, f"it is not the commit that {chain.HINT_PATH} names"))
