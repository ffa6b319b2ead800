"""A bug of ours in one query stops that query alone: neither its stream nor the writer whose rows
met it."""

from __future__ import annotations

import traceback
from collections.abc import Iterable

from dsms.errors import DsmsError, InternalError, UsageError
from dsms.running.registered import Registered

CANCELLED = "DS610"


def explained(query: str, fault: Exception, where: str = "") -> DsmsError:
    """The error that is reported for an exception: itself, if it is for the user; else DS900, with
    the place in the code.  `where` says how far the query was."""
    if isinstance(fault, DsmsError):
        return fault
    place = traceback.extract_tb(fault.__traceback__)[-1]
    message = (
        f"query {query} met a bug of ours: {fault!r} in {place.name}, "
        f"{place.lineno}{where and f', {where}'}"
    )
    return InternalError("DS900", message, hint="please report this with the query and its input")


def too_much_state(query: str, used: int, limit: int) -> UsageError:
    """DS630.  used, limit: bytes"""
    return UsageError(
        "DS630",
        f"query {query} keeps {used} bytes of state; its limit is {limit} bytes",
        hint="narrow its windows, or register it WITH (max_state = bytes)",
    )


def stop(queries: Iterable[Registered | None], fault: Exception) -> bool:
    """These queries stop.  False, and they go on, if the fault only says that the statement at
    work was cancelled, or that its turn is over: raise it again, where it was caught."""
    if isinstance(fault, DsmsError) and fault.code == CANCELLED:
        return False
    for query in queries:
        if query is not None and query.failure is None:
            query.fail(explained(query.name, fault))
    return True


def set_aside(name: str) -> UsageError:
    """Why a query that has killed the server twice at the same place does not run."""
    return UsageError(
        "DS648",
        f"{name} is set aside: the server died over it twice",
        hint="drop it, and register it anew once the cause is known",
    )
