"""Expressions by number over a table of edge values, in a process that may die of it.

python -m tests.faults.function_child FIRST COUNT     says on stdout how far it is

Each is run once, as a statement; as persistent queries run it, folded and not; sometimes as a
persistent query; and by the oracle.  All must agree, or refuse with a code that is no DS9xx.
"""

from __future__ import annotations

import math
import resource
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.operators.expressions import ErrorCounter, compile_expr, evaluate_constant
from dsms.sql.binder import bind_query
from dsms.sql.expr import Call, Expr, walk
from dsms.sql.fold import fold
from dsms.sql.functions import FUNCTIONS
from dsms.sql.parser import parse_one
from dsms.sql.types import MAX_INSTANT, MIN_INSTANT
from tests.faults.function_draws import COLUMNS, expression, rows
from tests.oracle.scalar import evaluate
from tests.scalars import same

MEMORY = 3 << 30  # bytes of address space that the child may take beyond what it has at the start
ROWS = 32  # of the table
PERSISTENT = 16  # of so many expressions one is a persistent query, too
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
}


class Disagreement(AssertionError):
    """Two ways to the same value."""


class Bench:
    """An engine with a table and a stream of the same rows, and what expressions have ended in."""

    def __init__(self, number: int) -> None:
        self.engine, self.rows = Engine(), rows(number, ROWS)
        self.ends: Counter[str] = Counter()
        columns = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
        self.engine.execute(f"CREATE TABLE e (k INT, {columns})")
        self.engine.execute(f"CREATE STREAM m (k INT, at TIMESTAMP, {columns}) TIMESTAMP BY at")
        values = list(zip(*self.rows, strict=True))
        self.arrays = [pa.array(v, t.arrow) for v, t in zip(values, COLUMNS.values(), strict=True)]
        self.now = 0
        self.engine.execute(
            "INSERT INTO e VALUES "
            f"{', '.join(self._literals(k, r) for k, r in enumerate(self.rows))}"
        )

    def _literals(self, number: int, row: Sequence[object]) -> str:
        cells = [_literal(v, str(t)) for v, t in zip(row, COLUMNS.values(), strict=True)]
        return f"({number}, {', '.join(cells)})"

    def suffer(self, number: int) -> None:
        """Raises Disagreement, or whatever else is no DsmsError."""
        text = expression(number)
        try:
            expr = self._bound(text)
        except DsmsError as problem:
            self._refused(problem, text)
            return
        cols = [pa.array(range(ROWS), pa.int64()), *self.arrays]
        values, errors = self._evaluated(expr, cols)
        again, more = self._evaluated(fold(expr, evaluate_constant), cols)
        self._agree(text, "folded", values, again)
        if (errors.count == 0) != (more.count == 0):
            raise Disagreement(f"{text}: {errors.by_code} and, folded, {more.by_code}")
        self._once(text, values, errors)
        if not _rough(expr):
            wanted = [evaluate(expr, (k, *row)) for k, row in enumerate(self.rows)]
            if _zoned(expr):  # Python's calendar has no day beside its first and last
                wanted = [v if row[T] in (MIN_INSTANT, MAX_INSTANT) else w
                          for v, w, row in zip(values, wanted, self.rows,
                                               strict=True)]  # one value a row  # fmt: skip
            self._agree(text, "the oracle", values, wanted)
        if number % PERSISTENT == 0:
            self._persistent(text, values)
        self.ends["compared"] += 1

    def _bound(self, text: str) -> Expr:
        plan = bind_query(
            parse_one(f"SELECT {text} AS x FROM e"), self.engine.runtime.catalog, persistent=False
        )  # type: ignore[arg-type]
        return plan.child.exprs[0]  # type: ignore[attr-defined,no-any-return]

    def _evaluated(self, expr: Expr, cols: Sequence[pa.Array]) -> tuple[list[object], ErrorCounter]:
        errors = ErrorCounter()
        found = compile_expr(expr)(cols, ROWS, errors)
        found.validate(full=True)
        return found.to_pylist(), errors

    def _once(self, text: str, values: list[object], errors: ErrorCounter) -> None:
        try:
            (found,) = self.engine.execute(f"SELECT k, {text} AS x FROM e ORDER BY k")
        except DsmsError as problem:
            self._refused(problem, text)
            if not errors.count:
                raise Disagreement(f"{text}: as a statement {problem}") from None
            return
        if errors.count:
            raise Disagreement(f"{text}: {errors.first}, but not as a statement")
        self._agree(text, "a statement", values, found.data.column(1).to_pylist())

    def _persistent(self, text: str, values: list[object]) -> None:
        self.engine.execute(f"CREATE QUERY q AS SELECT ISTREAM(k, {text} AS x) FROM m [NOW]")
        self.now += 1
        cells = [
            pa.array(range(ROWS), pa.int64()),
            pa.array([self.now] * ROWS, pa.timestamp("us")),
            *self.arrays,
        ]
        self.engine.ingest("m", pa.table(cells, ["k", "at", *COLUMNS]))
        self.engine.heartbeat("m", self.now)
        found: list[tuple[int, object]] = []
        for push in self.engine.subscribe("q", 0).take():
            if push.kind == "insert" and push.data is not None:
                found += zip(
                    push.data.column(0).to_pylist(), push.data.column(1).to_pylist(), strict=True
                )
        self.engine.execute("DROP QUERY q")
        self._agree(
            text,
            "a persistent query",
            values,
            [x for _, x in sorted(found, key=lambda row: row[0])],
        )

    def _agree(self, text: str, what: str, values: list[object], others: list[object]) -> None:
        for k, (value, other) in enumerate(zip(values, others, strict=True)):
            if same(value, other):
                continue
            if (
                isinstance(value, float)
                and isinstance(other, float)
                and math.isclose(value, other, rel_tol=1e-14)
            ):
                continue
            raise Disagreement(f"{text} of {self.rows[k]}: {value!r}, {what}: {other!r}")

    def _refused(self, problem: DsmsError, text: str) -> None:
        if problem.code.startswith("DS9"):
            raise Disagreement(f"{text}: {problem}")
        self.ends[problem.code] += 1


def _literal(value: object, type_: str) -> str:
    if value is None:
        return "NULL"
    if type_ == "TIMESTAMP":
        return f"to_timestamp({value}, 'us')"
    if type_ == "INTERVAL":
        return f"CAST('{value} us' AS INTERVAL)"
    if isinstance(value, bytes):
        return f"unhex('{value.hex()}')"
    return f"CAST('{value}' AS {type_})"


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
    for number in range(first, first + count):
        print(number, flush=True)
        bench.suffer(number)
    print(*(f"{end}={n}" for end, n in sorted(bench.ends.items())))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
