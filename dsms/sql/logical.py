"""The typed logical plan: what the binder hands to the planner.

One frozen dataclass per kind of node, each with its output `schema`.  Expressions over a join's
inputs see the left schema followed by the right one.  Rows carry, besides values, a lifetime [ts,
exp) and the arrival numbers of their parts (`dsms.state.batch`); those are not columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dsms.sql.catalog import StreamDef, TableDef
from dsms.sql.expr import AggCall, Expr
from dsms.sql.frames import Frame as Frame
from dsms.sql.types import Schema
from dsms.sql.window import Landmark, Slide, Time, WindowSpec


@dataclass(frozen=True, slots=True)
class Archived:
    """Where a leaf gets the rows that are no longer live: the archive of that stream, or of that
    query's results (`kind`); `live`: and the rows that are not archived yet, too."""

    kind: Literal["stream", "query"]
    live: bool = False


@dataclass(frozen=True, slots=True)
class StreamScan:
    """A declared stream, append-only.  `leaf` numbers the plan's stream leaves in FROM order.

    `archive`: it reads an archive (one-time queries alone); of a query, `stream` describes its
    result rows.  `history`: what a query has told (one-time queries alone), and the instant of each
    row as a last column.  `dated`: timestamps stand beside arrival numbers (`dsms.plan.ages`), as
    in the other leaves that have it."""

    stream: StreamDef
    schema: Schema
    alias: str
    leaf: int = 0
    archive: Archived | None = None
    dated: bool = False
    history: bool = False

    @property
    def live(self) -> bool:
        """Whether it reads rows of a stream, and nothing else."""
        return self.archive is None and not self.history


@dataclass(frozen=True, slots=True)
class TableScan:
    """A declared table; under a Join it is the retroactive ⋈R, under a JoinNRR it is read as of the
    tuple's ts."""

    table: TableDef
    schema: Schema
    alias: str
    leaf: int = 0
    dated: bool = False


@dataclass(frozen=True, slots=True)
class Values:
    """Constant rows, present always: the FROM-less SELECT has one row of no columns."""

    rows: tuple[tuple[Expr, ...], ...]
    schema: Schema


@dataclass(frozen=True, slots=True)
class Window:
    """A window over an append-only child (a stream, an append-only sub-query)."""

    child: Node
    spec: WindowSpec
    schema: Schema


@dataclass(frozen=True, slots=True)
class Select:
    child: Node
    predicate: Expr
    schema: Schema


@dataclass(frozen=True, slots=True)
class Project:
    """New columns, and, if `ids` says so, the id columns in another order: where joins take the
    place of others, as operators above know these."""

    child: Node
    exprs: tuple[Expr, ...]
    schema: Schema
    ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Join:
    """Window join.  `keys`: (left expr, right expr) equalities, each over its own side's schema,
    same type on both; `residual` over left ++ right.  A side may be a TableScan (⋈R: retroactive).
    kind `inner` without keys and residual is the cross product.  Outer kinds pad with NULL."""

    left: Node
    right: Node
    kind: Literal["inner", "left", "right", "full"]
    keys: tuple[tuple[Expr, Expr], ...]
    residual: Expr | None
    schema: Schema


@dataclass(frozen=True, slots=True)
class MultiJoin:
    """Inner join of three inputs or more, in one operator: the planner makes it of Joins.  `keys`:
    equalities of one expression of each input, over its own schema, all of one type; at least one.
    None stands for an input that has no part in an equality; together they connect all inputs.
    `residual` over the inputs' columns one after the other, which are the schema."""

    inputs: tuple[Node, ...]
    keys: tuple[tuple[Expr | None, ...], ...]
    residual: Expr | None
    schema: Schema


@dataclass(frozen=True, slots=True)
class JoinNRR:
    """Join with a non-retroactive relation, read as of each stream row's ts.  `kind` inner or left;
    keys and residual as for Join (the table is the right side)."""

    child: Node
    table: TableScan
    kind: Literal["inner", "left"]
    keys: tuple[tuple[Expr, Expr], ...]
    residual: Expr | None
    schema: Schema


