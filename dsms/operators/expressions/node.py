"""A compiled expression: a closure over the columns, and what its parent needs to know of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.operators.expressions.arrays import Value, scatter
from dsms.operators.expressions.errors import ErrorCounter
from dsms.operators.expressions.growth import SHORT, measured, repeated, sizes_of
from dsms.sql.expr import Call
from dsms.sql.types import Type

Evaluator = Callable[[Sequence[pa.Array], int, ErrorCounter], pa.Array]
# a function over evaluated arguments: arrays of one length, constants as scalars, but never only
# scalars
Kernel = Callable[..., pa.Array]  # (errors, *args)


@dataclass(frozen=True, slots=True)
class Node:
    """`run` gives an array of n rows of `type`; `const` is set for literals; `fallible` if a row
    may fail; `grows` if a text in it may be much longer than those that it reads."""

    run: Evaluator
    type: Type
    const: pa.Scalar | None = None
    fallible: bool = False
    reads: frozenset[int] = frozenset()
    grows: bool = False


@dataclass(frozen=True, slots=True)
class Built:
    """What a builder makes of a call: a kernel, whether a row may fail in it, and whether it makes
    longer texts."""

    kernel: Kernel
    fallible: bool = False
    grows: bool = False


Builder = Callable[[Call, Sequence[Node]], "Built | Node"]


def reads_of(args: Sequence[Node]) -> frozenset[int]:
    """All columns that the arguments read."""
    return frozenset().union(*(a.reads for a in args))


def run_where(
    node: Node, rows: np.ndarray, cols: Sequence[pa.Array], n: int, errors: ErrorCounter
) -> pa.Array:
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
    size = 0 if not isinstance(value, str | bytes) else int(sizes_of(scalar)[0])
    if size > SHORT:
        return Node(measured(_long(scalar, size)), type_, scalar, grows=True)
    kept: list[pa.Array] = []

    def run(cols: Sequence[pa.Array], n: int, errors: ErrorCounter) -> pa.Array:
        array = kept[0] if kept else None
        if array is None or len(array) < n:
            array = pa.repeat(scalar, n)
            kept[:] = [array]
        return array if len(array) == n else array.slice(0, n)

    return Node(run, type_, scalar)


def _long(scalar: pa.Scalar, size: int) -> Evaluator:
    def run(cols: Sequence[pa.Array], n: int, errors: ErrorCounter) -> pa.Array:
        repeated(size, n, errors)
        return pa.repeat(scalar, n)

    return run


def bind(kernel: Kernel, args: Sequence[Node]) -> Evaluator:
    """The evaluator that calls the kernel over its arguments; constants stay scalars if one
    argument is an array."""
    if all(a.const is not None for a in args):
        args = [Node(args[0].run, args[0].type, grows=args[0].grows), *args[1:]]
    long = sum(int(sizes_of(a.const)[0]) for a in args if a.grows and a.const is not None)
    if long:
        return _bind_many(_spreading(kernel, long), args)
    match args:
        case [a]:
            first = a.run
            return lambda cols, n, errors: kernel(errors, first(cols, n, errors))
        case [a, b]:
            return _bind_two(kernel, a, b)
        case _:
            return _bind_many(kernel, args)


def _spreading(kernel: Kernel, size: int) -> Kernel:
    """The kernel, which may copy constants of that many bytes for every row."""

    def counted(errors: ErrorCounter, *args: Value) -> pa.Array:
        repeated(size, length(*args), errors)
        return kernel(errors, *args)

    return counted


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
        return kernel(
            errors, *(run(cols, n, errors) if const is None else const for run, const in parts)
        )

    return run


def length(*args: Value) -> int:
    """The number of rows that a kernel's arguments have."""
    return next(len(a) for a in args if isinstance(a, pa.Array))
