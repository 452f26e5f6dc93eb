"""Finding and walking the commits that count (FORMAT.md, sections 5 to 7)."""

from collections.abc import Iterator

from checkpointer.canonical import seal, unseal
from checkpointer.commit import LOG, START, Commit, Kind, Link, from_bytes, log_path, seq_of
from checkpointer.epoch import Claims, Standing, read_claims
from checkpointer.errors import ChainError, Flaw, NotFoundError
from checkpointer.fields import Fields
from checkpointer.store import Store

HINT_PATH = f"{LOG}/_head"
_HINT_FORMATS = range(1, 2)


def read_entry(store: Store, seq: int) -> Commit | None:
    """Entry `seq` of the log, verified by itself; None where nothing is. Whether it counts is not looked at."""
    try:
        data = store.get(log_path(seq))
    except NotFoundError:
        return None
    commit = from_bytes(log_path(seq), data)
    if commit.seq != seq:
        raise _misplaced(store, commit, seq)
    return commit


def read_listed(store: Store, seq: int, *, floors: bool = True) -> Commit | None:
    """An entry that a listing names; None where retention has removed it since, which without `floors` nobody can say.

    Raises ChainError.
    """
    entry = read_entry(store, seq)
    if entry is None and not (floors and seq < read_claims(store).floor):
        raise ChainError(Flaw.MISSING, log_path(seq), f"{LOG} lists it and there is nothing to read: a broken link?")
    return entry


def read_counted(store: Store, link: Link) -> Commit:
    """The commit that `link` names. Raises ChainError."""
    commit = read_entry(store, link.seq)
    if commit is None:
        raise ChainError(Flaw.MISSING, log_path(link.seq), "a later commit names it as its parent")
    if commit.digest != link.digest:
        raise ChainError(Flaw.FOREIGN, commit.path, "it is not the commit that its child names as parent")
    return commit


def check_child(parent: Commit | None, child: Commit) -> None:
    """Refuse a counted `child` that does not follow `parent` (None: the child starts the log)."""
    link = parent.link if parent else START
    if child.parent != link:
        if child.parent.seq > link.seq:
            raise ChainError(Flaw.MISSING, log_path(child.parent.seq), f"commit {child.seq} names it as its parent")
        raise ChainError(Flaw.FOREIGN, child.path, f"its parent is not commit {link.seq} of this log")
    if parent is None:
        if child.kind is not Kind.BASE:
            raise ChainError(Flaw.MISSING, child.path, "the first commit must be a base, and this is a delta")
    elif child.chain != parent.chain and (child.kind is not Kind.BASE or child.forked is None):
        raise ChainError(Flaw.FOREIGN, child.path, f"it belongs to chain {child.chain}, its parent to {parent.chain}")


def following(store: Store, parent: Commit | None) -> Iterator[Commit]:
    """The commits that count after `parent`, up to the first number where nothing is."""
    seq = parent.seq if parent else 0
    while (entry := read_entry(store, seq + 1)) is not None:
        seq += 1
        standing = read_claims(store).judge(seq, entry.epoch)
        if standing is Standing.UNDECIDED:
            return
        if standing is Standing.COUNTS:
            check_child(parent, entry)
            parent = entry
            yield entry


def latest(store: Store) -> Commit | None:
    """The newest commit that counts, found by listing the log. Raises ChainError where the hint knows a newer one."""
    found = _newest_listed(store)
    hint = read_hint(store)
    if hint is not None and hint.seq > max(found.seq if found else 0, read_claims(store).floor - 1):
        _refuse_loss(hint, read_entry(store, hint.seq))
    return found


def _newest_listed(store: Store) -> Commit | None:
    for seq in reversed(list_seqs(store)):
        entry = _read_newest(store, seq)
        if entry and read_claims(store).judge(seq, entry.epoch) is Standing.COUNTS:
            return entry
    return None


def _read_newest(store: Store, seq: int) -> Commit | None:
    try:
        return read_listed(store, seq)
    except ChainError as error:
        if error.path != log_path(seq) or error.flaw is Flaw.NEWER_FORMAT:
            raise
        remedy = "it is the newest: restore it, or delete it to go on from the commit before"
        raise ChainError(error.flaw, error.path, error.detail, remedy=remedy) from None


def _refuse_loss(hint: Link, commit: Commit | None) -> Commit:
    """The commit that the hint names. Raises ChainError where there is none."""
    if commit is None:
        remedy = "restore them, or delete that file to accept the loss"
        raise ChainError(Flaw.MISSING, log_path(hint.seq), f"{HINT_PATH} names it: commits were lost", remedy=remedy)
    return commit


def latest_to_adopt(store: Store, claims: Claims) -> Commit | None:
    """The commit that a new producer builds on, judged by the `claims` before its own.

    What they leave undecided may have been reported as durable before anyone claimed, so it is adopted.
    """
    for seq in reversed(list_seqs(store)):
        entry = _read_newest(store, seq)
        if entry and claims.judge(seq, entry.epoch) is not Standing.VOID:
            return entry
    return None


def list_seqs(store: Store) -> list[int]:
    """The numbers of all entries, ascending, also of those that retention is removing."""
    return [seq for entry in store.list(LOG) if (seq := seq_of(entry.path)) is not None]


def live_seqs(store: Store) -> list[int]:
    """The numbers of the entries that retention keeps, ascending."""
    floor = read_claims(store).floor
    return [seq for seq in list_seqs(store) if seq >= floor]


def latest_by_hint(store: Store) -> Commit | None:
    """The newest commit that counts, found from the hint where there is one: a few reads instead of a listing."""
    hint = read_hint(store)
    if hint is None:
        return _newest_listed(store)
    if hint.seq < read_claims(store).floor:
        return _newest_listed(store)  # retention went past the hint, and whatever lies there now is garbage
    commit = _refuse_loss(hint, read_entry(store, hint.seq))
    if commit.digest != hint.digest:
        raise ChainError(Flaw.FOREIGN, commit.path, f"it is not the commit that {HINT_PATH} names")
    for child in following(store, commit):
        commit = child
    return commit


def read_hint(store: Store) -> Link | None:
    """A commit that counts, seldom the newest; None where there is no readable hint."""
    try:
        value, _ = unseal(HINT_PATH, store.get(HINT_PATH), _HINT_FORMATS)
        return Link.from_json(Fields(HINT_PATH, value).object("commit"))
    except (NotFoundError, ChainError):
        return None  # a hint may be torn by a crash of the machine; the listing knows


def write_hint(store: Store, commit: Commit) -> None:
    """Let readers start at `commit`."""
    store.overwrite(HINT_PATH, seal({"format": _HINT_FORMATS.stop - 1, "commit": commit.link.to_json()})[0])


def _misplaced(store: Store, commit: Commit, seq: int) -> ChainError:
    """A manifest under another's name: a copy, or one of two that changed places."""
    try:
        original = from_bytes(commit.path, store.get(commit.path))
    except (NotFoundError, ChainError):
        original = None
    copied = original is not None and original.digest == commit.digest
    flaw = Flaw.DUPLICATED if copied else Flaw.REORDERED
    return ChainError(flaw, log_path(seq), f"it holds commit {commit.seq} of chain {commit.chain}")


def check_counts(store: Store, entry: Commit) -> None:
    """Refuse an entry that a newer producer made void, or has not judged yet."""
    standing = read_claims(store).judge(entry.seq, entry.epoch)
    if standing is not Standing.COUNTS:
        raise ChainError(
            Flaw.FOREIGN, entry.path, f"a fenced producer (epoch {entry.epoch}) wrote it: {standing.name.lower()}"
        )