@dataclass(frozen=True, slots=True)
class AsofJoin:
    """ASOF JOIN: each left row with the newest right row, by (timestamp, arrival), that has equal
    keys and a timestamp not later than its own; that is settled when it comes.  `right` is
    append-only.  `kind` inner or left; keys as for Join.

    after  where the timestamps stand in left and in right, if the right row must be earlier (>);
           None: it may be of the same instant (>=)
    span   µs after which a right row is no longer found; None: it always is"""

    left: Node
    right: Node
    kind: Literal["inner", "left"]
    keys: tuple[tuple[Expr, Expr], ...]
    after: tuple[int, int] | None
    span: int | None
    schema: Schema


@dataclass(frozen=True, slots=True)
class Match:
    """MATCH: rows of the inputs one after the other, at rising timestamps, within `span` µs.  Each
    row of the first input begins an attempt; each further step takes the first later row, by
    (timestamp, arrival), that has equal keys and meets its condition.

    inputs      the window in time over the rows of each step
    kinds       `one`: the row is part of the match; `none`: none may come between its neighbours'
                (at the end: until the window is over, when the match is born); `many`: and with it
                all later ones that meet its condition, until the row of the next step
    names       of the steps;  keys: of each column of PER the expression over each input
    conditions  over the columns of all inputs, then `aggs`; each reads those of its own step, of
                earlier ones of kind `one`, and aggregates over the rows before the one in question
    aggs        over the rows of steps of kind `many`: (step, call over the columns of its input)
    schema      columns of the steps of kind `one`, then the aggregates
    skip        a match, the first of its instant, ends attempts of its keys begun by its end"""

    inputs: tuple[Node, ...]
    kinds: tuple[Literal["one", "many", "none"], ...]
    names: tuple[str, ...]
    keys: tuple[tuple[Expr, ...], ...]
    conditions: tuple[Expr | None, ...]
    aggs: tuple[tuple[int, AggCall], ...]
    span: int
    schema: Schema
    skip: bool = False

    @property
    def parts(self) -> tuple[Node, ...]:
        """The inputs whose rows a match is made of."""
        return tuple(n for n, k in zip(self.inputs, self.kinds, strict=True) if k == "one")


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """EXISTS / IN (anti=False), NOT EXISTS / NOT IN (anti=True: the thesis's negation).  Output is
    the left schema.  `keys`, `residual` as for Join.  `null_aware` is NOT IN's rule: a NULL on
    either side may hide a match."""

    left: Node
    right: Node
    anti: bool
    keys: tuple[tuple[Expr, Expr], ...]
    residual: Expr | None
    null_aware: bool
    schema: Schema


@dataclass(frozen=True, slots=True)
class Unnest:
    """UNNEST in FROM: each row of the child once for each item of its list `items`, which stands
    behind its columns, and, with `ordinality`, the item's place, from 1 on.  kind `left`: a row
    without items stays, padded."""

    child: Node
    items: Expr
    kind: Literal["inner", "left"]
    ordinality: bool
    schema: Schema


@dataclass(frozen=True, slots=True)
class Union:
    """UNION ALL: order-preserving merge.  Inputs have equal column types."""

    inputs: tuple[Node, ...]
    schema: Schema


@dataclass(frozen=True, slots=True)
class SetOp:
    """EXCEPT/INTERSECT [ALL], by value; NULLs are equal."""

    op: Literal["except", "intersect"]
    all: bool
    left: Node
    right: Node
    schema: Schema


@dataclass(frozen=True, slots=True)
class Distinct:
    """SELECT DISTINCT and UNION's duplicate elimination; NULLs are equal."""

    child: Node
    schema: Schema


@dataclass(frozen=True, slots=True)
class Over:
    """Each row of an append-only input with the values of the frames (`dsms.sql.frames`) behind."""

    child: Node
    window: WindowSpec
    predicate: Expr | None
    frames: tuple[Frame, ...]
    schema: Schema


@dataclass(frozen=True, slots=True)
class GroupBy:
    """GROUP BY `keys` (expressions over the child) with `aggs`; output schema is keys then
    aggregates.  No keys: one global group that answers over an empty window too."""

    child: Node
    keys: tuple[Expr, ...]
    aggs: tuple[AggCall, ...]
    schema: Schema


