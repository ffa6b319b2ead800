"""Queries over queries, drawn at random, against their definition: FROM q means the text of q."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dsms.settings import Settings
from dsms.sql import logical as lp
from tests.answers_world import STREAMS, Play, S, answers, entries, graphs
from tests.derived_world import Definition
from tests.effort import examples
from tests.oracle import ambiguous
from tests.test_derived_oracle import _every, arrivals, complete, cut


def _chosen(data: st.DataObject) -> Settings:
    pause = data.draw(st.sampled_from([None, 1, 3]))
    shared, index = data.draw(st.booleans()), data.draw(st.booleans())
    return Settings(pause=_every(pause), shared_parts=shared, predicate_index=index)


def _defined(declared: list[str], rows: list, clock: int) -> tuple[Definition, dict]:
    model = Definition()
    for sql in declared:
        model.declare(sql)
    return model, model.told(complete(rows), clock)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_query_over_queries_is_as_if_their_texts_stood_there(restarted: bool) -> None:
    @settings(max_examples=examples(60 if restarted else 150), deadline=None)
    @given(graphs(), arrivals(), st.data(), st.integers(0, 12))
    def run(queries: list[str], rows: list, data: st.DataObject, longer: int) -> None:
        clock = max(row[2] for _, row in rows) + longer * S // 2
        declared = [*STREAMS, *queries]
        model, want = _defined(declared, rows, clock)
        assume(not any(ambiguous(plan.child) for plan in model.readers.values()))
        events = list(cut(data, rows))
        restarts = {
            n: data.draw(st.sampled_from(["closed", "killed"]))
            for n in range(len(events))
            if restarted and data.draw(st.integers(0, 3)) == 0
        }
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) if restarted else None
            told = Play(declared, place, restarts, settings=_chosen(data)).told(events, clock)
        for name in model.readers:
            assert told[name] == want[name], name

    run()


@pytest.mark.parametrize("restarted", [False, True])
def test_a_reader_that_comes_late_has_the_answer_as_it_stands(restarted: bool) -> None:
    @settings(max_examples=examples(60 if restarted else 150), deadline=None)
    @given(graphs(aged=False), arrivals(), st.data(), st.integers(0, 12))
    def run(queries: list[str], rows: list, data: st.DataObject, longer: int) -> None:
        clock = max(row[2] for _, row in rows) + longer * S // 2
        model, want = _defined([*STREAMS, *queries], rows, clock)
        events = list(cut(data, rows))
        first = data.draw(st.integers(1, len(queries)))
        late: dict[int, list[str]] = {}
        at = 0
        for sql in queries[first:]:
            at = data.draw(st.integers(at, len(events) - 1))
            late.setdefault(at, []).append(sql)
        restarts = {
            n: data.draw(st.sampled_from(["closed", "killed"]))
            for n in range(len(events))
            if restarted and data.draw(st.integers(0, 3)) == 0
        }
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) if restarted else None
            play = Play([*STREAMS, *queries[:first]], place, restarts, late, _chosen(data))
            told = play.told(events, clock)
        for name, plan in model.readers.items():
            since = play.since.get(name, -1)
            if plan.slide is not None:
                _check_boundaries(plan, told[name], want[name])
                continue
            shown = answers if _whole(plan) else entries
            assert shown(told[name], since) == shown(want[name], since), name

    run()


def _check_boundaries(plan: lp.Output, told: list[tuple], want: list[tuple]) -> None:
    """From its first boundary on it answers as if it had always been there (to Istream and Dstream
    there is nothing before that boundary)."""
    first = told[0][0] if told else None
    if plan.kind == "rstream" and first is not None:
        assert told == [line for line in want if line[0] >= first]


def _whole(plan: lp.Output) -> bool:
    from dsms.plan.chooser import with_kind

    return with_kind(plan).kind == "rstream"
