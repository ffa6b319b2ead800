"""The binder: plans drawn as trees (tests/golden/bound_plans.txt), definitions, changes, and the
papers' statements."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import pytest

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder import (
    Delete,
    Insert,
    Update,
    bind_create_query,
    bind_create_stream,
    bind_create_table,
    bind_query,
    bind_table_statement,
)
from dsms.sql.catalog import Catalog
from dsms.sql.expr import Call, Col, Lit, columns, walk
from dsms.sql.logical import (
    Append,
    Join,
    JoinNRR,
    Node,
    Output,
    Project,
    Select,
    SemiJoin,
    TableScan,
    Window,
    children,
)
from dsms.sql.parser import parse_one, split_statements
from dsms.sql.suggest import hint
from dsms.sql.types import BOOL, FLOAT, INT, STRING, TIMESTAMP, Field, decimal
from dsms.sql.window import Slide, Time, WindowSpec
from tests.plan_forms import drawn
from tests.test_rules import declared

GOLDEN = Path(__file__).parent / "golden" / "bound_plans.txt"
PAPERS = (Path(__file__).parent / "golden" / "papers.cql").read_text(encoding="utf-8")
SCHEMA = """
CREATE STREAM s (a INT, b FLOAT, c STRING, t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM t (a INT, x FLOAT, d STRING);
CREATE STREAM u (a INT, z FLOAT);
CREATE TABLE n (k INT PRIMARY KEY, y INT) NON RETROACTIVE;
CREATE TABLE r (k INT PRIMARY KEY, y INT);
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return declared(SCHEMA)


def bound(text: str, catalog: Catalog, persistent: bool = True) -> Output:
    statement = parse_one(text)
    assert isinstance(statement, ast.SelectStatement)
    return bind_query(statement, catalog, persistent=persistent)


def nodes(node: Node) -> list[Node]:
    return [node, *(n for c in children(node) for n in nodes(c))]


# ---------------------------------------------------------------- plans


def golden() -> list[tuple[str, str]]:
    entries = GOLDEN.read_text(encoding="utf-8").split("\n-- ")[1:]
    return [(sql, tree.strip("\n")) for sql, _, tree in (e.partition("\n") for e in entries)]


@pytest.mark.parametrize(("sql", "tree"), golden(), ids=[sql[:70] for sql, _ in golden()])
def test_plan(sql: str, tree: str, catalog: Catalog) -> None:
    found = drawn(bound(sql, catalog))
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(
            GOLDEN.read_text(encoding="utf-8").replace(f"-- {sql}\n{tree}", f"-- {sql}\n{found}")
        )
        return
    assert found == tree


def well_typed(node: Node) -> None:
    """Every expression reads columns that are there, with their types; join keys agree; conditions
    are BOOL."""
    for child in children(node):
        well_typed(child)
    below = [f.type for c in children(node) for f in c.schema]
    match node:
        case Join() | SemiJoin() | JoinNRR():
            right = node.table if isinstance(node, JoinNRR) else node.right
            left = node.child if isinstance(node, JoinNRR) else node.left
            for a, b in node.keys:
                assert a.type == b.type
                check(a, [f.type for f in left.schema])
                check(b, [f.type for f in right.schema])
            if node.residual is not None:
                assert node.residual.type == BOOL
                check(node.residual, [f.type for f in (*left.schema, *right.schema)])
        case Project():
            assert [e.type for e in node.exprs] == [f.type for f in node.schema]
            for expr in node.exprs:
                check(expr, below)


def check(expr: object, types: list) -> None:
    for part in walk(expr):  # type: ignore[arg-type]
        if isinstance(part, Col):
            assert part.type == types[part.index]


@pytest.mark.parametrize("sql", [sql for sql, _ in golden()])
def test_plans_are_well_typed(sql: str, catalog: Catalog) -> None:
    well_typed(bound(sql, catalog))


def test_unquoted_names_match_in_any_case_and_print_as_declared() -> None:
    catalog = declared('CREATE STREAM Trades (Px INT, "Odd name" INT)')
    plan = bound(
        'SELECT PX, trades.px, "Odd name", "odd NAME" FROM TRADES'.replace(', "odd NAME"', ""),
        catalog,
    )
    assert [f.name for f in plan.schema] == ["Px", "Px", "Odd name"]
    with pytest.raises(QueryError, match="odd NAME"):
        bound('SELECT "odd NAME" FROM trades', catalog)


def test_one_time_queries_read_tables_as_they_stand(catalog: Catalog) -> None:
    plan = bound(
        "SELECT * FROM n JOIN r ON n.k = r.k ORDER BY n.y LIMIT 2", catalog, persistent=False
    )
    assert [type(n).__name__ for n in nodes(plan)] == [
        "Output",
        "Sort",
        "Join",
        "TableScan",
        "TableScan",
    ]


def test_a_non_retroactive_table_waits_for_the_first_stream(catalog: Catalog) -> None:
    plan = bound("SELECT * FROM n x, n y, s WHERE x.k = a AND y.k = x.y", catalog)
    found = [n for n in nodes(plan) if isinstance(n, JoinNRR)]
    assert [n.table.alias for n in found] == ["y", "x"]
    # y joins on x.y, which stands at the end
    assert [columns(k[0]) for n in found for k in n.keys] == [{5}, {0}]
    assert not any(isinstance(n, TableScan) for n in nodes(plan))


def test_padded_sides_may_be_null(catalog: Catalog) -> None:
    plan = bound("SELECT * FROM s LEFT JOIN n ON k = a", catalog)
    assert [f.nullable for f in plan.child.schema] == [True] * 6
    inner = bound("SELECT * FROM s JOIN n ON k = a", catalog)
    assert [f.nullable for f in inner.child.schema] == [True] * 4 + [False, True]


def test_decimal_keys_of_different_scales_get_one_type() -> None:
    catalog = declared("CREATE STREAM p (d DECIMAL(6,2)); CREATE STREAM q (e DECIMAL(5,3), i INT)")
    plan = bound("SELECT * FROM p [NOW], q [NOW] WHERE d = e", catalog)
    (join,) = [n for n in nodes(plan) if isinstance(n, Join)]
    assert [e.type for e in join.keys[0]] == [decimal(7, 3)] * 2
    plan = bound("SELECT d + 1, d = 1.5 FROM p", catalog)
    assert [f.type for f in plan.schema] == [decimal(22, 2), BOOL]


def test_null_takes_the_type_of_its_neighbour(catalog: Catalog) -> None:
    plan = bound("SELECT NULL, NULL, 1 FROM s UNION ALL SELECT a, NULL, NULL FROM s", catalog)
    assert [f.type for f in plan.schema] == [INT, STRING, INT]
    well_typed(plan)
    plan = bound("SELECT a FROM s WHERE a = NULL AND NULL", catalog)
    assert Lit(None, INT) in [
        p for n in nodes(plan) if isinstance(n, Select) for p in walk(n.predicate)
    ]


def test_a_test_against_a_table_by_key_appends(catalog: Catalog) -> None:
    """NOT EXISTS over a non-retroactive table takes nothing back, so INTERNAL windows allow it."""
    plan = bound(
        "SELECT * FROM s [RANGE 5 INTERNAL] WHERE NOT EXISTS (SELECT * FROM n WHERE k = a)", catalog
    )
    assert isinstance(plan.child, Append)


def test_leaves_are_numbered_in_from_order(catalog: Catalog) -> None:
    plan = bound("SELECT * FROM s, (SELECT * FROM t, u) x WHERE EXISTS (SELECT * FROM r)", catalog)
    assert [n.leaf for n in nodes(plan) if hasattr(n, "leaf")] == [0, 1, 2, 3]


def test_windows_of_one_query_share_one_slide(catalog: Catalog) -> None:
    plan = bound("SELECT * FROM s [RANGE 10], t [RANGE 10 SLIDE 5], u [RANGE 4 SLIDE 5]", catalog)
    assert plan.slide is not None
    assert plan.slide.every == 5_000_000


DAY = 86_400_000_000


def window_of(plan: Output) -> WindowSpec:
    return next(n.spec for n in nodes(plan) if isinstance(n, Window))


def test_calendar_lengths() -> None:
    catalog = declared("CREATE STREAM s (a INT)")
    plan = bound("SELECT * FROM s [RANGE 2 WEEKS SLIDE 1 DAY TIME ZONE 'Europe/Paris']", catalog)
    assert window_of(plan) == Time(14 * DAY, calendar=(2, "week"), slide=plan.slide)
    assert plan.slide == Slide(DAY, zone="Europe/Paris", calendar=(1, "day"))
    plain = bound("SELECT * FROM s [RANGE 2 WEEKS SLIDE 1 DAY]", catalog)
    assert window_of(plain) == Time(14 * DAY, slide=Slide(DAY))
    months = bound("SELECT * FROM s [RANGE 1 YEAR SLIDE 1 MONTH]", catalog)
    assert window_of(months) == Time(
        12 * 31 * DAY, calendar=(1, "year"), slide=Slide(31 * DAY, calendar=(1, "month"))
    )


# ---------------------------------------------------------------- definitions


def test_create_stream() -> None:
    catalog = declared("CREATE STREAM late (a INT, ms INT)")
    statement = parse_one(
        "CREATE STREAM s (a INT NOT NULL, ms INT) TIMESTAMP BY MS UNIT ms SLACK 5 s LATE INTO "
        "late MAX FUTURE 1 h IDLE TIMEOUT 30 s SUBWINDOW 1 s RETAIN 1 DAY ARCHIVE FOR 30 DAYS "
        "CLUSTER BY A WITH (description = 'x y')"
    )
    assert isinstance(statement, ast.CreateStream)
    stream = bind_create_stream(statement, catalog, "text")
    assert stream.schema == (Field("a", INT, None, False), Field("ms", INT))
    assert (stream.timestamp, stream.unit, stream.slack, stream.late_into) == (
        1,
        "ms",
        5_000_000,
        "late",
    )
    assert (stream.max_future, stream.idle_timeout, stream.subwindow) == (
        3_600_000_000,
        30_000_000,
        1_000_000,
    )
    assert (stream.retain, stream.archive, stream.archive_for) == (
        86_400_000_000,
        True,
        30 * 86_400_000_000,
    )
    assert (stream.archive_cluster, stream.options, stream.sql) == (
        "a",
        (("description", "x y"),),
        "text",
    )


def test_create_table() -> None:
    statement = parse_one(
        "CREATE TABLE r (a INT, b DECIMAL(4,1), PRIMARY KEY (b, A)) NON RETROACTIVE"
    )
    assert isinstance(statement, ast.CreateTable)
    table = bind_create_table(statement, Catalog())
    assert table.schema == (Field("a", INT, None, False), Field("b", decimal(4, 1), None, False))
    assert (table.key, table.retroactive) == ((1, 0), False)


def test_create_query(catalog: Catalog) -> None:
    statement = parse_one(
        "CREATE QUERY q AS SELECT a, b + 1 AS x FROM s WITH (strategy = NT, partitions = 10)"
    )
    assert isinstance(statement, ast.CreateQuery)
    query, plan = bind_create_query(statement, catalog, "text")
    assert plan is not None
    assert [(f.name, f.type) for f in query.schema] == [("a", INT), ("x", FLOAT)]
    assert query.options == (("strategy", "nt"), ("partitions", 10))


def test_if_not_exists_gives_back_what_is_there(catalog: Catalog) -> None:
    stream = parse_one("CREATE STREAM IF NOT EXISTS S (other INT)")
    table = parse_one("CREATE TABLE IF NOT EXISTS r (other INT)")
    assert isinstance(stream, ast.CreateStream)
    assert isinstance(table, ast.CreateTable)
    assert bind_create_stream(stream, catalog) is catalog.streams["s"]
    assert bind_create_table(table, catalog) is catalog.tables["r"]


# ---------------------------------------------------------------- changes of tables


@pytest.fixture(scope="module")
def tables() -> Catalog:
    return declared(
        "CREATE TABLE p (id INT PRIMARY KEY, price DECIMAL(6,2), f FLOAT, at TIMESTAMP, note "
        "STRING);CREATE TABLE q (id INT, f INT)"
    )


def test_insert(tables: Catalog) -> None:
    change = bind_table_statement(
        parse_one("INSERT INTO p (F, id, price) VALUES (1, 2, 3), (0.5, 1 + 1, NULL)"), tables
    )  # type: ignore[arg-type]
    assert isinstance(change, Insert)
    first, second = change.rows
    empty = (Lit(None, TIMESTAMP), Lit(None, STRING))
    assert first == (Lit(2, INT), Lit(Decimal("3.00"), decimal(6, 2)), Lit(1.0, FLOAT), *empty)
    assert second[0] == Call("add", (Lit(1, INT), Lit(1, INT)), INT)
    assert second[1:] == (Lit(None, decimal(6, 2)), Lit(0.5, FLOAT), *empty)
    assert change.at is None


def test_insert_at_an_instant(tables: Catalog) -> None:
    change = bind_table_statement(
        parse_one("INSERT INTO q VALUES (1, 2) AT '1970-01-01 00:00:01'"), tables
    )  # type: ignore[arg-type]
    assert change.at == 1_000_000


def test_insert_from_a_query(tables: Catalog) -> None:
    change = bind_table_statement(parse_one("INSERT INTO p (f, id) SELECT f, id FROM q"), tables)  # type: ignore[arg-type]
    assert isinstance(change, Insert)
    assert isinstance(change.query, Project)
    assert [f.type for f in change.query.schema] == [f.type for f in change.table.schema]
    assert [sorted(columns(e)) for e in change.query.exprs] == [[1], [], [0], [], []]


def test_update_and_delete(tables: Catalog) -> None:
    change = bind_table_statement(
        parse_one("UPDATE p SET f = id, note = NULL WHERE price > 1"), tables
    )  # type: ignore[arg-type]
    assert isinstance(change, Update)
    assert [i for i, _ in change.assignments] == [2, 4]
    assert [e.type for _, e in change.assignments] == [FLOAT, STRING]
    assert change.predicate is not None
    assert change.predicate.type == BOOL
    change = bind_table_statement(parse_one("DELETE FROM p"), tables)  # type: ignore[arg-type]
    assert isinstance(change, Delete)
    assert change.predicate is None


# ---------------------------------------------------------------- the papers

_NUMBERS = "a INT, b INT, length INT, protocol STRING, user STRING"
PAPER_STREAMS = f"""
CREATE STREAM S ({_NUMBERS}); CREATE STREAM T (b INT);
CREATE STREAM S1 ({_NUMBERS}); CREATE STREAM S2 ({_NUMBERS}); CREATE STREAM S3 ({_NUMBERS});
CREATE STREAM Stream1 ({_NUMBERS}); CREATE STREAM Stream2 ({_NUMBERS});
CREATE STREAM Link1 (source_IP_address STRING, dest_IP_address STRING, protocol STRING);
CREATE STREAM Link2 (source_IP_address STRING, dest_IP_address STRING, protocol STRING);
CREATE STREAM StreamA (A1 INT, A2 INT, A3 INT, A4 INT); CREATE STREAM StreamB (A1 INT, A2 INT, A3 INT, A4 INT);
CREATE STREAM StreamC (A1 INT, A2 INT, A3 INT, A4 INT);
"""  # noqa: E501
# What is printed with a slip: constants without quotes, an alias that FROM does not give.
SLIPS = {
    "ftp": "DS201",
    "telnet": "DS201",
    "TCP": "DS201",
    "UDP": "DS201",
    "=U": "DS201",
    "Stream2[RANGE": "DS204",
}


@pytest.fixture(scope="module")
def paper_streams() -> Catalog:
    return declared(PAPER_STREAMS)


@pytest.mark.parametrize("text", split_statements(PAPERS))
def test_papers_bind_or_fail_for_a_known_slip(text: str, paper_streams: Catalog) -> None:
    if " K," in text:  # Arasu and Widom's S has a key
        catalog = declared("CREATE STREAM S (K STRING, A INT)")
        assert [f.name for f in bound(text, catalog).schema] == ["K", "SUM(A)"]
        return
    expected = {code for mark, code in SLIPS.items() if mark in text}
    if not expected:
        well_typed(bound(text, paper_streams))
        return
    with pytest.raises(QueryError) as caught:
        bound(text, paper_streams)
    assert {caught.value.code} == expected
    assert caught.value.hint is not None


def test_figure_3_5(paper_streams: Catalog) -> None:
    text = next(t for t in split_statements(PAPERS) if "FROM S3" in t)
    plan = bound(text, paper_streams)
    assert [type(n).__name__ for n in nodes(plan)][:3] == ["Output", "SemiJoin", "Join"]
    negation = plan.child
    assert isinstance(negation, SemiJoin)
    assert (negation.anti, negation.null_aware, len(negation.keys)) == (True, False, 1)
    assert sum(isinstance(n, Window) for n in nodes(plan)) == 3


def test_names_in_hints_are_written_as_statements_have_them() -> None:
    assert hint("Odd", ["k", "Odd Name", 'a"b', "late-pending", "1st"], "columns") == (
        'known columns: k, "Odd Name", "a""b", late-pending, "1st"'
    )
    assert hint("od name", ["Odd Name"]) == 'did you mean "Odd Name"?; known names: "Odd Name"'
