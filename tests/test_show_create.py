"""SHOW CREATE: what it says makes the same thing again, and tells nobody more than he may know."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import DsmsError
from tests import plan_queries
from tests.effort import examples
from tests.generate.draws import Draws
from tests.users import declared, rows, told

STREAM = "k STRING, v INT NOT NULL, t TIMESTAMP"


def created(engine: Engine, what: str, user: str | None = None) -> str:
    """The statement that SHOW CREATE gives."""
    (line,) = rows(engine, f"SHOW CREATE {what}", user)
    return line["statement"]


def everything(engine: Engine) -> list[dict[str, str]]:
    return rows(engine, "SHOW CREATE ALL", None)


def definitions(engine: Engine) -> dict[str, Any]:
    """All that is declared, without the text that it was declared with."""
    catalog = engine.runtime.catalog
    found = {**catalog.streams, **catalog.tables, **catalog.queries}
    return {key: replace(one, sql="") for key, one in found.items()}


def quotas(engine: Engine) -> list[tuple[str, str, int | None, str | None]]:
    found = rows(engine, "SHOW QUOTAS", None)
    return [(r["user"], r["quota"], r["limit"], r["of"]) for r in found]


def again(engine: Engine) -> Engine:
    """A fresh engine in which all is declared that the other says."""
    made = Engine()
    for line in everything(engine):
        made.execute(line["statement"])
    return made


@pytest.mark.parametrize(
    ("text", "what", "shown"),
    [
        (
            'CREATE STREAM IF NOT EXISTS "S x" (k STRING, "select" INT, t TIMESTAMP) -- a note\n'
            "TIMESTAMP BY t RETAIN 60 MIN INDEX BY (k) SLACK 5 SECONDS WITH (durability=sync)",
            'STREAM "S x"',
            'CREATE STREAM "S x" (k STRING, "select" INT, t TIMESTAMP) TIMESTAMP BY t SLACK 5 s '
            "RETAIN 60 min INDEX BY (k) WITH (durability = sync)",
        ),
        (
            "CREATE ROLE r WITH (queries = 2, state = '1 MB'); "
            f"CREATE STREAM c ({STREAM}) TIMESTAMP BY t CONFIDENTIAL FOR 5 s TO r",
            "STREAM c",
            f"CREATE STREAM c ({STREAM}) TIMESTAMP BY t CONFIDENTIAL FOR 5 s TO r",
        ),
        (
            "CREATE ROLE r WITH (queries = 2, state = '1 MB')",
            "ROLE R",
            "CREATE ROLE r WITH (queries = 2, state = 1048576)",
        ),
        (
            "CREATE TABLE t (a INT PRIMARY KEY, b DECIMAL(10, 2)) NON RETROACTIVE",
            "TABLE T",
            "CREATE TABLE t (a INT, b DECIMAL(10,2), PRIMARY KEY (a)) NON RETROACTIVE",
        ),
        (
            "create stream s (k INT, t TIMESTAMP) timestamp by t; "
            "create stream x (n INT, at TIMESTAMP) timestamp by at; "
            "create query q as insert into x (n) select istream(k) from s [range 5 min] "
            "with (description = 'it''s')",
            "QUERY q",
            "CREATE QUERY q AS INSERT INTO x (n) SELECT Istream(k) FROM s [RANGE 5 min] "
            "WITH (description = 'it''s')",
        ),
        (
            "create stream s (k INT, t TIMESTAMP) timestamp by t; "
            "create stream d timestamp by at as select istream(k) from s [now]",
            "QUERY d_feed",  # it is made with its stream
            "CREATE STREAM d TIMESTAMP BY at AS SELECT Istream(k) FROM s [NOW]",
        ),
    ],
)
def test_a_definition_is_read_back(text: str, what: str, shown: str):
    engine = Engine()
    engine.execute(text)
    assert created(engine, what) == shown
    assert definitions(again(engine)) == definitions(engine)


def test_late_rows_that_have_lost_their_stream_are_dropped_where_it_is_made_again():
    engine = declared()
    engine.execute("GRANT CREATE ON ALL TO alice; GRANT CREATE ON ALL TO bob")
    engine.execute("CREATE STREAM lost (k INT, t TIMESTAMP) TIMESTAMP BY t", user="alice")
    engine.execute("GRANT INSERT ON lost TO bob")
    made = "CREATE STREAM n (k INT, t TIMESTAMP) TIMESTAMP BY t LATE INTO lost"
    engine.execute(made, user="bob")
    engine.execute("DROP STREAM lost", user="alice")
    assert created(engine, "STREAM n") == made.replace("INTO lost", "DROP")


def test_all_comes_behind_what_it_needs():
    engine = Engine()
    engine.execute(
        f"CREATE STREAM z ({STREAM}) TIMESTAMP BY t; CREATE STREAM a ({STREAM}) TIMESTAMP BY t "
        "LATE INTO z; CREATE TABLE m (k STRING PRIMARY KEY, n INT); "
        "CREATE STREAM c TIMESTAMP BY at AS SELECT Istream(k) FROM z [RANGE 5 s]; "
        "CREATE STREAM b TIMESTAMP BY at AS SELECT Istream(c.k) FROM c [RANGE 5 s], m "
        "WHERE c.k = m.k; CREATE QUERY q AS SELECT * FROM b [RANGE 1 min]; "
        "DROP STREAM a; "
        f"CREATE STREAM a ({STREAM}) TIMESTAMP BY t LATE INTO z"
    )
    made = again(engine)
    assert definitions(made) == definitions(engine)
    assert everything(made) == everything(engine)


def test_queries_come_behind_those_whose_answers_they_read():
    engine = Engine()
    engine.execute(
        f"CREATE STREAM s ({STREAM}) TIMESTAMP BY t; CREATE QUERY z AS SELECT k FROM s [NOW]; "
        "CREATE STREAM d TIMESTAMP BY at AS SELECT Istream(k) FROM z; "
        "CREATE QUERY a AS SELECT k, COUNT(*) AS n FROM z GROUP BY k; DROP QUERY a; "
        "CREATE QUERY b AS SELECT DISTINCT k FROM z; CREATE QUERY a AS SELECT k FROM b; "
        "CREATE QUERY c AS SELECT k FROM Istream(b) [RANGE 5 s]"
    )
    made = again(engine)
    assert definitions(made) == definitions(engine)
    assert everything(made) == everything(engine)


def test_who_reads_the_answer_of_another_makes_his_query_himself_only_where_he_sees_a_part():
    engine = declared()
    engine.execute("GRANT CREATE ON ALL TO alice; GRANT SELECT ON q TO alice")
    engine.execute("CREATE QUERY mine AS SELECT k FROM q", user="alice")
    said = {line["name"]: line["statement"] for line in everything(engine)}
    assert said["mine"] == "CREATE QUERY mine AS SELECT k FROM q"


def test_users_roles_and_grants_come_again_without_secrets():
    engine = declared()
    engine.execute(
        "ALTER USER bob PASSWORD 'correct horse'; CREATE ROLE chief WITH (sessions = 3); "
        "GRANT chief TO staff; GRANT staff TO bob; ALTER USER bob WITH (queries = 2); "
        "GRANT CREATE, SELECT ON ALL TO staff; GRANT INSERT ON d TO alice; "
        "GRANT SELECT (k) ON s TO alice MASK (k AS upper(k)) WHERE v > 2 AND k <> 'a'"
    )
    engine.execute("CREATE TABLE own (a INT)", user="bob")
    text = "\n".join(line["statement"] for line in everything(engine))
    assert "correct horse" not in text and "argon2" not in text and "TOKEN '" not in text
    made = again(engine)
    assert made.runtime.rights.owns("bob", "own")
    assert quotas(made) == quotas(engine)
    shown = rows(engine, "SHOW GRANTS", None)
    shown = [{**r, "right": r["right"].replace("OWNER", "ADMIN")} for r in shown]
    assert sorted(map(str, rows(made, "SHOW GRANTS", None))) == sorted(map(str, shown))
    roles = [{r["name"]: r["roles"] for r in rows(e, "SHOW USERS", None)} for e in (engine, made)]
    assert roles[0] == roles[1]


def test_what_would_read_more_is_a_comment_with_all_that_needs_it():
    engine = declared()
    engine.execute("GRANT SELECT ON s TO alice WHERE v > 2; GRANT CREATE ON ALL TO alice")
    hidden = "CREATE STREAM mine TIMESTAMP BY at AS SELECT Istream(k) FROM s [NOW] WHERE k <> '\n;'"
    engine.execute(hidden, user="alice")
    engine.execute(
        "CREATE QUERY more AS SELECT * FROM mine [RANGE 5 s]; GRANT SELECT ON more TO bob"
    )
    said = {line["name"]: line["statement"] for line in everything(engine)}
    assert said["mine"].startswith("-- stream mine is alice's, who sees a part of what it reads;")
    assert said["more"].startswith("-- query more needs mine:")
    made = again(engine)
    assert {"mine", "more", "mine_feed"}.isdisjoint(definitions(made))
    assert "q" in definitions(made)


# ---------------------------------------------------------------- who may see it


def test_a_part_of_a_definition_is_none():
    engine = declared()
    engine.execute("GRANT SELECT (k) ON s TO alice; GRANT SELECT ON d TO alice WHERE n > 1")
    assert told(engine, "SHOW CREATE STREAM s").startswith("DS445 alice sees s in part alone")
    assert created(engine, "TABLE d", "alice").startswith("CREATE TABLE d (k STRING")
    engine.execute("GRANT INSERT ON s TO alice")
    assert "v INT" in created(engine, "STREAM s", "alice")


def test_where_late_rows_go_is_told_to_who_knows_that_stream():
    engine = declared()
    engine.execute(
        "CREATE STREAM n (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t LATE INTO late; "
        "GRANT SELECT ON n TO alice"
    )
    assert told(engine, "SHOW CREATE STREAM n").startswith("DS445")
    engine.execute("GRANT INSERT ON late TO alice")
    assert "LATE INTO late" in created(engine, "STREAM n", "alice")


def test_for_whom_rows_are_confidential_is_not_told_to_others():
    engine = declared()
    engine.execute(
        "CREATE STREAM n (k STRING, t TIMESTAMP) TIMESTAMP BY t CONFIDENTIAL FOR 5 s TO staff; "
        "GRANT SELECT ON n TO alice"
    )
    assert told(engine, "SHOW CREATE STREAM n").startswith("DS445")
    engine.execute("GRANT staff TO alice")
    assert "TO staff" in created(engine, "STREAM n", "alice")


def test_the_query_of_a_derived_stream_is_told_as_that_of_others():
    engine = declared()
    engine.execute(
        "CREATE STREAM n TIMESTAMP BY at AS SELECT Istream(k) FROM s [NOW] WHERE k <> 'secret'; "
        "GRANT SELECT ON n TO alice"
    )
    assert told(engine, "SHOW CREATE STREAM n").startswith("DS445")
    engine.execute("GRANT ADMIN ON n_feed TO alice")
    assert told(engine, "SHOW CREATE STREAM n").startswith("DS670")
    engine.execute("GRANT ADMIN ON s TO alice")
    assert "secret" in created(engine, "STREAM n", "alice")


def test_a_role_is_shown_to_who_has_it():
    engine = declared()
    assert (
        told(engine, "SHOW CREATE ROLE staff").split(" None")[0]
        == (told(engine, "SHOW CREATE ROLE zz").replace("zz", "staff").split(" None")[0])
    )
    engine.execute("GRANT staff TO alice")
    assert created(engine, "ROLE staff", "alice") == "CREATE ROLE staff"


@pytest.mark.parametrize("what", ["TABLE s", "STREAM q", "QUERY d", "QUERY zz", "ROLE alice"])
def test_the_kind_is_the_right_one(what: str):
    with pytest.raises(DsmsError) as found:
        declared().execute(f"SHOW CREATE {what}")
    assert found.value.code in ("DS401", "DS671")


# ---------------------------------------------------------------- any definition


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_any_definition_makes_the_same_again(data: st.DataObject):
    d = Draws(data.draw)
    engine = Engine()
    engine.execute(plan_queries.WORLD.ddl())
    for n in range(d.number(1, 2)):
        name = d.pick(("q{}", '"Q {}"', '"sel""ect{}"')).format(n)
        try:
            engine.execute(f"CREATE QUERY {name} AS {plan_queries.query(d)}{options(d)}")
        except DsmsError:
            continue
    for text in streams(d):
        engine.execute(text)
    made = again(engine)
    assert definitions(made) == definitions(engine)
    assert everything(made) == everything(engine)


def options(d: Draws) -> str:
    return d.pick(("", " WITH (strategy = upa)", " WITH (strategy = nt, description = 'a; b')"))


def streams(d: Draws) -> list[str]:
    """Streams with clauses of all kinds."""
    clauses = [
        ("SLACK 5 s", "SLACK 1500 ms"),
        ("MAX FUTURE 1 HOUR", "MAX FUTURE 90 min"),
        ("IDLE TIMEOUT 2 min",),
        ("SUBWINDOW 1 s",),
        ("RETAIN 1 day", "RETAIN 1.5 HOURS"),
        ("INDEX BY (k)", 'INDEX BY (k, "V v")'),
        ("LATE DROP", "LATE INTO zero"),
        ("WITH (durability = none)", "WITH (durability = 'sync')"),
    ]
    columns = '(k STRING, "V v" DECIMAL(8, 3) NOT NULL, t TIMESTAMP)'
    made = [
        f"CREATE STREAM zero {columns} TIMESTAMP BY t",
        "CREATE STREAM more (a INT DEFAULT 5, b INT AS (a * 2), t INT) TIMESTAMP BY t UNIT ms",
        "ALTER STREAM more ADD COLUMN \"c c\" STRING DEFAULT 'it''s'",
    ]
    for n in range(d.number(0, 2)):
        said = " ".join(d.pick(one) for one in d.some(clauses))
        made.append(f'CREATE STREAM "Str{n}" {columns} TIMESTAMP BY t {said}')
    return made
