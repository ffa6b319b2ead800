"""Queries that read the answers of others, drawn at random: graphs of them over two streams, and
what an engine tells of them when they are registered before the first row, or between rows."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.settings import Settings
from tests.derived_world import Event, _lines, _work

S = 1_000_000
STREAMS = (
    "CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h",
    "CREATE STREAM r (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t SLACK 3 s RETAIN 1 h",
)
# the columns k and v, of whatever has them
ONE = (
    "SELECT k, v FROM {a} a WHERE v > 0",
    "SELECT k + 1 AS k, v * 2 AS v FROM {a} a",
    "SELECT k, COUNT(*) AS v FROM {a} a GROUP BY k",
    "SELECT k, COUNT(*) AS v FROM {a} a WHERE v > 0 GROUP BY k HAVING COUNT(*) > 1",
    "SELECT v AS k, SUM(k) AS v FROM {a} a GROUP BY v",
    "SELECT COUNT(*) AS k, MAX(v) AS v FROM {a} a",
    "SELECT DISTINCT k, v FROM {a} a",
)
TWO = (
    "SELECT a.k, b.v FROM {a} a JOIN {b} b ON a.k = b.k",
    "SELECT a.k, b.v FROM {a} a LEFT JOIN {b} b ON a.k = b.k AND a.v = b.v",
    "SELECT k, v FROM {a} a WHERE NOT EXISTS (SELECT 1 FROM {b} b WHERE a.k = b.k)",
    "SELECT k, v FROM {a} a WHERE k IN (SELECT k FROM {b} b)",
    "SELECT k, v FROM {a} a UNION ALL SELECT k, v FROM {b} b",
    "SELECT k, v FROM {a} a EXCEPT ALL SELECT k, v FROM {b} b",
)
# what goes by when rows came: a reader that comes late knows that of those which come then
AGED = (
    "SELECT k, LAST(v) AS v FROM {a} a GROUP BY k",
    "SELECT k, v FROM (SELECT Istream(k, v) FROM {a} a) [RANGE 3 s] i",
    "SELECT COUNT(*) AS k, SUM(v) AS v FROM (SELECT Istream(k, v) FROM {a} a) [ROWS 3] i",
    "SELECT k, v FROM (SELECT Dstream(k, v) FROM {a} a) [RANGE 3 s] i",
    "SELECT k, LAST(v) AS v FROM (SELECT Dstream(k, v) FROM {a} a) [ROWS 3] i GROUP BY k",
)
WINDOWS = ("[RANGE 3 s]", "[RANGE 5 s]", "[ROWS 3]", "[RANGE 4 s UNTIL 1 s AGO]", "[NOW]")
SLIDING = ("[RANGE 4 s SLIDE 2 s]", "[RANGE 3 s SLIDE 2 s]")


@st.composite
def graphs(
    draw: st.DrawFn,
    deep: int = 5,
    aged: bool = True,
    windows: Sequence[str] = WINDOWS,
    sliding: bool = True,
) -> list[str]:
    """Statements of queries q0, q1, ..., each over streams and over those before it."""
    made: list[str] = []
    strategy = draw(st.sampled_from(["", "", "direct", "nt"]))
    used = (*windows, *SLIDING) if sliding and draw(st.booleans()) else windows
    joined = 0
    for n in range(draw(st.integers(2, deep))):

        def item(n: int = n) -> str:
            if n and draw(st.integers(0, 3)):
                return f"q{draw(st.integers(max(0, n - 3), n - 1))}"
            return f"{draw(st.sampled_from('sr'))} {draw(st.sampled_from(used))}"

        kinds = ONE + (AGED if aged else ()) + (TWO if joined < 3 else ())
        kind = draw(st.sampled_from(kinds))
        joined += kind in TWO
        text = kind.format(a=item(), b=item())
        output = draw(st.sampled_from(["", "", "Rstream", "Istream", "Dstream"]))
        if output and kind in ONE + TWO[:4]:
            head, _, rest = text.partition(" FROM ")
            text = f"SELECT {output}({head.removeprefix('SELECT ')}) FROM {rest}"
        own = draw(st.sampled_from(["", strategy]))
        options = f" WITH (strategy = {own})" if own else ""
        made.append(f"CREATE QUERY q{n} AS {text}{options}")
    return made


@dataclass
class Play:
    """An engine as events come to it.

    restarts  before which events it is `closed`, or `killed`, and comes back
    late      statements that come before an event"""

    declared: Sequence[str]
    folder: Path | None = None
    restarts: dict[int, str] = field(default_factory=dict)
    late: dict[int, list[str]] = field(default_factory=dict)
    settings: Settings | None = None
    # the instants from which on late ones miss nothing
    since: dict[str, int] = field(default_factory=dict)

    def told(self, events: Sequence[Event], clock: int) -> dict[str, list[tuple]]:
        """What each query tells."""
        place = None if self.folder is None else self.folder / "data"
        engine = Engine(None if place is None else str(place), self.settings)
        for sql in self.declared:
            engine.execute(sql)
        for number, event in enumerate(events):
            how = self.restarts.get(number)
            if how is not None and place is not None:
                engine, place = _again(engine, place, how, number, self.settings)
            for sql in self.late.get(number, ()):
                engine.execute(sql)
                query = engine.runtime.queries[sql.split()[2]]
                # what it reads may be ahead of another stream of its own
                self.since[query.name] = max(query.clock, query.partial_until)
            engine.ingest(event.stream, event.rows)
            _work(engine)
        for name in "sr":
            engine.heartbeat(name, clock)
            _work(engine)
        return {name: list(_lines(engine, name)) for name in engine.runtime.queries}


def _again(
    engine: Engine, place: Path, how: str, number: int, settings: Any
) -> tuple[Engine, Path]:
    if how == "closed":
        engine.close()
    else:
        engine.sync()
        engine.saver, old = None, place
        place = old.with_name(f"{old.name}{number}")
        shutil.copytree(old, place)
    engine = Engine(str(place), settings)
    assert engine.recovered is not None and not engine.recovered.notes
    return engine, place


Told = list[tuple[int | None, str, tuple]]


def answers(told: Told, since: int) -> dict[int, Counter]:
    """The answer from each instant after `since` on at which it changes, and at that."""
    now: Counter = Counter()
    found: dict[int, Counter] = {}
    for at, sign, row in told:
        now[row] += 1 if sign == "+" else -1
        if at is not None and at > since:
            found[at] = +now
        else:
            found[since] = +now
    kept: dict[int, Counter] = {}
    before: Counter | None = None
    for at in sorted(found):
        if found[at] != (Counter() if before is None else before):
            kept[at] = found[at]
        before = found[at]
    return kept


def entries(told: Told, since: int) -> Counter:
    """What is told of the instants after `since`."""
    return Counter((at, row) for at, _, row in told if at is not None and at > since)
