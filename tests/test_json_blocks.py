"""Blocks of JSON lines that Arrow reads as a whole give what line by line they give."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms_client.files import csvfile, jsonfile
from dsms_client.files.open import read
from dsms_client.files.source import FileSource
from tests.effort import examples

COLUMNS = (("v", "FLOAT"), ("k", "INT"), ("name", "STRING"), ("at", "TIMESTAMP"), ("x", "INT"))
PATHS = {"k": "id.k", "name": "id.name", "at": "data.seen.at", "x": "x"}
FIRST = '{"v": 1, "id": {"k": 1, "name": "a"}, "data": {"seen": {"at": "2020-01-01"}}, "x": 1}\n'


def told(path, monkeypatch, whole=True):
    """The rows with their lines, and the rejects; and how many blocks were read as a whole."""
    counted = []
    with monkeypatch.context() as patch:
        made = jsonfile._Reader.whole

        def counting(self, block, first):
            found = made(self, block, first) if whole else None
            counted.append(found is not None)
            return found

        patch.setattr(jsonfile._Reader, "whole", counting)
        pieces = list(read(FileSource(str(path)), COLUMNS, PATHS)[1])
    rows = [
        (line, *row.values())
        for piece in pieces
        for line, row in zip(piece.lines.tolist(), piece.batch.to_pylist(), strict=True)
    ]
    return rows, [reject for piece in pieces for reject in piece.rejects], sum(counted)


def test_objects_within_objects_are_read_as_a_whole(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    other = '{"id": null, "data": {"seen": {}}, "more": [{"v": 3}], "v": null}\n{"data": null}\n'
    path.write_text(FIRST * 3 + other)
    rows, rejects, whole = told(path, monkeypatch)
    assert (len(rows), rejects, whole) == (5, [], 1)
    assert (rows, rejects) == told(path, monkeypatch, whole=False)[:2]


@pytest.mark.parametrize(
    "line",
    [
        '{"id.k": 5}', '{"ID.K": 5}', '{"data": {"seen.at": "2020-01-01"}}',
        '{"data.seen": {"at": "2020-01-01"}}', '{"id": {"k": 1}, "id": {"name": "b"}}',
        '{"id": {"k": 1, "k": 2}}', '{"id": [{"k": 1}]}', '{"id": 7}', '{"ID": {"k": 1}}',
        '{"id": {"K": 1}}', '{"id": {"\\u006b": 1}}', '{"i\\u0064": {"k": 1}}', '{"V": 1}',
        '{"\\u0076": 2}', '{"v": 1, "V": 2}', '{"id": {"k": {"z": 1}}}', '{"id": {"k": "1"}}',
        '{"id": {"k": 1.5}}', '{"data": {"seen": {"at": "x"}}}', '{"id": {"name": "\\ud800"}}',
        '{"k": 3}', '{"name": "top"}', '{"x": {"id": 1}}', '{"id": {"id": {"k": 4}}}',
    ],
)  # lines  # fmt: skip
@pytest.mark.parametrize("more", ["", '{"unused": 1, "v": 2}\n'])
def test_odd_lines_are_what_they_are_alone(tmp_path, monkeypatch, line, more):
    path = tmp_path / "a.jsonl"
    path.write_text(FIRST + more + line + "\n" + FIRST)
    assert told(path, monkeypatch)[:2] == told(path, monkeypatch, whole=False)[:2]


KEYS = st.sampled_from(["v", "id", "k", "name", "data", "seen", "at", "x", "V", "id.k", "seen.at"])
VALUES = st.recursive(
    st.sampled_from([None, 1, 2.5, "a", "7", True, "2020-01-01", 2**60]),
    lambda inner: st.dictionaries(KEYS, inner, max_size=4) | st.lists(inner, max_size=2),
    max_leaves=6,
)


@settings(max_examples=examples(60))
@given(
    st.lists(st.dictionaries(KEYS, VALUES, max_size=5), max_size=6),
    st.booleans(),
    st.integers(0, 2),
    st.integers(1, 3),
)
def test_any_objects(tmp_path_factory, objects, good, many, often):
    path = tmp_path_factory.mktemp("json") / "a.jsonl"
    lines = [json.dumps(one) + "\n" for one in objects]
    path.write_text(FIRST + "".join(lines[:1] if good else lines) + FIRST)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonfile, "MANY", many)
        patch.setattr(jsonfile, "OFTEN", often)
        assert told(path, patch)[:2] == told(path, patch, whole=False)[:2]


@pytest.mark.parametrize(
    "odd",
    [
        '{"v": 1} {"v": 2}\n \n', '{"v": 1}x\n{"v": 2}\n', '{"v": 1} {"v":\n 2}\n',
        '{}.\n{"v": "x"}\n',
        ' {"v": 1}\n\t{"v": 2} \n', '{"v": 1}\r\n{"v": "x"}\r\n', '{"id": {}}{"id":\n{"k": 2}}\n',
    ],
)  # lines  # fmt: skip
@pytest.mark.parametrize("last", [FIRST, "{}."])
def test_objects_are_lines(tmp_path, monkeypatch, odd, last):
    path = tmp_path / "a.jsonl"
    path.write_text(FIRST + odd + last, newline="")
    assert told(path, monkeypatch)[:2] == told(path, monkeypatch, whole=False)[:2]


def test_lines_around_a_wrong_one_are_read_as_a_whole(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    path.write_text(FIRST * 3 + '{"v": "x"}\n' + FIRST * 3 + '{"v": "NaN"}\nno JSON\n' + FIRST)
    rows, rejects, whole = told(path, monkeypatch)
    assert ([row[0] for row in rows], whole) == ([1, 2, 3, 5, 6, 7, 8, 10], 1)
    assert [(one.line, one.text) for one in rejects] == [(4, '{"v": "x"}'), (9, "no JSON")]


TIMES = ["2020-01-01", "2020-01-01 12:00:00.5", "2020-01-01T12", "", "0000-01-01", "2020-1-1",
         "2020-01-01 12:30:15Z", " 2020-01-01", "20200101", "2020-01-01 12:30:15.1234567", "x",
         "9999-12-31 23:59:59.999999", '"2020-01-01 10:00"', "NULL",
         "2020-02-30"]  # by the line  # fmt: skip


@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from(TIMES), min_size=1, max_size=6), st.integers(1, 40))
def test_times_of_csv_are_those_that_each_is_alone(tmp_path_factory, texts, block):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_text("t,k\n" + "".join(f"{text},1\n" for text in texts))
    found = []
    for whole in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(csvfile, "BLOCK", 64 + block)
            if not whole:
                patch.setattr(csvfile._Reader, "whole", lambda *_: None)
            columns = (("t", "TIMESTAMP"), ("k", "INT"))
            pieces = list(read(FileSource(str(path)), columns, {})[1])
        rows = [row for piece in pieces for row in piece.batch.to_pylist()]
        lines = [line for piece in pieces for line in piece.lines.tolist()]
        found.append((rows, lines, [reject for piece in pieces for reject in piece.rejects]))
    assert found[0] == found[1]


@settings(max_examples=examples(60))
@given(
    st.lists(st.sampled_from([*TIMES, None, 5, 1.5, "no JSON", {}]), min_size=1, max_size=6),
    st.sampled_from([1, 40, 1 << 20]),
)
def test_times_of_json_are_those_that_each_is_alone(tmp_path_factory, texts, block):
    path = tmp_path_factory.mktemp("json") / "a.jsonl"
    lines = [
        f"{text}\n" if text == "no JSON" else json.dumps({"v": 1, "data": {"seen": {"at": text}}})
        for text in texts
    ]
    path.write_text(FIRST + "".join(line.rstrip("\n") + "\n" for line in lines) + FIRST)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonfile, "BLOCK", block)
        assert told(path, patch)[:2] == told(path, patch, whole=False)[:2]


def test_times_that_arrow_knows_and_others_are_read_as_a_whole(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    known, other = (FIRST.replace("2020-01-01", t) for t in ("2020-01-01T12", "20200101"))
    path.write_text(FIRST + known + other)
    rows, rejects, whole = told(path, monkeypatch)
    assert ([row[4] for row in rows], rejects, whole) == (
        [1577836800000000, 1577880000000000, 1577836800000000], [], 1,
    )  # times  # fmt: skip
