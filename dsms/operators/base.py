"""What a continuous operator is: a small state and one verb.

`step` is called once for every advance of the query's clock, with the deltas of each input whose
instants lie in (previous upto, upto], and answers with the deltas of its output in that same span:
nothing of it may come later, nothing earlier may come again.  So time moves through every operator
even where a filter passes nothing, an answer can't depend on how arrivals were cut into batches,
and an operator that must react to expirations finds them by `exp <= upto`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import pyarrow as pa

from dsms.sql.expr import Expr
from dsms.sql.types import FOREVER
from dsms.state.batch import Batch


class Operator(Protocol):
    """One continuous operator of a running plan."""

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        """Deltas of all instants <= `upto` (µs) not answered before, in batch order.

        `inputs` holds one batch per child, each in batch order with instants in (previous upto,
        upto].
        """
        ...

    def live(self) -> int:
        """Rows now held in state (EXPLAIN ANALYZE)."""
        ...

    def nbytes(self) -> int:
        """Bytes of state, about."""
        ...

    def next_due(self) -> int:
        """The earliest instant at which this operator would emit or drop something by itself;
        FOREVER if none.

        Only a hint that saves steps: it may be too early, never too late.
        """
        ...


class Builds(Protocol):
    """What makes the operators of one plan, as far as a file of operators asks for it
    (`build.Builder`)."""

    @property
    def eager_instants(self) -> bool: ...

    @property
    def step_rows(self) -> int:
        """Results of a join at one instant, at most."""
        ...

    def expr(self, expr: Expr) -> Callable[..., pa.Array]:
        """(cols, n) -> array."""
        ...

    def predicate(self, expr: Expr) -> Callable[..., pa.BooleanArray]:
        """(cols, n) -> bool array."""
        ...


class Stateless:
    """What operators without state share."""

    def live(self) -> int:
        return 0

    def nbytes(self) -> int:
        return 0

    def next_due(self) -> int:
        return FOREVER
