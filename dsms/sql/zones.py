"""Time zones by name: those of the IANA database, and offsets from UTC that never change.

An offset is written as in ISO 8601, `+05:30`, `-0300` or `+02`: what is added to UTC to get the
local time, so that `+` lies east of Greenwich (POSIX counts the other way).
"""

from __future__ import annotations

import re
from datetime import timedelta, timezone, tzinfo
from functools import lru_cache

_OFFSET = re.compile(r"([+-])([01]\d|2[0-3])(?::?([0-5]\d))?")
MINUTE = 60_000_000  # us


def fixed_offset(name: str) -> int | None:
    """Microseconds that an offset is ahead of UTC; None: it is none, but perhaps a name."""
    found = _OFFSET.fullmatch(name)
    if found is None:
        return None
    sign, hours, minutes = found.groups()
    ahead = (int(hours) * 60 + int(minutes or 0)) * MINUTE
    return -ahead if sign == "-" else ahead


@lru_cache(maxsize=64)
def zone_of(name: str) -> tzinfo:
    """The zone of that name or offset.  Raises half a dozen kinds of errors where there is none."""
    from zoneinfo import ZoneInfo

    offset = fixed_offset(name)
    return ZoneInfo(name) if offset is None else timezone(timedelta(microseconds=offset))
