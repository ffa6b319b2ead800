"""FROM ARCHIVE s [window] and s [window ARCHIVE]: bound, printed back, refused; what a plan needs
of an archive."""

from __future__ import annotations

import pytest

from dsms.errors import QueryError, UsageError
from dsms.oneshot.pushdown import Condition, needed
from dsms.oneshot.reads import reads
from dsms.plan.planner import plan
from dsms.plan.text import describe
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import bind_create_query, bind_create_stream, bind_create_table, bind_query
from dsms.sql.catalog import Catalog
from dsms.sql.logical import leaves_of, nodes_of
from dsms.sql.parser import parse, parse_one
from dsms.sql.printer import to_sql
from dsms.sql.render import to_sql as plan_to_sql
from dsms.sql.types import ALWAYS

S, HOUR = 1_000_000, 3_600_000_000
SCRIPT = """
CREATE STREAM trades (sym STRING, px FLOAT, qty INT, ts TIMESTAMP) TIMESTAMP BY ts ARCHIVE FOR 2 h CLUSTER BY sym UPDATE EVERY 10 min;
CREATE STREAM ticks (sym STRING, n INT, at INT) TIMESTAMP BY at UNIT s ARCHIVE;
CREATE STREAM quotes (sym STRING, bid FLOAT);
CREATE TABLE listed (sym STRING PRIMARY KEY, name STRING);
CREATE QUERY busy AS SELECT sym, COUNT(*) AS n FROM trades [RANGE 10] GROUP BY sym ARCHIVE FOR 0 s CLUSTER BY n;
CREATE QUERY plain AS SELECT sym, COUNT(*) AS n FROM trades [RANGE 10] GROUP BY sym;
"""  # noqa: E501


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    made = Catalog()
    for statement in parse(SCRIPT):
        match statement:
            case ast.CreateStream(name):
                made.streams[made.key(name.text)] = bind_create_stream(statement, made)
            case ast.CreateTable(name):
                made.tables[made.key(name.text)] = bind_create_table(statement, made)
            case ast.CreateQuery(name):
                made.queries[made.key(name.text)], _ = bind_create_query(statement, made)
    return made


def bound(sql: str, catalog: Catalog) -> lp.Output:
    return bind_query(parse_one(sql), catalog, persistent=False)


def scans(node: lp.Node) -> list[lp.StreamScan]:
    return [n for n in leaves_of(node) if isinstance(n, lp.StreamScan)]


# ---------------------------------------------------------------- what is bound


def test_the_archived_part_alone(catalog: Catalog) -> None:
    (scan,) = scans(bound("SELECT sym FROM ARCHIVE trades [RANGE 1 h] t WHERE t.qty > 1", catalog))
    assert (scan.archive, scan.alias, scan.stream.archive_cluster) == (
        lp.Archived("stream"),
        "t",
        "sym",
    )
    (scan,) = scans(bound("SELECT n FROM ARCHIVE busy", catalog))
    assert (scan.archive, scan.stream.name, scan.stream.timestamp) == (
        lp.Archived("query"),
        "busy",
        None,
    )
    assert [f.name for f in scan.schema] == ["sym", "n"]


def test_live_and_archived_rows_together(catalog: Catalog) -> None:
    node = bound(
        "SELECT * FROM trades [RANGE 2 h ARCHIVE] a JOIN quotes [RANGE 5] q ON a.sym = q.sym",
        catalog,
    )
    assert [s.archive for s in scans(node)] == [lp.Archived("stream", live=True), None]
    (window, _) = (n for n in nodes_of(node) if isinstance(n, lp.Window))
    assert (window.spec.length, window.spec.archive) == (2 * HOUR, True)


@pytest.mark.parametrize(
    "window",
    [
        "",
        " [RANGE 7 DAYS]",
        " [RANGE 1 h UNTIL 1 min AGO]",
        " [ROWS 10]",
        " [PARTITION BY sym ROWS 2]",
        " [RANGE UNBOUNDED]",
        " [SINCE TIMESTAMP '2013-01-01 00:00:00']",
    ],
)
def test_windows_of_an_archive_print_back(window: str, catalog: Catalog) -> None:
    text = f"SELECT sym, qty FROM ARCHIVE trades{window} WHERE qty > 3"
    assert to_sql(parse_one(to_sql(parse_one(text)))) == to_sql(parse_one(text))
    node = bound(text, catalog)
    assert bound(plan_to_sql(node), catalog) == node


