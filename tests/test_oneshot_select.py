"""One-time SELECT: what windows hold now, tables, answers of queries; what is not kept; limits and
cancellation."""

from __future__ import annotations

import pytest

from dsms.api import Cancel, Rows
from dsms.engine import Engine
from dsms.errors import QueryError, UsageError
from dsms.settings import Settings
from dsms.state.ring import Need

STREAM = "CREATE STREAM s (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts RETAIN 10 SECONDS"
SECOND = 1_000_000


def engine(
    *rows: tuple[int, int, float],
    upto: float | None = None,
    ddl: str = STREAM,
    settings: Settings | None = None,
) -> Engine:
    """Rows (k, v, seconds) of stream s, complete up to `upto`."""
    made = Engine(settings=settings)
    made.execute(ddl)
    give(made, *rows, upto=upto)
    return made


def give(made: Engine, *rows: tuple[int, int, float], upto: float | None = None) -> None:
    if rows:
        made.ingest("s", [[k, v, round(t * SECOND)] for k, v, t in rows])
    if upto is not None:
        made.heartbeat("s", round(upto * SECOND))


def ask(made: Engine, sql: str, cancel: Cancel | None = None) -> tuple[list[tuple], int | None]:
    (rows,) = made.execute(sql, cancel=cancel)
    assert isinstance(rows, Rows)
    return list(zip(*(c.to_pylist() for c in rows.data.columns), strict=True)), rows.as_of


def since(made: Engine, sql: str) -> int | None:
    """The instant from which on the answer is complete."""
    (rows,) = made.execute(sql)
    assert isinstance(rows, Rows)
    return rows.since


MANY = tuple((i % 3, i, float(i)) for i in range(30))


# ---------------------------------------------------------------- what is kept, and what is not


@pytest.mark.parametrize(
    ("window", "sum_"),
    [
        ("[RANGE 5 SECONDS]", 25 + 26 + 27 + 28 + 29),
        ("[RANGE 4 SECONDS UNTIL 2 SECONDS AGO]", 26 + 27),
        ("[ROWS 3]", 27 + 28 + 29),
        ("[ROWS 4 UNTIL 2 AGO]", 26 + 27),
        ("[NOW]", 29),
        ("[SINCE TIMESTAMP '1970-01-01 00:00:27']", 27 + 28 + 29),
    ],
)
def test_windows_within_what_is_kept(window, sum_):
    made = engine(*MANY, upto=29)
    assert ask(made, f"SELECT SUM(v) FROM s {window}") == ([(sum_,)], 29 * SECOND)


@pytest.mark.parametrize(
    "window",
    [
        "[RANGE 20 SECONDS]",
        "[RANGE 20 SECONDS UNTIL 19 SECONDS AGO]",
        "[ROWS 25]",
        "[PARTITION BY k ROWS 1]",
        "",
        "[RANGE UNBOUNDED]",
        "[SINCE TIMESTAMP '1970-01-01 00:00:03']",
    ],
)
def test_a_window_that_nobody_keeps_is_never_a_silent_part(window):
    made = engine(*MANY, upto=29)
    sql = f"SELECT SUM(v) FROM s {window}"
    with pytest.raises(
        UsageError, match=r"DS407.*keeps the last 10 s of its rows, so this window can't"
    ):
        ask(made, f"{sql} WITH (complete = required)")
    assert since(made, sql) == made.runtime.rings["s"].reach + 1
    whole = engine(*MANY[:5], upto=4)  # nothing has left yet
    assert ask(whole, "SELECT SUM(v) FROM s")[0] == [(10,)]
    assert since(whole, sql) is None


def test_a_window_over_a_result_needs_all_that_the_result_rests_on():
    made = engine(*MANY, upto=29)
    filtered = "SELECT SUM(v) FROM (SELECT v FROM s WHERE v % 2 = 0) [RANGE 5 SECONDS]"
    assert ask(made, filtered)[0] == [(26 + 28,)]
    # how far back the third even one is nobody can say
    third = filtered.replace("[RANGE 5 SECONDS]", "[ROWS 3]")
    # a part of a pair may be as old as the stream
    pairs = "SELECT * FROM (SELECT a.v FROM s AS a, s AS b WHERE a.k = b.k) [RANGE 5 SECONDS]"
    for sql in (third, pairs):
        assert since(made, sql) == made.runtime.rings["s"].reach + 1
        with pytest.raises(UsageError, match="DS407"):
            ask(made, f"{sql} WITH (complete = required)")


