"""One commit as a model directory of its own, which a replica serves without a log, a trainer or a publisher."""

import logging
import tempfile
from collections.abc import Callable
from pathlib import Path

from checkpointer.commit import Commit
from checkpointer.log import CommitLog
from checkpointer.open_store import StoreOptions, open_store
from checkpointer.rows import Column
from checkpointer.store import Store
from protos.pipeline_pb2 import EasyRecConfig
from publisher.artefacts import RUNTIMES, store_artefact
from publisher.bases import build_base
from publisher.contract import Contract, served_state
from publisher.errors import ContractError, DenseRuntimeError, ExportError
from publisher.export.build import build_dense_half
from publisher.export.compile import compile_dense
from publisher.export.host import this_host
from publisher.gate import Candidate, GateOptions, judge
from publisher.manifest import Artefact
from publisher.options import PublishOptions
from publisher.pointer import advance
from publisher.signing import Signer
from publisher.versions import read_pointer
from publisher.write import Material, Published, VersionWriter

logger = logging.getLogger(__name__)


def export_model(
    config: EasyRecConfig, out_dir: str, *, clock_ms: Callable[[], int], seq: int | None = None
) -> Published:
    """Write commit `seq`, by default the newest, to `out_dir`, a path or s3://, which must not hold a version yet.

    Its dense half is compiled here for hosts like this one; every host can serve it eagerly.
    """
    options = PublishOptions.from_proto(config)
    log = CommitLog(_open(config, config.model_dir))
    target = _open(config, out_dir)
    if read_pointer(target) is not None:
        raise ExportError(f"{out_dir} holds a served version already: export to an empty folder")
    commit = _commit(log, seq)
    contract = Contract.of(config)
    dense = served_state(log.dense(commit))
    _check(commit, contract, dense)
    signer = Signer.load(options.signing_key_file) if options.signing_key_file else None
    material = Material(
        commit=commit,
        dense=dense,
        stream=log.stream(commit),
        artefacts=_compile(config, contract, target, options.runtime),
    )
    base = build_base(log, target, commit.seq, contract.tables, options.encoding)
    writer = VersionWriter(target, contract, options.encoding, signer=signer, clock_ms=clock_ms)
    published = writer.start(base, None, material)
    advance(target, published.target, clock_ms, signer=signer)
    logger.info("exported seq=%d rows=%d to=%s", commit.seq, base.rows, out_dir)
    return published


def _open(config: EasyRecConfig, url: str) -> Store:
    return open_store(url, StoreOptions.from_proto(config.checkpoint_config.s3))


def _commit(log: CommitLog, seq: int | None) -> Commit:
    commit = log.get(seq) if seq is not None else log.head()
    if commit is None:
        raise ExportError(f"there is no commit in {log.store.url}: train first")
    return commit


def _check(commit: Commit, contract: Contract, dense: dict[str, Column]) -> None:
    """Refuse what the gate would refuse whatever was served before; rows are looked at while the base is written."""
    candidate = Candidate(
        contract=commit.contract, features=commit.features, weights=(), changed=0, dense=dense, metrics=commit.figures
    )
    refusals = judge(GateOptions(), candidate, (contract.digest, contract.features), {})
    if refusals:
        raise ContractError(f"commit {commit.seq} is not exported: {'; '.join(refusal.detail for refusal in refusals)}")


def _compile(config: EasyRecConfig, contract: Contract, target: Store, runtime: str) -> tuple[Artefact, ...]:
    found = []
    for wanted in RUNTIMES[runtime]:
        try:
            with tempfile.TemporaryDirectory(prefix="headrace-compile-") as scratch:
                payload = compile_dense(wanted, build_dense_half(config), contract.widths, Path(scratch))
        except DenseRuntimeError as error:
            logger.warning("dense half is served without %s: %s", wanted, error)
            continue
        found.append(store_artefact(target, contract.digest, wanted, payload, "", this_host()))
    return tuple(found)
