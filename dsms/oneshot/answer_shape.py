"""The shape of a one-time answer: the rows below ORDER BY, and the order, the limit and the columns
that are applied to them at the end."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.oneshot.parts import AgedRows
from dsms.operators.expressions import ErrorCounter
from dsms.operators.pieces import Look, go_on
from dsms.operators.sort import by_columns, sort_order
from dsms.plan.identity import by_value, order
from dsms.sql import logical as lp
from dsms.sql.types import Schema, arrow_schema
from dsms.state.columns import taken


@dataclass(slots=True)
class AnswerShape:
    """plan      an Output, or any node below;  identity: see `dsms.oneshot.run.OneShot.prepare`
    core      what is below its ORDER BY
    ages      whether the rows of `core` must come with their arrival numbers
    """

    plan: lp.Node
    identity: bool = False
    core: lp.Node = field(init=False)
    sort: lp.Sort | None = field(init=False)
    ages: bool = field(init=False)

    def __post_init__(self) -> None:
        core = self.plan.child if isinstance(self.plan, lp.Output) else self.plan
        self.sort = core if isinstance(core, lp.Sort) else None
        self.core = core.child if isinstance(core, lp.Sort) else core
        parts = not by_value(self.core)
        self.ages = parts and (self.identity or self.sort is None)

    @property
    def schema(self) -> Schema:
        """Of the answer's own columns."""
        return self.core.schema if self.sort is None else self.sort.schema

    def answer(
        self, rows: AgedRows, errors: ErrorCounter, look: Look = go_on
    ) -> tuple[pa.RecordBatch, tuple[np.ndarray, ...]]:
        """The answer in its order, made of the rows of `core`; and their arrival numbers, if they
        are asked for."""
        places = self._places(rows, errors, look)
        ids = (
            tuple(rows.ids[k][places] for k in order(self.core))
            if self.identity and self.ages
            else ()
        )
        cols = [taken(c, places) for c in rows.cols[: len(self.schema)]]
        if not cols:
            return pa.table({"z": pa.nulls(len(places))}).select([]).to_batches()[0], ids
        return pa.RecordBatch.from_arrays(cols, schema=arrow_schema(self.schema)), ids

    def _places(self, rows: AgedRows, errors: ErrorCounter, look: Look) -> np.ndarray:
        """Positions of the answer's rows, in its order."""
        if self.sort is not None:
            return sort_order(rows.cols, rows.n, self.sort, errors, look)
        if self.ages:
            return np.lexsort([rows.ids[k] for k in order(self.core)][::-1])
        return by_columns(rows.cols, rows.n, look)
