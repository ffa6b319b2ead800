"""Stories with punctuations: queries over windows without an end, rows, and between them promises
that some values do not come again, which at times are broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from dsms.sql.types import FLOAT, INT, STRING
from tests.generate.draws import Draws
from tests.generate.inputs import given
from tests.generate.stories import story_of
from tests.generate.world import SECOND, Source, World
from tests.stories.cells import sql_instant
from tests.stories.model import Arrival, Beat, Event, Statement, Story

COLUMNS = (("k", INT), ("j", INT), ("c", STRING), ("f", FLOAT))
AGGREGATES = (
    "COUNT(*)",
    "SUM({}x)",
    "COUNT(DISTINCT {}f)",
    "MEDIAN({}f)",
    "QUANTILE({}c, 0.3)",
    "STRING_AGG({}c, ',')",
    "ARRAY_AGG({}k, 3)",
    "TOPK({}c, 2)",
    "MODE({}f)",
    "ENTROPY({}c)",
    "SUM(DISTINCT {}x)",
    "AVG(DISTINCT {}f)",
    "MAX({}c)",
    "FIRST({}f)",
)


def streams(slack: int) -> World:
    """Three of the same columns; of the last one few queries ask."""
    columns = (("k", INT), ("j", INT), ("x", INT), ("c", STRING), ("f", FLOAT))
    return World(tuple(Source(name, columns, slack=slack) for name in ("s", "t", "u")))


def _aggregates(d: Draws, alias: str = "") -> str:
    return ", ".join(a.format(alias) for a in d.some(AGGREGATES, 1, 3))


WINDOWS = ("", "", "", " [RANGE UNBOUNDED]", " [RANGE 5 SECONDS]", " [NOW]", " [ROWS 3]")
OUTER = ("LEFT", "RIGHT", "FULL")


def _sources(d: Draws) -> list[str]:
    """The three streams, with windows."""
    return [f"{name}{d.pick(WINDOWS)}" for name in ("s", "t", "u")]


def of_many(d: Draws) -> str:
    """A join of three, of one key or of several, over windows with an end and without."""
    s, t, u = _sources(d)
    where = d.pick(
        (
            "s.k = t.k AND t.k = u.k",
            "s.k = t.k AND t.k = u.k AND s.x < u.x",
            "s.k = t.k AND t.k = u.k AND s.j = t.j AND t.j = u.j",
            "s.k = t.k AND t.j = u.j",
            "s.k = t.k AND t.k = u.k AND s.j = t.j",
            "s.k = t.k AND t.c = u.c AND u.j = s.j",
            "s.k = t.j AND t.j = u.k",
        )
    )
    inside = f"FROM {s}, {t}, {u} WHERE {where}"
    below = f"FROM (SELECT k, j, c, x FROM {s} UNION ALL SELECT k, j, c, x FROM {t}) AS s, {u}, {t}"
    return d.pick(
        (
            f"SELECT s.k, s.x, t.x, u.c {inside}",
            f"SELECT s.k, s.x, t.x, u.c {inside}",
            f"SELECT s.k, {_aggregates(d, 'u.')} {inside} GROUP BY s.k",
            f"SELECT DISTINCT t.k, u.x {inside}",
            f"SELECT s.k, s.x, t.x, u.c {below} WHERE {where}",
        )
    )


def outer(d: Draws) -> str:
    """An outer join, or one over another."""
    s, t, u = _sources(d)
    pairs = d.pick(("{}.k = {}.k", "{}.k = {}.k AND {}.j = {}.j", "{}.k = {}.k AND {}.x < {}.x"))
    first = pairs.format(*("s", "t") * 2)
    more = f"{d.pick(OUTER)} JOIN {u} ON {pairs.format(*(d.pick(('s', 't')), 'u') * 2)}"
    one = f"{s} {d.pick(OUTER)} JOIN {t} ON {first}"
    return d.pick(
        (
            f"SELECT s.k, s.x, t.k, t.x FROM {one}",
            f"SELECT s.k, s.x, t.k, t.x FROM {one}",
            f"SELECT s.x, t.x, u.x FROM {one} {more}",
            f"SELECT s.x, t.x, u.x FROM {s} JOIN {t} ON {first} {more}",
            f"SELECT t.k, {_aggregates(d, 's.')} FROM {one} GROUP BY t.k",
        )
    )


def periodic(d: Draws) -> str:
    """One that answers at boundaries."""
    text = d.pick((of_one_or_two, of_many, outer))(d)
    return f"{text} EVERY {d.pick((1, 2, 5))} SECONDS"


def query(d: Draws) -> str:
    """One in which promises may tell."""
    return d.pick((of_one_or_two, of_one_or_two, of_many, outer))(d)


def of_one_or_two(d: Draws) -> str:
    """One over unbounded windows, in which a key is grouped, joined or made distinct."""
    keys = d.pick(("k", "k, j", "j"))
    some = _aggregates(d)
    windows = d.pick(("", " [RANGE UNBOUNDED]", " [SINCE '1970-01-01 00:00:03']"))
    pairs = d.pick(("s.k = t.k", "s.k = t.k AND s.j = t.j", "s.k = t.k AND s.x < t.x"))
    out = d.pick(("Istream", "Rstream", ""))

    def told(items: str) -> str:
        return f"{out}({items})" if out else items

    other = d.pick(("", " [RANGE UNBOUNDED]", " [RANGE 5 SECONDS]"))
    joined = f"s{windows}, t{other} WHERE {pairs}"
    return d.pick(
        (
            f"SELECT {keys}, {some} FROM s{windows} GROUP BY {keys}",
            f"SELECT {keys}, {some} FROM s{windows} WHERE x > 0 GROUP BY {keys}",
            f"SELECT k, ts, {some} FROM s{windows} GROUP BY k, ts",
            f"SELECT k, w, {some} FROM (SELECT k, x, c, f, DATE_TRUNC('second', ts) AS w FROM s) "
            "AS a WHERE k < 9 GROUP BY w, k",
            f"SELECT {keys}, COUNT(*) FROM s GROUP BY {keys} HAVING COUNT(DISTINCT f) > 1",
            f"SELECT {told('s.k, s.x, t.x')} FROM {joined}",
            f"SELECT s.k, {_aggregates(d, 's.')} FROM {joined} GROUP BY s.k",
            f"SELECT t.k, {_aggregates(d, 't.')} FROM {joined} GROUP BY t.k",
            f"SELECT {told(f'DISTINCT {keys}')} FROM s{windows}",
            f"SELECT {told('DISTINCT s.k, t.x')} FROM {joined}",
            f"SELECT a.k, {some} FROM (SELECT DISTINCT k, x, c, f FROM s) AS a GROUP BY a.k",
            f"SELECT a.k, t.x FROM (SELECT DISTINCT k, j FROM s{other}) AS a, t WHERE a.k = t.k",
            f"SELECT a.k, {some} FROM (SELECT k, x, c, f FROM s UNION ALL "
            "SELECT k, x, c, f FROM t) AS a GROUP BY a.k",
            "SELECT s.k, t.x, u.x FROM s, t, u WHERE s.k = t.k AND t.k = u.k",
            "SELECT s.k, t.x, u.x FROM s, t, u WHERE s.k = t.k AND t.j = u.j",
            "SELECT a.n, t.k, t.x FROM (SELECT k AS n, j FROM s) AS a, t WHERE a.n = t.k",
            f"SELECT s.k, COUNT(*) FROM s LEFT JOIN t ON {pairs} GROUP BY s.k",
            f"SELECT k, COUNT(*) FROM s WHERE EXISTS (SELECT 1 FROM t WHERE {pairs}) GROUP BY k",
        )
    )


def promise(d: Draws, stream: str, now: int) -> Statement:
    """What one of the streams says at that instant."""
    k = d.pick(("k = 0", "k = 1", "k IN (0, 1)", "k IS NULL", "k = 2", "c = 'a'"))
    terms = [k] + ([d.pick(("j = 0", "j IN (1, 2)"))] if d.chance(30) else [])
    upto = f" UPTO {sql_instant(now + d.number(-2, 6) * SECOND)}" if d.chance(35) else ""
    return Statement(f"PUNCTUATE {stream} WHERE {' AND '.join(terms)}{upto}")


@st.composite
def promised_stories(
    draw: Any, most_rows: int = 40, asked: Callable[[Draws], str] = query
) -> Story:
    """A query over streams that promise something at times."""
    d = Draws(draw)
    declared = streams(d.pick((0, 0, 4)))
    came = given(d, declared, most_rows)
    events: list[Event] = []
    now = 0
    for event in came.events:
        now = event.at if isinstance(event, Arrival) else now
        if d.chance(25) and not isinstance(event, Beat):
            events.append(promise(d, d.pick(("s", "t", "u")), now))
        events.append(event)
    return story_of(declared, asked(d), came, events)
