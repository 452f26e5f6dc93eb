"""Compiled dense halves in the store: found, described, and compiled in the background where they are not there yet."""

import hashlib
from dataclasses import asdict

from checkpointer.store import Store
from publisher.background import Background
from publisher.blobs import put, put_once
from publisher.codec import decode_artefact
from publisher.contract import Contract
from publisher.export.host import Host, this_host
from publisher.export.runtime import AOT_INDUCTOR, EAGER, TORCH_SCRIPT
from publisher.fields import Fields, canonical
from publisher.manifest import Artefact
from publisher.versions import fetch

_SUFFIX = {AOT_INDUCTOR: ".pt2", TORCH_SCRIPT: ".ts"}
# What serves until the first of these is compiled is the next one; then eager.
RUNTIMES = {AOT_INDUCTOR: (AOT_INDUCTOR, TORCH_SCRIPT), TORCH_SCRIPT: (TORCH_SCRIPT,), EAGER: ()}


class Artefacts:
    """The artefacts of one contract for hosts like this one."""

    def __init__(self, store: Store, contract: Contract, runtime: str, background: Background) -> None:
        self._store = store
        self._host = this_host()
        self._background = background
        self._paths = {wanted: description_path(contract, wanted, self._host) for wanted in RUNTIMES[runtime]}
        self._found: dict[str, Artefact] = {}
        self._asked: set[str] = set()

    def available(self) -> tuple[Artefact, ...]:
        """What is there, best first; what is not is being compiled, one after the other, the quickest first."""
        for runtime in reversed(self._paths):
            if runtime not in self._found:
                self._look(runtime)
            if runtime not in self._found:
                self._ask(runtime)
                break
        return tuple(self._found[runtime] for runtime in self._paths if runtime in self._found)

    def _look(self, runtime: str) -> None:
        path = self._paths[runtime]
        payload = fetch(self._store, path)
        if payload is not None:
            self._found[runtime] = decode_artefact(Fields.parse(payload, path))

    def _ask(self, runtime: str) -> None:
        if runtime not in self._asked and self._background.start("compile", runtime):
            self._asked.add(runtime)


def description_path(contract: Contract, runtime: str, host: Host) -> str:
    """Name the description of the artefact that this configuration, library and machine give."""
    key = canonical([contract.config.decode(), contract.digest, host.torch, host.machine, sorted(host.isa)])
    return f"compiled/{contract.digest}/{runtime}-{hashlib.sha256(key).hexdigest()[:16]}.json"


def store_artefact(store: Store, contract: Contract, runtime: str, payload: bytes, host: Host) -> Artefact:
    """Store a compiled artefact, then its description."""
    blob = put(store, f"compiled/{contract.digest}/", _SUFFIX[runtime], payload, point="publish.artefact")
    isa = " ".join(sorted(host.isa)) if runtime == AOT_INDUCTOR else ""
    artefact = Artefact(runtime=runtime, blob=blob, torch=host.torch, machine=host.machine, isa=isa)
    path = description_path(contract, runtime, host)
    put_once(store, path, canonical(asdict(artefact)), point="publish.artefact_description")
    return artefact
