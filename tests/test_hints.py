"""Hints lead somewhere: each statement, FROM clause and window that one shows parses; what is made
from the statement at hand is taken in its place; and what the others say to do is done here, and is
taken too.  So no hint sends anyone on to another error, and none in a circle."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import pytest

from dsms.errors import QueryError
from dsms.sql.foreign import sections
from dsms.sql.mistakes import mistakes
from dsms.sql.parser import parse_one
from tests.rules import RULES
from tests.test_rules import SCHEMA, declared, run

# what stands for a length, a number or a name where a form leaves it open
OPEN = {"t": "10 s", "s": "5 s", "d": "1 h", "u": "1 s", "n": "5", "m": "2", "i": "'2013-01-01'"}
SHOWN = re.compile(r"\[(?:RANGE|ROWS|PARTITION|NOW|SINCE|SLIDE|UNBOUNDED)[^\]]*\]")


@cache
def hints() -> dict[str, str]:
    """All that there are of the language, by what they are about.  Called by tests, not by their
    parameters: each process of the tests would run all that is refused before its first test."""
    out: dict[str, str] = {}
    catalog = declared(SCHEMA)
    for code, text, *_ in RULES:
        with pytest.raises(QueryError) as caught:
            run(text.replace("^", ""), catalog)
        out[f"{code}: {text}"] = caught.value.hint or ""
    out |= {m.message: m.hint or "" for m in mistakes()}
    out |= {f"{s} {w}": hint for s, words in sections().items() for w, hint in words.items()}
    return {key: hint for key, hint in out.items() if hint}


def windows(hint: str) -> Iterator[str]:
    """The windows that a hint shows, with what it leaves open filled in."""
    for found in SHOWN.findall(hint):
        if "..." not in found:
            yield re.sub(r"(?<!\d )(?<!\w)[tsdunmi](?!\w)", lambda m: OPEN[m[0]], found)


def statements(hint: str) -> Iterator[str]:
    """The whole statements and FROM clauses that a hint shows."""
    for part in re.split(r"; (?=[a-z])|, or ", hint):
        found = re.search(r"(?<=: )(FROM \(?SELECT|SELECT|CREATE|FROM \(SELECT) .*", part)
        if found is not None and "..." not in found[0] and "name" not in found[0]:
            yield f"SELECT * {found[0]}" if found[0].startswith("FROM") else found[0]


def complaints(take: Callable[[str], object], shown: Iterable[tuple[str, str]]) -> list[str]:
    """Of what hints show that which is not taken: what it is about, and why."""
    out = []
    for about, text in shown:
        try:
            take(text)
        except QueryError as error:
            out.append(f"{about}: {text}: {error}")
    return out


def test_windows_that_are_shown_are_windows() -> None:
    shown = [(about, window) for about, hint in hints().items() for window in windows(hint)]
    assert len(shown) > 150

    def take(window: str) -> None:
        whole = window.replace("[SLIDE", "[RANGE 5 s SLIDE")
        parse_one(f"SELECT a FROM q {whole}")

    assert complaints(take, shown) == []


def generated() -> dict[str, list[str]]:
    """The statements that hints of the binder show, by what they are about."""
    found = {about: list(statements(hint)) for about, hint in hints().items() if about[:2] == "DS"}
    return {about: shown for about, shown in found.items() if shown}


def test_what_a_hint_shows_is_taken() -> None:
    shown = [(about, text) for about, texts in generated().items() for text in texts]
    assert complaints(lambda text: run(text, declared(SCHEMA)), shown) == []


def test_statements_are_found_in_hints() -> None:
    assert {about[:5] for about in generated()} >= {"DS306", "DS309", "DS318", "DS345"}


# ---------------------------------------------------------------- what hints say to do

# a code, what is refused with it, and what is left when its hint is followed
FOLLOWED = """
DS301
  SELECT sym FROM trades WHERE SUM(qty) > 1
  SELECT sym FROM trades GROUP BY sym HAVING SUM(qty) > 1
