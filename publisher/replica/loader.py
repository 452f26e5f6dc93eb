"""Reading a version's parts: verified rows as patches, dense weights, the dense half that fits this host."""

import logging
from collections.abc import Iterator

from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors

from checkpointer.store import Store
from publisher.errors import DenseRuntimeError, Reason, VersionError
from publisher.export.host import Host
from publisher.export.runtime import EAGER, DenseRunner, State, load_runtime
from publisher.manifest import Artefact, Base, Delta, Plan, ServingVersion
from publisher.replica.contract import Contract
from publisher.replica.model import Dense
from publisher.replica.tables import Patch
from publisher.rows import read_block
from publisher.versions import read_blob

logger = logging.getLogger(__name__)


def read_patches(store: Store, version: ServingVersion, plan: Plan) -> Iterator[Patch]:
    """Read and verify, one file at a time, what a plan wants applied."""
    if plan.base is not None:
        yield from _patches(store, version, plan.base)
    for delta in plan.deltas:
        if delta.resets:
            yield Patch(resets=delta.resets)
        yield from _patches(store, version, delta)


def _patches(store: Store, version: ServingVersion, part: Base | Delta) -> Iterator[Patch]:
    for blob in part.blobs:
        yield Patch(block=read_block(store, version.tables, blob))


def read_state(store: Store, version: ServingVersion) -> State:
    """Read and verify the dense weights."""
    payload = read_blob(store, version.dense)
    try:
        state: State = load_safetensors(payload)
    except (SafetensorError, ValueError) as error:
        raise VersionError(Reason.CORRUPT, f"{version.dense.path} is not a safetensors file: {error}") from error
    return state


class DenseLoader:
    """Chooses the best artefact that this host can run, and says once why it passes over one."""

    def __init__(self, store: Store, host: Host) -> None:
        self._store = store
        self._host = host
        self._told: set[str] = set()

    def load(self, version: ServingVersion, contract: Contract, state: State) -> Dense:
        """Load a dense half with the version's weights; eager where no artefact can be used."""
        artefacts = artefact_names(version)
        for artefact in version.artefacts:
            runner = self._try(artefact, state)
            if runner is not None:
                return Dense(runner=runner, artefacts=artefacts)
        return Dense(runner=load_runtime(EAGER, None, state, build=contract.build_dense), artefacts=artefacts)

    def _try(self, artefact: Artefact, state: State) -> DenseRunner | None:
        unfit = self._host.unfit(artefact)
        if unfit is None:
            try:
                return load_runtime(artefact.runtime, read_blob(self._store, artefact.blob), state)
            except DenseRuntimeError as error:
                unfit = str(error)
        if artefact.blob.digest not in self._told:
            self._told.add(artefact.blob.digest)
            logger.warning("artefact passed over runtime=%s reason=%s", artefact.runtime, unfit)
        return None


def artefact_names(version: ServingVersion) -> tuple[str, ...]:
    """Return what identifies the artefacts of a version."""
    return tuple(artefact.blob.digest for artefact in version.artefacts)