@dataclass(frozen=True, slots=True)
class Append:
    """The output of a block over INTERNAL windows (or inside Wstream): results stay for ever,
    deletions are dropped.  `mixed`: some windows of the block are external, and a result lives
    until the first of its external parts dies.  `entries`: Istream in FROM says so; then at a
    boundary, too, only what is new in the answer is appended, of rows without parts by value.
    `departures`: Dstream in FROM says so; what leaves the answer is appended as it does."""

    child: Node
    mixed: bool
    schema: Schema
    dated: bool = False
    entries: bool = False
    departures: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a registered query, read by another one: `child` is the plan of the query that
    is called `query`, below its output.  The planner leaves this node where what runs that query
    works for its readers, too; elsewhere `child` takes its place.  `first`: what was added to the
    numbers of its leaves."""

    child: Node
    query: str
    first: int
    schema: Schema


@dataclass(frozen=True, slots=True)
class Sort:
    """ORDER BY / LIMIT of one-time and periodic queries, directly below the Output.  `keys`: (expr,
    descending, nulls_first).  `schema` is the first columns of the child's: the others are there
    for the keys only."""

    child: Node
    keys: tuple[tuple[Expr, bool, bool], ...]
    limit: int | None
    offset: int
    schema: Schema


@dataclass(frozen=True, slots=True)
class TopN:
    """ORDER BY ... LIMIT n PER keys, as a relation: of the rows that are equal in `by` (NULLs are,
    too; without `by`, of all rows) the first `limit` by `keys`, which are as in Sort; ties as
    `dsms.plan.ranking` says."""

    child: Node
    by: tuple[Expr, ...]
    keys: tuple[tuple[Expr, bool, bool], ...]
    limit: int
    schema: Schema


@dataclass(frozen=True, slots=True)
class Stamp:
    """A column of the answer that says where the window of its boundary begins, or ends.

    window   the window in time that is meant; None: the boundary itself (`end`)"""

    column: int
    end: bool
    window: Time | Landmark | None


@dataclass(frozen=True, slots=True)
class Output:
    """The root: what of Q(τ) is reported.  `explicit` is False where the kind is the default
    (Istream if the plan is monotonic, else Rstream), which the planner fills in; `slide` the one
    SLIDE, or EVERY, that governs the query, if any.  Wstream is bound as Rstream over Window over
    Append.  `stamps`: columns of the child's, empty there, that are filled in when an answer is
    reported."""

    child: Node
    kind: Literal["istream", "dstream", "rstream"]
    explicit: bool
    restore: bool
    slide: Slide | None
    schema: Schema
    stamps: tuple[Stamp, ...] = ()


Node = (
    StreamScan | TableScan | Values | Window | Select | Project | Join | MultiJoin | JoinNRR
    | AsofJoin | Match | SemiJoin | Unnest | Union | SetOp
    | Over | Distinct | GroupBy | TopN | Append | Answer | Sort | Output
)  # a long list  # fmt: skip


def children(node: Node) -> tuple[Node, ...]:
    """The inputs of a node, left to right (a JoinNRR's table is not an input: it is probed)."""
    match node:
        case StreamScan() | TableScan() | Values():
            return ()
        case Join() | AsofJoin() | SemiJoin() | SetOp():
            return (node.left, node.right)
        case Union() | MultiJoin() | Match():
            return node.inputs
        case _:
            return (node.child,)


def with_children(node: Node, new: tuple[Node, ...]) -> Node:
    """The same node over other inputs (of equal schemas)."""
    from dataclasses import replace

    match node:
        case StreamScan() | TableScan() | Values():
            return node
        case Join() | AsofJoin() | SemiJoin() | SetOp():
            return replace(node, left=new[0], right=new[1])
        case Union() | MultiJoin() | Match():
            return replace(node, inputs=new)
        case _:
            return replace(node, child=new[0])


def nodes_of(node: Node) -> Iterator[Node]:
    """The node and all below it, parents first."""
    yield node
    for child in children(node):
        yield from nodes_of(child)


def leaves_of(node: Node) -> Iterator[StreamScan | TableScan]:
    """Stream and table leaves, and the tables that JoinNRRs probe."""
    for n in nodes_of(node):
        if isinstance(n, StreamScan | TableScan):
            yield n
        elif isinstance(n, JoinNRR):
            yield n.table
