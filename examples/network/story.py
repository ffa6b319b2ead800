"""What is shown: a line a minute, questions asked once, what the server says of itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from dsms_client import Client, RowSet
from examples.flights.show import indent, table
from examples.flights.view import View
from examples.network.trace import SECOND, Trace

LEGEND = """
  Of the last minute on the north link: packets, kilobits a second, median bytes, destinations, the top talkers, how
  many surely sent more than δ packets (Algorithm 6), and alerts of either link.

  time      packets   kbit/s  median  peers  top talkers                       surely > δ"""  # noqa: E501

QUESTIONS = (
    (
        "From the live windows of both links: who sent most in the last two minutes?",
        "SELECT src, COUNT(*) AS packets, SUM(bytes) AS bytes\n  FROM (SELECT src, bytes FROM "
        "north [RANGE 2 MIN] UNION ALL SELECT src, bytes FROM south [RANGE 2 MIN])\n  GROUP BY "
        "src ORDER BY bytes DESC LIMIT 3",
    ),
    (
        "From the answers of two registered queries: this minute's talkers, with the mean of ten "
        "minutes.",
        "SELECT p.src, p.packets, ROUND(m.mean, 1) AS mean FROM packets_1m p JOIN heavy_mean m ON "
        "p.src = m.src\n  ORDER BY packets DESC LIMIT 3",
    ),
    ("Kept ready, ON LOOKUP:", "LOOKUP south_talkers"),
    ("Also kept ready:", "LOOKUP south_p99"),
)


def clock(instant: int) -> str:
    """`12:34:56`, UTC."""
    return f"{datetime.fromtimestamp(instant // SECOND, UTC):%H:%M:%S}"


def opening(trace: Trace) -> str:
    counts = ", ".join(f"{len(rows)} on {name}" for name, rows in trace.links.items())
    return (
        f"Two links of a network, {clock(trace.begin)} to {clock(trace.end)}, from "
        f"{trace.about}.\nPackets: {counts}."
    )


def line(boundary: int, views: dict[str, View], alerts: list[str]) -> str:
    """The board at a boundary, and the alerts since the line before."""
    packets, size = _answer(views, "load_1m", boundary)
    (median,), (peers,) = (
        _answer(views, "median_1m", boundary),
        _answer(views, "peers_1m", boundary),
    )
    (top,), (heavy,) = (
        _answer(views, "talkers_1m", boundary),
        _answer(views, "frequent_1m", boundary),
    )
    reported = json.loads(heavy or '{"items": [], "delta": 0}')
    names = ", ".join(str(top or "").strip("[]").split(", ")[:3])
    sure = f"{len(reported['items'])} > {reported['delta']}"
    figures = f"{packets:>7} {(size or 0) * 8 / 60_000:>8.0f} {median or 0:>7.0f} {peers:>6}"
    return (
        f"  {clock(boundary)}  {figures}  {names:<32}  "
        f"{sure:<10}{''.join(f'  ! {a}' for a in alerts)}"
    ).rstrip()


def alerts(boundary: int, views: dict[str, View]) -> list[str]:
    """What the alerting queries say at a boundary."""
    scans = [f"scan by {src}" for src, _ in views["scans"].answers.get(boundary, [])]
    return scans + [f"flood of {dst}" for dst, _ in views["floods"].answers.get(boundary, [])]


def _answer(views: dict[str, View], name: str, boundary: int) -> tuple[Any, ...]:
    """The one row of a global aggregate."""
    return views[name].answers[boundary][0]


def ask(client: Client) -> str:
    """Questions asked once, and as of when their answers hold."""
    parts = []
    for remark, sql in QUESTIONS:
        answer = client.query(sql)
        rows = table(answer.columns, answer.rows)
        parts.append(f"{remark}\n\n{indent(sql)}\n\n{indent(rows)}\n    {as_of(answer)}\n")
    return "\n".join(parts)


def as_of(answer: RowSet) -> str:
    return "as of no instant" if answer.as_of is None else f"as of {clock(answer.as_of)}"


def status(client: Client) -> str:
    """Some columns of SHOW QUERIES."""
    return _some(
        client,
        "SHOW QUERIES FULL",
        (
            "query",
            "period",
            "path",
            "evaluations",
            "result_rows",
            "state_bytes",
            "cost",
            "shares_with",
        ),
    )


def windows(client: Client) -> str:
    """What is held in memory, in all."""
    answer = client.query("SHOW WINDOWS")
    kind, size = answer.columns.index("kind"), answer.columns.index("bytes")
    totals: dict[str, list[int]] = {}
    for row in answer.rows:
        totals.setdefault(row[kind], []).append(row[size])
    return table(
        ("kind", "how many", "bytes"), [(k, len(v), sum(v)) for k, v in sorted(totals.items())]
    )


def sharing(client: Client) -> str:
    """SHOW SHARING: rules, how many queries, what."""
    return _some(client, "SHOW SHARING", ("rule", "count", "shared", "queries"))


def _some(client: Client, sql: str, names: tuple[str, ...]) -> str:
    answer = client.query(sql)
    where = [answer.columns.index(name) for name in names]
    return table(names, [[_short(row[k]) for k in where] for row in answer.rows])


def _short(value: Any) -> Any:
    """Numbers with four digits, long lists by their first three."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, str) and value.count(", ") > 3 and "(" not in value:
        first = value.split(", ")
        return f"{', '.join(first[:3])} and {len(first) - 3} more"
    return value
