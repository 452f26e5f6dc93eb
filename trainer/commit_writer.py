"""From a sealed snapshot to a commit that counts: every rank stages, rank 0 appends, all learn how it ended."""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass

from checkpointer import BlobRef, Commit, Draft, Kind, Writer, stage
from checkpointer.commit import from_bytes, to_bytes
from checkpointer.errors import CheckpointError, CommitUnknownError, FencedError, NotCommittedError
from checkpointer.fields import Fields
from checkpointer.store import Store
from recmodels.metrics.progressive import ProgressiveMetrics, State, merge
from stream.deadletter import DeadLetterSink
from stream.errors import DeadLettersWaitError, StreamError
from trainer.committer import Snapshot
from trainer.wire import pack_arrays, unpack_arrays
from trainer.workers import Workers

logger = logging.getLogger(__name__)

# What a rank's message to rank 0 begins with: its blobs and metrics, why there are none, or that it waits for brokers.
_STAGED, _FAILED, _WAITING = b"S", b"E", b"W"
# What its answer begins with when the commit counts.
_COMMITTED = b"C"
_FIGURES = ("log_loss", "normalized_entropy", "calibration", "rows", "positives", "gauc_window")


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """What every commit of a run says about the model."""

    contract: str
    features: str


class CommitWriter:
    """Make snapshots durable. `writer` is rank 0's; other ranks have none.

    Runs on the committer's thread and talks to the other ranks' committers only, in the order of the commits.
    """

    def __init__(
        self,
        store: Store,
        *,
        writer: Writer | None,
        workers: Workers,
        sink: DeadLetterSink,
        identity: Identity,
        new_metrics: Callable[[], ProgressiveMetrics] = ProgressiveMetrics,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._writer = writer
        self._workers = workers
        self._sink = sink
        self._identity = identity
        self._new_metrics = new_metrics
        self._stopping = stopping

    def write(self, snapshot: Snapshot) -> Commit:
        """Commit `snapshot`.

        1. agree on the number  2. dead letters, acknowledged  3. this rank's blobs  4. rank 0 appends  5. all know
        Where dead letters wait for brokers all ranks wait, in turns short enough that none takes the others for lost.
        Raises NotCommittedError, CommitUnknownError or FencedError, the same kind on every rank.
        """
        seq = self._agree_on_number()
        mine = self._stage(seq, snapshot)
        staged = self._workers.gather(mine)
        while _waiting(staged):
            mine = self._stage(seq, snapshot) if mine[:1] == _WAITING else mine
            staged = self._workers.gather(mine)
        answer = self._workers.gather(self._append(staged, snapshot) if self._writer is not None else b"")[0]
        if answer[:1] == _COMMITTED and self._writer is not None and self._writer.head is not None:
            return self._writer.head
        return _read_answer(answer)

    def _agree_on_number(self) -> int:
        mine = str(self._writer.next_seq) if self._writer is not None else ""
        return int(self._workers.gather(mine.encode())[0])

    def _stage(self, seq: int, snapshot: Snapshot) -> bytes:
        """This rank's blobs and metrics, or why there are none: a rank that fails, or waits, must still answer."""
        try:
            if snapshot.dead:
                self._sink.write(snapshot.dead)
                last = snapshot.dead[-1]
                logger.warning(
                    "dead letters=%d last reason=%s cursor=%s detail=%s; see headrace dlq show",
                    len(snapshot.dead),
                    last.reason,
                    last.key,
                    last.detail,
                )
            blobs = stage(
                self._store,
                seq=seq,
                rank=self._workers.rank,
                rows=snapshot.tables,
                dense=snapshot.dense,
                stream=snapshot.stream,
            )
        except DeadLettersWaitError as error:
            if self._stopping():
                return _FAILED + f"rank {self._workers.rank}: the run is to end, and {error}".encode()
            return _WAITING
        except (CheckpointError, StreamError) as error:
            return _FAILED + f"rank {self._workers.rank}: {error}".encode()
        head = json.dumps({"blobs": [blob.to_json() for blob in blobs]}).encode()
        return _STAGED + len(head).to_bytes(8, "little") + head + pack_arrays(snapshot.metrics)

    def _append(self, staged: list[bytes], snapshot: Snapshot) -> bytes:
        if self._writer is None:
            raise NotCommittedError("only rank 0 appends")
        failed = [part[1:] for part in staged if part[:1] == _FAILED]  # of which there is one if any waits
        if failed:
            return b"N" + b"; ".join(failed)
        blobs: list[BlobRef] = []
        metrics: list[State] = []
        for part in (message[1:] for message in staged):
            size = int.from_bytes(part[:8], "little")
            fields = Fields("staged blobs", json.loads(part[8 : 8 + size]))
            blobs += [BlobRef.from_json(blob) for blob in fields.objects("blobs")]
            metrics.append(unpack_arrays(part[8 + size :]))
        try:
            commit = self._writer.append(self._draft(snapshot, tuple(blobs), _figures(self._new_metrics(), metrics)))
        except FencedError as error:
            return b"F" + str(error).encode()
        except NotCommittedError as error:
            return b"N" + str(error).encode()
        except CheckpointError as error:
            return b"U" + str(error).encode()
        # Nobody else is there to read it, and rank 0 has it.
        return _COMMITTED + (to_bytes(commit)[0] if self._workers.world_size > 1 else b"")

    def _draft(self, snapshot: Snapshot, blobs: tuple[BlobRef, ...], figures: dict[str, float]) -> Draft:
        return Draft(
            kind=Kind.BASE if snapshot.full else Kind.DELTA,
            step=snapshot.step,
            event_time_ms=snapshot.event_time_ms,
            broker_time_ms=snapshot.broker_time_ms,
            world=self._workers.world_size,
            contract=self._identity.contract,
            features=self._identity.features,
            blobs=blobs,
            figures=figures,
            kept=snapshot.keep,
            from_now=False,
            forked=None,
        )


def _waiting(staged: list[bytes]) -> bool:
    """Whether a rank waits for brokers, and none has failed."""
    kinds = {message[:1] for message in staged}
    return _WAITING in kinds and _FAILED not in kinds


def _read_answer(answer: bytes) -> Commit:
    kind, body = answer[:1], answer[1:]
    if kind == _COMMITTED:
        return from_bytes("the commit that rank 0 appended", body)
    message = body.decode()
    if kind == b"F":
        raise FencedError(message)
    if kind == b"N":
        raise NotCommittedError(message)
    raise CommitUnknownError(message)


def _figures(merged: ProgressiveMetrics, states: list[State]) -> dict[str, float]:
    """The progressive figures over all ranks; those that are not defined yet are left out."""
    merged.load(merge(states))
    values = merged.values()
    named = {"auc": values["auc_window"], "auc_rows": values["rows_window"], "auc_all": values["auc"]}
    named |= {name: values[name] for name in _FIGURES if name in values}
    return {name: value for name, value in named.items() if value == value}
