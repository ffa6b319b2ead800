"""ALTER STREAM and ALTER TABLE ... RENAME: everything goes on, and all texts say what is so now."""

from __future__ import annotations

import shutil
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.sql.parser import parse_one
from dsms.sql.printer import to_sql
from tests.cancelling import told
from tests.effort import examples

S = 1_000_000
DECLARED = """
CREATE STREAM late (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM s (k INT, v INT, w INT AS (s.v + k), t TIMESTAMP) TIMESTAMP BY t INDEX BY (v) RETAIN 1 h;
CREATE STREAM x (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t LATE INTO late;
CREATE TABLE d (k INT PRIMARY KEY, n STRING)
"""  # noqa: E501


def declared() -> Engine:
    db = Engine()
    db.execute(DECLARED)
    return db


def text(db: Engine, what: str) -> str:
    return str(db.execute(f"SHOW CREATE {what}")[0].data.column("statement")[0])  # type: ignore[union-attr]


def dump(db: Engine) -> str:
    lines = db.execute("SHOW CREATE ALL")[0].data.column("statement").to_pylist()  # type: ignore[union-attr]
    return ";\n".join(lines)


# of a query: its text before and after `s` is `z`, and `s.v` is `u`
TEXTS = [
    ("SELECT v FROM s WHERE v > 1", "SELECT u AS v FROM z WHERE u > 1"),
    ("SELECT * FROM s [RANGE 5 s]", "SELECT k, u AS v, w, t FROM z [RANGE 5 s]"),
    (
        "SELECT s.v, SUM(v) FROM s [RANGE 5 s] GROUP BY s.v",
        'SELECT s.u AS v, SUM(u) AS "SUM(v)" FROM z [RANGE 5 s] AS s GROUP BY s.u',
    ),
    (
        "SELECT *, x.v AS o FROM s [RANGE 5 s], x [RANGE 5 s] WHERE s.k = x.k",
        "SELECT s.k, s.u AS v, s.w, s.t, x.*, x.v AS o "
        "FROM z [RANGE 5 s] AS s, x [RANGE 5 s] WHERE s.k = x.k",
    ),
    (
        "SELECT v AS z FROM (SELECT v FROM s [RANGE 9 s]) AS i WHERE v IN (SELECT v FROM x [NOW])",
        "SELECT v AS z FROM (SELECT u AS v FROM z [RANGE 9 s] AS s) AS i "
        "WHERE v IN (SELECT v FROM x [NOW])",
    ),
    (
        "SELECT k FROM x [RANGE 9 s] WHERE EXISTS (SELECT * FROM s [RANGE 9 s] WHERE v = x.v)",
        "SELECT k FROM x [RANGE 9 s] WHERE EXISTS (SELECT * FROM z [RANGE 9 s] WHERE u = x.v)",
    ),
    (
        "SELECT k, MAX(v) AS m FROM s [PARTITION BY v ROWS 2] GROUP BY k",
        "SELECT k, MAX(u) AS m FROM z [PARTITION BY u ROWS 2] GROUP BY k",
    ),
    ("SELECT INSTANT(s) AS i FROM s", "SELECT INSTANT(s) AS i FROM z AS s"),
    (
        "SELECT k FROM s [WHEN v > 1 UNTIL v = 0 BY v]",
        "SELECT k FROM z [WHEN u > 1 UNTIL u = 0 BY u]",
    ),
    (
        "SELECT k, COUNT(*) AS n FROM s [SESSION (v * INTERVAL 1 s) BY k INTERNAL] GROUP BY k",
        "SELECT k, COUNT(*) AS n FROM z [SESSION (u * INTERVAL 1 s) BY k INTERNAL] GROUP BY k",
    ),
    (
        "SELECT k FROM s WHERE k > (SELECT MAX(v) FROM x WHERE x.v = s.v)",
        "SELECT k FROM z AS s WHERE k > (SELECT MAX(v) FROM x WHERE x.v = s.u)",
    ),
    (
        "SELECT v FROM s [RANGE 9 s] UNION ALL SELECT v FROM x [RANGE 9 s]",
        "SELECT u AS v FROM z [RANGE 9 s] UNION ALL SELECT v FROM x [RANGE 9 s]",
    ),
    (
        "SELECT v, k FROM s [RANGE 4 s SLIDE 2 s] ORDER BY v LIMIT 2",
        "SELECT u AS v, k FROM z [RANGE 4 s SLIDE 2 s] ORDER BY v LIMIT 2",
    ),
]


