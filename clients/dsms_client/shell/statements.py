"""Where statements end: at a ``;`` outside quotes and comments.  `help`, `exit` and `quit` are
commands where a statement could begin, in a line of their own or before a ``;``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

# a piece that may hold a `;` which ends nothing; an unclosed one runs to the end of the text
_TOKEN = re.compile(
    r"""'(?:[^']|'')*(?:'|$)|"(?:[^"]|"")*(?:"|$)|--[^\n]*|/\*.*?(?:\*/|$)|;""", re.DOTALL
)
_BLANK = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)


WORDS = {"help": "\\?", "exit": "\\q", "quit": "\\q"}  # the commands that are meant


@dataclass(frozen=True, slots=True)
class Statement:
    """`text` without the ``;``; `line` (from 1) and `column` (from 1) of its first character in the
    whole text."""

    text: str
    line: int
    column: int
    ended: bool  # by a `;`, not by the end of the text


def split(text: str) -> list[Statement]:
    """The statements of a script; pieces of blanks and comments only are left out."""
    out, start = [], 0
    for token in _TOKEN.finditer(text):
        if token[0] == ";":
            out.append(_statement(text, start, token.start(), True))
            start = token.end()
    out.append(_statement(text, start, len(text), False))
    return [s for s in out if s is not None]


def _statement(text: str, start: int, stop: int, ended: bool) -> Statement | None:
    blank = _BLANK.match(text, start, stop)
    first = blank.end() if blank else start
    if first >= stop:
        return None
    line = text.count("\n", 0, first) + 1
    return Statement(
        text[first:stop].rstrip(), line, first - (text.rfind("\n", 0, first) + 1) + 1, ended
    )


def script(text: str) -> Iterator[Statement | str]:
    """The statements of a text and, as they are, its lines that begin with a backslash (outside
    quotes); words that are commands as the commands."""
    buffer: list[str] = []
    first = 1
    for number, line in enumerate(text.split("\n"), 1):
        command = _command(line, buffer)
        if command is None:
            buffer.append(line)
            continue
        yield from _pieces(buffer, first)
        yield command
        buffer, first = [], number + 1
    yield from _pieces(buffer, first)


def _command(line: str, before: list[str]) -> str | None:
    """The command that a line is."""
    if line.startswith("\\"):
        return None if _open("\n".join(before)) else line
    word = _word(line)
    return WORDS[word] if word in WORDS and complete("\n".join(before)) else None


def _word(text: str) -> str:
    return text.strip().removesuffix(";").rstrip().lower()


def _pieces(lines: list[str], first: int) -> Iterator[Statement | str]:
    for statement in split("\n".join(lines)):
        word = WORDS.get(statement.text.lower())
        yield word if word is not None else replace(statement, line=statement.line + first - 1)


def complete(text: str) -> bool:
    """Whether typed text may be run: a command, nothing at all, or statements that all end with
    ``;``."""
    if text.lstrip().startswith("\\") or _word(text) in WORDS:
        return True
    pieces = split(text)
    return all(s.ended or s.text.lower() in WORDS for s in pieces) and not _open(text)


def _open(text: str) -> bool:
    """Whether a quote or a comment is open at the end."""
    last = None
    for token in _TOKEN.finditer(text):
        last = token[0]
    if last is None or last == ";":
        return False
    if last.startswith("/*"):
        return not last.endswith("*/") or len(last) < 4
    if last[0] in "'\"":
        return len(last) < 2 or not last.endswith(last[0])
    return False
