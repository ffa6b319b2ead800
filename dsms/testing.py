"""Tests of one's own queries: rows go in, time goes on, and what queries answer is compared.

    from dsms.testing import Scenario, at

    with Scenario("CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t;"
                  "CREATE QUERY n AS SELECT COUNT(*) FROM s [RANGE 10 s]") as it:
        it.feed("s", [[7, at("1 s")]])
        it.until("20 s")
        it.expect("n", [(None, "+", 0), ("1 s", "-", 0), ("1 s", "+", 1), ("11 s", "-", 1), ...])

Nothing sleeps and nothing depends on a clock.  What is not as expected is an AssertionError that
shows both, line by line.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Self

import pyarrow as pa

from dsms.api import Chunk, IngestReport, Rows, Subscription, shown_instant
from dsms.engine import Engine
from dsms.errors import UsageError
from dsms.forms.moments import moment
from dsms.forms.scalars import Length, as_builtin
from dsms.intake.convert import to_batch
from dsms.lengths import interval_of
from dsms.settings import Settings
from dsms.sql.parameters import Values
from dsms.sql.types import Field, Kind, Schema, Type
from dsms.tabular.texts import cell, duration, instant

SIGNS = {"+": 1, "-": -1, "=": 0}
_RANKS = {-1: 0, 1: 1, 0: 2}  # in this order, of one instant
NEAR = 100 * 86_400_000_000  # µs since 1970 up to which an instant is shown as a length


def at(when: Any) -> int:
    """An instant in microseconds since 1970: of a length of time since then (`"1 min 30 s"`, a
    timedelta), of anything that `Engine.heartbeat` takes."""
    value = as_builtin(when)
    micros = interval_of(value) if isinstance(value, str) else None
    if isinstance(value, Length):
        micros = value.us
    return moment(when, "an instant of a test") if micros is None else micros


class Scenario:
    """An engine in memory, and readers of all queries from their first row on.

    engine  for all that is not here
    """

    def __init__(
        self, script: str = "", params: Values | None = None, settings: Settings | None = None
    ) -> None:
        """Begin with the statements of a script."""
        self.engine = Engine(settings=settings)
        self._readers: dict[str, Subscription] = {}
        if script:
            self.execute(script, params)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.engine.close()

    # -- what happens ------------------------------------------------------------------------------

    def execute(self, text: str, params: Values | None = None) -> list[Any]:
        """Run statements; see `Engine.execute`."""
        results = self.engine.execute(text, params)
        for name in self.engine.names()["queries"]:
            if name not in self._readers:
                self._readers[name] = self.engine.subscribe(name, 0)
        return results

    def feed(self, stream: str, rows: Any, late: int = 0, refused: int = 0) -> IngestReport:
        """Rows for a stream or table, of which so many are late or refused: no more, no fewer."""
        report = self.engine.ingest(stream, rows)
        if (report.late, report.refused) != (late, refused):
            why = "".join(f"\n  {reason}" for reason in report.reasons)
            raise AssertionError(
                f"{stream}: {report.late} rows were late and {report.refused} refused, and {late} "
                f"and {refused} should have been{why}"
            )
        return report

    def until(self, when: Any) -> None:
        """Time goes on: all up to that instant is complete on streams of event time, but on those
        that other streams or queries feed, and system time is that instant."""
        now, catalog = at(when), self.engine.runtime.catalog
        fed = {s.late_into for s in catalog.streams.values()}
        fed |= {q.feeds for q in catalog.queries.values()}
        for key, stream in catalog.streams.items():
            source = self.engine.runtime.inputs[key]
            behind = source.now is None or source.now < now
            if source.event_time and stream.name not in fed and behind and not source.ended:
                self.engine.heartbeat_of(key, now)
        self.engine.advance(now)

    # -- what is answered --------------------------------------------------------------------------

    def changes(self, query: str) -> list[tuple[Any, ...]]:
        """What a query has told since it was asked last, as `expect` takes it: (µs, "+", "-" or
        "=", value, ...).  Raises the error that ended the query."""
        rows, _ = self._told(query)
        names = {sign: mark for mark, sign in SIGNS.items()}
        out: list[tuple[Any, ...]] = []
        for chunk in rows:
            values = zip(*(c.to_pylist() for c in chunk.data.columns), strict=True)
            ats, signs = chunk.at.tolist(), chunk.sign.tolist()
            for when, sign, row in zip(ats, signs, values, strict=True):
                out.append((shown_instant(when), names[sign], *row))
        return out

    def expect(self, query: str, changes: Iterable[Sequence[Any]]) -> None:
        """What the query has told since it was asked last is this: (instant, sign, value, ...),
        sign + for a row that enters, - for one that leaves, = for one of a periodic answer.

        An instant is what `at` takes, None before any; values are what `Engine.ingest` takes in
        columns of their types.  In which order rows of one instant and sign are given makes no
        difference, unless the query is periodic."""
        wanted = list(changes)
        rows, schema = self._told(query)
        came = [line for chunk in rows for line in _lines(chunk, schema)]
        for change in wanted:
            if len(change) != len(schema) + 2 or change[1] not in SIGNS:
                columns = ", ".join(f.name for f in schema)
                shape = f"a change of {query} is (instant, sign, {columns})"
                raise UsageError("DS624", f"{shape}, and not {change!r}")
        values = _cells([change[2:] for change in wanted], schema, f"query {query}")
        lines = [
            (None if change[0] is None else at(change[0]), SIGNS[change[1]], row)
            for change, row in zip(wanted, values, strict=True)
        ]
        _compare(f"the changes of {query}", _shown(lines), _shown(came))

    def expect_rows(
        self, sql: str, rows: Iterable[Any], params: Values | None = None, ordered: bool = False
    ) -> None:
        """The last statement that answers with rows answers with these, in any order unless they
        are `ordered`."""
        answers = [x for x in self.engine.execute(sql, params) if isinstance(x, Rows)]
        if not answers:
            raise UsageError("DS613", "no statement answered with rows")
        names = answers[-1].data.schema.names
        schema = tuple(map(_field, names, answers[-1].types))
        came = _texts(answers[-1].data, schema)
        wanted = _cells(list(rows), schema, "the answer")
        both = [wanted, came] if ordered else [sorted(wanted), sorted(came)]
        _compare("the rows", *([" ".join(row) for row in part] for part in both))

    def _told(self, query: str) -> tuple[list[Chunk], Schema]:
        found = [name for name in self._readers if name.casefold() == query.casefold()]
        if not found:  # it came, or was renamed, by another way than `execute`
            self._readers[query] = self.engine.subscribe(query, 0)
        reader = self._readers[found[0] if found else query]
        items = reader.take_chunks()
        for item in items:
            if not isinstance(item, Chunk) and item.code is not None:
                raise UsageError(item.code, item.message or f"{query} has ended")
        schema = tuple(_field(c.name, c.type) for c in reader.columns)
        return [item for item in items if isinstance(item, Chunk)], schema


# ---------------------------------------------------------------- rows as text

Line = tuple[int | None, int, tuple[str, ...]]  # instant, sign, values


def _field(name: str, sql: str) -> Field:
    found = re.fullmatch(r"(\w+)(?:\((\d+),(\d+)\))?", sql)
    assert found is not None
    return Field(name, Type(Kind(found[1]), int(found[2] or 0), int(found[3] or 0)))


def _cells(rows: list[Any], schema: Schema, name: str) -> list[tuple[str, ...]]:
    """Rows as their columns take them, as text.  Raises UsageError DS624 for what none takes."""
    ordinary = [tuple(row) if isinstance(row, Sequence) else row for row in rows]
    taken = to_batch(ordinary, schema, name)
    if taken.refusals:
        raise UsageError("DS624", f"what is expected can't come: {taken.refusals[0]}")
    batch = pa.RecordBatch.from_arrays(list(taken.columns), [f.name for f in schema])
    return _texts(batch, schema)


def _texts(batch: pa.RecordBatch, schema: Schema) -> list[tuple[str, ...]]:
    columns = [
        [cell(v, f.type.kind.value) for v in column.to_pylist()]
        for column, f in zip(batch.columns, schema, strict=True)
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows


def _lines(chunk: Chunk, schema: Schema) -> Iterable[Line]:
    ats = map(shown_instant, chunk.at.tolist())
    return zip(ats, chunk.sign.tolist(), _texts(chunk.data, schema), strict=True)


def _shown(lines: Iterable[Line]) -> list[str]:
    """A line for each change, by instant, what leaves first; rows of one answer in their order."""
    order = sorted(lines, key=_place)
    marks = {sign: mark for mark, sign in SIGNS.items()}
    return [f"{_instant(when):>8}  {marks[sign]} {' '.join(row)}" for when, sign, row in order]


def _place(line: Line) -> tuple[int, int, tuple[str, ...]]:
    when, sign, row = line
    return -(2**63) if when is None else when, _RANKS[sign], row if sign else ()


def _instant(micros: int | None) -> str:
    if micros is None:
        return "None"
    return duration(micros) if 0 <= micros < NEAR else instant(micros)


def _compare(what: str, wanted: Sequence[str], came: Sequence[str]) -> None:
    if list(wanted) != list(came):
        lines = [x.rstrip() for x in difflib.ndiff(wanted, came) if not x.startswith("?")]
        head = f"{what} are not as expected: < was expected and did not come, > came instead"
        marks = str.maketrans("-+", "<>")
        raise AssertionError("\n".join([head, *(x[:1].translate(marks) + x[1:] for x in lines)]))
