"""Answers as bags of rows, for comparisons in which the order of rows has no say: those of DuckDB
over the same rows, and those that a registered query has told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from dsms.engine import Engine

Row = tuple[Any, ...]


def bag(engine: Engine, query: str) -> Counter[Row]:
    """The rows of an answer that is given once."""
    (found,) = engine.execute(query)
    return Counter(tuple(row.values()) for row in found.data.to_pylist())


def told(engine: Engine, name: str) -> list[tuple[int, str, Counter[Row]]]:
    """What a registered query has told: the instant, kind and rows of each push that has rows."""
    return [
        (push.at, str(push.kind), Counter(tuple(r.values()) for r in push.data.to_pylist()))
        for push in engine.subscribe(name, 0).take()
        if push.data is not None and push.data.num_rows
    ]


def play(engine: Engine, streams: Iterable[str], history: Sequence[tuple[Any, ...]]) -> None:
    """Rows of two columns, each with its stream and how long after the one before it comes; after
    each, all streams are as far."""
    at = 0
    for stream, k, v, step in history:
        at += step
        engine.ingest(stream, [(k, v, at)])
        for other in streams:
            engine.heartbeat(other, at)


def agrees_with_duckdb(
    engine: Engine, query: str, tables: Mapping[str, tuple[Sequence[str], Sequence[Row]]]
) -> None:
    """Both have the same rows to say.  `tables`: by stream of the engine, its columns of INT
    without that of time, which comes last, and its rows."""
    duck = duckdb.connect()
    for name, (columns, rows) in tables.items():
        engine.ingest(name, [(*row, n) for n, row in enumerate(rows)])
        engine.heartbeat(name, 1000)
        values = {c: pa.array([r[i] for r in rows], pa.int64()) for i, c in enumerate(columns)}
        duck.register(name, pa.table(values))
    assert bag(engine, query) == Counter(duck.execute(query).fetchall()), query
