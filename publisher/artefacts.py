"""Compiled dense halves in the store: found, described, and compiled in the background where they are not there yet."""

import hashlib
import logging
from dataclasses import asdict, dataclass

from checkpointer.errors import ConflictError
from checkpointer.store import Store
from publisher.background import Background
from publisher.blobs import put
from publisher.codec import decode_artefact
from publisher.contract import Contract
from publisher.errors import VersionError
from publisher.export.host import Host, this_host
from publisher.export.runtime import AOT_INDUCTOR, EAGER, TORCH_SCRIPT
from publisher.fields import Fields, canonical
from publisher.manifest import Artefact
from publisher.versions import fetch, read_blob

logger = logging.getLogger(__name__)

_SUFFIX = {AOT_INDUCTOR: ".pt2", TORCH_SCRIPT: ".ts"}
# What serves until the first of these is compiled is the next one; then eager.
RUNTIMES = {AOT_INDUCTOR: (AOT_INDUCTOR, TORCH_SCRIPT), TORCH_SCRIPT: (TORCH_SCRIPT,), EAGER: ()}


class Artefacts:
    """The artefacts of one contract for hosts like this one.

    Each is asked for once in a publisher's life, also where one is described already: only building the model shows
    whether its code is still the one that was compiled. The task is quick where it is.
    """

    def __init__(self, store: Store, contract: Contract, runtime: str, background: Background) -> None:
        self._store = store
        self._background = background
        self._runtimes = RUNTIMES[runtime]
        self._waiting = list(reversed(self._runtimes))
        self._paths = {wanted: description_path(contract.digest, wanted, this_host()) for wanted in self._runtimes}
        self._compiling: str | None = None
        self._found: dict[str, Artefact] = {}

    def available(self) -> tuple[Artefact, ...]:
        """What is there, best first; what is not is compiled in the background, one at a time, the quickest first."""
        if self._compiling is None and self._waiting and self._background.start("compile", self._waiting[0]):
            self._compiling = self._waiting.pop(0)
        return tuple(self._found[runtime] for runtime in self._runtimes if runtime in self._found)

    def compiled(self, ok: bool) -> None:
        """Take note that the task that was started last has ended."""
        runtime, self._compiling = self._compiling, None
        if ok and runtime is not None:
            described = read_description(self._store, self._paths[runtime])
            if described is not None:
                self._found[runtime] = described.artefact


@dataclass(frozen=True, kw_only=True, slots=True)
class Described:
    """An artefact, and the digest of the program that it was compiled from."""

    artefact: Artefact
    program: str


def description_path(contract: str, runtime: str, host: Host) -> str:
    """Name the description of what is compiled for hosts like this one."""
    key = canonical([host.torch, host.machine, sorted(host.isa)])
    return f"compiled/{contract}/{runtime}-{hashlib.sha256(key).hexdigest()[:16]}.json"


def read_description(store: Store, path: str) -> Described | None:
    """Read a description; None where nothing was compiled."""
    payload = fetch(store, path)
    if payload is None:
        return None
    fields = Fields.parse(payload, path)
    return Described(artefact=decode_artefact(fields.nested("artefact")), program=fields.text("program"))


def compiled_already(store: Store, contract: str, runtime: str, program: str, host: Host) -> bool:
    """Whether the same program was compiled for hosts like this one, and is there undamaged."""
    try:
        described = read_description(store, description_path(contract, runtime, host))
        if described is None or described.program != program:
            return False
        read_blob(store, described.artefact.blob)
    except VersionError as error:
        logger.warning("compiled again: %s", error)
        return False
    return True


def store_artefact(store: Store, contract: str, runtime: str, payload: bytes, program: str, host: Host) -> Artefact:
    """Store a compiled artefact, then its description in place of the one that is there."""
    blob = put(store, f"compiled/{contract}/", _SUFFIX[runtime], payload, point="publish.artefact")
    isa = " ".join(sorted(host.isa)) if runtime == AOT_INDUCTOR else ""
    artefact = Artefact(runtime=runtime, blob=blob, torch=host.torch, machine=host.machine, isa=isa)
    path = description_path(contract, runtime, host)
    fresh = canonical({"artefact": asdict(artefact), "program": program})
    while True:
        try:
            store.compare_and_swap(path, fetch(store, path), fresh, point="publish.artefact_description")
            return artefact
        except ConflictError:
            continue
