"""GROUP BY against recomputation at every instant: all input patterns, state structures and batch cuts."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.grouping import COL, STATES, call, check, histories, node_of

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # shrinking would take minutes
BASIC = [call("count_star"), call("count", "i"), call("sum", "d"), call("min", "f"), call("max", "s")]
KEYS = {"none": (), "int": ("k",), "text": ("s",), "two": ("kf", "s")}


@pytest.mark.parametrize("pattern", STATES)
@pytest.mark.parametrize("keys", KEYS)
@given(data=st.data())
@settings(max_examples=25, deadline=None, phases=PHASES)
def test_answers_are_those_of_recomputation(pattern, keys, data):
    node = node_of([COL[k] for k in KEYS[keys]], BASIC)
    log = data.draw(histories(pattern, ("k", "s", "i", "d", "f", "kf")))
    cuts = data.draw(st.lists(st.integers(-8, 200), max_size=8))
    check(node, pattern, log, cuts)
