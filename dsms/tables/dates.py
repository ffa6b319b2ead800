"""When a change of a table happens, as far as the table itself has a say in it."""

from __future__ import annotations

from dsms.errors import UsageError
from dsms.intake.values import instant_text
from dsms.sql.types import ALWAYS, BEFORE_ROWS, MAX_INSTANT, MIN_INSTANT


def instant_of(
    name: str, versions: int, last_change: int, at: int | None, newest: int, given: int | None
) -> int:
    """When a table of that name changes: `at` if the statement says so; else the first rows hold
    from the beginning, and later changes from the newest event time on.

    versions     that there have been
    last_change  its instant: no change comes before it
    newest       that event time (ALWAYS: none)
    given        answers over this table were given up to there, so a change comes after (None: none
                 were)
    Raises UsageError DS523 for an AT that can't be, and where no instant is left.
    """
    earliest = max(last_change, ALWAYS if given is None else max(given + 1, BEFORE_ROWS))
    if earliest > MAX_INSTANT:
        what = f"table {name} can't change any more: answers up to {instant_text(MAX_INSTANT)}"
        hint = "no later instant exists; drop the queries that read it"
        raise UsageError("DS523", f"{what} were given", hint=hint)
    if at is None:
        return max(newest if versions else ALWAYS, earliest)
    if not MIN_INSTANT <= at <= MAX_INSTANT:
        raise UsageError("DS523", f"AT {at} µs lies outside the years 0001-9999")
    if at < last_change:
        message = (
            f"table {name} can't change AT {instant_text(at)}: it changed at "
            f"{instant_text(last_change)}"
        )
        raise UsageError(
            "DS523", message, hint="changes of a table are made in the order of their instants"
        )
    if given is not None and at <= given:
        message = (
            f"table {name} can't change AT {instant_text(at)}: answers up to "
            f"{instant_text(given)} were given"
        )
        raise UsageError(
            "DS523", message, hint=f"the earliest possible instant is {instant_text(given + 1)}"
        )
    return at