DS302
  SELECT MAX(SUM(qty)) FROM trades
  SELECT MAX(s) FROM (SELECT SUM(qty) AS s FROM trades GROUP BY sym)
DS303
  SELECT sym, SUM(qty) FROM trades
  SELECT sym, SUM(qty) FROM trades GROUP BY sym
DS303
  SELECT sym, SUM(qty) FROM trades
  SELECT LAST(sym), SUM(qty) FROM trades
DS304
  SELECT SUM(*) FROM trades
  SELECT SUM(qty) FROM trades
DS305
  SELECT * FROM limits [RANGE 10]
  SELECT * FROM limits
DS306
  SELECT SUM(b) FROM (SELECT SUM(qty) AS b FROM trades [RANGE 6]) [ROWS 10]
  SELECT SUM(b) FROM (SELECT Istream(SUM(qty) AS b) FROM trades [RANGE 6]) [ROWS 10]
DS356
  SELECT * FROM trades [RANGE (qty)]
  SELECT * FROM trades [RANGE (qty * INTERVAL '1' SECOND)]
DS356
  SELECT * FROM (SELECT px, ts - ts AS gap FROM trades) [VALID UNTIL gap]
  SELECT * FROM (SELECT px, ts - ts AS gap FROM trades) [RANGE (gap)]
DS307
  SELECT * FROM trades [PARTITION BY sym EVERY 0 s]
  SELECT * FROM trades [PARTITION BY sym EVERY 1 s]
DS357
  ONCE SELECT * FROM kept [RANGE (qty * INTERVAL '1' SECOND) ARCHIVE]
  ONCE SELECT * FROM kept [RANGE (qty * INTERVAL '1' SECOND)]
DS307
  SELECT * FROM trades [RANGE 0]
  SELECT * FROM trades [NOW]
DS308
  SELECT * FROM trades [ROWS 10 SLIDE 2 s]
  SELECT * FROM trades [ROWS 10 SLIDE 10]
DS308
  SELECT * FROM trades [ROWS 10 SLIDE 2 s]
  SELECT * FROM trades [ROWS 10] EVERY 2 s
DS309
  SELECT * FROM trades [RANGE 10 SLIDE 5], quotes [ROWS 10 SLIDE 5]
  SELECT * FROM trades [RANGE 10], quotes [ROWS 10] EVERY 5 s
DS310
  SELECT * FROM trades [RANGE 1.000001 s] EVERY 1 h
  SELECT * FROM trades [RANGE 1 s] EVERY 1 h
DS310
  SELECT * FROM trades [NOW] EVERY 7 h TIME ZONE 'Europe/Paris'
  SELECT * FROM trades [NOW] EVERY 6 h TIME ZONE 'Europe/Paris'
DS311
  SELECT Rstream-restore(*) FROM trades [RANGE 10 SLIDE 5], quotes [RANGE 10]
  SELECT Rstream-restore(*) FROM trades [RANGE 10], quotes [RANGE 10] EVERY 5 s
DS311
  SELECT Rstream-restore(*) FROM trades [RANGE 10 SLIDE 5], quotes [ROWS 10]
  SELECT Rstream-restore(*) FROM trades [RANGE 10], quotes [ROWS 10] EVERY 5 s
DS311
  SELECT Istream-restore(*) FROM trades
  SELECT Istream-restore(*) FROM trades [RANGE 10 SLIDE 5]
DS312
  SELECT Wstream-restore(*)[ROWS 5] FROM trades [RANGE 10 SLIDE 5]
  SELECT Wstream(*)[ROWS 5] FROM trades [RANGE 10 SLIDE 5]
DS313
  SELECT * FROM trades [ROWS 5 UNTIL 5 AGO]
  SELECT * FROM trades [ROWS 6 UNTIL 5 AGO]
DS314
  SELECT DISTINCT sym FROM trades [RANGE 10 INTERNAL]
  SELECT DISTINCT sym FROM trades [RANGE 10]
