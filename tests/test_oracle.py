"""The oracle against answers computed by hand, on plans built by hand.

Each case is a plan, the rows that come ("s 0 a" is a row of s at instant 0), and what must be
pushed ("+0 a" enters, "-9 a" leaves).  The figures of Golab 2006, chapter 3, are among them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

import pytest

from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS, BOOL, FLOAT, INT, STRING, decimal
from tests.oracle import Change, Delta, Oracle, Row
from tests.oracle import plans as p
from tests.oracle.aggregates import SumOverflow, aggregate

S, T, U = (p.stream(n, a=STRING, x=INT) for n in "stu")
R = p.table("r", a=STRING, y=INT)
N = p.table("n", retroactive=False, a=STRING, y=INT)


def _value(text: str) -> object:
    return None if text == "NULL" else int(text) if text.lstrip("-").isdigit() else text


def _rows(lines: Sequence[str]) -> dict[str, list[Row]]:
    streams: dict[str, list[Row]] = {}
    for number, line in enumerate(lines):
        name, ts, *values = line.split()
        row = Row(int(ts), number, (*map(_value, values), *(None,) * (2 - len(values))))
        streams.setdefault(name, []).append(row)
    return streams


def _changes(lines: Sequence[str]) -> list[Change]:
    out = []
    for number, line in enumerate(lines):
        sign, at, *values = line.split()
        row = tuple(map(_value, values))
        made = [c.version for c in out if c.values == row and c.kind == "insert"]
        kind = "insert" if sign == "+" else "delete"
        out.append(
            Change(
                ALWAYS if at == "always" else int(at),
                kind,
                row,
                number if kind == "insert" else made[-1],
            )
        )
    return out


def reported(
    plan: lp.Node, kind: str | None, lines: Sequence[str], upto: int = 1000, **tables: Sequence[str]
) -> str:
    changes = {name: _changes(text) for name, text in tables.items()}
    oracle = Oracle(p.output(plan, kind), _rows(lines), changes)
    return ", ".join(map(_shown, oracle.deltas(upto)))


def _shown(delta: Delta) -> str:
    sign = "+" if delta.kind == "insert" else "-"
    at = "always" if delta.at == ALWAYS else delta.at
    return f"{sign}{at} " + " ".join("NULL" if v is None else str(v) for v in delta.values)


def letters(node: lp.Node) -> lp.Project:
    return p.project(node, "a")


def win(node: lp.Node, length: int, **more: object) -> lp.Window:
    return p.window(node, "time", length, **more)


# ---------------------------------------------------------------- the four patterns of Golab 2006,
# Fig 3.1


def test_selection_lets_rows_leave_in_the_order_they_came():
    plan = letters(p.select(win(S, 10), "ne", "a", "b"))
    assert (
        reported(plan, "rstream", ["s 1 a", "s 2 b", "s 3 c", "s 3 a"])
        == "+1 a, +3 c, +3 a, -11 a, -13 c, -13 a"
    )


def test_a_join_result_dies_with_the_first_of_its_parts():
    plan = letters(p.join(win(S, 10), win(T, 10), "a"))
    lines = ["s 1 a", "t 2 c", "t 5 a", "s 9 c"]  # c comes last and leaves first, at 12
    assert reported(plan, "rstream", lines) == "+5 a, +9 c, -11 a, -12 c"


def test_short_lived_and_stillborn_join_results():
    plan = letters(p.join(win(S, 10), win(T, 10), "a"))
    assert reported(plan, "rstream", ["s 1 a", "t 10 a", "s 20 a"]) == "+10 a, -11 a"


def test_distinct_hands_a_value_on_unseen():
    plan = p.distinct(letters(win(S, 10)))
    assert (
        reported(plan, "rstream", ["s 0 a", "s 1 b", "s 5 a", "s 6 c"])
        == "+0 a, +1 b, +6 c, -11 b, -15 a, -16 c"
    )
    assert reported(plan, "istream", ["s 0 a", "s 5 a", "s 15 a"]) == "+0 a"


def test_aggregation_replaces_its_answer():
    plan = p.group(win(S, 10), (), p.agg(S, "sum", "x"))
    lines = ["s 0 a 5", "s 4 b 7", "s 4 b -7"]
    assert (
        reported(plan, "rstream", lines)
        == "+always NULL, -0 NULL, +0 5, -10 5, +10 0, -14 0, +14 NULL"
    )
    assert reported(plan, "istream", lines) == "+always NULL, +0 5, +10 0, +14 NULL"
    assert reported(plan, "dstream", lines) == "+0 NULL, +10 5, +14 0"


# ---------------------------------------------------------------- Fig 3.2: four kinds of windows
# under SUM


@pytest.mark.parametrize("kind", ["rows", "unbounded"])
def test_external_windows_replace_the_sum_and_internal_ones_append(kind):
    lines = [f"s {i} a {i}" for i in range(1, 8)]
    extent = (5,) if kind == "rows" else ()
    external = p.group(p.window(S, kind, *extent), (), p.agg(S, "sum", "x"))
    internal = p.append(
        p.group(p.window(S, kind, *extent, internal=True), (), p.agg(S, "sum", "x"))
    )
    sums = [1, 3, 6, 10, 15, 20, 25] if kind == "rows" else [1, 3, 6, 10, 15, 21, 28]
    appended = ["+always NULL"] + [f"+{i} {v}" for i, v in enumerate(sums, 1)]
    assert reported(internal, None, lines) == ", ".join(appended)
    replaced = reported(external, "rstream", lines).split(", ")
    assert [d for d in replaced if d[0] == "+"] == appended
    assert len([d for d in replaced if d[0] == "-"]) == 7


# ---------------------------------------------------------------- Fig 3.3: three internal windows
# joined in two steps


def test_internal_joins_append_what_external_ones_would_have_shown():
    def three(internal: bool) -> lp.Node:
        s, t, u = (win(n, 10, internal=internal) for n in (S, T, U))
        return letters(p.join(p.join(s, t, "a"), u, "a"))

    # at 10 the pair (0, 3) is dead
    lines = ["s 0 a", "t 3 a", "u 9 a", "u 10 a", "s 11 a", "u 12 a"]
    external = reported(three(False), "rstream", lines).split(", ")
    assert ", ".join(d for d in external if d[0] == "+") == "+9 a, +11 a, +11 a, +12 a"
    assert reported(p.append(three(True)), None, lines) == "+9 a, +11 a, +11 a, +12 a"


def test_one_external_window_among_internal_ones_ends_the_results():
    join = p.join(win(S, 10, internal=True), win(T, 20), "a")
    plan = p.append(letters(join), mixed=True)
    assert reported(plan, "rstream", ["s 0 a", "t 5 a", "s 20 a"]) == "+5 a, +20 a, -25 a, -25 a"


# ---------------------------------------------------------------- negation and set operations


def test_not_exists_takes_back_and_gives_again():
    plan = letters(p.semi(win(S, 20), win(T, 5), "a", anti=True))
    assert (
        reported(plan, "rstream", ["s 0 a", "s 1 b", "t 3 a", "t 4 a"])
        == "+0 a, +1 b, -3 a, +9 a, -20 a, -21 b"
    )


def test_not_in_is_undone_by_a_null():
    plan = letters(p.semi(win(S, 20), win(T, 5), "a", anti=True, null_aware=True))
    assert (
        reported(plan, "rstream", ["s 0 a", "t 3 NULL", "s 30 NULL"])
        == "+0 a, -3 a, +8 a, -20 a, +30 NULL, -50 NULL"
    )


def test_exists_reports_each_row_once():
    plan = letters(p.semi(win(S, 20), win(T, 5), "a"))
    assert reported(plan, "istream", ["s 0 a", "t 3 a", "t 4 a", "t 15 a"]) == "+3 a, +15 a"


@pytest.mark.parametrize(
    ("op", "all_", "expected"),
    [
        ("except", True, "+0 a, +0 a, -2 a, -3 a, +7 a, +8 a, -10 a, -10 a"),
        ("except", False, "+0 a, -2 a, +8 a, -10 a"),
        ("intersect", True, "+2 a, +3 a, -7 a, -8 a"),
        ("intersect", False, "+2 a, -8 a"),
    ],
)
def test_set_operations_count(op, all_, expected):
    left, right = letters(win(S, 10)), letters(win(T, 5))
    lines = ["s 0 a", "s 0 a", "t 2 a", "t 3 a", "t 3 b"]
    assert reported(p.set_op(op, left, right, all_), "rstream", lines) == expected


def test_union_all_reports_every_arrival():
    plan = p.union(letters(p.window(S, "rows", 1)), letters(p.window(T, "rows", 1)))
    lines = ["s 0 a", "t 1 a", "s 2 a", "t 3 b"]
    assert reported(plan, "istream", lines) == "+0 a, +1 a, +2 a, +3 b"
    assert reported(plan, "dstream", lines) == "+2 a, +3 a"
    assert reported(plan, "rstream", lines) == "+0 a, +1 a, -2 a, +2 a, -3 a, +3 b"


# ---------------------------------------------------------------- outer joins and tables


def test_the_padded_row_goes_when_a_match_comes():
    plan = p.join(letters(win(S, 10)), letters(win(T, 3)), "a", kind="left")
    expected = (
        "+0 a NULL, +1 NULL NULL, -2 a NULL, +2 a a, -5 a a, +5 a NULL, -10 a NULL, -11 NULL NULL"
    )
    assert reported(plan, "rstream", ["s 0 a", "s 1 NULL", "t 2 a"]) == expected


def test_full_join_pads_both_sides():
    plan = p.join(letters(win(S, 10)), letters(win(T, 10)), "a", kind="full")
    expected = (
        "+0 NULL b, +1 a NULL, -2 NULL b, +2 b b, -10 b b, +10 b NULL, -11 a NULL, -12 b NULL"
    )
    assert reported(plan, "rstream", ["t 0 b", "s 1 a", "s 2 b"]) == expected


def test_a_retroactive_table_changes_old_results():
    plan = p.project(p.join(win(S, 10), R, "a"), "a", "y")
    changes = ["+ always a 1", "+ 4 a 2", "- 6 a 1"]
    assert reported(plan, "rstream", ["s 1 a"], r=changes) == "+1 a 1, +4 a 2, -6 a 1, -11 a 2"


def test_a_non_retroactive_table_is_read_as_of_the_row():
    plan = p.project(p.join_nrr(win(S, 10), N, "a"), "a", "y")
    changes = ["+ always a 1", "- 5 a 1", "+ 5 b 2"]
    assert (
        reported(plan, "rstream", ["s 1 a", "s 4 b", "s 5 a", "s 5 b"], n=changes)
        == "+1 a 1, +5 b 2, -11 a 1, -15 b 2"
    )
    left = p.project(p.join_nrr(S, N, "a", kind="left"), "y")
    assert reported(left, None, ["s 1 a", "s 5 a"], n=changes) == "+1 1, +5 NULL"


# ---------------------------------------------------------------- windows


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ({"kind": "now"}, "+1 a, +1 b, -2 a, -2 b, +4 c, -5 c"),
        ({"kind": "time", "length": 3}, "+1 a, +1 b, -4 a, -4 b, +4 c, -7 c"),
        ({"kind": "time", "length": 5, "until": 3}, "+4 a, +4 b, -6 a, -6 b, +7 c, -9 c"),
        ({"kind": "rows", "count": 2}, "+1 a, +1 b, -4 a, +4 c"),
        ({"kind": "rows", "count": 2, "until": 1}, "+1 a, -4 a, +4 b"),
        ({"kind": "rows", "count": 1}, "+1 b, -4 b, +4 c"),
        ({"kind": "partitioned", "count": 1, "by": (1,)}, "+1 a, +1 b, -4 a, +4 c"),
        ({"kind": "landmark", "since": 2}, "+4 c"),
        ({"kind": "unbounded"}, "+1 a, +1 b, +4 c"),
    ],
)
def test_what_each_window_holds(window, expected):
    plan = letters(p.window(S, **window))
    assert reported(plan, "rstream", ["s 1 a 0", "s 1 b 1", "s 4 c 0"]) == expected


def test_a_window_over_what_was_appended():
    inner = p.append(letters(p.join(win(S, 10, internal=True), win(T, 10, internal=True), "a")))
    lines = ["s 0 a", "t 1 a", "t 4 a", "t 5 a"]
    assert reported(p.window(inner, "rows", 2), "rstream", lines) == "+1 a, +4 a, -5 a, +5 a"
    assert reported(p.window(inner, "time", 4), "dstream", lines) == "+5 a, +8 a, +9 a"


# ---------------------------------------------------------------- aggregates and values


def _agg(fn: str, values: list, type_=INT, **more: object) -> object:
    node = p.stream("v", x=type_, by=INT)
    rows = [v if isinstance(v, tuple) else (v, None) for v in values]
    names = ("x", "by") if fn.startswith("arg") else ("x",)
    return aggregate(p.agg(node, fn, *names, **more), rows)


def test_aggregates_from_their_definitions():
    assert (
        _agg("sum", [1, None, 2]) == 3 and _agg("sum", []) is None and _agg("count", [1, None]) == 1
    )
    assert _agg("sum", [2**63 - 1, 1, -1]) == 2**63 - 1
    with pytest.raises(SumOverflow):
        _agg("sum", [2**63 - 1, 1])
    assert _agg("avg", [2**63 - 1, 2**63 - 1], type=FLOAT) == float(2**63 - 1)
    assert _agg("sum", [0.1] * 10, FLOAT) == 1.0
    assert (
        math.isnan(_agg("sum", [math.inf, -math.inf], FLOAT))
        and _agg("sum", [math.inf, 1.0], FLOAT) == math.inf
    )
    assert (
        math.isnan(_agg("max", [1.0, math.nan, math.inf], FLOAT))
        and _agg("min", [math.nan, 2.0], FLOAT) == 2.0
    )
    assert _agg("median", [4, 1, 3, 2], type=FLOAT) == 2.5
    assert (
        _agg("quantile", [4, 1, 3, 2], params=(0.5,)) == 2
        and _agg("quantile", [4, 1], params=(0.51,)) == 4
    )
    assert _agg("quantile_cont", [0, 10], type=FLOAT, params=(0.25,)) == 2.5
    assert (
        _agg("var", [1, 2, 4], type=FLOAT) == pytest.approx(7 / 3)
        and _agg("var", [1], type=FLOAT) is None
    )
    assert _agg("var_pop", [1], type=FLOAT) == 0.0 and _agg("stddev_pop", [1, 3], type=FLOAT) == 1.0
    assert _agg("first", [None, 5, 6]) == 5 and _agg("last", [5, 6, None]) == 6
    assert _agg("argmax", [(1, 7), (2, 9), (3, 9), (4, None), (None, 10)]) == 2
    assert _agg("count", [0.0, -0.0, math.nan, math.nan], FLOAT, distinct=True) == 2
    assert _agg("avg", [Decimal("1.00"), Decimal("1.01")], decimal(9, 2), type=FLOAT) == 1.005
    assert _agg(
        "sum", [Decimal("1.00"), Decimal("1.01")], decimal(9, 2), type=decimal(38, 2)
    ) == Decimal("2.01")
    assert _agg("topk", ["b", "a", "c", "b", "c"], STRING, params=(2,)) == "[b, c]"
    assert _agg("bool_and", [True, None], BOOL) is True and _agg("bool_or", [], BOOL) is None
