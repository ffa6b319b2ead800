"""A SELECT under construction, as a plan becomes text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from dsms.sql import ast


class Stage(IntEnum):
    """How much of a block is taken: what comes next must stand later in this list."""

    FROM = 0
    WHERE = 1
    TESTS = 2  # EXISTS and IN
    GROUP = 3
    HAVING = 4
    PROJECT = 5
    DISTINCT = 6
    DONE = 7  # set operations, appended blocks


@dataclass(slots=True)
class Block:
    """A SELECT under construction.  `items` are its columns, `leaves` the widths of its FROM
    items."""

    from_: ast.FromItem | None
    items: list[ast.Expr]
    leaves: list[int] = field(default_factory=list)
    stage: Stage = Stage.FROM
    where: list[ast.Expr] = field(default_factory=list)
    group_by: tuple[ast.Expr, ...] = ()
    having: ast.Expr | None = None
    grouped: bool = False
    distinct: bool = False
    body: ast.SetOp | None = None  # a set operation, instead of all that
    # say Istream (appended, though no window says INTERNAL), or Dstream
    append: ast.OutputKind | None = None

    def leaf_of(self, used: set[int]) -> bool:
        """Do these columns belong to one FROM item (or to none)?"""
        start = 0
        for width in self.leaves:
            if used <= set(range(start, start + width)):
                return True
            start += width
        return not used

    def query(self, names: Sequence[str]) -> ast.Select | ast.SetOp:
        """The block as a SELECT with its columns named so."""
        output = None if self.append is None else ast.Output(self.append)
        if self.body is not None:
            body = _renamed(self.body, names)
            return body if output is None else with_output(body, output)
        return ast.Select(
            tuple(_named(e, n) for e, n in zip(self.items, names, strict=True)),
            () if self.from_ is None else (self.from_,),
            all_of(self.where),
            self.group_by,
            self.having,
            self.distinct,
            output,
        )


def all_of(conditions: Sequence[ast.Expr]) -> ast.Expr | None:
    """Their conjunction; None: there are none."""
    if len(conditions) > 1:
        return ast.And(tuple(conditions))
    return conditions[0] if conditions else None


def with_output(body: ast.Select | ast.SetOp, output: ast.Output) -> ast.Select | ast.SetOp:
    """The output function, around the first select list."""
    if isinstance(body, ast.Select):
        return replace(body, output=output)
    assert isinstance(body.left, ast.Select | ast.SetOp)
    return replace(body, left=with_output(body.left, output))


def _renamed(body: ast.SetOp, names: Sequence[str]) -> ast.SetOp:
    """A set operation is named by its first SELECT."""
    left = body.left
    if isinstance(left, ast.SetOp):
        return replace(body, left=_renamed(left, names))
    assert isinstance(left, ast.Select)
    items = [
        _named(i.expr, n)
        for i, n in zip(left.items, names, strict=True)
        if isinstance(i, ast.SelectItem)
    ]
    return replace(body, left=replace(left, items=tuple(items)))


def _named(expr: ast.Expr, name: str) -> ast.SelectItem:
    if isinstance(expr, ast.ColumnRef) and expr.name.text == name:
        return ast.SelectItem(expr)
    return ast.SelectItem(expr, ast.Ident(name or "c"))