DS314
  SELECT sym FROM trades [RANGE 10 INTERNAL] UNION SELECT sym FROM quotes [NOW]
  SELECT sym FROM trades [RANGE 10 INTERNAL] UNION ALL SELECT sym FROM quotes [NOW]
DS315
  SELECT sym FROM trades [NOW] EXCEPT SELECT sym FROM quotes [RANGE 10 INTERNAL]
  SELECT sym FROM trades [NOW] EXCEPT SELECT sym FROM quotes [RANGE 10]
DS316
  SELECT * FROM trades [RANGE 10 INTERNAL], quotes [ROWS 10]
  SELECT * FROM trades [RANGE 10 INTERNAL], quotes [ROWS 10 INTERNAL]
DS316
  SELECT * FROM trades [RANGE 10 INTERNAL], quotes [ROWS 10]
  SELECT * FROM trades [RANGE 10 INTERNAL], quotes [RANGE 10]
DS317
  SELECT * FROM trades [NOW], quotes WINDOW 10
  SELECT * FROM trades [NOW], quotes
DS318
  SELECT * FROM trades [NOW] LIMIT 5
  SELECT * FROM trades [NOW]
DS319
  SELECT * FROM (SELECT * FROM trades [ROWS 5] ORDER BY px) EVERY 5 s
  SELECT * FROM (SELECT * FROM trades [ROWS 5]) ORDER BY px EVERY 5 s
DS318
  SELECT * FROM trades [RANGE 10] ORDER BY px
  SELECT * FROM trades [RANGE 10] ORDER BY px LIMIT 3
DS319
  SELECT * FROM (SELECT * FROM trades [ROWS 5] LIMIT 3)
  SELECT * FROM (SELECT * FROM trades [ROWS 5] ORDER BY px LIMIT 3)
DS368
  SELECT * FROM trades [RANGE 10] LIMIT 3 PER sym
  SELECT * FROM trades [RANGE 10] ORDER BY px DESC LIMIT 3 PER sym
DS320
  SELECT sym FROM trades WHERE IF(EXISTS (SELECT * FROM kept), px > 1, FALSE)
  SELECT sym FROM trades WHERE px > 1 AND EXISTS (SELECT * FROM kept)
DS321
  SELECT sym FROM trades WHERE px > (SELECT bid FROM quotes)
  SELECT sym FROM trades WHERE px > (SELECT MAX(bid) FROM quotes)
DS322
  SELECT * FROM trades, (SELECT * FROM quotes WHERE bid < px) x
  SELECT * FROM trades, (SELECT * FROM quotes) x WHERE bid < px
DS323
  SELECT * FROM listed l LEFT JOIN trades t ON t.sym = l.sym
  SELECT * FROM trades t LEFT JOIN listed l ON t.sym = l.sym
DS324
  SELECT * FROM listed
  SELECT * FROM trades t JOIN listed l ON t.sym = l.sym
DS327
  SELECT SUM(Wstream(SUM(qty))[ROWS 2]), px FROM trades [RANGE 5]
  SELECT SUM(Wstream(SUM(qty))[ROWS 2]), MAX(Wstream(MAX(px))[ROWS 2]) FROM trades [RANGE 5]
DS328
  SELECT Istream(sym) FROM trades UNION SELECT Rstream(sym) FROM quotes
  SELECT Istream(sym) FROM trades UNION SELECT sym FROM quotes
DS329
  CREATE QUERY q AS SELECT SUM(qty) FROM trades [RANGE 10] EVERY 5 s ON LOOKUP
  CREATE QUERY q AS SELECT SUM(qty) FROM trades [RANGE 10] ON LOOKUP
DS330
  CREATE STREAM z AS SELECT SUM(qty) AS n FROM trades [RANGE 10]
  CREATE STREAM z AS SELECT Istream(SUM(qty) AS n) FROM trades [RANGE 10]
