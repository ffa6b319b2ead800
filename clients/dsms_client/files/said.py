"""Options of how a file is written, as statements say them: ``delimiter = ';'``; and what is said
of the options of `dsms load`, in the words of statements."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dsms.errors import DsmsError, UsageError
from dsms_client.files.options import (
    KINDS,
    Options,
    delimiter_of,
    encoding_of,
    names_of,
    pair_of,
)
from dsms_client.protocol import nearest

Change = Callable[[Options, str], dict[str, Any]]


def with_option(
    options: Options, name: str, value: str, what: str, more: tuple[str, ...] = ()
) -> Options:
    """With one more.  `what` takes it, and has `more` options of its own.  Raises DS214, DS215."""
    change = _OPTIONS.get(name)
    if change is None:
        known = ", ".join(sorted([*_OPTIONS, *more]))
        hint = nearest(name, _OPTIONS) or f"options are {known}"
        raise UsageError("DS214", f"{what} has no option {name}", hint=hint)
    return replace(options, **change(options, value))


def _one_of(field: str, known: tuple[str, ...]) -> Change:
    def change(_: Options, value: str) -> dict[str, Any]:
        if value.lower() not in known:
            raise UsageError("DS215", f"{value} is none of {', '.join(known)}")
        return {field: value.lower()}

    return change


def _zone(_: Options, value: str) -> dict[str, Any]:
    from dsms_client.files.times import check_zone

    check_zone(value)
    return {"zone": value}


def _time_format(options: Options, value: str) -> dict[str, Any]:
    from dsms_client.files.times import compiled

    compiled(value)
    return {"time_formats": (*options.time_formats, value)}


def _header(_: Options, value: str) -> dict[str, Any]:
    if value.lower() not in ("true", "false"):
        raise UsageError("DS215", f"header takes TRUE or FALSE, not {value}")
    return {"header": True, "names": None} if value.lower() == "true" else {"names": ()}


def _map(options: Options, value: str) -> dict[str, Any]:
    pairs = [pair_of(pair) for pair in value.split(",")]
    return {"renamed": (*options.renamed, *pairs)}


def _pattern(options: Options, value: str) -> dict[str, Any]:
    return {"pattern": value, "kind": options.kind or "lines"}


_OPTIONS: dict[str, Change] = {
    "format": _one_of("kind", KINDS),
    "delimiter": lambda _, value: {"delimiter": delimiter_of(value)},
    "header": _header,
    "names": lambda _, value: {"names": names_of(value)},
    "map": _map,
    "comment": lambda _, value: {"skip": value},
    "null": lambda options, value: {"nulls": (*(options.nulls or ()), value)},
    "decimal": _one_of("decimal", (".", ",")),
    "encoding": lambda _, value: {"encoding": encoding_of(value)},
    "pattern": _pattern,
    "time_unit": _one_of("unit", ("s", "ms", "us", "ns")),
    "time_format": _time_format,
    "time_zone": _zone,
}


def given(options: Options) -> list[tuple[str, str]]:
    """What has to be said so that a file is read so: names of options, and values."""
    delimiter = options.delimiter if options.delimiter not in (None, ",", "\t") else None
    said = (
        *(("map", f"{column}={name}") for column, name in options.renamed),
        ("delimiter", delimiter),
        ("encoding", options.encoding),
        ("names", ",".join(options.names or ())),
        ("comment", options.skip),
        ("pattern", options.pattern),
        ("time_unit", options.unit),
        ("decimal", options.decimal if options.decimal != "." else None),
        ("time_zone", options.zone),
        *(("time_format", form) for form in options.time_formats),
    )
    nulls = [("null", null) for null in options.nulls or ()]
    return [(name, value) for name, value in said if value] + nulls


def flags(options: Options) -> str:
    """The options of `dsms load` that say so."""
    return " ".join(
        f"--{name.replace('_', '-')} {shlex.quote(value)}" for name, value in given(options)
    )


def with_clause(options: Options) -> str:
    """The options of COPY that say so."""
    texts = (f"{name} = {quoted_text(value)}" for name, value in given(options))
    return f"WITH ({', '.join(texts)})" if given(options) else ""


def quoted_text(text: str) -> str:
    """A string as statements write it."""
    return "'" + text.replace("'", "''") + "'"


# the options of `dsms load`, where a text of ours names them: not within quotes
_NAMES = (*_OPTIONS, "no_header", "timestamp", "max_rejects", "rejects", "from_line")
_FLAG = re.compile(
    r"""(?P<text>'(?:[^']|'')*'|"[^"]*")"""
    rf"|--(?P<name>{'|'.join(name.replace('_', '-') for name in _NAMES)})\b"
    r"(?:(?P<verb> (?:gives|says|takes|keeps|allows)\b)"
    r"| (?P<value>'(?:[^']|'')*'|,|[^\s),:;]+(?:,[^\s),:;]+)*))?"
)
_PLAIN = re.compile(r"[a-z_][a-z_0-9|]*|\d+|N")


def in_sql(text: str) -> str:
    """What is said of ``--time-unit s``, as statements write it: ``time_unit = s``."""
    return _FLAG.sub(_as_option, text)


def in_statement(problem: DsmsError) -> DsmsError:
    """The error, in these words."""
    problem.message = in_sql(problem.message)
    problem.hint = None if problem.hint is None else in_sql(problem.hint)
    return problem


def _as_option(found: re.Match[str]) -> str:
    if found["text"] is not None:
        return found[0]
    name, value, verb = found["name"].replace("-", "_"), found["value"] or "", found["verb"] or ""
    if name == "no_header":
        return "header = false" + (f" {value}" if value else verb)
    if name == "timestamp":
        return f"TIMESTAMP BY {value.lower() or 'column'}{verb}"
    if not value:
        return f"{name}{verb}"
    if value[0] != "'" and not _PLAIN.fullmatch(value):
        value = quoted_text(value.lower() if value.isupper() else value)
    return f"{name} = {value}"
