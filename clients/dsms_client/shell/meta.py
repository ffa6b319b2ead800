"""Backslash commands of the shell."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TextIO

from dsms.errors import DsmsError
from dsms_client import literals
from dsms_client.protocol import nearest
from dsms_client.shell import live, outside, show, variables
from dsms_client.shell.live import Screen
from dsms_client.shell.statements import Statement

DEEPEST = 16  # files that include files
HELP = {
    "\\d [name]": "what is declared, when queries are answered and how, sources and sinks and how "
    "they do; the columns of one stream, table or query",
    "\\d+ name": "also the statement that makes it again, and how it does; of users and roles what "
    "they have",
    "\\l [pattern]": "streams, tables, queries, sources and sinks, and how they do",
    "\\subscribe q [from]": "watch the results of query q as they come; Ctrl-C leaves",
    "\\watch [seconds]": "run the last statement (a one-time SELECT) again and again, every 2 s "
    "unsaid; Ctrl-C leaves",
    "\\timing [on|off]": "say how long statements take",
    "\\format [name]": "how rows are shown: table, csv, json, vertical",
    "\\x": "a line per value (vertical), or a table again",
    "\\limit [n|all]": "show at most n rows of a table, and how many more there are; unsaid 1000 "
    "at the prompt, all in scripts",
    "\\i file": "run a file of statements",
    "\\o [file]": "what is shown goes to the file; without one, here again",
    "\\e [file]": "edit the last statement, or a file, in $EDITOR, and run it",
    "\\copy x to 'file' [form]": "(SELECT ...), or all of a table, as csv, json or parquet; "
    "\\copy x from 'file' is COPY",
    "\\set [name value]": "from now on :name in statements is the value, :'name' that as a string",
    "\\unset name": "forget that",
    "\\! command": "run a command of the system",
    "\\conninfo": "which server this is, and as whom",
    "\\?": "this list (also help)",
    "\\q": "leave (also exit, quit, Ctrl-D)",
}


class Quit(Exception):
    """``\\q``."""


class Shell(Screen, Protocol):
    """What commands are about (`runner.Runner`)."""

    timing: bool
    watching: bool
    last: str | None
    problem: DsmsError | None
    depth: int
    target: TextIO | None
    most: int | None
    variables: dict[str, str]

    def complain(self, line: str) -> None: ...

    def script(self, text: str) -> bool:
        """Run a text of statements and commands; False at the first that fails."""
        ...

    def statement(self, statement: Statement) -> bool:
        """Run one statement and show its result; True if it went well."""
        ...


def run(runner: Shell, line: str) -> bool:
    """Run one backslash command; True if it went well.  Raises Quit."""
    raw = _RAW.match(line.strip())
    word, *rest = line.strip().rstrip(";").split()
    command = COMMANDS.get(word)
    if command is None and raw is None:
        hint = nearest(word, COMMANDS) or "\\? lists the commands"
        runner.complain(f"unknown command {word}\nHINT: {hint}")
        return False
    try:
        if raw is not None:
            return TEXTS[raw["word"]](runner, raw["rest"].strip())
        assert command is not None
        return command(runner, rest)
    except DsmsError as problem:
        for text in show.error(problem, ""):
            runner.complain(text)
        return False


def _describe(runner: Shell, rest: list[str]) -> bool:
    names = runner.client.names()
    evaluated = _evaluated(runner) if names["queries"] else {}
    if rest:
        went_well = runner.statement(Statement(f"DESCRIBE {rest[0]}", 1, 1, True))
        how = evaluated.get(rest[0].strip('"').lower())
        if went_well and how and runner.form == "table":
            runner.say(f"answered {how}")
        return went_well
    rows = [
        (
            kind,
            name,
            ", ".join(f"{c} {t}" for c, t in columns),
            evaluated.get(name.lower()) if kind == "query" else None,
        )
        for kind, named in (
            ("stream", names["streams"]),
            ("table", names["tables"]),
            ("query", names["queries"]),
        )
        for name, columns in named.items()
    ]
    rows += outside.connectors(runner)
    heads = ("kind", "name", "columns", "answered")
    shown = [(*row[:3], row[3] or "") for row in rows]
    for text in show.render(heads, ("STRING",) * 4, shown, runner.form):
        runner.say(text)
    return True


def _describe_more(runner: Shell, rest: list[str]) -> bool:
    if not rest:
        return _describe(runner, rest)
    plain = rest[0].strip('"')
    for kind, named in runner.client.names().items():
        if plain.casefold() in {name.casefold() for name in named}:
            one = {"queries": "query"}.get(kind, kind[:-1])
            return _describe(runner, rest) and outside.described(runner, one, rest[0])
    for kind in outside.connected(runner):
        one = kind.lower().removesuffix("s")
        if outside.how(runner, kind, one, plain):
            return outside.described(runner, one, rest[0])
    if not outside.how(runner, "USERS", "name", plain):
        return _describe(runner, rest)  # which says that there is nothing
    outside.how(runner, "GRANTS", "grantee", plain)
    return True


def _list(runner: Shell, rest: list[str]) -> bool:
    like = f" LIKE {literals.quoted(rest[0])}" if rest else ""
    kinds = ["STREAMS", "TABLES", "QUERIES", *outside.connected(runner)]
    shown = (f"SHOW {kind}{like}" for kind in kinds)
    return all(runner.statement(Statement(text, 1, 1, True)) for text in shown)


def _connection(runner: Shell, rest: list[str]) -> bool:
    runner.say(runner.client.about)
    return True


def _expanded(runner: Shell, rest: list[str]) -> bool:
    return _format(runner, ["table" if runner.form == "vertical" else "vertical"])


def _limit(runner: Shell, rest: list[str]) -> bool:
    if rest and rest[0] != "all" and not rest[0].isdecimal():
        runner.complain(f"\\limit takes a number of rows, or all, not {rest[0]}")
        return False
    if rest:
        runner.most = None if rest[0] == "all" else int(rest[0])
    runner.say("all rows are shown" if runner.most is None else f"{runner.most} rows are shown")
    return True


def _set(runner: Shell, text: str) -> bool:
    if not text:
        for name, value in sorted(runner.variables.items()):
            runner.say(f"{name} = {literals.quoted(value)}")
        return True
    name, _, value = text.partition(" ")
    if not variables.NAME.fullmatch(name):
        runner.complain(f"{name} can't be a variable: a name is letters, digits and _")
        return False
    runner.variables[name] = variables.value_of(value.strip())
    return True


def _unset(runner: Shell, rest: list[str]) -> bool:
    for name in rest:
        runner.variables.pop(name, None)
    return True


def _evaluated(runner: Shell) -> dict[str, str]:
    """By query when it is answered, and how."""
    answer = runner.client.query("SHOW QUERIES FULL")
    evaluated = {}
    for row in answer.rows:
        line = dict(zip(answer.columns, row, strict=True))
        period, path = line.get("period"), line.get("path")
        evaluated[str(line["query"]).lower()] = _when(period) + (f", path {path}" if path else "")
    return evaluated


def _when(period: str | None) -> str:
    if period is None:
        return "at each change"
    return period if period.startswith("on ") else f"every {period}"


def _quit(runner: Shell, rest: list[str]) -> bool:
    raise Quit


def _timing(runner: Shell, rest: list[str]) -> bool:
    runner.timing = rest[0].lower() == "on" if rest else not runner.timing
    runner.say(f"timing is {'on' if runner.timing else 'off'}")
    return True


def _format(runner: Shell, rest: list[str]) -> bool:
    if rest and rest[0] not in show.FORMATS:
        runner.complain(f"unknown format {rest[0]}\nHINT: formats are {', '.join(show.FORMATS)}")
        return False
    runner.form = rest[0] if rest else runner.form
    runner.say(f"format is {runner.form}")
    return True


def _help(runner: Shell, rest: list[str]) -> bool:
    for name, what in HELP.items():
        runner.say(f"  {name:<20}  {what}")
    runner.say("Statements end with ;  Ctrl-C stops a statement that runs.")
    return True


def _include(runner: Shell, rest: list[str]) -> bool:
    if not rest:
        runner.complain("\\i needs a file name")
        return False
    if runner.depth >= DEEPEST:
        runner.complain(f"{rest[0]}: files include each other too deeply")
        return False
    try:
        text = Path(rest[0]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        runner.complain(f"cannot read {rest[0]}: {problem}")
        return False
    runner.depth += 1
    try:
        return runner.script(text)
    finally:
        runner.depth -= 1


def _watch(runner: Shell, rest: list[str]) -> bool:
    try:
        period = float(rest[0]) if rest else 2.0
    except ValueError:
        runner.complain(f"\\watch takes a number of seconds, not {rest[0]}")
        return False
    if runner.last is None or period < 0:
        runner.complain(
            "there is no statement to repeat" if runner.last is None else "seconds are not negative"
        )
        return False
    statement, runner.watching = Statement(runner.last, 1, 1, True), True
    try:
        while runner.statement(statement) or _was_lost(runner):
            time.sleep(period)
            runner.say()
    except KeyboardInterrupt:
        runner.say()
        return True
    finally:
        runner.watching = False
    return False


def _was_lost(runner: Shell) -> bool:
    """The statement failed since the connection was lost: the next one waits for it."""
    return runner.problem is not None and runner.problem.code == "DS611"


def _subscribe(runner: Shell, rest: list[str]) -> bool:
    if not rest or (len(rest) > 1 and not rest[1].isdigit()):
        runner.complain(
            "\\subscribe needs the name of a query, and may have the number of the first row wanted"
        )
        return False
    live.watch(runner, rest[0], int(rest[1]) if len(rest) > 1 else None)
    return True


COMMANDS: dict[str, Callable[[Shell, list[str]], bool]] = {
    "\\d": _describe, "\\q": _quit, "\\timing": _timing, "\\format": _format, "\\?": _help,
    "\\h": _help,
    "\\i": _include, "\\watch": _watch, "\\subscribe": _subscribe, "\\s": _subscribe,
    "\\d+": _describe_more, "\\l": _list, "\\x": _expanded, "\\limit": _limit,
    "\\o": outside.output, "\\e": outside.edit, "\\unset": _unset, "\\conninfo": _connection,
}  # a table  # fmt: skip
# these take the rest of their line as it stands
TEXTS: dict[str, Callable[[Shell, str], bool]] = {
    "\\set": _set, "\\copy": outside.copy, "\\!": outside.run_outside,
}  # a table  # fmt: skip
_RAW = re.compile(r"(?P<word>\\(?:set|copy)(?=\s|;|$)|\\!)(?P<rest>.*)", re.DOTALL)
