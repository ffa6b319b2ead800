"""What is shown, and how."""

from __future__ import annotations

import textwrap
from datetime import date

from dsms_client import Client, DsmsError
from examples.flights import data, show
from examples.flights.script import Block
from examples.flights.view import View

LEGEND = """
  The three airports: departures in the last hour and their mean delay in minutes.  not JFK: carriers at Newark, not at
  Kennedy.  tails: aircraft seen at both.  Q1: Delta's pairs.  Q2: places reached from LaGuardia.  Q3: Kennedy flights
  to elsewhere.  Q4: what United could take over.

  New York time         EWR         JFK         LGA   not JFK  tails  Q1  Q2  Q3  Q4"""  # noqa: E501

MISTAKES = (
    "SELECT carier, AVG(delay) FROM ewr [RANGE 1 HOUR] GROUP BY carrier",
    "SELECT airport, MAX(wind) FROM wether [RANGE 1 DAY] GROUP BY airport",
    "CREATE QUERY seen AS\nSELECT DISTINCT dest FROM lga [RANGE 2 HOURS INTERNAL]",
)


def opening(winter: data.Winter) -> str:
    counts = ", ".join(f"{len(rows)} {name}" for name, rows in winter.streams.items())
    first, last = show.moment(winter.first), show.moment(winter.last)
    return (
        f"Flights that left New York, {first} to {last} 2013, from {winter.source}.\nRows: "
        f"{counts}; tables: "
        f"{', '.join(f'{len(rows)} {name}' for name, rows in winter.tables.items())}."
    )


def printed(block: Block) -> str:
    """A remark and its statements, as typed."""
    return f"\n{block.remark}\n{show.indent(block.sql)}"


def worth_a_line(instant: int, storm: date) -> bool:
    """Every day at six in the evening; the day of the storm from morning on."""
    at = data.local(instant)
    return at.hour == 18 or (at.date() == storm and at.hour >= 8 and at.hour % 2 == 0)


def line(instant: int, views: dict[str, View]) -> str:
    """One line of the board."""
    delays = {airport: (flights, mean) for airport, flights, mean, _ in views["delays"].rows}
    airports = [
        f"{delays[a][0]:>4} {delays[a][1]:>+6.1f}" if a in delays else "   -      "
        for a in data.AIRPORTS
    ]
    only = len(views["newark_only"].answer())
    queries = [len(views[f"query{n}"].answer()) for n in (1, 2, 3, 4)]
    counts = " ".join(f"{n:>3}" for n in queries)
    return (
        f"  {show.moment(instant):<16} {' '.join(airports)}   {only:>5} "
        f"{len(views['two_airports'].news):>7} {counts}"
    )


def pushes(views: dict[str, View]) -> str:
    """The last result rows of `delays` as its subscribers got them."""
    rows = [
        (show.moment(at or 0), sign, airport, flights, f"{mean:.1f}", worst)
        for at, sign, (airport, flights, mean, worst) in views["delays"].latest
    ]
    head = show.title(
        "The storm grounds them: what subscribers of `delays` were sent last on 8 February"
    )
    return f"{head}\n{show.table(('instant', '', 'airport', 'flights', 'mean', 'worst'), rows)}"


def way_out(views: dict[str, View]) -> str:
    """The first rows of Query 4's answer."""
    rows = views["query4"].answer()
    head = show.title(f"Query 4 on the evening after: the first 5 of {len(rows)} answers")
    return f"{head}\n{show.table(('from Kennedy', 'to', 'United from Newark'), rows[:5])}"


def days(views: dict[str, View]) -> str:
    """The periodic answers around the storm: by day, and the last summary of where flights go."""
    rows = []
    for at, answer in sorted(views["daily"].answers.items()):
        day = data.local(at - 1)
        if 7 <= day.day <= 11 and day.month == 2:
            rows += [
                (f"{day:%a} {day.day:>2} {day:%b}", c, n, f"{mean:.1f}") for c, n, mean in answer
            ]
    frequent, places = next(iter(views["places"].answers.items()))[1][0]
    lines = textwrap.fill(str(frequent), 116)
    head = show.title(
        "Day by day around the storm: LaGuardia's busiest carriers (a periodic query over days of "
        "New York)"
    )
    return (
        f"{head}\n{show.table(('day', 'carrier', 'flights', 'mean'), rows)}\n"
        f"{show.title('Where flights from Kennedy go: the first answer of `places`')}\n"
        f"{show.indent(lines)}\n    and about {places} places in all"
    )


def news(views: dict[str, View]) -> str:
    """What the two append-only queries found, and the last answers of others."""
    tails = [
        (t, maker, model, show.moment(j), show.moment(g))
        for t, maker, model, j, g in views["two_airports"].news
    ]
    late = views["blind"].news
    parts = [
        show.title(
            f"{len(tails)} times an aircraft left both Kennedy and LaGuardia within twelve hours; "
            "the last five"
        ),
        show.table(("tail", "maker", "model", "left Kennedy", "left LaGuardia"), tails[-5:]),
        show.title("More than an hour late from LaGuardia in fog or snow"),
        show.table(("flight", "carrier", "to", "minutes late", "miles of sight", "°F"), late),
        show.title("Carriers at Newark, not at Kennedy, at the end"),
        "\n".join(name for (name,) in views["newark_only"].answer()),
    ]
    return "\n".join(parts)


def status(client: Client) -> str:
    """Some columns of SHOW QUERIES."""
    answer = client.query("SHOW QUERIES FULL")
    names = (
        "query",
        "output",
        "period",
        "path",
        "pattern",
        "result_rows",
        "live_rows",
        "state_bytes",
        "shares_with",
    )
    where = [answer.columns.index(name) for name in names]
    return show.table(names, [[row[k] for k in where] for row in answer.rows])


def sharing(client: Client) -> str:
    """SHOW SHARING, without its reasons."""
    answer = client.query("SHOW SHARING")
    return show.table(answer.columns[:-1], [row[:-1] for row in answer.rows])


def plans(client: Client, select: str) -> str:
    """The query's plan with the negation above the join and below it."""
    parts = []
    for place, what in (("up", "negation above the join"), ("down", "negation below the join")):
        lines = client.query(f"EXPLAIN {select} WITH (negation = {place})").rows
        parts.append(
            f"WITH (negation = {place}): {what}\n\n"
            + show.indent("\n".join(row[0] for row in lines))
        )
    return "\n\n".join(parts)


def mistakes(client: Client) -> str:
    """Statements that are wrong, and what the server says about each.  Raises RuntimeError if it
    says nothing."""
    parts = []
    for sql in MISTAKES:
        try:
            client.execute(sql)
        except DsmsError as error:
            parts.append(show.complaint(sql, error))
        else:
            raise RuntimeError(f"this should not have been accepted: {sql}")
    return "\n\n".join(parts)
