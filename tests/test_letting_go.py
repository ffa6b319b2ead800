"""WITH (over = shed): joins that let go of rows of their windows.  What they tell is what the model
says, however rows are cut, under each strategy, over restarts; it is a part of what is told without
it; and it is never silent."""

from __future__ import annotations

from collections import Counter
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.settings import Settings
from dsms.sql.types import FOREVER
from tests.effort import examples
from tests.shedding_model import Row, told
from tests.stories.crashing import Host
from tests.stories.play import taken

S = 1_000_000
STREAMS = """
CREATE STREAM a (k INT, c STRING, v INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM b (k INT, c STRING, v INT, t TIMESTAMP) TIMESTAMP BY t;
"""
ITEMS = "SELECT a.k, a.c, a.v, b.k AS l, b.c AS d, b.v AS w FROM"
MORE = ITEMS.replace(" FROM", ", o.k AS m, o.c AS e, o.v AS x FROM")
WINDOWS = {
    "[RANGE 5 s]": 5 * S,
    "[RANGE 9 s]": 9 * S,
    "[NOW]": 1,
    "[RANGE UNBOUNDED]": None,
}  # lengths
CONDITIONS = {
    "a.k = b.k": (lambda r: r[0], lambda *_: True),
    "a.c = b.c": (lambda r: r[1], lambda *_: True),
    "a.k = b.k AND a.c = b.c": (
        lambda r: None if r[0] is None or r[1] is None else tuple(r[:2]),
        lambda *_: True,
    ),
    "a.k = b.k AND a.v < b.v": (lambda r: r[0], lambda x, y: x.values[2] < y.values[2]),
    "a.v + 3 < b.v": (lambda r: 0, lambda x, y: x.values[2] + 3 < y.values[2]),
}  # what makes keys, and what matches beside them