@pytest.mark.parametrize(("before", "after"), TEXTS)
def test_queries_speak_of_it_by_its_new_name(before: str, after: str) -> None:
    db = declared()
    db.execute(f"CREATE QUERY q AS {before}")
    names = [c.name for c in db.runtime.queries["q"].columns()]
    db.execute("ALTER STREAM s RENAME TO z; ALTER STREAM z RENAME COLUMN v TO u")
    expected = to_sql(parse_one(f"CREATE QUERY q AS {after}"))
    assert text(db, "QUERY q") == expected
    again = Engine()
    again.execute(dump(db))
    assert dump(again) == dump(db)
    assert [c.name for c in again.runtime.queries["q"].columns()] == names


def test_declarations_speak_of_it_by_its_new_name() -> None:
    db = declared()
    db.execute("""
        CREATE STREAM e AS SELECT v FROM s WHERE v > 0;
        CREATE STREAM all_of (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t;
        CREATE QUERY f AS INSERT INTO all_of (k, v) SELECT k, v FROM s;
        CREATE QUERY q AS SELECT v FROM e [RANGE 3 s];
        CREATE QUERY r AS SELECT v, n FROM q, d WHERE d.k = q.v
    """)
    db.execute("""
        ALTER STREAM s RENAME TO "S 2"; ALTER STREAM late RENAME TO tardy; ALTER STREAM e RENAME TO g;
        ALTER TABLE d RENAME TO names; ALTER STREAM all_of RENAME COLUMN v TO vv; ALTER STREAM all_of RENAME TO whole;
        ALTER STREAM "S 2" RENAME COLUMN v TO "V"; ALTER TABLE names RENAME COLUMN k TO key
    """)  # noqa: E501
    assert text(db, 'STREAM "S 2"') == (
        'CREATE STREAM "S 2" (k INT, "V" INT, w INT AS ("S 2"."V" + k), t TIMESTAMP) '
        'TIMESTAMP BY t RETAIN 1 h INDEX BY ("V")'
    )
    assert text(db, "STREAM x").endswith("LATE INTO tardy")
    assert text(db, "STREAM g") == 'CREATE STREAM g AS SELECT "V" AS v FROM "S 2" WHERE "V" > 0'
    assert text(db, "TABLE names") == "CREATE TABLE names (key INT, n STRING, PRIMARY KEY (key))"
    assert text(db, "QUERY f").endswith('INSERT INTO whole (k, vv) SELECT k, "V" AS v FROM "S 2"')
    assert text(db, "QUERY r").endswith("FROM q, names AS d WHERE d.key = q.v")
    db.execute("INSERT INTO names (key, n) VALUES (3, 'three')")
    with pytest.raises(DsmsError, match="key key = 3"):
        db.execute("INSERT INTO names VALUES (3, 'four')")
    db.ingest("S 2", [{"k": 1, "V": 3, "t": S}])
    db.ingest("x", [[1, 1, 9 * S], [1, 1, S]])
    db.heartbeat("S 2", 2 * S)
    assert db.execute("SELECT * FROM r")[0].data.to_pylist() == [{"v": 3, "n": "three"}]  # type: ignore[union-attr]
    assert db.runtime.inputs["late"].counts.accepted == 1
    again = Engine()
    again.execute(dump(db))
    assert dump(again) == dump(db)


