"""Functions that give NULL where an argument is NULL."""

from __future__ import annotations

from collections.abc import Callable

from dsms.sql.expr import Call
from tests.oracle.values import Value, compare


class Failed(ArithmeticError):
    """This row has no value here: it becomes NULL."""


def _compared(test: Callable[[int], bool]) -> Callable[..., bool]:
    return lambda call, a, b: test(compare(a, b))


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "=": _compared(lambda c: c == 0),
    "<>": _compared(lambda c: c != 0),
    "<": _compared(lambda c: c < 0),
    "<=": _compared(lambda c: c <= 0),
    ">": _compared(lambda c: c > 0),
    ">=": _compared(lambda c: c >= 0),
    "not": lambda call, a: not a,
}

__all__ = ["FUNCTIONS", "Call", "Failed"]
