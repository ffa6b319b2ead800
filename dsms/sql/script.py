"""A script cut into statements, without parsing: knows strings, quoted names, comments and
brackets, nothing else.

Light to import, so that a shell can tell whether to go on reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dsms.errors import QueryError

MAX_LENGTH = 1 << 20  # characters of one script
MAX_BRACKETS = 400  # open at once

_TOKEN = re.compile(
    r"""(?P<skip>\s++|--[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)
      | (?P<unclosed>/\*)
      | (?P<text>'[^']*+(?:''[^']*+)*+'|"[^"]*+(?:""[^"]*+)*+"|[^'"()\[\];/\-\s]++|[/\-])
      | (?P<open>[(\[])
      | (?P<close>[)\]])
      | (?P<end>;)
      | (?P<unclosed_quote>['"])""",
    re.VERBOSE,
)
_WORD = re.compile(
    r"(?P<skip>\s+|--[^\n]*|/\*.*?\*/)|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[^\W\d]\w*|\d[\w.]*|.",
    re.DOTALL,
)
_UNCLOSED = {
    "/*": ("comment", "close it with */"),
    "'": ("string", "close it with ', and write '' for a quote inside of it"),
    '"': ("quoted name", 'close it with ", and write "" for a quote inside of it'),
}


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement's text (with the space and comments before it), where it begins, and whether a
    `;` ended it."""

    text: str
    line: int
    column: int
    ended: bool

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of the character at `offset` of `text`."""
        before = self.text[:offset]
        lines = before.count("\n")
        return self.line + lines, offset - before.rfind("\n") if lines else self.column + offset


@dataclass(frozen=True, slots=True)
class Word:
    """A word, number, string, quoted name or single character of a statement, from `start` up to
    `end`."""

    text: str
    start: int
    end: int


def words(text: str) -> Iterator[Word]:
    """The words of a statement, without space and comments, well formed or not."""
    for match in _WORD.finditer(text):
        if match.lastgroup != "skip":
            yield Word(match[0], match.start(), match.end())


def pieces(text: str) -> Iterator[Piece]:
    """The statements of a script in order; blank ones are left out.  Raises `QueryError` (DS103,
    DS105)."""
    if len(text) > MAX_LENGTH:
        raise QueryError(
            "DS105",
            f"the script has {len(text)} characters, and {MAX_LENGTH} is the limit",
            hint="send it in parts; rows are better loaded with ingest or `dsms load`",
        )
    _check_characters(text)
    start, line, column, depth, blank = 0, 1, 1, 0, True
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "end":
            piece = Piece(text[start : token.start()], line, column, True)
            if not blank:
                yield piece
            line, column = piece.place(token.end() - start)
            start, depth, blank = token.end(), 0, True
            continue
        if kind in ("unclosed", "unclosed_quote"):
            raise _unclosed(
                Piece(text[start:], line, column, False), token.start() - start, token[0]
            )
        depth += (kind == "open") - (kind == "close")
        if depth > MAX_BRACKETS:
            place = Piece(text[start:], line, column, False).place(token.start() - start)
            raise QueryError("DS105", f"more than {MAX_BRACKETS} brackets are open here", *place)
        blank = blank and kind == "skip"
    if not blank:
        yield Piece(text[start:], line, column, False)


def _check_characters(text: str) -> None:
    """Half characters (lone surrogates) can't be stored or sent on, not even inside a string."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        place = Piece(text, 1, 1, False).place(error.start)
        shown = f"U+{ord(text[error.start]):04X}"
        raise QueryError(
            "DS104", f"{shown} is no character: the text was not decoded as UTF-8", *place
        ) from None


def _unclosed(piece: Piece, offset: int, mark: str) -> QueryError:
    what, hint = _UNCLOSED[mark]
    return QueryError("DS103", f"this {what} is not closed", *piece.place(offset), hint)


def split_statements(text: str) -> list[str]:
    """The statements as text, without the `;`.  Raises `QueryError` for an unclosed string or
    comment."""
    return [piece.text.strip() for piece in pieces(text)]


def is_complete(text: str) -> bool:
    """Whether a shell may send this: nothing is left open, and the last statement ended with `;`
    (or there is none)."""
    try:
        return all(piece.ended for piece in pieces(text))
    except QueryError as error:
        return error.code != "DS103"  # no more text mends the others: let them be reported
