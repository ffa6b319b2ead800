"""Random queries as text, over every construct that runs continuously.

What may stand with what follows the rules of the language (no DISTINCT or negation over INTERNAL
windows, no window over a result that loses rows, ...), so that nearly every query binds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dsms.sql.types import BOOL, DATE, FLOAT, INT, STRING, TIME, TIMESTAMP, UUID, Type
from tests.generate.aggregates import aggregate
from tests.generate.draws import Draws
from tests.generate.exprs import Column, Scope, columns, condition, scalar
from tests.generate.windows import Kinds, Mode, lasting, over_keys, window
from tests.generate.world import MONEY, Source, World

TYPES: tuple[Type, ...] = (INT, STRING, INT, FLOAT, BOOL, MONEY, TIMESTAMP, DATE, TIME, UUID)


@dataclass(slots=True)
class From:
    """A FROM clause under way: its text, its columns, conditions that join its items, and what is
    in it."""

    text: str = ""
    scope: Scope = field(default_factory=list)
    where: list[str] = field(default_factory=list)
    streams: int = 0
    ordered: bool = True  # rows have one order of arrival that aggregates can go by


class Queries:
    """Makes the text of one query."""

    def __init__(self, d: Draws, world: World, windows: Kinds = "any") -> None:
        """`windows`: of any kind; such as one-time queries can be asked where all rows are kept,
        and none over results; or such that few rows live at a time.  `entered`: the first FROM item
        is to be an Istream."""
        self.d, self.world, self.windows, self.entered = d, world, windows, False
        self.dating = False  # streams may have an ASOF JOIN behind them
        self.merging = False  # the next FROM item is to be a UNION ALL of streams

    # ------------------------------------------------------------ windows

    def window(self, mode: Mode, first: bool = True, inner: str | None = None) -> str:
        """The text in brackets, with a leading space; may be empty (unbounded)."""
        if mode.kind == "mixed" and first:
            return f" [{self._range(mode)}]"
        inner = self._window(mode) if inner is None else inner
        if mode.kind in ("external", "wstream"):
            return f" [{inner}]" if inner else ""
        return f" [{inner or 'RANGE UNBOUNDED'} INTERNAL]"

    def _window(self, mode: Mode) -> str:
        """What stands in brackets; may be empty."""
        return window(self.d, self.windows, mode)

    def _over_keys(self) -> str:
        """A window that a stream with KEY may have."""
        return over_keys(self.d, self.windows)

    def _range(self, mode: Mode) -> str:
        return f"RANGE {self.d.number(2, 15)} SECONDS"

    # ------------------------------------------------------------ FROM

    def stream(self, mode: Mode, first: bool = True, inner: str | None = None) -> tuple[str, Scope]:
        """`inner`: the window, if it is not to be drawn."""
        streams = self.world.of("stream")
        if not mode.plain or inner == "":
            streams = [s for s in streams if not s.keyed]
        source = self.d.pick(streams)
        alias = self.d.name()
        if source.keyed and inner is None:
            inner = self._over_keys()
        elif inner is None and self.d.chance(9):
            if self.d.chance(30):
                return self._valid_until(source, alias, mode, first)
            inner = lasting(self.d)
        text = f"{source.name}{self.window(mode, first, inner)} AS {alias}"
        return f"{text}{self._sample(alias)}", _scope(source, alias)

    def _valid_until(
        self, source: Source, alias: str, mode: Mode, first: bool
    ) -> tuple[str, Scope]:
        end = self.d.pick((2, 5))
        rows = f"(SELECT *, ts + x * INTERVAL '{end}' SECOND AS e FROM {source.name})"
        text = f"{rows}{self.window(mode, first, 'VALID UNTIL e')} AS {alias}"
        return text, _scope(source, alias)

    def _sample(self, alias: str) -> str:
        if not self.d.chance(4):
            return ""
        by = self.d.pick(("", f" BY {alias}.k", f" BY ({alias}.k, {alias}.ts)"))
        return f" SAMPLE {self.d.pick((50, 62.5, 80))} PERCENT{by}"

    def item(self, mode: Mode, depth: int, first: bool) -> tuple[str, Scope, bool]:
        """A FROM item that is no table: (text, columns, do its rows come in one order of
        arrival?)."""
        if self.entered and depth > 0 and mode.plain:
            self.entered = False
            return self.entries(depth)
        if self.merging and mode.plain:
            self.merging = False
            return self.merged()
        if self.dating and mode.plain and self.d.chance(8):
            return self.matched()
        if depth <= 0 or not mode.plain or self.d.chance(75):
            text, scope = self.stream(mode, first)
            return text, scope, True
        return self.nested(depth)

    def nested(self, depth: int) -> tuple[str, Scope, bool]:
        d, alias = self.d, self.d.name()
        types = [INT, *(d.pick(TYPES) for _ in range(d.number(0, 2)))]
        if self.dating and d.chance(25):
            return self.valued(types)
        if d.chance(15) and self.windows == "any":
            return self.entries(depth)
        if d.chance(40) and self.windows == "any":  # an append-only result with a window of its own
            inner = self.block(types, 0, Mode("internal"), may_lose=False)
            text = f"({inner}) {over_result(self.window(Mode()))}"
        else:
            text = f"({self.body(types, depth - 1)}{self.first(types)})"
        return (
            f"{text} AS {alias}",
            [Column(f"{alias}.c{i}", t) for i, t in enumerate(types)],
            False,
        )

    def valued(self, types: list[Type]) -> tuple[str, Scope, bool]:
        """A stream with values OVER the rows up to each row; a window that reaches up to now."""
        d, n = self.d, self.d.number(1, 8)
        inner = d.pick((f"RANGE {n} SECONDS", "NOW"))
        if self.windows == "any" and d.chance(50):
            inner = d.pick((f"ROWS {n}", f"PARTITION BY k ROWS {n}", "SINCE 4s", ""))
        text, scope = self.stream(Mode("wstream"), inner=inner)  # none with KEY
        key = next(c.text for c in scope if c.text.endswith(".k"))
        by = "" if "PARTITION" not in inner and d.chance(30) else f"PARTITION BY {key}"
        frame = d.pick(("", "", f"ROWS {n % 3} PRECEDING", f"RANGE {n} SECONDS PRECEDING"))
        calls = [self._valued(scope, t, f"{by} {frame}", by) for t in types]
        where = _where([condition(d, scope)] if d.chance(30) else [])
        listed, alias = ", ".join(f"{call} AS c{i}" for i, call in enumerate(calls)), d.name()
        found = [Column(f"{alias}.c{i}", t) for i, t in enumerate(types)]
        return f"(SELECT {listed} FROM {text}{where}) AS {alias}", found, False

    def _valued(self, scope: Scope, type_: Type, over: str, by: str) -> str:
        d, x = self.d, scalar(self.d, scope, type_)
        if type_ == INT and d.chance(50):
            fn = d.pick(("COUNT(*)", f"SUM({d.pick(columns(scope, INT))})", "ROW_NUMBER()"))
            return f"{fn} OVER ({by if fn == 'ROW_NUMBER()' else over})"
        if d.chance(40):
            return f"LAG({x}, {d.number(0, 2)}) OVER ({by})"
        return f"{d.pick(('MIN', 'MAX', 'FIRST', 'LAST'))}({x}) OVER ({over})"

    def first(self, types: list[Type], share: int = 25) -> str:
        """At times ORDER BY ... LIMIT n PER columns of the select list."""
        d = self.d
        if not d.chance(share):
            return ""
        order = [f"{n}{d.pick(('', ' DESC', ' NULLS FIRST'))}" for n in self._columns(types, 1)]
        per = d.pick(("", " PER ()", f" PER {', '.join(self._columns(types, 1))}"))
        return f" ORDER BY {', '.join(order)} LIMIT {d.pick((0, 1, 2, 3, 1000))}{per}"

    def _columns(self, types: list[Type], least: int) -> list[str]:
        """Some of the columns of a select list."""
        places = [self.d.number(0, len(types) - 1) for _ in range(self.d.number(least, 2))]
        return [f"c{place}" for place in dict.fromkeys(places)]

    def merged(self) -> tuple[str, Scope, bool]:
        """UNION ALL of streams, mostly through windows of one length: so a queue may be enough for
        all of their rows."""
        d, alias, parts = self.d, self.d.name(), list[str]()
        types = [INT, d.pick(TYPES)]
        above = self.window(Mode(), True, self._range(Mode())) if d.chance(25) else ""
        alike = "" if above else self._range(Mode()) if d.chance(75) else None
        for k in range(d.pick((2, 2, 3))):
            text, scope = self.stream(Mode(), k == 0, alike)
            items = ", ".join(f"{scalar(d, scope, t)} AS c{i}" for i, t in enumerate(types))
            parts.append(f"SELECT {items} FROM {text}")
        columns = [Column(f"{alias}.c{i}", t) for i, t in enumerate(types)]
        return f"({' UNION ALL '.join(parts)}){above} AS {alias}", columns, False

    def matched(self) -> tuple[str, Scope, bool]:
        """Rows of streams one after the other, which conditions of WHERE may compare."""
        d, steps, scope = self.d, list[str](), list[Column]()
        streams = [s for s in self.world.of("stream") if not s.keyed]
        for _ in range(d.pick((2, 2, 3))):
            source, alias = d.pick(streams), d.name()
            steps.append(f"{alias} {source.name}")
            scope += _scope(source, alias)
        if d.chance(30):
            steps.insert(1, f"NOT {d.name()} {d.pick(streams).name}")
        per, skip = d.pick(("", " PER k", " PER k")), d.pick(("", "", " SKIP PAST LAST"))
        return f"MATCH ({', '.join(steps)}) [{self._range(Mode())}]{per}{skip}", scope, False

    def entries(self, depth: int) -> tuple[str, Scope, bool]:
        """Istream in FROM, over anything, at times with a window."""
        d, alias = self.d, self.d.name()
        types = [INT, *(d.pick(TYPES) for _ in range(d.number(0, 1)))]
        window = over_result(self.window(Mode())) if d.chance(50) else ""
        text = f"({self.body(types, depth - 1, 'Istream')}){window} AS {alias}"
        return text, [Column(f"{alias}.c{i}", t) for i, t in enumerate(types)], False

    def from_(self, mode: Mode, depth: int) -> From:
        d, out = self.d, From()
        count = d.pick((1, 1, 2, 2, 3)) if depth > 0 or not mode.plain else d.pick((1, 1, 2))
        out.text, out.scope, out.ordered = self.item(mode, depth, True)
        plain = mode.plain and not out.text.startswith("(") and "UNTIL" not in out.text
        if self.dating and plain and d.chance(20):
            self._asof(out)
        for _ in range(count - 1):
            text, scope, ordered = self.item(mode, depth - 1, False)
            self._join(out, mode, text, scope)
            out.ordered = out.ordered and ordered
        if d.chance(8):
            self._unnest(out)
        for table in (t for t in self.world.sources if t.kind != "stream"):
            if d.chance(30) and (mode.kind == "external" or table.kind == "nrr"):
                alias = d.name()
                self._join(out, mode, f"{table.name} AS {alias}", _scope(table, alias), table.kind)
        return out

    def _unnest(self, out: From) -> None:
        """The items of a list of each row: of two columns, or none, or NULL."""
        d, alias = self.d, self.d.name()
        a, b = d.pick(columns(out.scope, INT)), d.pick(columns(out.scope, INT))
        made = d.pick(
            (f"[{a}, {b}]", f"CASE WHEN {a} > 1 THEN [{b}, {b}] WHEN {a} = 1 THEN [] END")
        )
        kind, on = d.pick((("CROSS", ""), ("CROSS", ""), ("LEFT", " ON TRUE")))
        item = f"UNNEST({made}) WITH ORDINALITY AS {alias} (v, n)"
        out.text = f"{out.text} {kind} JOIN {item}{on}"
        out.scope = [*out.scope, Column(f"{alias}.v", INT), Column(f"{alias}.n", INT)]
        out.ordered = False

    def _asof(self, out: From) -> None:
        d, alias = self.d, self.d.name()
        source = d.pick([s for s in self.world.of("stream") if not s.keyed])
        scope = _scope(source, alias)
        keys = f"{d.pick(columns(out.scope, INT))} = {d.pick(columns(scope, INT))}"
        kind, within = d.pick(("ASOF", "ASOF LEFT")), d.pick(("", "", " WITHIN 3 s"))
        out.text += f" {kind} JOIN {source.name} AS {alias} ON {keys}{within}"
        out.scope = out.scope + scope

    def _join(self, out: From, mode: Mode, text: str, scope: Scope, kind: str = "stream") -> None:
        d = self.d
        on = self._join_condition(out.scope, scope)
        outer = mode.plain and d.chance(30)
        if outer and on:
            side = d.pick(("LEFT", "LEFT", "RIGHT", "FULL")) if kind != "nrr" else "LEFT"
            out.text += f" {side} JOIN {text} ON {on}"
        elif on and d.chance(50):
            out.text += f" JOIN {text} ON {on}"
        else:
            out.text = f"{out.text} CROSS JOIN {text}"
            out.where += [on] if on else []
        out.scope = out.scope + scope

    def _join_condition(self, left: Scope, right: Scope) -> str:
        """Equalities of INT columns mostly, with a second comparison at times; rarely none."""
        d = self.d
        if d.chance(7):
            return ""
        a, b = columns(left, INT), columns(right, INT)
        if d.chance(7):
            return f"({d.pick(a)} = {d.pick(b)} OR {d.pick(a)} = {d.pick(b)})"
        parts = []
        if d.chance(90):
            parts.append(f"{d.pick(a)} = {d.pick(b)}")
        if not parts or d.chance(20):
            parts.append(f"{d.pick(a)} {d.pick(('<', '>=', '<>'))} {d.pick(b)}")
        return " AND ".join(parts)

    # ------------------------------------------------------------ WHERE

    def where(self, found: From, mode: Mode, depth: int) -> str:
        parts = list(found.where)
        if self.d.chance(20):
            parts.append(condition(self.d, found.scope))
        if self.d.chance(18):
            parts.append(self.test(found.scope, mode, depth))
        if mode.plain and self.d.chance(8):
            parts.append(self.correlated(found.scope))
        if mode.plain and self.d.chance(6):
            test = self.test(found.scope, mode, depth)
            parts.append(f"({condition(self.d, found.scope)} OR {test})")
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def correlated(self, scope: Scope) -> str:
        """A comparison with an aggregate over the rows that are equal to the row."""
        d, outer = self.d, columns(scope, INT)
        text, names = self._tested(Mode())
        mine = columns(names, INT)
        more = f" AND {condition(d, names)}" if d.chance(25) else ""
        value = d.pick(("COUNT(*)", f"MAX({d.pick(mine)})", f"1 + COUNT({d.pick(mine)})"))
        return (
            f"{d.pick(outer)} {d.pick(('>', '<='))} (SELECT {value} FROM {text}"
            f" WHERE {d.pick(mine)} = {d.pick(outer)}{more})"
        )

    def test(self, scope: Scope, mode: Mode, depth: int) -> str:
        """EXISTS, IN, ANY and ALL, and their negations."""
        d, outer = self.d, columns(scope, INT)
        negated = "NOT " if mode.plain and d.chance(55) else ""
        tables = [
            t for t in self.world.sources if t.kind == "nrr" or (t.kind == "table" and mode.plain)
        ]
        if tables and d.chance(25):
            return self._table_test(d.pick(tables), outer, negated)
        if mode.plain and d.chance(25):
            return f"{d.pick(outer)} {negated}IN ({self.body([INT], 0)})"
        if mode.plain and d.chance(20):
            compared = d.pick(("> ALL", "<= ALL", "= ALL", "< ANY", ">= ANY", "<> ANY"))
            return f"{negated}{d.pick(outer)} {compared} ({self.body([INT], 0)})"
        text, names = self._tested(mode)
        mine = columns(names, INT)
        conditions = [condition(d, names)] if d.chance(25) else []
        if d.chance(50):
            conditions.insert(0, f"{d.pick(mine)} = {d.pick(outer)}")
            if d.chance(15):
                conditions.append(f"{d.pick(mine)} < {d.pick(outer)}")
            return f"{negated}EXISTS (SELECT * FROM {text}{_where(conditions)})"
        return (
            f"{d.pick(outer)} {negated}IN (SELECT {d.pick(mine)} FROM {text}{_where(conditions)})"
        )

    def _tested(self, mode: Mode) -> tuple[str, Scope]:
        """What EXISTS or IN looks at: a stream, at times a join of two."""
        text, names = self.stream(mode, False)
        if self.d.chance(80):
            return text, names
        more, others = self.stream(mode, False)
        on = f"{self.d.pick(columns(names, INT))} = {self.d.pick(columns(others, INT))}"
        return f"{text} JOIN {more} ON {on}", names + others

    def _table_test(self, table: Source, outer: list[str], negated: str) -> str:
        d, alias = self.d, self.d.name()
        column = "k" if table.kind == "nrr" else d.pick(("k", "y"))
        more = f" AND {alias}.y <> {d.pick(outer)}" if d.chance(25) else ""
        return (
            f"{negated}EXISTS (SELECT * FROM {table.name} AS {alias} WHERE {alias}.{column} = "
            f"{d.pick(outer)}{more})"
        )

    # ------------------------------------------------------------ blocks

    def block(
        self,
        types: list[Type],
        depth: int,
        mode: Mode | None = None,
        may_lose: bool = True,
        output: str = "",
    ) -> str:
        """SELECT ... of columns c0, c1, ... with these types."""
        d, mode = self.d, mode or Mode()
        found = self.from_(mode, depth)
        where = self.where(found, mode, depth)
        grouped = mode.kind != "mixed" and d.chance(40)
        if grouped:
            return self._grouped(types, found, where, output)
        items = ", ".join(f"{scalar(d, found.scope, t)} AS c{i}" for i, t in enumerate(types))
        distinct = "DISTINCT " if mode.plain and may_lose and d.chance(25) else ""
        return f"SELECT {_wrapped(output, distinct + items)} FROM {found.text}{where}"

    def _grouped(self, types: list[Type], found: From, where: str, output: str) -> str:
        """GROUP BY: the first columns of the list are keys, the others aggregates."""
        d = self.d
        keys = d.number(0, min(2, len(types)))
        exprs = [scalar(d, found.scope, t) for t in types[:keys]]
        exprs = [
            e
            if _reads(e, found.scope)
            else d.pick([c.text for c in found.scope if c.type == t] or [""])
            for e, t in zip(exprs, types, strict=False)
        ]
        if "" in exprs:
            exprs = []
        items = exprs + [aggregate(d, found.scope, t, found.ordered) for t in types[len(exprs) :]]
        listed = ", ".join(f"{e} AS c{i}" for i, e in enumerate(items))
        text = f"SELECT {_wrapped(output, listed)} FROM {found.text}{where}"
        if exprs:
            text += f" GROUP BY {', '.join(dict.fromkeys(exprs))}"
        if d.chance(20):
            text += (
                " HAVING "
                f"{d.pick(('COUNT(*) > 1', 'SUM(' + d.pick(columns(found.scope, INT)) + ') > 0'))}"
            )
        return text

    def body(self, types: list[Type], depth: int, output: str = "") -> str:
        """A block or a set operation of two."""
        d = self.d
        if not d.chance(25):
            return self.block(types, depth, output=output)
        op = d.pick(("UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"))
        left, right = self.block(types, depth - 1, output=output), self.block(types, depth - 1)
        if d.chance(15):
            third = f"{d.pick(('UNION ALL', 'EXCEPT', 'INTERSECT'))} {self.block(types, 0)}"
            return (
                f"{left} {op} ({right} {third})" if d.chance(50) else f"{left} {op} {right} {third}"
            )
        return f"{left} {op} {right}"

    def query(self) -> str:
        """A whole query."""
        d = self.d
        types = [d.pick(TYPES) for _ in range(d.number(1, 3))]
        self.merging = d.chance(6)
        kind = d.pick(("Rstream", "Istream", "", "Dstream", "Rstream"))
        style = d.number(0, 99)
        if style < 5:
            return self._starred(kind)
        if style < 78:
            return self.body(types, d.pick((1, 0, 1, 2)), kind) + self.first(types, 7)
        if style < 88:
            mode = Mode(d.pick(("internal", "internal", "mixed")))
            return self.block(types, 0, mode, may_lose=False, output=kind)
        if style < 95:
            return self.block(types, 0, Mode("wstream"), may_lose=False, output="Wstream")
        return self._wstream_sum()

    def _starred(self, kind: str) -> str:
        """SELECT * over JOIN USING, or over a FROM list under a final WINDOW."""
        d = self.d
        streams = [s for s in self.world.of("stream") if not s.keyed]
        a, b = d.pick(streams), d.pick(streams)
        x, y = d.name(), d.name()
        if d.chance(50):
            side = d.pick(("", "LEFT ", "FULL "))
            left, right = (f"[{self._window(Mode()) or 'RANGE UNBOUNDED'}]" for _ in range(2))
            text = f"{a.name} {left} AS {x} {side}JOIN {b.name} {right} AS {y} USING (k)"
            return f"SELECT {_wrapped(kind, '*')} FROM {text}"
        span = d.number(1, 9)
        text = f"{a.name} {x}, {b.name} {y} WHERE {x}.k = {y}.x WINDOW {span} SECONDS"
        return f"SELECT {_wrapped(kind, f'{x}.*')} FROM {text}"

    def _wstream_sum(self) -> str:
        d = self.d
        text, scope = self.stream(Mode("wstream"), True)
        x = d.pick(columns(scope, INT))
        outer, inner = d.pick(("SUM", "MAX", "COUNT")), d.pick(("SUM", "COUNT"))
        return f"SELECT {outer}(Wstream({inner}({x}))[ROWS {d.number(1, 4)}]) AS c0 FROM {text}"


def over_result(window: str) -> str:
    """The window over a subquery, whose first column is c0."""
    return re.sub(r"\bk\b", "c0", window)


def _scope(source: Source, alias: str) -> Scope:
    stamp = [("ts", TIMESTAMP)] if source.kind == "stream" else []
    return [Column(f"{alias}.{n}", t) for n, t in (*source.columns, *stamp)]


def _reads(text: str, scope: Scope) -> bool:
    return any(c.text in text for c in scope)


def _where(conditions: list[str]) -> str:
    return " WHERE " + " AND ".join(conditions) if conditions else ""


def _wrapped(output: str, items: str) -> str:
    if output == "Wstream":
        return f"Wstream({items})[ROWS 3]"
    return f"{output}({items})" if output else items