def test_names_are_free_again_and_writers_go_on(tmp_path: Path) -> None:
    db = Engine(str(tmp_path / "db"))
    db.execute(DECLARED)
    db.execute("CREATE QUERY q AS SELECT v FROM s; COMMENT ON STREAM s IS 'first'")
    db.ingest("s", [[0, 1, S]], client="c", seq=1)
    reader = db.subscribe("q")
    db.execute("ALTER STREAM s RENAME TO z")
    with pytest.raises(DsmsError, match="DS401"):
        db.ingest("s", [[0, 1, S]], client="c", seq=1)
    assert db.ingest("z", [[0, 1, S]], client="c", seq=1).repeated == 1
    db.execute(
        "CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t; CREATE QUERY p AS SELECT v FROM s"
    )
    db.execute(
        "CREATE STREAM o AS SELECT v FROM s; ALTER STREAM o RENAME TO d_o;"
        "CREATE QUERY o AS SELECT v FROM z"
    )
    for seq, (name, row) in enumerate(
        [("z", [0, 2, 2 * S]), ("s", [7, S]), ("z", [0, 3, 3 * S])], 2
    ):
        db.ingest(name, [row], client="c", seq=seq)
    shutil.copytree(tmp_path / "db", tmp_path / "killed")
    db.execute("DROP QUERY q; DROP QUERY o; DROP STREAM z; CREATE STREAM z (a INT)")
    db.close()
    for folder, z in (("killed", 3), ("db", 0)):
        again = Engine(str(tmp_path / folder))
        assert not again.recovered.notes  # type: ignore[union-attr]
        assert [c.name for c in again.streams() if c.name == "z"] == ["z"]
        key = again.key_of("z")
        assert again.runtime.inputs[key].counts.accepted == z
        assert again.ingest("s", [[7, S]], client="c", seq=3).repeated == 1
        again.ingest("s", [[8, 2 * S]], client="c", seq=9)
        again.heartbeat("s", 3 * S)
        assert len(told(again.subscribe("p", 0))) == 2
        if z:
            assert again.ingest("z", [[0, 1, S]], client="c", seq=4).repeated == 1
            assert "first" in str(again.execute("SHOW STREAMS LIKE 'z'")[0].data["comment"])  # type: ignore[union-attr]
            again.heartbeat("z", 9 * S)
            assert sum(len(p.data) for p in again.subscribe("q", 0).take()) == 3
        again.close()
    assert reader.query == "q"


def test_rights_stay() -> None:
    db = declared()
    db.execute("CREATE USER ann TOKEN; CREATE USER bob TOKEN")
    db.execute(
        "GRANT SELECT (k, v) ON s TO ann MASK (v AS CASE WHEN s.k > 0 THEN v END) WHERE s.v < 9;"
        "GRANT CREATE ON ALL TO ann; GRANT INSERT ON s TO bob"
    )
    db.execute("CREATE QUERY q AS SELECT * FROM s [RANGE 1 h]", user="ann")
    db.execute("ALTER STREAM s RENAME TO z; ALTER STREAM z RENAME COLUMN v TO u")
    assert text(db, "QUERY q").endswith("AS SELECT k, u AS v FROM z [RANGE 1 h]")
    assert (
        "GRANT SELECT (k, u) ON z TO ann MASK (u AS CASE WHEN z.k > 0 THEN u END) WHERE z.u < 9"
        in dump(db)
    )
    db.execute("CREATE STREAM s (v INT); CREATE TABLE t (v INT)")
    for user, name in (("ann", "s"), ("bob", "s"), ("ann", "t"), ("bob", "t")):
        with pytest.raises(DsmsError, match=r"DS401|DS203"):
            db.execute(f"DESCRIBE {name}", user=user)
    db.check_request("bob", "ingest", "z")
    db.ingest("z", [[0, 1, S], [1, 2, S], [1, 9, S]])
    db.heartbeat("z", S)
    expected = [{"k": 0, "v": None}, {"k": 1, "v": 2}]
    assert db.execute("SELECT * FROM q")[0].data.to_pylist() == expected  # type: ignore[union-attr]
    db.execute("PAUSE QUERY q; RESUME QUERY q")
    assert (
        db.execute("SELECT k, u AS v FROM z [RANGE 1 h]", user="ann")[0].data.to_pylist()
        == expected
    )  # type: ignore[union-attr]


