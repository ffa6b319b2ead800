"""Aggregates in Python that follow single rows answer what those built in do: in each kind of
window and query, however rows come, and after restarts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.python_functions import Functions, host
from tests.archives import killed
from tests.effort import examples, thinned

S = 1_000_000
LONG = 120.0  # seconds that no call of these takes, however busy the machine
SOURCE = """
import pyarrow as pa
import pyarrow.compute as pc


class Total:
    def lift(self, i):
        return i

    def combine(self, a, b):
        return pc.add(a, b)

    def subtract(self, a, b):
        return pc.subtract(a, b)

    def lower(self, s):
        return s


class Mean:
    def lift(self, i):
        return _pairs(i, pa.array([1] * len(i), pa.int64()))

    def combine(self, a, b):
        return _pairs(pc.add(a.field(0), b.field(0)), pc.add(a.field(1), b.field(1)))

    def lower(self, s):
        return pc.divide(pc.cast(s.field(0), pa.float64()), pc.cast(s.field(1), pa.float64()))


class Different:
    "A set of small numbers: a bit for each."

    def lift(self, i):
        return pc.shift_left(pa.array([1] * len(i), pa.int64()), i)

    def combine(self, a, b):
        return pc.bit_wise_or(a, b)

    def lower(self, s):
        return [bin(bits).count("1") for bits in s.to_pylist()]


class Chain:
    "It tells whether states come in their order."

    def lift(self, k, separator):
        return k

    def combine(self, a, b):
        return pc.binary_join_element_wise(a, b, "-")

    def lower(self, s):
        return s


class Odd:
    def lift(self, i):
        if pc.any(pc.equal(i, 5)).as_py():
            raise ValueError("five")
        return i

    def combine(self, a, b):
        return pc.add(a, b)

    def lower(self, s):
        return s


def _pairs(total, count):
    return pa.StructArray.from_arrays([total, count], ["total", "count"])
