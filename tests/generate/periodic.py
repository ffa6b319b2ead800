"""Random queries with SLIDE and their stories: seconds near the epoch, days while clocks are
changed, rows counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from dsms.sql.types import INT, Type
from tests.effort import effort
from tests.generate.draws import Draws
from tests.generate.exprs import Column, Scope
from tests.generate.inputs import ended, given, shuffled
from tests.generate.queries import TYPES, Queries, over_result
from tests.generate.stories import many_rows, story_of
from tests.generate.windows import EPISODES, Mode
from tests.generate.world import SECOND, World, with_keys, world
from tests.stories.cells import instant
from tests.stories.model import Arrival, Story

HOUR = 3_600 * SECOND
SLIDES = (
    "5 SECONDS",
    "1 SECONDS",
    "2 SECONDS",
    "3 SECONDS",
    "10 SECONDS",
    "7 SECONDS",
    "500 ms",
    "25 SECONDS",
)
DAYS = ("1 DAY", "12 HOURS", "6 HOURS", "2 DAYS", "1 WEEK", "1 HOUR", "1 MONTH", "1 YEAR")
RANGES = ("1 DAY", "2 DAYS", "36 HOURS", "6 HOURS", "1 WEEK", "1 MONTH", "2 HOURS", "1 YEAR")


def ranges(every: str) -> tuple[str, ...]:
    """Of windows; thousands of boundaries until a row has left take a minute, so those come with
    --all."""
    return RANGES if effort() or "HOUR" not in every else RANGES[:-1]


PLACES = (  # a zone, and an instant shortly before its clocks are changed
    ("Europe/Berlin", "2026-03-27T20:00"),
    ("Europe/Berlin", "2026-10-23T18:00"),
    ("America/New_York", "2026-11-01T00:00"),
    ("America/Sao_Paulo", "2018-11-02T12:00"),  # midnight is left out
    ("America/Sao_Paulo", "2018-02-16T12:00"),  # the last hour of a day comes twice
    ("Australia/Lord_Howe", "2026-04-03T12:00"),  # by half an hour
    ("Pacific/Apia", "2011-12-28T12:00"),  # a day is left out
    ("Pacific/Kwajalein", "1969-09-29T00:00"),  # a day comes twice
    ("UTC", "2026-02-26T06:00"),
    ("-03:30", "2026-02-26T06:00"),  # clocks are never changed
    ("UTC", "0001-01-01T00:00"),  # with the first row there may be
    ("America/New_York", "0001-01-01T01:00"),
    ("Asia/Tokyo", "0001-01-01T00:00"),
)


@dataclass(frozen=True, slots=True)
class Beat:
    """`text`: what stands behind the windows; `ranges`: lengths of windows, if not in seconds;
    `rows`: SLIDE counts rows, `beside`: and there may be windows in time, other streams and tables;
    `restore`: all windows of its kind must have it, and there are no others unless `beside` says
    so."""

    text: str
    ranges: tuple[str, ...] = ()
    rows: bool = False
    beside: bool = False
    restore: bool = False


class EveryQueries(Queries):
    """Makes the text of one query with EVERY: windows of all kinds, none with a SLIDE but in blocks
    that append, at times at boundaries of their own."""

    def __init__(self, d: Draws, declared: World, every: str, ranges: tuple[str, ...] = ()) -> None:
        super().__init__(d, declared)
        self.every, self.ranges = every, ranges
        self.own, self.restore = "", False

    def window(self, mode: Mode, first: bool = True, inner: str | None = None) -> str:
        text = super().window(mode, first, inner)
        if not self.own or not text or "ROWS" in text:
            return text
        return f"{text[:-1]} SLIDE {self.own}]"

    def _slide(self) -> str:
        """The SLIDE of a block; empty where it is to be continuous."""
        free = not self.own and not self.restore and self.d.chance(60)
        return self.d.pick(DAYS[:4] if self.ranges else SLIDES) if free else self.own

    def block(
        self,
        types: list[Type],
        depth: int,
        mode: Mode | None = None,
        may_lose: bool = True,
        output: str = "",
    ) -> str:
        before = self.own
        if mode is not None and mode.kind in ("internal", "wstream"):
            self.own = self._slide()
        text = super().block(types, depth, mode, may_lose, output)
        self.own = before
        return text

    def entries(self, depth: int) -> tuple[str, Scope, bool]:
        """Without a window of its own, which would have the SLIDE."""
        alias, before = self.d.name(), self.own
        self.own = self._slide()
        text = f"({self.body([INT], depth - 1, 'Istream')})"
        self.own = before
        window = over_result(self.window(Mode()))
        return f"{text}{window} AS {alias}", [Column(f"{alias}.c0", INT)], False

    def _range(self, mode: Mode) -> str:
        return f"RANGE {self.d.pick(self.ranges)}" if self.ranges else super()._range(mode)

    def _window(self, mode: Mode) -> str:
        if self.ranges and self.d.chance(60):
            return self._range(mode)
        return super()._window(mode)

    def query(self) -> str:
        d = self.d
        if d.chance(20):
            kind, self.restore = d.pick(("Istream-restore", "Rstream-restore")), True
            return f"{self.body([INT, INT], d.pick((1, 0, 1, 2)), kind)} EVERY {self.every}"
        text = super().query()
        columns = 0 if "*" in text.partition(" FROM ")[0] else 1
        return f"{text}{_order(d, columns)} EVERY {self.every}"


class PeriodicQueries(Queries):
    """Makes the text of one query with SLIDE."""

    def __init__(self, d: Draws, declared: World, beat: Beat) -> None:
        super().__init__(d, declared)
        self.beat, self.begun = beat, False

    def window(self, mode: Mode, first: bool = True, inner: str | None = None) -> str:
        """The text in brackets.  The first window of a query has the SLIDE, others may."""
        if inner == "":
            return ""
        if inner is None or (self.beat.rows and not (self.beat.beside and self.begun)):
            inner = self._range(mode) if mode.kind == "mixed" and first else self._window(mode)
        inner = inner or ("ROWS 3" if self.beat.rows else "RANGE UNBOUNDED")
        if self._by_rows(inner):
            inner, self.begun = f"{inner} SLIDE {self.beat.text} ROWS", True
        counts = "ROWS" in inner and "SLIDE" not in inner
        must = self._bound() or self.beat.restore or "MONTH" in inner or "YEAR" in inner
        if inner != "NOW" and counts == self.beat.rows and (must or not self.d.chance(20)):
            inner, self.begun = f"{inner} SLIDE {self.beat.text}", True
        if mode.kind in ("internal", "mixed") and not (mode.kind == "mixed" and first):
            inner = f"{inner} INTERNAL"
        return f" [{inner}]"

    def _by_rows(self, inner: str) -> bool:
        """Whether it is a window in time that is to be answered after so many rows."""
        timed = inner.startswith("RANGE") and "UNBOUNDED" not in inner and "(" not in inner
        beside = self.beat.rows and self.beat.beside and timed
        return beside and (not self.begun or self.d.chance(25))

    def _bound(self) -> bool:
        return (self.beat.restore and not self.beat.beside) or not self.begun

    def _range(self, mode: Mode) -> str:
        if self.beat.ranges:
            return f"RANGE {self.d.pick(self.beat.ranges)}"
        return f"RANGE {self.d.number(1, 12)} SECONDS"

    def _window(self, mode: Mode) -> str:
        d = self.d
        rows = d.number(1, 4)
        if self.beat.beside and self.begun and d.chance(40):
            return d.pick(
                (
                    self._range(mode),
                    "NOW",
                    "RANGE UNBOUNDED",
                    f"RANGE {rows + 2} SECONDS UNTIL 1 SECONDS AGO",
                    f"PARTITION BY k EVERY {rows + 2} SECONDS",
                    f"PARTITION BY k FIRST {rows}",
                )
            )
        if self.beat.rows:
            ago = (f"ROWS {rows + 1} UNTIL 1 AGO", f"PARTITION BY k ROWS {rows + 1} UNTIL 1 AGO")
            if self.beat.beside:
                ago = (*ago, f"PARTITION BY k ROWS {rows} RANGE 4 SECONDS", self._range(mode))
            return d.pick((f"ROWS {rows}", f"PARTITION BY k ROWS {rows}", f"ROWS {rows * 4}", *ago))
        if self._bound() or mode.kind == "mixed":
            return self._sliding(mode)
        others = (
            "NOW",
            f"ROWS {rows}",
            f"PARTITION BY k ROWS {rows}",
            f"ROWS {rows + 1} UNTIL 1 AGO",
            f"PARTITION BY k ROWS {rows} RANGE 4 SECONDS",
            f"PARTITION BY k EVERY {rows + 2} SECONDS",
            *(EPISODES if mode.plain else ()),
        )
        return self._sliding(mode) if d.chance(70) else d.pick(others)

    def _over_keys(self) -> str:
        return self._sliding(Mode()) if self._bound() else self.d.pick(("", "NOW", "RANGE 4 s"))

    def _sliding(self, mode: Mode) -> str:
        d = self.d
        if d.chance(70) or mode.kind == "mixed":
            return self._range(mode)
        if self.beat.ranges:
            return d.pick(("RANGE UNBOUNDED", "RANGE 50 HOURS UNTIL 3 HOURS AGO"))
        n = d.number(2, 12)
        return d.pick(
            (
                f"RANGE {n} SECONDS UNTIL 1 SECONDS AGO",
                "RANGE UNBOUNDED",
                f"RANGE UNBOUNDED UNTIL {d.number(1, 3)} SECONDS AGO",
                f"SINCE {n}s",
                f"SINCE {n}s UNTIL 1 SECONDS AGO",
            )
        )

    def query(self) -> str:
        d = self.d
        types = [d.pick(TYPES) for _ in range(d.number(1, 3))]
        self.merging = self.merging or d.chance(10)
        if self.beat.restore:
            kind = d.pick(("Istream-restore", "Rstream-restore"))
        else:
            kind = d.pick(("Rstream", "", "Istream", "Dstream", "Rstream"))
        style = d.number(0, 99)
        if style >= 90 and not self.beat.restore:
            if d.chance(50):
                return self._wstream_sum()
            return self.block(types, 0, Mode("wstream"), may_lose=False, output="Wstream")
        if style >= 80:
            mode = Mode("internal" if self.beat.rows else d.pick(("internal", "internal", "mixed")))
            text = self.block(types, 0, mode, may_lose=False, output=kind)
        else:
            text = self.body(types, 0 if self.beat.rows else d.pick((1, 0, 1, 2)), kind)
        return f"{text}{_order(d, len(types))}"


@st.composite
def periodic_stories(draw: Any, most_rows: int = 20, keyed: bool = False) -> Story:
    """Boundaries every few seconds, at times shifted."""
    d = Draws(draw)
    declared = with_keys(d, world(d)) if keyed else world(d)
    align = f" ALIGN TO TIMESTAMP '1970-01-01 00:00:0{d.number(0, 4)}.5'" if d.chance(15) else ""
    beat = Beat(d.pick(SLIDES) + align, restore=d.chance(30))
    came = ended(d, given(d, declared, most_rows, undated=True))
    return story_of(declared, PeriodicQueries(d, declared, beat).query(), came)


@st.composite
def periodic_entries_stories(draw: Any, most_rows: int = 20) -> Story:
    """Istream in FROM, with the SLIDE inside of it or outside."""
    d = Draws(draw)
    declared = world(d)
    queries = PeriodicQueries(d, declared, Beat(d.pick(SLIDES), restore=d.chance(30)))
    queries.entered = True
    kind = d.pick(
        ("Istream-restore", "Rstream-restore")
        if queries.beat.restore
        else ("Rstream", "Istream", "Dstream")
    )
    sql = queries.body([INT, INT], d.pick((1, 2)), kind)
    return story_of(declared, sql, ended(d, given(d, declared, most_rows)))


@st.composite
def periodic_merged_stories(draw: Any, most_rows: int = 20) -> Story:
    """UNION ALL of streams through windows of one length, or a window over it."""
    d = Draws(draw)
    declared = world(d)
    queries = PeriodicQueries(d, declared, Beat(d.pick(SLIDES)))
    queries.merging = True
    return story_of(declared, queries.query(), ended(d, given(d, declared, most_rows)))


@st.composite
def calendar_stories(draw: Any, most_rows: int = 16) -> Story:
    """Hours, days and months while clocks are changed."""
    d = Draws(draw)
    declared = world(d)
    zone, base = d.pick(PLACES)
    slide = d.pick(DAYS)
    align = (
        f" ALIGN TO TIMESTAMP '2010-01-31 {d.pick(('06:00', '00:30', '00:00'))}:00'"
        if d.chance(30)
        else ""
    )
    timed = f" TIME ZONE '{zone}'" if d.chance(85) else ""
    beat = Beat(f"{slide}{align}{timed}", ranges(slide), restore=d.chance(20))
    unit = d.pick((HOUR, 3 * HOUR, 11 * HOUR, HOUR // 4))
    came = ended(d, given(d, declared, most_rows, instant(base), unit))
    return story_of(declared, PeriodicQueries(d, declared, beat).query(), came)


@st.composite
def counted_stories(draw: Any, most_rows: int = 20) -> Story:
    """ROWS n SLIDE m over one stream."""
    d = Draws(draw)
    declared = World(world(d).sources[:1])
    beat = Beat(str(d.pick((2, 1, 3, 5, 7))), rows=True, restore=d.chance(25))
    return story_of(
        declared,
        PeriodicQueries(d, declared, beat).query(),
        ended(d, given(d, declared, most_rows)),
    )


@st.composite
def beside_stories(draw: Any, most_rows: int = 20) -> Story:
    """ROWS n SLIDE m beside other streams, tables and windows in time."""
    d = Draws(draw)
    declared = world(d)
    beat = Beat(str(d.pick((2, 1, 3, 5))), rows=True, beside=True, restore=d.chance(30))
    return story_of(
        declared,
        PeriodicQueries(d, declared, beat).query(),
        ended(d, given(d, declared, most_rows)),
    )


@st.composite
def late_stories(draw: Any) -> Story:
    """Rows in disorder, within the slack of their streams, and beyond it."""
    d = Draws(draw)
    declared = World(tuple(s for s in world(d, slack=4).sources if s.kind == "stream"))
    sql = PeriodicQueries(d, declared, Beat(d.pick(SLIDES), restore=d.chance(30))).query()
    came = given(d, declared)
    rows = [e for e in came.events if isinstance(e, Arrival)] + came.events[-1:]
    return story_of(declared, sql, came, shuffled(d, rows, 9 * SECOND))


@st.composite
def long_periodic_stories(draw: Any, rows: int = 160) -> Story:
    """Enough rows for state to be compacted, through short windows."""
    d = Draws(draw)
    declared = World(tuple(s for s in world(d).sources if s.kind == "stream"))
    queries = PeriodicQueries(
        d, declared, Beat(d.pick(SLIDES), ("1 SECONDS", "3 SECONDS", "4 SECONDS"))
    )
    return story_of(declared, queries.query(), many_rows(d, declared, rows))


@st.composite
def every_stories(draw: Any, most_rows: int = 20, keyed: bool = False) -> Story:
    """EVERY at the end of queries that could run continuously."""
    d = Draws(draw)
    declared = with_keys(d, world(d)) if keyed else world(d)
    align = f" ALIGN TO TIMESTAMP '1970-01-01 00:00:0{d.number(0, 4)}.5'" if d.chance(15) else ""
    sql = EveryQueries(d, declared, d.pick(SLIDES) + align).query()
    return story_of(declared, sql, ended(d, given(d, declared, most_rows, undated=True)))


@st.composite
def every_day_stories(draw: Any, most_rows: int = 16) -> Story:
    """EVERY by the calendar, over windows that follow it or not."""
    d = Draws(draw)
    declared = world(d)
    zone, base = d.pick(PLACES)
    timed = f" TIME ZONE '{zone}'" if d.chance(85) else ""
    every = d.pick(DAYS)
    sql = EveryQueries(d, declared, f"{every}{timed}", ranges(every)).query()
    unit = d.pick((HOUR, 3 * HOUR, 11 * HOUR, HOUR // 4))
    return story_of(declared, sql, ended(d, given(d, declared, most_rows, instant(base), unit)))


STAMPED = (
    "{kind}(WINDOW_START() AS a, WINDOW_END() AS b, x.k AS c0, COUNT(*) AS n) FROM {s} [{w}] AS x "
    "GROUP BY x.k",
    "{kind}(WINDOW_END() AS b, COUNT(*) AS c0, WINDOW_START() AS a) FROM {s} [{w}] AS x",
    "{kind}(x.k AS c0, WINDOW_START() AS a) FROM {s} [{w}] AS x WHERE x.k > 0",
    "{kind}(DISTINCT WINDOW_START() AS a, x.k AS c0) FROM {s} [{w}] AS x",
    "{kind}(WINDOW_END() AS b, x.k AS c0, y.k AS c1) FROM {s} [{w}] AS x, {s} [ROWS 2] AS y",
    "{kind}(WINDOW_END() AS b, x.k AS c0) FROM {s} [PARTITION BY k ROWS 1] AS x",
)


@st.composite
def stamped_stories(draw: Any, most_rows: int = 16) -> Story:
    """WINDOW_START() and WINDOW_END(), by seconds and by the calendar."""
    d = Draws(draw)
    declared = world(d)
    kind = d.pick(("Rstream", "Istream", "Dstream", "Rstream", "Rstream-restore"))
    stream = d.pick(declared.of("stream")).name
    if d.chance(40):
        zone, base = d.pick(PLACES)
        window, start, unit = f"RANGE {d.pick(RANGES)}", instant(base), 3 * HOUR
        every = f"{d.pick(DAYS)} TIME ZONE '{zone}'"
    else:
        n, start, unit, every = d.number(2, 12), 0, SECOND, d.pick(SLIDES)
        ago = f"RANGE {n} SECONDS UNTIL 1 SECONDS AGO"
        window = d.pick((f"RANGE {n} SECONDS", ago, "SINCE 3s"))
    sql = d.pick(STAMPED).format(kind=kind, s=stream, w=window)
    came = ended(d, given(d, declared, most_rows, start, unit))
    return story_of(declared, f"SELECT {sql}{_order(d, 1)} EVERY {every}", came)


def _order(d: Draws, columns: int) -> str:
    """ORDER BY and LIMIT, at times, over columns c0, c1, ..."""
    if not d.chance(30):
        return ""
    keys = d.some([f"c{i}" for i in range(columns)], 0)
    ways = [
        f"{key}{d.pick(('', ' DESC'))}{d.pick(('', ' NULLS FIRST', ' NULLS LAST'))}" for key in keys
    ]
    limit = f" LIMIT {d.number(1, 3)}" if not ways or d.chance(60) else ""
    offset = f" OFFSET {d.number(1, 2)}" if limit and d.chance(20) else ""
    return (f" ORDER BY {', '.join(ways)}" if ways else "") + limit + offset


@st.composite
def every_block_stories(draw: Any, most_rows: int = 16) -> Story:
    """A window over a block that appends at boundaries of its own, under EVERY or a SLIDE."""
    d = Draws(draw)
    declared = world(d)
    queries, types = EveryQueries(d, declared, d.pick(SLIDES)), [INT, INT]
    kind, name = d.pick(("Rstream", "Istream", "Dstream", "Rstream")), d.name()
    queries.own = d.pick(SLIDES)
    if d.chance(60):
        inner = queries.block(types, 0, Mode("internal"), may_lose=False)
    else:
        inner = queries.body(types, 0, d.pick(("Istream", "Istream", "Dstream")))
    queries.own = ""
    window = over_result(queries.window(Mode()))
    text = f"({inner}){window} AS {name}"
    if d.chance(40):
        other, columns = queries.stream(Mode(), False)
        text += f" JOIN {other} ON {name}.c0 = {columns[0].text}"
    if d.chance(50):
        items = f"COUNT(*) AS c0, SUM({name}.c0) AS c1, MAX({name}.c1) AS c2"
    else:
        items = f"{name}.c0 AS c0, {name}.c1 AS c1"
    came = ended(d, given(d, declared, most_rows))
    return story_of(declared, f"SELECT {kind}({items}) FROM {text} EVERY {queries.every}", came)
