"""``COPY name FROM 'file' [WITH (option = value, ...)]``: the shell reads the file where it runs,
and sends its rows to a table or stream, as `dsms load` does.  No server reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dsms.errors import UsageError
from dsms.file_texts import NAME, TEXT, options_of, unquoted
from dsms_client.files.options import Options
from dsms_client.files.said import with_option
from dsms_client.protocol import nearest

if TYPE_CHECKING:
    from dsms_client.aio import AsyncClient
    from dsms_client.files.report import Reporter
    from dsms_client.files.send import LoadJob, Outcome

_COPY = re.compile(r"copy\b", re.IGNORECASE)
_STATEMENT = re.compile(
    rf"copy\s+(?P<name>{NAME})\s+from\s+(?P<file>{TEXT})(?:\s+with\s*\((?P<options>.*)\))?\s*",
    re.IGNORECASE | re.DOTALL,
)
FORM = "write COPY name FROM 'file' [WITH (option = value, ...)]"


@dataclass(frozen=True, slots=True)
class Copy:
    """`rejects`: a file for the lines that were not taken."""

    name: str
    path: str
    options: Options
    upsert: bool = False
    rejects: str | None = None
    max_rejects: int | None = None


def is_copy(text: str) -> bool:
    """Whether the statement is one."""
    return _COPY.match(text) is not None


def read(text: str) -> Copy:
    """What a COPY says.  Raises DS101 for one that is not well-formed, DS214, DS215."""
    found = _STATEMENT.fullmatch(text)
    if found is None:
        raise UsageError("DS101", "this is no COPY that can be read", hint=FORM)
    copy = Copy(unquoted(found["name"]), unquoted(found["file"]), Options())
    for name, value in options_of(found["options"] or "", FORM):
        copy = _with(copy, name, value)
    return copy


def _with(copy: Copy, name: str, value: str) -> Copy:
    """With an option of WITH."""
    if name in ("upsert", "header"):
        if value.lower() not in ("true", "false"):
            raise UsageError("DS215", f"{name} takes TRUE or FALSE, not {value}")
        said = value.lower() == "true"
        if name == "upsert":
            return replace(copy, upsert=said)
        return replace(copy, options=replace(copy.options, names=None if said else ()))
    if name == "rejects":
        return replace(copy, rejects=value)
    if name == "max_rejects":
        if not value.isdecimal():
            raise UsageError("DS215", f"max_rejects takes a number of lines, not {value}")
        return replace(copy, max_rejects=int(value))
    more = ("upsert", "header", "rejects", "max_rejects")
    return replace(copy, options=with_option(copy.options, name, value, "COPY", more))


async def run(client: AsyncClient, copy: Copy, reporter: Reporter) -> Outcome:
    """Send the file's rows.  Raises DS401, DS440, DS530, DS532 and what the server says."""
    from dsms_client.files.send import LoadJob, load, named

    names = await client.names()
    table = bool(named(copy.name, names["tables"]))
    if not table and not named(copy.name, names["streams"]):
        known = [*names["tables"], *names["streams"]]
        message = f"there is no table or stream {copy.name}"
        raise UsageError("DS401", message, hint=nearest(copy.name, known))
    job: LoadJob = LoadJob(
        (copy.path,),
        copy.name,
        {},
        copy.options,
        max_rejects=copy.max_rejects,
        table=table,
        upsert=copy.upsert,
    )
    return await load(client, job, reporter)
