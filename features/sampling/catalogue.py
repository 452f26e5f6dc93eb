"""The files of a sampler in memory, read again when they change while training goes on."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from fsspec.core import url_to_fs

from features.errors import SamplerError
from features.sampling.options import SamplerOptions
from features.sampling.tables import EdgeTable, NodeTable, parse_edges, parse_nodes
from stream.files import InputFile, describe_file

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 30.0

Clock = Callable[[], float]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Tables:
    """What a sampler draws from; `positive` and `hard` lead from users to items, `ancestors` from leaves to nodes."""

    items: NodeTable
    positive: EdgeTable | None = None
    hard: EdgeTable | None = None
    ancestors: EdgeTable | None = None


class Catalogue:
    """Reads the files when it is made; `tables` looks for changes now and then.

    A change that cannot be read is logged and counted, and the tables stay as they are: a writer may be half-way.
    """

    def __init__(
        self, options: SamplerOptions, *, clock: Clock = time.monotonic, every_s: float = LOOK_EVERY_S
    ) -> None:
        self._options = options
        self._clock = clock
        self._every_s = every_s
        self._looked = clock()
        self.reloads = 0
        self.failures = 0
        self._files = _list_all(options)
        self._tables = _load(options, self._files)

    def tables(self) -> Tables:
        """The newest tables that could be read; the same object while nothing changed."""
        now = self._clock()
        if now - self._looked >= self._every_s:
            self._looked = now
            self._reload()
        return self._tables

    def _reload(self) -> None:
        try:
            files = _list_all(self._options)
            if _digests(files) == _digests(self._files):
                return
            tables = _load(self._options, files)
        except (SamplerError, OSError) as error:
            self.failures += 1
            logger.warning("sampler kept=old failures=%d error=%s", self.failures, error)
            return
        self._files, self._tables = files, tables
        self.reloads += 1
        logger.info("sampler reloaded items=%d reloads=%d", len(tables.items.ids), self.reloads)


Files = dict[str, tuple[InputFile, ...]]


def _list_all(options: SamplerOptions) -> Files:
    named = {
        "item": options.item_path,
        "positive": options.positive_path,
        "hard": options.hard_path,
        "edge": options.edge_path,
    }
    needed: dict[str, tuple[str, ...]] = {
        "negative_sampler_v2": ("positive",),
        "hard_negative_sampler": ("hard",),
        "hard_negative_sampler_v2": ("positive", "hard"),
        "tdm_sampler": ("edge",),
    }
    for name in ("item", *needed.get(options.kind, ())):
        if not named[name]:
            raise SamplerError(f"{options.kind}: the path of its {name} file is empty; set it before training starts")
    return {name: _list(path) for name, path in named.items() if path}


def _list(path: str) -> tuple[InputFile, ...]:
    """One file; of a path that ends in a slash all files, sorted."""
    if path.startswith("odps://"):
        raise SamplerError(f"sampler file {path!r}: tables of MaxCompute are not read yet; export the table to a file")
    try:
        fs, inner = url_to_fs(path)
        if not path.endswith("/"):
            return (describe_file(fs, inner),)
        found = sorted(name for name in fs.ls(inner, detail=False) if fs.isfile(name))
        files = tuple(describe_file(fs, name) for name in found if not name.rsplit("/", 1)[-1].startswith((".", "_")))
    except (OSError, ValueError, ImportError) as error:
        raise SamplerError(f"sampler file {path!r} cannot be read: {error}") from None
    if not files:
        raise SamplerError(f"sampler folder {path!r} holds no file")
    return files


def _digests(files: Files) -> dict[str, list[str]]:
    return {name: [file.digest for file in group] for name, group in files.items()}


def _load(options: SamplerOptions, files: Files) -> Tables:
    delimiter = options.field_delimiter
    items = parse_nodes(
        *_content(files["item"]),
        field_delimiter=delimiter,
        attr_delimiter=options.attr_delimiter,
        attributes=options.attributes,
    )
    edges = {
        name: parse_edges(*_content(group), field_delimiter=delimiter)
        for name, group in files.items()
        if name != "item"
    }
    return Tables(items=items, positive=edges.get("positive"), hard=edges.get("hard"), ancestors=edges.get("edge"))


def _content(files: tuple[InputFile, ...]) -> tuple[bytes, str]:
    """The lines of all files behind the header of the first."""
    parts = []
    for number, file in enumerate(files):
        with file.fs.open(file.path, "rb") as handle:
            data: bytes = handle.read()
        body = data if number == 0 else data.partition(b"\n")[2]
        parts.append(body if body.endswith(b"\n") else body + b"\n")
    return b"".join(parts), files[0].path