def test_a_stream_without_rows_and_one_that_nobody_keeps():
    ddl = STREAM.replace(" RETAIN 10 SECONDS", "")
    empty = engine(ddl=ddl)
    assert ask(empty, "SELECT COUNT(*) FROM s") == ([(0,)], None)
    off = Settings(retain_default=0, retain_default_rows=0)
    made = engine((1, 1, 0), upto=5, ddl=ddl, settings=off)
    with pytest.raises(UsageError, match=r"DS407.*keeps no rows"):
        ask(made, "SELECT COUNT(*) FROM s [RANGE 10 SECONDS]")
    # the last row is older
    assert ask(made, "SELECT COUNT(*) FROM s [RANGE 1 SECOND]") == ([(0,)], 5 * SECOND)
    made = engine((1, 1, 0), upto=5, ddl=ddl)
    assert ask(made, "SELECT COUNT(*) FROM s [RANGE 10 SECONDS]") == ([(1,)], 5 * SECOND)


def test_what_others_keep_of_a_stream_is_there_without_retain():
    made = engine(ddl=STREAM.replace(" RETAIN 10 SECONDS", ""))
    made.runtime.keep("s", "somebody", Need(4 * SECOND))
    give(made, *MANY, upto=29)
    assert ask(made, "SELECT SUM(v) FROM s [RANGE 2 SECONDS]")[0] == [(28 + 29,)]


def test_internal_windows_append_from_the_beginning_or_not_at_all():
    query = "SELECT SUM(v) FROM s [ROWS 2 INTERNAL]"
    made = engine(*MANY[:4], upto=3)
    assert ask(made, query)[0] == [(None,), (0,), (1,), (3,), (5,)]
    assert ask(made, "SELECT MAX(x) FROM (SELECT SUM(v) AS x FROM s [ROWS 2 INTERNAL]) [ROWS 2]")[
        0
    ] == [(5,)]
    long = engine(*MANY, upto=29)
    with pytest.raises(UsageError, match="DS407"):
        ask(long, f"{query} WITH (complete = required)")
    assert since(long, query) == long.runtime.rings["s"].reach + 1
    assert ask(long, query)[0][-1] == (28 + 29,)


# ---------------------------------------------------------------- tables


def test_tables_are_read_as_of_the_same_instant():
    made = engine((1, 1, 0), (1, 2, 5), upto=5)
    made.execute(
        "CREATE TABLE r (k INT PRIMARY KEY, w INT); INSERT INTO r VALUES (1, 10) AT '1970-01-01 "
        "00:00:01'"
    )
    made.execute("UPDATE r SET w = 20 AT '1970-01-01 00:00:08'")
    joined = "SELECT v, w FROM s [RANGE 9 SECONDS], r WHERE s.k = r.k"
    assert ask(made, joined) == ([(1, 10), (2, 10)], 5 * SECOND)
    assert ask(made, "SELECT w FROM r") == ([(20,)], None)
    made.heartbeat("s", 8 * SECOND)
    assert ask(made, joined) == ([(1, 20), (2, 20)], 8 * SECOND)


def test_a_non_retroactive_table_is_read_as_of_each_row_however_old():
    made = engine()
    made.execute(
        "CREATE TABLE n (k INT PRIMARY KEY, w INT) NON RETROACTIVE; INSERT INTO n VALUES (0, 0) "
        "AT '1970-01-01'"
    )
    for second in range(1, 9):
        made.execute(f"UPDATE n SET w = {second} AT '1970-01-01 00:00:0{second}'")
        give(made, *((0, i, second) for i in range(100)), upto=second)
        made.runtime.forget()
    answer, _ = ask(
        made, "SELECT w, COUNT(*) FROM s [RANGE 9 SECONDS], n WHERE s.k = n.k GROUP BY w"
    )
    assert answer == [(second, 100) for second in range(1, 9)]


