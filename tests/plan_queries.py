"""Random queries that give rewrite rules something to do: joins of three, EXISTS, DISTINCT inside,
set operations."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from dsms.sql.types import INT
from tests.generate.draws import Draws
from tests.generate.inputs import given
from tests.generate.stories import story_of
from tests.generate.world import Source, World
from tests.stories.model import Story

WINDOWS = ("[RANGE 6 SECONDS]", "[RANGE 3 SECONDS]", "[ROWS 2]", "[NOW]", "",
           "[PARTITION BY k ROWS 1]",
           "[RANGE 6 SECONDS UNTIL 2 SECONDS AGO]", "[RANGE 6 SECONDS]")  # a long list  # fmt: skip
TESTS = ("{0}.k = 1", "{0}.x > 0", "{0}.x IS NULL", "{0}.k <> 2", "{0}.x = 1 OR {0}.k = 0",
         "{0}.k IN (0, 1)",
         "TRUE AND {0}.x >= 0", "NOT (NOT {0}.k = 1)")  # a long list  # fmt: skip
EQUAL = ("{0}.k = {1}.k", "{0}.k = {1}.x", "{0}.x = {1}.x")
SHAPES = (
    "flat",
    "nested outer",
    "derived",
    "count distinct",
    "except",
    "grouped",
    "union",
    "exists twice",
)

WORLD = World(
    (
        Source("s", (("k", INT), ("x", INT))),
        Source("t", (("k", INT), ("x", INT))),
        Source("u", (("k", INT), ("x", INT))),
        Source("r", (("k", INT), ("y", INT), ("x", INT)), "table"),
        Source("n", (("k", INT), ("y", INT), ("x", INT)), "nrr"),
    )
)


def query(d: Draws) -> str:
    """One query over `WORLD`."""
    return Maker(d).query()


class Maker:
    """Draws one query; `shape` is what stands around a FROM list of two to four items."""

    def __init__(self, d: Draws) -> None:
        self.d = d

    def window(self) -> str:
        return self.d.pick(WINDOWS)

    def test(self, alias: str) -> str:
        return self.d.pick(TESTS).format(alias)

    def equal(self, a: str, b: str) -> str:
        return self.d.pick(EQUAL).format(a, b)

    def exists(self, alias: str) -> str:
        d = self.d
        name, negated = d.name(), d.pick(("NOT ", ""))
        inner = f"FROM {d.pick('stu')} {self.window()} AS {name}"
        more = f" AND {self.test(name)}" if d.chance(30) else ""
        if d.chance(30):
            return f"{alias}.k {negated}IN (SELECT {d.pick(('DISTINCT ', ''))}{name}.x {inner})"
        if d.chance(30):
            compared = d.pick(("> ALL", ">= ANY", "< ALL", "<= ANY", "<> ANY", "= ALL"))
            return f"{negated}{alias}.k {compared} (SELECT {name}.x {inner})"
        return f"{negated}EXISTS (SELECT * {inner} WHERE {self.equal(name, alias)}{more})"

    def conditions(self, aliases: list[str], links: bool = True) -> str:
        """Links between neighbours (or all to the first), tests, EXISTS."""
        d = self.d
        parts = []
        if links:
            star = d.chance(50)
            for i, b in enumerate(aliases[1:]):
                parts.append(self.equal(aliases[0] if star else aliases[i], b))
        parts += [self.test(d.pick(aliases)) for _ in range(d.number(0, 2))]
        if d.chance(35):
            parts.append(self.exists(d.pick(aliases)))
        return " WHERE " + " AND ".join(parts) if parts else ""

    def streams(self, n: int) -> tuple[list[str], list[str]]:
        names = [self.d.name() for _ in range(n)]
        return [f"{self.d.pick('stu')} {self.window()} AS {a}" for a in names], names

    def query(self) -> str:
        d = self.d
        kind = d.pick(("Rstream", "Istream", "Dstream"))
        shape = d.pick(SHAPES)
        items, names = self.streams(d.number(2, 3))
        if d.chance(25):
            items, names = [*items, d.pick(("r AS r1", "n AS r1"))], [*names, "r1"]
        columns = ", ".join(
            f"{a}.{d.pick('kx')} AS c{i}" for i, a in enumerate(names[: d.number(1, 3)])
        )
        flat = f"FROM {', '.join(items)}{self.conditions(names)}"
        match shape:
            case "nested outer":
                return (
                    f"SELECT {kind}({columns}) FROM "
                    f"{self.outer(items, names)}{self.conditions(names, False)}"
                )
            case "derived":
                having = d.pick(("", " WHERE c0 = 1", " WHERE c0 > 0"))
                inner = d.pick((f"SELECT {columns} {flat}", f"SELECT DISTINCT {columns} {flat}"))
                return f"SELECT {kind}(c0) FROM ({inner}) AS q{having}"
            case "count distinct":
                inner = d.pick(
                    (f"SELECT DISTINCT {columns} {flat}", self.set_of(columns, flat, "UNION"))
                )
                return f"SELECT {kind}(COUNT(*) AS c) FROM ({inner}) AS q"
            case "except":
                op = d.pick(("EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"))
                return (
                    f"SELECT {kind}(*) FROM ({self.set_of(columns, flat, op)}) AS q WHERE c0 >= 0"
                )
            case "grouped":
                items = f"{names[0]}.k AS c0, COUNT(*) AS n, MAX({names[-1]}.x) AS m"
                inner = f"SELECT {items} {flat} GROUP BY {names[0]}.k"
                return f"SELECT {kind}(*) FROM ({inner}) AS q WHERE c0 = 1 AND n > 0"
            case "union":
                return (
                    f"SELECT {kind}(*) FROM ({self.set_of(columns, flat, 'UNION ALL')}) AS q "
                    "WHERE c0 < 3"
                )
            case "exists twice":
                return (
                    f"SELECT {kind}({columns}) {flat}{' AND ' if ' WHERE ' in flat else ' WHERE '}"
                    + (
                        f"{self.exists(names[0])} AND "
                        f"{self.exists(names[-1] if names[-1] != 'r1' else names[0])}"
                    )
                )
            case _:
                return f"SELECT {kind}({columns}) {flat}"

    def outer(self, items: list[str], names: list[str]) -> str:
        """Joins with ON, some of them outer."""
        text = items[0]
        for i, item in enumerate(items[1:], 1):
            kinds = (
                ("LEFT", "INNER", "RIGHT", "FULL", "LEFT")
                if not item.startswith("n ")
                else ("LEFT", "INNER")
            )
            more = f" AND {self.test(names[self.d.number(0, i)])}" if self.d.chance(30) else ""
            text += (
                f" {self.d.pick(kinds)} JOIN {item} ON "
                f"{self.equal(names[self.d.number(0, i - 1)], names[i])}{more}"
            )
        return text

    def set_of(self, columns: str, flat: str, op: str) -> str:
        source = self.d.pick("stu")
        other = ", ".join(f"z.{self.d.pick('kx')}" for _ in columns.split(", "))
        return f"SELECT {columns} {flat} {op} SELECT {other} FROM {source} {self.window()} AS z"


@st.composite
def plan_stories(draw: Any, most_rows: int = 12) -> Story:
    """A random query of these over `WORLD`, with random input."""
    d = Draws(draw)
    sql = query(d)
    return story_of(WORLD, sql, given(d, WORLD, most_rows))
