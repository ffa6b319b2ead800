"""One Markdown file with all tables, and PNG plots beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.harness import Plot, Section, Table

MARKERS = "osD^vPX*"


def write(directory: Path, head: str, sections: Sequence[Section]) -> Path:
    """Write the report; its path."""
    directory.mkdir(parents=True, exist_ok=True)
    parts = [head]
    for section in sections:
        parts.append(f"## {section.title}\n\n{section.about}")
        for part in section.parts:
            if isinstance(part, Plot):
                draw(part, directory / part.file)
            parts.append(text(part))
    path = directory / "report.md"
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def text(part: Table | Plot) -> str:
    """Markdown of a table, or the link to a plot."""
    if isinstance(part, Plot):
        return f"![{part.title}]({part.file})"
    lines = [f"### {part.title}", "", _row(part.header), _row(["---"] * len(part.header))]
    lines += [_row(row) for row in part.rows]
    if part.notes:
        lines += ["", *(f"- {note}" for note in part.notes)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def draw(plot: Plot, path: Path) -> None:
    """The plot as a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 4.0), dpi=110)
    for marker, (name, (x, y)) in zip(MARKERS * 4, plot.lines.items(), strict=False):
        axes.plot(x, y, marker=marker, markersize=4, linewidth=1.4, label=name)
    if plot.log[0]:
        axes.set_xscale("log")
    if plot.log[1]:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(plot.x)
    axes.set_ylabel(plot.y)
    axes.set_title(plot.title, fontsize=9)
    axes.grid(True, which="both", alpha=0.25)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