def drawn(seed: int, count: int) -> list[tuple[str, list[Any]]]:
    """Rows of both streams in order of time: few keys come often."""
    rng, t, rows = Random(seed), 0, []
    for number in range(count):
        t += rng.choice((0, 0, S // 10, S))
        key = rng.choice((None, 1, 1, 1, 2, 2, 3, 4, 5, 6, 7))
        text = None if key is None else "x" * key
        rows.append((rng.choice("ab"), [key, rng.choice((text, text, None)), number % 11, t]))
    return rows


def size(values: list[Any]) -> int:
    """Bytes that a row counts for: 64, the number of its part, two numbers, a text."""
    return 64 + 8 + 16 + 4 + len(values[1] or "")


def model(rows: list[tuple[str, list[Any]]], windows: list[str], on: str, most: int) -> Any:
    """Windows over a and b, and perhaps another one over a."""
    key, matches = CONDITIONS[on]
    made = []
    for side, window in enumerate(windows):
        for stream, values in rows:
            if stream == "aba"[side]:
                t, length = values[3], WINDOWS[window]
                end = FOREVER if length is None else t + length
                made.append(Row(side, t, end, key(values), tuple(values[:3]), size(values)))
    return told(made, most, matches, len(windows))


def fed(engine: Engine, rows: list[tuple[str, list[Any]]]) -> None:
    for stream in "ab":
        some = [values for name, values in rows if name == stream]
        if some:
            engine.ingest(stream, some)


def shown(engine: Engine, query: str = "q") -> dict[str, Any]:
    (line,) = engine.execute(f"SHOW QUERIES FULL WHERE query = '{query}'")[0].data.to_pylist()
    return line


@settings(max_examples=examples(80), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_engine_and_model_agree_however_rows_are_cut_and_over_restarts(seed):
    rng = Random(seed)
    rows = drawn(seed, rng.choice((20, 80, 200)))
    windows = rng.choices(list(WINDOWS), k=2)
    on, most = rng.choice(list(CONDITIONS)), rng.choice((50, 300, 900, 3000, 100_000))
    sql = f"{ITEMS} a {windows[0]}, b {windows[1]} WHERE {on}"
    check(rng, rows, windows, on, most, sql)


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_joins_of_many_windows_do_what_the_model_says(seed):
    rng = Random(seed)
    rows = drawn(seed, rng.choice((20, 60)))
    windows = rng.choices(list(WINDOWS), k=3)
    on, most = rng.choice(("a.k = b.k", "a.c = b.c")), rng.choice((300, 900, 3000, 100_000))
    where = f"{on} AND {on.replace('a.', 'o.')}"
    sql = f"{MORE} a {windows[0]}, b {windows[1]}, a {windows[2]} AS o WHERE {where}"
    check(rng, rows, windows, on, most, sql, "joins = pipeline")


def check(
    rng: Random, rows: list[Any], windows: list[str], on: str, most: int, sql: str, *options: str
) -> None:
    want = model(rows, windows, on, most)
    strategy = f"strategy = {rng.choice(('upa', 'direct'))}"
    said = ", ".join((f"max_state = {most}", "over = shed", strategy, *options))
    with TemporaryDirectory() as data:
        host = Host(data, rng)
        host.engine.execute(STREAMS)
        host.engine.execute(f"CREATE QUERY q AS {sql} WITH ({said})")
        host.readers["q"], host.pushes["q"] = host.engine.subscribe("q", 0), []
        while rows:
            some = rng.choice((1, 3, 30, 300))
            fed(host.engine, rows[:some])
            rows = rows[some:]
            if rng.random() < 0.3:
                for stream in "ab":
                    host.engine.heartbeat(stream, rows[0][1][3] - 1 if rows else 10_000 * S)
            host.maybe()
        for stream in "ab":
            host.engine.heartbeat(stream, 10_000 * S)
        host.read()
        got = Counter((line.at, line.sign, line.values) for line in host.pushes["q"])
        assert shown(host.engine)["let_go"] == want.let_go
        host.engine.close()
    lines = want.lines()
    if set(windows) == {"[RANGE UNBOUNDED]"}:  # told as it enters, without what it lacks
        lines = (line for line in lines if line[1] == "+")
    assert got == Counter(lines)


# ---------------------------------------------------------------- more than two inputs, and others


def pushed(reader: Any) -> Counter[Any]:
    return Counter((line.at, line.sign, line.values) for line in taken(reader, 0))


BESIDE = {
    "three": "SELECT a.k, a.v, b.v AS w, c.v AS x FROM a [RANGE 9 s], b [RANGE 5 s], a [RANGE 3 s] "
    "AS c WHERE a.k = b.k AND b.k = c.k",
    "table": "SELECT a.v, b.v AS w, n.y FROM a [RANGE 9 s], b [RANGE 5 s], n "
    "WHERE a.k = b.k AND a.k = n.k",
    "both": "SELECT a.v, b.v AS w FROM a [RANGE 9 s], b [RANGE 5 s] WHERE a.k = b.k UNION ALL "
    "SELECT a.v, b.v AS w FROM a [RANGE 5 s], b [RANGE 9 s] WHERE a.c = b.c AND a.v > 2",
    "pipeline": "SELECT a.v, b.v AS w, c.v AS x FROM a [RANGE 9 s], b [RANGE 5 s], b [RANGE 3 s] "
    "AS c WHERE a.k = b.k AND b.k = c.k AND a.v < c.v + 5",
    "late": "SELECT a.v, b.v AS w FROM a [RANGE 9 s UNTIL 2 s AGO], b [SINCE 3 s] WHERE a.k = b.k",
}


@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 2**32), beside=st.sampled_from(list(BESIDE)))
def test_what_is_told_is_a_part_of_what_is_true_and_is_taken_back_on_time(seed, beside):
    rng = Random(seed)
    rows, engine = drawn(seed, 120), Engine()
    engine.execute(
        f"{STREAMS} CREATE TABLE n (k INT PRIMARY KEY, y INT) NON RETROACTIVE;"
        "INSERT INTO n VALUES (1, 1), (2, 2) AT '1970-01-01'"
    )
    most = rng.choice((500, 2000, 5000))
    engine.execute(f"CREATE QUERY plain AS {BESIDE[beside]}")
    options = f"max_state = {most}, over = shed, joins = "
    options += "pipeline" if beside == "pipeline" else "tree"
    engine.execute(f"CREATE QUERY q AS {BESIDE[beside]} WITH ({options})")
    engine.execute("CREATE QUERY reads AS SELECT * FROM q")
    readers = [engine.subscribe(name) for name in ("plain", "q", "reads")]
    for k in range(0, len(rows), 7):
        fed(engine, rows[k : k + 7])
    for stream in "ab":
        engine.heartbeat(stream, 10_000 * S)
    plain, told_of, read = map(pushed, readers)
    assert told_of <= plain and read == told_of
    assert shown(engine)["let_go"] is not None and shown(engine, "plain")["let_go"] is None
    for name in ("q", "reads"):
        assert (
            engine.execute(f"SELECT COUNT(*) FROM {name}")[0].data
            == engine.execute("SELECT COUNT(*) FROM plain")[0].data
            or beside == "late"
        )


def test_nothing_is_let_go_while_there_is_room():
    rows, engine = drawn(1, 200), Engine()
    engine.execute(STREAMS)
    sql = f"{ITEMS} a [RANGE 9 s], b [RANGE 5 s] WHERE a.k = b.k"
    engine.execute(f"CREATE QUERY plain AS {sql}")
    engine.execute(f"CREATE QUERY q AS {sql} WITH (max_state = 100000, over = shed)")
    readers = [engine.subscribe(name) for name in ("plain", "q")]
    fed(engine, rows)
    plain, found = map(pushed, readers)
    assert found == plain
    assert shown(engine)["let_go"] == 0 and shown(engine)["share"] is None


# ---------------------------------------------------------------- never silent

JOIN = "SELECT a.k, a.v, b.v AS w FROM a [RANGE 10 s], b [RANGE 10 s] WHERE a.k = b.k"


def shedding(most: int = 1000, with_settings: Settings | None = None) -> Engine:
    engine = Engine(None, with_settings)
    engine.execute(f"{STREAMS} CREATE QUERY q AS {JOIN} WITH (max_state = {most}, over = shed)")
    return engine


def test_answers_tell_until_the_windows_are_whole_again():
    engine = shedding(880)  # ten rows of 88 bytes
    engine.execute(
        "CREATE QUERY reads AS SELECT k FROM q; CREATE TABLE kept (k INT);"
        "CREATE STREAM fed AS SELECT Istream(k) FROM q;"
        "CREATE QUERY far AS SELECT k FROM fed [RANGE 10 s]"
    )
    reader = engine.subscribe("q")
    engine.ingest("b", [[1, "", 0, 0]])
    engine.ingest("a", [[k, "", k, S] for k in range(1, 13)])
    for stream in "ab":
        engine.heartbeat(stream, S)
    share = 9 / 13
    asking = "SELECT k FROM q", "SELECT k FROM reads", "SELECT k FROM far"
    assert [engine.execute(sql)[0].share for sql in asking] == [share] * 3
    assert {push.share for push in reader.take() if push.data is not None} == {share}
    line = shown(engine)
    assert (line["shed"], line["share"], line["let_go"]) == ("partial", share, 4)
    stats = engine.stats()["queries"]["q"]
    assert (stats["let_go"], stats["share"]) == (4, share)
    for sql in ("SELECT k FROM q WITH (complete = required)", "INSERT INTO kept SELECT k FROM q"):
        with pytest.raises(DsmsError, match="DS363") as found:
            engine.execute(sql)
        assert found.value.hint
    for stream in "ab":
        engine.heartbeat(stream, 12 * S)
    assert [engine.execute(sql)[0].share for sql in asking[:2]] == [None] * 2
    engine.execute("SELECT k FROM q WITH (complete = required)")
    assert shown(engine)["let_go"] == 4
    assert engine.stats()["queries"]["q"]["share"] == 1.0
    assert "let_go" not in engine.stats()["queries"]["reads"] or shown(engine, "reads")["let_go"]


def test_rows_that_go_are_those_of_which_least_is_expected():
    engine = shedding(10 * 88)
    engine.ingest("b", [[1, "", k, 0] for k in range(5)])
    engine.ingest("a", [[k, "", 0, 1] for k in (1, 2, 2, 2, 2)])
    engine.ingest("b", [[3, "", 9, 2]])  # too much: of key 2 nothing has come in b
    engine.ingest("a", [[3, "", 0, 3]])
    engine.ingest("b", [[2, "", 9, 4]])
    for stream in "ab":
        engine.heartbeat(stream, 5)
    found = engine.execute("SELECT k, COUNT(*) AS n FROM q GROUP BY k ORDER BY k")[0].data
    assert found.to_pylist() == [{"k": 1, "n": 5}, {"k": 2, "n": 2}, {"k": 3, "n": 1}]


def test_explain_says_what_joins_hold():
    engine = shedding(5000)
    lines = engine.execute("EXPLAIN QUERY q")[0].data.column(0).to_pylist()
    said = "its join holds rows of at most 5000 bytes: it lets go of those of least use"
    assert lines[-1] == said and any("hash-shedding" in line for line in lines)
    lines = (
        engine.execute(
            f"EXPLAIN CREATE QUERY r AS {BESIDE['three']} "
            "WITH (max_state = 5000, over = shed, joins = tree)"
        )[0]
        .data.column(0)
        .to_pylist()
    )
    assert any("each of its 2 joins holds rows of at most 2500 bytes" in line for line in lines)


# ---------------------------------------------------------------- as it runs


def test_what_joins_may_hold_is_set_while_they_run(tmp_path):
    engine = Engine(str(tmp_path))
    engine.execute(f"{STREAMS} CREATE QUERY q AS {JOIN} WITH (max_state = 8800, over = shed)")
    engine.ingest("a", [[1, "", k, 0] for k in range(50)])
    engine.ingest("b", [[1, "", 0, 0]])
    engine.execute("ALTER QUERY q SET (max_state = 880)")
    assert shown(engine)["let_go"] == 0
    engine.close()
    engine = Engine(str(tmp_path))
    engine.ingest("b", [[1, "", 0, 1], [1, "", 0, 2]])
    engine.heartbeat("a", 2)
    assert shown(engine)["let_go"] == 51 - 9
    with pytest.raises(DsmsError, match="DS432"):
        engine.execute("ALTER QUERY q SET (over = stop)")
    replace = f"CREATE OR REPLACE QUERY q AS {JOIN} WITH (over = shed, max_state = 1760)"
    assert "as it was" in str(engine.execute(replace)[0])
    assert shown(engine)["let_go"] == 51 - 9
    engine.execute(f"CREATE OR REPLACE QUERY q AS {JOIN}")
    assert shown(engine)["let_go"] is None
    engine.close()


def test_the_state_limit_of_the_server_stops_it_all_the_same():
    engine = shedding(1 << 40, Settings(state_bytes=1 << 20))
    for t in range(100):
        for stream in "ab":
            engine.ingest(stream, [[k, "", 0, t] for k in range(500)])
    assert shown(engine)["status"].startswith("stopped: DS630")


# ---------------------------------------------------------------- what is refused

TWO = "FROM a [RANGE 9 s], b [RANGE 9 s] WHERE a.k = b.k"


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT k FROM a [RANGE 9 s]", "joins no windows"),
        (f"SELECT a.k, COUNT(*) AS n {TWO} GROUP BY a.k", "aggregates"),
        (f"SELECT DISTINCT a.k {TWO}", "DISTINCT"),
        (f"SELECT a.k {TWO} UNION SELECT k FROM a [NOW]", "UNION"),
        (f"SELECT a.k {TWO} EXCEPT SELECT k FROM a [NOW]", "EXCEPT"),
        (f"SELECT a.k {TWO} AND EXISTS (SELECT 1 FROM a [NOW] c WHERE c.k = b.k)", "EXISTS"),
        ("SELECT a.k FROM a [RANGE 9 s] LEFT JOIN b [RANGE 9 s] ON a.k = b.k", "outer join"),
        ("SELECT a.k FROM a [ROWS 9], b [RANGE 9 s] WHERE a.k = b.k", "counts rows"),
        ("SELECT a.k FROM a [RANGE 9 s], h WHERE a.k = h.k", "table"),
        ("SELECT a.k FROM a [RANGE 9 s], z WHERE a.k = z.k", "answer of z"),
        ("SELECT a.k FROM a [RANGE 9 s INTERNAL], b [RANGE 9 s INTERNAL]", "appended"),
        (f"SELECT a.k {TWO} EVERY 1 s", "windows or synopses"),
    ],
)
def test_what_can_not_let_go_of_rows_is_refused(sql, said):
    engine = Engine()
    engine.execute(
        f"{STREAMS} CREATE TABLE h (k INT PRIMARY KEY); CREATE QUERY z AS SELECT k FROM a [NOW]"
    )
    options = "max_state = 1000, over = shed"
    with pytest.raises(DsmsError, match=said) as found:
        engine.execute(f"CREATE QUERY q AS {sql} WITH ({options})")
    assert found.value.code == "DS334" and "inner joins" in found.value.hint
    engine.execute(f"CREATE QUERY q AS {sql} WITH (max_state = 1000000, over = stop)")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("over = shed", "DS362"),
        ("over = shed, max_state = 9, strategy = nt", "DS334"),
        ("over = shed, max_state = 9, joins = adaptive", "DS334"),
        ("over = more, max_state = 9", "DS215"),
    ],
)
def test_options_that_do_not_go_together(options, code):
    engine = Engine()
    engine.execute(STREAMS)
    with pytest.raises(DsmsError, match=code):
        engine.execute(f"CREATE QUERY q AS SELECT a.k {TWO} WITH ({options})")
    if code == "DS334":
        engine.execute(f"CREATE QUERY q AS SELECT a.k {TWO} WITH (over = shed, max_state = 9)")
