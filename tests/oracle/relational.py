"""The bound logical plan, read as plain relational algebra over the windows' contents at one
instant.

Nested loops over lists; nothing is kept between instants but the answers themselves, which say what
is older than what (rows of Append, rows without parts, the instant at which a row entered).  Golab
2006, Definitions 2.1 and 3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dsms.sql import logical as lp
from dsms.sql.expr import Expr
from dsms.sql.types import ALWAYS
from dsms.sql.window import Lasting, Session, When
from tests.oracle.aggregates import aggregate
from tests.oracle.episodes import at_close
from tests.oracle.facts import Change, Fact, Row, by_columns, changed, in_order, net, settle, since
from tests.oracle.keys import (
    Key,
    blank,
    branch,
    by_value,
    entered,
    first_leaf,
    merged,
    numbered,
    placed,
    timed,
)
from tests.oracle.lists import unpacked
from tests.oracle.over import over
from tests.oracle.patterns import matches, silences, unskipped
from tests.oracle.scalar import evaluate
from tests.oracle.slides import Beats
from tests.oracle.values import canons, order_key
from tests.oracle.windows import content


@dataclass
class Evaluator:
    """Answers of every node of one plan at every instant of `instants` (ascending, ALWAYS first).

    `beats`: the boundaries of a periodic query, as far as they matter inside of it
    (`tests.oracle.slides`).  `real`: the instant of each of `instants`, where these are points
    (`tests.oracle.points`).  `ages`: of streams whose rows who asks sees when they are so old; a
    row of theirs is there from then on, and is of its own timestamp."""

    instants: Sequence[int]
    streams: Mapping[str, Sequence[Row]]
    tables: Mapping[str, Sequence[Change]]
    known: dict[int, int] = field(default_factory=dict)  # instants already answered, by node
    # how many results an Append has had
    appended: dict[tuple[int, int], int] = field(default_factory=dict)
    memo: dict[tuple[int, int], list[Fact]] = field(default_factory=dict)
    # of Dstream in FROM: keys taken over from rows that others stand in for, by node
    places: dict[int, dict] = field(default_factory=dict)
    nodes: dict[int, lp.Node] = field(default_factory=dict)
    beats: Beats = field(default_factory=Beats)
    real: Callable[[int], int] = int
    ages: Mapping[str, int] = field(default_factory=dict)

    def at(self, node: lp.Node, step: int) -> list[Fact]:
        """The answer of `node` at instant number `step`; none before the first."""
        if step < 0:
            return []
        key = (id(node), step)
        if key not in self.memo:
            # ascending, so that recursion stays shallow
            for earlier in range(self.known.get(id(node), 0), step):
                self.at(node, earlier)
            self.known[id(node)] = step + 1
            self.nodes[id(node)] = node
            self.memo[key] = self._with_history(node, step)
        return self.memo[key]

    def _with_history(self, node: lp.Node, step: int) -> list[Fact]:
        now, before = self.instants[step], self.at(node, step - 1)
        fresh = self._answer(node, step)
        match node:
            case lp.GroupBy() if at_close(node.child):
                return [
                    replace(f, ident=("episode", now, n), birth=now, ts=now)
                    for n, f in enumerate(fresh)
                ]
            case lp.GroupBy() | lp.Distinct() if timed(node):
                return settle(
                    before, [replace(f, key=(*f.key, entered(node, now))) for f in fresh], now
                )
            case lp.GroupBy() | lp.Distinct() | lp.SetOp():
                return settle(before, fresh, now)
            case lp.StreamScan():
                return fresh
            case _:
                return since(before, fresh, now)

    def _answer(self, node: lp.Node, step: int) -> list[Fact]:
        now = self.instants[step]
        match node:
            case lp.StreamScan():
                age = self.ages.get(node.stream.name, 0)
                return [f for f in self._scan(node) if f.ts + age <= now]
            case lp.TableScan():
                return self.table(node, now)
            case lp.Values():
                return [_row(_values(row, ()), ALWAYS, -1, i) for i, row in enumerate(node.rows)]
            case lp.Window():
                return self._window(node, step)
            case lp.Append():
                return self._append(node, step)
            case lp.JoinNRR():
                return self._join_nrr(node, step)
            case lp.AsofJoin():
                return self._asof_join(node, step)
            case lp.Match(skip=True):
                ever = [self._ever(child, step) for child in node.inputs]
                return unskipped(node, ever, self.at(node.inputs[0], step), self.instants[step])
            case lp.Match() if node.kinds[-1] == "none":
                ever = [self._ever(child, step) for child in node.inputs]
                return silences(node, ever, self.instants[step])
            case lp.Match():
                return matches(node, [self.at(child, step) for child in node.inputs])
            case lp.Over():
                return over(node, self.at(node.child, step), self.real)
            case lp.Union():
                return [
                    replace(f, ident=("branch", i, f.ident), key=branch(node, i, f.key))
                    for i, child in enumerate(node.inputs)
                    for f in self.at(child, step)
                ]
            case lp.Join() | lp.SemiJoin() | lp.SetOp():
                return _BINARY[type(node)](
                    node, self.at(node.left, step), self.at(node.right, step)
                )
            case lp.MultiJoin():
                raise AssertionError("the oracle has made joins of two of it")
            case _:
                return _UNARY[type(node)](node, self.at(node.child, step))

    def _ever(self, node: lp.Node, step: int) -> list[Fact]:
        """All rows that have been in an answer so far."""
        return list({f.ident: f for s in range(step + 1) for f in self.at(node, s)}.values())

    def _scan(self, node: lp.StreamScan) -> list[Fact]:
        """All rows of a stream, each born at its timestamp."""
        key = (id(node), -1)
        if key not in self.memo:
            rows = self.streams.get(node.stream.name, ())
            self.memo[key] = [
                replace(_row(r.values, r.ts, node.leaf, r.arrival), birth=r.ts) for r in rows
            ]
        return self.memo[key]

    def table(self, node: lp.TableScan, now: int) -> list[Fact]:
        """The rows of a table as of an instant, that instant's changes included."""
        live: dict[int, Change] = {}
        for change in self.tables.get(node.table.name, ()):
            if change.at <= now and change.kind == "insert":
                live[change.version] = change
            elif change.at <= now:
                del live[change.version]
        return [_row(c.values, c.at, node.leaf, v) for v, c in live.items()]

    def _window(self, node: lp.Window, step: int) -> list[Fact]:
        now = self.instants[step]
        rows = self.at(node.child, step)
        if isinstance(node.spec, Session | When):
            rows = [replace(f, birth=f.birth + self._age(node.child)) for f in rows]
        if isinstance(node.spec, Lasting) and not isinstance(node.child, lp.StreamScan):
            # a row seen late leaves when it does for everybody
            rows = [replace(f, birth=f.birth - self._age(node.child)) for f in rows]
        inside = content(node.spec, rows, now, self.beats.start(node.spec, now), self.real)
        if node.spec.internal:
            return inside
        return [replace(f, held=f.held | {(id(node), f.ident)}) for f in inside]

    def _age(self, node: lp.Node) -> int:
        """How much later rows of a stream are seen; episodes are of rows as they are seen."""
        while isinstance(node, lp.Select | lp.Project):
            node = node.child
        return self.ages.get(node.stream.name, 0) if isinstance(node, lp.StreamScan) else 0

    def _append(self, node: lp.Append, step: int) -> list[Fact]:
        """Everything that ever entered; with serial numbers, as if it were a stream."""
        now, before = self.instants[step], self.at(node, step - 1)
        come = self._come(node, node.child, step)
        first = self.appended.get((id(node), step - 1), 0)
        self.appended[id(node), step] = first + len(come)
        leaf = first_leaf(node)
        new = [
            replace(f, ident=(n,), key=numbered(leaf, n), ts=now) for n, f in enumerate(come, first)
        ]
        return [f for f in before + new if not node.mixed or self._held(f, step)]

    def _come(self, node: lp.Append, child: lp.Node, step: int) -> list[Fact]:
        """What a block appends at an instant: what enters its answer; with a SLIDE what it answers
        at a boundary; of episodes that end its answer then."""
        if at_close(child):
            return in_order(self.at(child, step))
        if not node.mixed and (within := self.beats.within(child)) is not None:
            return self._come_at_boundary(node, child, step, within)
        left, entered = changed(self.at(child, step - 1), self.at(child, step))
        if node.departures:
            return self._gone(node, child, left, entered)
        return in_order(net(left, entered)[1] if by_value(child) else entered)

    def _gone(
        self, node: lp.Append, child: lp.Node, left: list[Fact], entered: list[Fact]
    ) -> list[Fact]:
        """What leaves at an instant; by value, a row has the place of the one that it stands in
        for."""
        places = self.places.setdefault(id(node), {})
        came = {f.ident: (f.birth, f.key) for f in left}
        left = [replace(f, key=places.pop(f.ident, f.key)) for f in left]
        if by_value(child):
            left, _, taken = net(left, entered)
            places |= taken
        return sorted(left, key=lambda f: (f.key, came[f.ident]))

    def _come_at_boundary(
        self, node: lp.Append, child: lp.Node, step: int, within: frozenset[int]
    ) -> list[Fact]:
        """Of rows without parts the whole answer (with Istream what is new by value), of others
        what is new since the boundary before."""
        if self.instants[step] + 1 not in within:
            return []
        rows = self.at(child, step)
        if by_value(child) and not node.entries and not node.departures:
            return by_columns(rows)
        earlier = (s for s in range(step - 1, -1, -1) if self.instants[s] + 1 in within)
        before = self.at(child, next(earlier, -1))
        if node.departures:
            rows, before = before, rows
        if by_value(child):
            return by_columns(net(before, rows)[1])
        return in_order(changed(before, rows)[1])

    def _held(self, fact: Fact, step: int) -> bool:
        """Is every external window row that it rests on still there?"""
        return all(
            any(f.ident == ident for f in self.at(self.nodes[w], step)) for w, ident in fact.held
        )

    def _join_nrr(self, node: lp.JoinNRR, step: int) -> list[Fact]:
        out = []
        for row in self.at(node.child, step):
            match = _matcher(node.keys, node.residual, row.values)
            at = row.ts if _stamped(node.child) else row.birth
            partners = [t for t in self.table(node.table, at) if match(t.values) is True]
            if node.kind == "left" and not partners:
                partners = [_padding(node.table)]
            out += [replace(_pair(row, t), ts=row.ts) for t in partners]
        return out

    def _asof_join(self, node: lp.AsofJoin, step: int) -> list[Fact]:
        """Each left row with the last of the right rows, by (timestamp, arrival), that have equal
        keys and were there at its own timestamp: with `after` earlier, with `span` less old."""
        out = []
        right = self.at(node.right, step)
        for row in self.at(node.left, step):
            match = _matcher(node.keys, None, row.values)
            known = [
                r
                for r in right
                if match(r.values) is True
                and (r.ts < row.ts if node.after is not None else r.ts <= row.ts)
                and (node.span is None or row.ts - r.ts < node.span)
            ]
            partners = [max(known, key=lambda r: (r.ts, r.key))] if known else []
            if node.kind == "left" and not partners:
                partners = [_padding(node.right)]
            out += [replace(_pair(row, r), ts=row.ts) for r in partners]
        return out


