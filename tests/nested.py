"""A registered query with subqueries, played and held against the definition at each instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.sql import ast
from dsms.sql.parser import parse_one
from tests.oracle.facts import Row
from tests.oracle.nested import Nested

_value = st.one_of(st.none(), st.integers(0, 3))


def histories(streams: str) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Rows of two columns, each with its stream and how long after the one before it comes."""
    return st.lists(
        st.tuples(st.sampled_from(streams), _value, _value, st.integers(0, 4)), max_size=25
    )


def follows_the_definition(
    declared: str,
    query: str,
    windows: Mapping[str, str],
    slide: int,
    history: Sequence[tuple[Any, ...]],
) -> None:
    """`query` has {name} behind each stream; `windows` what stands there, without SLIDE.

    slide  in µs; 0: the query is answered continuously"""
    engine = Engine()
    engine.execute(declared)
    written = f" SLIDE {slide} us" if slide else ""
    text = query.format(**{n: f" [{w}{written}]" for n, w in windows.items()})
    engine.execute(f"CREATE QUERY q AS {text}")
    _play(engine, list(windows), history)
    plain = parse_one(query.format(**{n: f" [{w}]" for n, w in windows.items()}))
    assert isinstance(plain, ast.SelectStatement)
    came = _rows(history)
    oracle = Nested(engine.runtime.catalog, came)
    for at, rows in _answers(engine, slide, came).items():
        expected = Counter(oracle.answer(plain.query, at - bool(slide)))
        assert rows == expected, (text, at)


def _play(engine: Engine, streams: Sequence[str], history: Sequence[tuple[Any, ...]]) -> None:
    """After the last row of each instant, all streams are as far."""
    at = 0
    for n, (stream, k, v, step) in enumerate(history):
        at += step
        engine.ingest(stream, [(k, v, at)])
        if n + 1 == len(history) or history[n + 1][3]:
            for other in streams:
                engine.heartbeat(other, at)


def _rows(history: Sequence[tuple[Any, ...]]) -> dict[str, list[Row]]:
    """What has come, by stream."""
    out: dict[str, list[Row]] = {}
    at = 0
    for n, (stream, k, v, step) in enumerate(history):
        at += step
        out.setdefault(stream, []).append(Row(at, n, (k, v, at)))
    return out


def _answers(
    engine: Engine, slide: int, came: Mapping[str, Sequence[Row]]
) -> dict[int, Counter[tuple[Any, ...]]]:
    """The answer at each instant from the first row to the last, or at each boundary after it."""
    instants = [row.ts for rows in came.values() for row in rows]
    told: dict[int, list[tuple[int, tuple[Any, ...]]]] = {}
    for push in engine.subscribe("q", 0).take():
        if push.data is not None and push.data.num_rows:
            rows = [tuple(row.values()) for row in push.data.to_pylist()]
            ats = [push.at] * len(rows) if push.ats is None else push.ats.tolist()
            for at, row in zip(ats, rows, strict=True):
                told.setdefault(at, []).append((-1 if str(push.kind) == "delete" else 1, row))
    out, now = {}, Counter[tuple[Any, ...]]()
    for at in range(min(instants), max(instants) + 1 + bool(slide)) if instants else ():
        if slide:
            now = Counter()
        for sign, row in told.get(at, ()):
            now[row] += sign
        if not slide or (at % slide == 0 and at > min(instants)):
            out[at] = Counter(now)
    return out
