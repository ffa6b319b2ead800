"""UNNEST in a plan that is run once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dsms.oneshot.parts import AgedRows
from dsms.oneshot.steps import STRETCH, Env
from dsms.operators.expressions import compile_many
from dsms.operators.unnest import opening
from dsms.sql import logical as lp


@dataclass(slots=True)
class UnnestStep:
    """Each row once for each item of its list, a stretch of rows at a time."""

    target: str
    source: str
    node: lp.Unnest
    aged: bool

    @property
    def takes(self) -> tuple[str, ...]:
        return (self.source,)

    def run(self, env: Env) -> list[AgedRows]:
        out: list[AgedRows] = []
        for part in env.rels[self.source]:
            for start in range(0, part.n, STRETCH):
                env.look()
                made = self._opened(part.slice(start, min(start + STRETCH, part.n)), env)
                if made.n:
                    env.room.take(made.nbytes)
                    out.append(made)
        return out

    def _opened(self, part: AgedRows, env: Env) -> AgedRows:
        (texts,) = compile_many((self.node.items,))(part.cols, part.n, env.errors)
        index, place, made = opening(self.node).open(texts)
        rows = part.take(index)
        ids = (*rows.ids, place) if self.aged else ()
        return replace(rows.with_cols((*rows.cols, *made)), ids=ids)
