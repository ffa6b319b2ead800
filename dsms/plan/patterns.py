"""Update patterns: how the rows of every edge of a plan expire or are deleted (Golab 2006, §3.2 and
§3.5.1).

The rules of §3.5.1, with what the language adds to them:

leaves   a stream is MON, a time window (also NOW and a historical one) WKS, a count window STR, a
         table STR
rule 1   selection, projection, ⋈NRR, OVER, sorting: the input's label; ASOF JOIN: the left input's
rule 2   merge-union: the worst of the inputs; WK where inputs of different lifetimes meet, since
         their rows no longer leave in the order they came
rule 3   join, MATCH, DISTINCT: MON over MON, STR over STR, else WK
rule 4   negation, EXCEPT, INTERSECT, GROUP BY, outer joins (the padded row is taken back), ⋈R: STR;
         the n first rows, too: when a row leaves them depends on rows that are still to come

Two places where this is stricter than the thesis's prose, because a wrong label is a wrong answer:

- §3.3.2 calls a join with one external and otherwise internal windows WKS.  A result dies with its
  external part, and an old external row may meet a partner after a young one did: the results then
  leave in another order than they came.  They are WK.
- EXISTS is a semi-join, which the thesis does not treat.  A result may outlive every match known
  when it was born, so its death is not foretold: STR.  Only if the right side never shrinks does a
  result live as long as its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from dsms.plan import windows
from dsms.plan.physical import Pattern
from dsms.sql import logical as lp
from dsms.sql.episodes import at_close
from dsms.sql.window import WindowSpec, counts, keeps_all

MON, WKS, WK, STR = Pattern.MON, Pattern.WKS, Pattern.WK, Pattern.STR


def pattern(node: lp.Node, inputs: Sequence[Pattern], variant: str = "") -> Pattern:
    """The label of the node's output edge, given those of its inputs (left to right, as
    `logical.children`).

    `variant` matters for DISTINCT only: counting multiplicities announces its deletions, so it is
    STR over all but MON.
    """
    worst = max(inputs, default=MON)
    match node:
        case lp.StreamScan() | lp.Values():
            return MON
        case lp.TableScan():
            return STR
        case lp.Window():
            return windows.pattern(node.spec, worst)
        case lp.Select() | lp.Project() | lp.JoinNRR() | lp.Over() | lp.Unnest():
            return worst
        case lp.Answer() | lp.Output():
            return worst
        case lp.AsofJoin():
            return inputs[0]
        case lp.Sort():
            return worst if node.limit is None and not node.offset else STR
        case lp.Union():
            return worst if worst != WKS or _one_lifetime(node) else WK
        case lp.Join():
            return STR if node.kind != "inner" else _dies_with_a_part(worst)
        case lp.Match() if node.kinds[-1] == "none":
            return MON
        case lp.MultiJoin() | lp.Match():
            return _dies_with_a_part(worst)
        case lp.Distinct():
            return STR if variant == "counting" and worst > MON else _dies_with_a_part(worst)
        case lp.SemiJoin():
            return STR if node.anti or inputs[1] > MON else _dies_with_a_part(inputs[0])
        case lp.GroupBy() if at_close(node.child):
            return worst
        case lp.GroupBy() | lp.SetOp() | lp.TopN():
            return STR
        case lp.Append():
            return _append(node)
        case _:
            assert_never(node)


def pattern_of(node: lp.Node) -> Pattern:
    """The label of the node's output edge, from the leaves up."""
    return pattern(node, [pattern_of(child) for child in lp.children(node)])


def _dies_with_a_part(worst: Pattern) -> Pattern:
    return worst if worst in (MON, STR) else WK


def _append(node: lp.Append) -> Pattern:
    """Append-only unless external windows are mixed in: then a row dies with the first of its
    external parts."""
    if not node.mixed:
        return MON
    return STR if any(map(counts, external_windows(node.child))) else WK


def external_windows(node: lp.Node) -> list[WindowSpec]:
    """The windows below that make results expire: not INTERNAL, and not those inside a nested
    append-only block."""
    match node:
        case lp.Append() if not node.mixed:
            return []
        case lp.Window():
            keeps = node.spec.internal or keeps_all(node.spec)
            return external_windows(node.child) + ([] if keeps else [node.spec])
        case _:
            return [w for child in lp.children(node) for w in external_windows(child)]


def lifetime(node: lp.Node) -> windows.Lifetime | None:
    """What tells how long every row of a WKS edge lives; None if rows of this edge live differently
    long.

    Two edges with equal lifetimes can be merged without losing the order of expiration.
    """
    match node:
        case lp.Window():
            return windows.lifetime(node.spec)
        case lp.Union():
            found = {lifetime(child) for child in node.inputs}
            return found.pop() if len(found) == 1 else None
        case lp.Select() | lp.Project() | lp.JoinNRR() | lp.Answer() | lp.Sort() | lp.Output():
            return lifetime(node.child)
        case lp.Unnest():
            return lifetime(node.child)
        case lp.AsofJoin():
            return lifetime(node.left)
        case _:
            return None


def _one_lifetime(node: lp.Union) -> bool:
    return lifetime(node) is not None
