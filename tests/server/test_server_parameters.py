"""Parameters of statements over TCP, and the address of a server in one text."""

from __future__ import annotations

import asyncio
import datetime as dt
from decimal import Decimal

import pytest

import dsms
from dsms.engine import Engine
from dsms.errors import QueryError, UsageError
from dsms_client.url import parse_url


def test_values_travel_beside_the_text(serve):
    url = f"dsms://127.0.0.1:{serve(Engine()).port}/?data=rows"
    values = [
        1, -2.5, "it's ?", b"\x00", True, None, Decimal("1.50"), dt.timedelta(seconds=90),
        dt.datetime(2024, 5, 1, tzinfo=dt.UTC),
    ]  # a list  # fmt: skip
    ask = f"SELECT {', '.join('?' * len(values))}"
    came = [(1, -2.5, "it's ?", b"\x00", True, None, "1.50", 90_000_000, 1_714_521_600_000_000)]
    with dsms.connect(url) as db:
        assert db.query(ask, values).rows == came
        assert db.query("SELECT :b, :a", {"a": 1, "b": "x" * 5000}).rows == [("x" * 5000, 1)]
        db.execute("CREATE STREAM s (k INT); CREATE QUERY q AS SELECT k + $1 FROM s", [7])
        assert "k + 7" in db.query("SHOW CREATE QUERY q").rows[0][2]
        for params, code in (
            ([object()], "DS618"),
            ([2**70], "DS618"),
            ([], "DS617"),
            (1, "DS604"),
        ):
            with pytest.raises(UsageError, match=code):
                db.query("SELECT ?", params)

        db.execute(
            "CREATE QUERY above AS SELECT k FROM s [RANGE 1 h] GROUP BY k HAVING k > ? ON LOOKUP"
        )
        assert db.query("LOOKUP above (?)", [3]).rows == db.query("LOOKUP above (3)").rows == []
        with pytest.raises(QueryError, match="DS353"):
            db.query("LOOKUP above (?)", ["3"])

    async def asked():
        async with await dsms.connect_async(url) as there:
            return (await there.query(ask, values)).rows

    assert asyncio.run(asked()) == came


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("dsms://", ("127.0.0.1", 7654, {})),
        ("dsms://h", ("h", 7654, {})),
        ("dsms://[::1]:80/", ("::1", 80, {})),
        ("dsms://ann:p%40s%2F@h:1/?tls=yes&client=w", ("h", 1, {
            "user": "ann", "password": "p@s/", "tls": True, "client": "w"})),
        ("dsms://h/?connect_seconds=2.5&token=a%26b&tls=no", ("h", 7654, {
            "connect_seconds": 2.5, "token": "a&b", "tls": False})),
    ],
)  # a table  # fmt: skip
def test_an_address_is_read(url, parts):
    assert parse_url(url) == parts


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("http://u:secret@h", "begins with http://"),
        ("dsms://u:secret@h:x/", "its port"),
        ("dsms://u:secret@h/db", "path"),
        ("dsms://u:secret@h/?tsl=yes", "did you mean `tls`?"),
        ("dsms://u:secret@h/?password=secret", "twice"),
        ("dsms://u:secret@h/?connect_seconds=-1", "number of seconds"),
        ("dsms://u:secret@h/?data=json", "auto, rows or arrow"),
        ("dsms://u:secret@h/?token=", "empty"),
    ],
)
def test_one_that_can_not_be_is_refused_without_its_secrets(url, part):
    with pytest.raises(UsageError, match="DS619") as found:
        dsms.connect(url)
    assert part in str(found.value) and "secret" not in str(found.value)


def test_a_certificate_that_is_not_there_is_named():
    with pytest.raises(UsageError, match="DS640"):
        parse_url("dsms://h/?tls=/no/such.pem")


@pytest.mark.parametrize("value", [[[1]], [[]], [1, [2]], [(1,)], [[[1]]], [[object()]]])
def test_a_list_of_lists_is_refused_with_one_code(serve, value):
    """It was DS618 over TCP, where a list within comes as the name of its kind."""
    said = []
    with dsms.connect(f"dsms://127.0.0.1:{serve(Engine()).port}") as db:
        for ask in (db.query, Engine().execute):
            with pytest.raises(QueryError) as told:
                ask("SELECT ?", [value])
            said.append((told.value.code, told.value.message, told.value.column, told.value.hint))
    assert said[0] == said[1] and said[0][0] == "DS354"
