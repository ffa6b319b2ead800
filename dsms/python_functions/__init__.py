"""Functions in Python that an operator has named: `host` calls them in a process of their own
(`worker`), to which batches of rows go as Arrow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dsms.errors import UsageError


@dataclass(frozen=True, slots=True)
class Functions:
    """folder   whose modules have functions that statements may name
    seconds  that a call may take, which has the rows of a batch; past it the process is killed
    memory   bytes that a call may take beside what Python and Arrow need"""

    folder: str
    seconds: float = 10.0
    memory: int = 1 << 30

    def checked(self) -> Functions:
        """Itself.  Raises DS246 where there is no such folder."""
        if not Path(self.folder).is_dir():
            message = f"there is no folder {self.folder} of functions in Python"
            raise UsageError("DS246", message, hint="name a folder that is there")
        return self
