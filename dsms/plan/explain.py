"""EXPLAIN: a physical plan as a tree in text, as Graphviz or as Mermaid."""

from __future__ import annotations

from dsms.errors import UsageError
from dsms.plan.explain_graph import graphviz, mermaid
from dsms.plan.explain_text import Live, as_text
from dsms.plan.physical import Phys


def explain(phys: Phys, format: str = "text", live: Live | None = None) -> str:
    """The plan in words.  `format`: text, graphviz or mermaid (any case).

    `live` maps the path of a node (child indices from the root) to its counts: `rows_in`,
    `rows_out`, `positive`, `negative`, `state_rows`, `bytes`, `ms`; any of them may be missing.
    Raises UsageError DS408 on an unknown format.
    """
    match format.casefold():
        case "text":
            return as_text(phys, live)
        case "graphviz" | "dot":
            return graphviz(phys, live)
        case "mermaid":
            return mermaid(phys, live)
        case _:
            raise UsageError(
                "DS408",
                f"unknown EXPLAIN format `{format}`",
                hint="formats: TEXT, GRAPHVIZ, MERMAID",
            )
