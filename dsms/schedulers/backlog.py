"""How far executions are behind of late: what hybrid scheduling takes into account in overload,
beyond the thesis.

In overload all periods are longer than asked for by about as many updates (Golab 2006, §8.4.2), so
sub-groups whose periods differ by little compared with that are worth merging, although they would
not be without overload.  The thesis chooses once, for the periods asked for; here the choice
follows the backlog, and goes back when it is calm.  For the same reason what is due within the
backlog will be late as surely as what is due now, if left for the next turn.
"""

from __future__ import annotations

from dataclasses import dataclass

MEMORY = 16  # executions of blocks over which lateness is averaged, about


@dataclass(slots=True)
class Backlog:
    """average  lateness of blocks in updates, early ones 0, recent executions weighing most
    level    it, in steps: 0 or a power of two; rises when the average doubles, falls when it is
             down to a quarter: each step means a new choice, so it must not flutter
    """

    average: float = 0.0
    level: int = 0

    def ran(self, late: int) -> bool:
        """A block has run, late by so many updates; whether the level has changed."""
        self.average += (late - self.average) / MEMORY
        level = 0 if self.average < 1 else 1 << (int(self.average).bit_length() - 1)
        if level <= self.level and (self.level == 0 or 4 * level > self.level):
            return False
        self.level = level
        return True
