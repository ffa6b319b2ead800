"""EXPLAIN as a drawing: the plan as Graphviz (`dot`) or Mermaid text, its edges labelled with their
patterns."""

from __future__ import annotations

from collections.abc import Callable

from dsms.plan.explain_text import Live, Path, counts, figures, how, nodes, orders, title
from dsms.plan.physical import Phys


def graphviz(phys: Phys, live: Live | None = None) -> str:
    """The plan in the DOT language; draw it with `dot -Tsvg`."""
    lines = ["digraph plan {", "  rankdir=BT;", "  node [shape=box, fontname=monospace];"]
    for path, node in nodes(phys):
        label = "\\n".join(_quoted(line) for line in _lines(path, node, live))
        lines.append(f'  {_name(path)} [label="{label}"];')
    lines += _edges(phys, lambda low, high, name: f'  {low} -> {high} [label="{name}"];')
    return "\n".join([*lines, "}"])


def mermaid(phys: Phys, live: Live | None = None) -> str:
    """The plan as a Mermaid flowchart."""
    lines = ["flowchart BT"]
    for path, node in nodes(phys):
        label = "<br/>".join(_entities(line) for line in _lines(path, node, live))
        lines.append(f'  {_name(path)}["{label}"]')
    return "\n".join(
        [*lines, *_edges(phys, lambda low, high, name: f"  {low} -- {name} --> {high}")]
    )


def _name(path: Path) -> str:
    return "n" + "_".join(map(str, path))


def _lines(path: Path, phys: Phys, live: Live | None) -> list[str]:
    parts = [
        title(phys),
        how(phys),
        *orders(phys)[:1],
        figures(phys),
        "" if live is None else counts(live.get(path, {})),
    ]
    return [p for p in parts if p]


def _edges(phys: Phys, draw: Callable[[str, str, str], str]) -> list[str]:
    """One line per edge, from input to consumer, labelled with the pattern of the input."""
    return [
        draw(_name(path), _name(path[:-1]), node.pattern.name) for path, node in nodes(phys) if path
    ]


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _entities(text: str) -> str:
    """What Mermaid would read as markup, by its entities."""
    for char, entity in (("&", "#amp;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(char, entity)
    return text
