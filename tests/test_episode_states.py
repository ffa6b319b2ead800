"""States of episodes whose rows were chained from the first to the last."""

from __future__ import annotations

from dsms.sql.types import INT, Field
from dsms.state.rows import RowStore
from dsms.state.vec import Vec
from dsms.storage.upgrades import UPGRADES


def vec(*values: int) -> Vec:
    out = Vec()
    for value in values:
        out.extend_fill(1, value)
    return out


def test_chains_are_turned_round() -> None:
    """Keys 0 and 2 have open episodes: slots 0, 2, 5 and 1, 3; slot 4 is in none."""
    store = RowStore((Field("k", INT),), 1)
    store.extra["link"] = vec(2, 3, 5, -1, -1, -1)
    fields = {"store": store, "head": vec(0, -1, 1), "tail": vec(5, -1, 3), "size": vec(3, 0, 2)}
    new = UPGRADES["window_episodes.session_window_op", 1]({**fields, "gap": 7})
    assert set(new) == {"store", "last", "gap"}
    assert new["last"].view.tolist() == [[5, 3], [-1, 0], [3, 2]]
    assert set(store.extra) == {"before"}
    assert store.extra["before"].view.tolist() == [-1, -1, 0, 1, -1, 2]
