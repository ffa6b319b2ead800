"""Questions asked once, while flights go by: of live windows, of registered queries' answers, of
what is kept ready."""

from __future__ import annotations

from dsms_client import Client, RowSet
from examples.flights import data, recompute, show

QUESTIONS = (
    (
        "Of LaGuardia's last six hours, from the live window: whose passengers wait longest?",
        "SELECT a.name, COUNT(*) AS flights, MAX(f.delay) AS worst FROM lga [RANGE 6 HOURS] f\n  "
        "JOIN airlines a ON f.carrier = a.carrier GROUP BY a.name ORDER BY worst DESC, name LIMIT "
        "3",
    ),
    (
        "Of the last answer of a registered query: where was a tenth of the flights more than an "
        "hour late?",
        "SELECT airport, flights, ROUND(mean, 1) AS mean, p90 FROM hourly WHERE p90 > 60 ORDER BY "
        "p90 DESC",
    ),
    (
        "A question that is kept ready, and answered from its synopsis when somebody asks:",
        "LOOKUP worst_tails",
    ),
)
TOTALS = "SELECT COUNT(*) AS flights, MAX(delay) AS worst FROM lga [RANGE 6 HOURS]"


def ask(client: Client) -> str:
    """All questions with their answers, and as of when these hold."""
    parts = [show.title("Asked once in between, while queries go on")]
    for remark, sql in QUESTIONS:
        answer = client.query(sql)
        rows = show.table(answer.columns, answer.rows)
        parts.append(
            f"{remark}\n\n{show.indent(sql)}\n\n{show.indent(rows)}\n    {as_of(answer)}\n"
        )
    return "\n".join(parts)


def as_of(answer: RowSet) -> str:
    """The instant at which an answer holds."""
    return f"as of {show.moment(answer.as_of)}" if answer.as_of is not None else "as of no instant"


def check(client: Client, winter: data.Winter) -> list[str]:
    """Asks for totals of a live window and recomputes them; returns what differs."""
    answer = client.query(TOTALS)
    assert answer.as_of is not None
    true = recompute.totals(winter, answer.as_of)
    reported = tuple(answer.rows[0])
    return (
        []
        if reported == true
        else [f"{TOTALS}, {as_of(answer)}: {reported}, but recomputed {true}"]
    )
