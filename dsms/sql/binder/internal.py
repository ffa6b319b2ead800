"""INTERNAL windows: results are appended and stay; where that would make answers wrong, an error
says why (Golab 2006, §3.3.2)."""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.binder import archives
from dsms.sql.binder.context import Block, BlockInput
from dsms.sql.binder.properties import append_only
from dsms.sql.codes import error
from dsms.sql.logical import Append, Node


def appended(block: Block, node: Node, select: ast.Select, sampled: bool) -> Node:
    """The block's rows, appended if its windows are INTERNAL (or Wstream says so).

    sampled  it is answered at boundaries: what only comes is appended at these"""
    internal = [s for s in block.sources if s.internal]
    if internal:
        _check(block, internal[0], select)
    elif not block.internal or (append_only(node) and not sampled):
        return node
    archives.check_appended(node, internal[0].at if internal else select)
    mixed = any(s.leaves and not s.internal for s in block.sources)
    return Append(node, mixed, node.schema, entries=not internal and not mixed)


def entries(node: Node, output: ast.Output, sampled: bool) -> Node:
    """What enters the answer of `node`, as a stream, or what leaves it: Istream and Dstream in
    FROM.  Any answer has entries, of rows that have parts by identity, of others by value; so no
    window needs to be INTERNAL, and DISTINCT and negation may stand inside.

    sampled  it is answered at boundaries: what only comes enters at these"""
    if output.kind is ast.OutputKind.DSTREAM:
        archives.check_appended(node, output)
        return Append(node, False, node.schema, departures=True)
    if append_only(node) and not sampled:
        return node
    archives.check_appended(node, output)
    return Append(node, False, node.schema, entries=True)


def _check(block: Block, first: BlockInput, select: ast.Select) -> None:
    says = "Wstream appends" if block.internal else "INTERNAL windows append"
    remedy = "leave Wstream out" if block.internal else "leave INTERNAL out"
    if block.internal:
        remedy += ", or put a window on FROM (SELECT Istream(...) ...)"
    if select.distinct:
        message = (
            f"{says} results, which then stay: DISTINCT would keep values that have left, "
            "and repeat them"
        )
        raise error(
            "DS314",
            message,
            _place(block, first, select),
            f"{remedy}, or use GROUP BY with an aggregate",
        )
    if block.negations:
        at = block.negations[0]
        what = (
            "an outer join takes its padded rows back"
            if isinstance(at, ast.Join) and at.kind is not ast.JoinKind.ANTI
            else "negation takes results back"
        )
        message = f"{says} results, which then stay: {what} when a match comes, and could not"
        raise error("DS315", message, at, remedy)
    for source in block.sources:
        if not source.internal and source.strict:
            message = (
                "an INTERNAL window can't be mixed with an input whose rows leave unpredictably"
            )
            raise error(
                "DS316",
                message,
                source.at,
                "mark this window INTERNAL too, or use a time window (RANGE)",
            )


def _place(block: Block, first: BlockInput, select: ast.Select) -> ast.Node:
    if block.internal:
        return select.output or select
    return first.at
