"""What polars and DuckDB reach for the part of the mix that they can express; each in a process with one thread.

`python -m benchmarks.feature_peers polars|duckdb REPEAT` prints rows a second of processor time, for batches of 4096
and 65536 rows. Both get the columns in their own memory, and leave ids and numbers there, as columns. Hashes are
their own, since neither has MurmurHash64A; vocabularies are a mapping (polars) or a join (DuckDB).
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable

import duckdb
import polars as pl
import pyarrow as pa

from benchmarks import feature_inputs as mix

SIZES = (4096, 65536)
_HASHED_NUMBERS = mix.USER_NUMBERS[2:] + mix.ITEM_NUMBERS[2:]
_NUMBERS = mix.USER_NUMBERS[:2] + mix.ITEM_NUMBERS[:2]
_SHOPS = {f"shop{k}": k + 2 for k in range(mix.SHOPS)}
_TAGS, _SHOP_COLUMNS = (mix.USER_TAGS, mix.ITEM_TAGS), (mix.USER_SHOP, mix.ITEM_SHOP)


def _bucket(expression: pl.Expr) -> pl.Expr:
    return (expression.hash() % mix.BUCKETS).cast(pl.Int64)


def _inside(expression: pl.Expr) -> pl.Expr:
    return pl.when((expression >= 0) & (expression < mix.BUCKETS)).then(expression).otherwise(0)


def _polars_raw(at: int, name: str) -> pl.Expr:
    value = pl.col(name)
    match at % 4:
        case 0:
            made = value
        case 1:
            made = pl.when(value > 0.1).then(value.log10()).otherwise(0)
        case 2:
            made = (value - 0.5) / 2
        case _:
            made = pl.lit(pl.Series(mix.BOUNDS, dtype=pl.Float32)).search_sorted(value, side="right")
    return made.alias(f"raw_{name}")


def _polars_steps(name: str) -> pl.Expr:
    return pl.col(name).str.split(";").list.head(mix.STEPS).list.eval(_bucket(pl.element()))


def polars_columns() -> list[pl.Expr]:
    """One expression for each feature of the part."""
    made = [_bucket(pl.col(name)) for name in mix.USER_WORDS + mix.ITEM_WORDS]
    made += [pl.col(name).str.split("\x1d").list.eval(_bucket(pl.element())) for name in _TAGS]
    made += [pl.col(name).replace_strict(_SHOPS, default=1, return_dtype=pl.Int64) for name in _SHOP_COLUMNS]
    made += [_inside(pl.col(name)) for name in _NUMBERS]
    made += [_bucket(pl.col(name).cast(pl.String)) for name in _HASHED_NUMBERS]
    made += [_polars_raw(at, name) for at, name in enumerate(mix.FLOATS)]
    made += [
        _bucket(pl.concat_str([pl.col(name).cast(pl.String) for name in names], separator="_")).alias(f"combo_{at}")
        for at, names in enumerate(mix.COMBOS)
    ]
    one, other, third = (pl.col(name) for name in mix.EXPRESSIONS[1][1])
    made.append((pl.col("item_float_0") / (pl.col("user_float_0") + 1)).cast(pl.Float32).alias("expr_0"))
    made.append((one.log1p() * other - (third - 0.5).abs()).cast(pl.Float32).alias("expr_1"))
    words, numbers, shops = mix.SEQUENCES
    category = pl.col(numbers).list.head(mix.STEPS).list.eval(_inside(pl.element()))
    return [*made, _polars_steps(words), category, _polars_steps(shops)]


def _sql_raw(at: int, name: str) -> str:
    match at % 4:
        case 0:
            return name
        case 1:
            return f"CASE WHEN {name} > 0.1 THEN log10({name})::FLOAT ELSE 0 END"
        case 2:
            return f"(({name} - 0.5) / 2)::FLOAT"
    return " + ".join(f"({name} >= {bound}::FLOAT)::BIGINT" for bound in mix.BOUNDS)


def _sql_steps(name: str, cut: str) -> str:
    made = f"list_transform({cut}, lambda x: (hash(x) % {mix.BUCKETS})::BIGINT)"
    return f"{made} AS {name}"


def sql() -> str:
    """One query with a column for each feature of the part."""
    made = [f"(hash({name}) % {mix.BUCKETS})::BIGINT AS {name}" for name in mix.USER_WORDS + mix.ITEM_WORDS]
    made += [_sql_steps(name, f"string_split({name}, chr(29))") for name in _TAGS]
    made += [f"coalesce({name}_words.id, 1) AS {name}" for name in _SHOP_COLUMNS]
    made += [f"CASE WHEN {name} BETWEEN 0 AND {mix.BUCKETS - 1} THEN {name} ELSE 0 END AS {name}" for name in _NUMBERS]
    made += [f"(hash({name}::VARCHAR) % {mix.BUCKETS})::BIGINT AS {name}" for name in _HASHED_NUMBERS]
    made += [f"{_sql_raw(at, name)} AS raw_{name}" for at, name in enumerate(mix.FLOATS)]
    made += [
        f"(hash(concat_ws('_', {', '.join(names)})) % {mix.BUCKETS})::BIGINT AS combo_{at}"
        for at, names in enumerate(mix.COMBOS)
    ]
    made += [f"({text.replace('log(', 'ln(')})::FLOAT AS expr_{at}" for at, (text, _) in enumerate(mix.EXPRESSIONS)]
    words, numbers, shops = mix.SEQUENCES
    made += [_sql_steps(name, f"string_split({name}, ';')[:{mix.STEPS}]") for name in (words, shops)]
    made.append(
        f"list_transform({numbers}[:{mix.STEPS}], "
        f"lambda x: CASE WHEN x BETWEEN 0 AND {mix.BUCKETS - 1} THEN x ELSE 0 END) AS {numbers}"
    )
    joins = " ".join(f"LEFT JOIN words AS {name}_words ON {name} = {name}_words.word" for name in _SHOP_COLUMNS)
    return f"SELECT {', '.join(made)} FROM data {joins}"


def _polars(rows: pa.RecordBatch) -> Callable[[], int]:
    if pl.thread_pool_size() != 1:
        raise RuntimeError(f"polars has {pl.thread_pool_size()} threads; set POLARS_MAX_THREADS=1")
    frame = pl.DataFrame(pa.Table.from_batches([rows])).rechunk()
    query = frame.lazy().select(polars_columns())

    def run() -> int:
        made: int = query.collect().height
        return made

    return run


def _duckdb(rows: pa.RecordBatch) -> Callable[[], int]:
    database = duckdb.connect()
    database.execute("SET threads = 1")
    database.execute("CREATE TABLE words (word VARCHAR, id BIGINT)")
    database.executemany("INSERT INTO words VALUES (?, ?)", list(_SHOPS.items()))
    database.register("given", pa.Table.from_batches([rows]))
    database.execute("CREATE TABLE data AS SELECT * FROM given")
    query = f"CREATE OR REPLACE TEMP TABLE made AS {sql()}"

    def run() -> int:
        database.execute(query)
        return int(rows.num_rows)

    return run


def rate(peer: Callable[[pa.RecordBatch], Callable[[], int]], size: int, repeat: int) -> float:
    """Rows a second of processor time: the median of `repeat` rounds."""
    call = peer(mix.rows(size).drop_columns(list(mix.NESTED)))
    if call() != size:
        raise RuntimeError(f"the peer made other than {size} rows")
    found = []
    for _ in range(repeat):
        begin = time.process_time()
        call()
        found.append(size / (time.process_time() - begin))
    return statistics.median(found)


PEERS = {"polars": _polars, "duckdb": _duckdb}


if __name__ == "__main__":
    chosen, rounds = PEERS[sys.argv[1]], int(sys.argv[2])
    sys.stdout.write(json.dumps({str(size): rate(chosen, size, rounds) for size in SIZES}) + "\n")
