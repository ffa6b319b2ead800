"""Synopses against lists of rows: what the tests of synopses and of algebras share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa

from dsms.aggregates.parts.base import NO_BOOLS, Answers, Arg, GroupEvents
from dsms.aggregates.parts.cells import Algebra, CellRows, State
from dsms.aggregates.parts.words import NONE, arg_coding, form, validity
from dsms.aggregates.registry import answer_coding, follow
from dsms.errors import QueryError
from dsms.sql.expr import AggCall, Col
from dsms.synopses.basic import Basic
from dsms.synopses.cells import InParts, Synopsis
from dsms.synopses.interval import Interval
from dsms.synopses.landmark import Landmark
from dsms.synopses.running import Running
from tests.grouping import COL, FLOATS, SCHEMA, call, in_order
from tests.oracle import aggregates as oracle
from tests.oracle.values import canon

ORDERED = "sifdwtpb"

CALLS = {
    "counts": [AggCall("count_star", (), call("count", "i").type), call("count", "f"),
               call("count", "s")],
    "sums": [call("sum", "f"), call("sum", "i"), call("sum", "d"), call("sum", "w"),
             call("sum", "p")],
    "means": [*(call("avg", c) for c in "fidwp"), call("geomean", "f")],
    "spread": [call(fn, "f") for fn in ("var", "var_pop", "stddev", "stddev_pop")],
    "pairs": [call("covar_pop", "f", "y"), call("covar_samp", "y", "y"),
              *(call(fn, *xy) for fn in ("corr", "regr_slope", "regr_intercept")
                for xy in (("kf", "y"), ("f", "kf")))],
    "bools": [call("bool_and", "b"), call("bool_or", "b"), call("bool_or", "b", distinct=True)],
    "extremes": [call(fn, c) for fn in ("min", "max") for c in ORDERED],
    "arguments": [call("argmax", "i", "f"), call("argmin", "s", "s"), call("argmax", "f", "w"),
                  call("argmin", "w", "b")],
    "ends": [call(fn, c) for fn in ("first", "last") for c in "sfwb"],
    "runs": [*(call(fn, c) for fn in ("longest_rise", "longest_fall") for c in "sfw"),
             call("rise_start", "i", "f"), call("rise_end", "s", "s"), call("fall_start", "w", "b"),
             call("fall_end", "f", "i")],
    "distinct": [call(fn, c, distinct=True) for fn, c in (
        ("count", "s"), ("count", "f"), ("count", "w"), ("sum", "f"), ("sum", "i"), ("avg", "w"),
        ("avg", "p"),
        ("var", "f"), ("median", "f"), ("max", "s"))],
    "quantiles": [call("median", "f"), call("median", "t"), call("quantile", "f", params=(0.1,)),
                  call("quantile", "i", params=(0.75,)), call("quantile", "d", params=(0,)),
                  call("quantile", "s", params=(0.5,)), call("quantile", "w", params=(1,)),
                  call("quantile_cont", "f", params=(0.3,)),
                  call("quantile_cont", "p", params=(0.9,)),
                  call("quantile_cont", "f", params=(0.3,), distinct=True)],
    "strings": [call("string_agg", "s", params=("-",)), call("string_agg", "s", params=("",)),
                in_order(call("string_agg", "s", params=("-",)), f="desc")],
    "arrays": [call("array_agg", c, params=(n,)) for c in "sfwbi" for n in (1, 3)]
    + [in_order(call("array_agg", "i", params=(2,)), **{c: "asc nulls first"}) for c in "sfw"],
    "buckets": [call("histogram", "i", params=("[-1, 0, 4]",)),
                call("histogram", "f", params=("[-2.5, 0.0, 1e+100]",)),
                call("histogram", "t", params=('["1970-01-01 00:00:00"]',))],
    "tallies": [*(call(fn, c) for fn in ("mode", "entropy") for c in ORDERED)],
    "topk": [AggCall("topk", (COL[c],), COL["s"].type, params=(k,)) for c in ORDERED for k in (1,
                                                                                               3)]
    + [AggCall("topk", (COL["s"],), COL["s"].type, params=(100,))],
}  # a table  # fmt: skip


def value(rng: Random, name: str) -> object:
    """A value of that column of `tests.grouping.SCHEMA`; a fifth of them NULL."""
    from decimal import Decimal

    if rng.random() < 0.2:
        return None
    match name:
        case "s":
            return rng.choice(["", "a", "b", "ab", "é", "z" * 9, f"n{rng.randrange(40)}"])
        case "i":
            return rng.choice([rng.randint(-5, 5), rng.randint(-5, 5), 2**61, -(2**61)])
        case "f":
            return rng.choice(
                [rng.choice(FLOATS), rng.uniform(-10, 10), 10.0 ** rng.randint(-300, 300)]
            )
        case "d":
            return Decimal(rng.randint(-999, 999)).scaleb(-2)
        case "w":
            return rng.choice(
                [Decimal(10**26), Decimal(-(10**26)), Decimal("0.001"), Decimal(rng.randrange(99))]
            )
        case "b":
            return rng.random() < 0.5
        case "kf":
            return float(rng.choice([rng.randint(-3, 9), 2**60, -(2**60) + 1]))
        case "y":
            return rng.choice([float(rng.randint(-3, 3)), rng.uniform(-1e3, 1e3)])
        case "t":
            return rng.randint(-3, 9)
    return rng.choice([rng.randint(-3, 9), 2**60, -(2**60) + 1])


def tame(rng: Random, name: str) -> object:
    """The same, with floats of moderate size."""
    found = value(rng, name)
    return rng.uniform(-1e4, 1e4) if name == "f" and found is not None else found


Values = tuple[object, ...]
Draw = Callable[[Random, str], object]


def arguments(wanted: AggCall, values: list[Values]) -> tuple[pa.Array, ...]:
    """The call's arguments over rows of SCHEMA."""
    cols = [e for e in wanted.args if isinstance(e, Col)]
    return tuple(pa.array([v[c.index] for v in values], SCHEMA[c.index].type.arrow) for c in cols)


