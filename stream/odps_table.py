"""Tables of MaxCompute (ODPS): their paths, the account, and calls that are tried again. Needs the extra `odps`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from stream.errors import SourceError

if TYPE_CHECKING:
    from odps import ODPS
    from odps.models import Table

logger = logging.getLogger(__name__)

T = TypeVar("T")

RETRIES = 3
SCHEME = "odps://"
COMPRESSIONS = {"LZ4_FRAME": "LZ4", "ZSTD": "ZSTD", "UNCOMPRESSED": "RAW"}
"""By the name of the configuration, the one of pyodps."""

_TYPES = ("bigint", "int", "double", "float", "string")


@dataclass(frozen=True, kw_only=True, slots=True)
class TablePath:
    """`odps://PROJECT/tables/[SCHEMA.]TABLE[/k=v/k2=v2[&...]]`; without partitions the whole table."""

    project: str
    schema: str
    table: str
    partitions: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """For people."""
        return f"{SCHEME}{self.project}/tables/{f'{self.schema}.' if self.schema else ''}{self.table}"


def parse_table_paths(path: str) -> tuple[TablePath, ...]:
    """The tables of a comma list; raise SourceError.

    >>> parse_table_paths("odps://p/tables/s.t/dt=1/h=2&dt=2/h=1")[0].partitions
    ('dt=1/h=2', 'dt=2/h=1')
    """
    return tuple(_parse(part) for part in path.split(","))


def _parse(path: str) -> TablePath:
    project, tables, rest = [*path.removeprefix(SCHEME).split("/", 2), "", ""][:3]
    name, _, partitions = rest.partition("/")
    schema, dot, table = name.rpartition(".")
    listed = tuple(partitions.split("&")) if partitions else ()
    pairs = [pair for partition in listed for pair in partition.split("/")]
    fine = path.startswith(SCHEME) and project and tables == "tables" and table and bool(schema) == bool(dot)
    if not fine or not all(all(pair.partition("=")) for pair in pairs):
        raise SourceError(f"{path!r} is no table; write odps://PROJECT/tables/[SCHEMA.]TABLE[/k=v/k2=v2[&...]]")
    return TablePath(project=project, schema=schema, table=table, partitions=listed)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Account:
    """Who asks, and where."""

    access_id: str
    access_key: str
    endpoint: str


def read_account(path: str) -> Account:
    """Read `key=value` lines: access_id, access_key, end_point; of ~/.odps_config.ini where the path is empty."""
    file = Path(path) if path else Path.home() / ".odps_config.ini"
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"account file {file} cannot be read: {error}; set data_config.odps_config_file") from None
    values = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}
    for key in ("access_id", "access_key", "end_point"):
        if not values.get(key):
            raise SourceError(f"account file {file} lacks {key}")
    return Account(
        access_id=values["access_id"], access_key=values["access_key"], endpoint=values["end_point"].rstrip("/")
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class OdpsOptions:
    """How tables are reached. `pause` is called between tries, with seconds."""

    account: Account
    quota: str = "pay-as-you-go"
    compression: str = "LZ4_FRAME"
    immutable: bool = False
    ordered: bool = False
    pause: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        if self.compression not in COMPRESSIONS:
            raise SourceError(
                f"data_config.odps_data_compression {self.compression!r} is none of {', '.join(COMPRESSIONS)}"
            )


def connect(options: OdpsOptions, path: TablePath) -> ODPS:
    """A client of the path's project; raise SourceError where pyodps is not there."""
    try:
        from odps import ODPS
    except ImportError:
        raise SourceError("tables of MaxCompute need pyodps: pip install 'headrace[odps]'") from None
    account = options.account
    return ODPS(
        account.access_id, account.access_key, project=path.project, endpoint=account.endpoint,
        schema=path.schema or None,
    )  # fmt: skip


def find_table(client: ODPS, path: TablePath, options: OdpsOptions) -> Table:
    """The table with its columns; raise SourceError where it is missing."""

    def load() -> Table:
        # Without its own schema argument get_table would go to the schema "default" of a namespace.
        table = client.get_table(path.table, schema=path.schema or None)
        table.reload()
        return table

    return tried(load, f"table {path.text}", options)


def tried(call: Callable[[], T], what: str, options: OdpsOptions) -> T:
    """Call, and again up to RETRIES times where MaxCompute says no; raise SourceError."""
    from odps.errors import NoPermission, NoSuchObject, ODPSError, Unauthorized

    for attempt in range(RETRIES + 1):
        try:
            return call()
        except (NoSuchObject, NoPermission, Unauthorized) as error:
            raise SourceError(f"{what}: {in_one_line(error)}") from None
        except (ODPSError, OSError) as error:
            if attempt == RETRIES:
                raise SourceError(f"{what}: {in_one_line(error)}") from error
            logger.warning("odps what=%s attempt=%d error=%s", what, attempt + 1, in_one_line(error))
            options.pause(2.0**attempt)
    raise SourceError(f"{what}: gave no answer")


def in_one_line(error: Exception) -> str:
    """What pyodps says, which has several lines."""
    return " ".join(str(error).split())


def check_type(path: TablePath, name: str, kind: str) -> None:
    """Refuse columns of types that no feature reads; raise SourceError."""
    text = kind.lower().replace(" ", "")
    scalars = "|".join(_TYPES)
    inner = text.removeprefix("array<").removesuffix(">") if text.startswith("array<") else text
    inner = inner.removeprefix("array<").removesuffix(">") if inner.startswith("array<") else inner
    key, comma, value = inner.removeprefix("map<").removesuffix(">").partition(",")
    is_map = text.startswith("map<") and bool(comma) and key in ("string", "bigint", "int") and value in _TYPES
    if inner not in _TYPES and not is_map:
        raise SourceError(
            f"{path.text}: column {name} is {kind.upper()}; readable are {scalars.upper()}, arrays and maps of them: "
            "cast it in a view or a table of your own"
        )
