"""Errors that come out of Spark, in our words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from dsms.adhoc.aggregates import SUM_OVERFLOW
from dsms.adhoc.limits import too_much
from dsms.api import Cancel
from dsms.errors import DsmsError, InternalError, UsageError
from dsms.operators.aggregates.sums import overflow
from dsms.sql.types import INT
from dsms_client.protocol import error_from_map
from dsms_spark.mapped import OVER, TOLD

_TOLD = re.compile(re.escape(TOLD) + r"(\{.*?\})" + re.escape(OVER))
_ROOM = ("maxResultSize", "OutOfMemoryError", "Java heap space", "Cannot broadcast the table")
_GONE = ("FILE_NOT_EXIST", "PATH_NOT_FOUND", "FileNotFoundException")


@contextmanager
def explained(cancel: Cancel | None, limit: int | None) -> Iterator[None]:
    """Whatever fails inside is a DsmsError outside."""
    try:
        yield
    except DsmsError:
        raise
    except Exception as problem:
        if cancel is not None:
            cancel.check()
        meant = _meant(str(problem), limit)
        if meant is None:
            raise
        raise meant from problem


def _meant(said: str, limit: int | None) -> DsmsError | None:
    """What an error says; None: who asked knows better."""
    found = _TOLD.search(said)
    if found:
        return error_from_map(json.loads(found[1]))
    if SUM_OVERFLOW in said:
        return overflow(INT)
    if any(word in said for word in _ROOM):
        return too_much(limit)
    if any(word in said for word in _GONE):
        return UsageError("DS954", "the archive was updated while it was read, and files that were left are gone",
                          hint="ask again")  # fmt: skip
    if "ParseException" in said or "AnalysisException" in said:
        return InternalError("DS903", f"Spark refused what we rendered: {said[:500]}", hint="please report this")
    return None