def lifted(algebra: Algebra, wanted: AggCall, cells: list[list[Values]]) -> State:
    """The cells of lists of rows."""
    rows = [v for cell in cells for v in cell]
    cell = np.repeat(np.arange(len(cells)), [len(c) for c in cells]).astype(np.int64)
    order = np.arange(len(rows), dtype=np.int64)
    return algebra.lift(CellRows(cell, order, order, arguments(wanted, rows)), len(cells))


def exact(column: pa.Array) -> list[str]:
    """Values bit for bit."""
    return [repr(v) for v in column.to_pylist()]


def expected(wanted: AggCall, cells: list[list[Values]]) -> list[object] | None:
    """Answers by the oracle, as SQL compares them; None: a SUM leaves its range."""
    try:
        return [canon(oracle.aggregate(wanted, cell)) for cell in cells]
    except oracle.SumOverflow:
        return None


def continuous(wanted: AggCall, cells: list[list[Values]]) -> list[str]:
    """Answers of the engine that follows single rows, bit for bit, of cells that have rows."""
    full = [c for c in cells if c]
    rows = [v for cell in full for v in cell]
    sizes = np.array([len(c) for c in full], np.int64)
    code, n = np.repeat(np.arange(len(full)), sizes), len(rows)
    emit = np.full(n, -1, np.int64)
    emit[np.cumsum(sizes) - 1] = np.arange(len(full))
    feed = GroupEvents(
        code, np.ones(n, np.int8), np.arange(n), emit, sizes, touches=len(full), groups=len(full)
    )
    args = tuple(_argument(wanted, k, col) for k, col in enumerate(arguments(wanted, rows)))
    serving = follow(wanted, "never")
    codings = tuple(a.coding for a in args)
    result = answer_coding(wanted, codings, serving)
    high = np.zeros(len(full) if getattr(result, "wide", False) else 0, np.int64)
    out = Answers(np.zeros(len(full), np.int64), high, np.zeros(len(full), np.bool_))
    serving.run(feed, args, out)
    if getattr(serving, "over", -1) >= 0:
        raise QueryError("DS706", "a SUM left its range")
    return exact(result.decode(out.words, out.high, out.valid, np.arange(len(full))))


def _argument(wanted: AggCall, k: int, column: pa.Array) -> Arg:
    coding = arg_coding(wanted, k)
    words, high = coding.encode(column) if form(wanted, k) != "valid" else (NONE, NONE)
    valid = validity(column)
    return Arg(words, high, NO_BOOLS if valid is None else valid, coding)


def synopses(algebra: Algebra) -> dict[str, Callable[[], Synopsis]]:
    """Every synopsis that the algebra admits."""
    out: dict[str, Callable[[], Synopsis]] = {
        "basic": lambda: Basic(algebra),
        "interval": lambda: Interval(algebra),
        "landmark": lambda: Landmark(algebra, [2, 3, 7]),
        "landmark, of nothing": lambda: Landmark(algebra, []),
    }
    if algebra.subtractable:
        out["running"] = lambda: Running(algebra)
    return out


