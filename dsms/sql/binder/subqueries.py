"""EXISTS, NOT EXISTS, IN and NOT IN as conditions of WHERE: semi joins and the thesis's negation.

An OR of a plain condition and such tests is two disjoint parts of the rows: those of which the
condition is true, and, of the others, those that pass the tests.  Each row stays in its part.

A simple subquery (no grouping) is absorbed: its FROM becomes the right side, conditions over its
own columns stay there, those that also read the outer query's columns become keys or the residual
of the semi join.  Any other subquery is bound whole, and can't be correlated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder import match
from dsms.sql.binder.aggregates import has_aggregate
from dsms.sql.binder.calls import COMPARE, call
from dsms.sql.binder.conditions import Choice, Test, as_test, parts, values_in
from dsms.sql.binder.context import Block, BlockInput, Context
from dsms.sql.binder.copies import again
from dsms.sql.binder.expressions import Env, bind, bind_condition, condition, negation
from dsms.sql.binder.from_clause import bind_from
from dsms.sql.binder.groups import Item, Leaf, split
from dsms.sql.binder.joins import Built, build, select_over, settle_tables
from dsms.sql.binder.over import of_select
from dsms.sql.binder.properties import append_only, reads_stream, strict
from dsms.sql.binder.scalar_queries import with_values
from dsms.sql.binder.scope import Scope, star
from dsms.sql.binder.semi_joins import semi_join, table_test, together
from dsms.sql.codes import error
from dsms.sql.expr import Call, Col, Expr, Lit, columns, conjunction, conjuncts, rewrite
from dsms.sql.logical import Node, Select, SemiJoin, Union
from dsms.sql.types import BOOL

Values = Mapping[ast.Expr, Expr]  # what reads the value of each


def bind_tests(
    ctx: Context,
    block: Block,
    left: Node,
    scope: Scope,
    tests: Sequence[Test | Choice],
    values: Values,
) -> Node:
    """The rows of `left` that pass all tests; `scope` are the names over `left`, whose columns
    `values` reads.  Raises DS380 for a choice that is none between parts of the rows."""
    for test in tests:
        if isinstance(test, Choice):
            left = _choice(ctx, block, left, scope, test, values)
        else:
            left = _test(ctx, block, left, scope, test)
    return left


def _choice(
    ctx: Context, block: Block, left: Node, scope: Scope, choice: Choice, values: Values
) -> Node:
    if block.internal or any(s.internal for s in block.sources):
        message = "INTERNAL windows append results, and an OR with subqueries is a union of them"
        raise error("DS380", message, choice.at, "write a UNION ALL of two queries")
    if not choice.plain:
        return _any_of(ctx, block, left, scope, choice)
    env = Env(ctx, replace(scope, parent=None), "WHERE", values=values)
    plain = [condition(bind(env, node), node, "OR") for node in choice.plain]
    passes = plain[0] if len(plain) == 1 else Call("or", tuple(plain), BOOL)
    fails = negation(Call("coalesce", (passes, Lit(False, BOOL)), BOOL))
    other: Node = Select(again(ctx, left), fails, left.schema)
    if len(choice.others) > 1:
        other = _any_of(ctx, block, other, scope, replace(choice, plain=()))
    else:
        other = _passing(ctx, block, other, env, choice.others[0])
    return Union((Select(left, passes, left.schema), other), left.schema)


def _passing(ctx: Context, block: Block, left: Node, env: Env, node: ast.Expr) -> Node:
    """The rows that one side of an OR is true of."""
    plain, tests = parts(node)
    predicate = conjunction([bind_condition(env, part) for part in plain])
    if predicate is not None:
        left = Select(left, predicate, left.schema)
    return bind_tests(ctx, block, left, env.scope, tests, env.values)


def _any_of(ctx: Context, block: Block, left: Node, scope: Scope, choice: Choice) -> Node:
    """The rows that pass one of several tests: what one of them finds all of them together find."""
    found: list[SemiJoin] = []
    for node in choice.others:
        test = as_test(node)
        one = None if test is None or test.anti else _test(ctx, block, left, scope, test)
        if not isinstance(one, SemiJoin) or one.left is not left:
            raise _no_choice(node)
        found.append(one)
    return together(found)


def _no_choice(at: ast.Node) -> QueryError:
    message = (
        "a row could pass by one of these subqueries now and by another later, and would be told "
        "as gone and come"
    )
    hint = (
        "OR joins one condition with subqueries to plain ones, or EXISTS, IN and ANY without NOT; "
        "for others write a UNION of two queries"
    )
    return error("DS380", message, at, hint)


def _test(ctx: Context, block: Block, left: Node, scope: Scope, test: Test) -> Node:
    """The rows of `left` that pass the test."""
    select = _simple(test.query)
    if select is None:
        return _whole(ctx, block, left, scope, test)
    return _absorbed(ctx, block, left, scope, test, select)


def _simple(query: ast.Query) -> ast.Select | None:
    """The SELECT block to absorb; None for a subquery that must be bound whole."""
    if not query.plain:
        return None
    body = query.body
    if isinstance(body, ast.Query):
        return _simple(body)
    if not isinstance(body, ast.Select) or body.group_by or body.having is not None:
        return None
    if any(isinstance(i, ast.SelectItem) and has_aggregate(i.expr) for i in body.items):
        return None
    if of_select(body, ()) or body.qualify is not None or body.distinct_on:
        return None  # of each row what is true of others
    output = body.output
    if output is not None and (output.restore or output.kind is not ast.OutputKind.RSTREAM):
        return None  # Istream keeps what has left
    return body


def _whole(ctx: Context, block: Block, left: Node, scope: Scope, test: Test) -> Node:
    bound = ctx.bind_query(ctx, test.query, beyond=(replace(scope, parent=None), *scope.beyond))
    right = bound.node
    block.sources.append(
        BlockInput(test.at, False, not append_only(right), strict(right), reads_stream(right))
    )
    width = len(left.schema)
    inner = [Col(width + i, f.type, f.name) for i, f in enumerate(bound.schema())]
    env = Env(ctx, scope, "IN")
    equal = [] if test.values is None else _compared(env, test, list(inner))
    return _semi(block, left, right, test, [], equal)


def _absorbed(
    ctx: Context, block: Block, left: Node, scope: Scope, test: Test, select: ast.Select
) -> Node:
    width = len(left.schema)
    outer = replace(scope, parent=None)
    from_ = bind_from(ctx, block, select, (outer, *scope.beyond))
    names = replace(from_.scope.shifted(width), parent=outer, beyond=scope.beyond)
    plain, tests = parts(select.where)
    values = with_values(ctx, block, from_, values_in(plain, tests), (names, *scope.beyond))
    env = Env(ctx, names, "WHERE", values={q: _shift(v, width) for q, v in values.items()})
    inside = replace(env, scope=replace(names, columns=from_.inside.shifted(width).columns))
    placed = [(c, node) for node in plain for c in conjuncts(bind_condition(inside, node))]
    conditions = [c for c, _ in placed]
    equal = (
        []
        if test.values is None
        else _compared(replace(env, scope=outer), test, _items(env, test, select))
    )
    table = _lone_table(from_.group.items)
    if table is not None and reads_stream(left):
        not_in = test.at if test.anti and test.values is not None else None
        return table_test(left, table, [*conditions, *equal], test.anti, not_in)
    settle_tables(ctx, from_.group)
    own = [(_shift(c, -width), at) for c, at in placed if columns(c) and min(columns(c)) >= width]
    others = [(c, at) for c, at in placed if not (columns(c) and min(columns(c)) >= width)]
    for c, at in others:
        match.check_outside(from_.group, {k - width for k in columns(c)}, at)
    correlated = [c for c, _ in others]
    built, rest = build(from_.group, match.share_out(from_.group, own, False))
    built = select_over(built, rest)
    place = built.place()

    def settled(expr: Expr) -> Expr:
        return rewrite(
            expr,
            lambda c: c if c.index < width else Col(width + place[c.index - width], c.type, c.name),
        )

    inner = _inner_scope(from_.scope, built, (outer, *scope.beyond))
    read = {q: rewrite(v, lambda c: Col(place[c.index], c.type, c.name)) for q, v in values.items()}
    right = bind_tests(ctx, block, built.node, inner, tests, read)
    return _semi(
        block, left, right, test, [settled(c) for c in correlated], [settled(c) for c in equal]
    )


def _inner_scope(scope: Scope, built: Built, beyond: tuple[Scope, ...]) -> Scope:
    place = built.place()
    return replace(
        scope.mapped(lambda c: Col(place[c.index], c.type, c.name)), parent=None, beyond=beyond
    )


def _shift(expr: Expr, by: int) -> Expr:
    return rewrite(expr, lambda c: Col(c.index + by, c.type, c.name))


def _items(env: Env, test: Test, select: ast.Select) -> list[Expr]:
    """The select list of an IN subquery."""
    out: list[Expr] = []
    for item in select.items:
        if isinstance(item, ast.SelectItem):
            out.append(bind(replace(env, place="the select list of IN"), item.expr))
        else:
            out += [c.expr for c in star(replace(env.scope, parent=None), item)]
    return out


def _compared(env: Env, test: Test, inner: list[Expr]) -> list[Expr]:
    """One comparison per value of IN, ANY or ALL; `env` sees the outer query, `inner` are the
    subquery's columns."""
    values = test.values or ()
    if len(values) != len(inner):
        message = (
            f"{_word(test)} compares {_count(len(values))} with a subquery of {_count(len(inner))}"
        )
        raise error(
            "DS217", message, test.at, "name as many columns in the subquery as stand on the left"
        )
    fn = COMPARE[test.op]
    found = [call(fn, [bind(env, v), i], v) for v, i in zip(values, inner, strict=True)]
    return [negation(c) for c in found] if test.refuted else found


