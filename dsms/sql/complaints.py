"""What is wrong with a text that does not parse, in words a user knows.

In order: a word that, spelled right, lets the parse go on; a known mistake (dsms.sql.mistakes); what the neighbouring
words, the order of clauses and the brackets say; else what was expected.  Only wrong text comes here, so a few more
parses cost nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lark import Token
from lark.exceptions import UnexpectedInput, UnexpectedToken

from dsms.errors import QueryError
from dsms.sql.ast import Pos
from dsms.sql.expected import expectation
from dsms.sql.grammar import keywords, parser, reserved
from dsms.sql.literals import UNIT_WORDS, unit
from dsms.sql.mistakes import known_mistake
from dsms.sql.script import Piece
from dsms.sql.suggest import ranked

_TRIED = 4  # spellings tried per word
_LONG = 20_000  # characters past which no other spelling is tried
_CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET")
_BEGINNINGS = frozenset(
    ("SELECT", "CREATE", "DROP", "DESCRIBE", "SHOW", "INSERT", "UPDATE", "DELETE", "EXPLAIN", "SET", "LOOKUP")
)
_TYPES = frozenset(("BOOL", "INT", "FLOAT", "DECIMAL", "STRING", "BYTES", "TIMESTAMP", "INTERVAL"))
_WORD = re.compile(
    r"(?P<skip>\s+|--[^\n]*|/\*.*?\*/)|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[^\W\d]\w*|\d[\w.]*|.", re.DOTALL
)
_STRAY = {
    "`": 'names are quoted with double quotes: "name"',
    "“": "this is a typographic quote; write ' or \"",
    "”": "this is a typographic quote; write ' or \"",
    "‘": "this is a typographic quote; write '",
    "’": "this is a typographic quote; write '",
    "?": "statements take no parameters; write the value",
    "$": "statements take no parameters; write the value",
    "@": "statements take no variables; write the value",
    "!": "write NOT, or <> for unequal",
    "&": "write AND",
    "|": "write OR, or || to join strings",
    "#": "comments begin with --",
    "\x00": "the text holds a NUL character: is it binary?",
    "\ufeff": "remove the byte order mark",
    "^": "a power is written POWER(a, b)",
    "{": "windows stand in [ ], lists in ( )",
    ":": "a cast is written x::TYPE, an option name = value",
    "\\": "commands of the shell stand alone on a line",
}
_FOREIGN = {  # words of other dialects, and what is written here
    "ALTER": "drop it and create it again",
    "ANY SOME": "write IN (query), or EXISTS",
    "BEGIN COMMIT ROLLBACK TRANSACTION": "each statement stands alone: it happens as a whole or not at all",
    "CHECK DEFAULT REFERENCES UNIQUE": "columns take NOT NULL and PRIMARY KEY",
    "DESC": "write DESCRIBE",
    "EMIT": "what is pushed is said around the select list: Istream(...), Dstream(...), Rstream(...)",
    "EVERY STEP ADVANCE": "write SLIDE, for example [RANGE 10 min SLIDE 1 min]",
    "HELP": "grammar/reference.md explains the language",
    "ILIKE": "write lower(a) LIKE 'x'",
    "INDEX": "the engine chooses its indices",
    "LAST PRECEDING FOLLOWING CURRENT": "a window reaches back from now: [RANGE 10 min] or [ROWS 10]",
    "MATERIALIZED VIEW": "write CREATE QUERY name AS SELECT ...",
    "MINUS": "write EXCEPT",
    "NATURAL": "write JOIN ... USING (columns)",
    "REPLACE": "write DROP ... IF EXISTS before it",
    "TOP": "write LIMIT n at the end",
    "TRUNCATE": "write DELETE FROM",
    "TUMBLE TUMBLING HOP HOPPING SLIDING SESSION SIZE": "write [RANGE t] or [RANGE t SLIDE s]",
    "USE DATABASE SCHEMA": "there is one name space, and nothing to choose",
}
_INSTEAD = {word: instead for words, instead in _FOREIGN.items() for word in words.split()}


@dataclass(frozen=True, slots=True)
class _Failure:
    """Where a parse stopped: at `word` (empty at the end), after the words `before`; what would have gone on."""

    error: UnexpectedToken
    piece: Piece
    word: str
    offset: int
    before: tuple[Token, ...]
    accepts: frozenset[str]

    @property
    def last(self) -> Token:
        return self.before[-1] if self.before else Token("NONE", "", 0)

    def at(self, code: str, message: str, hint: str | None, offset: int | None = None) -> QueryError:
        place = self.piece.place(self.offset if offset is None else offset)
        return QueryError(code, message, *place, hint)

    @property
    def found(self) -> str:
        return _shown(self.word) if self.word else "the end"


def complaint(error: UnexpectedInput, piece: Piece) -> QueryError:
    """The error to show for a parse that failed."""
    if not isinstance(error, UnexpectedToken):
        return _stray(piece, error.pos_in_stream or 0)
    failure = _failure(error, piece)
    for explain in (_respelled, _foreign, _known, _unit, _reserved, _misplaced, _next_statement, _unbalanced):
        found = explain(failure)
        if found is not None:
            return found
    return _plain(failure, None)


def _failure(error: UnexpectedToken, piece: Piece) -> _Failure:
    ended = error.token.type == "$END"
    words = [t for t in _words(piece.text) if ended or t.start_pos < (error.token.start_pos or 0)]
    offset = words[-1].end_pos if ended and words else error.token.start_pos or 0
    word = "" if ended else str(error.token)
    return _Failure(error, piece, word, offset, tuple(words), frozenset(error.interactive_parser.accepts()))


def _words(text: str) -> Iterator[Token]:
    for match in _WORD.finditer(text):
        if match.lastgroup != "skip":
            yield Token("WORD", match[0], match.start(), end_pos=match.end())


# ---------------------------------------------------------------- no token at all


def _stray(piece: Piece, offset: int) -> QueryError:
    char = piece.text[offset]
    if char.isdigit() or char == ".":
        found = re.compile(r"[\w.]+").match(piece.text, offset)
        word = _shown(found[0] if found else char)
        hint = 'a name that begins with a digit is written in double quotes: "..."'
        return QueryError("DS104", f"{word} is neither a number nor a name", *piece.place(offset), hint)
    shown = char if char.isprintable() else f"U+{ord(char):04X}"
    return QueryError("DS104", f"the character {shown} has no meaning here", *piece.place(offset), _STRAY.get(char))


# ---------------------------------------------------------------- a slip of the fingers


def _respelled(failure: _Failure) -> QueryError | None:
    """The failing word, or the one before, is nearly a keyword with which the parse goes further."""
    if len(failure.piece.text) > _LONG:
        return None
    for word, offset in ((failure.word, failure.offset), (str(failure.last), failure.last.start_pos or 0)):
        if not word.isidentifier() or word.upper() in (*keywords(), *_TYPES):
            continue
        known = [*keywords(), *(UNIT_WORDS if "TIME_UNIT" in failure.accepts else ())]
        for guess in ranked(word, known)[:_TRIED]:
            if _goes_further(failure, word, offset, guess):
                wrong = f"{_shown(word)} can't stand here"
                return failure.at("DS101", _with(wrong, _expected(failure, offset)), f"did you mean {guess}?", offset)
    return None


def _goes_further(failure: _Failure, word: str, offset: int, guess: str) -> bool:
    text = failure.piece.text
    tried = text[:offset] + guess + text[offset + len(word) :]
    reached = failure.offset + len(failure.word) + len(guess) - len(word)
    try:
        parser().parse(tried)
    except UnexpectedInput as error:
        token = getattr(error, "token", None)
        if token is not None and token.type == "$END":
            return bool(failure.word)
        return (error.pos_in_stream or 0) >= reached
    except QueryError:
        return True
    return True


def _expected(failure: _Failure, offset: int) -> str:
    """What was expected at `offset`: known for the failing word only."""
    return expectation(failure.accepts) if offset == failure.offset else ""


# ---------------------------------------------------------------- known mistakes and neighbours


def _foreign(failure: _Failure) -> QueryError | None:
    """A word of another dialect: the failing one, or the one before if it was taken for a name."""
    last = failure.last.upper()
    word, offset = failure.word, failure.offset
    if word.upper() not in _INSTEAD and last in _INSTEAD and last not in keywords():
        word, offset = str(failure.last), failure.last.start_pos or 0
    if word.upper() not in _INSTEAD:
        return None
    return failure.at("DS101", f"{word} is not known here", _INSTEAD[word.upper()], offset)


def _known(failure: _Failure) -> QueryError | None:
    mistake = known_mistake(failure.error, failure.last)
    if mistake is None:
        return None
    code = "DS101" if failure.word else "DS102"
    return failure.at(code, mistake.message.format(found=failure.found), mistake.hint)


def _unit(failure: _Failure) -> QueryError | None:
    """A word where a unit of time may stand: blame it as a unit."""
    if "TIME_UNIT" not in failure.accepts or failure.error.token.type != "NAME":
        return None
    try:
        unit(failure.word, Pos(*failure.piece.place(failure.offset)))
    except QueryError as error:
        return error
    return None


def _reserved(failure: _Failure) -> QueryError | None:
    """A reserved word where a name is expected."""
    if failure.word.upper() in _CLAUSES and failure.last in (",", "AS"):
        return None
    if failure.word.upper() not in reserved() or not {"NAME", "QUOTED"} <= failure.accepts or "AS" in failure.accepts:
        return None
    following = failure.piece.text[failure.offset + len(failure.word) :].lstrip()[:1]
    if "INT" in failure.accepts and following not in ("", ",", ")", "=", "<", ">", "+", "-", "*", "/", "."):
        return None  # an expression was to begin, and this looks like the next clause
    hint = f'{failure.word} is a reserved word; as a name it is written "{failure.word}"'
    return _plain(failure, hint)


def _misplaced(failure: _Failure) -> QueryError | None:
    """A clause that comes after one it should precede."""
    word = failure.word.upper()
    if word not in _CLAUSES[1:] or word in failure.accepts:
        return None
    rank, depth = _CLAUSES.index(word), 0
    for token in reversed(failure.before):
        depth += (token in ("(", "[")) - (token in (")", "]"))
        if depth > 0:
            return None
        other = token.upper()
        if depth == 0 and other in _CLAUSES:
            if other == word:
                return failure.at("DS109", f"{word} is said twice", None)
            if _CLAUSES.index(other) > rank:
                return failure.at("DS101", f"{word} stands before {other}", "order: " + " ".join(_CLAUSES[:6]) +
                                  "; ORDER BY and LIMIT close the query")  # fmt: skip
            return None
    return None


def _next_statement(failure: _Failure) -> QueryError | None:
    if failure.word.upper() in _BEGINNINGS and "$END" in failure.accepts:
        return _plain(failure, f"a ; is missing before {failure.word}")
    return None


def _unbalanced(failure: _Failure) -> QueryError | None:
    """A bracket without its partner."""
    opened: list[Token] = []
    for token in failure.before:
        if token in ("(", "["):
            opened.append(token)
        elif token in (")", "]") and opened:
            opened.pop()
    if failure.word in (")", "]") and not opened:
        return failure.at("DS101", f"this {failure.word} closes nothing", None)
    closing = {"RPAR": "(", "RSQB": "["}
    if opened and any(opened[-1] == mark and name in failure.accepts for name, mark in closing.items()):
        line, column = failure.piece.place(opened[-1].start_pos or 0)
        return _plain(failure, f"the {opened[-1]} at line {line}, column {column} is not closed")
    return None


# ---------------------------------------------------------------- the rest


def _plain(failure: _Failure, hint: str | None) -> QueryError:
    expected = expectation(failure.accepts)
    if not failure.word:
        return failure.at("DS102", _with("the statement ends too early", expected), hint)
    return failure.at("DS101", _with(f"{failure.found} can't stand here", expected), hint)


def _with(message: str, expected: str) -> str:
    return f"{message}: {expected}" if expected else message


def _shown(word: str) -> str:
    word = word if len(word) <= 40 else word[:37] + "..."
    return word if word.isprintable() else ascii(word)
