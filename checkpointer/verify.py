"""`verify`: read everything, believe nothing, and name every flaw (FORMAT.md, section 7)."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from checkpointer import blob as blobs
from checkpointer import chain
from checkpointer.bases import Base, list_bases, read_base
from checkpointer.commit import START, BlobRef, Commit, Part, Role, base_path, log_path
from checkpointer.compact import prove
from checkpointer.epoch import Standing, read_claims
from checkpointer.errors import ChainError, Flaw
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
    """What was read and what is wrong with it. `void` entries of fenced producers are no flaw."""

    first: int
    last: int
    commits: int
    bases: int
    void: tuple[int, ...]
    bytes: int
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


class _Findings:
    """Collects flaws so that one does not hide the next."""

    def __init__(self) -> None:
        self.found: list[Finding] = []

    def attempt(self, action: Callable[[], T]) -> T | None:
        """The result, or None and a finding."""
        try:
            return action()
        except ChainError as error:
            self.add(error)
            return None

    def add(self, error: ChainError) -> None:
        """Keep a flaw, once."""
        finding = Finding(flaw=error.flaw, path=error.path, detail=error.detail)
        if finding not in self.found:
            self.found.append(finding)


def verify(store: Store) -> Verification:
    """Check every manifest, every link, every byte of every blob, and every base against its digest."""
    findings = _Findings()
    commits, void = _read_log(store, findings)
    bases = _read_bases(store, findings)
    _check_start(commits, bases, read_claims(store).floor, findings)
    hint = chain.read_hint(store)
    if hint is not None and hint.seq > max(commits, default=0):
        findings.add(ChainError(Flaw.MISSING, log_path(hint.seq), f"{chain.HINT_PATH} names it"))
    for base in bases.values():
        if base.seq in commits:
            findings.attempt(partial(base.check, commits[base.seq].link))
    return Verification(
        first=min(commits, default=0),
        last=max(commits, default=0),
        commits=len(commits),
        bases=len(bases),
        void=tuple(void),
        bytes=sum(commit.bytes for commit in commits.values()) + sum(base.bytes for base in bases.values()),
        findings=tuple(findings.found),
    )


def _read_log(store: Store, findings: _Findings) -> tuple[dict[int, Commit], list[int]]:
    commits: dict[int, Commit] = {}
    void: list[int] = []
    previous: Commit | None = None
    broken = False  # the entry before is unreadable: what comes after cannot be compared with it
    for seq in chain.live_seqs(store):
        entry = findings.attempt(partial(chain.read_entry, store, seq))
        if entry is None:
            broken = True
            continue
        if read_claims(store).judge(seq, entry.epoch) is not Standing.COUNTS:
            void.append(seq)
            continue
        if not broken and (previous is not None or entry.parent == START):
            findings.attempt(partial(chain.check_child, previous, entry))
        _check_parts(store, entry.parts(*Role), findings)
        commits[seq] = previous = entry
        broken = False
    return commits, void


def _read_bases(store: Store, findings: _Findings) -> dict[int, Base]:
    bases: dict[int, Base] = {}
    for seq in list_bases(store):
        base = findings.attempt(partial(read_base, store, seq))
        if base is None:
            continue
        bases[seq] = base
        if _check_parts(store, base.parts(*Role), findings):
            findings.attempt(partial(prove, store, base))
    return bases


def _check_parts(store: Store, parts: Iterable[tuple[BlobRef, Part]], findings: _Findings) -> bool:
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
    return None


def _check_start(commits: dict[int, Commit], bases: dict[int, Base], floor: int, findings: _Findings) -> None:
    """The log must start with the first commit, or at the floor with a base there."""
    if not commits:
        return
    first = commits[min(commits)]
    if floor == 0 and first.parent != START:
        findings.add(ChainError(Flaw.MISSING, log_path(first.parent.seq), f"commit {first.seq} names it as its parent"))
    if floor and first.seq != floor:
        findings.add(ChainError(Flaw.MISSING, log_path(floor), "the log starts with it"))
    if floor and floor not in bases:
        findings.add(ChainError(Flaw.MISSING, base_path(floor), "the log starts there"))