@pytest.mark.parametrize(
    "window",
    [
        "RANGE 2 h ARCHIVE",
        "RANGE 1 h UNTIL 5 min AGO ARCHIVE",
        "ROWS 10 ARCHIVE",
        "SINCE TIMESTAMP '2013-01-01 00:00:00' ARCHIVE",
    ],
)
def test_windows_that_reach_into_an_archive_print_back(window: str, catalog: Catalog) -> None:
    node = bound(f"SELECT sym FROM trades [{window}]", catalog)
    assert bound(plan_to_sql(node), catalog) == node
    assert "ARCHIVE" in plan_to_sql(node)
    unlimited = (
        "SELECT sym FROM ticks "
        f"[{'RANGE UNBOUNDED ARCHIVE' if window.startswith('ROWS') else window}]"
    )
    assert scans(bound(unlimited, catalog))[0].archive == lp.Archived("stream", live=True)


def test_plans_tell_archives_from_streams(catalog: Catalog) -> None:
    node = bound(
        "SELECT a.n FROM ARCHIVE busy a, trades [RANGE 1 h ARCHIVE], quotes [NOW]", catalog
    )
    assert [describe(s) for s in scans(plan(node).node)] == [
        "Archive busy AS a",
        "Stream and archive trades",
        "Stream quotes",
    ]
    windows = [describe(n) for n in nodes_of(plan(node).node) if isinstance(n, lp.Window)]
    assert "Window RANGE 1 h ARCHIVE" in windows


def test_a_stream_called_archive_can_still_be_read() -> None:
    made = Catalog()
    made.streams["archive"] = bind_create_stream(
        parse_one("CREATE STREAM archive (k INT) ARCHIVE"), made
    )
    assert scans(bound("SELECT k FROM archive [RANGE 5]", made))[0].archive is None
    assert scans(bound('SELECT k FROM ARCHIVE "archive"', made))[0].archive == lp.Archived("stream")


# ---------------------------------------------------------------- what is refused

WRONG = [
    (
        "DS390",
        "SELECT * FROM ARCHIVE ^quotes",
        "stream quotes has no archive",
        "CREATE STREAM quotes ... ARCHIVE",
    ),
    ("DS390", "SELECT * FROM ARCHIVE ^plain", "query plain has no archive", "CREATE QUERY plain"),
    ("DS390", "SELECT * FROM ARCHIVE ^listed", "tables have no archive", "as it stands"),
    (
        "DS390",
        "SELECT * FROM quotes [^RANGE 5 ARCHIVE]",
        "stream quotes has no archive",
        "FOR 30 DAYS",
    ),
    ("DS203", "SELECT * FROM ARCHIVE ^trade", "unknown stream or table `trade`", "trades"),
    ("DS391", "SELECT * FROM ARCHIVE trades [^NOW]", "not archived yet", "RANGE"),
    ("DS391", "SELECT * FROM trades [^NOW ARCHIVE]", "not archived yet", "RANGE"),
    (
        "DS391",
        "SELECT * FROM ARCHIVE trades [^RANGE 5 ARCHIVE]",
        "the archived part alone",
        "leave one of the two out",
    ),
    ("DS391", "SELECT * FROM busy [^RANGE 5 ARCHIVE]", "busy is a query", "FROM ARCHIVE busy"),
    (
        "DS391",
        "SELECT * FROM ARCHIVE trades [^RANGE 5 INTERNAL]",
        "made as rows come",
        "leave INTERNAL out",
    ),
    (
        "DS391",
        "SELECT * FROM (SELECT ^Istream(SUM(qty)) FROM ARCHIVE trades) q",
        "Istream append",
        "leave INTERNAL out",
    ),
    (
        "DS391",
        "SELECT SUM(Wstream(qty)[ROWS 3]) FROM trades [^RANGE 5 INTERNAL ARCHIVE]",
        "made as rows come",
        None,
    ),
    (
        "DS391",
        "SELECT * FROM (SELECT sym FROM quotes) [^ROWS 2 ARCHIVE]",
        "only the window of a stream",
        "inside",
    ),
    ("DS305", "SELECT * FROM listed [^RANGE 5 ARCHIVE]", "listed is a table", None),
    (
        "DS392",
        "SELECT * FROM trades [^RANGE 3 h ARCHIVE]",
        "keeps rows for 2 h",
        "[RANGE 2 h ARCHIVE]",
    ),
    (
        "DS392",
        "SELECT * FROM trades [^RANGE UNBOUNDED ARCHIVE]",
        "keeps rows for 2 h",
        "FROM ARCHIVE trades",
    ),
    (
        "DS392",
        "SELECT * FROM trades [^PARTITION BY sym ROWS 2 ARCHIVE]",
        "reaches back further",
        None,
    ),
    (
        "DS205",
        "SELECT * FROM trades [RANGE 5], ARCHIVE ^trades",
        "stands in FROM twice",
        "AS trades2",
    ),
    ("DS227", "CREATE STREAM x (k INT) ARCHIVE FOR ^0 s", "ARCHIVE FOR", None),
    (
        "DS227",
        "CREATE QUERY x AS SELECT COUNT(*) FROM trades [RANGE 5] ARCHIVE UPDATE EVERY ^0 s",
        "UPDATE EVERY",
        None,
    ),
    (
        "DS201",
        "CREATE STREAM x (k INT) ARCHIVE CLUSTER BY ^kk",
        "CLUSTER BY: unknown column `kk`",
        "k",
    ),
    (
        "DS391",
        "CREATE QUERY x AS SELECT COUNT(*) FROM ^ARCHIVE trades [RANGE 5 SLIDE 5]",
        "follows what comes",
        "ask once",
    ),
    (
        "DS391",
        "CREATE QUERY x AS SELECT COUNT(*) FROM trades [^RANGE 5 ARCHIVE]",
        "follows what comes",
        "ask once",
    ),
]


