"""SET and SHOW SETTINGS, and the options of queries that periodic evaluation reads."""

from __future__ import annotations

import pytest

from dsms.engine import Engine
from dsms.errors import QueryError, UsageError
from dsms.settings import CHANGEABLE, Settings
from dsms.sql.binder import bind_create_query, bind_create_stream
from dsms.sql.catalog import Catalog
from dsms.sql.parser import parse_one


def shown(engine: Engine) -> dict[str, str]:
    (rows,) = engine.execute("SHOW SETTINGS")
    batch = rows.data
    return dict(zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True))


def test_defaults() -> None:
    found = shown(Engine())
    assert {name: found[name] for name in CHANGEABLE} == {
        "query_scheduler": "hybrid",
        "late_sharing": "late-pending",
        "transaction_scheduler": "ttu",
    }


@pytest.mark.parametrize(("name", "choices"), CHANGEABLE.items())
def test_every_value_can_be_set(name: str, choices: tuple[str, ...]) -> None:
    engine = Engine()
    assert getattr(Settings(), name) in choices
    for value in choices:
        for written in (f"'{value}'", value.replace("-", "_"), value.replace("-", "_").upper()):
            (done,) = engine.execute(f"SET {name} = {written}")
            assert done.message == f"{name} is {value}"
            assert shown(engine)[name] == value
            assert getattr(engine.runtime.settings, name) == value


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        (
            "SET query_sheduler = none",
            "DS214",
            "unknown setting `query_sheduler`",
            "did you mean query_scheduler?",
        ),
        ("SET queries = 5", "DS214", "fixed when the engine starts", "SET changes query_scheduler"),
        ("SET query_scheduler = hybird", "DS215", "none or aggressive", "did you mean hybrid?"),
        ("SET late_sharing TO 5", "DS215", "none or late or late-pending", None),
        ("SET transaction_scheduler = NULL", "DS215", "serial or ws", None),
    ],
)
def test_what_is_refused(text: str, code: str, message: str, hint: str | None) -> None:
    engine, before = Engine(), Settings()
    with pytest.raises(QueryError) as caught:
        engine.execute(text)
    assert caught.value.code == code
    assert caught.value.line == 1
    assert message in caught.value.message
    assert hint is None or hint in str(caught.value.hint)
    assert engine.runtime.settings == before


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("path = ISS", "iss"),
        ("priority = 7", 7),
        ("priority = -100", -100),
        ("synopsis = landmark", "landmark"),
    ],
)
def test_options_of_a_query(option: str, value: object) -> None:
    assert bound(option) == ((option.split()[0], value),)


@pytest.mark.parametrize(
    "option", ["path = fast", "priority = -101", "priority = 1.5", "synopsis = interva"]
)
def test_wrong_options_of_a_query(option: str) -> None:
    with pytest.raises(QueryError, match="DS215"):
        bound(option)


def bound(option: str) -> tuple[tuple[str, object], ...]:
    catalog = Catalog()
    catalog.streams["s"] = bind_create_stream(parse_one("CREATE STREAM s (a INT)"), catalog)  # type: ignore[arg-type]
    text = f"CREATE QUERY q AS SELECT SUM(a) FROM s [RANGE 10 SLIDE 5] WITH ({option})"
    definition, _ = bind_create_query(parse_one(text), catalog)  # type: ignore[arg-type]
    return definition.options


def test_on_lookup_is_kept() -> None:
    catalog = Catalog()
    catalog.streams["s"] = bind_create_stream(parse_one("CREATE STREAM s (a INT)"), catalog)  # type: ignore[arg-type]
    text = (
        "CREATE QUERY q AS SELECT a, FREQUENT(a, 3) FROM s [RANGE 10] GROUP BY a ORDER BY a "
        "LIMIT 2 ON LOOKUP"
    )
    definition, plan = bind_create_query(parse_one(text), catalog)  # type: ignore[arg-type]
    assert definition.on_lookup
    assert plan is not None
    assert not bind_create_query(parse_one("CREATE QUERY p AS SELECT a FROM s"), catalog)[
        0
    ].on_lookup  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["SET statement_timeout = '5 s'", "CANCEL SESSION 1", "CLOSE SESSION 1"]
)
def test_an_engine_in_a_program_has_no_sessions(text: str) -> None:
    engine = Engine()
    with pytest.raises(UsageError) as caught:
        engine.execute(text)
    assert caught.value.code == "DS661"
    assert "cancel" in str(caught.value.hint)
    (rows,) = engine.execute("SHOW SESSIONS")
    assert rows.data.num_rows == 0
    assert "statement_timeout" not in shown(engine)


class Caller:
    """A session."""

    statement_timeout = 0.0

    def begins(self, text: str, statement: object) -> bool:
        return False


@pytest.mark.parametrize(
    ("value", "seconds", "told"),
    [
        ("'5 s'", 5.0, "5 s"),
        ("1500 ms", 1.5, "1.5 s"),
        ("'2 min 30 s'", 150.0, "150 s"),
        ("0", 0.0, "0"),
        ("'0'", 0.0, "0"),
    ],
)
def test_what_a_session_may_set(value: str, seconds: float, told: str) -> None:
    engine, caller = Engine(), Caller()
    caller.statement_timeout = 7.0
    slices = engine.slices(
        f"SET statement_timeout = {value}; SHOW SETTINGS LIKE 'statement_t%'", caller=caller
    )
    results = []
    while True:
        try:
            next(slices)
        except StopIteration as end:
            results = end.value
            break
    assert caller.statement_timeout == seconds
    assert results[0].message == f"statement_timeout is {told}"
    assert results[1].data.to_pylist() == [{"setting": "statement_timeout", "value": told}]
