"""Errors that come out of Spark, in our words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from dsms.aggregates.sums import overflow
from dsms.api import Cancel
from dsms.errors import DsmsError, InternalError, UsageError
from dsms.oneshot.aggregates import SUM_OVERFLOW
from dsms.oneshot.limits import too_much
from dsms.sql.types import INT
from dsms.storage.archive.job import overtaken
from dsms.storage.archive.manifest import Archive
from dsms_client.protocol import error_from_map
from dsms_spark.mapped import OVER, TOLD

_TOLD = re.compile(re.escape(TOLD) + r"(\{.*?\})" + re.escape(OVER))
_ROOM = ("maxResultSize", "OutOfMemoryError", "Java heap space", "Cannot broadcast the table")
_UNREADABLE = (
    "FAILED_READ_FILE",
    "CANNOT_READ_FILE",
    "is not a Parquet file",
    "ParquetDecodingException",
)
_FILE = re.compile(r"[^\s'\"`(]+/(?:index|landing)/[^\s'\"`)]*?\.parquet")
_GONE = ("FILE_NOT_EXIST", "PATH_NOT_FOUND", "FileNotFoundException")


_RESTORE = (
    "restore it from a backup: `dsms archive info --verify` tells which files are damaged "
    "or missing"
)


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


@contextmanager
def dsms_errors(hint: str | None = None) -> Iterator[None]:
    """Whatever fails in a job is a DsmsError: DS955 or DS954 that names the file, else DS654 with
    what Spark says."""
    try:
        yield
    except DsmsError:
        raise
    except Exception as error:
        meant = _about_file(str(error))
        if meant is None:
            text = [line for line in str(error).strip().splitlines() if line] or [
                type(error).__name__
            ]
            meant = UsageError("DS654", f"a Spark job failed: {text[0]}", hint=hint)
        raise meant from error


def _meant(said: str, limit: int | None) -> DsmsError | None:
    """What an error says; None: the caller knows better."""
    found = _TOLD.search(said)
    if found:
        return error_from_map(json.loads(found[1]))
    if SUM_OVERFLOW in said:
        return overflow(INT)
    if any(word in said for word in _ROOM):
        return too_much(limit)
    if (meant := _about_file(said)) is not None:
        return meant
    if "ParseException" in said or "AnalysisException" in said:
        return InternalError(
            "DS903", f"Spark refused what we rendered: {said[:500]}", hint="please report this"
        )
    return None


def _about_file(said: str) -> UsageError | None:
    """What an error says of a file that can't be read."""
    if any(word in said for word in _GONE):
        return _gone(_FILE.search(said))
    if any(word in said for word in _UNREADABLE) and (file := _FILE.search(said)) is not None:
        return UsageError("DS955", f"{file[0]} can't be read: it is damaged", hint=_RESTORE)
    return None


def _gone(file: re.Match[str] | None) -> UsageError:
    """A file that was to be read is not there: because of an update, or because it was removed."""
    if file is not None:
        url = re.split(r"/(?:index|landing)/", file[0])[0]
        archive = Archive(url.removeprefix("file:"))
        if archive.numbers() and any(
            file[0].endswith(f"/{f.path}") for f in archive.manifest().files
        ):
            return UsageError("DS955", f"{file[0]} is missing", hint=_RESTORE)
    return overtaken()
