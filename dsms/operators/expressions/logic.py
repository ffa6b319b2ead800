"""AND, OR, NOT, CASE, COALESCE, IS NULL: three-valued, and only what a row needs may fail.

Arguments are evaluated for all rows, which is fastest; if a row fails in one that it perhaps does
not need (a division, a cast), the batch is done again, each argument only where the ones before it
leave the answer open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.operators.expressions.arrays import NO, Value, bits, either, from_bits
from dsms.operators.expressions.errors import ErrorCounter
from dsms.operators.expressions.node import (
    Builder,
    Built,
    Evaluator,
    Node,
    bind,
    reads_of,
    run_where,
)
from dsms.sql.expr import Call
from dsms.sql.types import Kind

Kleene = Callable[[list[Value]], pa.Array]  # Arrow's three-valued AND or OR
_PATIENCE = 30  # batches that go the careful way at once after one that failed


def _hopeful(at_once: Evaluator, in_turn: Evaluator) -> Evaluator:
    """All at once, and only if a row failed each argument in its turn, which alone counts
    failures."""
    careful = [0]

    def run(cols: Sequence[pa.Array], n: int, errors: ErrorCounter) -> pa.Array:
        if careful[0]:
            careful[0] -= 1
            return in_turn(cols, n, errors)
        probe = errors.probe()
        answer = at_once(cols, n, probe)
        if not probe.count:
            return answer
        careful[0] = _PATIENCE
        return in_turn(cols, n, errors)

    return run


def _connective(name: str, decided: bool) -> Builder:
    """AND (decided by false) or OR (decided by true)."""
    call = pc.get_function(name).call

    def build(expr: Call, args: Sequence[Node]) -> Node:
        if len(args) == 1:
            return args[0]
        if not any(a.fallible for a in args[1:]):
            return Node(_all(call, args), expr.type, None, args[0].fallible, reads_of(args))
        run = _hopeful(_all(call, args), _in_turn(call, args, decided))
        return Node(run, expr.type, None, True, reads_of(args))

    return build


def _all(call: Kleene, args: Sequence[Node]) -> Evaluator:
    if len(args) == 2:
        return bind(lambda errors, x, y: call([x, y]), args)

    def kernel(errors: ErrorCounter, x: Value, *rest: Value) -> pa.Array:
        for y in rest:
            x = call([x, y])
        return x

    return bind(kernel, args)


def _in_turn(call: Kleene, args: Sequence[Node], decided: bool) -> Evaluator:
    first, rest = args[0].run, args[1:]
    flip = pa.scalar(decided)

    def run(cols: Sequence[pa.Array], n: int, errors: ErrorCounter) -> pa.Array:
        answer = first(cols, n, errors)
        for node in rest:
            if node.fallible:
                open_rows = np.flatnonzero(~bits(pc.equal(answer, flip)))
                more = run_where(node, open_rows, cols, n, errors)
            else:
                more = node.run(cols, n, errors)
            answer = call([answer, more])
        return answer

    return run


def _not(expr: Call, args: Sequence[Node]) -> Built:
    return Built(lambda errors, x: pc.invert(x))


def _is_null(expr: Call, args: Sequence[Node]) -> Built:
    return Built(lambda errors, x: pc.is_null(x))


def _is_not_null(expr: Call, args: Sequence[Node]) -> Built:
    return Built(lambda errors, x: pc.is_valid(x))


# --- CASE


def _case(expr: Call, args: Sequence[Node]) -> Node:
    conditions, values, otherwise = args[:-1:2], args[1::2], args[-1]
    fallible = any(a.fallible for a in args)
    if expr.type.kind is Kind.NULL:
        run = _case_of_nulls(conditions)
    elif any(a.fallible for a in args[1:]):
        run = _hopeful(
            _case_at_once(conditions, values, otherwise),
            _case_in_turn(conditions, values, otherwise),
        )
    else:
        run = _case_at_once(conditions, values, otherwise)
    return Node(run, expr.type, None, fallible, reads_of(args))


def _case_of_nulls(conditions: Sequence[Node]) -> Evaluator:
    def run(cols: Sequence[pa.Array], n: int, errors: ErrorCounter) -> pa.Array:
        for condition in conditions:
            condition.run(cols, n, errors)
        return pa.nulls(n)

    return run


def _case_at_once(conditions: Sequence[Node], values: Sequence[Node], otherwise: Node) -> Evaluator:
    pairs = list(zip(conditions, values, strict=True))[::-1]

    def run(cols: Sequence[pa.Array], n: int, errors: ErrorCounter) -> pa.Array:
        answer = otherwise.const if otherwise.const is not None else otherwise.run(cols, n, errors)
        for condition, value in pairs:
            chosen = pc.fill_null(condition.run(cols, n, errors), NO)
            answer = either(
                chosen, value.run(cols, n, errors) if value.const is None else value.const, answer
            )
        return answer

    return run


def _case_in_turn(conditions: Sequence[Node], values: Sequence[Node], otherwise: Node) -> Evaluator:
    pairs = list(zip(conditions, values, strict=True))

    def run(cols: Sequence[pa.Array], n: int, errors: ErrorCounter) -> pa.Array:
        left = np.ones(n, np.bool_)
        taken: list[tuple[np.ndarray, pa.Array]] = []
        for condition, value in pairs:
            rows = np.flatnonzero(left)
            chosen = bits(run_where(condition, rows, cols, n, errors)) & left
            if chosen.any():
                taken.append((chosen, run_where(value, np.flatnonzero(chosen), cols, n, errors)))
                left &= ~chosen
        answer = run_where(otherwise, np.flatnonzero(left), cols, n, errors)
        for chosen, part in taken:
            answer = either(from_bits(chosen), part, answer)
        return answer

    return run


# --- COALESCE


def _coalesce(expr: Call, args: Sequence[Node]) -> Node:
    if len(args) == 1:
        return args[0]
    run = bind(lambda errors, *xs: pc.coalesce(*xs), args)
    if any(a.fallible for a in args[1:]):
        return Node(_hopeful(run, _coalesce_in_turn(args)), expr.type, None, True, reads_of(args))
    return Node(run, expr.type, None, args[0].fallible, reads_of(args))


def _coalesce_in_turn(args: Sequence[Node]) -> Evaluator:
    first, rest = args[0].run, args[1:]

    def run(cols: Sequence[pa.Array], n: int, errors: ErrorCounter) -> pa.Array:
        answer = first(cols, n, errors)
        for node in rest:
            if not answer.null_count:
                break
            missing = np.flatnonzero(bits(answer.is_null()))
            answer = pc.coalesce(answer, run_where(node, missing, cols, n, errors))
        return answer

    return run


BUILDERS: dict[str, Builder] = {
    "and": _connective("and_kleene", False),
    "or": _connective("or_kleene", True),
    "not": _not,
    "is_null": _is_null,
    "is_not_null": _is_not_null,
    "case": _case,
    "coalesce": _coalesce,
}
