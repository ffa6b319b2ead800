"""Text to AST: `parse` a script, `parse_one` statement, or take them one by one as they are run
(`statements`).

Every complaint is a `QueryError` DS1xx with line and column:

    DS101 something unexpected          DS107 a duration that can't be
    DS102 the statement ends too early  DS108 a window that can't be
    DS103 an unclosed string, comment   DS109 said twice, or contradicting
    DS104 a character of no use         DS110 known elsewhere, not here
    DS105 too long, nested too deep     DS111 not exactly one statement
    DS106 a value that can't be         DS112 not one of the words that may stand here
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator

from lark import Token
from lark.exceptions import UnexpectedInput
from lark.parsers.lalr_interactive_parser import InteractiveParser

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.foreign import alias_of, check_aliases
from dsms.sql.grammar import parser
from dsms.sql.literals import INT_MAX, bad
from dsms.sql.parameters import MARK, Parameters, without_values
from dsms.sql.script import Piece, is_complete, pieces, split_statements

__all__ = [
    "MAX_DEPTH",
    "check_depth",
    "is_complete",
    "parse",
    "parse_one",
    "parse_piece",
    "split_statements",
    "statements",
]

TOKENS = 512  # of a statement that are read in one go
SHORT = 2000  # characters of a SELECT that is known for a while
KNOWN = 256  # of them
_known: dict[tuple[str, int, int], ast.Statement] = {}
_LOOKUP = re.compile(r"\bLOOKUP\b", re.IGNORECASE)
MAX_DEPTH = 150  # nodes below each other; code that walks the tree may use recursion


def parse(text: str) -> list[ast.Statement]:
    """All statements of a script.  An error names the failing statement's index."""
    return list(statements(text))


def parse_one(text: str) -> ast.Statement:
    """The one statement of `text`, which may have been written down by an earlier version."""
    found = list(statements(text, stored=True))
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} statements" if found else "none"
    place = (found[1].pos.line, found[1].pos.column) if found else (1, 1)
    raise QueryError("DS111", f"one statement was expected here, and there are {what}", *place)


def statements(text: str, stored: bool = False) -> Iterator[ast.Statement]:
    """The statements one by one, so that those before a wrong one can run.

    A generator: the error of the n-th statement (with `statement` = n) is raised when it is asked
    for.
    """
    count = 0
    try:
        for piece in pieces(text):
            yield parse_piece(piece, stored=stored)
            count += 1
    except QueryError as error:
        error.statement = count
        raise


def parse_piece(
    piece: Piece, values: Parameters | None = None, stored: bool = False
) -> ast.Statement:
    """The statement of a piece (dsms.sql.script), with the values of its parameters; places are
    those of the whole script.  `stored`: aliases of columns may be what earlier versions took."""
    parsing = parsing_piece(piece, values, stored)
    while True:
        try:
            next(parsing)
        except StopIteration as end:
            statement: ast.Statement = end.value
            return statement


def parsing_piece(
    piece: Piece, values: Parameters | None = None, stored: bool = False
) -> Generator[None, None, ast.Statement]:
    """`parse_piece`, about TOKENS tokens at a time.  A SELECT that was parsed lately is known."""
    key = (piece.text, piece.line, piece.column)
    known = _known.get(key) if values is None and not stored else None
    if known is not None:
        return known
    try:
        statement = yield from _parsing(piece, values)
    except UnexpectedInput as error:
        from dsms.sql.complaints import complaint  # only wrong text needs it

        raise complaint(error, piece) from None
    aliases = yield from _checking(statement)
    try:
        check_aliases(aliases, piece, stored)
    except QueryError as failure:
        from dsms.sql.translated import advised

        failure.hint = advised(failure.hint, piece.text)
        raise
    short = isinstance(statement, ast.SelectStatement) and len(piece.text) <= SHORT
    if values is None and not stored and short:
        if len(_known) >= KNOWN:
            _known.clear()
        _known[key] = statement
    return statement


def _parsing(piece: Piece, values: Parameters | None) -> Generator[None, None, ast.Statement]:
    state = parser().parse_interactive(piece.text)
    counter = state.lexer_thread.state.line_ctr
    counter.line, counter.column, counter.line_start_pos = (
        piece.line,
        piece.column,
        1 - piece.column,
    )
    read, feed = 0, state.parser_state.feed_token
    open_marks = _OpenMarks(piece.text) if values is None else None
    try:
        for token in state.lexer_thread.lex(state.parser_state):
            if token.type != MARK:
                feed(token)
            elif open_marks is not None:
                open_marks.feed(feed, token)
            elif values is not None:
                _feed_value(state, token, values)
            read += 1
            if read % TOKENS == 0:
                yield
        statement: ast.Statement = state.feed_eof(state.lexer_thread.state.last_token)
        if open_marks is not None:
            open_marks.check(statement)
        return statement
    except UnexpectedInput as error:
        error.interactive_parser = state  # type: ignore[attr-defined]
        raise


class _OpenMarks:
    """Marks of a statement that comes without values: each ``?`` of a query ON LOOKUP stays open,
    numbered from 1 on, for LOOKUP to give its value."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.marks: list[Token] = []

    def feed(self, feed: Callable[[Token], object], mark: Token) -> None:
        """The mark as an expression.  Raises DS617 where it is none."""
        may_be = bool(self.marks) or _LOOKUP.search(self.text) is not None
        if not may_be or mark != "?":
            raise without_values(mark)
        self.marks.append(mark)
        try:
            feed(Token.new_borrow_pos(MARK, str(len(self.marks)), mark))
        except UnexpectedInput:
            raise without_values(mark) from None

    def check(self, statement: ast.Statement) -> None:
        """DS617: it is no query ON LOOKUP."""
        made = statement.target if isinstance(statement, ast.Explain) else statement
        if self.marks and not (isinstance(made, ast.CreateQuery) and made.on_lookup):
            raise without_values(self.marks[0])


def _feed_value(state: InteractiveParser, mark: Token, values: Parameters) -> None:
    """The constant that a parameter is, in place of its mark.  Raises DS618."""
    fed = 0
    try:
        for token in values.tokens(mark):
            state.parser_state.feed_token(token)
            fed += 1
    except UnexpectedInput:
        raise values.misplaced(mark, set() if fed else state.accepts()) from None


def check_depth(statement: ast.Statement) -> None:
    """Raise DS105 where a statement that was made of others is nested too deep."""
    for _ in _checking(statement):
        pass


def _checking(statement: ast.Node) -> Generator[None, None, list[ast.Ident]]:
    """What a single rule can't see: depth, and an INT that only a minus would have made fit.  The
    aliases in the statement."""
    level, depth, seen = [statement], 0, 0
    aliases: list[ast.Ident] = []
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise bad("DS105", level[0].pos, f"this is nested deeper than {MAX_DEPTH} levels")
        below: list[ast.Node] = []
        for node in level:
            if isinstance(node, ast.IntLit) and node.value > INT_MAX:
                raise bad(
                    "DS106", node.pos, f"the number {node.value} is too large; INT has 64 bits"
                )
            if (alias := alias_of(node)) is not None:
                aliases.append(alias)
            seen += 1
            if seen % TOKENS == 0:
                yield
            for k, child in enumerate(ast.children(node)):
                below.append(child)
                if k % TOKENS == TOKENS - 1:
                    yield
        level = below
    return aliases