def _stamped(node: lp.Node) -> bool:
    """Has each row a timestamp of its own, with which it comes only once?  A non-retroactive table
    is read as of that."""
    match node:
        case lp.StreamScan() | lp.TableScan() | lp.Append():
            return True
        case lp.Join() if node.kind != "inner":
            return False
        case (
            lp.Window()
            | lp.Select()
            | lp.Project()
            | lp.Union()
            | lp.JoinNRR()
            | lp.AsofJoin()
            | lp.Match()
            | lp.Unnest()
            | lp.Over()
            | lp.Join()
            | lp.Answer()
        ):
            return all(map(_stamped, lp.children(node)))
        case _:
            return False


# ---------------------------------------------------------------- nodes that need no history


def _row(values: tuple, ts: int, leaf: int, number: int) -> Fact:
    return Fact(values, (number,), numbered(leaf, number), ts)


def _values(exprs: tuple[Expr, ...], row: tuple) -> tuple:
    return tuple(evaluate(e, row) for e in exprs)


def _select(node: lp.Select, rows: list[Fact]) -> list[Fact]:
    return [f for f in rows if evaluate(node.predicate, f.values) is True]


def _project(node: lp.Project, rows: list[Fact]) -> list[Fact]:
    return [replace(f, values=_values(node.exprs, f.values)) for f in rows]


