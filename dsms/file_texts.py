"""Statements that name a file: ``CREATE STREAM | TABLE name LIKE FILE 'path' (...) clauses``, and
the options that COPY and these take.

Who reads the file (the shell, or a process of the server) writes a plain CREATE in place of the
statement, which is what is run and written down; so this form is no part of the grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

from dsms.errors import DsmsError, UsageError

Problem = TypeVar("Problem", bound=DsmsError)

NAME = r'(?:"(?:[^"]|"")+"|[^\W\d]\w*)'
TEXT = r"'(?:[^']|'')*'"
FORM = (
    "write CREATE STREAM name LIKE FILE 'path' [(TIMESTAMP BY column, option = value, ...)] "
    "clauses, or CREATE TABLE name LIKE FILE 'path' [(PRIMARY KEY (column), ...)]"
)
_BLANK = r"(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)"
_LIKE = re.compile(
    rf"{_BLANK}*(?P<begin>create){_BLANK}+(?P<kind>stream|table){_BLANK}+"
    rf"(?P<exists>if{_BLANK}+not{_BLANK}+exists{_BLANK}+)?"
    rf"(?P<name>{NAME}){_BLANK}+like{_BLANK}+file\b",
    re.IGNORECASE,
)
_PATH = re.compile(rf"{_BLANK}*(?P<path>{TEXT}){_BLANK}*(?P<open>\()?")
_OPTION = re.compile(
    rf"{_BLANK}*(?P<name>\w+){_BLANK}*={_BLANK}*(?P<value>{TEXT}|[\w.+-]+){_BLANK}*"
)
_TIME = re.compile(
    rf"{_BLANK}*timestamp{_BLANK}+by{_BLANK}+(?P<column>{NAME}){_BLANK}*", re.IGNORECASE
)
_KEY = re.compile(
    rf"{_BLANK}*primary{_BLANK}+key{_BLANK}*\({_BLANK}*"
    rf"(?P<columns>{NAME}(?:{_BLANK}*,{_BLANK}*{NAME})*){_BLANK}*\){_BLANK}*",
    re.IGNORECASE,
)
_NAMES = re.compile(rf"(?P<name>{NAME})|{_BLANK}+|,")


@dataclass(frozen=True, slots=True)
class LikeFile:
    """`kind`: STREAM or TABLE.  `options` are pairs of name (lower case) and value; `time` the
    column of event time, `key` those of the PRIMARY KEY, as far as they are said.  `name` is as it
    was written, with quotes if it has them; so are `key` and the `clauses` behind.  Where each of
    them stands in the statement `text` the fields that end in `_at` say (from 0)."""

    kind: str
    name: str
    path: str
    if_not_exists: bool = False
    options: tuple[tuple[str, str], ...] = ()
    time: str | None = None
    key: tuple[str, ...] = ()
    clauses: str = ""
    text: str = ""
    begin_at: int = 0
    name_at: int = 0
    path_at: int = 0
    options_at: tuple[int, ...] = ()
    time_at: int | None = None
    key_at: tuple[int, ...] = ()
    clauses_at: int = 0

    @property
    def head(self) -> str:
        """How the plain statement begins."""
        return f"CREATE {self.kind} {'IF NOT EXISTS ' * self.if_not_exists}{self.name}"

    def placed(self, problem: Problem, at: int | None = None) -> Problem:
        """The error, said of what stands there (None: of the path) unless it has a place."""
        return put(problem, self.text, self.path_at if at is None else at)

    def origin(self, plain: str, at: int) -> int:
        """Where in `text` that comes from which stands there in the `plain` statement made for
        it: what was written, if it was, else the path."""
        clauses = len(plain) - len(self.clauses)
        if self.clauses and at >= clauses:
            return self.clauses_at + at - clauses
        if at < len(self.head):
            into = at - (len(self.head) - len(self.name))
            return self.begin_at if into < 0 else self.name_at + into
        return self._of_key(plain, at, clauses) or self._of_time(plain, at) or self.path_at

    def _of_key(self, plain: str, at: int, clauses: int) -> int | None:
        start = plain.rfind(key_clause(self.key), 0, clauses) if self.key else -1
        if start < 0 or not start <= at < start + len(key_clause(self.key)):
            return None
        start += len(key_clause(())) - 1
        for name, written in zip(self.key, self.key_at, strict=True):
            if at < start + len(name) + 2:
                return written + max(0, min(at - start, len(name) - 1))
            start += len(name) + 2
        return None

    def _of_time(self, plain: str, at: int) -> int | None:
        start = plain.rfind(TIMESTAMP_BY)
        return self.time_at if 0 <= start <= at else None


TIMESTAMP_BY = ") TIMESTAMP BY "


def key_clause(key: tuple[str, ...]) -> str:
    """As the plain statement has it."""
    return f"PRIMARY KEY ({', '.join(key)})"


def put(problem: Problem, text: str, at: int) -> Problem:
    """The error, with the line and column of that place of the text unless it has one."""
    if problem.line is None:
        problem.line, problem.column = place(text, at)
    return problem


def place(text: str, at: int) -> tuple[int, int]:
    """Line and column, from 1, of a place in the text."""
    before = text[:at]
    return before.count("\n") + 1, at - before.rfind("\n")


def offset(text: str, line: int, column: int) -> int:
    """The place in the text of a line and column."""
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
    return start + column - 1


def is_like_file(text: str) -> bool:
    """Whether the statement makes something for a file."""
    return _LIKE.match(text) is not None


def like_file(text: str) -> LikeFile:
    """What such a statement says.  Raises DS101."""
    found = _LIKE.match(text)
    path = None if found is None else _PATH.match(text, found.end())
    if found is None or path is None:
        problem = UsageError("DS101", "this names no file that can be read", hint=FORM)
        raise put(problem, text, 0 if found is None else found.end())
    options, options_at = [], []
    time, time_at, key, key_at = None, None, [], []  # as far as they are said
    end = path.end()
    while path["open"]:
        if said := _TIME.match(text, end):
            time, time_at = unquoted(said["column"]), said.start("column")
        elif said := _KEY.match(text, end):
            names = list(_NAMES.finditer(text, said.start("columns"), said.end("columns")))
            key = [name["name"] for name in names if name["name"]]
            key_at = [name.start() for name in names if name["name"]]
        elif said := _OPTION.match(text, end):
            options.append((said["name"].lower(), unquoted(said["value"])))
            options_at.append(said.start("name"))
        end = _behind(text, end, said, FORM)
        if text[end - 1] == ")":
            break
    if said := _TIME.match(text, end):
        time, time_at, end = unquoted(said["column"]), said.start("column"), said.end()
    return LikeFile(
        found["kind"].upper(),
        found["name"],
        unquoted(path["path"]),
        found["exists"] is not None,
        tuple(options),
        time,
        tuple(key),
        text[end:].strip(),
        text,
        found.start("begin"),
        found.start("name"),
        path.start("path"),
        tuple(options_at),
        time_at,
        tuple(key_at),
        end + len(text[end:]) - len(text[end:].lstrip()),
    )


def _behind(text: str, begin: int, said: re.Match[str] | None, hint: str) -> int:
    """Where it goes on behind an option and what follows it, a comma or bracket.  Raises DS101."""
    if said is not None and text[said.end() : said.end() + 1] in (",", ")"):
        return said.end() + 1
    begin = re.compile(f"{_BLANK}*").match(text, begin).end()  # type: ignore[union-attr]
    problem = UsageError("DS101", f"no option can be read at {_from(text, begin)}", hint=hint)
    raise put(problem, text, begin)


def has_key(clauses: str) -> bool:
    """Whether clauses of CREATE STREAM say KEY."""
    return re.search(r"\bkey\s*\(", re.sub(TEXT, "''", clauses), re.IGNORECASE) is not None


def options_of(text: str, begin: int, end: int, hint: str) -> list[tuple[str, str, int]]:
    """``name = value, ...`` in a part of the text: names in lower case, values without quotes, and
    where each stands.  Raises DS101."""
    found, at = [], begin
    while at < end:
        option = _OPTION.match(text, at, end)
        at = _behind(text, at, option, hint)
        assert option is not None
        found.append((option["name"].lower(), unquoted(option["value"]), option.start("name")))
    return found


def unquoted(text: str) -> str:
    """A string, or a name, without its quotes."""
    quote = text[0]
    return text[1:-1].replace(2 * quote, quote) if quote in "'\"" else text


def _from(text: str, at: int) -> str:
    return repr(text[at:].strip())
