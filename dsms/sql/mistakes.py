"""Common mistakes, each a broken snippet: a text that breaks at the same point of the grammar gets
its message.

A snippet of mistakes.txt fails in some state of the parser (its two topmost, to be exact) on some
token; the text at hand is the same mistake if it fails in the same state on a token of the same
kind.  To add one, write the snippet and what to say about it; the tests check that every snippet
reaches its own mistake.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

from lark.exceptions import UnexpectedInput, UnexpectedToken

from dsms.errors import QueryError
from dsms.sql.grammar import keywords, parser


@dataclass(frozen=True, slots=True)
class Mistake:
    """`message` may name the offending text as {found}."""

    message: str
    hint: str | None
    snippets: tuple[str, ...]
    # only if one of these words, upper case, stands before the failing one
    after: tuple[str, ...] = ()


Signature = tuple[int, int, str]


@cache
def mistakes() -> tuple[Mistake, ...]:
    """All of mistakes.txt."""
    text = resources.files("dsms.sql").joinpath("mistakes.txt").read_text(encoding="utf-8")
    _, *blocks = text.strip().split("\n\n")
    return tuple(map(_mistake, blocks))


def _mistake(block: str) -> Mistake:
    message, *lines = block.splitlines()
    marked = {line[0]: line[2:] for line in lines if line[0] in "?<"}
    return Mistake(
        message,
        marked.get("?"),
        tuple(line.strip() for line in lines if line[0] == " "),
        tuple(marked.get("<", "").split()),
    )


def ready() -> None:
    """Have the table of mistakes, which takes as long as to parse them all."""
    _table()


@cache
def _table() -> dict[tuple[Signature, str | None], Mistake]:
    table: dict[tuple[Signature, str | None], Mistake] = {}
    for mistake in mistakes():
        for snippet in mistake.snippets:
            try:
                parser().parse(snippet)
            except UnexpectedToken as error:
                for word in mistake.after or (None,):
                    table.setdefault((signature(error), word), mistake)
            except (UnexpectedInput, QueryError):
                continue
    return table


def signature(error: UnexpectedToken) -> Signature:
    """Where the parser failed, and on what kind of token (a keyword may have been read as a
    name)."""
    stack = error.interactive_parser.parser_state.state_stack
    word = error.token.upper()
    return (
        stack[-1],
        stack[-2] if len(stack) > 1 else 0,
        word if word in keywords() else error.token.type,
    )


def known_mistake(error: UnexpectedToken, before: str) -> Mistake | None:
    """The mistake that breaks the grammar as this error does; `before` is the word before the
    failing one."""
    key = signature(error)
    return _table().get((key, before.upper())) or _table().get((key, None))
