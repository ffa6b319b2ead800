"""What a plan may take while it runs."""

from __future__ import annotations

from dataclasses import dataclass

from dsms.errors import UsageError


def too_much(limit: int | None) -> UsageError:
    """DS633."""
    most = "DuckDB's memory limit" if limit is None else f"{limit >> 20} MiB, which is the limit"
    return UsageError(
        "DS633",
        f"running the query over what its windows hold takes more than {most}",
        hint="filter first, take narrower windows, or join on a key; the limit is the setting "
        "statement_bytes (--statement-bytes), or what a server's --memory leaves",
    )


@dataclass(slots=True)
class Room:
    """Bytes of rows between steps; what SQL keeps meanwhile is DuckDB's own to bound.  `limit`:
    None is no limit."""

    limit: int | None
    used: int = 0

    def take(self, count: int) -> None:
        """So many bytes more (less, if negative).  Raises DS633."""
        self.used += count
        if self.limit is not None and self.used > self.limit:
            raise too_much(self.limit)