def test_what_is_refused() -> None:
    db = declared()
    db.execute("""
        CREATE STREAM e AS SELECT v FROM s;
        CREATE QUERY q AS SELECT k, y FROM s [NOW] JOIN (SELECT k, v AS y FROM x [NOW]) AS i USING (k);
        CREATE QUERY r AS SELECT v FROM e_feed;
        CREATE QUERY p AS SELECT u FROM (SELECT k AS u FROM x [NOW]) AS i, d WHERE n = 'a'
    """)  # noqa: E501
    shown = dump(db)
    for statement, code in (
        ("ALTER STREAM s RENAME TO X", "DS213"),
        ("ALTER TABLE d RENAME TO q", "DS213"),
        ("ALTER STREAM d RENAME TO y", "DS401"),
        ("ALTER TABLE d RENAME COLUMN m TO y", "DS201"),
        ("ALTER TABLE d RENAME COLUMN n TO K", "DS212"),
        ("ALTER STREAM e RENAME TO y", "DS433"),
        ("ALTER STREAM e RENAME COLUMN v TO y", "DS439"),
        ("ALTER STREAM s RENAME COLUMN k TO y", "DS434"),
        ("ALTER TABLE d RENAME COLUMN n TO u", "DS434"),
        (f"ALTER STREAM s RENAME TO {'n' * 300}", "DS415"),
    ):
        with pytest.raises(DsmsError, match=code):
            db.execute(statement)
        assert dump(db) == shown
    db.execute("ALTER TABLE d RENAME TO dd")
    (done,) = db.execute(DECLARED.split(";")[3].replace("TABLE d", "TABLE IF NOT EXISTS dd"))
    assert done.warnings == ()  # type: ignore[union-attr]
    db.execute("ALTER STREAM s RENAME TO S; ALTER STREAM s RENAME COLUMN w TO W")
    assert "STREAM S (k INT, v INT, W INT" in dump(db)


# ---------------------------------------------------------------- as if it had always been so

QUERIES = (
    "SELECT {v} AS v FROM {s} WHERE {k} > 0",
    "SELECT {k}, SUM({v}) FROM {s} [RANGE 3 s] GROUP BY {k}",
    "SELECT COUNT(*), MAX({s}.{v}) FROM {s} [RANGE 4 s SLIDE 2 s]",
    "SELECT {s}.*, {n} AS n FROM {s} [RANGE 3 s], {d} WHERE {s}.{k} = {d}.i",
    "SELECT * FROM {s} [ROWS 3]",
    "SELECT i FROM {d} WHERE i IN (SELECT {k} FROM {s} [RANGE 2 s])",
)
NAMES = {
    "s": ("s", "S 2", "other"),
    "k": ("k", "v", "kk"),
    "v": ("v", "k", "w2"),
    "d": ("d", "e"),
    "n": ("n", "i2"),
}
STEPS = st.one_of(
    st.tuples(st.just("rows"), st.integers(0, 3)),
    st.tuples(st.just("query"), st.integers(0, len(QUERIES) - 1)),
    st.tuples(st.sampled_from(list(NAMES)), st.integers(1, 2)),
    st.tuples(st.just("table"), st.integers(0, 2)),
    st.tuples(st.sampled_from(["killed", "restarted", "taken"]), st.just(0)),
)


