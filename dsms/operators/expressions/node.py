"""A compiled expression: a closure over the columns, and what its parent needs to know of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.operators.expressions.arrays import Value, scatter
from dsms.operators.expressions.errors import ErrorCounter
from dsms.sql.expr import Call
from dsms.sql.types import Type

Evaluator = Callable[[Sequence[pa.Array], int, ErrorCounter], pa.Array]
# a function over evaluated arguments: arrays of one length, constants as scalars, but never only scalars
Kernel = Callable[..., pa.Array]  # (errors, *args)


@dataclass(frozen=True, slots=True)
class Node:
    """`run` gives an array of n rows of `type`; `const` is set for literals; `fallible` if a row may fail."""

    run: Evaluator
    type: Type
    const: pa.Scalar | None = None
    fallible: bool = False
    reads: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Built:
    """What a builder makes of a call: a kernel, and whether a row may fail in it."""

    kernel: Kernel
    fallible: bool = False


Builder = Callable[[Call, Sequence[Node]], "Built | Node"]


def reads_of(args: Sequence[Node]) -> frozenset[int]:
    """All columns that the arguments read."""
    return frozenset().union(*(a.reads for a in args))


def run_where(node: Node, rows: np.ndarray, cols: Sequence[pa.Array], n: int, errors: ErrorCounter) -> pa.Array:
    """n rows with the node's values at the positions `rows` (ascending) and NULL elsewhere.

    Only those rows are evaluated, so only they can fail.
    """
    if len(rows) == n:
        return node.run(cols, n, errors)
    if len(rows) == 0:
        return pa.nulls(n, node.type.arrow)
    where = pa.array(rows)
    part = [c.take(where) if i in node.reads else c for i, c in enumerate(cols)]
    return scatter(node.run(part, len(rows), errors), rows, n)


def literal(value: object, type_: Type) -> Node:
    """A constant."""
    scalar = pa.scalar(value, type_.arrow)
    kept: list[pa.Array] = [pa.repeat(scalar, 0)]

    def run(cols: Sequence[pa.Array], n: int, errors: ErrorCounter) -> pa.Array:
        array = kept[0]
        if len(array) < n:
            kept[0] = array = pa.repeat(scalar, n)
        return array if len(array) == n else array.slice(0, n)

    return Node(run, type_, scalar)


def bind(kernel: Kernel, args: Sequence[Node]) -> Evaluator:
    """The evaluator that calls the kernel over its arguments; constants stay scalars if one argument is an array."""
    if all(a.const is not None for a in args):
        args = [Node(args[0].run, args[0].type), *args[1:]]
    match args:
        case [a]:
            first = a.run
            return lambda cols, n, errors: kernel(errors, first(cols, n, errors))
        case [a, b]:
            return _bind_two(kernel, a, b)
        case _:
            return _bind_many(kernel, args)


def _bind_two(kernel: Kernel, a: Node, b: Node) -> Evaluator:
    left, right, x, y = a.run, b.run, a.const, b.const
    if y is not None:
        return lambda cols, n, errors: kernel(errors, left(cols, n, errors), y)
    if x is not None:
        return lambda cols, n, errors: kernel(errors, x, right(cols, n, errors))
    return lambda cols, n, errors: kernel(errors, left(cols, n, errors), right(cols, n, errors))


def _bind_many(kernel: Kernel, args: Sequence[Node]) -> Evaluator:
    parts = [(a.run, a.const) for a in args]

    def run(cols: Sequence[pa.Array], n: int, errors: ErrorCounter) -> pa.Array:
        return kernel(errors, *(run(cols, n, errors) if const is None else const for run, const in parts))

    return run


def length(*args: Value) -> int:
    """The number of rows that a kernel's arguments have."""
    return next(len(a) for a in args if isinstance(a, pa.Array))
