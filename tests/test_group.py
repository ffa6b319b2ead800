"""GROUP BY against recomputation at every instant: all input patterns, state structures and batch cuts."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dsms.errors import QueryError
from tests.grouping import COL, STATES, call, events, exact, expected, histories, node_of, operator, run, same
from tests.oracle.aggregates import SumOverflow

UNTIL = 200
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # shrinking would take minutes
BASIC = [call("count_star"), call("count", "i"), call("sum", "d"), call("min", "f"), call("max", "s")]
KEYS = {"none": (), "int": ("k",), "text": ("s",), "two": ("kf", "s")}


def check(node, pattern, log, cuts):
    """All structures, cut and uncut, answer the same, and what recomputation answers."""
    try:
        want = same(expected(node, log, UNTIL))
    except SumOverflow:
        want = None
    told = events(log, pattern, UNTIL)
    answers = []
    for state in STATES[pattern]:
        for eager in (False, True) if state.kind == "list" else (False,):
            for cut in ([], cuts):
                op = operator(node, state, pattern in ("str", "nt"), eager)
                if want is None:
                    with pytest.raises(QueryError, match="SUM"):
                        run(op, told, cut, UNTIL, pattern not in ("nt", "mon"))
                    continue
                answers.append(run(op, told, cut, UNTIL, pattern not in ("nt", "mon")))
                assert same(answers[-1]) == want, (state, cut)
                assert exact(answers[-1]) == exact(answers[0])


@pytest.mark.parametrize("pattern", STATES)
@pytest.mark.parametrize("keys", KEYS)
@given(data=st.data())
@settings(max_examples=25, deadline=None, phases=PHASES)
def test_answers_are_those_of_recomputation(pattern, keys, data):
    node = node_of([COL[k] for k in KEYS[keys]], BASIC)
    log = data.draw(histories(pattern, ("k", "s", "i", "d", "f", "kf")))
    cuts = data.draw(st.lists(st.integers(-8, UNTIL), max_size=8))
    check(node, pattern, log, cuts)
