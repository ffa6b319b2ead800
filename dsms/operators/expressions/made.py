"""How much text an evaluation has made, and may make.

AT_ONCE  bytes that one evaluation makes: past it the rows are cut in parts that take turns
ONE_ROW  bytes that one evaluation makes for a single row, in all its functions: past it the row
         fails
"""

from __future__ import annotations

from dataclasses import dataclass

AT_ONCE = 1 << 24
ONE_ROW = 1 << 27


class InParts(Exception):
    """These rows together make too much: they are to be cut in so many parts."""

    def __init__(self, parts: int) -> None:
        super().__init__(parts)
        self.parts = parts


@dataclass(slots=True)
class Texts:
    """What an evaluation of so many rows has made, in bytes."""

    rows: int
    made: int = 0

    def fits(self, size: int) -> bool:
        """Whether so many bytes more may be made; of several rows, InParts is raised where they may
        not."""
        if self.made + size <= AT_ONCE:
            return True
        if self.rows > 1:
            raise InParts(-(-(self.made + size) // AT_ONCE))
        return self.made + size <= ONE_ROW
