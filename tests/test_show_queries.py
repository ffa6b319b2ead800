"""SHOW QUERIES: the columns that one looks at first; FULL: all of them."""

from __future__ import annotations

import pytest

from dsms.commands.show_queries import BRIEF
from dsms.engine import Engine
from dsms.errors import DsmsError
from tests.users import declared, rows


def test_the_short_form_is_a_part_of_the_full_one():
    engine = declared()
    short, full = (rows(engine, f"SHOW QUERIES{more}", None) for more in ("", " FULL"))
    assert [set(line) for line in short] == [set(BRIEF)] * 2
    assert [{name: line[name] for name in short[0]} for line in full] == short
    assert len(full[0]) > len(short[0])


def test_both_take_a_pattern():
    engine = declared()
    for more in ("", "FULL "):
        assert [r["query"] for r in rows(engine, f"SHOW QUERIES {more}LIKE 'R%'", None)] == [
            "ready"
        ]
    assert [r["stream"] for r in rows(engine, "SHOW STREAMS LIKE 'l%'", None)] == ["late"]
    assert [r["table"] for r in rows(engine, "SHOW TABLES LIKE '_'", None)] == ["d"]


@pytest.mark.parametrize("text", ["SHOW STREAMS FULL", "SHOW GRANTS FULL FOR a"])
def test_others_have_one_form(text: str):
    with pytest.raises(DsmsError) as found:
        Engine().execute(text)
    assert found.value.code == "DS110"