# ---------------------------------------------------------------- answers of queries


def test_the_answer_of_a_query_is_a_relation():
    made = engine()
    made.execute("CREATE QUERY busy AS SELECT k, COUNT(*) AS n FROM s [RANGE 4 SECONDS] GROUP BY k")
    give(made, *MANY, upto=29)
    assert ask(made, "SELECT * FROM busy ORDER BY n DESC, k") == (
        [(2, 2), (0, 1), (1, 1)],
        29 * SECOND,
    )
    both = "SELECT s.v, b.n FROM s [RANGE 2 SECONDS] JOIN busy AS b ON s.k = b.k WHERE b.n > 1"
    assert ask(made, both)[0] == [(29, 2)]
    assert ask(made, "SELECT MAX(n) FROM busy WHERE k IN (SELECT k FROM s [NOW])")[0] == [(2,)]


def test_answers_of_a_periodic_query_hold_as_of_its_boundary():
    made = engine()
    made.execute(
        "CREATE QUERY p AS SELECT SUM(v) AS total FROM s [RANGE 4 SECONDS SLIDE 4 SECONDS]"
    )
    assert ask(made, "SELECT * FROM p") == ([], None)
    give(made, *MANY[:11], upto=10)
    assert ask(made, "SELECT total FROM p") == ([(4 + 5 + 6 + 7,)], 8 * SECOND - 1)
    # what stands beside it is read as of the same instant
    assert ask(made, "SELECT total, v FROM p, s [NOW]") == ([], 8 * SECOND - 1)
    assert ask(made, "SELECT total, v FROM p, s [RANGE 1 SECOND]") == ([(22, 7)], 8 * SECOND - 1)


@pytest.mark.parametrize(
    ("select", "does"),
    [("SELECT v FROM s", "enters"), ("SELECT Dstream(v) FROM s [NOW]", "leaves")],
)
def test_a_query_that_only_streams_has_no_answer(select, does):
    made = engine()
    made.execute(f"CREATE QUERY q AS {select}")
    with pytest.raises(UsageError, match=f"(?s)DS410.*{does}.*Rstream"):
        ask(made, "SELECT * FROM q")


def test_queries_read_the_answers_of_queries():
    made = engine()
    made.execute(
        "CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [NOW]; CREATE TABLE t (n INT PRIMARY KEY)"
    )
    assert ask(made, "SELECT * FROM q [ROWS 1]")[0] == [(0,)]  # what it has told
    assert ask(made, "SELECT * FROM q [RANGE 1 h]")[0] == []  # at no instant
    made.execute("INSERT INTO t SELECT n FROM q")
    assert ask(made, "SELECT * FROM t")[0] == [(0,)]


# ---------------------------------------------------------------- order, errors, limits


def test_rows_stand_in_the_order_of_their_parts():
    made = engine((1, 5, 0), (2, 3, 1), (1, 4, 2), upto=2)
    assert ask(made, "SELECT v FROM s [RANGE 9 SECONDS]")[0] == [(5,), (3,), (4,)]
    pairs = (
        "SELECT a.v, b.v FROM s [RANGE 9 SECONDS] AS a LEFT JOIN s [RANGE 9 SECONDS] AS b ON "
        "a.k = b.k AND a.v < b.v"
    )
    assert ask(made, pairs)[0] == [(5, None), (3, None), (4, 5)]
    assert ask(made, "SELECT DISTINCT k FROM s [RANGE 9 SECONDS]")[0] == [(1,), (2,)]


