"""What an engine answers, as plain rows."""

from __future__ import annotations

from dsms.engine import Engine


def asked(made: Engine, sql: str) -> list[tuple]:
    """The rows of the last statement."""
    found = made.execute(sql)[-1].data  # type: ignore[union-attr]
    return list(zip(*(c.to_pylist() for c in found.columns), strict=True))


def pushed(made: Engine, query: str) -> list[tuple]:
    """All that a query has told: kind, instant and rows of each push."""
    pushes = made.subscribe(query, 0).take()
    return [(p.kind, p.at, p.data and p.data.to_pylist()) for p in pushes]
