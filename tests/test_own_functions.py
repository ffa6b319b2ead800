"""Functions and aggregates of one's own: a call means what its text means, wherever it stands, and
goes on meaning it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.settings import Settings
from tests.archive_local import Local
from tests.archives import killed
from tests.asking import asked, pushed
from tests.effort import examples
from tests.users import declared, rows, told

S = 1_000_000
STREAM = "CREATE STREAM s (k STRING, i INT, f FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
GM = "CREATE AGGREGATE gm(x FLOAT) AS EXP(SUM(LN(x)) / COUNT(x));"
MEAN = "CREATE AGGREGATE middle(x FLOAT) AS SUM(x) / COUNT(x);"
PLUS = "CREATE FUNCTION plus(x INT, y INT) AS x + y;"


def engine(*declared: str) -> Engine:
    made = Engine()
    made.execute(STREAM + "".join(declared))
    return made


def feed(made: Engine, count: int = 12, first: int = 0) -> None:
    seconds = range(first, first + count)
    made.ingest("s", [["ab"[t % 2], 1 + t % 5, 0.5 * t, t * S] for t in seconds])
    made.heartbeat("s", (first + count) * S)


# ---------------------------------------------------------------- a call is its text

# kind, name, parameters, text over {x} and {q}
SCALARS = [
    ("plus_one", "x FLOAT", "{x} + 1"),
    ("clamp", "x FLOAT", "CASE WHEN {x} > 3 THEN 3.0 ELSE {x} END"),
    ("even", "x FLOAT", "NULLIF(TRUNC({x}), 2.0) * 2"),
]
AGGREGATES = [
    ("gm", "x FLOAT", "EXP(SUM(LN({x} + 1)) / COUNT({x}))"),
    ("middle", "x FLOAT", "SUM({x}) / COUNT({x})"),
    ("width", "x FLOAT", "MAX({x}) - MIN({x})"),
    ("above", "x FLOAT", "COUNT(*) FILTER (WHERE {x} > 2)"),
    ("newest", "x FLOAT", "COALESCE(LAST({x}), 0.0) + COUNT(DISTINCT {x})"),
    ("center", "x FLOAT", "(QUANTILE({x}, 0.9) + MEDIAN({x})) / 2"),
]
OWN = "".join(
    f"CREATE {kind} {name}({takes}) AS {text.format(x='x')};"
    for kind, found in (("FUNCTION", SCALARS), ("AGGREGATE", AGGREGATES))
    for name, takes, text in found
)
Pair = tuple[str, str]  # an expression with calls, and the same without


def _called(text: str, name: str, inner: Pair) -> Pair:
    by_hand = text.format(x=f"CAST({inner[1]} AS FLOAT)")
    return f"{name}({inner[0]})", f"({by_hand})"


def _scalar(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    return st.builds(lambda f, x: _called(f[2], f[0], x), st.sampled_from(SCALARS), inner)


VALUES = st.recursive(
    st.sampled_from([("f", "f"), ("i", "i"), ("i * f", "i * f"), ("NULL", "NULL")]),
    _scalar,
    max_leaves=3,
)


@st.composite
def columns(draw: st.DrawFn) -> Pair:
    """A column over a group."""
    name, _, text = draw(st.sampled_from(AGGREGATES))
    call, hand = _called(text, name, draw(VALUES))
    if draw(st.booleans()) and name == "middle":
        call, x = f"{call} FILTER (WHERE i > 2)", hand[1:-1]
        hand = "(" + " / ".join(f"{p} FILTER (WHERE i > 2)" for p in x.split(" / ")) + ")"
    if draw(st.booleans()):
        return f"plus_one({call})", f"(CAST({hand} AS FLOAT) + 1)"
    return call, hand


WINDOWS = ["[RANGE 4 s]", "[ROWS 5]", "[RANGE 6 s SLIDE 2 s]", "[RANGE UNBOUNDED]"]
ROWS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.none() | st.integers(0, 5),
        st.none() | st.sampled_from([0.0, 0.5, 1.0, 2.0, 2.5, 4.0, float("nan")]),
        st.integers(0, 2),
    ),
    max_size=14,
)


@settings(max_examples=examples(120), deadline=None)
@given(st.lists(columns(), min_size=1, max_size=3), st.sampled_from(WINDOWS), ROWS, st.data())
def test_a_call_is_its_text_in_each_kind_of_query(
    found: list[Pair], window: str, given_rows: list[tuple], data: st.DataObject
) -> None:
    made = engine(OWN)
    having = data.draw(st.none() | columns())
    texts = []
    for side in (0, 1):
        shown = ", ".join(f"{pair[side]} AS c{n}" for n, pair in enumerate(found))
        tail = "" if having is None else f" HAVING {having[side]} > 1.0"
        texts.append(f"SELECT k, {shown} FROM s {window} GROUP BY k{tail}")
    for name, text in zip("mh", texts, strict=True):
        made.execute(f"CREATE QUERY {name} AS {text}")
        made.execute(f"CREATE QUERY over_{name} AS SELECT MAX(c0) AS top FROM {name}")
    asks = "ROWS" not in window and "SLIDE" not in window
    if asks:
        for name, text in zip("mh", texts, strict=True):
            made.execute(f"CREATE QUERY ready_{name} AS {text} ON LOOKUP")
    at = 0
    for k, i, f, step in given_rows:
        at += step
        made.ingest("s", [[k, i, f, at * S]])
    made.heartbeat("s", (at + 20) * S)
    assert repr(pushed(made, "m")) == repr(pushed(made, "h")), texts
    assert repr(pushed(made, "over_m")) == repr(pushed(made, "over_h")), texts
    assert _once(made, texts[0]) == _once(made, texts[1])
    if asks:
        assert repr(asked(made, "LOOKUP ready_m")) == repr(asked(made, "LOOKUP ready_h"))


def _once(made: Engine, sql: str) -> str:
    """What it answers, or why not: a row that fails ends it."""
    try:
        return repr(asked(made, f"{sql} ORDER BY k"))
    except DsmsError as error:
        return error.code


def test_a_parameter_takes_no_column_of_its_name() -> None:
    """Nothing of where a call stands comes into its text, and nothing of that out."""
    made = engine("CREATE AGGREGATE mix(i FLOAT, f INT) AS SUM(f) + COUNT(*) FILTER (WHERE i > 1);")
    feed(made, 4)
    calls = "mix(f, i) FILTER (WHERE i > 1)"
    by_hand = "SUM(i) FILTER (WHERE i > 1) + COUNT(*) FILTER (WHERE f > 1 AND i > 1)"
    assert asked(made, f"SELECT {calls} FROM s [RANGE 1 h]") == asked(
        made, f"SELECT {by_hand} FROM s [RANGE 1 h]"
    )


def test_distinct_is_of_the_values_of_the_parameter() -> None:
    made = engine(MEAN, "CREATE AGGREGATE wide(x INT) AS MAX(x * x) - MIN(x);")
    feed(made)
    asks = "SELECT middle(DISTINCT i), wide(DISTINCT i), SUM(DISTINCT i) FROM s [RANGE 1 h]"
    assert asked(made, asks) == [(3.0, 24, 15)]


def test_an_argument_may_stand_for_a_value_of_lookup() -> None:
    made = engine(MEAN, "CREATE FUNCTION double(x FLOAT) AS x * 2;")
    made.execute(
        "CREATE QUERY q AS SELECT k FROM s [RANGE 20 s] GROUP BY k HAVING middle(f) > double(?) "
        "ON LOOKUP"
    )
    feed(made)
    assert asked(made, "LOOKUP q (1.3)") == [("b",)]


@pytest.mark.parametrize("text", ["twice(?) > SUM(i)", "SUM(i) < turned(?, ?)"])
def test_a_value_of_lookup_stands_once_and_in_its_order(text: str) -> None:
    made = engine(
        "CREATE FUNCTION twice(x INT) AS x + x;", "CREATE FUNCTION turned(x INT, y INT) AS y - x;"
    )
    query = "CREATE QUERY q AS SELECT k FROM s [RANGE 20 s] GROUP BY k HAVING {} ON LOOKUP"
    assert told(made, query.format(text), None).startswith("DS243")
    made.execute(query.format("SUM(i) > turned(1, ?)"))
    feed(made)
    assert asked(made, "LOOKUP q (17)") == [("b",)]


# ---------------------------------------------------------------- wherever a call may stand


def test_computed_columns_changes_of_tables_and_conditions_of_show() -> None:
    made = engine(PLUS)
    made.execute("CREATE STREAM c (a INT, b INT AS (plus(a, 1)), t TIMESTAMP) TIMESTAMP BY t;")
    made.execute("CREATE TABLE r (k INT PRIMARY KEY, n INT)")
    made.execute("INSERT INTO r VALUES (1, plus(1, 1)); UPDATE r SET n = plus(n, 5) WHERE k = 1")
    made.ingest("c", {"a": [4], "t": [S]})
    assert asked(made, "SELECT n FROM r WHERE plus(n, 0) = 7") == [(7,)]
    made.heartbeat("c", 2 * S)
    assert asked(made, "SELECT b FROM c [RANGE 1 h]") == [(5,)]
    assert len(asked(made, "SHOW STREAMS WHERE plus(kept, 0) = 1")) == 1
    assert "b INT AS (a + 1)" in asked(made, "SHOW CREATE STREAM c")[0][2]


def test_columns_are_called_as_they_are_written() -> None:
    made = engine(GM, PLUS)
    made.execute("CREATE QUERY q AS SELECT k, gm(f), plus(1, 2) AS three FROM s [NOW] GROUP BY k")
    assert [c for c, *_ in asked(made, "DESCRIBE q")] == ["k", "gm(f)", "three"]
    feed(made, first=1)
    shown = 'SELECT "gm(f)" FROM (SELECT gm(f) FROM s [RANGE 1 h]) x ORDER BY "gm(f)"'
    assert asked(made, shown) == asked(made, "SELECT gm(f) FROM s [RANGE 1 h] ORDER BY gm(f)")


def test_explain_says_what_calls_stand_for() -> None:
    made = engine(GM, PLUS)
    lines = [line for (line,) in asked(made, "EXPLAIN SELECT gm(plus(i, 1)) FROM s [NOW]")]
    assert lines[-2:] == [
        "plus(i, 1) stands for i + 1",
        "gm(plus(i, 1)) stands for EXP(SUM(LN(CAST(i + 1 AS FLOAT))) / "
        "COUNT(CAST(i + 1 AS FLOAT)))",
    ]


def test_equal_parts_of_two_aggregates_are_kept_once() -> None:
    made = engine(MEAN, "CREATE AGGREGATE twice(x FLOAT) AS 2 * SUM(x);")
    slide = "FROM s [RANGE 1 min SLIDE 10 s] GROUP BY k"
    made.execute("CREATE QUERY a AS SELECT k, middle(f) FROM s [RANGE 1 min SLIDE 10 s] GROUP BY k")
    made.execute(f"CREATE QUERY b AS SELECT k, twice(f) {slide}")
    shared = [r for r in rows(made, "SHOW SHARING", None) if r["rule"].startswith("SS")]
    assert any({"a", "b"} <= set(r["queries"].split(", ")) for r in shared)
    synopses = {r["holds"] for r in rows(made, "SHOW WINDOWS", None) if r["kind"] != "ring"}
    assert not any("middle" in h or "twice" in h for h in synopses)


def test_archives_are_asked_with_them(tmp_path: Path) -> None:
    made = Engine(settings=Settings(archive=str(tmp_path), archive_runner=Local()))
    made.execute(
        "CREATE STREAM s (k STRING, i INT, f FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 s "
        f"ARCHIVE FOR 1 h UPDATE EVERY 10 s; {MEAN}"
    )
    feed(made, 60)
    for place in ("ARCHIVE s [RANGE 1 h]", "s [RANGE 1 h ARCHIVE]"):
        call, hand = (
            asked(made, f"SELECT k, {x} FROM {place} GROUP BY k ORDER BY k")
            for x in ("middle(i)", "SUM(CAST(i AS FLOAT)) / COUNT(i)")
        )
        assert call == hand and len(call) == 2


def test_archives_without_a_server_take_them_before_the_select(tmp_path: Path) -> None:
    from dsms_spark.query import ask

    made = Engine(settings=Settings(archive=str(tmp_path)))
    made.execute(
        "CREATE STREAM s (k STRING, i INT, f FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 s "
        "ARCHIVE FOR 1 h UPDATE EVERY 10 s"
    )
    feed(made, 60)
    made.close()
    select = "SELECT {} FROM ARCHIVE s [RANGE 1 h]"
    call = ask(str(tmp_path), MEAN + select.format("middle(f) AS m"))
    hand = ask(str(tmp_path), select.format("SUM(f) / COUNT(f) AS m"))
    assert call.bound == hand.bound
    with pytest.raises(DsmsError, match="asked by SELECT"):
        ask(str(tmp_path), MEAN)
    with pytest.raises(DsmsError, match="asked by SELECT"):
        ask(str(tmp_path), "DROP AGGREGATE middle;" + select.format("1"))


# ---------------------------------------------------------------- what is registered stays


def test_a_query_keeps_the_meaning_that_it_was_registered_with(tmp_path: Path) -> None:
    made = Engine(str(tmp_path))
    made.execute(STREAM + GM + MEAN)
    made.execute("CREATE QUERY q AS SELECT k, middle(f) AS m FROM s [RANGE 5 s] GROUP BY k")
    made.execute("CREATE QUERY p AS SELECT middle(f) AS m FROM s [RANGE 4 s SLIDE 2 s]")
    feed(made)
    before = [pushed(made, name) for name in "qp"]
    made.execute("DROP AGGREGATE gm; CREATE OR REPLACE AGGREGATE middle(x INT) AS MAX(x) * 100")
    shown = asked(made, "SHOW CREATE QUERY q")
    for end in (killed, Engine.close):
        end(made)
        made = Engine(str(tmp_path))
        assert [pushed(made, name)[-len(b) :] for name, b in zip("qp", before, strict=True)]
        assert asked(made, "SHOW CREATE QUERY q") == shown
        assert asked(made, "SELECT middle(i) FROM s [RANGE 1 h]") == [(500,)]
        assert told(made, "SELECT gm(f) FROM s [NOW]", None).startswith("DS206")
    feed(made, 6, 12)
    twin = engine()
    twin.execute("CREATE QUERY q AS SELECT k, SUM(f) / COUNT(f) AS m FROM s [RANGE 5 s] GROUP BY k")
    feed(twin)
    feed(twin, 6, 12)
    assert pushed(made, "q") == pushed(twin, "q")


def test_the_same_text_again_is_the_same_query() -> None:
    made = engine(GM)
    text = "QUERY q AS SELECT k, gm(i) FROM s [RANGE 5 s] GROUP BY k"
    made.execute(f"CREATE {text}")
    (done,) = made.execute(f"CREATE OR REPLACE {text}")
    assert done.message == "query q is as it was"  # type: ignore[union-attr]
    (done,) = made.execute(f"CREATE {text.replace('QUERY', 'QUERY IF NOT EXISTS')}")
    assert done.warnings == ()  # type: ignore[union-attr]


def test_a_function_keeps_what_it_was_made_of() -> None:
    made = engine(PLUS, "CREATE FUNCTION more(x INT) AS plus(x, 10);")
    made.execute("CREATE OR REPLACE FUNCTION plus(x INT, y INT) AS x * y")
    assert asked(made, "SELECT more(5), plus(5, 10)") == [(15, 50)]


def test_a_name_that_is_built_in_since_still_means_what_was_made(tmp_path: Path) -> None:
    """As of a folder from before the built-in one was there."""
    made = Engine(str(tmp_path))
    made.execute(PLUS)
    found = made.runtime.catalog.functions.pop("plus")
    old = replace(found, name="mod", sql=found.sql.replace("plus", "mod"))
    assert made.saver is not None
    made.saver.catalog.drop("function", found.home)
    made.saver.catalog.add_function(old)
    made.runtime.catalog.functions["mod"] = old
    made.close()
    again = Engine(str(tmp_path))
    assert asked(again, "SELECT mod(7, 2)") == [(9,)]


@pytest.mark.parametrize("end", [killed, Engine.close])
def test_functions_come_back_with_whose_they_are(tmp_path: Path, end: Any) -> None:
    made = Engine(str(tmp_path))
    made.execute(
        "CREATE USER alice TOKEN; CREATE USER bob TOKEN; GRANT CREATE ON ALL TO alice, bob"
    )
    made.execute(PLUS, user="alice")
    end(made)
    made = Engine(str(tmp_path))
    assert told(made, "DROP FUNCTION plus", "bob").startswith("DS670")
    assert told(made, "DROP FUNCTION plus", "alice") == ""
    made.execute(PLUS.replace("x + y", "x"), user="bob")
    end(made)
    made = Engine(str(tmp_path))
    assert told(made, "DROP FUNCTION plus", "alice").startswith("DS670")
    assert asked(made, "SELECT plus(4, 5)") == [(4,)]


# ---------------------------------------------------------------- statements


def test_what_is_there_is_shown_and_made_again() -> None:
    made = engine(GM, PLUS, "CREATE AGGREGATE top(x FLOAT, n INT) AS MAX(x) - SUM(x) * n;")
    made.execute("CREATE QUERY q AS SELECT gm(f) FROM s [NOW]")
    shown = rows(made, "SHOW AGGREGATES LIKE 't%'", None)
    assert shown == [
        {
            "aggregate": "top",
            "arguments": "x FLOAT, n INT",
            "result": "FLOAT",
            "text": "MAX(x) - SUM(x) * n",
            "subtractable": "no",
            "evaluation": "processing and searching",
        }
    ]
    described = dict(asked(made, "DESCRIBE AGGREGATE top"))
    assert described["made of"] == "MAX(x), SUM(x)"
    assert described["subtractable"] == "no: MAX(x)"
    assert dict(asked(made, "DESCRIBE gm"))["subtractable"] == "yes"
    assert dict(asked(made, "DESCRIBE FUNCTION plus"))["result"] == "INT"
    own = [r for r in rows(made, "SHOW FUNCTIONS", None) if r["function"] in ("gm", "plus")]
    assert [r["kind"] for r in own] == ["aggregate", "scalar"]
    again = Engine()
    for line in rows(made, "SHOW CREATE ALL", None):
        again.execute(line["statement"])
    assert again.runtime.catalog.functions == made.runtime.catalog.functions


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE AGGREGATE GM(x INT) AS SUM(x)", "DS213"),
        ("CREATE OR REPLACE FUNCTION gm(x INT) AS x", "DS213"),
        ("DROP FUNCTION gm", "DS401"),
        ("DROP AGGREGATE gmm", "DS401"),
        ("DROP AGGREGATE sum", "DS401"),
        ("DESCRIBE FUNCTION gm", "DS401"),
        ("SHOW CREATE AGGREGATE nothing", "DS401"),
        ("CREATE OR REPLACE AGGREGATE IF NOT EXISTS gm(x INT) AS SUM(x)", "DS109"),
    ],
)
def test_what_can_not_be(text: str, code: str) -> None:
    made = engine(GM)
    assert told(made, text, None).startswith(code)
    assert asked(made, "SHOW CREATE AGGREGATE gm")[0][2] == GM.rstrip(";")


def test_if_exists_and_if_not_exists() -> None:
    made = engine(GM)
    said = made.execute(
        "DROP FUNCTION IF EXISTS nothing; CREATE AGGREGATE IF NOT EXISTS gm(x INT) AS SUM(x)"
    )
    assert [d.message for d in said] == [  # type: ignore[union-attr]
        "there is no function nothing",
        "aggregate gm is there already",
    ]
    assert asked(made, "SHOW CREATE AGGREGATE gm")[0][2] == GM.rstrip(";")


def test_all_may_call_what_some_have_made() -> None:
    made = declared()
    made.execute("GRANT SELECT ON s TO bob; GRANT CREATE ON ALL TO alice")
    assert told(made, PLUS, "bob").startswith("DS670")
    made.execute(PLUS, user="alice")
    assert rows(made, "SELECT plus(SUM(v), 1) AS n FROM s [RANGE 1 h]", "bob") == [{"n": 10}]
    assert told(made, "CREATE OR REPLACE FUNCTION plus(x INT, y INT) AS x", "bob") != ""
    made.execute("GRANT CREATE ON ALL TO bob")
    assert told(made, PLUS.replace("CREATE", "CREATE OR REPLACE"), "bob").startswith("DS670")
    assert told(made, "DESCRIBE FUNCTION plus", "bob") == ""
    assert told(made, PLUS.replace("CREATE", "CREATE OR REPLACE"), "alice") == ""
    assert told(made, "DROP FUNCTION plus", None) == ""


def test_what_grants_say_keeps_its_meaning() -> None:
    made = declared()
    made.execute("CREATE FUNCTION hidden(x INT) AS CASE WHEN x > 3 THEN 0 ELSE x END")
    made.execute("GRANT SELECT ON s TO bob MASK (v AS hidden(v)) WHERE hidden(v) <> 1")
    made.execute("CREATE OR REPLACE FUNCTION hidden(x INT) AS x")
    assert sorted(r["v"] for r in rows(made, "SELECT v FROM s [RANGE 1 h]", "bob")) == [0, 3]


def test_nested_calls_that_would_be_too_much_are_refused_at_once() -> None:
    """However often a text has its parameter, and calls stand within calls."""
    made = engine("CREATE FUNCTION f0(x INT) AS x + x;")
    for n in range(20):
        problem = told(made, f"CREATE FUNCTION f{n + 1}(x INT) AS f{n}(f{n}(x))", None)
        if problem:
            break
    assert problem.startswith(("DS245", "DS105"))
    deep = "f0(" * 60 + "1" + ")" * 60
    assert told(made, f"SELECT {deep}", None).startswith("DS245")
