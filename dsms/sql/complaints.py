"""What is wrong with a text that does not parse, in words a user knows.

In order: a word that, spelled right, lets the parse go on; a known mistake (dsms.sql.mistakes);
what the neighbouring words, the order of clauses and the brackets say; else what was expected.
Only wrong text comes here, so a few more parses cost nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lark.exceptions import UnexpectedInput, UnexpectedToken

from dsms.errors import QueryError
from dsms.sql.ast import Pos
from dsms.sql.expected import expectation
from dsms.sql.foreign import condition_there, foreign_word
from dsms.sql.grammar import keywords, parser, reserved
from dsms.sql.literals import UNIT_WORDS, unit
from dsms.sql.mistakes import known_mistake
from dsms.sql.script import Piece, Word, words
from dsms.sql.suggest import ranked
from dsms.sql.translated import advised

_TRIED = 4  # spellings tried per word
_LONG = 20_000  # characters past which no other spelling is tried
_CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET")
_BEGINNINGS = frozenset(
    (
        "SELECT",
        "CREATE",
        "DROP",
        "DESCRIBE",
        "SHOW",
        "INSERT",
        "UPDATE",
        "DELETE",
        "EXPLAIN",
        "SET",
        "LOOKUP",
        "ALTER",
        "GRANT",
        "REVOKE",
    )
) | {"CANCEL", "CLOSE"}
_TYPES = frozenset(
    (
        *("BOOL", "INT", "FLOAT", "DECIMAL", "STRING", "BYTES", "TIMESTAMP", "INTERVAL"),
        *("DATE", "TIME", "UUID", "LIST", "STRUCT"),
    )
)
_STRAY = {
    "`": 'names are quoted with double quotes: "name"',
    "“": "this is a typographic quote; write ' or \"",
    "”": "this is a typographic quote; write ' or \"",
    "‘": "this is a typographic quote; write '",
    "’": "this is a typographic quote; write '",
    "$": "parameters are written $1, $2, ...; or ?; or :name",
    "@": "statements take no variables; write the value",
    "!": "write NOT, or <> for unequal",
    "&": "write AND; there are no functions of bits",
    "|": "write OR, or || to join strings; there are no functions of bits",
    "#": "comments begin with --",
    "\x00": "the text holds a NUL character: is it binary?",
    "\ufeff": "remove the byte order mark",
    "~": "write REGEXP_MATCHES(a, 'regex')",
    "^": "a power is written POWER(a, b)",
    "{": "windows stand in [ ], lists in ( )",
    ":": "a cast is written x::TYPE, an option name = value",
    "\\": "commands of the shell stand alone on a line",
}


# `s#length(5)` of Esper
_AS_WINDOW = re.compile(r"#\w+(?::\w+)?\s*\(")
_WINDOW = "windows stand in brackets, behind the stream: FROM s [RANGE 10 s], FROM s [ROWS 5]"
NOT_KNOWN = "is not known here"


@dataclass(frozen=True, slots=True)
class _Failure:
    """Where a parse stopped: at `word` (empty at the end), after the words `before`; what would
    have gone on."""

    error: UnexpectedToken
    piece: Piece
    word: str
    offset: int
    before: tuple[Word, ...]
    accepts: frozenset[str]

    @property
    def last(self) -> Word:
        return self.before[-1] if self.before else Word("", 0, 0)

    def at(
        self, code: str, message: str, hint: str | None, offset: int | None = None
    ) -> QueryError:
        place = self.piece.place(self.offset if offset is None else offset)
        return QueryError(code, message, *place, hint)

    @property
    def found(self) -> str:
        return _shown(self.word) if self.word else "the end"


def complaint(error: UnexpectedInput, piece: Piece) -> QueryError:
    """The error to show for a parse that failed; where the statement is one of another system, with
    what it is here."""
    found = _complaint(error, piece)
    found.hint = advised(found.hint, piece.text)
    return found


def _complaint(error: UnexpectedInput, piece: Piece) -> QueryError:
    if not isinstance(error, UnexpectedToken):
        return _stray(piece, error.pos_in_stream or 0)
    failure = _failure(error, piece)
    for explain in (
        _array,
        _condition,
        _foreign,
        _respelled,
        _known,
        _unit,
        _reserved,
        _misplaced,
        _next_statement,
        _unbalanced,
    ):
        found = explain(failure)
        if found is not None:
            return found
    return _plain(failure, None)


def _failure(error: UnexpectedToken, piece: Piece) -> _Failure:
    ended = error.token.type == "$END"
    before = [w for w in words(piece.text) if ended or w.start < (error.token.start_pos or 0)]
    offset = before[-1].end if ended and before else error.token.start_pos or 0
    word = "" if ended else str(error.token)
    return _Failure(
        error, piece, word, offset, tuple(before), frozenset(error.interactive_parser.accepts())
    )


# ---------------------------------------------------------------- no token at all


def _stray(piece: Piece, offset: int) -> QueryError:
    char = piece.text[offset]
    if char.isdigit() or char == ".":
        found = re.compile(r"[\w.]+").match(piece.text, offset)
        word = _shown(found[0] if found else char)
        if word[:-1].isdigit() and word[-1] in "mM":
            hint = f"write {word[:-1]} min, or {word[:-1]} MONTHS"
            return QueryError("DS107", "'m' may be minutes or months", *piece.place(offset), hint)
        hint = _in_digits(word) or _QUOTED
        return QueryError(
            "DS104", f"{word} is neither a number nor a name", *piece.place(offset), hint
        )
    shown = char if char.isprintable() else f"U+{ord(char):04X}"
    return QueryError(
        "DS104",
        f"the character {shown} has no meaning here",
        *piece.place(offset),
        _STRAY.get(char) if _AS_WINDOW.match(piece.text, offset) is None else _WINDOW,
    )


_QUOTED = 'a name that begins with a digit is written in double quotes: "..."'


def _in_digits(word: str) -> str | None:
    """For `1_000` or `0x1F`: the number as it is written here."""
    if re.fullmatch(r"0x[0-9a-f]+|0o[0-7]+|0b[01]+", word, re.IGNORECASE):
        return f"numbers are written in decimal digits, {int(word, 0)}; bytes are X'0aff'"
    if re.fullmatch(r"[0-9]+(_[0-9]+)+(\.[0-9]+)?", word):
        return f"numbers are written without _: {word.replace('_', '')}"
    return None


# ---------------------------------------------------------------- a slip of the fingers


def _respelled(failure: _Failure) -> QueryError | None:
    """The failing word, or the one before, is nearly a keyword with which the parse goes
    further."""
    if len(failure.piece.text) > _LONG:
        return None
    for word, offset in ((failure.word, failure.offset), (failure.last.text, failure.last.start)):
        if not word.isidentifier() or word.upper() in (*keywords(), *_TYPES):
            continue
        known = [*keywords(), *(UNIT_WORDS if "TIME_UNIT" in failure.accepts else ())]
        for guess in ranked(word, known)[:_TRIED]:
            if _goes_further(failure, word, offset, guess):
                wrong = f"{_shown(word)} can't stand here"
                return failure.at(
                    "DS101",
                    _with(wrong, _expected(failure, offset)),
                    f"did you mean {guess}?",
                    offset,
                )
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


def _array(failure: _Failure) -> QueryError | None:
    """`a[1]` behind an alias, `s[1]` in FROM: no window begins so."""
    if (
        failure.word != "["
        or failure.last.text.upper() == "ARRAY"
        or not re.compile(r"\s*(\]|[0-9]+\s*[\]:,]|')").match(
            failure.piece.text, failure.offset + 1
        )
    ):
        return None
    return _plain(failure, "an item of a list stands behind it, l[1]; windows begin with a word")


def _condition(failure: _Failure) -> QueryError | None:
    """ON or USING behind a join that has its condition."""
    found = condition_there(failure.word, [w.text for w in failure.before])
    return None if found is None else failure.at("DS101", *found)


def _foreign(failure: _Failure) -> QueryError | None:
    """A word of another system: the failing one, or the one before if it was taken for a name."""
    before = [w.text for w in failure.before]
    found = foreign_word(failure.word, before, in_from=bool(failure.accepts & {"JOIN", "ON"}))
    if found is None:
        return None
    back, word, hint = found
    offset = failure.before[-back].start if back else failure.offset
    return failure.at("DS110", f"{word} {NOT_KNOWN}", hint, offset)


def _known(failure: _Failure) -> QueryError | None:
    mistake = known_mistake(failure.error, failure.last.text)
    if mistake is None:
        return None
    code = "DS101" if failure.word else "DS102"
    if mistake.message.endswith(NOT_KNOWN):
        code = "DS110"
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
    if failure.word.upper() in _CLAUSES and failure.last.text in (",", "AS"):
        return None
    if (
        failure.word.upper() not in reserved()
        or not {"NAME", "QUOTED"} <= failure.accepts
        or "AS" in failure.accepts
    ):
        return None
    following = failure.piece.text[failure.offset + len(failure.word) :].lstrip()[:1]
    if "INT" in failure.accepts and following not in (
        "",
        ",",
        ")",
        "=",
        "<",
        ">",
        "+",
        "-",
        "*",
        "/",
        ".",
    ):
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
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if depth > 0:
            return None
        other = token.text.upper()
        if depth == 0 and other in _CLAUSES:
            if other == word:
                return failure.at("DS109", f"{word} is said twice", None)
            if _CLAUSES.index(other) > rank:
                return failure.at(
                    "DS101",
                    f"{word} stands before {other}",
                    "order: " + " ".join(_CLAUSES[:6]) + "; ORDER BY and LIMIT close the query",
                )
            return None
    return None


def _next_statement(failure: _Failure) -> QueryError | None:
    if failure.word.upper() in _BEGINNINGS and "$END" in failure.accepts:
        return _plain(failure, f"a ; is missing before {failure.word}")
    return None


def _unbalanced(failure: _Failure) -> QueryError | None:
    """A bracket without its partner."""
    opened: list[Word] = []
    for token in failure.before:
        if token.text in ("(", "["):
            opened.append(token)
        elif token.text in (")", "]") and opened:
            opened.pop()
    if failure.word in (")", "]") and not opened:
        return failure.at("DS101", f"this {failure.word} closes nothing", None)
    closing = {"RPAR": "(", "RSQB": "["}
    if (
        opened
        and _stays_open(failure, opened[-1])
        and any(
            opened[-1].text == mark and name in failure.accepts for name, mark in closing.items()
        )
    ):
        line, column = failure.piece.place(opened[-1].start)
        return _plain(
            failure, f"the {opened[-1].text} at line {line}, column {column} is not closed"
        )
    return None


def _stays_open(failure: _Failure, bracket: Word) -> bool:
    """Whether what follows doesn't close it either."""
    depth = 0
    for token in words(failure.piece.text):
        if token.start >= bracket.start:
            depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
            if depth == 0:
                return False
    return True


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
