"""What is known of big objects for a while, by the objects themselves."""

from __future__ import annotations

from dsms.engine import Engine
from dsms.operators.expressions import compile as compiling
from dsms.operators.expressions import compile_predicate, foresee
from dsms.plan import parts
from dsms.secret_texts import is_secret
from dsms.sql.expr import Call, Col, Lit
from dsms.sql.lately import Lately
from dsms.sql.types import BOOL, INT


def test_the_last_ones_are_known() -> None:
    known, one, two, alike = Lately[str](3), (1, 2), (3,), (1, 2)
    known.put(one, "one", 2)
    assert known.of(one) == "one" and known.of(alike) is (known.of(one) if alike is one else None)
    known.put(two, "two", 2)
    assert known.of(one) is None and known.of(two) == "two"
    known.put(one, "too big", 4)
    assert known.of(one) is None and known.of(two) == "two"


def test_a_big_expression_is_compiled_once(monkeypatch) -> None:
    built: list[object] = []
    node = compiling._node
    monkeypatch.setattr(compiling, "_node", lambda e: built.append(e) or node(e))
    items = tuple(Lit(k, INT) for k in range(200))
    big = Call("in", (Col(0, INT), *items), BOOL)
    foresee(big)
    first = built.count(big)
    compile_predicate(big)
    assert compiling.can_fail(big) is False
    assert first == built.count(big) == 1


def test_a_big_plan_is_looked_at_while_it_is_made(monkeypatch) -> None:
    """Nothing of that is left for the engine's thread."""
    at: list[str] = []
    whole, key = compiling._node, parts._key
    phase = ["step"]

    def seen(expr):
        if isinstance(expr, Call) and expr.fn == "in":
            at.append(phase[0])
        return whole(expr)

    def keyed(phys, path, *rest):
        if not path:
            at.append(phase[0])
        return key(phys, path, *rest)

    monkeypatch.setattr(compiling, "_node", seen)
    monkeypatch.setattr(parts, "_key", keyed)
    db = Engine()
    db.execute("CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t")
    values = ", ".join(map(str, range(1000)))
    slices = db.slices(f"CREATE QUERY q AS SELECT k FROM s [RANGE 1 min] WHERE k IN ({values})")
    for statement in slices:
        if statement.ready:
            phase[0] = "apart"
            statement.run()
            phase[0] = "step"
    assert at and set(at) == {"apart"}


def test_long_scripts_are_looked_through_apart(monkeypatch) -> None:
    """Those before an error have run when it is told."""
    db = Engine()
    db.execute("CREATE TABLE d (id INT PRIMARY KEY)")
    script = "INSERT INTO d VALUES (1); " + " " * (1 << 15) + "INSERT INTO d VALUES (2); SELECT 'x"
    ran, failure = 0, None
    try:
        for statement in db.slices(script):
            if statement.ready:
                statement.run()
                ran += 1
    except Exception as error:
        failure = error
    assert ran == 1 and getattr(failure, "code", None) == "DS103" and failure.statement == 2
    assert db.execute("SELECT COUNT(*) AS n FROM d")[0].data.column(0).to_pylist() == [2]


def test_secrets_are_found_however_they_are_written() -> None:
    assert is_secret("ALTER USER u PASSWORD 'x'") and is_secret("create uſer u")
    assert is_secret("Paſſword 'x'") and is_secret("TOKEN 'x'") and is_secret(" login x")
    assert is_secret("\u0130dentified by x")
    assert not is_secret("SELECT user FROM s") and not is_secret("INSERT INTO d VALUES (1)")