def _unnest(node: lp.Unnest, rows: list[Fact]) -> list[Fact]:
    """Each row once for each item of its list; a LEFT JOIN keeps those that have none, too."""
    out = []
    for fact in rows:
        text = evaluate(node.items, fact.values)
        items = [] if text is None else unpacked(text, node.items.type)
        numbered_ = list(enumerate(items, 1))
        if node.kind == "left" and not items:
            numbered_ = [(0, None)]
        for n, item in numbered_:
            more = (item, n or None) if node.ordinality else (item,)
            ident, key = ("item", n, fact.ident), placed(node, fact.key, n)
            out.append(replace(fact, values=fact.values + more, ident=ident, key=key))
    return out


def _group(node: lp.GroupBy, rows: list[Fact]) -> list[Fact]:
    always = not node.keys and not at_close(node.child)
    groups: dict[tuple, list[Fact]] = {(): []} if always else {}
    for fact in sorted(rows, key=Fact.age):
        groups.setdefault(canons(_values(node.keys, fact.values)), []).append(fact)
    return [_group_row(node, members) for members in groups.values()]


def _group_row(node: lp.GroupBy, members: list[Fact]) -> Fact:
    values = [f.values for f in members]
    keys = _values(node.keys, values[0]) if node.keys else ()
    answers = tuple(aggregate(call, values) for call in node.aggs)
    first = members[0] if members else None
    key = first.key if first else blank(node.child)
    held = frozenset().union(*(f.held for f in members))
    return Fact(keys + answers, (), key, first.ts if first else ALWAYS, held=held)


