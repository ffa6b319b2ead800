"""What a statement would answer with, and of which types its parameters are, for who asks before
it is run: drivers of other protocols do.

Nothing tells the types of parameters but what may stand in their places.  So values of each type
are tried, and the first that binds is of the type; beside a column of a type near to it, it is of
that."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import pairwise
from typing import Any

from dsms.api import Column
from dsms.commands.own_functions import plainly
from dsms.errors import DsmsError, QueryError
from dsms.forms.scalars import Instant, Length
from dsms.rights.check import check_statement
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import bind_query, check_options
from dsms.sql.expr import Call, Expr, Lit, walk
from dsms.sql.parameters import Parameters, Values
from dsms.sql.parser import parse_piece
from dsms.sql.script import Piece, pieces, words
from dsms.sql.types import Kind

_NUMBER = 7_203_685_477_580_149  # which nobody writes, nor those behind it
SAMPLES: dict[str, Any] = {  # in the order in which they are tried
    "INT": 0,
    "STRING": "x",
    "TIMESTAMP": Instant(0),
    "INTERVAL": Length(1_000_000),
    "FLOAT": 0.5,
    "BOOL": True,
    "BYTES": b"x",
    "LIST": [],
    "DECIMAL": Decimal("0.5"),
}
_CATALOG = "dsms.sql.catalog"  # the room of definitions, which hold no expressions of the plan
_ANY = "STRING"  # where any type fits, and where nothing tells it


def described(
    runtime: Runtime, text: str, user: str | None, params: Values | None = None
) -> tuple[Column, ...] | None:
    """The columns of the answer to a SELECT; None for other statements, whose answers nobody knows
    before.  It is bound with the user's rights, and not run.  Raises what that raises."""
    bound = _bound(runtime, _only(text), user, params, text)
    if bound is None:
        return None
    return tuple(Column(field.name, str(field.type)) for field in bound.schema)


def parameter_types(
    runtime: Runtime, text: str, user: str | None, known: Sequence[str | None]
) -> Generator[None, None, tuple[str, ...]]:
    """The SQL types of $1, $2, ...; `known`: those that were said already.  DECIMAL has no digits
    here, and LIST no item.  Piece by piece: others may come in between."""
    values: list[Any] = [None if name is None else SAMPLES.get(name, "x") for name in known]
    piece, open_ones = _only(text), [k for k, name in enumerate(known) if name is None]
    with suppress(DsmsError):
        _let_them_stand(piece, text, values, open_ones)
    found = [name or _ANY for name in known]
    for k in open_ones:
        yield from _fitting(runtime, piece, text, user, values, k)
    for k in open_ones:
        found[k] = _type_of(runtime, piece, text, user, values, k)
        yield
    return tuple(found)


def _only(text: str) -> Piece:
    found = list(pieces(text))
    if len(found) != 1:
        raise QueryError("DS111", f"one statement was expected here, and there are {len(found)}")
    return found[0]


def _bound(
    runtime: Runtime, piece: Piece, user: str | None, params: Values | None, text: str
) -> lp.Output | None:
    values = None if params is None else Parameters(params, text)
    statement = parse_piece(piece, values)
    catalog = check_statement(runtime.rights, runtime.catalog, user, statement)
    statement, _ = plainly(statement, piece.text, catalog)
    if not isinstance(statement, ast.SelectStatement):
        return None
    check_options(statement.options, "select")
    return bind_query(statement, catalog, persistent=False)


def _let_them_stand(piece: Piece, text: str, values: list[Any], open_ones: list[int]) -> None:
    """Where no NULL can stand, as in LIMIT, try others until the statement can be read."""
    untried = {k: list(SAMPLES.values()) for k in open_ones}
    for _ in range(len(open_ones) * len(SAMPLES) + 1):
        try:
            parse_piece(piece, Parameters(values, text))
            return
        except QueryError as problem:
            number = _mark_at(piece, problem)
        except DsmsError as problem:
            number = _mark_at(piece, problem) if problem.code == "DS618" else None
        if number is None or not untried.get(number):
            return
        values[number] = untried[number].pop(0)


def _mark_at(piece: Piece, problem: DsmsError) -> int | None:
    """The parameter at which it was raised, from 0 on."""
    found = list(words(piece.text))
    for one, then in pairwise(found):
        if one.text == "$" and piece.place(one.start) == (problem.line, problem.column):
            return int(then.text) - 1 if then.text.isdigit() else None
    return None


def _fitting(
    runtime: Runtime, piece: Piece, text: str, user: str | None, values: list[Any], k: int
) -> Generator[None, None, None]:
    """Give parameter `k` a value with which the statement binds, if there is one."""
    had, fits = values[k], list[str]()
    for name, sample in SAMPLES.items():
        # where INT or STRING fits, nothing but the other of them says more
        if fits and (name != _ANY or fits != ["INT"]):
            break
        values[k] = _NUMBER + k if name == "INT" else sample
        if _binds(runtime, piece, text, user, values):
            fits.append(name)
        yield
    values[k] = had
    if fits:
        name = fits[-1]
        values[k] = _NUMBER + k if name == "INT" else SAMPLES[name]


def _binds(
    runtime: Runtime, piece: Piece, text: str, user: str | None, values: Sequence[Any]
) -> bool:
    try:
        return _bound(runtime, piece, user, values, text) is not None
    except DsmsError:
        return False


def _type_of(
    runtime: Runtime, piece: Piece, text: str, user: str | None, values: list[Any], k: int
) -> str:
    number = _NUMBER + k
    if isinstance(values[k], int) and not isinstance(values[k], bool):
        values = [*values[:k], number, *values[k + 1 :]]
        with suppress(DsmsError):
            return _beside(_bound(runtime, piece, user, values, text), number) or "INT"
        return "INT"
    return next((name for name, sample in SAMPLES.items() if values[k] is sample), _ANY)


def _beside(bound: lp.Output | None, number: int) -> str | None:
    """FLOAT or DECIMAL, where the number stands beside something of that type."""
    for expr in _expressions(bound):
        for call in walk(expr):
            if not isinstance(call, Call) or not any(_holds(arg, number) for arg in call.args):
                continue
            kinds = {arg.type.kind for arg in call.args}
            for kind in (Kind.FLOAT, Kind.DECIMAL):
                if kind in kinds:
                    return kind.value
    return None


def _holds(expr: Expr, number: int) -> bool:
    return any(
        isinstance(e, Lit) and isinstance(e.value, int | float | Decimal) and e.value == number
        for e in walk(expr)
    )


def _expressions(part: Any) -> Iterator[Expr]:
    """All expressions of a plan, wherever they stand in it."""
    if isinstance(part, Call):
        yield part
    elif isinstance(part, tuple):
        for one in part:
            yield from _expressions(one)
    elif _is_of_a_plan(part):
        for field in dataclasses.fields(part):
            yield from _expressions(getattr(part, field.name))


def _is_of_a_plan(part: Any) -> bool:
    room = type(part).__module__
    return dataclasses.is_dataclass(part) and room.startswith("dsms.sql.") and room != _CATALOG
