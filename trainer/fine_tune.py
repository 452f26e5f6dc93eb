"""Begin from a commit of another model directory: rows by id, dense parameters by name, nothing of its stream."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from checkpointer import CommitLog, TableRows
from checkpointer.open_store import StoreOptions, open_store
from protos.pipeline_pb2 import EasyRecConfig
from trainer.errors import RestoreError
from trainer.learner import Learner

logger = logging.getLogger(__name__)

_PARAMETER = "parameter/"
_AT = re.compile(r"(?P<url>.+)@(?P<seq>[0-9]+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """What a model took over; names of this model."""

    rows: int
    parameters: tuple[str, ...]
    fresh: tuple[str, ...]


class NameMap:
    """Names of this model for those of the other one, from the lines `ours<TAB>theirs` of a file."""

    def __init__(self, lines: Iterable[str], source: str = "") -> None:
        self._theirs: dict[str, str] = {}
        for number, line in enumerate(lines, 1):
            parts = line.rstrip("\n").split("\t")
            if len(parts) != 2 or not all(parts):
                raise RestoreError(f"{source}:{number}: expected a name of this model, a tab, the old name: {line!r}")
            self._theirs[parts[0]] = parts[1]

    @classmethod
    def read(cls, path: str) -> "NameMap":
        """Read the file; an empty path maps nothing."""
        if not path:
            return cls(())
        try:
            return cls(Path(path).read_text(encoding="utf-8").splitlines(), path)
        except OSError as error:
            raise RestoreError(f"fine_tune_ckpt_param_map {path} cannot be read: {error.strerror}") from error

    def theirs(self, ours: str) -> str:
        """The other model's name."""
        return self._theirs.get(ours, ours)


def fine_tune(config: EasyRecConfig, learner: Learner) -> Taken | None:
    """Take over what fits from `train_config.fine_tune_checkpoint`, a model directory of ours or `DIRECTORY@SEQ`.

    A table's rows come with their optimizer state, a dense parameter without. Raises RestoreError where shapes of the
    same name differ, or nothing fits; what the other model lacks begins afresh, and is said.
    """
    source = config.train_config.fine_tune_checkpoint
    if not source:
        return None
    found = _AT.fullmatch(source)
    url, seq = (found["url"], int(found["seq"])) if found else (source, None)
    log = CommitLog(open_store(url, StoreOptions.from_proto(config.checkpoint_config.s3)))
    if log.head() is None:
        raise RestoreError(f"fine_tune_checkpoint {source} holds no commit of ours; name a model directory of headrace")
    restored = log.restore(seq)
    names = NameMap.read(config.train_config.fine_tune_ckpt_param_map)
    if restored.commit.features != learner.digest:
        logger.warning("fine-tuning on other features source=%s: ids mean the same only where they are made alike", url)
    counted = _Counted(_ours(restored.tables, learner, names))
    learner.tables.load(counted)
    taken, fresh = _take_parameters(learner, restored.dense, names)
    if not taken and not counted.rows:
        raise RestoreError(f"nothing of {source} fits this model; map names with fine_tune_ckpt_param_map")
    logger.info("fine-tuning source=%s rows=%d parameters=%d fresh=%s", source, counted.rows, len(taken), list(fresh))
    return Taken(rows=counted.rows, parameters=taken, fresh=fresh)


class _Counted:
    """Iterate over tables and count their rows."""

    def __init__(self, parts: Iterator[TableRows]) -> None:
        self._parts = parts
        self.rows = 0

    def __iter__(self) -> Iterator[TableRows]:
        for part in self._parts:
            self.rows += len(part) if part.kind != "admission" else 0
            yield part


def _ours(parts: Iterator[TableRows], learner: Learner, names: NameMap) -> Iterator[TableRows]:
    """The rows of tables that this model has, under its names."""
    tables = {names.theirs(table.name): table.name for table in learner.layout.tables}
    for part in parts:
        if part.table in tables:
            yield replace(part, table=tables[part.table])


def _take_parameters(
    learner: Learner, dense: Mapping[str, np.ndarray], names: NameMap
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    taken, fresh = [], []
    with torch.no_grad():
        for name, value in learner.half.state_dict().items():
            found = dense.get(_PARAMETER + names.theirs(name))
            if found is None:
                fresh.append(name)
                continue
            if found.shape != tuple(value.shape):
                raise RestoreError(
                    f"dense parameter {name} has shape {tuple(value.shape)}, the checkpoint's {names.theirs(name)} has "
                    f"{found.shape}; in the file of fine_tune_ckpt_param_map write another name for it, or, to let it "
                    "begin afresh, one that is not there"
                )
            value.copy_(torch.from_numpy(found.copy()))
            taken.append(name)
    return tuple(taken), tuple(fresh)