@pytest.mark.parametrize(
    ("expr", "code"),
    [
        ("10 / (a.v - 1)", "DS701"),
        ("9223372036854775807 + a.v", "DS702"),
        ("CAST(a.c || 'x' AS INT)", "DS703"),
        ("LN(a.v - 1)", "DS704"),
        ("LENGTH(LPAD('x', a.v * 10000000))", "DS705"),
    ],
)
def test_a_row_that_fails_ends_the_query(expr, code):
    made = engine(ddl=STREAM.replace("v INT", "v INT, c STRING"))
    made.ingest("s", [[1, 1, "x", 0]])
    made.heartbeat("s", 0)
    both = "s [NOW] AS a JOIN s [NOW] AS b ON"
    for query in (
        f"SELECT {expr} FROM s [NOW] AS a",
        f"SELECT COUNT(*) FROM s [NOW] AS a GROUP BY {expr}",
        f"SELECT SUM({expr}) FROM s [NOW] AS a",
        f"SELECT a.v FROM {both} {expr} = b.v",
        f"SELECT a.v FROM {both.replace('JOIN', 'FULL JOIN')} {expr} < b.v",
        f"SELECT a.v FROM s [NOW] AS a WHERE NOT EXISTS (SELECT * FROM s [NOW] AS b WHERE {expr} "
        "< b.v)",
        f"SELECT a.v FROM s [NOW] AS a ORDER BY {expr}",
    ):
        with pytest.raises(QueryError, match=code):
            ask(made, query)
    assert ask(made, f"SELECT CASE WHEN a.v > 1 THEN {expr} END FROM s [NOW] AS a")[0] == [(None,)]
    assert ask(made, f"SELECT {expr} FROM s [NOW] AS a WHERE a.v > 1")[0] == []


def test_a_sum_that_leaves_its_range_ends_the_query():
    made = engine((1, 2**63 - 1, 0), (1, 1, 0), (1, -1, 0), (2, 2**63 - 1, 0), (2, 1, 0), upto=0)
    assert ask(made, "SELECT SUM(v) FROM s [NOW] WHERE k = 1")[0] == [(2**63 - 1,)]
    for query in (
        "SELECT k, SUM(v) FROM s [NOW] GROUP BY k",
        "SELECT SUM(v), MEDIAN(v) FROM s [NOW]",
    ):
        with pytest.raises(QueryError, match="DS706: a SUM left the range of INT"):
            ask(made, query)


def crowd(n: int) -> Engine:
    made = Engine()
    made.execute("CREATE STREAM s (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts RETAIN 1 HOUR")
    made.ingest("s", {"k": [0] * n, "v": list(range(n)), "ts": list(range(n))})
    made.heartbeat("s", n)
    return made


class Looked(Cancel):
    """Cancelled from the n-th look on."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after, self.looks = after, 0

    def check(self) -> None:
        self.looks += 1
        if self.looks == self.after:
            self.set()
        super().check()


HUGE = (
    "SELECT COUNT(*) FROM s [RANGE 1 MIN] AS a, s [RANGE 1 MIN] AS b, s [RANGE 1 MIN] AS c "
    "WHERE a.v + b.v < c.v"
)


@pytest.mark.parametrize(
    "query", [HUGE, HUGE.replace("a.v + b.v < c.v", "a.v < b.v AND b.v < c.v OR a.v = c.v")]
)
def test_a_cancelled_statement_stops_soon_and_the_next_one_runs(query):
    """Cancelled when it has looked twenty times; 27,000,000,000 combinations would take minutes and
    many looks."""
    made, cancel = crowd(3000), Looked(20)
    with pytest.raises(UsageError, match="DS610"):
        ask(made, query, cancel)
    assert cancel.looks <= 21
    assert ask(made, "SELECT COUNT(*) FROM s [RANGE 1 MIN]")[0] == [(3000,)]


@pytest.mark.parametrize("what", ["a.v, b.v", "DISTINCT a.v + b.v * 10000", "a.v, b.v, COUNT(*)"])
def test_a_statement_past_its_memory_limit_is_refused_and_leaves_nothing(what):
    made = crowd(3000)
    made.runtime.settings.statement_bytes = 32 << 20
    query = f"SELECT {what} FROM s [RANGE 1 MIN] AS a, s [RANGE 1 MIN] AS b"
    query += " GROUP BY a.v, b.v" if "COUNT" in what else ""
    with pytest.raises(
        UsageError, match=r"DS633: .* takes more than 32 MiB, which is the limit"
    ) as refused:
        ask(made, query)
    assert "--statement-bytes" in (refused.value.hint or "")
    assert ask(made, "SELECT COUNT(*) FROM s [RANGE 1 MIN] AS a, s [RANGE 1 MIN] AS b")[0] == [
        (9_000_000,)
    ]