@pytest.mark.parametrize(("code", "text", "message", "hint"), WRONG, ids=[w[1] for w in WRONG])
def test_what_archives_can_not_do_is_told(
    code: str, text: str, message: str, hint: str | None, catalog: Catalog
) -> None:
    with pytest.raises(QueryError) as caught:
        statement = parse_one(text.replace("^", ""))
        match statement:
            case ast.CreateStream():
                bind_create_stream(statement, catalog)
            case ast.CreateQuery():
                bind_create_query(statement, catalog)
            case _:
                bind_query(statement, catalog, persistent=False)
    error = caught.value
    assert (error.code, error.line, error.column) == (code, 1, text.index("^") + 1), error
    assert message in error.message and (hint is None or hint in (error.hint or "")), error


def test_an_engine_without_spark_says_how_to_get_it(tmp_path) -> None:
    import dsms
    from dsms.settings import Settings

    engine = dsms.Engine(settings=Settings(archive=str(tmp_path), archive_local_bytes=-1))
    engine.execute(
        "CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t ARCHIVE; CREATE TABLE r (k INT)"
    )
    for sql in ("SELECT * FROM ARCHIVE s", "SELECT * FROM s [RANGE 1 h ARCHIVE]"):
        with pytest.raises(UsageError, match=r"(?s)DS412.*pip install '\.\[spark\]'"):
            engine.execute(sql)
    with pytest.raises(UsageError, match="DS413"):
        engine.execute("INSERT INTO r SELECT k FROM ARCHIVE s")


# ---------------------------------------------------------------- what a plan needs of an archive


def need(sql: str, catalog: Catalog, at: int = 10 * HOUR):
    root = plan(bound(sql, catalog)).node
    (found,) = needed(root, at).values()
    return found


