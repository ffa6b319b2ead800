"""The steps of a rendered plan on Spark.

SQL stays SQL; our own expressions run in Spark's Python workers, over the batches of each
partition, our own groupings over partitions that hold groups as a whole.  What is here already, or
must be, is worked out here by the step itself (`dsms.oneshot.steps`), within the statement's memory
limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, assert_never

from dsms.errors import InternalError, UsageError
from dsms.oneshot.asof import AsofStep
from dsms.oneshot.match import MatchStep
from dsms.oneshot.over import OverStep
from dsms.oneshot.parts import AgedRows, gathered, of_batch
from dsms.oneshot.pushdown import Needed
from dsms.oneshot.ranked import TopStep
from dsms.oneshot.render import NO_ID, branch_ids
from dsms.oneshot.steps import (
    Env,
    LeafStep,
    Map,
    MapStep,
    OrdinalStep,
    SqlStep,
    Step,
    UnionStep,
    WindowStep,
)
from dsms.oneshot.unnest import UnnestStep
from dsms.oneshot.valued import DistinctStep, GroupStep, SetOpStep
from dsms.plan import windows
from dsms.plan.ranking import arrivals_of, keys_of
from dsms.sql.expr import Col
from dsms.sql.types import ALWAYS
from dsms.sql.window import (
    First,
    Landmark,
    Lasting,
    Latest,
    Now,
    Partitioned,
    Rows,
    Session,
    Throttled,
    Time,
    Unbounded,
    When,
)
from dsms.state.batch import Batch
from dsms.storage.archive.job import ArchiveJob, too_few
from dsms_spark.leaves import archived_rows
from dsms_spark.mapped import Grouped, Mapped, Opened
from dsms_spark.relations import Relations, names_of, spark_type, zeroless
from dsms_spark.rendering import RelationShape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(slots=True)
class Runner:
    """Runs steps one after the other; each leaves its relation with Spark (not worked out yet) or
    here."""

    job: ArchiveJob
    needed: Mapping[int, Needed]
    relations: Relations
    env: Env
    ran: dict[str, Step] = field(default_factory=dict)

    def run(self, step: Step) -> None:
        """One step."""
        self.env.look()
        held = self.relations
        self.ran[step.target] = step
        if isinstance(step, LeafStep) and step.leaf in self.job.sources:
            held.frames[step.target] = self._archive(step)
        elif not isinstance(step, SqlStep) and held.here(step.takes):
            self.env.rels.update({name: held.local[name] for name in step.takes})
            held.local[step.target] = made = step.run(self.env)
            if not isinstance(step, LeafStep):
                held.room.take(sum(p.nbytes for p in made))
        else:
            self._remote(step)

    def _remote(self, step: Step) -> None:
        held, target = self.relations, step.target
        match step:
            case SqlStep():
                held.frames[target] = self._sql(step)
            case MapStep():
                before, after = held.shapes[step.source], held.shapes[target]
                held.frames[target] = self._mapped(
                    held.narrowed(step.source), step.ops, before, after
                )
            case OrdinalStep():
                held.frames[target] = self._numbered(step)
            case WindowStep():
                self._window(step)
            case UnionStep():
                held.frames[target] = self._union(step)
            case GroupStep():
                self._group(step)
            case DistinctStep():
                held.frames[target] = self._distinct(step)
            case SetOpStep():
                held.frames[target] = self._set_op(step)
            case UnnestStep():
                held.frames[target] = self._opened(step)
            case AsofStep() | MatchStep() | OverStep():
                names = {AsofStep: "ASOF JOIN", MatchStep: "MATCH", OverStep: "OVER"}
                what = names[type(step)]
                message = f"{what} over an archive is not run on Spark"
                hint = (
                    "write WITH (archive = duckdb) at the end: the engine reads the archive itself"
                )
                raise UsageError("DS557", message, hint=hint)
            case TopStep():
                held.frames[target] = self._top(step)
            case _:
                raise InternalError(
                    "DS901", f"{type(step).__name__} can't be run on Spark; please report this"
                )

    # ------------------------------------------------------------ rows as they are

    def _archive(self, step: LeafStep) -> DataFrame:
        held = self.relations
        frame = archived_rows(held.spark, self.job.sources[step.leaf], self.needed[step.leaf])
        live: Sequence[Batch] = self.job.given.get(step.leaf, ())
        rows = gathered([of_batch(b) for b in live if len(b)])
        if not rows:
            return frame
        name = f"{step.target}live"
        held.shapes[name], held.local[name] = replace(held.shapes[step.target], aged=True), rows
        return frame.unionByName(held.frame(name))

    def _sql(self, step: SqlStep) -> DataFrame:
        held = self.relations
        for bound in step.inputs:
            held.view(bound)
        frame = held.spark.sql(step.text)
        before = RelationShape(step.schema, step.width, step.aged)
        return (
            self._mapped(frame, step.ops, before, held.shapes[step.target])
            if step.ops.runs
            else frame
        )

    def _mapped(
        self, frame: DataFrame, ops: Map, before: RelationShape, after: RelationShape
    ) -> DataFrame:
        return frame.mapInArrow(Mapped(ops.ops, before, after), spark_type(after))

    def _opened(self, step: UnnestStep) -> DataFrame:
        before, after = self.relations.shapes[step.source], self.relations.shapes[step.target]
        frame = self.relations.narrowed(step.source)
        return frame.mapInArrow(Opened(step, before, after), spark_type(after))

    def _numbered(self, step: OrdinalStep) -> DataFrame:
        """Numbers that stay the same, however often the rows are asked for."""
        from pyspark.sql import functions as f

        shape = self.relations.shapes[step.target]
        number = f"c{len(shape.schema) - 1}"
        frame = self.relations.narrowed(step.source).withColumn(
            number, f.monotonically_increasing_id()
        )
        return frame.select(*names_of(shape)).localCheckpoint(True)

    def _union(self, step: UnionStep) -> DataFrame:
        after = self.relations.shapes[step.target]
        parts = [
            self._branch(k, name, after, step.places[k]) for k, name in enumerate(step.sources)
        ]
        out = parts[0]
        for more in parts[1:]:
            out = out.unionAll(more)
        return out

    def _branch(
        self, number: int, name: str, after: RelationShape, places: Sequence[int]
    ) -> DataFrame:
        names = names_of(replace(after, aged=False))
        if after.aged:
            names = [f"c{k}" for k in range(len(after.schema))] + [
                "t",
                "b",
                *branch_ids(number, places),
            ]
        return self.relations.frame(name).selectExpr(*names)

    # ------------------------------------------------------------ windows

    def _window(self, step: WindowStep) -> None:
        held, target = self.relations, step.target
        match step.spec:
            case Rows() as spec:
                held.local[target] = self._newest(step, spec)
            case Partitioned() as spec:
                held.frames[target] = self._partitioned(step, spec)
            case Time() | Now() | Unbounded() | Landmark() as spec:
                held.frames[target] = self._by_instant(step, spec)
            case Latest() | Session() | When() | Lasting() | Throttled() | First():
                raise AssertionError(step.spec)  # no archive is read through it
            case _:
                assert_never(step.spec)

    def _born(self, step: WindowStep, upto: int) -> DataFrame:
        return self.relations.frame(step.source).where(f"b <= {upto}")

    def _by_instant(self, step: WindowStep, spec: Time | Now | Unbounded | Landmark) -> DataFrame:
        frame = self._born(step, windows.ends(spec, self.job.at))
        since, until = windows.since(spec, self.job.at), windows.until(spec)
        if since is not None:
            frame = frame.where(f"b > {max(since, ALWAYS)}")
        entered = f"CASE WHEN b <= {ALWAYS} THEN b ELSE b + {until} END"
        return frame.selectExpr(*_with(frame, "b", entered)) if until else frame

    def _newest(self, step: WindowStep, spec: Rows) -> list[AgedRows]:
        """The newest rows are got here, and the step itself makes its window of them."""
        from pyspark.sql import functions as f

        held = self.relations
        newest = [f.desc("b"), *(f.desc(f"i{k}") for k in step.order)]
        frame = self._born(step, self.job.at).orderBy(*newest).limit(spec.count)
        shape = replace(held.shapes[step.source], aged=True)
        rows = held.collected(frame.select(*names_of(shape)), shape)
        self._check_short(step, spec, sum(p.n for p in rows))
        self.env.rels[step.source] = rows
        return step.run(self.env)

    def _check_short(self, step: WindowStep, spec: Rows, found: int) -> None:
        """Rows that have expired may be missing."""
        below = self.ran[step.source]
        while len(below.takes) == 1:  # a projection at most
            below = self.ran[below.takes[0]]
        leaf = below.leaf if isinstance(below, LeafStep) else None
        if leaf in self.job.short and found < spec.count:
            assert leaf is not None
            raise too_few(self.needed[leaf].scan.stream.name, spec.count, found)

    def _partitioned(self, step: WindowStep, spec: Partitioned) -> DataFrame:
        frame = self._born(step, self.job.at)
        since = windows.since(spec, self.job.at)
        if since is not None:
            frame = frame.where(f"b > {since}")
        by = ", ".join(f"c{k}" for k in spec.by)
        order = ", ".join(["b DESC", *(f"i{k} DESC" for k in step.order)])
        over = f"OVER (PARTITION BY {by} ORDER BY {order})"
        names = list(frame.columns)
        made = frame.selectExpr(
            "*", f"row_number() {over} AS n", f"lag(b, {spec.until}) {over} AS e"
        )
        made = made.where(f"n > {spec.until} AND n <= {spec.count}")
        return made.selectExpr(*("e AS b" if n == "b" and spec.until else n for n in names))

    # ------------------------------------------------------------ rows without parts

    def _group(self, step: GroupStep) -> None:
        from pyspark.sql import functions as f

        held = self.relations
        before, after = held.shapes[step.source], held.shapes[step.target]
        frame = held.narrowed(step.source)
        keys = [
            f.expr(zeroless(f"c{k.index}", k.type)) for k in step.node.keys if isinstance(k, Col)
        ]
        parted = frame.repartition(*keys) if keys else frame.repartition(1)
        job = Grouped(step, before, after, self.job.limit)
        made = parted.mapInArrow(job, spark_type(after))
        if keys:
            held.frames[step.target] = made
            return
        rows = held.collected(made, after)
        self.env.rels[step.source] = []
        held.local[step.target] = rows or step.run(self.env)

    def _distinct(self, step: DistinctStep) -> DataFrame:
        frame = self.relations.frame(step.source)
        over = _over(step.schema, ["t", *(f"i{k}" for k in step.order)])
        names = list(frame.columns) + [f"{NO_ID} AS i{step.width}"] * step.timed
        return frame.selectExpr("*", f"row_number() {over} AS n").where("n = 1").selectExpr(*names)

    def _top(self, step: TopStep) -> DataFrame:
        """The first rows of each key: NaN is the largest number, and texts compare by code point,
        there as here."""
        frame = self.relations.frame(step.source)
        by = [zeroless(f"c{e.index}", e.type) for e in step.node.by if isinstance(e, Col)]
        order = [
            f"{zeroless(f'c{e.index}', e.type)} {'DESC' if down else 'ASC'} "
            f"NULLS {'FIRST' if first else 'LAST'}"
            for e, down, first in keys_of(step.node)
            if isinstance(e, Col)
        ]
        order += [f"i{k}" for k in arrivals_of(step.node)] if step.aged else []
        over = f"OVER (PARTITION BY {', '.join(by) or '0'} ORDER BY {', '.join(order)})"
        numbered = frame.selectExpr("*", f"row_number() {over} AS n")
        return numbered.where(f"n <= {step.node.limit}").drop("n")

    def _set_op(self, step: SetOpStep) -> DataFrame:
        """Per value how many left and right rows there are, and the oldest left one, which stands
        for all copies."""
        held, schema, width = self.relations, step.node.schema, step.width
        columns = [f"c{k}" for k in range(len(schema))]
        ages = ["t", "b", *(f"i{k}" for k in range(width))]
        left = held.frame(step.left).selectExpr(*columns, *ages, "0 AS side")
        right = held.frame(step.right).selectExpr(
            *columns, *(f"CAST(0 AS BIGINT) AS {a}" for a in ages), "1 AS side"
        )
        by = _partition(schema)
        over = _over(schema, ["side", "t", *(f"i{k}" for k in step.order)])
        counted = left.unionAll(right).selectExpr(
            "*",
            f"row_number() {over} AS n",
            f"count_if(side = 0) OVER ({by}) AS mine",
            f"count_if(side = 1) OVER ({by}) AS theirs",
        )
        first = (
            counted.where("n = 1 AND side = 0")
            .selectExpr("*", f"{_copies(step)} AS copies")
            .where("copies > 0")
        )
        numbered = f"explode(sequence(CAST(0 AS BIGINT), copies - 1)) AS i{width}"
        return first.selectExpr(*columns, *ages, numbered)


def _copies(step: SetOpStep) -> str:
    mine, theirs = ("mine", "theirs") if step.node.all else ("least(mine, 1)", "least(theirs, 1)")
    return f"{mine} - {theirs}" if step.node.op == "except" else f"least({mine}, {theirs})"


def _over(schema: Sequence, order: Sequence[str]) -> str:
    return f"OVER ({_partition(schema)} ORDER BY {', '.join(order)})"


def _partition(schema: Sequence) -> str:
    """Equal values, NULLs among them, are one partition."""
    return "PARTITION BY " + (
        ", ".join(zeroless(f"c{k}", f.type) for k, f in enumerate(schema)) or "0"
    )


def _with(frame: DataFrame, name: str, text: str) -> list[str]:
    return [f"{text} AS {name}" if n == name else n for n in frame.columns]
