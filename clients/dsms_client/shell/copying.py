"""``COPY name FROM 'file' [WITH (option = value, ...)]``: the shell reads the file where it runs,
and sends its rows to a table or stream, as `dsms load` does.  No server reads it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dsms.errors import UsageError
from dsms_client.files.options import KINDS, Options, delimiter_of, encoding_of
from dsms_client.protocol import nearest

if TYPE_CHECKING:
    from dsms_client.aio import AsyncClient
    from dsms_client.files.report import Reporter
    from dsms_client.files.send import LoadJob, Outcome

_COPY = re.compile(r"copy\b", re.IGNORECASE)
_NAME = r'(?:"(?:[^"]|"")+"|[^\W\d]\w*)'
_TEXT = r"'(?:[^']|'')*'"
_STATEMENT = re.compile(
    rf"copy\s+(?P<name>{_NAME})\s+from\s+(?P<file>{_TEXT})(?:\s+with\s*\((?P<options>.*)\))?\s*",
    re.IGNORECASE | re.DOTALL,
)
_OPTION = re.compile(rf"\s*(?P<name>\w+)\s*=\s*(?P<value>{_TEXT}|[\w.]+)\s*(?:,|$)")
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
    name = found["name"]
    name = name[1:-1].replace('""', '"') if name[0] == '"' else name
    copy = Copy(name, _unquoted(found["file"]), Options())
    rest, at = found["options"] or "", 0
    while at < len(rest):
        option = _OPTION.match(rest, at)
        if option is None:
            raise UsageError("DS101", f"no option can be read at {rest[at:].strip()!r}", hint=FORM)
        copy, at = _with(copy, option["name"].lower(), option["value"]), option.end()
    return copy


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'") if text[0] == "'" else text


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
        return replace(copy, rejects=_unquoted(value))
    if name == "max_rejects":
        if not value.isdecimal():
            raise UsageError("DS215", f"max_rejects takes a number of lines, not {value}")
        return replace(copy, max_rejects=int(value))
    change = OPTIONS.get(name)
    if change is None:
        known = ", ".join(sorted([*OPTIONS, "upsert", "header", "rejects", "max_rejects"]))
        hint = nearest(name, OPTIONS) or f"options are {known}"
        raise UsageError("DS214", f"COPY has no option {name}", hint=hint)
    return replace(copy, options=replace(copy.options, **change(_unquoted(value))))


def _one_of(field: str, known: tuple[str, ...]) -> Callable[[str], dict[str, Any]]:
    def change(value: str) -> dict[str, Any]:
        if value.lower() not in known:
            raise UsageError("DS215", f"{value} is none of {', '.join(known)}")
        return {field: value.lower()}

    return change


def _zone(value: str) -> dict[str, Any]:
    from dsms_client.files.times import check_zone

    check_zone(value)
    return {"zone": value}


def _time_format(value: str) -> dict[str, Any]:
    from dsms_client.files.times import compiled

    compiled(value)
    return {"time_formats": (value,)}


OPTIONS: dict[str, Callable[[str], dict[str, Any]]] = {
    "format": _one_of("kind", KINDS),
    "delimiter": lambda value: {"delimiter": delimiter_of(value)},
    "null": lambda value: {"nulls": (value,)},
    "decimal": _one_of("decimal", (".", ",")),
    "encoding": lambda value: {"encoding": encoding_of(value)},
    "time_unit": _one_of("unit", ("s", "ms", "us", "ns")),
    "time_format": _time_format,
    "time_zone": _zone,
}


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