class Renamed:
    """A world whose names change, beside one in which they never do."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.copies = folder, count()
        self.called = dict.fromkeys(NAMES, 0)
        self.engines = [Engine(str(folder / "0")), Engine()]
        self.at, self.queries, self.taken = 0, list[str](), 0
        for db in self.engines:
            db.execute(
                "CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 2 s;"
                "CREATE TABLE d (i INT PRIMARY KEY, n INT)"
            )

    def names(self, now: bool) -> dict[str, str]:
        return {
            n: '"' + of[self.called[n] % len(of) if now else 0] + '"' for n, of in NAMES.items()
        }

    def do(self, step: str, n: int) -> None:
        match step:
            case "rows":
                self.rows(n)
            case "table":
                for db, names in zip(
                    self.engines, (self.names(True), self.names(False)), strict=True
                ):
                    db.execute(f"DELETE FROM {names['d']} WHERE i = {n}")
                    db.execute(f"INSERT INTO {names['d']} VALUES ({n}, {self.at})")
            case "query":
                self.queries.append(f"q{len(self.queries)}")
                for db, now in zip(self.engines, (True, False), strict=True):
                    text = QUERIES[n].format(**self.names(now))
                    db.execute(f"CREATE QUERY {self.queries[-1]} AS {text}")
            case "taken":  # what was a name of theirs is now that of something else
                self.taken += 1
                self.engines[0].execute(f"CREATE STREAM n{self.taken} (a INT)")
                self.engines[0].execute(f"ALTER STREAM n{self.taken} RENAME TO m{self.taken}")
                self.engines[0].execute(f"CREATE TABLE n{self.taken} (a INT)")
            case "killed" | "restarted":
                if step == "restarted":
                    self.engines[0].close()
                to = self.folder / f"{next(self.copies)}-copy"
                shutil.copytree(self.folder / "0", to)
                self.engines[0].close()
                shutil.rmtree(self.folder / "0")
                to.rename(self.folder / "0")
                self.engines[0] = Engine(str(self.folder / "0"))
            case _:
                self.rename(step, n)

    def rename(self, name: str, n: int) -> None:
        before, old = self.names(True), self.called[name]
        self.called[name] = old + n
        after = self.names(True)
        kind, of = ("STREAM", before["s"]) if name in "skv" else ("TABLE", before["d"])
        if after["k"] == after["v"]:
            self.called[name] = old
            return
        what = "" if name in "sd" else f"COLUMN {before[name]} "
        self.engines[0].execute(f"ALTER {kind} {of} RENAME {what}TO {after[name]}")

    def rows(self, n: int) -> None:
        rows = [[(self.at + i) % 3, self.at * i, (self.at + i // 2) * S] for i in range(n)]
        for db, now in zip(self.engines, (True, False), strict=True):
            name = self.names(now)["s"].strip('"')
            db.ingest(name, rows, client="c", seq=self.at)
            db.heartbeat(name, (self.at + n) * S)
        self.at += n + 1

    def check(self) -> None:
        for name in self.queries:
            was, is_ = (told(db.subscribe(name, 0)) for db in self.engines)
            assert was == is_, name
        again = Engine()
        again.execute(dump(self.engines[0]))
        assert dump(again) == dump(self.engines[0])


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(STEPS, min_size=4, max_size=14))
def test_it_is_as_if_it_had_always_been_called_so(steps: list[tuple[str, int]]) -> None:
    with TemporaryDirectory() as folder:
        world = Renamed(Path(folder))
        for step in [("query", 1), ("rows", 2), *steps, ("rows", 3)]:
            world.do(*step)
        world.check()
        for db in world.engines:
            db.close()


@pytest.mark.parametrize("after", [False, True])
def test_an_engine_that_dies_over_it_has_the_one_name_or_the_other(
    after: bool, tmp_path: Path
) -> None:
    db = Engine(str(tmp_path / "db"))
    db.execute(DECLARED)
    db.execute("CREATE QUERY q AS SELECT v FROM s [RANGE 9 s]")
    db.ingest("s", [[0, 1, S]])
    store = db.store

    def dies(*given: object) -> None:
        if after:
            store(*given)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    db.store = dies  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        db.execute("ALTER STREAM s RENAME TO z")
    shutil.copytree(tmp_path / "db", tmp_path / "killed")
    again = Engine(str(tmp_path / "killed"))
    name = "z" if after else "s"
    assert text(again, "QUERY q").endswith(f"FROM {name} [RANGE 9 s]")
    again.ingest(name, [[0, 2, 2 * S]])
    again.heartbeat(name, 3 * S)
    assert len(told(again.subscribe("q", 0))) == 2
