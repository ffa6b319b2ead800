"""What a query may ask of the planner: the WITH options that concern it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dsms.plan.physical import Strategy
from dsms.sql.catalog import Option


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """strategy    upa: structures by update pattern;  direct: searched lists;  nt: negative tuples
                (§2.3.3, §3.5)
    partitions  buckets of every calendar queue; None: from the expected size, and adapting
    optimize    False: only as bound (physical choice still happens)
    negation    auto: by cost;  up, down: negation above or below joins wherever it may stand there
                (§3.5.3)
    distinct    auto, or the variant of every DISTINCT that allows it
    joins       auto: joins of two inputs, or of many in one operator, by cost;  tree, pipeline,
                adaptive: one of them, wherever it may be
    migration   of an adaptive join: which partitions are sorted anew under a new index
    tuning      of an adaptive join: when its bit-address indices are looked at again; neither said:
                it has hash indices
    over        shed: joins let go of rows of their windows rather than hold more than they may
    disabled    names of rewrite rules not to use
    """

    strategy: Strategy = "upa"
    partitions: int | None = None
    optimize: bool = True
    negation: Literal["auto", "up", "down"] = "auto"
    distinct: Literal["auto", "input-storing", "delta-star", "counting"] = "auto"
    joins: Literal["auto", "tree", "pipeline", "adaptive"] = "auto"
    migration: Literal["nothing", "all", "partial"] | None = None
    tuning: Literal["continuous", "periodic", "triggered", "hybrid"] | None = None
    over: Literal["stop", "shed"] = "stop"
    disabled: frozenset[str] = frozenset()

    @staticmethod
    def of(options: Iterable[tuple[str, Option]]) -> PlanOptions:
        """From a query's checked WITH options; those that concern others are passed over."""
        known = {"strategy", "partitions", "optimize", "negation", "distinct", "joins"}
        known |= {"migration", "tuning", "over"}
        return PlanOptions(**{k: v for k, v in options if k in known})  # type: ignore[arg-type]
