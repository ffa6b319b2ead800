"""Streams that shed: how much, which rows, what answers make of it, and that it is never silent."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.intake.shedding import LEAST, Shedder, Waited, drawn
from dsms.running import shed as running_shed
from tests.archives import killed
from tests.effort import examples

S = 1_000_000
STREAM = """
CREATE STREAM s (k INT, x FLOAT, t TIMESTAMP) TIMESTAMP BY t
WITH (shed = random, shed_delay = 2 s)
"""
SUMS = "COUNT(*) AS n, COUNT(x) AS c, SUM(x) AS s, AVG(x) AS a"


def engine(share: float = 1.0, data: str | None = None) -> Engine:
    made = Engine(data)
    made.execute(STREAM)
    made.runtime.inputs["s"].shedder = Shedder(share)
    return made


def rows_of(found: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(c.to_pylist() for c in found.data.columns), strict=True))


def ask(made: Engine, sql: str) -> list[tuple[Any, ...]]:
    return rows_of(made.execute(sql)[0])


# ---------------------------------------------------------------- how much


@settings(max_examples=examples(100), deadline=None)
@given(
    rate=st.floats(1_000, 1e6),
    load=st.floats(0.2, 40),
    delay=st.sampled_from([S // 5, 2 * S, 60 * S]),
    frame=st.floats(0.001, 0.1),
)
def test_rows_wait_no_longer_than_they_may_and_no_share_is_wasted(rate, load, delay, frame):
    """An entry that takes `rate` rows in a second, where `load` times as many come: frames of
    `frame` of the delay."""
    shedder, now, shares = Shedder(), 0.0, []
    for number in range(int(40 / frame)):
        came = number * frame * delay
        now = max(now, came)
        shedder.look(Waited(int(now - came), int(now)), delay)
        kept = load * rate * frame * delay / S * shedder.share
        now += kept / rate * S
        if number > 20 / frame:
            assert now - came <= delay * (1 + frame * max(load, 1))
            shares.append(shedder.share)
    mean = sum(shares) / len(shares)
    assert mean == pytest.approx(min(1.0, 1 / load), rel=0.15)


def test_once_less_comes_all_rows_are_kept_again():
    shedder = Shedder(LEAST)
    for number in range(20):
        shedder.look(Waited(0, number * S), 2 * S)
    assert shedder.share == 1.0


@pytest.mark.parametrize("passed", [20, 3600, 10**6])
def test_after_a_while_without_rows_the_next_is_kept(passed):
    shedder = Shedder(LEAST)
    shedder.look(Waited(30 * S, 0), 2 * S)
    shedder.look(Waited(0, passed * S), 2 * S)
    assert shedder.share == 1.0


def test_rows_are_drawn_by_their_numbers_however_they_are_cut():
    whole = drawn(0, 10_000, 0.25)
    assert whole.tolist() == [*drawn(0, 17, 0.25), *drawn(17, 9_983, 0.25)]
    assert abs(whole.mean() - 0.25) < 0.02
    assert (drawn(0, 10_000, 0.1) <= whole).all()  # a smaller share is a part of it


# ---------------------------------------------------------------- what answers make of it


def estimates(rows: list[tuple[Any, ...]]) -> tuple[float, ...]:
    """From the definitions: of rows (value or None, weight) the estimates and standard errors."""
    known = [(x, w) for x, w in rows if x is not None]
    n = math.fsum(w for _, w in rows)
    c, s = math.fsum(w for _, w in known), math.fsum(x * w for x, w in known)

    def error(values: list[tuple[float, float]]) -> float:
        return math.sqrt(math.fsum(y * y * w * (w - 1) for y, w in values))

    of_n, of_c = error([(1, w) for _, w in rows]), error([(1, w) for _, w in known])
    if not known:
        return (n, of_n, c, of_c, *[math.nan] * 4)
    mean = error([(x - s / c, w) for x, w in known]) / c
    return n, of_n, c, of_c, s, error(known), s / c, mean


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_scaled_sums_are_those_of_the_definitions(seed):
    rng = Random(seed)
    made = engine()
    window = rng.choice(["[RANGE 7 s]", "[ROWS 12]", "[RANGE 9 s SLIDE 3 s]"])
    scaled = f"SELECT k, {SUMS} FROM s {window} GROUP BY k"
    made.execute(f"CREATE QUERY q AS {scaled} WITH (shed = scale)")
    made.execute(f"CREATE QUERY every AS SELECT * FROM s {window}")
    t = 0
    for _ in range(rng.randint(1, 12)):
        made.runtime.inputs["s"].shedder.share = rng.choice([1.0, 0.5, 0.3])
        rows = []
        for _ in range(rng.randint(1, 12)):
            t += rng.choice([0, S // 4, S])
            rows.append([rng.randint(1, 3), rng.choice([None, rng.uniform(-9, 9)]), t])
        made.ingest("s", rows)
    made.heartbeat("s", t + rng.choice([0, S, 3 * S]))
    kept: dict[int, list[tuple[Any, ...]]] = {}
    for k, x, _, w in ask(made, "SELECT * FROM every"):
        kept.setdefault(k, []).append((x, w))
    found = {row[0]: row[1:] for row in ask(made, "SELECT * FROM q")}
    assert found.keys() == kept.keys()
    for k, row in found.items():
        told = [math.nan if value is None else value for value in row]
        assert told == pytest.approx(estimates(kept[k]), rel=1e-9, abs=1e-5, nan_ok=True)
    once = ask(made, f"SELECT k, {SUMS} FROM s [RANGE 7 s] GROUP BY k WITH (shed = scale)")
    if window == "[RANGE 7 s]":
        assert {row[0]: row[1:] for row in once} == found


def test_estimates_are_unbiased_and_as_far_off_as_they_say():
    values = [float(i % 17) for i in range(400)]
    inside, sums = 0, []
    made = engine(0.2)
    for number in range(300):
        made.ingest("s", {"k": [1] * 400, "x": values, "t": [number * S] * 400})
        made.heartbeat("s", number * S)
        ((total, error),) = ask(made, "SELECT SUM(x) FROM s [NOW] WITH (shed = scale)")
        inside += abs(total - sum(values)) <= 1.96 * error
        sums.append(total)
    assert sum(sums) / 300 == pytest.approx(sum(values), rel=0.02)
    assert inside >= 0.92 * 300


def test_names_order_and_having_stay():
    made = engine()
    made.ingest("s", [[1, 2.0, 0], [2, 5.0, 0], [2, 1.0, 0], [3, 9.0, 0]])
    made.heartbeat("s", S)
    sql = "SELECT k, COUNT(*), 1 + SUM(x) AS y FROM s [RANGE 1 min] AS r WHERE x < 8 GROUP BY k "
    found = made.execute(f"{sql} HAVING SUM(x) > 1 ORDER BY COUNT(*) DESC WITH (shed = scale)")[0]
    assert found.data.schema.names == ["k", "COUNT(*)", "COUNT(*)_error", "y"]
    assert rows_of(found) == [(2, 2.0, 0.0, 7.0), (1, 1.0, 0.0, 3.0)]
    ((nothing, error),) = ask(
        made, "SELECT COUNT(*) FROM s [RANGE 1 s] WHERE k > 9 WITH (shed = scale)"
    )
    assert (nothing, error) == (0.0, 0.0)


# ---------------------------------------------------------------- never silent


def test_reports_and_answers_tell_until_the_windows_are_whole_again():
    made = engine(0.5)
    made.execute(
        "CREATE QUERY partial AS SELECT COUNT(*) AS n FROM s [RANGE 10 s];"
        "CREATE QUERY scaled AS SELECT COUNT(*) AS n FROM s [RANGE 10 s] WITH (shed = scale);"
        "CREATE QUERY over AS SELECT n FROM partial;"
        "CREATE QUERY asked AS SELECT COUNT(*) AS n FROM s [RANGE 10 s] ON LOOKUP;"
        "CREATE STREAM fed AS SELECT Istream(k) FROM s [NOW];"
        "CREATE QUERY far AS SELECT COUNT(*) AS n FROM fed [RANGE 10 s]"
    )
    reader = made.subscribe("partial")
    report = made.ingest("s", {"k": [1] * 1000, "x": [1.0] * 1000, "t": [0] * 1000})
    assert report.accepted + report.shed == 1000 and 400 < report.shed < 600
    made.heartbeat("s", S)
    share = report.accepted / (2 * report.accepted)
    asking = (
        "SELECT n FROM partial", "SELECT * FROM over", "LOOKUP asked", "SELECT n FROM far",
        "SELECT COUNT(*) FROM s [RANGE 10 s]", "SELECT k FROM s WITH (complete = any)",
    )  # fmt: skip  # statements
    assert [made.execute(sql)[0].share for sql in asking] == [share] * len(asking)
    assert {push.share for push in reader.take() if push.data is not None} == {share}
    shown = ask(made, "SHOW QUERIES FULL WHERE query IN ('partial', 'scaled', 'over')")
    names = made.execute("SHOW QUERIES FULL")[0].data.schema.names
    at = names.index("shed")
    assert [row[at : at + 2] for row in shown] == [
        ("partial", share), ("scale", share), ("partial", share)
    ]  # fmt: skip  # a table
    streams = made.execute("SHOW STREAMS WHERE stream = 's'")[0].data.to_pylist()[0]
    assert (streams["shed"], streams["share"]) == ("random", 0.5)
    assert made.stats()["streams"]["s"]["shed"] == report.shed
    made.execute("ALTER STREAM s SET (shed = none)")
    assert made.ingest("s", [[1, 1.0, 30 * S]]).shed == 0
    made.heartbeat("s", 31 * S)
    assert made.execute("SELECT n FROM partial")[0].share is None
    assert made.execute("SELECT COUNT(*) FROM s [RANGE 10 s]")[0].share is None
    assert made.execute("SELECT COUNT(*) FROM s [RANGE 1 h]")[0].share is not None


FED = """
CREATE STREAM u (k INT, x FLOAT, t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM d (k INT, x FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
CREATE QUERY feeder AS INSERT INTO d SELECT Istream(k, x) FROM s [NOW];
CREATE QUERY r AS SELECT COUNT(*) AS n FROM d [RANGE 10 s]
"""
INSTEAD = "CREATE OR REPLACE QUERY feeder AS INSERT INTO d SELECT Istream(k, x) FROM u [NOW]"


@pytest.mark.parametrize("end", [INSTEAD, "DROP QUERY feeder"])
def test_a_stream_lacks_what_a_query_did_not_feed_it_that_is_gone(end: str, tmp_path) -> None:
    made = engine(0.5, str(tmp_path))
    made.execute(FED)
    made.ingest("s", {"k": [1] * 100, "x": [1.0] * 100, "t": [S] * 100})
    made.heartbeat("s", 2 * S)
    share = made.execute("SELECT n FROM r")[0].share
    assert share is not None and share < 1
    made.execute(end)
    killed(made)
    made = Engine(str(tmp_path))
    assert made.execute("SELECT n FROM r")[0].share == share
    made.heartbeat(*("u", 9 * S) if end == INSTEAD else ("d", 9 * S))
    assert made.execute("SELECT n FROM r")[0].share == share
    made.heartbeat(*("u", 30 * S) if end == INSTEAD else ("d", 30 * S))
    assert made.execute("SELECT n FROM r")[0].share is None
    assert made.execute("SELECT COUNT(*) FROM d [RANGE 1 h]")[0].share == share
    made.close()


def test_readers_of_sums_that_are_not_scaled_get_no_scaled_ones():
    made = engine(0.5)
    text = "CREATE OR REPLACE QUERY q AS SELECT SUM(x) / 1 AS m FROM s [RANGE 10 s]"
    made.execute(text)
    reader = made.subscribe("q")
    made.execute(f"{text} WITH (shed = scale)")
    assert reader.take()[-1].code == "DS435"


def test_frames_of_which_nothing_is_kept_are_told():
    """Until rows come that stand for them."""
    made = engine(LEAST)
    count = "SELECT COUNT(*) FROM s [RANGE 10 s]"
    assert made.execute(count)[0].share is None
    for number in range(3):
        assert made.ingest("s", [[1, 1.0, number * S]]).shed == 1
    assert (ask(made, count), made.execute(count)[0].share) == ([(0,)], 0.0)
    shedder = made.runtime.inputs["s"].shedder
    assert shedder.history == [[2 * S, 0, 3]]
    shedder.share = 0.75
    while not made.ingest("s", [[1, 1.0, 3 * S]]).accepted:
        pass
    made.heartbeat("s", 4 * S)
    assert made.execute(count)[0].share == 0.75
    made.heartbeat("s", 14 * S)
    assert made.execute(count)[0].share is None


def test_frames_of_which_nothing_was_kept_are_told_beside_those_of_which_all_was():
    made = engine(LEAST)
    made.ingest("s", [[1, 1.0, 0]])
    made.runtime.inputs["s"].shedder.share = 1.0
    made.ingest("s", [[1, 1.0, S]] * 3)
    made.heartbeat("s", 2 * S)
    assert made.execute("SELECT COUNT(*) FROM s [RANGE 10 s]")[0].share == 0.75
    made.execute("CREATE STREAM late (k INT) WITH (shed = random)")
    made.advance(S)
    made.runtime.inputs["late"].shedder = Shedder(LEAST)
    assert made.ingest("late", [[1]]).shed == 1
    assert made.execute("SELECT COUNT(*) FROM late [RANGE 10 s]")[0].share == 0.0


@pytest.mark.parametrize("sheds", [True, False])
def test_what_an_answer_rests_on_is_found_in_one_walk(monkeypatch, sheds):
    """Every stream reads the two before: there are 2^8 ways to the first, of which the longest
    windows count; where none sheds nobody goes any."""
    made = Engine()
    shed = "WITH (shed = random)" if sheds else ""
    made.execute(f"""
        CREATE STREAM a0 (k INT, t TIMESTAMP) TIMESTAMP BY t {shed};
        CREATE STREAM b0 (k INT, t TIMESTAMP) TIMESTAMP BY t""")
    for level in range(8):
        both = f"SELECT k FROM a{level} [NOW] UNION ALL SELECT k FROM b{level} [RANGE 3 s]"
        for name in "ab":
            made.execute(f"CREATE STREAM {name}{level + 1} AS SELECT Istream(k) FROM ({both}) AS x")
    if sheds:
        made.runtime.inputs["a0"].shedder = Shedder(0.5)
    made.ingest("a0", [[1, 0]] * 100)
    seen = []
    whole = running_shed._since
    monkeypatch.setattr(running_shed, "_since", lambda *a: seen.append(a) or whole(*a))
    for at, known in ((20 * S, True), (25 * S, False)):
        made.heartbeat("a0", at)
        made.heartbeat("b0", at)
        share = made.execute("SELECT k FROM a8 [NOW]")[0].share
        assert share == (0.5 if sheds and known else None)
    assert len(seen) == (32 if sheds else 0)


def test_what_was_kept_comes_back(tmp_path):
    for end in (killed, Engine.close):
        folder = str(tmp_path / end.__name__)
        made = engine(0.4, folder)
        made.execute("CREATE QUERY q AS SELECT k, SUM(x) AS v FROM s [RANGE 1 h] GROUP BY k")
        report = made.ingest("s", [[i % 5, 1.0, i] for i in range(500)], client="w", seq=1)
        made.ingest("s", [[1, 1.0, 501]], client="w", seq=2)
        made.execute("ALTER STREAM s SET (shed_delay = 5 s)")
        made.heartbeat("s", S)
        asking = "SELECT * FROM q", "SELECT * FROM s", "SHOW CREATE STREAM s"
        before = [ask(made, sql) for sql in asking]
        share = made.execute(asking[0])[0].share
        end(made)
        again = Engine(folder)
        assert [ask(again, sql) for sql in asking] == before
        assert again.execute(asking[0])[0].share == pytest.approx(share)
        assert again.ingest("s", [[9, 1.0, 0]] * 500, client="w", seq=1).repeated == 1
        assert report.shed > 0
        again.close()


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("end", [killed, Engine.close])
def test_what_was_shed_comes_back(tmp_path, end, saved):
    """Of a frame of which nothing was kept nothing was known, and an answer was of all rows."""
    folder, count = str(tmp_path / "db"), "SELECT COUNT(*) FROM s [RANGE 10 s]"
    made = engine(0.5, folder)
    made.ingest("s", [[1, 1.0, S]] * 50, client="w", seq=1)
    if saved:
        assert made.saver is not None and made.saver.checkpoint()
    made.runtime.inputs["s"].shedder.share = LEAST
    assert made.ingest("s", [[1, 1.0, 2 * S]], client="w", seq=2).shed == 1
    assert made.ingest("s", [[1, 1.0, 3 * S]] * 2, client="w", seq=3).shed == 2
    made.heartbeat("s", 12 * S)
    shedder, share = made.runtime.inputs["s"].shedder, made.execute(count)[0].share
    known = shedder.offered, shedder.shed, shedder.share, shedder.history
    assert (share, shedder.history[-1]) == (0.0, [3 * S, 0, 3])
    streams = ask(made, "SHOW STREAMS")
    end(made)
    again = Engine(folder)
    found = again.runtime.inputs["s"].shedder
    assert (found.offered, found.shed, found.share, found.history) == known
    assert (ask(again, "SHOW STREAMS"), again.execute(count)[0].share) == (streams, share)
    assert again.ingest("s", [[1, 1.0, 3 * S]] * 2, client="w", seq=3).repeated == 1
    again.close()


def test_late_rows_go_on_with_their_weights():
    made = Engine()
    made.execute(
        "CREATE STREAM old (k INT, t TIMESTAMP, w FLOAT);"
        "CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t LATE INTO old WITH (shed = random)"
    )
    made.advance(9 * S)
    made.runtime.inputs["s"].shedder = Shedder(0.5)
    made.ingest("s", [[1, 9 * S]] * 50)
    report = made.ingest("s", [[1, 0]] * 50)
    made.advance(10 * S)
    assert report.late + report.shed == 50
    assert ask(made, "SELECT w, COUNT(*) FROM old GROUP BY w") == [(2.0, report.late)]


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("ALTER STREAM s SET (durability = sync)", "DS427"),
        ("ALTER STREAM plain SET (shed = random)", "DS427"),
        ("ALTER STREAM nothing SET (shed = random)", "DS401"),
        ("ALTER STREAM s SET (shed = scale)", "DS215"),
        ("ALTER STREAM s ADD COLUMN c INT", "DS235"),
        ("ALTER STREAM s RENAME COLUMN shed_weight TO w", "DS439"),
        ("ALTER STREAM s RENAME COLUMN Shed_Weight TO w", "DS439"),
        ('ALTER STREAM s RENAME COLUMN "shed_weight" TO w', "DS439"),
        ("CREATE QUERY q AS SELECT k FROM s [NOW] WITH (shed = random)", "DS215"),
        ("INSERT INTO s SELECT Istream(k, x) FROM plain [NOW]", "DS360"),
        ("CREATE STREAM z (k INT) WITH (shed = random, shed_delay = 0 s)", "DS215"),
        ("ALTER STREAM s SET (shed_delay = 0 s)", "DS215"),
    ],
)
def test_what_shedding_refuses(sql, code):
    made = engine()
    made.execute("CREATE STREAM plain (k INT, x FLOAT, t TIMESTAMP) TIMESTAMP BY t")
    if sql.startswith("INSERT"):
        sql = f"CREATE QUERY q AS {sql}"
    with pytest.raises(DsmsError) as found:
        made.execute(sql)
    assert found.value.code == code
    assert code in ("DS401", "DS215") or found.value.hint
    with pytest.raises(DsmsError, match="DS443"):
        made.ingest("s", {"k": [1], "x": [1.0], "t": [0], "shed_weight": [3.0]})