@dataclass
class Model:
    """Sub-windows as lists of rows by group, beside synopses that are given the same."""

    wanted: AggCall
    algebra: Algebra
    held: dict[str, Synopsis]
    groups: int = 1
    first: int = 0
    rows: list[list[list[Values]]] = field(default_factory=list)  # by sub-window and group

    @property
    def next(self) -> int:
        return len(self.rows)

    def append(self, rng: Random, count: int, most: int, draw: Draw = value) -> None:
        """Sub-windows of up to `most` rows a group; half of them lifted in two pieces."""
        names = {c.index for c in self.wanted.args if isinstance(c, Col)}
        new = [
            [
                [
                    tuple(draw(rng, f.name) if i in names else None for i, f in enumerate(SCHEMA))
                    for _ in range(rng.randint(0, most) if rng.random() < 0.7 else 0)
                ]
                for _ in range(self.groups)
            ]
            for _ in range(count)
        ]
        cells = [cell for sub in new for cell in sub]
        if rng.random() < 0.5:
            state = lifted(self.algebra, self.wanted, cells)
        else:
            cuts = [rng.randint(0, len(c)) for c in cells]
            older = lifted(
                self.algebra, self.wanted, [c[:k] for c, k in zip(cells, cuts, strict=True)]
            )
            newer = lifted(
                self.algebra, self.wanted, [c[k:] for c, k in zip(cells, cuts, strict=True)]
            )
            state = self.algebra.combine(older, newer)
        self.rows += new
        for synopsis in self.held.values():
            synopsis.append(state, count)

    def grow(self, more: int) -> None:
        self.groups += more
        for sub in self.rows:
            sub.extend([] for _ in range(more))
        for synopsis in self.held.values():
            synopsis.grow(self.groups)

    def trim(self, first: int) -> None:
        self.first = max(self.first, min(first, self.next))
        for synopsis in self.held.values():
            synopsis.trim(first)

    def cells(self, spans: list[tuple[int, int]]) -> list[list[Values]]:
        """The rows of each span and group."""
        return [
            [v for sub in self.rows[max(a, self.first) : max(b, self.first)] for v in sub[g]]
            for a, b in spans
            for g in range(self.groups)
        ]

    def check(self, spans: list[tuple[int, int]]) -> None:
        """All synopses answer what the oracle does, alike to the bit."""
        want = expected(self.wanted, self.cells(spans))
        low, high = (np.array([s[k] for s in spans], np.int64) for k in range(2))
        seen: list[list[str]] = []
        for name, synopsis in self.held.items():
            assert (synopsis.first, synopsis.next, synopsis.groups) == (
                self.first,
                self.next,
                self.groups,
            ), name
            state = synopsis.probe(low, high)
            assert self.algebra.size(state) == len(spans) * self.groups
            assert synopsis.nbytes > 0 and synopsis.cost(3) >= 1
            if want is None:
                with_error(self.algebra, state)
                continue
            answer = self.algebra.lower(state)
            assert answer.type == self.wanted.type.arrow, name
            assert [canon(v) for v in answer.to_pylist()] == want, (name, spans, self.first)
            seen.append(exact(answer))
            assert seen[-1] == seen[0], name
            if isinstance(synopsis, InParts):
                assert self._in_parts(synopsis, low, high) == seen[0], name

    def _in_parts(self, synopsis: InParts, low: np.ndarray, high: np.ndarray) -> list[str]:
        """The answers, asked of some groups after the others."""
        cuts, out = sorted({0, self.groups // 3, self.groups // 2, self.groups}), [""] * 0
        parts = [synopsis.probe_part(low, high, a, b) for a, b in pairwise(cuts)]
        answers = [iter(exact(self.algebra.lower(part))) for part in parts]
        for _ in low:
            for (a, b), answer in zip(pairwise(cuts), answers, strict=True):
                out += [next(answer) for _ in range(a, b)]
        return out


def with_error(algebra: Algebra, state: State) -> None:
    """Lowering stops with the error of a SUM that left its range."""
    try:
        algebra.lower(state)
    except QueryError as error:
        assert error.code == "DS706" and error.hint
        return
    raise AssertionError("a SUM should have left its range")


def spans_of(rng: Random, first: int, last: int) -> list[tuple[int, int]]:
    """Spans, some with a common end, some beyond what is held, some empty."""
    ends = [rng.randint(first - 2, last + 2) for _ in range(3)]
    spans = [
        (rng.randint(max(0, first - 2), last + 1), max(0, rng.choice(ends)))
        for _ in range(rng.randint(0, 6))
    ]
    return spans + [(max(0, last - w), last) for w in rng.sample(range(9), rng.randint(0, 4))]
