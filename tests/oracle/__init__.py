"""A slow evaluator of bound queries, straight from the definitions; knows of dsms only what the
binder hands out.

Whatever the engine answers must equal what this says, however the input was cut into batches and
whichever strategy ran the plan.  It imports dsms.sql (types, expressions, logical plan, catalog)
and nothing else of the product.
"""

from tests.oracle.facts import Change, Fact, Row
from tests.oracle.keys import ambiguous
from tests.oracle.oracle import Delta, Oracle, is_monotonic
from tests.oracle.periodic import Answered, Periodic

__all__ = [
    "Answered",
    "Change",
    "Delta",
    "Fact",
    "Oracle",
    "Periodic",
    "Row",
    "ambiguous",
    "is_monotonic",
]
