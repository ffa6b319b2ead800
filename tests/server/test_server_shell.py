"""Parts of the shell: where statements end, how rows and errors look, what completion offers, the
live view."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from prompt_toolkit.document import Document

from dsms.errors import QueryError
from dsms.settings import CHANGEABLE, OF_SESSION
from dsms.sql import grammar
from dsms.sql.binder import OPTIONS
from dsms_client.changes import changes_of
from dsms_client.files.replay import cuts
from dsms_client.results import Data, Push
from dsms_client.shell import show, words
from dsms_client.shell.complete import ShellCompleter
from dsms_client.shell.live import Present, View, _picture, push_lines
from dsms_client.shell.look import KEYS, Look
from dsms_client.shell.statements import complete, script, split
from dsms_client.view import View as Answer


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("", []),
        (" ; ;\n-- nothing; here\n/* nor; here */", []),
        ("a", [("a", 1, 1, False)]),
        ("a; b ;", [("a", 1, 1, True), ("b", 1, 4, True)]),
        ("a ';' b;\n  c", [("a ';' b", 1, 1, True), ("c", 2, 3, False)]),
        ("a 'it''s;' ;b", [("a 'it''s;'", 1, 1, True), ("b", 1, 13, False)]),
        ('a "x;y";', [('a "x;y"', 1, 1, True)]),
        ("-- c;\na -- d;\nb;", [("a -- d;\nb", 2, 1, True)]),
        ("a /* ; */ b;c", [("a /* ; */ b", 1, 1, True), ("c", 1, 13, False)]),
        ("a 'open;", [("a 'open;", 1, 1, False)]),
    ],
)
def test_statements_end_at_semicolons(text, statements):
    assert [(s.text, s.line, s.column, s.ended) for s in split(text)] == statements


def test_a_typed_text_is_complete_when_all_its_statements_are():
    assert [
        complete(t) for t in ("", "a;", "a; b;", "\\d", "a", "a; b", "a ';", "a; /* b", "a; -- b")
    ] == [
        True,
        True,
        True,
        True,
        False,
        False,
        False,
        False,
        True,
    ]


def test_scripts_mix_statements_and_commands():
    pieces = [
        p if isinstance(p, str) else (p.text, p.line)
        for p in script("a;\n\\d\nb 'x\n\\y';\n  c\n\\q")
    ]
    assert pieces == [("a", 1), "\\d", ("b 'x\n\\y'", 3), ("c", 5), "\\q"]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("help", ["\\?"]),
        ("exit", ["\\q"]),
        (" QUIT ;\n", ["\\q"]),
        ("a; exit", ["a", "\\q"]),
        ("a;\nquit\nb", ["a", "\\q", "b"]),
        ("-- c\nhelp\nb;", ["\\?", "b"]),
        ("SELECT a AS\nexit\nFROM s;", ["SELECT a AS\nexit\nFROM s"]),
        ("'\nexit\n'", ["'\nexit\n'"]),
        ("helpme", ["helpme"]),
    ],
)
def test_help_exit_and_quit_are_commands_where_a_statement_could_begin(text, pieces):
    assert [p if isinstance(p, str) else p.text for p in script(text)] == pieces
    assert complete(text) or pieces[-1] not in ("\\?", "\\q")


COLUMNS, TYPES = (
    ("k", "name", "t", "n", "y", "b"),
    ("INT", "STRING", "TIMESTAMP", "INTERVAL", "BYTES", "BOOL"),
)
ROWS = [
    (1, 'a "b",\nc', 1357017420500000, 90_061_000_000, b"\x00\xff", True),
    (-20, None, None, -1, None, False),
]


def test_table():
    lines = list(show.render(COLUMNS, TYPES, ROWS, "table"))
    assert lines[0].split("|")[0] == "k   "
    assert [c.strip() for c in lines[2].split(" | ")] == [
        "1",
        'a "b",\\nc',
        "2013-01-01 05:17:00.500000",
        "1 d 1 h 1 min 1 s",
        "\\x00ff",
        "true",
    ]
    assert len({len(line.split(" | ")[0]) for line in lines[2:4]}) == 1
    assert lines[-1] == "(2 rows)"


def test_csv_json_vertical():
    assert list(show.render(COLUMNS, TYPES, ROWS, "csv")) == [
        "k,name,t,n,y,b",
        '1,"a ""b"",\nc",2013-01-01 05:17:00.500000,1 d 1 h 1 min 1 s,\\x00ff,true',
        "-20,,,-1 us,,false",
    ]
    assert list(
        show.render(
            ("a", "f"), ("DECIMAL(4,2)", "FLOAT"), [("1.25", float("nan")), (None, 0.1)], "json"
        )
    ) == [
        '{"a": "1.25", "f": "NaN"}',
        '{"a": null, "f": 0.1}',
    ]
    exact = "[0.12345678901234567890, null]"
    assert list(show.render(("l",), ("LIST(DECIMAL(20,20))",), [(exact,)], "json")) == [
        f'{{"l": {exact}}}'
    ]
    assert list(show.render(("a", "long"), ("INT", "INT"), [(1, 2)], "vertical")) == [
        "--- row 1 ---",
        "a    : 1",
        "long : 2",
    ]


def test_data_keeps_columns_of_one_name_and_texts_that_look_like_null():
    names, types, rows = (
        ("k", "k_1", "k"),
        ("STRING", "INT", "INTERVAL"),
        [("NULL", 1, -90_000_000_000), ("\\N", 2, None)],
    )
    assert list(show.render(names, types, rows, "csv")) == [
        "k,k_1,k_2",
        '"NULL",1,-1 d -1 h',
        '"\\N",2,',
    ]
    assert (
        next(show.render(names, types, rows, "json"))
        == '{"k": "NULL", "k_1": 1, "k_2": "-1 d -1 h"}'
    )
    assert next(show.render(names, types, rows, "table")).split() == ["k", "|", "k_1", "|", "k"]


def test_an_error_points_at_its_place():
    problem = QueryError("DS201", "unknown column prize", 2, 9, "did you mean price?")
    assert list(show.error(problem, "SELECT\n\tprice, prize\nFROM s", line=5, column=3)) == [
        "QueryError DS201 at line 6, column 9: unknown column prize",
        "  \tprice, prize",
        "  \t       ^",
        "HINT: did you mean price?",
    ]
    first = next(show.error(QueryError("DS1", "odd", 1, 1), "x", 5, 3))
    assert first == "QueryError DS1 at line 5, column 3: odd"


class Names:
    connected = True

    def names(self, timeout=None):
        flights = [("carrier", "STRING"), ("delay", "INT")]
        planes = [("tail", "STRING")]
        return {
            "streams": {"flights": flights},
            "tables": {"planes": planes},
            "queries": {"late": flights},
        }

    def functions(self, timeout=None):
        return ["APPROX_TOPK", "FLOOR", "CASE"]


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("SEL", ["SELECT"]),
        ("sel", ["select"]),
        ("SELECT fl", ["flights", "floor", "float"]),
        ("SELECT ca| FROM flights", ["carrier", "case", "cast", "cancel", "cascade"]),
        ("SELECT ta| FROM flights", ["table", "tables"]),
        ("SELECT 1 FROM ", ["flights", "planes", "late"]),
        ("SELECT 1 FROM flights f JOIN ", ["flights", "planes", "late"]),
        ("SELECT APPROX_T", ["APPROX_TOPK"]),
        ("SET tr", ["transaction_scheduler"]),
        ("SET ", ["query_scheduler", "late_sharing", "statement_timeout", "transaction_scheduler"]),
        ("set late_sharing = ", ["none", "late", "'late-pending'"]),
        ("SET query_scheduler TO hy", ["hybrid"]),
        ("CREATE QUERY q AS SELECT 1 WITH (bou", ["boundaries"]),
        ("CREATE QUERY q AS SELECT 1 WITH (priority = 1, boundaries = e", ["every", "elastic"]),
        ("LOOKUP ", ["late"]),
        ("PAUSE QUERY ", ["late"]),
        ("ALTER QUERY la", ["late"]),
        ("ALTER QUERY late SET (boundaries = ", ["every", "elastic"]),
        ("SELECT f.d| FROM flights [RANGE 1 min] AS f", ["f.delay"]),
        ("SELECT flights.| FROM flights", ["flights.carrier", "flights.delay"]),
        ("\\f", ["\\format"]),
        ("\\format c", ["csv"]),
        ("\\subscribe ", ["late"]),
        ("", []),
    ],
)
def test_completion(text, offered):
    before, _, after = text.partition("|")
    document = Document(before + after, len(before))
    assert [c.text for c in ShellCompleter(Names()).get_completions(document, None)] == offered


def test_completion_knows_all_words_of_the_language():
    assert {*grammar.keywords()} <= {*words.KEYWORDS, "WSTREAM-RESTORE"}
    bare = {n: tuple(v.strip("'") for v in vs) for n, vs in words.SETTINGS.items()}
    assert {n: vs for n, vs in bare.items() if n not in OF_SESSION} == CHANGEABLE
    assert bare.keys() == {*CHANGEABLE, *OF_SESSION}
    offered = {n: {v.strip("'") for v in vs} for n, vs in words.OPTIONS.items()}
    assert offered.keys() == {
        n for n, option in OPTIONS.items() if {"query", "select"} & {*option.on}
    }
    assert all(offered[n] == set(OPTIONS[n].choices) for n in offered if OPTIONS[n].choices)


def push(kind, seq, *rows, at=5_000_000, more=False):
    return Push("q", seq, kind, at, Data(("a",), ("INT",), list(rows)), more=more)


def test_the_live_view_of_a_view_is_its_content():
    view = View()
    for item in (
        push("snapshot", 0, (1,), (2,)),
        push("delete", 0, (1,)),
        push("insert", 1, (3,), (3,)),
    ):
        view.add(item)
    assert sorted(view.rows(10)) == [(2,), (3,), (3,)]
    assert view.title("q") == "q at 1970-01-01 00:00:05: 3 rows   (Ctrl-C leaves)"


def test_the_live_view_of_a_stream_is_its_newest_rows():
    view = View()
    for seq in range(5):
        view.add(push("insert", seq, (seq,)))
    assert view.rows(2) == [(3,), (4,)]
    assert "5 result rows so far" in view.title("q")


def test_the_live_view_of_a_periodic_query_is_its_last_answer():
    view = View()
    view.add(push("snapshot", 4, (7,), at=4_000_000))  # the answer that was there
    assert view.rows(3) == [(7,)]
    view.add(push("result", 4, (8,), (9,), more=True))
    assert view.rows(3) == [(8,), (9,)]
    view.add(push("result", 6, (5,)))  # more rows of that boundary
    assert view.rows(3) == [(8,), (9,), (5,)]
    assert view.title("q").startswith("q at 1970-01-01 00:00:05: 3 rows at this boundary")
    view.add(push("result", 7, (1,), at=6_000_000))
    assert view.rows(3) == [(1,)]
    seen = view.pushes
    view.add(Push("q", 8, "progress", 9_000_000))
    assert (view.rows(3), view.pushes) == ([], seen + 1)  # it is drawn anew
    assert view.title("q").startswith("q at 1970-01-01 00:00:09: 0 rows")


def test_the_live_view_of_an_answer_is_kept_up_from_net_changes():
    answer = Answer(("a",), ("INT",))
    view = Present(answer)
    message = {"seq": 3, "kind": "changes", "at": 5_000_000, "conflated": True}
    message |= {"data": [[1], [2], [3]], "signs": [1, 1, 1], "ats": [5_000_000] * 3}
    changes = changes_of(message, "q", ("a",), ("INT",))
    answer.add(changes)
    view.add(changes)
    assert (view.rows(2), view.pushes) == ([(1,), (2,)], 1)
    assert view.title("q") == "q at 1970-01-01 00:00:05: 3 rows   (Ctrl-C leaves)"


def test_pushes_as_lines():
    assert push_lines(push("delete", 0, (1,)), ("INT",), "table") == ["- 1970-01-01 00:00:05  1"]
    assert push_lines(push("insert", 0, (1,)), ("INT",), "csv") == ["+,1970-01-01 00:00:05,1"]
    assert push_lines(push("insert", 0, (1,)), ("INT",), "json") == [
        '{"$kind": "insert", "$at": "1970-01-01 00:00:05", "a": 1}'
    ]
    assert push_lines(push("result", 0, (1,)), ("INT",), "table") == ["> 1970-01-01 00:00:05  1"]
    progress = Push("q", 1, "progress", 6_000_000)
    assert push_lines(progress, ("INT",), "table") == [". 1970-01-01 00:00:06  nothing"]
    assert push_lines(progress, ("INT",), "csv") == push_lines(progress, ("INT",), "json") == []


def test_replay_cuts_rows_by_steps_of_our_time():
    import numpy as np

    at = np.array([0, 10_000, 25_000, 24_000, 41_000, 1_000_000], np.int64)
    assert cuts(at, 1.0) == [(0, 2), (2, 4), (4, 5), (5, 6)]
    assert cuts(at, 10.0) == [(0, 5), (5, 6)]
    assert cuts(at, float("inf")) == [(0, 6)]
    assert cuts(at[:0], 1.0) == []


def test_points_of_numbers_stand_below_each_other_and_digits_end():
    rows = [[1.5, "2.50"], [10.0, None], [0.1 + 0.2, "-0.25"], [1e-9, "1.00"], [1e300, "1.00"]]
    rows += [[float("nan"), "1.00"], [None, "1.00"], [-2.25, "1.00"]]
    lines = list(show.table(["f", "d"], ["FLOAT", "DECIMAL(5,2)"], rows))
    assert lines[2:-1] == [
        "  1.5  |  2.50",
        " 10.0  |  NULL",
        "  0.3  | -0.25",
        " 1e-09 |  1.00",
        "1e+300 |  1.00",
        "   NaN |  1.00",
        "  NULL |  1.00",
        " -2.25 |  1.00",
    ]


def looked(rows, typed, most=3, types=("STRING", "INT")):
    at = Look(types)
    at.keys(typed)
    return at, [list(row) for row in at.chosen(rows)[:most]]


SEEN = [("b", 2), ("a", None), ("c", 10), ("B", 1), ("x", 7)]


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("", ["b", "a", "c", "B", "x"]),
        (">", ["B", "a", "b", "c", "x"]),
        (">>", ["B", "b", "x", "c", "a"]),  # 10 behind 7, NULL last
        ("\x1b[C\x1b[Cr", ["c", "x", "b", "B", "a"]),
        ("<r", ["c", "x", "b", "B", "a"]),
        (">>>", ["b", "a", "c", "B", "x"]),
        ("/B\r", ["b", "B"]),
        ("/xy\x7f\r", ["x"]),
        ("/nul\r", ["a"]),
        ("/b\x1b", ["b", "a", "c", "B", "x"]),
        ("/b\r/\r", ["b", "a", "c", "B", "x"]),
    ],
)
def test_keys_sort_and_filter_the_live_view(typed, shown):
    at, rows = looked(SEEN, typed, 10)
    assert [row[0] for row in rows] == shown
    assert not at.typing and not at.left


def test_sorting_knows_types():
    assert looked([("9.5",), ("10.0",)], ">", types=("DECIMAL(4,1)",))[1] == [["9.5"], ["10.0"]]
    nan = float("nan")
    rows = looked([(nan,), (1.0,), (float("inf"),)], ">", types=("FLOAT",))[1]
    assert rows[:2] == [[1.0], [float("inf")]]


def test_the_course_of_numbers_over_pushes():
    at = Look(("STRING", "INT"))
    at.note([("a", 1)])  # not asked for
    at.keys("s")
    for rows in ([("a", 1), ("b", 3)], [("a", 9)], [], [("a", None)], [("a", 5), ("b", 5)]):
        at.note(rows)
    assert (at.course(0), at.course(1)) == ("", "▁█  ▄")
    at.keys("sq")
    assert at.courses is None and at.left


def test_the_live_view_says_what_it_leaves_out(monkeypatch):
    from rich.console import Console

    monkeypatch.setenv("LINES", "11")
    monkeypatch.setenv("COLUMNS", "80")
    view, at = View(), Look(("STRING", "FLOAT"))
    results = Push("q", 0, "snapshot", 0, Data(("k", "v"), ("STRING", "FLOAT"), []))
    results = SimpleNamespace(query="q", columns=results.columns, types=("STRING", "FLOAT"))
    rows = [(f"k{i}", i / 3) for i in range(5)]
    view.add(Push("q", 0, "snapshot", 5_000_000, Data(("k", "v"), results.types, rows)))

    def lines():
        console = Console(width=80, record=True, file=io.StringIO())
        console.print(_picture(view, results, at, True))
        return [line.rstrip() for line in console.export_text().splitlines()]

    assert lines()[-1] == f"… 2 more rows   {KEYS}"
    assert "│ k2 │ 0.666667 │" in lines()
    at.keys("<r")
    assert lines()[2:5:2] == ["┃ k  ┃ v ▼      ┃", "│ k4 │ 1.333333 │"]
    at.keys("/k1")
    assert lines()[-1] == f"/k1_: 1 of 5 rows   {KEYS}"
    at.keys("\rs")
    lines()
    assert any("▁▁" in line for line in lines())
