"""Many periodic aggregates over the same streams, which may share synopses; some come late, some
are dropped."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from dsms.sql.binder.options import OPTIONS
from dsms.sql.types import BOOL, FLOAT, INT, STRING, Type
from tests.generate.aggregates import aggregate
from tests.generate.draws import Draws
from tests.generate.exprs import Column, condition
from tests.generate.inputs import given
from tests.generate.world import MONEY, World, world
from tests.stories.model import Section, Story

TYPES: tuple[Type, ...] = (INT, FLOAT, INT, STRING, MONEY, BOOL)
SLIDES = (5, 2, 10, 3, 1)
HAVING = (
    "COUNT(*) > 1",
    "3 <= COUNT(*)",
    "COUNT(*) = 2 OR COUNT(*) > 4",
    "COUNT(l.x) = 2",
    "SUM(l.x) > 3",
    "SUM(l.x) > 2.5 AND COUNT(*) < 5",
    "SUM(l.x) BETWEEN 1 AND 9",
    "MAX(l.x) >= 2",
    "MIN(l.x) < 1",
)


def _window(d: Draws, rows: bool) -> tuple[str, str]:
    """(what the window holds, its SLIDE)"""
    if rows:
        n, ago = d.number(1, 12), " UNTIL 2 AGO" if d.chance(15) else ""
        return f"ROWS {n + 2 * bool(ago)}{ago}", f"SLIDE {d.pick((2, 4, 3, 1))}"
    n, ago = d.number(1, 20), " UNTIL 2 SECONDS AGO" if d.chance(15) else ""
    held = f"RANGE {n + 2 * bool(ago)} SECONDS{ago}"
    return d.pick(
        (held, held, held, "RANGE UNBOUNDED", "SINCE 4s")
    ), f"SLIDE {d.pick(SLIDES)} SECONDS"


SUMMED = tuple(c for c in OPTIONS["synopsis"].choices if c != "none")


def shared_query(d: Draws, declared: World) -> str:
    """One aggregate over a stream, or over a join of two."""
    streams = declared.of("stream")
    rows = d.chance(20)
    held, slide = _window(d, rows)
    left = d.pick(streams)
    scope = [Column(f"l.{n}", t) for n, t in left.columns]
    text = f"{left.name} [{held} {slide}] AS l"
    if not rows and d.chance(25):
        right, other = d.pick(streams), _window(d, False)[0]
        scope += [Column(f"r.{n}", t) for n, t in right.columns]
        text += f" JOIN {right.name} [{other} {slide}] AS r ON l.k = r.{d.pick(('k', 'x'))}"
    where = f" WHERE {condition(d, scope)}" if d.chance(25) else ""
    keys = d.some(["l.k", "l.x + 1"], 0, 2) if d.chance(50) else []
    ordered = " AS r " not in text
    subwindows = not any(w in text for w in ("UNBOUNDED", "SINCE")) and d.chance(30)
    answers = [
        aggregate(d, scope, d.pick(TYPES), ordered, subwindows) for _ in range(d.number(1, 3))
    ]
    items = ", ".join(f"{e} AS c{i}" for i, e in enumerate([*keys, *answers]))
    kind = d.pick(("", "", "Istream", "Dstream"))
    text = f"SELECT {f'{kind}({items})' if kind else items} FROM {text}{where}"
    text += f" GROUP BY {', '.join(keys)}" if keys else ""
    text += f" HAVING {d.pick(HAVING)}" if d.chance(30) else ""
    text += " ORDER BY c0 DESC LIMIT 2" if d.chance(15) else ""
    options = {name: d.pick(OPTIONS[name].choices) for name in ("path", "synopsis")}
    if subwindows:  # what follows single rows and what keeps the input alone would be refused
        options = {"path": d.pick(("auto", "iss", "ws")), "synopsis": d.pick(SUMMED)}
    return f"{text} WITH ({', '.join(f'{n} = {chr(39)}{v}{chr(39)}' for n, v in options.items())})"


@st.composite
def shared_stories(draw: Any, most_rows: int = 30) -> Story:
    """Streams that keep their rows for an hour, so that late queries begin with all that came
    before them."""
    d = Draws(draw)
    declared = World(tuple(s for s in world(d).sources if s.kind == "stream"))
    came = given(d, declared, most_rows).events
    queries = [(f"q{i}", shared_query(d, declared)) for i in range(d.number(2, 6))]
    late = d.number(0, len(queries) - 1)
    cut, end = d.number(0, len(came) - 1), d.number(0, len(came) - 1)
    ddl = declared.ddl().replace("TIMESTAMP BY ts", "TIMESTAMP BY ts RETAIN 1 HOUR")
    first, second = sorted((cut, end))
    dropped = [name for name, _ in queries if d.chance(20)]
    return Story(
        sections=[
            Section("sql", body=ddl),
            *(Section("query", name, sql) for name, sql in queries[late:]),
            Section("input", events=came[:first]),
            *(Section("query", name, sql) for name, sql in queries[:late]),
            Section("input", events=came[first:second]),
            *(Section("sql", body=f"DROP QUERY {name};") for name in dropped),
            Section("input", events=came[second:]),
        ]
    )
