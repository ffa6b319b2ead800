"""What a server keeps of streams without RETAIN, as options say it."""

from __future__ import annotations

import re

from dsms.errors import UsageError
from dsms.lengths import interval_of

SHARE = 8  # of the memory that a server may take
MOST = 256 << 20  # bytes that are kept so, unless it is said


def parse(text: str | None) -> tuple[int, int] | None:
    """`10 min`, `1000 rows`, `10 min, 1000 rows` or `0` -> µs and rows; None: nothing is said.
    Raises DS640."""
    if text is None:
        return None
    length, rows = 0, 0
    for part in text.split(",") if text.strip() != "0" else ():
        counted = re.fullmatch(r"\s*([0-9]{1,18})\s+rows?\s*", part, re.IGNORECASE | re.ASCII)
        found = int(counted[1]) if counted else interval_of(part.strip())
        if found is None or found < 0:
            raise UsageError(
                "DS640",
                f"retain_default is a text such as '10 min', '1000000 rows', both with a comma, or "
                f"'0': not {text!r}",
            )
        length, rows = (length, found) if counted else (found, rows)
    return length, rows


def share(memory: int | None) -> int:
    """Bytes that may be kept so by a server that may take `memory` (None, 0: any)."""
    return min(MOST, memory // SHARE) if memory else MOST
