"""Statements that name a file: ``CREATE STREAM | TABLE name LIKE FILE 'path' (...) clauses``, and
the options that COPY and these take.

Who reads the file (the shell, or a process of the server) writes a plain CREATE in place of the
statement, which is what is run and written down; so this form is no part of the grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dsms.errors import UsageError

NAME = r'(?:"(?:[^"]|"")+"|[^\W\d]\w*)'
TEXT = r"'(?:[^']|'')*'"
FORM = (
    "write CREATE STREAM name LIKE FILE 'path' [(TIMESTAMP BY column, option = value, ...)] "
    "clauses, or CREATE TABLE name LIKE FILE 'path' [(PRIMARY KEY (column), ...)]"
)
_BLANK = r"(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)"
_LIKE = re.compile(
    rf"{_BLANK}*create\s+(?P<kind>stream|table)\s+(?P<exists>if\s+not\s+exists\s+)?"
    rf"(?P<name>{NAME})\s+like\s+file\b",
    re.IGNORECASE,
)
_PATH = re.compile(rf"\s*(?P<path>{TEXT})\s*(?P<open>\()?")
_OPTION = re.compile(rf"\s*(?P<name>\w+)\s*=\s*(?P<value>{TEXT}|[\w.]+)\s*")
_TIME = re.compile(rf"\s*timestamp\s+by\s+(?P<column>{NAME})\s*", re.IGNORECASE)
_KEY = re.compile(
    rf"\s*primary\s+key\s*\(\s*(?P<columns>{NAME}(?:\s*,\s*{NAME})*)\s*\)\s*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class LikeFile:
    """`kind`: STREAM or TABLE.  `options` are pairs of name (lower case) and value; `time` the
    column of event time, `key` those of the PRIMARY KEY, as far as they are said.  `name` is as it
    was written, with quotes if it has them; so are `key` and the `clauses` behind."""

    kind: str
    name: str
    path: str
    if_not_exists: bool = False
    options: tuple[tuple[str, str], ...] = ()
    time: str | None = None
    key: tuple[str, ...] = ()
    clauses: str = ""


def is_like_file(text: str) -> bool:
    """Whether the statement makes something for a file."""
    return _LIKE.match(text) is not None


def like_file(text: str) -> LikeFile:
    """What such a statement says.  Raises DS101."""
    found = _LIKE.match(text)
    place = None if found is None else _PATH.match(text, found.end())
    if found is None or place is None:
        raise UsageError("DS101", "this names no file that can be read", hint=FORM)
    options, time, key, end = [], None, (), place.end()
    while place["open"]:
        if said := _TIME.match(text, end):
            time = unquoted(said["column"])
        elif said := _KEY.match(text, end):
            key = tuple(re.findall(NAME, said["columns"]))
        elif said := _OPTION.match(text, end):
            options.append((said["name"].lower(), unquoted(said["value"])))
        if said is None or text[said.end() : said.end() + 1] not in (",", ")"):
            raise UsageError("DS101", f"no option can be read at {_from(text, end)}", hint=FORM)
        end = said.end() + 1
        if text[said.end()] == ")":
            break
    if said := _TIME.match(text, end):
        time, end = unquoted(said["column"]), said.end()
    return LikeFile(
        found["kind"].upper(),
        found["name"],
        unquoted(place["path"]),
        found["exists"] is not None,
        tuple(options),
        time,
        key,
        text[end:].strip(),
    )


def options_of(text: str, hint: str) -> list[tuple[str, str]]:
    """``name = value, ...``: names in lower case, values without quotes.  Raises DS101."""
    found, at = [], 0
    while at < len(text):
        option = _OPTION.match(text, at)
        if option is None or text[option.end() : option.end() + 1] not in ("", ","):
            raise UsageError("DS101", f"no option can be read at {_from(text, at)}", hint=hint)
        found.append((option["name"].lower(), unquoted(option["value"])))
        at = option.end() + 1
    return found


def unquoted(text: str) -> str:
    """A string, or a name, without its quotes."""
    quote = text[0]
    return text[1:-1].replace(2 * quote, quote) if quote in "'\"" else text


def _from(text: str, at: int) -> str:
    return repr(text[at:].strip())