def _by_value(rows: list[Fact]) -> dict[tuple, list[Fact]]:
    """Rows by value, the oldest of each first."""
    groups: dict[tuple, list[Fact]] = {}
    for fact in sorted(rows, key=Fact.age):
        groups.setdefault(canons(fact.values), []).append(fact)
    return groups


def _distinct(node: lp.Distinct, rows: list[Fact]) -> list[Fact]:
    return [same[0] for same in _by_value(rows).values()]


def _set_op(node: lp.SetOp, left: list[Fact], right: list[Fact]) -> list[Fact]:
    """EXCEPT ALL leaves v1 - v2 of a value (Golab 2006, §2.2.2, Equation 13), INTERSECT ALL the
    smaller number."""
    leaf = first_leaf(node)
    other = {value: len(rows) for value, rows in _by_value(right).items()}
    out: list[Fact] = []
    for value, rows in _by_value(left).items():
        mine, theirs = len(rows), other.get(value, 0)
        if not node.all:
            mine, theirs = 1, min(theirs, 1)
        copies = max(0, mine - theirs) if node.op == "except" else min(mine, theirs)
        out += [replace(rows[0], key=(*rows[0].key, (True, leaf, n))) for n in range(copies)]
    return out


def _matcher(keys: tuple, residual: Expr | None, left: tuple) -> Callable[[tuple], bool | None]:
    """For one left row: does a right row match?  True, False or unknown (None)."""
    mine = [evaluate(k, left) for k, _ in keys]

    def match(right: tuple) -> bool | None:
        theirs = [evaluate(k, right) for _, k in keys]
        verdicts: list[bool | None] = [
            None if a is None or b is None else canons((a,)) == canons((b,))
            for a, b in zip(mine, theirs, strict=True)
        ]
        if False not in verdicts and residual is not None:
            verdicts.append(evaluate(residual, left + right))
        return False if False in verdicts else None if None in verdicts else True

    return match