DS331
  SELECT APPROX_COUNT_DISTINCT(sym) FROM trades [RANGE 10]
  SELECT APPROX_COUNT_DISTINCT(sym) FROM trades [RANGE 10 min SLIDE 1 min]
DS332
  ONCE SELECT DISTINCT sym FROM trades ORDER BY px
  ONCE SELECT DISTINCT sym, px FROM trades ORDER BY px
DS340
  SELECT * FROM first
  CREATE STREAM z AS SELECT Istream(sym) FROM trades [RANGE 10 SLIDE 5] ORDER BY px LIMIT 3
DS341
  SELECT 1 AS one FROM {many}
  SELECT 1 AS one FROM busy
DS344
  SELECT sym FROM trades WHERE sym IN (SELECT sym FROM quotes [NOW] EVERY 5 s)
  SELECT sym FROM trades WHERE sym IN (SELECT sym FROM quotes [NOW]) EVERY 5 s
DS309
  SELECT sym FROM paced EVERY 2 s
  SELECT sym FROM Istream(paced) EVERY 2 s
DS309
  SELECT sym FROM (SELECT sym FROM trades [NOW] EVERY 5 s) x EVERY 2 s
  SELECT sym FROM (SELECT sym FROM trades [NOW]) x EVERY 2 s
DS344
  SELECT top FROM limits EVERY 5 s
  SELECT top FROM limits
DS337
  CREATE QUERY q AS SELECT NOW() AS at, COUNT(*) FROM trades [RANGE 5 min]
  CREATE QUERY q AS SELECT WINDOW_END() AS at, COUNT(*) FROM trades [RANGE 5 min] EVERY 5 min
DS345
  SELECT WINDOW_START() FROM trades [ROWS 10] EVERY 5 s
  SELECT WINDOW_START() FROM trades [RANGE 10 s] EVERY 5 s
DS345
  SELECT WINDOW_END() FROM trades [ROWS 10 SLIDE 5]
  SELECT WINDOW_END() FROM trades [ROWS 10] EVERY 10 s
DS346
  SELECT INSTANT(x) FROM (SELECT * FROM trades) x
  SELECT at FROM (SELECT INSTANT(trades) AS at FROM trades) x
DS347
  SELECT 1 WITH (joins = tree, migration = all)
  SELECT 1 WITH (joins = adaptive, migration = all)
DS335
  PUNCTUATE quotes WHERE n > 5
  PUNCTUATE quotes WHERE n IN (5, 6)
DS367
  SELECT * FROM trades SAMPLE 101 PERCENT
  SELECT * FROM trades SAMPLE 100 PERCENT
DS339
  SELECT * FROM (SELECT px FROM trades) a NATURAL JOIN (SELECT bid FROM quotes) b
  SELECT * FROM (SELECT px FROM trades) a JOIN (SELECT bid FROM quotes) b ON a.px = b.bid
DS358
  SELECT COUNT(*) FROM trades GROUP BY CUBE (sym, px, px + 1, px + 2, px + 3, px + 4, px + 5)
  SELECT COUNT(*) FROM trades GROUP BY GROUPING SETS ((sym, px), (sym), (px + 5), ())
DS359
  SELECT GROUPING(px) FROM trades GROUP BY ROLLUP (sym)
  SELECT GROUPING(sym) FROM trades GROUP BY ROLLUP (sym)
DS379
  SELECT px FROM trades t WHERE px > (SELECT MAX(bid) - t.px FROM quotes q WHERE q.n = t.qty)
  SELECT px FROM trades t WHERE px > (SELECT MAX(bid) FROM quotes q WHERE q.n = t.qty) - t.px
DS380
  SELECT 1 FROM trades WHERE qty IN (SELECT n FROM quotes) OR px NOT IN (SELECT bid FROM quotes)
  SELECT 1 FROM trades WHERE qty IN (SELECT n FROM quotes) UNION SELECT 1 FROM trades
DS381
  SELECT x FROM trades, UNNEST(sym) t(x)
  SELECT x FROM trades, UNNEST(STRING_SPLIT(sym, ',')) t(x)
