"""Queries `WITH (over = shed)`: what their joins may hold, and what they have let go of
(`dsms.operators.shedding_join`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dsms.operators.shedding_join import SheddingJoinOp
from dsms.plan.answers import plans_of
from dsms.plan.physical import Phys
from dsms.plan.variants import SHEDDING
from dsms.running.part import all_stages
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered
from dsms.sql.catalog import QueryDef


def state_limit(definition: QueryDef, most: int) -> int:
    """Bytes of state with which a query stops; `most`: without a limit of its own.  What its joins
    let go of rows by is no such limit."""
    said = dict(definition.options)
    shed = "max_state" not in said or said.get("over") == "shed"
    return most if shed else int(said["max_state"])


def bytes_a_join(definition: QueryDef, phys: Phys, limit: int) -> int:
    """Bytes of rows that each join that lets go of some may hold: all have equal parts.  `limit`:
    of its state."""
    joins = sum(one.variant in SHEDDING for one in plans_of(phys))
    return int(dict(definition.options).get("max_state", limit)) // max(1, joins)


def bound_line(options: Mapping[str, object], phys: Phys) -> Iterator[str]:
    """What EXPLAIN says of that."""
    if options.get("over") == "shed":
        joins = sum(one.variant in SHEDDING for one in plans_of(phys))
        most = int(str(options["max_state"])) // max(1, joins)
        what = "its join holds" if joins == 1 else f"each of its {joins} joins holds"
        yield f"{what} rows of at most {most} bytes: it lets go of those of least use"


def set_bound(query: RunningQuery) -> None:
    """Its joins may hold what its options say now."""
    most = bytes_a_join(query.definition, query.phys, query.state_limit)
    for join in _joins(query) if query.lets_go else ():
        join.most = most


def rows_let_go(query: Registered) -> int | None:
    """How many rows its joins have let go of; None where they do not."""
    joins = _joins(query)
    return sum(join.gone.rows for join in joins) if joins else None


def kept_share(query: Registered, at: int) -> float | None:
    """Of the rows that its joins would hold at an instant, the share that they have, the least of
    all of them; None: all rows."""
    found = (join.gone.share(at) for join in _joins(query))
    return min((share for share in found if share is not None), default=None)


def _joins(query: Registered) -> list[SheddingJoinOp]:
    if not isinstance(query, RunningQuery):
        return []
    operators = (stage.operator for stage in all_stages(query.pipeline))
    return [one for one in operators if isinstance(one, SheddingJoinOp)]
