"""What ASOF JOIN can't join, and what its ON may not say."""

from __future__ import annotations

JOIN = "SELECT * FROM trades t ASOF JOIN"
RULES: list[tuple[str, str, str, str | None]] = [
    ("DS370", f"{JOIN} ^listed l ON t.sym = l.sym", "is a table", "leave ASOF out"),
    ("DS370", f"{JOIN} ^limits l ON t.sym = l.sym", "rows of a table are updated", "Istream"),
    (
        "DS370",
        "SELECT * FROM ^listed l ASOF JOIN trades t ON t.sym = l.sym",
        "left side of ASOF JOIN is a table",
        "stands on the left",
    ),
    ("DS370", f"{JOIN} quotes [^ROWS 5] q ON t.sym = q.sym", "whatever else", "WITHIN 5 s"),
    (
        "DS370",
        f"{JOIN} quotes [^RANGE 10 SLIDE 5] q ON t.sym = q.sym",
        "whatever else",
        "left side",
    ),
    ("DS370", f"{JOIN} ^prices p ON t.sym = p.sym", "replaced and deleted", "Istream"),
    (
        "DS370",
        f"{JOIN} ^(SELECT sym, COUNT(*) AS n FROM quotes GROUP BY sym) q ON t.sym = q.sym",
        "one current answer",
        "Istream",
    ),
    (
        "DS370",
        "SELECT * FROM ^(SELECT sym FROM trades [RANGE 9] GROUP BY sym) t ASOF JOIN quotes q "
        "ON t.sym = q.sym",
        "on the left rows come and go with others",
        "Istream",
    ),
    (
        "DS370",
        "SELECT * FROM ^trades [RANGE 9 UNTIL 2 s AGO] t ASOF JOIN quotes q ON t.sym = q.sym",
        "holds rows back",
        None,
    ),
    (
        "DS370",
        "SELECT * FROM trades [^ROWS 10 SLIDE 10] t ASOF JOIN quotes q ON t.sym = q.sym",
        "a SLIDE in rows",
        "[RANGE 10 min SLIDE 1 min]",
    ),
    (
        "DS371",
        f"{JOIN} trades q ON t.sym = q.sym AND t.ts ^<= q.ts",
        "yet to come",
        "turn the sides",
    ),
    (
        "DS371",
        f"{JOIN} trades q ON t.sym = q.sym AND t.px ^>= q.px",
        "not the timestamps of both sides",
        "ON a.key = b.key",
    ),
    (
        "DS371",
        f"{JOIN} late_trades q ON t.sym = q.sym AND t.ts ^>= q.ts",
        "not the timestamps",
        "in WHERE",
    ),
    (
        "DS371",
        f"{JOIN} trades q ON t.sym = q.sym AND t.ts >= q.ts AND t.ts ^> q.ts",
        "twice",
        "once",
    ),
    (
        "DS371",
        f"{JOIN} trades q ON t.sym = q.sym AND q.px + t.px ^= 1",
        "this is neither",
        "subquery in FROM",
    ),
    ("DS227", f"{JOIN} trades q ON t.sym = q.sym WITHIN ^1 MONTH", "fixed length", "DAY"),
]