"""
LINE = SOURCE.splitlines().index('            raise ValueError("five")') + 1
DECLARED = """
CREATE STREAM s (k STRING, i INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
CREATE STREAM o (k STRING, j INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
CREATE AGGREGATE total(i INT) RETURNS INT AS PYTHON 'whole:Total';
CREATE AGGREGATE middle(i INT) RETURNS FLOAT AS PYTHON 'whole:Mean';
CREATE AGGREGATE different(i INT) RETURNS INT AS PYTHON 'whole:Different';
CREATE AGGREGATE chained(k STRING, o INT) RETURNS STRING AS PYTHON 'whole:Chain';
CREATE AGGREGATE odd(i INT) RETURNS INT AS PYTHON 'whole:Odd';
"""
OWN = (
    "total({i}) AS a, middle({i}) AS m, different({i}) AS d, chained({k}, 1) AS c, "
    "total({i}) FILTER (WHERE {i} > 1) AS f"
)
BUILT_IN = (
    "SUM({i}) AS a, AVG({i}) AS m, NULLIF(COUNT(DISTINCT {i}), 0) AS d, "
    "STRING_AGG({k}, '-') AS c, SUM({i}) FILTER (WHERE {i} > 1) AS f"
)
FORMS = {
    "time": "SELECT {a} FROM s [RANGE 3 s]",
    "groups": "SELECT k, {a} FROM s [RANGE 3 s] GROUP BY k",
    "rows": "SELECT k, {a} FROM s [ROWS 4] GROUP BY k",
    "partitions": "SELECT {a} FROM s [PARTITION BY k ROWS 2]",
    "now": "SELECT k, {a} FROM s [NOW] GROUP BY k",
    "unbounded": "SELECT k, {a} FROM s [RANGE UNBOUNDED] GROUP BY k",
    "since": "SELECT {a} FROM s [SINCE '1970-01-01']",
    "ago": "SELECT k, {a} FROM s [RANGE 4 s UNTIL 2 s AGO] GROUP BY k",
    "joined": "SELECT s.k AS k, {a} FROM s [RANGE 3 s], o [RANGE 2 s] WHERE s.k = o.k GROUP BY s.k",
    "outer": "SELECT o.k AS k, {a} FROM s [RANGE 3 s] LEFT JOIN o [RANGE 2 s] ON s.k = o.k "
    "GROUP BY o.k",
    "exists": "SELECT {a} FROM s [RANGE 4 s] WHERE EXISTS "
    "(SELECT 1 FROM o [RANGE 2 s] WHERE o.k = s.k)",
    "inside": "SELECT MAX(a) AS a FROM (SELECT k, {one} AS a FROM s [RANGE 3 s] GROUP BY k)",
    "having": "SELECT k, {a} FROM s [RANGE 3 s] GROUP BY k HAVING {one} > 2",
    "slide": "SELECT k, {a} FROM s [RANGE 4 s SLIDE 2 s] GROUP BY k",
    "slide of rows": "SELECT {a} FROM s [ROWS 4 SLIDE 2]",
    "every": "SELECT s.k AS k, {a} FROM s [RANGE 3 s], o [ROWS 2] WHERE s.k = o.k "
    "GROUP BY s.k EVERY 2 s",
}  # a table  # fmt: skip
WAYS = ("", " WITH (strategy = direct)", " WITH (strategy = nt)")


@pytest.fixture(scope="module", autouse=True)
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    made = tmp_path_factory.mktemp("functions")
    (made / "whole.py").write_text(SOURCE)
    host.name(Functions(str(made), LONG))
    yield
    host.close()


def text(form: str, own: bool) -> str:
    of = "s.i" if " s.k" in FORMS[form] or "o.k" in FORMS[form] else "i"
    aggregates = (OWN if own else BUILT_IN).format(i=of, k=of.replace("i", "k"))
    one = f"total({of})" if own else f"SUM({of})"
    return FORMS[form].replace("{a}", aggregates).replace("{one}", one)


def declare(made: Engine, form: str, way: str) -> None:
    for name, own in (("own", True), ("twin", False)):
        made.execute(f"CREATE QUERY {name} AS {text(form, own)}{way}")


def pushed(made: Engine, query: str) -> list[tuple]:
    pushes = made.subscribe(query, 0).take()
    return [(p.kind, p.at, p.data and p.data.to_pylist()) for p in pushes]


def asked(made: Engine, sql: str) -> list[tuple]:
    found = made.execute(sql)[-1].data  # type: ignore[union-attr]
    return list(zip(*(c.to_pylist() for c in found.columns), strict=True))


ROWS = st.lists(
    st.tuples(
        st.sampled_from("sso"),
        st.sampled_from("ab"),
        st.none() | st.integers(0, 4),
        st.sampled_from([0, 0, 1, 2]),
        st.booleans(),
    ),
    min_size=1,
    max_size=30,
)


def play(made: Engine, rows: list[tuple], first: int = 0) -> int:
    """Rows of two streams, some of them in one batch; where the clock stands then."""
    at, waiting = first, list[tuple]()
    for n, (stream, k, i, step, cut) in enumerate(rows):
        at += step * S // 2
        waiting.append((stream, [k, i, at]))
        if cut or n == len(rows) - 1:
            for name in "so":
                some = [row for to, row in waiting if to == name]
                if some:
                    made.ingest(name, some)
            waiting = []
    return at


def end(made: Engine, at: int) -> None:
    for name in "so":
        made.heartbeat(name, at + 20 * S)


@thinned()
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=examples(40), deadline=None)
@given(ROWS)
def test_they_answer_what_those_built_in_do(form: str, way: str, rows: list[tuple]) -> None:
    made = Engine()
    made.execute(DECLARED)
    declare(made, form, way)
    end(made, play(made, rows))
    assert pushed(made, "own") == pushed(made, "twin")


@settings(max_examples=examples(60), deadline=None)
@given(ROWS)
def test_they_answer_so_once(rows: list[tuple]) -> None:
    made = Engine()
    made.execute(DECLARED)
    play(made, rows)
    for form in ("time", "groups", "rows", "joined", "having"):
        assert asked(made, text(form, True)) == asked(made, text(form, False))


@thinned(3)
@pytest.mark.parametrize("finish", [killed, Engine.close])
@pytest.mark.parametrize("form", FORMS)
def test_they_go_on_after_a_restart(
    form: str, finish: Callable[[Engine], None], tmp_path: Path
) -> None:
    rows = [("so"[n % 3 == 2], "ab"[n % 2], n % 4 or None, n % 3, True) for n in range(40)]
    made = Engine(str(tmp_path))
    made.execute(DECLARED)
    declare(made, form, "")
    at = play(made, rows)
    before = pushed(made, "own")
    finish(made)
    made = Engine(str(tmp_path))
    assert made.saver is not None and made.saver.recovered.notes == []
    end(made, play(made, rows, at))
    own, twin = pushed(made, "own"), pushed(made, "twin")
    assert own == twin and len(own) > len(before)
    made.close()


def test_what_is_wrong_in_one_stops_that_query_alone() -> None:
    made = Engine()
    made.execute(DECLARED)
    made.execute("CREATE QUERY bad AS SELECT odd(i) AS a FROM s [RANGE 3 s]")
    declare(made, "time", "")
    made.ingest("s", [["a", 1, 0], ["a", 2, S], ["a", 5, 2 * S], ["a", 3, 3 * S]])
    made.heartbeat("s", 20 * S)
    (stopped,) = (row[1] for row in asked(made, "SHOW QUERIES") if row[0] == "bad")
    assert stopped.startswith("stopped: DS247")
    assert f"ValueError: five (whole.py, line {LINE})" in stopped
    assert pushed(made, "own") == pushed(made, "twin")


def test_what_a_query_holds_is_counted() -> None:
    made = Engine()
    made.execute(DECLARED)
    declare(made, "groups", "")
    made.ingest("s", [["ab"[n % 2], 1, n] for n in range(3000)])
    (found,) = made.execute("SHOW QUERIES FULL")
    (held,) = (r["state_bytes"] for r in found.data.to_pylist() if r["query"] == "own")  # type: ignore[union-attr]
    assert int(held) > 3000 * 2 * 8
