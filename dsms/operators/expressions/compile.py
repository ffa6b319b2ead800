"""From expression to closure: each call becomes the kernel of its function over the closures of its
arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dsms.errors import InternalError, QueryError
from dsms.operators.expressions import (
    arithmetic,
    casts,
    compare,
    days,
    digests,
    documents,
    formats,
    hashes,
    listed,
    logic,
    maths,
    patterns,
    python,
    strings,
    structs,
    times,
)
from dsms.operators.expressions.arrays import NO
from dsms.operators.expressions.errors import ErrorCounter
from dsms.operators.expressions.growth import bytes_of, in_turns, measured
from dsms.operators.expressions.made import Texts
from dsms.operators.expressions.node import (
    Builder,
    Built,
    Evaluator,
    Kernel,
    Node,
    bind,
    literal,
    reads_of,
)
from dsms.sql.expr import Call, Col, Expr, Lit, walk
from dsms.sql.lately import Lately
from dsms.sql.types import TEXTUAL, Kind

FOLDED = 4096  # bytes of the longest text that a constant expression becomes
MANY = 128  # nodes of an expression that is evaluated for all rows of a batch at once
KEPT = 1 << 15  # nodes of big expressions that were compiled last
Predicate = Callable[[Sequence[pa.Array], int, ErrorCounter], pa.BooleanArray]


_lately = Lately[tuple[Node, int]](KEPT)


class Compiled:
    """What `make(of)` gave, called as such.  Pickled it is `make` and `of`: closures don't travel,
    expressions do."""

    __slots__ = ("make", "of", "run")

    def __init__(self, run: Callable[..., Any], make: Callable[[Any], Any], of: Any) -> None:
        self.run, self.make, self.of = run, make, of

    def __call__(self, cols: Sequence[pa.Array], n: int, errors: ErrorCounter) -> Any:
        return self.run(cols, n, errors)

    def __reduce__(self) -> tuple[Callable[[Any], Any], tuple[Any]]:
        return self.make, (self.of,)


_BUILDERS: dict[str, Builder] = {
    name: builder
    for module in (
        arithmetic,
        casts,
        compare,
        days,
        digests,
        documents,
        formats,
        hashes,
        listed,
        logic,
        maths,
        patterns,
        python,
        strings,
        structs,
        times,
    )
    for name, builder in module.BUILDERS.items()
}


def compile_expr(expr: Expr) -> Evaluator:
    """The evaluator of an expression: `(cols, n, errors) -> array` of n rows, of the expression's
    physical type.

    `cols` are the columns of the expression's schema (unchunked, of n rows; slices are welcome).
    Rows that fail are NULL and counted in `errors`, or raise QueryError DS7xx in its `stop` mode.
    A bare column is passed on, not copied.
    """
    return Compiled(_whole(expr), compile_expr, expr)


def compile_many(
    exprs: Sequence[Expr],
) -> Callable[[Sequence[pa.Array], int, ErrorCounter], tuple[pa.Array, ...]]:
    """The evaluator of several expressions over one schema; equal ones are evaluated once."""
    distinct = list(dict.fromkeys(exprs))
    runs = [_whole(e) for e in distinct]
    places = [distinct.index(e) for e in exprs]

    def run(cols: Sequence[pa.Array], n: int, errors: ErrorCounter) -> tuple[pa.Array, ...]:
        done = [r(cols, n, errors) for r in runs]
        return tuple(done[p] for p in places)

    return Compiled(run, compile_many, tuple(exprs))


def compile_predicate(expr: Expr) -> Predicate:
    """The evaluator of a BOOL expression as a mask without NULLs: true where the row passes."""
    run, fill = _whole(expr), pc.get_function("coalesce").call

    def mask(cols: Sequence[pa.Array], n: int, errors: ErrorCounter) -> pa.BooleanArray:
        found = run(cols, n, errors)
        if found.null_count:
            return fill([found.cast(pa.bool_()), NO])
        return found

    return Compiled(mask, compile_predicate, expr)


def can_fail(expr: Expr) -> bool:
    """Whether a row may fail in it: then it must not be evaluated for rows that would not have come
    to it."""
    return _sized(expr)[0].fallible


def foresee(expr: Expr) -> None:
    """Have it at hand if it is big, for those who compile it soon, or ask whether it can fail.  Any
    thread may call it."""
    _sized(expr)


def evaluate_constant(expr: Expr) -> Lit | None:
    """The value of an expression without columns; None if it fails, so that the failure stays where
    it is, and for a long text, of which many may stand in one statement."""
    try:
        value = compile_expr(expr)([], 1, ErrorCounter("stop"))
    except QueryError:
        return None
    return None if _is_long(value) else Lit(value[0].as_py(), expr.type)


def _whole(expr: Expr) -> Evaluator:
    """The evaluator of an expression that stands in no other."""
    node, nodes = _sized(expr)
    return in_turns(node.run, nodes) if node.grows or nodes > MANY else node.run


def _sized(expr: Expr) -> tuple[Node, int]:
    """Its node, and of how many it is made."""
    known = _lately.of(expr)
    if known is None:
        known = _node(expr), sum(1 for _ in walk(expr))
        if known[1] > MANY:
            _lately.put(expr, known, known[1])
    return known


def _node(expr: Expr) -> Node:
    match expr:
        case Col(index, type_):
            return Node(
                lambda cols, n, errors: cols[index], type_, None, False, frozenset((index,))
            )
        case Lit(value, type_):
            return literal(value, type_)
        case Call():
            return _call(expr, [_node(a) for a in expr.args])
    raise InternalError("DS901", f"no evaluator for {expr!r}; please report this")


def _call(call: Call, args: Sequence[Node]) -> Node:
    builder = _BUILDERS.get(call.fn)
    if builder is None:
        raise InternalError(
            "DS902", f"function {call.fn} has no implementation; please report this"
        )
    if not args:
        args = [literal(None, call.type)]  # gives the kernel its number of rows
    built = builder(call, args)
    if isinstance(built, Node):
        return _growing(built, built.run, args, built.grows)
    fallible = built.fallible or any(a.fallible for a in args)
    node = Node(bind(_checked(built, call), args), call.type, None, fallible, reads_of(args))
    node = _growing(node, node.run, args, built.grows)
    return _folded(node) if all(a.const is not None for a in args) else node


def _growing(node: Node, run: Evaluator, args: Sequence[Node], grows: bool) -> Node:
    """The node, whose texts are counted if they may have grown."""
    if not grows and not any(a.grows for a in args):
        return node
    return replace(node, run=measured(run) if node.type.kind in TEXTUAL else run, grows=True)


def _folded(node: Node) -> Node:
    """A call of constants is worked out here and now, unless it fails or gives a long text."""
    try:
        value = node.run([], 1, ErrorCounter("stop", texts=Texts(1)))
    except QueryError:
        return node
    return node if _is_long(value) else literal(value[0].as_py(), node.type)


def _is_long(value: pa.Array) -> bool:
    return isinstance(value, pa.StringArray | pa.BinaryArray) and bytes_of(value) > FOLDED


def _checked(built: Built, call: Call) -> Kernel:
    """The kernel; over a bare NULL type (which has no values) it is NULL without asking."""
    if call.type.kind is Kind.NULL and call.fn not in ("greatest", "least", "nullif"):
        return lambda errors, *args: pa.nulls(len(next(a for a in args if isinstance(a, pa.Array))))
    return built.kernel
