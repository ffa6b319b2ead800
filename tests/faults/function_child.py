"""Expressions by number over a table of edge values, in a process that may die of it.

python -m tests.faults.function_child FIRST COUNT
    says on stdout how far it is, and in the end how the expressions ended

Each is run as persistent queries run it, folded and not, and by the oracle; several of them as
columns of a statement, and of a persistent query.  All must agree, or refuse with a code that is
no DS9xx.

What is counted are evaluations of an expression over values of the columns it names, of which no
two are the same, that came out alike in all three ways.  The rows are all combinations of edge
values where these are few, else some of them.  Of an expression that fails on some rows, which a
statement refuses to give, a statement over some of the others is compared, and those are counted.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.operators.expressions import ErrorCounter, compile_expr, evaluate_constant
from dsms.sql.binder import bind_query
from dsms.sql.expr import Call, Col, Expr, walk
from dsms.sql.fold import fold
from dsms.sql.functions import FUNCTIONS
from dsms.sql.parser import parse_one
from dsms.sql.types import MAX_INSTANT, MIN_INSTANT
from tests.faults.function_draws import COLUMNS, expression, rows
from tests.oracle.scalar import evaluate
from tests.scalars import same

MEMORY = 3 << 30  # bytes of address space that the child may take beyond what it has at the start
ROWS = 1024  # of the table
BATCH = 16  # expressions of one statement, and of one persistent query
T = list(COLUMNS).index("t")
CLOSE = {
    "sqrt",
    "exp",
    "ln",
    "log10",
    "log2",
    "power",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "haversine",
}


class Disagreement(AssertionError):
    """Two ways to the same value."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An expression, its values over all rows, and the rows that count: no two of them alike."""

    text: str
    values: list[object]
    rows: list[int]
    failed: str | None  # what the first row that failed said


