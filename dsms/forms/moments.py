"""One instant that a user gives as an argument: heartbeats, the engine's time."""

from __future__ import annotations

from typing import Any, TypeAlias

from dsms.errors import UsageError
from dsms.forms.scalars import Instant, a, as_builtin, kind_name, shown

# an int of microseconds, datetime, date, numpy.datetime64, pandas.Timestamp, or text
Moment: TypeAlias = Any


def moment(value: Moment, what: str) -> int:
    """Microseconds since the epoch; `what` is given, for messages.  Raises UsageError DS508."""
    from dsms.instants import MAX_INSTANT, MIN_INSTANT, instant, why_not  # Arrow comes with it

    value = as_builtin(value)
    if isinstance(value, str):
        found = instant(value)
        if found is None:
            raise UsageError("DS508", f"{what} at {shown(value)}: {why_not(value)}")
        return found
    count = value.us if isinstance(value, Instant) else value
    if type(count) is not int:
        hint = "give microseconds since 1970 (UTC), a datetime, or an instant of NumPy or pandas"
        raise UsageError(
            "DS508", f"{what} is an instant, not {a(kind_name(value))} {shown(value)}", hint=hint
        )
    if not MIN_INSTANT <= count <= MAX_INSTANT:
        hint = "an integer counts microseconds since 1970, UTC"
        if MIN_INSTANT <= count // 1000 <= MAX_INSTANT:
            hint += ": this one looks like nanoseconds"
        raise UsageError("DS508", f"{what} at {count} lies outside the years 0001-9999", hint=hint)
    return count