DS390
  ONCE SELECT * FROM ARCHIVE trades
  CREATE STREAM trades2 (sym STRING) ARCHIVE FOR 30 DAYS
DS391
  SELECT * FROM ARCHIVE kept
  ONCE SELECT * FROM ARCHIVE kept
DS392
  ONCE SELECT * FROM kept [RANGE 2 h ARCHIVE]
  ONCE SELECT * FROM kept [RANGE 1 h ARCHIVE]
DS350
  CREATE QUERY q AS SELECT SUM(n) FROM quotes [NOW] WHERE n > ? ON LOOKUP
  CREATE QUERY q AS SELECT SUM(n) FROM quotes [NOW] HAVING SUM(n) > ? ON LOOKUP
DS350
  CREATE QUERY q AS SELECT DISTINCT n FROM quotes [NOW] GROUP BY n HAVING n > ? ON LOOKUP
  CREATE QUERY q AS SELECT n FROM quotes [NOW] GROUP BY n HAVING n > ? ON LOOKUP
DS351
  CREATE QUERY q AS SELECT SUM(n) FROM quotes [NOW] HAVING SUM(n) + ? > 3 ON LOOKUP
  CREATE QUERY q AS SELECT SUM(n) FROM quotes [NOW] HAVING SUM(n) + ?::INT > 3 ON LOOKUP
DS354
  SELECT [[1]] AS l
  SELECT [CAST([1] AS STRING)] AS l
DS355
  ONCE SELECT [qty] AS l FROM trades [NOW] ORDER BY l
  ONCE SELECT [qty] AS l FROM trades [NOW] ORDER BY [qty][1]
DS338
  SELECT n FROM quotes [SESSION (n)]
  SELECT n FROM quotes [SESSION (n * INTERVAL '1' SECOND)]
DS348
  SELECT COUNT(*) FROM quotes [SESSION 10 s BY n INTERNAL]
  SELECT COUNT(*) FROM quotes [SESSION 10 s BY n INTERNAL] GROUP BY n
DS349
  SELECT n, COUNT(*) FROM quotes [WHEN n > 1 UNTIL n = 0 BY n INTERNAL SLIDE 5 s] GROUP BY n
  SELECT n, COUNT(*) FROM quotes [WHEN n > 1 UNTIL n = 0 BY n INTERNAL] GROUP BY n
DS352
  LOOKUP above
  LOOKUP above (3)
DS353
  LOOKUP above (2.5)
  LOOKUP above (3)
DS360
  CREATE STREAM some (a INT) WITH (shed_delay = 1 s)
  CREATE STREAM some (a INT) WITH (shed = random, shed_delay = 1 s)
DS361
  SELECT COUNT(*) FROM trades WITH (shed = scale)
  SELECT COUNT(*) FROM trades
DS334
  CREATE QUERY q AS SELECT n FROM quotes WITH (max_state = 1000, over = shed)
  CREATE QUERY q AS SELECT n FROM quotes WITH (max_state = 1000)
DS362
  CREATE QUERY q AS SELECT q.n FROM quotes q, quotes p WHERE q.n = p.n WITH (over=shed)
  CREATE QUERY q AS SELECT q.n FROM quotes q, quotes p WHERE q.n = p.n WITH (max_state=9, over=shed)
DS364
  CREATE QUERY q AS SELECT n FROM quotes [NOW] GROUP BY n HAVING COUNT(*) > 3 WITH (approximate=0.1)
  CREATE QUERY q AS SELECT n FROM quotes [NOW] GROUP BY n HAVING COUNT(*) > 3 EVERY 5 s
DS366
  SELECT COUNT(*) FROM trades WITH (sample = scale)
  SELECT COUNT(*) FROM trades SAMPLE 10 PERCENT WITH (sample = scale)
DS369
  SELECT * FROM trades [RANGE 1 MONTH SLIDE 5 ROWS]
  SELECT * FROM trades [RANGE 30 DAYS SLIDE 5 ROWS]
