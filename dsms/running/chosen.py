"""Why a query runs by the plan that it has."""

from __future__ import annotations

from dataclasses import dataclass

from dsms.sql.types import ALWAYS


@dataclass(frozen=True, slots=True)
class Chosen:
    """since  the instant from which on it has had it (ALWAYS: from the beginning);  why, in words
    changes  how often it has been changed
    blind    nothing had been measured of its streams when it was chosen"""

    since: int = ALWAYS
    why: str = "chosen when it was registered"
    changes: int = 0
    blind: bool = False


REGISTERED = Chosen()
BLIND = Chosen(why="chosen before the first rows", blind=True)
