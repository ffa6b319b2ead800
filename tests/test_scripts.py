"""Scripts cut into statements, and the grammar that parsers are made of: its conflicts, its cache,
one for all threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dsms.errors import QueryError
from dsms.sql import ast, grammar
from dsms.sql.ast import Pos
from dsms.sql.parser import is_complete, parse, parse_one, split_statements, statements

PAPERS = (Path(__file__).parent / "golden" / "papers.cql").read_text(encoding="utf-8")

# ---------------------------------------------------------------- scripts


def test_scripts_are_cut_at_semicolons_outside_of_strings_and_comments() -> None:
    text = "SELECT ';' ; -- not; here\n SELECT \"a;b\" FROM s /* ; */ ;; \n -- nothing more;"
    assert split_statements(text) == ["SELECT ';'", '-- not; here\n SELECT "a;b" FROM s /* ; */']
    assert len(parse(text)) == 2


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1;", True),
        ("SELECT 1", False),
        ("", True),
        ("-- only a comment", True),
        ("SELECT 1; SELECT", False),
        ("SELECT ';", False),
        ("SELECT 1; /* open", False),
        ("SELECT 1; -- done", True),
        ("SELECT " + "(" * 1000, True),
    ],
)
def test_is_complete(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_statements_before_a_wrong_one_come_first() -> None:
    found = statements("SHOW STREAMS;\nSHOW TABLES;\n SELCT 1;")
    assert next(found) == ast.Show(ast.ShowKind.STREAMS)
    assert next(found) == ast.Show(ast.ShowKind.TABLES)
    with pytest.raises(QueryError) as caught:
        next(found)
    assert (caught.value.statement, caught.value.line, caught.value.column) == (2, 3, 2)


def test_places_count_lines_and_columns_of_the_whole_script() -> None:
    _, statement = parse("SHOW STREAMS; /* two\nlines */ SELECT a,\n  b + c FROM s")
    assert isinstance(statement, ast.SelectStatement)
    assert statement.pos == Pos(2, 10)
    assert isinstance(statement.query.body, ast.Select)
    total = statement.query.body.items[1]
    assert isinstance(total, ast.SelectItem)
    assert isinstance(total.expr, ast.Binary)
    assert total.expr.pos == Pos(3, 5)  # that of the operator
    assert total.expr.left.pos == Pos(3, 3)


def test_parse_one_wants_one() -> None:
    for text in ("", "SHOW TABLES; SHOW STREAMS"):
        with pytest.raises(QueryError, match="DS111"):
            parse_one(text)


def test_threads_share_the_parser() -> None:
    texts = split_statements(PAPERS)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: [parse_one(text) for text in texts], range(8)))
    assert results == [[parse_one(text) for text in texts]] * 8


def test_one_thread_at_a_time_loads_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "_made", grammar._making.locked)
    assert grammar.parser()
    assert not grammar._making.locked()


# ---------------------------------------------------------------- the grammar itself


def test_grammar_has_no_conflicts(caplog: pytest.LogCaptureFixture) -> None:
    """lark settles shift/reduce conflicts silently unless it is asked to debug; it must find
    none."""
    import lark

    with caplog.at_level("DEBUG", logger=lark.logger.name):
        lark.Lark(
            grammar.grammar_text(),
            parser="lalr",
            keep_all_tokens=True,
            maybe_placeholders=True,
            debug=True,
        )
    assert [r.message for r in caplog.records if "conflict" in r.message.lower()] == []


def test_conflict_check_can_fail(caplog: pytest.LogCaptureFixture) -> None:
    import lark

    with caplog.at_level("DEBUG", logger=lark.logger.name):
        lark.Lark(
            'start: "a" start "b" | "a" start | "c"\nx: start "a" "b"?', parser="lalr", debug=True
        )
        lark.Lark('start: e\ne: e "+" e | "a"', parser="lalr", debug=True)
    assert any("conflict" in r.message.lower() for r in caplog.records)


def test_every_rule_has_its_function() -> None:
    """A rule without one would leave a lark Tree in the AST."""
    rules = {
        r.alias or (r.options.template_source or r.origin.name) for r in grammar.parser().rules
    }
    inlined = {r.origin.name for r in grammar.parser().rules if r.options.expand1 and not r.alias}
    missing = {
        n for n in rules if not n.startswith("_") and not hasattr(grammar.Statements, n)
    } - inlined
    assert missing == set()


def test_unwritable_cache_only_costs_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("DSMS_CACHE_DIR", str(blocked / "below"))
    assert grammar._made.__wrapped__().parse("SELECT 1") == parse_one("SELECT 1")


def test_broken_cache_is_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSMS_CACHE_DIR", str(tmp_path))
    grammar._made.__wrapped__()
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"garbage")
    assert grammar._made.__wrapped__().parse("SELECT 1") == parse_one("SELECT 1")
