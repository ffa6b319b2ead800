"""Which operator runs a node where several could: the variant that EXPLAIN prints and
`operators.build` builds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dsms.plan.demand import Demand, demand
from dsms.plan.either import ways
from dsms.plan.netting import may_cancel
from dsms.plan.physical import Pattern, Phys, Strategy
from dsms.sql import logical as lp
from dsms.sql.episodes import at_close
from dsms.sql.types import Kind, Type
from dsms.sql.window import Slide

# joins that let go of rows, as WITH (over = shed) has them, by what they would be without it
SHED_AS = {
    "hash": "hash-shedding",
    "nested-loop": "nested-loop-shedding",
    "pipeline": "pipeline-shedding",
}
SHEDDING = frozenset(SHED_AS.values())
# what of the input is kept, by variant
TOP_KEEPS = {"first": "first rows", "skyband": "rows that may come in", "ordered": "input"}
MANY = 256  # first rows
STRICT_NRR = (
    "its input can lose rows before their time, so the result of every live row is kept "
    "to be taken back"
)
NARROW = 18  # digits of a DECIMAL that surely fit one word


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a plan a node stands.

    asked    what those above ask of its rows
    mixed    in an append-only block in which INTERNAL and external windows meet
    restore  below a -restore, which reports what lives between two boundaries, too
    """

    asked: Demand = Demand.PLACE
    mixed: bool = False
    restore: bool = False


TOP = Place()


def below(node: lp.Node, child: int, place: Place) -> Place:
    """The place of that child of a node at `place`."""
    inner = replace(place, asked=demand(node, child, place.asked))
    match node:
        case lp.Output():
            return replace(inner, restore=node.restore)
        case lp.Append():
            return replace(inner, mixed=node.mixed)
        case _:
            return inner


def group(node: lp.GroupBy, child: Phys, place: Place) -> str:
    """closing: the rows of a group come together, once;  deque: one MIN or MAX of all rows of a
    time window, whose values are in order as words;  array: all others."""
    if at_close(node.child):
        return "closing"
    if place.mixed or node.keys or len(node.aggs) != 1 or node.aggs[0].fn not in ("min", "max"):
        return "array"
    in_order = child.pattern is Pattern.WKS and child.strategy == "upa"
    return "deque" if in_order and one_word(node.aggs[0].args[0].type) else "array"


def one_word(type_: Type) -> bool:
    """Whether values of the type are kept as 64-bit words that are in order as they are."""
    match type_.kind:
        case Kind.STRING | Kind.BYTES | Kind.UUID | Kind.LIST | Kind.STRUCT:
            return False
        case Kind.DECIMAL:
            return type_.precision <= NARROW
        case _:
            return True


def semijoin(node: lp.SemiJoin) -> str:
    """counting: a counter for each key, if equality is all there is;  matching: a counter for each
    left row."""
    by_key = node.residual is None and not (node.null_aware and len(node.keys) != 1)
    return "counting" if by_key else "matching"


def pattern(node: lp.Match, strategy: Strategy) -> str:
    """automaton, whose matches die as they foretell;  automaton-negative: deaths are announced."""
    negative = strategy == "nt" and node.kinds[-1] != "none"
    return "automaton-negative" if negative else "automaton"


def top(node: lp.TopN, child: Phys) -> str:
    """first: no row leaves the input, so none that is out comes in again;  skyband: a row that
    others stand before for as long as it lives is let go;  ordered: all rows, where it isn't known
    how long they live, or so many are asked for that few could be let go."""
    if child.pattern is Pattern.MON:
        return "first"
    return "ordered" if child.strict or node.limit > MANY else "skyband"


def finding(node: lp.JoinNRR | lp.AsofJoin, child: Phys) -> str:
    """-stored: what was found is kept, to be taken back by deletions."""
    plain = "probe" if isinstance(node, lp.JoinNRR) else "merge"
    return f"{plain}-stored" if child.strict else plain


def append(node: lp.Append, child: Phys, strategy: Strategy, restore: bool) -> str:
    """periodic: the block's answer at each boundary;  netted: what is new in its answer;  append:
    row by row."""
    if node.mixed:
        return "append-negative" if strategy == "nt" else "append"
    if not restore and slides(node.child):
        return "periodic"
    if node.departures:
        return "netted"
    return "netted" if may_cancel(node.child) or (node.entries and child.strict) else "append"


def slides(node: lp.Node) -> bool:
    """Whether a window of the block has a SLIDE."""
    return block_slide(node) is not None


def block_slide(node: lp.Node) -> Slide | None:
    """The SLIDE that governs a block; None if the block is continuous."""
    if isinstance(node, lp.Append):
        return None
    if isinstance(node, lp.Window) and node.spec.slide is not None:
        return node.spec.slide
    return next(
        (found for child in lp.children(node) if (found := block_slide(child)) is not None), None
    )


def join(node: lp.Join, over: str) -> str:
    """hash: keys are looked up;  nested-loop: there are none;  each also -shedding.  hash-each:
    those of each of several equalities, of which one must hold (inner joins)."""
    plain = "hash" if node.keys else "nested-loop"
    if node.kind != "inner":
        return plain
    if over == "shed":
        return SHED_AS[plain]
    return "hash-each" if ways(node) else plain


def multi_join(node: lp.MultiJoin, joins: str, over: str) -> str:
    """pipeline: all inputs have part in every equality, so the matches in one window do not depend
    on those in another (also -shedding); adaptive: any equalities."""
    whole = all(None not in same for same in node.keys)
    if not whole or joins == "adaptive":
        return "adaptive"
    return SHED_AS["pipeline"] if over == "shed" else "pipeline"
