"""What MATCH can't follow, and what its conditions may not name."""

from __future__ import annotations

TWO = "[RANGE 9] PER sym"
RULES: list[tuple[str, str, str, str | None]] = [
    (
        "DS303",
        "SELECT a.sym, ^LAST(b.px), COUNT(*) FROM MATCH (a trades, b+ trades, c trades)"
        f" {TWO} GROUP BY a.sym",
        "column `LAST(b.px)`",
        "add LAST(b.px) to GROUP BY",
    ),
    ("DS375", "SELECT a.sym FROM ^MATCH (a trades, b trades)", "needs a window", "[RANGE 10 s]"),
    (
        "DS375",
        "SELECT a.sym FROM MATCH (a trades, b trades) [^ROWS 5]",
        "a length of time",
        "[RANGE 10 s]",
    ),
    ("DS375", f"SELECT a.sym FROM MATCH (a trades, ^b limits) {TWO}", "these change", "Istream"),
    ("DS375", f"SELECT a.sym FROM MATCH (a trades, ^b listed) {TWO}", "these change", "Istream"),
    ("DS375", f"SELECT a.sym FROM MATCH (a trades, ^b prices) {TWO}", "these change", "Istream"),
    (
        "DS375",
        "SELECT a.sym FROM MATCH (^a trades, b trades) [RANGE 9 UNTIL 2 s AGO]",
        "ends now",
        "leave UNTIL",
    ),
    (
        "DS375",
        "SELECT a.sym FROM MATCH (a trades, b trades) [RANGE 9], trades [^ROWS 4 SLIDE 4] c",
        "a SLIDE in rows",
        "[RANGE 10 min SLIDE 1 min]",
    ),
    (
        "DS376",
        f"SELECT a.sym FROM MATCH (a trades, NOT n trades, b trades) {TWO} WHERE b.px ^> n.px",
        "can't name NOT n",
        "steps that have one row",
    ),
    (
        "DS376",
        "SELECT a.sym FROM MATCH (a trades, NOT n trades, b trades) [RANGE 9], quotes [RANGE 9] q "
        "WHERE q.sym ^= n.sym",
        "has not one row",
        "steps of its MATCH",
    ),
    (
        "DS377",
        f"SELECT a.sym FROM MATCH (a trades, c trades, ^b+ trades) {TWO}",
        "have an end on both sides",
        "begin and end",
    ),
    (
        "DS377",
        f"SELECT a.sym FROM MATCH (a trades, b+ trades, ^NOT n trades, c trades) {TWO}",
        "behind a step with +",
        "one row between",
    ),
    (
        "DS377",
        f"SELECT ^MEDIAN(b.px) FROM MATCH (a trades, b+ trades, c trades) {TWO}",
        "MEDIAN does not go over",
        "COUNT, FIRST",
    ),
    (
        "DS376",
        f"SELECT a.sym FROM MATCH (a trades, b+ trades, c trades) {TWO} WHERE c.px ^> b.px",
        "there may be many rows",
        "one row",
    ),
    (
        "DS376",
        f"SELECT a.sym FROM MATCH (a trades, b+ trades, c trades) {TWO} WHERE b.px ^> LAST(b.px)",
        "c can't name b+",
        "LAG(v) OVER",
    ),
    ("DS377", f"SELECT a.sym FROM ^MATCH (a trades) {TWO}", "two steps", "MATCH (a s, b s)"),
    (
        "DS377",
        f"SELECT a.sym FROM MATCH (^NOT n trades, a trades, b trades) {TWO}",
        "can't begin with NOT",
        "between two steps",
    ),
    (
        "DS377",
        "SELECT a.sym FROM MATCH (a trades, b trades, NOT n trades) [^RANGE 9] PER sym",
        "born when its window is over",
        "[RANGE 10 min INTERNAL]",
    ),
    (
        "DS377",
        "SELECT a.sym FROM ^MATCH (a trades, NOT n trades) [RANGE 9 INTERNAL], limits l",
        "appended as they are",
        "a subquery",
    ),
    (
        "DS377",
        "SELECT COUNT(*) FROM ^MATCH (a trades, NOT n trades) [RANGE 9 INTERNAL]",
        "appended as they are",
        "a subquery",
    ),
    (
        "DS378",
        "SELECT a.n FROM MATCH (a quotes, b (SELECT sym AS n FROM trades)) [RANGE 9] PER ^n",
        "INT and STRING are never equal",
        "cast one of them",
    ),
    (
        "DS204",
        f"SELECT ^n.px FROM MATCH (a trades, NOT n trades, b trades) {TWO}",
        "nothing in FROM is called `n`",
        "a, b",
    ),
]
