"""WITH (approximate = e): whether a query's groups may be those that a collective index finds."""

from __future__ import annotations

from collections.abc import Mapping

from dsms.errors import UsageError
from dsms.sharing.join_request import JoinRequest
from dsms.sharing.request import Request
from dsms.sharing.threshold import threshold
from dsms.sql.catalog import Option

HINT = "GROUP BY keys of one stream's window HAVING COUNT(*) > 100, or a SUM of whole numbers"


def check_approximate(
    options: Mapping[str, Option],
    path: str,
    wanted: Request | JoinRequest | None,
    any_value: bool = False,
) -> None:
    """Raises DS364 where an index can't answer, by that access path.  `any_value`: LOOKUP says the
    threshold."""
    if "approximate" not in options:
        return
    if not isinstance(wanted, Request) or path != "SS":
        raise _refused("it is not answered from synopses of one window")
    if wanted.until:
        raise _refused("its window ends before the present")
    if not any_value and threshold(wanted, wanted.above, float(options["approximate"])) is None:
        raise _refused("HAVING has no `>` or `>=` between a count or sum and a constant")


def _refused(why: str) -> UsageError:
    return UsageError("DS364", f"this query can't be approximate: {why}", hint=HINT)
