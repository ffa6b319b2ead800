"""``COPY name FROM 'file' [WITH (option = value, ...)]``: the shell reads the file where it runs,
and sends its rows to a table or stream, as `dsms load` does.  No server reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dsms.errors import DsmsError, UsageError
from dsms.file_texts import NAME, TEXT, options_of, put, unquoted
from dsms_client.files.options import Options
from dsms_client.files.said import in_statement, with_option
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
    from_line: int = 0


def is_copy(text: str) -> bool:
    """Whether the statement is one."""
    return _COPY.match(text) is not None


def read(text: str) -> Copy:
    """What a COPY says.  Raises DS101 for one that is not well-formed, DS214, DS215."""
    found = _STATEMENT.fullmatch(text)
    if found is None:
        raise UsageError("DS101", "this is no COPY that can be read", hint=FORM)
    copy = Copy(unquoted(found["name"]), unquoted(found["file"]), Options())
    begin, end = found.span("options") if found["options"] else (0, 0)
    for name, value, at in options_of(text, begin, end, FORM):
        try:
            copy = _with(copy, name, value)
        except DsmsError as problem:
            raise put(problem, text, at) from None
    return copy


def _with(copy: Copy, name: str, value: str) -> Copy:
    """With an option of WITH."""
    match name:
        case "upsert":
            if value.lower() not in ("true", "false"):
                raise UsageError("DS215", f"{name} takes TRUE or FALSE, not {value}")
            return replace(copy, upsert=value.lower() == "true")
        case "rejects":
            return replace(copy, rejects=value)
        case "max_rejects" | "from_line":
            if not value.isdecimal():
                raise UsageError("DS215", f"{name} takes a number of lines, not {value}")
            lines = int(value)
            if name == "from_line":
                return replace(copy, from_line=lines)
            return replace(copy, max_rejects=lines)
    more = ("upsert", "rejects", "max_rejects", "from_line")
    return replace(copy, options=with_option(copy.options, name, value, "COPY", more))


async def run(client: AsyncClient, copy: Copy, reporter: Reporter) -> Outcome:
    """Send the file's rows.  Raises DS401, DS440, DS530, DS532 and what the server says."""
    try:
        return await _sent(client, copy, reporter)
    except DsmsError as problem:
        raise in_statement(problem) from None


async def _sent(client: AsyncClient, copy: Copy, reporter: Reporter) -> Outcome:
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
        dict(copy.options.renamed),
        copy.options,
        first=copy.from_line,
        max_rejects=copy.max_rejects,
        table=table,
        upsert=copy.upsert,
    )
    return await load(client, job, reporter)