class Bench:
    """An engine with a table and a stream of the same rows, and what expressions have ended in.

    ends    by code; counts  evaluations by the checksum of an expression's text"""

    def __init__(self, number: int) -> None:
        self.engine, self.rows = Engine(), rows(number, ROWS)
        self.ends: Counter[str] = Counter()
        self.counts: dict[int, int] = {}
        columns = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
        self.engine.execute(f"CREATE TABLE e (k INT, {columns})")
        self.engine.execute(f"CREATE STREAM m (k INT, at TIMESTAMP, {columns}) TIMESTAMP BY at")
        values = list(zip(*self.rows, strict=True))
        arrays = [pa.array(v, t.arrow) for v, t in zip(values, COLUMNS.values(), strict=True)]
        self.arrays = [pa.array(range(ROWS), pa.int64()), *arrays]
        self.now = 0
        self.engine.ingest("e", pa.table(self.arrays, ["k", *COLUMNS]))
        numbered = [{id(v): n for n, v in enumerate({id(v): v for v in column}.values())}
                    for column in values]  # a value is the same object  # fmt: skip
        self._which = np.array([[known[id(v)] for v in column]
                                for known, column in zip(numbered, values,
                                                         strict=True)])  # by column  # fmt: skip

    def suffer(self, numbers: Sequence[int]) -> None:
        """Raises Disagreement, or whatever else is no DsmsError."""
        answered = [found for number in numbers if (found := self._alone(expression(number)))]
        for each in answered:
            if each.failed is not None:
                self._refused_once(each)
        self._once([each for each in answered if each.failed is None], "")
        self._persistent(answered)
        for each in answered:
            self.counts[zlib.crc32(each.text.encode())] = len(each.rows)
        self.ends["compared"] += len(answered)

    def _alone(self, text: str) -> Answered | None:
        """As it is, folded, and by the oracle; None if it was refused."""
        try:
            expr = self._bound(text)
        except DsmsError as problem:
            self._refused(problem, text)
            return None
        values, errors = self._evaluated(expr)
        again, more = self._evaluated(fold(expr, evaluate_constant))
        kept = self._unlike(expr)
        self._agree(text, "folded", values, again, kept)
        if (errors.count == 0) != (more.count == 0):
            raise Disagreement(f"{text}: {errors.by_code} and, folded, {more.by_code}")
        if not _rough(expr):
            zoned = _zoned(expr)
            for k in kept:
                row = self.rows[k]
                if zoned and row[T] in (MIN_INSTANT, MAX_INSTANT):
                    continue  # Python's calendar has no day beside its first and last
                self._same(text, "the oracle", k, values[k], evaluate(expr, (k, *row)))
        if errors.count:
            kept = self._sound(expr, [k for k in kept if values[k] is not None])
        return Answered(text, values, kept, errors.first if errors.count else None)

    def _bound(self, text: str) -> Expr:
        plan = bind_query(
            parse_one(f"SELECT {text} AS x FROM e"), self.engine.runtime.catalog, persistent=False
        )  # type: ignore[arg-type]
        return plan.child.exprs[0]  # type: ignore[attr-defined,no-any-return]

    def _evaluated(
        self, expr: Expr, places: Sequence[int] | None = None
    ) -> tuple[list[object], ErrorCounter]:
        """Over all rows, or over those."""
        errors = ErrorCounter()
        arrays = self.arrays if places is None else [a.take(pa.array(places)) for a in self.arrays]
        found = compile_expr(expr)(arrays, len(arrays[0]), errors)
        found.validate(full=True)
        return found.to_pylist(), errors

    def _sound(self, expr: Expr, places: list[int], least: int = 32) -> list[int]:
        """Rows on which nothing within it fails, either; not all where such are few."""
        if not places or not self._evaluated(expr, places)[1].count:
            return places
        if len(places) <= least:
            return []
        half = len(places) // 2
        return self._sound(expr, places[:half]) + self._sound(expr, places[half:])

    def _unlike(self, expr: Expr) -> list[int]:
        """Rows of which no two have the same values in the columns that it names."""
        used = sorted({e.index - 1 for e in walk(expr) if isinstance(e, Col)})
        if not used:
            return [0]
        firsts = np.unique(self._which[used], axis=1, return_index=True)[1]
        return [int(k) for k in np.sort(firsts)]

    def _once(self, answered: Sequence[Answered], where: str) -> None:
        """As columns of one statement."""
        if not answered:
            return
        items = ", ".join(f"{each.text} AS x{n}" for n, each in enumerate(answered))
        (found,) = self.engine.execute(f"SELECT k, {items} FROM e {where} ORDER BY k")
        self._compared("a statement", answered, found.data)

    def _compared(self, what: str, answered: Sequence[Answered], data: pa.Table) -> None:
        """Columns of answers behind one that numbers their rows."""
        for column, each in enumerate(answered, 1):
            others = dict(zip(data.column(0).to_pylist(), data.column(column).to_pylist(),
                              strict=True))  # by row  # fmt: skip
            self._agree(each.text, what, each.values, others, each.rows)

    def _refused_once(self, each: Answered) -> None:
        """A statement fails on a row that does, and not on others."""
        try:
            self.engine.execute(f"SELECT k, {each.text} AS x FROM e ORDER BY k")
        except DsmsError as problem:
            self._refused(problem, each.text)
        else:
            raise Disagreement(f"{each.text}: {each.failed}, but not as a statement")
        if each.rows:
            chosen = bytearray(b"n" * ROWS)
            for k in each.rows:
                chosen[k] = ord("y")
            self._once([each], f"WHERE substr('{chosen.decode()}', k + 1, 1) = 'y'")

    def _persistent(self, answered: Sequence[Answered]) -> None:
        """As columns of one persistent query, in which what fails is NULL."""
        if not answered:
            return
        items = ", ".join(f"{each.text} AS x{n}" for n, each in enumerate(answered))
        self.engine.execute(f"CREATE QUERY q AS SELECT ISTREAM(k, {items}) FROM m [NOW]")
        self.now += 1
        stamps = pa.array([self.now] * ROWS, pa.timestamp("us"))
        cells = [self.arrays[0], stamps, *self.arrays[1:]]
        self.engine.ingest("m", pa.table(cells, ["k", "at", *COLUMNS]))
        self.engine.heartbeat("m", self.now)
        pushes = self.engine.subscribe("q", 0).take()
        found = [p.data for p in pushes if p.kind == "insert" and p.data is not None]
        self.engine.execute("DROP QUERY q")
        tables = [t if isinstance(t, pa.Table) else pa.Table.from_batches([t]) for t in found]
        self._compared("a persistent query", answered, pa.concat_tables(tables))

    def _agree(self, text: str, what: str, values: list[object],
               others: list[object] | dict[int, object],
               kept: Sequence[int]) -> None:  # several values  # fmt: skip
        for k in kept:
            self._same(text, what, k, values[k], others[k])

    def _same(self, text: str, what: str, row: int, value: object, other: object) -> None:
        if same(value, other):
            return
        floats = isinstance(value, float) and isinstance(other, float)
        if not (floats and math.isclose(value, other, rel_tol=1e-14)):  # type: ignore[arg-type]
            raise Disagreement(f"{text} of {self.rows[row]}: {value!r}, {what}: {other!r}")

    def _refused(self, problem: DsmsError, text: str) -> None:
        if problem.code.startswith("DS9"):
            raise Disagreement(f"{text}: {problem}")
        self.ends[problem.code] += 1


def _zoned(expr: Expr) -> bool:
    return any(
        "zone" in FUNCTIONS[e.fn].constants.values() for e in walk(expr) if isinstance(e, Call)
    )


def _rough(expr: Expr) -> bool:
    """Whether another last digit in it may become another answer."""
    calls = [e for e in walk(expr) if isinstance(e, Call) and e.fn in CLOSE]
    return any(c is not expr for c in calls)


def main(first: int, count: int) -> None:
    bench = Bench(first)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
    for start in range(first, first + count, BATCH):
        print(start, flush=True)
        bench.suffer(range(start, min(start + BATCH, first + count)))
    print(json.dumps([bench.ends, bench.counts]))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
