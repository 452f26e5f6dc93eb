"""Following the commit log: every commit becomes a version, or a refusal (FORMAT.md).

A step may die at any instruction. What it wrote until then is either named by nothing, or complete; the next run starts
from the newest complete version and does the rest again.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from checkpointer.commit import Commit
from checkpointer.due import CompactionDue
from checkpointer.errors import ChainError, EncodingError, Flaw
from checkpointer.log import CommitLog
from checkpointer.rows import Column
from checkpointer.store import Store
from publisher.artefacts import Artefacts
from publisher.background import Background
from publisher.bases import build_base, find_base
from publisher.blobs import put_once
from publisher.changes import NetRows
from publisher.contract import Contract, drift, served_state
from publisher.errors import ContractError, UnfitRowsError, VersionError
from publisher.fields import canonical
from publisher.gate import Candidate, Refusal, RefusalCode, judge
from publisher.manifest import FORMAT, Base, Delta, Pointer, ServingVersion, refusal_path
from publisher.metrics import PublisherMetrics
from publisher.notify import Notification, Notifier
from publisher.options import PublishOptions
from publisher.pending import Pending
from publisher.pointer import advance, is_pinned
from publisher.retention import Retention
from publisher.signing import Signer
from publisher.versions import list_versions, read_pointer
from publisher.write import Material, Published, VersionWriter, load_published

logger = logging.getLogger(__name__)

_POLLS_PER_LOOK = 20
_SWEEP_EVERY = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What a publisher works with besides the store."""

    background: Background
    notifier: Notifier
    metrics: PublisherMetrics
    clock_ms: Callable[[], int]
    signer: Signer | None = None


