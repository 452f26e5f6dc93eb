"""Follows the pointer: loads what it names, flips, and keeps serving what is good when the new is not.

Going forward, the idle side takes the deltas that it lacks, becomes current, and the other side takes them after its
last reader has left. Going back, the same with what undoes them, as far as it is remembered. Anything else, a new base
or a longer way back, is loaded from scratch beside what is being served.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from checkpointer.errors import StoreError
from checkpointer.store import Store
from publisher.codec import decode_pointer
from publisher.errors import DenseRuntimeError, PublisherError, Reason, VersionError
from publisher.export.host import Host
from publisher.export.runtime import State
from publisher.manifest import POINTER, Plan, Pointer, ServingVersion
from publisher.replica.contract import Contract, read_contract
from publisher.replica.history import History
from publisher.replica.loader import DenseLoader, artefact_names, read_patches, read_state
from publisher.replica.metrics import ReplicaMetrics
from publisher.replica.model import Dense, Side
from publisher.replica.seen import Seen
from publisher.replica.switch import Switch
from publisher.replica.tables import Patch, ServingTables
from publisher.signing import Verifier
from publisher.versions import fetch, read_version

logger = logging.getLogger(__name__)

_FIRST_RETRY_S = 0.2
_LAST_RETRY_S = 10.0
_HISTORY_BYTES = 64 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """A pointer that could not be followed, why, and when to look at it again."""

    pointer: Pointer | None
    message: str
    retry_s: float
    delay_s: float


class Follower:
    """The one writer of a switch; `poll` is called from one thread."""

    def __init__(
        self,
        store: Store,
        switch: Switch[Side],
        metrics: ReplicaMetrics,
        *,
        host: Host,
        verifier: Verifier | None,
        clock: Callable[[], float],
        drain_s: float,
        seen: Seen | None = None,
    ) -> None:
        """`clock` is monotonic; `drain_s` bounds the wait for a reader; `seen` remembers pointers across restarts."""
        self._store = store
        self._switch = switch
        self._metrics = metrics
        self._verifier = verifier
        self._clock = clock
        self._drain_s = drain_s
        self._dense = DenseLoader(store, host)
        self._seen = Seen(None, store.url) if seen is None else seen
        self._followed: bytes | None = None
        self._failure: Failure | None = None
        # Its tables equal those of the current side; its weights and number may be older.
        self._idle: Side | None = None
        self._known: tuple[tuple[object, ...], Contract] | None = None
        self._history = History(_HISTORY_BYTES)
        self._flipped = 0.0
        self._waiting = False

    def poll(self) -> bool:
        """Look at the pointer once; True when another version went into service."""
        pointer: Pointer | None = None
        before = self._switch.current
        try:
            payload = fetch(self._store, POINTER)
            if payload is None:
                self._wait_for_first()
                return False
            # Before it is parsed: a look at the pointer must cost requests nothing.
            if payload == self._followed:
                return False
            pointer = decode_pointer(payload, POINTER, self._verifier)
            if self._waits(pointer):
                return False
            self._refuse_replayed(pointer)
            self._follow(pointer)
        except StoreError as error:
            self._fail(pointer, "storage", error)
            self._metrics.storage_errors.inc()
            return False
        except PublisherError as error:
            self._fail(pointer, reason_of(error), error)
            return False
        self._followed, self._failure = payload, None
        return self._switch.current is not before

    def _refuse_replayed(self, pointer: Pointer) -> None:
        """With a key, who can write to the store must not bring back what was served before."""
        if self._verifier is None:
            return
        if pointer.generation < self._seen.generation:
            raise VersionError(
                Reason.REPLAYED,
                f"the pointer is number {pointer.generation}, and number {self._seen.generation} was seen already: "
                "roll back with headrace rollback; where the model directory was made anew, delete the --state-file "
                "and restart the replica",
            )
        self._seen.saw(pointer.generation)

    def _wait_for_first(self) -> None:
        if not self._waiting:
            self._waiting = True
            logger.info("waiting for the first version url=%s", self._store.url)

    def _waits(self, pointer: Pointer) -> bool:
        failure = self._failure
        return failure is not None and failure.pointer == pointer and self._clock() < failure.retry_s

    def _fail(self, pointer: Pointer | None, reason: str, error: Exception) -> None:
        """Go on serving what there is; say it once, and look again later: a store may heal."""
        last = self._failure
        again = last is not None and last.pointer == pointer and last.message == str(error)
        delay = min(2 * last.delay_s, _LAST_RETRY_S) if last is not None and again else _FIRST_RETRY_S
        self._failure = Failure(pointer=pointer, message=str(error), retry_s=self._clock() + delay, delay_s=delay)
        if again:
            return
        served = self._switch.current
        self._metrics.refusals.labels(reason).inc()
        logger.error(
            "version refused version=%s reason=%s serving=%s error=%s",
            pointer.version if pointer else "unknown",
            reason,
            served.number if served else "nothing",
            error,
        )

    def _follow(self, pointer: Pointer) -> None:
        """Put the version of a pointer into service.

        1. verify the manifest  2. read the weights  3. bring rows and weights to a side that nobody reads  4. flip
        5. bring the other side along
        """
        started = self._clock()
        version = read_version(self._store, pointer.version, verifier=self._verifier, digest=pointer.digest)
        current = self._switch.current
        if current is not None and current.version == version:
            return
        came_from = current.number if current is not None else "nothing"
        contract = self._contract(version)
        state = read_state(self._store, version)
        plan = version.plan(current.version if current is not None and current.contract is contract else None)
        back = self._history.back_to(version) if current is not None and current.contract is contract else None
        if current is not None and back is not None:
            how = self._retreat(current, version, state, back)
        elif current is not None and plan.base is None:
            how = self._advance(current, version, state, plan)
        else:
            how = self._replace(current, version, contract, state, plan)
        self._metrics.apply_seconds.observe(self._flipped - started)
        logger.info(
            "version served version=%d before=%s by=%s seconds=%.3f",
            version.version,
            came_from,
            how,
            self._flipped - started,
        )

    def _contract(self, version: ServingVersion) -> Contract:
        """Read the version's configuration, unless it is the one at hand."""
        key = (version.config, version.contract, version.features, version.encoding, version.tables, version.assets)
        if self._known is None or self._known[0] != key:
            self._known = (key, read_contract(self._store, version))
        return self._known[1]

    def _advance(self, current: Side, version: ServingVersion, state: State, plan: Plan) -> str:
        """Go forward by deltas."""
        patches = tuple(read_patches(self._store, version, plan))
        before = current.version
        self._change(current, version, state, patches)
        undo = None
        try:
            if self._drained(current):
                undo = current.tables.exchange(patches)
                self._idle = current
        finally:
            # Also where that failed: a way back that lacks this step would lead to rows of no version.
            self._history.add(before, undo)
        return "deltas"

    def _retreat(self, current: Side, version: ServingVersion, state: State, undo: tuple[Patch, ...]) -> str:
        """Go back the way that was come."""
        self._change(current, version, state, undo)
        self._history.drop_to(version)
        if self._drained(current):
            current.apply(undo)
            self._idle = current
        return "undo"

    def _change(self, current: Side, version: ServingVersion, state: State, patches: tuple[Patch, ...]) -> None:
        """Bring the idle side to a version and flip to it."""
        side = self._idle if self._idle is not None else self._twin(current)
        # Until it is flipped, a failure leaves this side half changed: the next attempt must not find it.
        self._idle = None
        rows = side.apply(patches)
        side.take(version, self._weights(side, version, state))
        self._flip(side, current)
        self._metrics.apply_rows.inc(rows)

    def _drained(self, side: Side) -> bool:
        """Whether the last reader has left the side that was current, which then may be brought along."""
        if self._switch.drained(side, timeout_s=self._drain_s):
            return True
        self._metrics.stuck_readers.inc()
        logger.warning("a request has held version=%d for %.1f s: its copy is given up", side.number, self._drain_s)
        return False

    def _replace(
        self, current: Side | None, version: ServingVersion, contract: Contract, state: State, plan: Plan
    ) -> str:
        """Load from a base, beside what is being served."""
        # Given up first, so that there are never three copies.
        self._idle = None
        found = current.tables.found if current is not None and current.contract is contract else None
        tables = ServingTables(contract.shapes, contract.group_widths, found)
        side = Side(contract, tables, self._dense.load(version, contract, state), version)
        rows = side.apply(read_patches(self._store, version, plan))
        side.take(version, side.dense)
        side.warm()
        self._flip(side, current)
        self._history.clear()
        self._metrics.apply_rows.inc(rows)
        self._metrics.full_loads.inc()
        self._idle = self._twin(side, state)
        return "base"

    def _twin(self, side: Side, state: State | None = None) -> Side:
        """Copy a side that is being served, which is not changed meanwhile."""
        weights = read_state(self._store, side.version) if state is None else state
        dense = self._dense.load(side.version, side.contract, weights)
        return Side(side.contract, side.tables.copy(), dense, side.version)

    def _weights(self, side: Side, version: ServingVersion, state: State) -> Dense:
        """Swap the weights of an idle side, or load its dense half anew where other artefacts are listed."""
        if side.dense.artefacts != artefact_names(version):
            return self._dense.load(version, side.contract, state)
        side.dense.runner.swap(state)
        return side.dense

    def _flip(self, side: Side, before: Side | None) -> None:
        self._switch.flip(side)
        self._flipped = self._clock()
        self._metrics.swaps.inc()
        self._metrics.version.set(side.number)
        if before is not None and side.number < before.number:
            self._metrics.rollbacks.inc()


def reason_of(error: PublisherError) -> str:
    """Name a refusal in one word.

    >>> reason_of(DenseRuntimeError("no"))
    'dense'
    """
    if isinstance(error, VersionError):
        return error.reason.value
    return "dense" if isinstance(error, DenseRuntimeError) else "other"