def _word(test: Test) -> str:
    if isinstance(test.at, ast.Quantified):
        return "ALL" if test.at.all else "ANY"
    return "IN"


def _count(n: int) -> str:
    return "1 column" if n == 1 else f"{n} columns"


def _semi(
    block: Block, left: Node, right: Node, test: Test, correlated: list[Expr], equal: list[Expr]
) -> SemiJoin:
    """NOT IN looks at NULLs: with one comparison and no correlation the flag says so; otherwise a
    comparison that is not false counts as a match, which is the same rule written out."""
    if test.anti:
        block.negations.append(test.at)
    width = len(left.schema)
    null_aware = bool(equal) and test.anti
    if null_aware and (correlated or len(equal) > 1 or not _is_key(equal[0], width)):
        whole = conjunction(equal)
        assert whole is not None
        equal, null_aware = [Call("coalesce", (whole, Lit(True, BOOL)), BOOL)], False
    return semi_join(left, right, test.anti, [*correlated, *equal], null_aware)


def _is_key(condition: Expr, width: int) -> bool:
    return bool(split([condition], width)[0])


def _lone_table(items: list[Item]) -> Leaf | None:
    """The non-retroactive table that is the only item."""
    if len(items) == 1 and isinstance(items[0], Leaf) and items[0].table:
        return items[0]
    return None
