"""What a user sees is what there would be if nothing but his rows and columns had ever come.

Two engines: one has all rows, and a user with a random condition and masks asks it; the other has
only the rows that pass, as Python judges them, masked.  Every answer must be the same: continuous,
periodic, asked once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from tests.effort import examples

SECOND = 1_000_000
Row = tuple[str | None, int | None, int]  # k, v, seconds
Test = Callable[[Row], bool | None]


@dataclass(frozen=True)
class Part:
    """A condition and masks as text, and as Python judges them."""

    where: str | None
    passes: Test
    masks: tuple[tuple[str, str, Callable[[Row], Any]], ...] = ()

    @property
    def grant(self) -> str:
        masks = ", ".join(f"{column} AS {shown}" for column, shown, _ in self.masks)
        return (f" MASK ({masks})" if masks else "") + (
            f" WHERE {self.where}" if self.where else ""
        )

    def row(self, row: Row) -> Row:
        shown = {"k": row[0], "v": row[1]} | {column: make(row) for column, _, make in self.masks}
        return shown["k"], shown["v"], row[2]


def _compare(op: str, limit: int) -> tuple[str, Test]:
    tests = {"<": int.__lt__, ">": int.__gt__, "=": int.__eq__, "<>": int.__ne__}
    return f"v {op} {limit}", lambda row: None if row[1] is None else tests[op](row[1], limit)


def _both(a: tuple[str, Test], b: tuple[str, Test]) -> tuple[str, Test]:
    def test(row: Row) -> bool | None:
        found = a[1](row), b[1](row)
        return False if False in found else None if None in found else True

    return f"({a[0]}) AND ({b[0]})", test


def _either(a: tuple[str, Test], b: tuple[str, Test]) -> tuple[str, Test]:
    def test(row: Row) -> bool | None:
        found = a[1](row), b[1](row)
        return True if True in found else None if None in found else False

    return f"({a[0]}) OR ({b[0]})", test


def _not(a: tuple[str, Test]) -> tuple[str, Test]:
    return f"NOT ({a[0]})", lambda row: None if a[1](row) is None else not a[1](row)


ATOMS = st.one_of(
    st.builds(_compare, st.sampled_from(["<", ">", "=", "<>"]), st.integers(0, 5)),
    st.sampled_from(
        [
            ("k = CURRENT_USER()", lambda row: None if row[0] is None else row[0] == "alice"),
            ("s.k IN ('a', 'b')", lambda row: None if row[0] is None else row[0] in ("a", "b")),
            ("v IS NULL", lambda row: row[1] is None),
            ("k IS NOT NULL", lambda row: row[0] is not None),
        ]
    ),
)
CONDITIONS = st.recursive(
    ATOMS,
    lambda inner: (
        st.builds(_both, inner, inner) | st.builds(_either, inner, inner) | st.builds(_not, inner)
    ),
)
MASKS = st.sampled_from(
    [
        (),
        (),
        (("k", "UPPER(k)", lambda row: None if row[0] is None else row[0].upper()),),
        (("k", "'hidden'", lambda row: "hidden"), ("v", "NULL", lambda row: None)),
        (
            (
                "v",
                "CASE WHEN v > 3 THEN 3 ELSE v END",
                lambda row: 3 if row[1] is not None and row[1] > 3 else row[1],
            ),
        ),
    ]
)
PARTS = st.builds(lambda found, masks: Part(*found, masks), CONDITIONS, MASKS)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "alice", None]), st.none() | st.integers(0, 5), st.integers(0, 3)
    ),
    max_size=14,
)

CONTINUOUS = [
    "SELECT k, v FROM s [RANGE 5 s]",
    "SELECT k, COUNT(*) AS n, SUM(v) AS x FROM s [RANGE 5 s] GROUP BY k",
    "SELECT k, v FROM s [ROWS 3]",
    "SELECT k, MAX(v) AS x FROM s [PARTITION BY k ROWS 2] GROUP BY k",
    "SELECT DISTINCT k FROM s [RANGE 4 s] WHERE v > 1",
    "SELECT s.k, s.v, r.v AS w FROM s [RANGE 4 s], r [RANGE 4 s] WHERE s.k = r.k",
    "SELECT s.k, r.v FROM s [ROWS 3] LEFT JOIN r [RANGE 3 s] ON s.v = r.v",
    "SELECT s.k, s.v, d.n FROM s [RANGE 5 s] JOIN d ON s.k = d.k",
    "SELECT k, v FROM s [RANGE 5 s] WHERE EXISTS (SELECT * FROM r [RANGE 3 s] WHERE r.k = s.k)",
    "SELECT k, v FROM r [RANGE 5 s] WHERE NOT EXISTS (SELECT * FROM s [RANGE 3 s] WHERE r.k = s.k)",
    "SELECT k FROM r [RANGE 5 s] WHERE v IN (SELECT v FROM s [RANGE 3 s])",
    "SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 4 s] GROUP BY k) x WHERE n > 1",
    "SELECT k, v FROM s [RANGE 3 s] UNION ALL SELECT k, v FROM r [RANGE 3 s]",
    "SELECT k FROM s [RANGE 4 s] EXCEPT SELECT k FROM r [RANGE 4 s]",
    "SELECT k, v FROM s [RANGE 5 s] ORDER BY v DESC LIMIT 1 PER k",
    "SELECT k, v FROM s [ROWS 4] ORDER BY v, k LIMIT 2 PER ()",
    "SELECT x.k, r.v FROM (SELECT k, v FROM s [RANGE 4 s] ORDER BY v LIMIT 1 PER k) x "
    "JOIN r [RANGE 3 s] ON x.v = r.v",
    "SELECT k, v, SUM(v) OVER (PARTITION BY k) AS x FROM s [RANGE 4 s]",
    "SELECT v, LAG(k) OVER () AS x, COUNT(*) OVER (PARTITION BY k) AS n FROM s [ROWS 4]",
    "SELECT Istream(k, v) FROM s [NOW] WHERE v + 1 > 2",
]
PERIODIC = [
    "SELECT k, COUNT(*) AS n, SUM(v) AS x FROM s [RANGE 4 s SLIDE 2 s] GROUP BY k",
    "SELECT k, MAX(v) AS x FROM s [RANGE 4 s SLIDE 1 s] GROUP BY k WITH (path = ws)",
    "SELECT k, v FROM s [RANGE 4 s SLIDE 2 s] ORDER BY v, k",
    "SELECT k, v FROM s [RANGE 4 s SLIDE 2 s] ORDER BY v DESC LIMIT 1 PER k",
    "SELECT s.k, COUNT(*) AS n FROM s [RANGE 4 s SLIDE 2 s], r [RANGE 4 s SLIDE 2 s] WHERE s.k = "
    "r.k GROUP BY s.k",
    "SELECT k, MEDIAN(v) AS x FROM s [RANGE 4 s SLIDE 2 s] WHERE v > 0 GROUP BY k",
]
ONCE = [
    *CONTINUOUS[:-1],
    "SELECT * FROM s [RANGE 20 s] ORDER BY v, k, t LIMIT 3",
    "SELECT COUNT(*) AS n FROM s [RANGE 9 s]",
]


def world(whole: bool, s: Part, r: Part) -> tuple[Engine, str | None]:
    """The engine, and who asks it."""
    engine = Engine()
    for name in "sr":
        engine.execute(
            f"CREATE STREAM {name} (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 HOUR"
        )
    engine.execute("CREATE TABLE d (k STRING PRIMARY KEY, n INT)")
    kept = "('a', 1), ('b', 2), ('hidden', 3), ('A', 4)"
    engine.execute(f"INSERT INTO d VALUES {kept}" + (", ('alice', 9)" if whole else ""))
    if not whole:
        return engine, None
    engine.execute(
        "CREATE USER alice TOKEN; GRANT CREATE ON ALL TO alice; GRANT SELECT ON d TO alice WHERE "
        "n < 9"
    )
    engine.execute(
        f"GRANT SELECT ON s TO alice{s.grant}; GRANT SELECT ON r TO "
        f"alice{r.grant.replace('s.k', 'r.k')}"
    )
    return engine, "alice"


def _flat(push: Any) -> list[tuple[Any, ...]]:
    """Its rows, each with its kind, instant and number."""
    ats = [push.at] * push.data.num_rows if push.ats is None else push.ats.to_pylist()
    numbers = range(push.seq, push.seq + push.data.num_rows)
    return [(push.kind, *found) for found in zip(ats, numbers, push.data.to_pylist(), strict=True)]


def _unordered(found: list[tuple[Any, ...]]) -> list[str]:
    return sorted(str((kind, at, row)) for kind, at, _, row in found)


def compared(
    texts: list[str], s_rows: list[Row], r_rows: list[Row], s: Part, r: Part
) -> tuple[Engine, Engine]:
    """Both engines, after all answers of theirs to the texts were the same."""
    whole, alice = world(True, s, r)
    part, nobody = world(False, s, r)
    stamped = {"s": _stamped(s_rows), "r": _stamped(r_rows)}
    seen = {
        name: [x.row(row) for row in stamped[name] if x.passes(row) is True]
        for name, x in (("s", s), ("r", r))
    }
    for text, got, wanted in zip(
        texts,
        _played(whole, stamped, texts, alice),
        _played(part, seen, texts, nobody),
        strict=True,
    ):
        # rows of one instant stand in the order of their arrival numbers, over both streams
        if "UNION ALL" in text:
            got, wanted = _unordered(got), _unordered(wanted)
        assert got == wanted, text
    return whole, part


def _stamped(rows: list[Row]) -> list[Row]:
    """Rows in order of time, each at a second of its own step."""
    placed = [(k, v, 4 * step + i % 3) for i, (k, v, step) in enumerate(rows)]
    return sorted(placed, key=lambda row: row[2])


def _played(
    engine: Engine, streams: dict[str, list[Row]], texts: list[str], user: str | None
) -> list[Any]:
    for i, text in enumerate(texts):
        engine.execute(f"CREATE QUERY q{i} AS {text}", user=user)
    readers = [engine.subscribe(f"q{i}") for i in range(len(texts))]
    for step in range(4):
        for name, found in streams.items():
            rows = [row for row in found if row[2] // 4 == step]
            if rows:
                stamps = [row[2] * SECOND for row in rows]
                engine.ingest(
                    name, {"k": [x[0] for x in rows], "v": [x[1] for x in rows], "t": stamps}
                )
        for name in streams:
            engine.heartbeat(name, (4 * step + 3) * SECOND)
    return [
        [row for push in reader.take() if push.data is not None for row in _flat(push)]
        for reader in readers
    ]


@pytest.mark.parametrize("texts", [CONTINUOUS, PERIODIC], ids=["continuous", "periodic"])
@settings(max_examples=examples(60), deadline=None)
@given(s_rows=ROWS, r_rows=ROWS, s=PARTS, r=PARTS)
def test_registered(
    texts: list[str], s_rows: list[Row], r_rows: list[Row], s: Part, r: Part
) -> None:
    compared(texts, s_rows, r_rows, s, r)


@settings(max_examples=examples(60), deadline=None)
@given(s_rows=ROWS, r_rows=ROWS, s=PARTS, r=PARTS)
def test_asked_once(s_rows: list[Row], r_rows: list[Row], s: Part, r: Part) -> None:
    whole, part = compared([], s_rows, r_rows, s, r)
    for text in ONCE:
        (seen,), (there,) = whole.execute(text, user="alice"), part.execute(text)
        assert seen.as_of == there.as_of, text
        assert in_order(text, seen.data) == in_order(text, there.data), text


def in_order(text: str, data: pa.Table | pa.RecordBatch) -> list[str]:
    """The rows, of an answer without ORDER BY sorted."""
    rows = [repr(row) for row in data.to_pylist()]
    return rows if "ORDER BY" in text else sorted(rows)
