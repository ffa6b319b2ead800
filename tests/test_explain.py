"""EXPLAIN against golden files: tests/golden/explain/*.txt.

A file has a comment, `options: name=value ...` (of `PlanOptions`; `disabled=rule,rule`),
`stats: s1.rate=10 s1.a=500` (rows/s, different values), `format: text`, a SELECT, a line of dashes,
and the plan as EXPLAIN prints it.

    python -m tests.test_explain --write [FILE ...]      fill in the plans; then read them!
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from dsms.errors import UsageError
from dsms.plan.explain import explain
from dsms.plan.explain_text import nodes, number, size
from dsms.plan.options import PlanOptions
from dsms.plan.physical import Phys
from dsms.plan.planner import plan
from dsms.plan.statistics import Statistics
from dsms.sql import logical as lp
from tests.stories.declared import Declared

GOLDEN = Path(__file__).parent / "golden" / "explain"
DDL = """
CREATE STREAM s1 (a INT, b INT, c STRING, t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM s2 (a INT, b INT, c STRING, t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM s3 (a INT, b INT, c STRING, t TIMESTAMP) TIMESTAMP BY t;
CREATE TABLE r (k INT PRIMARY KEY, y STRING);
CREATE TABLE n (k INT PRIMARY KEY, y STRING) NON RETROACTIVE;
"""
DASHES = "----"


@dataclass
class Case:
    """One golden file, taken apart."""

    head: list[str] = field(default_factory=list)
    sql: str = ""
    plan: str = ""
    options: PlanOptions = field(default_factory=PlanOptions)
    stats: Statistics = field(default_factory=Statistics)
    format: str = "text"

    def explained(self) -> str:
        return explain(planned(self.sql, self.stats, self.options), self.format)

    def render(self) -> str:
        return "\n".join([*self.head, self.sql, DASHES, self.explained(), ""])


def declared() -> Declared:
    found = Declared()
    found.run(DDL)
    return found


def planned(sql: str, stats: Statistics | None = None, options: PlanOptions | None = None) -> Phys:
    return plan(declared().register("q", sql), stats, options)


def load(path: Path) -> Case:
    top, _, shown = path.read_text(encoding="utf-8").partition(f"\n{DASHES}\n")
    case = Case(plan=shown.rstrip("\n"))
    lines = top.split("\n")
    while lines and (
        lines[0].startswith("#") or lines[0].partition(":")[0] in ("options", "stats", "format")
    ):
        line = lines.pop(0)
        case.head.append(line)
        _take(case, *(part.strip() for part in line.partition(":")[::2]))
    case.sql = "\n".join(lines).strip("\n")
    return case


def _take(case: Case, what: str, text: str) -> None:
    pairs: dict[str, str] = (
        dict(p.split("=", 1) for p in text.split()) if what in ("options", "stats") else {}
    )
    match what:
        case "options":
            given: dict[str, Any] = {k: _option(k, v) for k, v in pairs.items()}
            case.options = replace(case.options, **given)
        case "stats":
            case.stats = _stats(pairs)
        case "format":
            case.format = text


def _option(name: str, text: str) -> object:
    match name:
        case "disabled":
            return frozenset(text.split(","))
        case "partitions":
            return int(text)
        case "optimize":
            return text == "true"
        case _:
            return text


def _stats(pairs: dict[str, str]) -> Statistics:
    columns = {f.name: i for i, f in enumerate(declared().stream("s1").schema)}
    rates, distinct = {}, {}
    for name, value in pairs.items():
        stream, what = name.split(".")
        if what == "rate":
            rates[stream] = float(value)
        else:
            distinct[stream, columns[what]] = float(value)
    return Statistics(rates, distinct=distinct)


FILES = sorted(GOLDEN.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=[f.stem for f in FILES])
def test_golden(path: Path) -> None:
    case = load(path)
    assert case.explained() == case.plan


def test_there_are_golden_files() -> None:
    assert len(FILES) >= 15


# ---------------------------------------------------------------- Fig 3.5

FIGURE = (
    "SELECT Rstream(*) FROM s1 [RANGE 1 MINUTE], s2 [RANGE 1 MINUTE] WHERE s1.a = s2.a AND s1.b > "
    "0 AND s2.b > 0 "
    + ("AND NOT EXISTS (SELECT * FROM s3 [RANGE 1 MINUTE] WHERE s3.a = s1.a AND s3.b > 0)")
)


def labels(phys: Phys) -> list[str]:
    return [
        f"{type(n.node).__name__} {n.pattern.name}"
        for _, n in nodes(phys)
        if not isinstance(n.node, lp.Output)
    ]


@pytest.mark.parametrize(
    ("negation", "top"),
    [("up", ["SemiJoin STR", "Join WK"]), ("down", ["Join STR", "SemiJoin STR"])],
)
def test_the_plans_of_figure_3_5_come_out_with_its_labels(negation: Any, top: list[str]) -> None:
    options = PlanOptions(
        negation=negation, disabled=frozenset({"select_below_window", "narrow_exists"})
    )
    leaf = ["Select WKS", "Window WKS", "StreamScan MON"]
    assert labels(planned(FIGURE, options=options)) == [*top, *leaf, *leaf, *leaf]


# ---------------------------------------------------------------- live counts, formats

SIMPLE = "SELECT Rstream(s1.a) FROM s1 [RANGE 10 SECONDS], s2 [RANGE 10 SECONDS] WHERE s1.a = s2.a"
LIVE = {
    (): {
        "rows_in": 7,
        "rows_out": 7,
        "positive": 5,
        "negative": 2,
        "state_rows": 3,
        "bytes": 4096,
        "ms": 0.25,
    },
    (0,): {"rows_in": 9, "rows_out": 7},
}


def test_analyze_adds_live_counts() -> None:
    lines = explain(planned(SIMPLE), live=LIVE).split("\n")
    assert lines[0].endswith("in 7 out 7 (+5 -2) state 3 rows 4.0 KiB 0.25 ms")
    assert lines[1].endswith("in 9 out 7")


def test_graphs_have_every_node_and_edge() -> None:
    phys = planned(SIMPLE)
    count = len(list(nodes(phys)))
    dot, mermaid = explain(phys, "GRAPHVIZ", LIVE), explain(phys, "Mermaid", LIVE)
    assert dot.startswith("digraph plan {")
    assert dot.rstrip().endswith("}")
    assert dot.count(" -> ") == mermaid.count(" --> ") == count - 1
    assert dot.count("[label=") == 2 * count - 1
    assert "(+5 -2)" in dot
    assert "(+5 -2)" in mermaid
    assert "n0 -> n [label=" in dot


def test_names_and_texts_can_not_break_a_graph() -> None:
    phys = planned("SELECT c FROM s1 [NOW] WHERE c = 'say \"x\" <b>\\' AND a < 3")
    dot, mermaid = explain(phys, "graphviz"), explain(phys, "mermaid")
    assert 'say \\"x\\" <b>\\\\' in dot
    assert "say #quot;x#quot; #lt;b#gt;" in mermaid
    assert "a #lt; 3" in mermaid


def test_an_unknown_format_is_told_which_there_are() -> None:
    with pytest.raises(UsageError, match="MERMAID") as caught:
        explain(planned(SIMPLE), "svg")
    assert caught.value.code == "DS408"


@pytest.mark.parametrize(
    ("x", "shown"),
    [(0.0, "0"), (0.0512, "0.0512"), (1.5, "1.5"), (120.4, "120"), (36_000, "36k"), (1.2e7, "12M")],
)
def test_number(x: float, shown: str) -> None:
    assert number(x) == shown


def test_size() -> None:
    assert [size(n) for n in (12, 2048, 3 << 20, 5 << 30)] == [
        "12 B",
        "2.0 KiB",
        "3.0 MiB",
        "5.0 GiB",
    ]


def main(arguments: list[str]) -> None:
    for path in map(Path, arguments) if arguments else FILES:
        path.write_text(load(path).render(), encoding="utf-8")


if __name__ == "__main__":
    main([a for a in sys.argv[1:] if a != "--write"])
