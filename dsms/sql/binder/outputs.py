"""The output function of a query: Istream, Dstream, Rstream or Wstream."""

from __future__ import annotations

from collections.abc import Iterator

from dsms.sql import ast
from dsms.sql.binder import wstream
from dsms.sql.codes import error


def output_of(body: ast.Select | ast.SetOp | ast.Query) -> ast.Output | None:
    """The output function of a query; in a set operation all operands that have one must agree."""
    found = list(_outputs(body))
    for output in found:
        wstream.check_restore(output)
        if (output.kind, output.restore) != (found[0].kind, found[0].restore):
            hint = f"write {found[0].kind.value} in all operands, or only in the first"
            raise error(
                "DS328", "the operands of a set operation ask for different outputs", output, hint
            )
    return found[0] if found else None


def _outputs(body: ast.Select | ast.SetOp | ast.Query) -> Iterator[ast.Output]:
    match body:
        case ast.Select(output=ast.Output() as output):
            yield output
        case ast.SetOp(left=left, right=right):
            yield from _outputs(left)
            yield from _outputs(right)
        case ast.Query(body=inner):
            yield from _outputs(inner)