def test_windows_and_conditions_on_the_timestamp_are_ranges_of_insertion_time(
    catalog: Catalog,
) -> None:
    at = 10 * HOUR
    cases = {
        "trades": (ALWAYS, at),
        "trades [RANGE 1 h]": (9 * HOUR, at),
        "trades [RANGE 1 h UNTIL 10 min AGO]": (9 * HOUR, at - 600 * S),
        "trades [SINCE TIMESTAMP '1970-01-01 02:00:00']": (2 * HOUR - 1, at),
        "trades [ROWS 5]": (ALWAYS, at),
        "trades WHERE ts > TIMESTAMP '1970-01-01 05:00:00' AND ts <= TIMESTAMP '1970-01-01 "
        "06:00:00'": (
            5 * HOUR - 1,
            6 * HOUR,
        ),
        "trades [RANGE 9 h] WHERE TIMESTAMP '1970-01-01 05:00:00' = ts": (5 * HOUR - 1, 5 * HOUR),
        "ticks WHERE at >= 7200 AND at IN (7205, 7300)": (7205 * S - 1, 7300 * S),
        "ticks [ROWS 5] WHERE at >= 7200": (ALWAYS, at),
    }
    for text, span in cases.items():
        found = need(f"SELECT sym FROM ARCHIVE {text}", catalog)
        assert (found.since, found.upto) == span, text
    assert need("SELECT sym FROM ARCHIVE trades [ROWS 5]", catalog).rows == 5


def test_conditions_go_down_only_where_they_would_have_been_tried_first(catalog: Catalog) -> None:
    def met(where: str, source: str = "ARCHIVE trades") -> list[Condition]:
        return sorted(need(f"SELECT * FROM {source} WHERE {where}", catalog).conditions, key=str)

    assert met("sym = 'a'") == [Condition(0, "eq", ("a",))]
    assert met("'a' <= sym AND qty IN (1, 2)") == [
        Condition(0, "ge", ("a",)),
        Condition(2, "in", (1, 2)),
    ]
    assert met("qty BETWEEN 2 AND 4") == [Condition(2, "ge", (2,)), Condition(2, "le", (4,))]
    assert met("sym = 'a' OR qty = 1") == []
    assert met("px > 1.5") == []  # FLOAT: statistics of files know no NaN
    assert met("qty IN (1, NULL)") == []
    assert met("sym = 'a'", "ARCHIVE trades [ROWS 5]") == []
    assert met("sym = 'a' AND qty = 1", "ARCHIVE trades [PARTITION BY sym ROWS 1]") == [
        Condition(0, "eq", ("a",))
    ]
    as_bound = bound(
        "SELECT * FROM ARCHIVE trades WHERE sym = 'a' AND 10 / qty > 1 AND qty > 2", catalog
    )
    assert needed(as_bound, 0)[0].conditions == ()  # 10 / 0 must fail where sym is NULL, too
    assert met("sym LIKE 'a%'") == [Condition(0, "ge", ("a",)), Condition(0, "lt", ("b",))]
    inner = "(SELECT sym, 10 / qty AS x, qty FROM ARCHIVE trades) t"
    assert needed(bound(f"SELECT * FROM {inner} WHERE qty = 2", catalog), 0)[0].conditions == ()
    assert need(
        "SELECT * FROM ARCHIVE trades WHERE sym > 'a' AND sym >= 'b' AND qty = 3", catalog
    ).bounds() == {
        "sym": ("b", None, None),
        "qty": (None, None, (3,)),
    }


def test_columns_that_nobody_looks_at_are_not_read(catalog: Catalog) -> None:
    def read(sql: str) -> list[int]:
        return sorted(need(sql, catalog).columns)

    assert read("SELECT qty FROM ARCHIVE trades WHERE sym = 'a'") == [0, 2]
    assert read("SELECT COUNT(*) FROM ARCHIVE trades") == []
    assert read(
        "SELECT sym, MAX(px) FROM ARCHIVE trades [PARTITION BY qty ROWS 1] GROUP BY sym"
    ) == [0, 1, 2]
    assert read("SELECT DISTINCT sym FROM ARCHIVE trades") == [0]
    assert read("SELECT px FROM ARCHIVE trades ORDER BY qty") == [1, 2]
    assert read(
        "SELECT name FROM ARCHIVE trades t, listed l WHERE t.sym = l.sym AND t.qty > 3"
    ) == [0, 2]


def test_leaves_say_what_they_read(catalog: Catalog) -> None:
    node = bound("SELECT * FROM ARCHIVE trades a, quotes [NOW] b, listed", catalog)
    assert [r.kind for r in reads(node).values()] == ["archive", "stream", "table"]