DS370
  SELECT t.n FROM quotes t ASOF JOIN quotes [ROWS 5] q ON t.n = q.n
  SELECT t.n FROM quotes t ASOF JOIN quotes q ON t.n = q.n WITHIN 5 s
DS371
  SELECT t.n FROM quotes t ASOF JOIN quotes q ON t.n = q.n AND t.n > q.n
  SELECT t.n FROM quotes t ASOF JOIN quotes q ON t.n = q.n WHERE t.n > q.n
DS375
  SELECT a.n FROM MATCH (a quotes, b quotes)
  SELECT a.n FROM MATCH (a quotes, b quotes) [RANGE 10 s]
DS376
  SELECT a.n FROM MATCH (a quotes, NOT u quotes, b quotes) [RANGE 9] WHERE b.n > u.n
  SELECT a.n FROM MATCH (a quotes, NOT u quotes, b quotes) [RANGE 9] WHERE b.n > a.n
DS377
  SELECT a.n FROM MATCH (a quotes, NOT b quotes) [RANGE 9]
  SELECT a.n FROM MATCH (a quotes, NOT b quotes) [RANGE 10 min INTERNAL]
DS378
  SELECT a.n FROM MATCH (a quotes, b (SELECT sym AS n FROM trades)) [RANGE 9] PER n
  SELECT a.n FROM MATCH (a quotes, b (SELECT CAST(sym AS INT) AS n FROM trades)) [RANGE 9] PER n
DS372
  SELECT SUM(n) OVER (ORDER BY n) FROM quotes
  SELECT SUM(n) OVER () FROM quotes
DS373
  SELECT n FROM quotes WHERE LAG(n) OVER () < n
  SELECT n FROM (SELECT *, LAG(n) OVER () AS m FROM quotes) WHERE m < n
DS374
  SELECT LEAD(n) OVER () FROM quotes [NOW INTERNAL]
  SELECT LAG(n) OVER (), n FROM quotes [NOW INTERNAL]
DS395
  SELECT x.m FROM quotes q, LATERAL (SELECT MAX(px - n) AS m FROM trades u WHERE u.sym = q.sym) x
  SELECT x.m - n FROM quotes q, LATERAL (SELECT MAX(px) AS m FROM trades u WHERE u.sym = q.sym) x
DS396
  SELECT LAST(n ORDER BY bid) FROM quotes
  SELECT ARGMAX(n, bid) FROM quotes
DS394
  SELECT SUM(n) OVER w FROM quotes
  SELECT SUM(n) OVER w FROM quotes WINDOW w AS (PARTITION BY n)
DS384
  SELECT ({'host': sym}).hosts FROM trades
  SELECT ({'host': sym}).host FROM trades
DS385
  SELECT {'a': sym, 'A': qty} FROM trades
  SELECT {'a': sym, 'b': qty} FROM trades
DS382
  SELECT n, ROW_NUMBER() OVER (ORDER BY n DESC) FROM quotes
  SELECT n FROM quotes QUALIFY ROW_NUMBER() OVER (ORDER BY n DESC) <= 3
"""


def followed() -> list[tuple[str, str, str]]:
    many = ", ".join(f"busy b{n}" for n in range(65))
    lines = [line.strip() for line in FOLLOWED.replace("{many}", many).strip().splitlines()]
    return list(zip(lines[::3], lines[1::3], lines[2::3], strict=True))


@pytest.mark.parametrize(("code", "wrong", "right"), followed())
def test_who_follows_a_hint_arrives(code: str, wrong: str, right: str) -> None:
    with pytest.raises(QueryError) as caught:
        run(wrong, declared(SCHEMA))
    assert caught.value.code == code
    run(right, declared(SCHEMA))


def test_all_rules_of_the_language_have_been_followed() -> None:
    rules = {code for code, *_ in RULES if code[2] == "3"}
    assert rules == {code for code, *_ in followed() if code[2] == "3"}
