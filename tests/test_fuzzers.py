"""A few of the cases of `python -m tests.faults KIND`, and that what they find is noticed, made
small and kept."""

from __future__ import annotations

import contextlib
import re
import sqlite3

import pytest

from dsms import lengths
from dsms.errors import UsageError
from dsms.intake import values
from dsms.sql import literals
from dsms.storage.catalog import CatalogStore
from dsms_client.files import text
from tests.effort import effort
from tests.faults import cases, fuzz
from tests.faults.cases import KINDS, Fault
from tests.faults.child import FIRST
from tests.faults.kinds import state
from tests.faults.reduce import reduced

FEW = 100 if effort() else 40
MANY = 50_000  # for each step of --fuzz: a million


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_cases_end_with_a_code(kind: str) -> None:
    told = fuzz.run(kind, 1 if effort() > 1 else 0, 0, MANY * effort() if effort() > 1 else FEW)
    assert not told.findings, told.findings
    assert sum("DS" in end for end in told.ends) > 1, f"errors are not seen: {told.ends}"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if cases.kept(kind)])
def test_what_was_found_once(kind: str) -> None:
    with fuzz.Trial(kind) as trial:
        for path in cases.kept(kind):
            assert trial.ends(path.read_bytes(), FIRST) == 0, f"{path}\n{trial.said()}"


def test_a_death_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("DSMS_TEST_DIE_AT", "3")
    told = fuzz.run("csv", 0, 0, 10)
    (found,) = told.findings
    assert (found.number, found.how, found.alone) == (3, "SIGSEGV", False)
    assert found.keep(tmp_path).read_bytes() == cases.draw("csv", 0, 3)
    assert told.cases == 10


def test_the_same_number_is_the_same_case() -> None:
    for kind in KINDS:
        assert cases.draw(kind, 2, 7) == cases.draw(kind, 2, 7) != cases.draw(kind, 3, 7)


def test_codes_that_nobody_may_see() -> None:
    for code in ("DS900", "DS931", "DS999", "None", "DS12", "oops"):
        with pytest.raises(Fault):
            cases.judge(code)
    assert [cases.judge(code) for code in ("DS101", "DS951")] == ["DS101", "DS951"]


def test_a_case_is_made_small() -> None:
    data = bytes(range(200)) + b"needle" + bytes(range(50))
    assert reduced(data, lambda d: b"need" in d and b"le" in d) == b"needle"
    assert reduced(b"abc", lambda d: True) == b""


def test_files_of_a_folder_that_are_not_damaged_are_read() -> None:
    """Else what is drawn ends for another reason than its damage."""
    victim = state.Victim()
    some = [bytes([k]) + body for k, (body, _) in enumerate(state.pieces())]
    for kind, known in {**state.seeds(), "body": state._parts()[:1], "piece": some}.items():
        which = bytes([state.KINDS.index(kind)])
        for data in known:
            assert victim.suffer(which + data) in (f"{kind} read", "log torn")  # a log has room
    victim.close()


@pytest.mark.parametrize("options", ["{", None, 5, "1" * 5000])
def test_a_catalog_whose_options_are_none_is_damaged(tmp_path, options: object) -> None:
    path = tmp_path / "catalog.sqlite"
    path.write_bytes(state.seeds()["catalog"][0])
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        with contextlib.suppress(sqlite3.IntegrityError):  # NULL stands in none of ours
            db.execute("UPDATE object SET options = ?", (options,))
        damaged = db.total_changes > 0
    db.close()
    with CatalogStore(path) as store:
        if options == 5 or not damaged:
            assert store.objects()
            return
        with pytest.raises(UsageError, match="is damaged") as problem:
            store.objects()
    assert problem.value.code == "DS541"


@pytest.mark.parametrize(
    "form", [values._DECIMAL, lengths._TERM, literals._NUMBER_UNIT, text._NUMBER, text._FORMS]
)
def test_a_million_digits_are_looked_at_once(form) -> None:
    """Not again from each of them on, which would take hours."""
    forms = [re.compile(f) for f in form.values()] if isinstance(form, dict) else [form]
    for each in forms:
        assert each.fullmatch("1" * 1_000_000 + "!") is None