def _pair(a: Fact, b: Fact) -> Fact:
    ident, key = ("pair", a.ident, b.ident), merged(a.key, b.key)
    return Fact(a.values + b.values, ident, key, max(a.ts, b.ts), 0, a.held | b.held)


def _padding(node: lp.Node) -> Fact:
    return Fact((None,) * len(node.schema), ("padded",), blank(node), ALWAYS)


def _join(node: lp.Join, left: list[Fact], right: list[Fact]) -> list[Fact]:
    out: list[Fact] = []
    matched: set = set()
    for a in left:
        match = _matcher(node.keys, node.residual, a.values)
        partners = [b for b in right if match(b.values) is True]
        out += [_pair(a, b) for b in partners]
        matched.update(b.ident for b in partners)
        if not partners and node.kind in ("left", "full"):
            out.append(_pair(a, _padding(node.right)))
    if node.kind in ("right", "full"):
        none = _padding(node.left)
        out += [_pair(none, b) for b in right if b.ident not in matched]
    return out


def _semi_join(node: lp.SemiJoin, left: list[Fact], right: list[Fact]) -> list[Fact]:
    out = []
    for a in left:
        match = _matcher(node.keys, node.residual, a.values)
        verdicts = [match(b.values) for b in right]
        found = True in verdicts or (node.anti and node.null_aware and None in verdicts)
        if found is not node.anti:
            out.append(a)
    return out


def sort_rows(node: lp.Sort, rows: list[Fact]) -> list[Fact]:
    """ORDER BY (ties by all columns from the left), then OFFSET and LIMIT."""
    ordered = by_columns(in_order(rows))
    for expr, descending, nulls_first in reversed(node.keys):
        ordered.sort(key=lambda f: order_key(evaluate(expr, f.values), descending, nulls_first))
    end = None if node.limit is None else node.offset + node.limit
    return ordered[node.offset : end]


def _first(node: lp.TopN, rows: list[Fact]) -> list[Fact]:
    """Of each key the rows before which less than `limit` stand: by the keys of ORDER BY; where
    they are equal, rows without parts by all columns from the left; then as they arrived."""
    groups: dict[tuple, list[Fact]] = {}
    ranked = by_columns(in_order(rows)) if by_value(node.child) else sorted(rows, key=_arrived)
    for expr, descending, nulls_first in reversed(node.keys):
        ranked.sort(key=lambda f: order_key(evaluate(expr, f.values), descending, nulls_first))
    for fact in ranked:
        groups.setdefault(canons(_values(node.by, fact.values)), []).append(fact)
    return [fact for same in groups.values() for fact in same[: node.limit]]


def _arrived(fact: Fact) -> Key:
    return fact.key


_UNARY: dict[type, Callable] = {
    lp.Select: _select,
    lp.Project: _project,
    lp.Unnest: _unnest,
    lp.GroupBy: _group,
    lp.Distinct: _distinct,
    lp.Sort: sort_rows,
    lp.TopN: _first,
    lp.Answer: lambda node, rows: rows,
}
_BINARY: dict[type, Callable] = {lp.Join: _join, lp.SemiJoin: _semi_join, lp.SetOp: _set_op}