class Publisher:
    """Publishes the commits of one model directory; call `step` until the process ends."""

    def __init__(self, store: Store, contract: Contract, options: PublishOptions, around: Surroundings) -> None:
        self._store = store
        self._log = CommitLog(store)
        self._contract = contract
        self._options = options
        self._around = around
        self._writer = VersionWriter(store, contract, options.encoding, signer=around.signer, clock_ms=around.clock_ms)
        self._retention = Retention(store, options.keep_versions, self._writer.held)
        self._artefacts = Artefacts(store, contract, options.runtime, around.background)
        self._compaction = CompactionDue(store, options.compaction)
        self._rebased: int | None = None
        self._published = 0
        self._polls = 0
        self._unserved = True
        self._head: Commit | None = None
        versions = list_versions(store)
        self._last = self._recover(versions)
        self._pending = Pending(
            store,
            contract.tables,
            after=versions[-1] if versions else 0,
            base_due=self._last is None or not self._extends(self._last.version),
            max_bytes=options.max_pending_bytes,
        )

    def step(self) -> bool:
        """Do what there is to do; say whether a commit was published or refused.

        1. read new commits and their rows  2. judge  3. write delta or base, dense, manifest  4. swap the pointer, tell
        """
        self._reap()
        self._polls += 1
        if self._unserved or self._polls % _POLLS_PER_LOOK == 0:
            self._point()
        started = time.monotonic()
        # A commit whose step failed half-way, because of its storage, is judged again even if no other follows it.
        self._head = head = self._pending.read(self._portion) or self._head
        if head is None:
            return False
        outcome = self._judge_and_write(head)
        if isinstance(outcome, Published):
            self._last, self._head = outcome, None
            self._pending.settle()
            self._point()
            self._observe(outcome.version, head, time.monotonic() - started)
            self._tend(outcome.version, head)
        else:
            self._refuse(head, outcome)
        self._head = None
        return True

    @property
    def _portion(self) -> int:
        """How many waiting commits make one version: one where rows are capped, or a pause would trip the cap."""
        return 1 if self._options.gate.max_rows is not None else self._options.max_commits_at_once

    def _recover(self, versions: list[int]) -> Published | None:
        """The newest complete version, unless it is damaged or not ours: then the next one starts from a base."""
        if not versions:
            return None
        try:
            return load_published(self._store, versions[-1], self._around.signer)
        except VersionError as error:
            logger.error("version %d is not extended: %s", versions[-1], error)
            return None

    def _extends(self, version: ServingVersion) -> bool:
        """Whether deltas may follow: same contract, encoding and log."""
        if (version.contract, version.encoding) != (self._contract.digest, self._options.encoding):
            return False
        try:
            return self._log.get(version.version).digest == version.commit
        except ChainError as error:
            if error.flaw is Flaw.MISSING:
                return False
            raise

    def _judge_and_write(self, head: Commit) -> Published | list[Refusal]:
        dense = served_state(self._log.dense(head))
        net = self._pending.net()
        refusals = judge(self._options.gate, self._candidate(head, dense, net), self._frozen, self._good())
        if refusals:
            return refusals
        material = Material(
            commit=head, dense=dense, stream=self._log.stream(head), artefacts=self._artefacts.available()
        )
        try:
            if self._pending.base_due or self._last is None:
                return self._start(material)
            delta = self._writer.delta(net, self._last.version.version, head.seq)
        except EncodingError as error:
            return [Refusal(code=RefusalCode.ENCODING, detail=str(error))]
        except UnfitRowsError as error:
            return [Refusal(code=RefusalCode.NOT_FINITE, detail=str(error))]
        except ContractError as error:
            return [Refusal(code=RefusalCode.CONTRACT, detail=str(error))]
        return self._extend(self._last.version, delta, material)

    def _start(self, material: Material) -> Published:
        base = build_base(self._log, self._store, material.commit.seq, self._contract.tables, self._options.encoding)
        self._around.metrics.bytes.labels("base").inc(sum(blob.size for blob in base.blobs))
        self._rebased = None
        return self._writer.start(base, self._last.version if self._last else None, material)

    def _extend(self, last: ServingVersion, delta: Delta, material: Material) -> Published:
        self._around.metrics.bytes.labels("delta").inc(sum(blob.size for blob in delta.blobs))
        base = self._fresh_base(last)
        return self._writer.extend(last, delta, base, self._options.rebase_after_deltas, material)

    def _fresh_base(self, last: ServingVersion) -> Base | None:
        """The base that a background task has completed since the last version."""
        if self._rebased is None or self._rebased <= last.base.seq:
            return None
        return find_base(self._store, self._rebased, self._options.encoding)

    def _candidate(self, head: Commit, dense: dict[str, Column], net: list[NetRows]) -> Candidate:
        return Candidate(
            contract=head.contract,
            features=head.features,
            weights=[(rows.table, rows.ids, rows.weights) for rows in net],
            changed=sum(len(rows) for rows in net),
            dense=dense,
            metrics=head.figures,
            drift=drift(self._store, head.features, self._contract),
        )

    @property
    def _frozen(self) -> tuple[str, str]:
        return self._contract.digest, self._contract.features

    def _good(self) -> dict[str, float]:
        """The metrics of the version that is served, which a rollback may have chosen."""
        try:
            pointer = read_pointer(self._store)
            if pointer is None:
                return {}
            if self._last is not None and pointer.version == self._last.version.version:
                return dict(self._last.version.metrics)
            return dict(load_published(self._store, pointer.version, self._around.signer).version.metrics)
        except VersionError as error:
            logger.error("served version has no metrics to compare with: %s", error)
            return {}

    def _point(self) -> None:
        """Serve the newest version, unless pinned; also after a crash between its manifest and the swap."""
        self._unserved = True
        pinned = is_pinned(self._store, signer=self._around.signer)
        self._around.metrics.pinned.set(pinned)
        moved = None if pinned or self._last is None else self._advance(self._last)
        self._unserved = pinned
        if moved is not None:
            self._around.metrics.swaps.inc()
            self._around.metrics.served.set(moved.version)
            self._around.notifier.notify(Notification.of(moved))

    def _advance(self, last: Published) -> Pointer | None:
        return advance(self._store, last.target, self._around.clock_ms, signer=self._around.signer)

    def _refuse(self, head: Commit, refusals: list[Refusal]) -> None:
        for refusal in refusals:
            self._around.metrics.refusals.labels(refusal.code.value).inc()
            logger.error("commit refused seq=%d reason=%s detail=%s", head.seq, refusal.code, refusal.detail)
        note = {
            "format": FORMAT,
            "version": head.seq,
            "commit": head.digest,
            "refused_ms": self._around.clock_ms(),
            "reasons": [asdict(refusal) for refusal in refusals],
        }
        put_once(self._store, refusal_path(head.seq), canonical(note), point="publish.refusal")
        self._around.metrics.lag.set(head.seq - (self._last.version.version if self._last else 0))

    def _observe(self, version: ServingVersion, head: Commit, seconds: float) -> None:
        metrics = self._around.metrics
        metrics.versions.inc()
        metrics.version.set(version.version)
        metrics.lag.set(self._pending.behind())
        metrics.deltas.set(len(version.plan(None).deltas))
        metrics.seconds.observe(seconds)
        metrics.delay.observe(max(self._around.clock_ms() - head.committed_ms, 0) / 1000.0)
        metrics.bytes.labels("dense").inc(version.dense.size)
        logger.info("version published seq=%d rows=%d ms=%.1f", version.version, _rows(version), 1000.0 * seconds)

    def _reap(self) -> None:
        """Look after background tasks."""
        for ended in self._around.background.ended():
            self._around.metrics.children.labels(ended.task, "ok" if ended.ok else "failed").inc()
            if ended.task == "base" and not ended.ok:
                self._rebased = None
            if ended.task == "maintain":
                self._compaction.ended()
            if ended.task == "compile":
                self._artefacts.compiled(ended.ok)

    def _tend(self, version: ServingVersion, head: Commit) -> None:
        """Keep what replicas must read, and what lies in the store, small; none of it is on the way to the pointer."""
        self._rebase(version)
        self._published += 1
        if self._published % _SWEEP_EVERY == 0:
            self._retention.sweep(writing=frozenset({self._rebased or 0}))
        # A version of several commits has the last one only at hand: an estimate, which the log settles.
        covered = head.seq - (version.previous or head.seq - 1)
        self._compaction.add(covered * head.grown_bytes, commits=covered)
        if self._compaction.due() and self._around.background.start("maintain"):
            self._compaction.started()

    def _rebase(self, version: ServingVersion) -> None:
        """Have a base written beside, when a cold replica would have too many deltas to read."""
        if self._rebased is not None and self._rebased <= version.base.seq:
            self._rebased = None
        due = self._rebased is None and len(version.plan(None).deltas) >= self._options.rebase_after_deltas
        if due and self._around.background.start("base", str(version.version)):
            self._rebased = version.version


def _rows(version: ServingVersion) -> int:
    return version.deltas[-1].rows if version.deltas else version.base.rows
