"""What a plan that is run once needs of the archives that it reads: since when, which rows, which
columns.

A condition is handed down to an archive's files only where the plan would have tried it on the
leaf's rows before anything that a row may fail in; so skipping files, row groups or rows by it does
not change the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dsms.oneshot.reads import Read, reads
from dsms.operators.expressions import can_fail
from dsms.operators.expressions.patterns import tokens
from dsms.plan import windows
from dsms.plan.text import literal
from dsms.sql import logical as lp
from dsms.sql.catalog import StreamDef
from dsms.sql.expr import Call, Col, Expr, Lit, columns, conjuncts, rewrite
from dsms.sql.types import ALWAYS, FOREVER, WHOLE, Field, Kind

# and as seen from the other side
OPS = {"eq": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "in": "in"}
KINDS = (
    *WHOLE,
    Kind.BOOL,
    Kind.STRING,
    Kind.UUID,
    Kind.BYTES,
    Kind.DECIMAL,
)  # not FLOAT: NaN, -0.0
COMPARED = (*KINDS, Kind.FLOAT)  # by our own indices
SIGNS = {"eq": "=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
LAST, SURROGATES = chr(0x10FFFF), range(0xD800, 0xE000)  # no characters of their own
UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(frozen=True, slots=True)
class Condition:
    """`column op value`, or one of the values (`in`); op: eq, lt, le, gt, ge, in.  A NULL never
    meets it."""

    column: int
    op: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Needed:
    """What is needed of an archive leaf.

    since, upto  rows inserted in (since, upto]
    rows         the newest so many of them will do; None: all
    conditions   which all rows that matter meet
    columns      positions of the columns that are used
    """

    read: Read
    since: int
    upto: int
    rows: int | None
    conditions: tuple[Condition, ...]
    columns: frozenset[int]

    def bounds(self) -> dict[str, tuple[Any, Any, tuple[Any, ...] | None]]:
        """By column name the least and the largest value that matters (None: open), or which values
        do."""
        out: dict[str, tuple[Any, Any, tuple[Any, ...] | None]] = {}
        for c in self.conditions:
            low, high, values = out.get(name := self.scan.schema[c.column].name, (None, None, None))
            if c.op in ("eq", "in"):
                values = c.values if values is None else values
            elif c.op in ("gt", "ge"):
                low = c.values[0] if low is None else max(low, c.values[0])
            else:
                high = c.values[0] if high is None else min(high, c.values[0])
            out[name] = low, high, values
        return out

    def described(self) -> list[str]:
        """The conditions, for people."""
        return [_described(c, self.scan.schema[c.column]) for c in self.conditions]

    @property
    def scan(self) -> lp.StreamScan:
        assert isinstance(self.read.node, lp.StreamScan)
        return self.read.node


def archived(plan: lp.Node) -> dict[int, Read]:
    """The archive leaves of a plan."""
    return {leaf: read for leaf, read in reads(plan).items() if read.kind == "archive"}


def needed(plan: lp.Node, at: int, moved_up: Collection[str] = ()) -> dict[int, Needed]:
    """By leaf number what the plan, run as of `at`, needs of each archive.

    moved_up  keys of streams that have rows whose instants are later than their timestamp column
              says"""
    found: dict[int, Needed] = {}
    leaves = archived(plan)
    met = dict(_conditions(plan, ()))
    seen = dict(_columns(plan, range(len(plan.schema))))
    for leaf, read in leaves.items():
        scan = read.node
        assert isinstance(scan, lp.StreamScan)
        end = windows.ends(read.spec, read.upto(at))
        asked = tuple(
            c for c in met.get(leaf, ()) if scan.schema[c.column].type.kind is not Kind.FLOAT
        )
        since, upto = _between(scan, asked, read.since(at), end)
        upto = end if scan.stream.home in moved_up else upto
        found[leaf] = Needed(read, since, upto, read.rows, asked, frozenset(seen.get(leaf, ())))
    return found


def conditions(plan: lp.Node) -> dict[int, tuple[Condition, ...]]:
    """By leaf number the conditions that all rows of a stream which matter meet."""
    return {leaf: met for leaf, met in _conditions(plan, ()) if met}


def used_columns(plan: lp.Node) -> dict[int, frozenset[int]]:
    """By leaf number of a stream the columns that a plan looks at."""
    seen = _columns(plan, range(len(plan.schema)))
    return {leaf: frozenset(columns) for leaf, columns in seen}


def _described(c: Condition, field: Field) -> str:
    values = [literal(Lit(v, field.type)) for v in c.values]
    return (
        f"{field.name} IN ({', '.join(values)})"
        if c.op == "in"
        else f"{field.name} {SIGNS[c.op]} {values[0]}"
    )


# ---------------------------------------------------------------- time


def _between(
    scan: lp.StreamScan, met: Iterable[Condition], since: int, upto: int
) -> tuple[int, int]:
    """(since, upto] narrowed by what is asked of the column that the stream takes its timestamps
    from."""
    stream = scan.stream
    if stream.timestamp is None:
        return since, upto
    for condition in met:
        if condition.column == stream.timestamp:
            values = [_instant(stream, v) for v in condition.values]
            if condition.op in ("eq", "in", "gt", "ge"):
                since = max(since, min(values) - 1)
            if condition.op in ("eq", "in", "lt", "le"):
                upto = min(upto, max(values))
    return since, upto


def _instant(stream: StreamDef, value: int) -> int:
    """The instant that a value of the timestamp column stands for."""
    found = value // 1000 if stream.unit == "ns" else value * UNITS[stream.unit or "us"]
    return max(ALWAYS + 1, min(FOREVER, found))


# ---------------------------------------------------------------- conditions


def _conditions(
    node: lp.Node, asked: tuple[Expr, ...]
) -> Iterable[tuple[int, tuple[Condition, ...]]]:
    """Of each stream leaf those that its rows must meet; `asked` of the node's own rows by what
    stands above."""
    match node:
        case lp.StreamScan():
            found = [c for e in asked for c in _conditions_of(e)]
            yield node.leaf, tuple(dict.fromkeys(found))
        case lp.Select():
            # what is NULL does not keep what comes after it from failing
            sure = () if can_fail(node.predicate) else (*conjuncts(node.predicate), *asked)
            yield from _conditions(node.child, sure)
        case lp.Project():
            through = () if any(map(can_fail, node.exprs)) else asked
            yield from _conditions(
                node.child, tuple(rewrite(e, lambda c: node.exprs[c.index]) for e in through)
            )
        case lp.Window():
            yield from _conditions(
                node.child, tuple(e for e in asked if windows.commutes(node.spec, columns(e)))
            )
        case lp.Output() | lp.Sort():
            yield from _conditions(node.child, ())
        case _:
            for child in lp.children(node):
                yield from _conditions(child, ())


def _conditions_of(expr: Expr) -> Iterable[Condition]:
    match expr:
        case Call("like", (Col() as col, Lit(value=str() as pattern)), params=params):
            yield from _prefixed(col, pattern, params)
        case _ if (found := condition(expr)) is not None:
            yield found


def _prefixed(col: Col, pattern: str, params: Sequence[object]) -> Iterable[Condition]:
    """What a text that is LIKE the pattern must be: at least what stands before its first wildcard,
    and below the next text that does not begin so."""
    parts = tokens(pattern, str(params[0]) if params and params[0] is not None else None)
    if parts and isinstance(parts[0], str):
        yield Condition(col.index, "ge", (parts[0],))
        begin = parts[0].rstrip(LAST)
        if begin:
            after = ord(begin[-1]) + 1
            last = chr(after if after not in SURROGATES else SURROGATES.stop)
            yield Condition(col.index, "lt", (begin[:-1] + last,))


def condition(expr: Expr) -> Condition | None:
    """The expression as a condition on one column; None: it is another one."""
    match expr:
        case Call("in", (Col() as col, *values)):
            known = [v for v in values if isinstance(v, Lit) and v.value is not None]
            if len(known) == len(values) and _plain(col, known):
                return Condition(col.index, "in", tuple(v.value for v in known))
        case Call(op, (Col() as col, Lit() as lit)) if (
            op in OPS and op != "in" and _plain(col, [lit])
        ):
            return Condition(col.index, op, (lit.value,))
        case Call(op, (Lit() as lit, Col() as col)) if (
            op in OPS and op != "in" and _plain(col, [lit])
        ):
            return Condition(col.index, OPS[op], (lit.value,))
    return None


def _plain(col: Col, values: Sequence[Lit]) -> bool:
    return col.type.kind in COMPARED and all(
        v.type == col.type and v.value is not None for v in values
    )


# ---------------------------------------------------------------- columns


def _columns(node: lp.Node, wanted: Iterable[int]) -> Iterable[tuple[int, set[int]]]:
    """Of each stream leaf the columns that are looked at, if those of the node are."""
    want = set(wanted)
    match node:
        case lp.StreamScan():
            yield node.leaf, want
        case lp.Select():
            yield from _columns(node.child, want | columns(node.predicate))
        case lp.Project():
            yield from _columns(
                node.child, _read(node.exprs[k] for k in want) | _read(filter(can_fail, node.exprs))
            )
        case lp.Window():
            yield from _columns(node.child, want | windows.reads(node.spec))
        case lp.Sort():
            yield from _columns(
                node.child, want | _read(e for e, _, _ in node.keys) | set(range(len(node.schema)))
            )
        case lp.Output():
            yield from _columns(node.child, want)
        case lp.GroupBy():
            parts = [e for a in node.aggs for e in (*a.args, a.filter) if e is not None]
            yield from _columns(node.child, _read(node.keys) | _read(parts))
        case lp.Join():
            yield from _pair(node.left, node.right, node.keys, node.residual, want)
        case lp.SemiJoin():
            yield from _pair(node.left, node.right, node.keys, node.residual, want)
        case _:  # by value, or not looked into
            for child in lp.children(node):
                yield from _columns(child, range(len(child.schema)))


def _pair(
    left: lp.Node,
    right: lp.Node,
    keys: Sequence[tuple[Expr, Expr]],
    residual: Expr | None,
    want: set[int],
) -> Iterable[tuple[int, set[int]]]:
    both = want | (set() if residual is None else columns(residual))
    n = len(left.schema)
    yield from _columns(left, {k for k in both if k < n} | _read(a for a, _ in keys))
    yield from _columns(right, {k - n for k in both if k >= n} | _read(b for _, b in keys))


def _read(exprs: Iterable[Expr]) -> set[int]:
    return {k for e in exprs for k in columns(e)}
