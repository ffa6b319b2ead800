"""Groups to which no row comes any more, and whose state goes (punctuations).

To sweep it costs as much as there is of it, so that is done when a share of all rows is concerned:
a row is touched a few times for it, however many promises come.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from dsms.operators.letting_go import Promise
from dsms.operators.sweeping import Sweep
from dsms.state.lengthening import grown

SHARE = 8  # a sweep pays when one of so many rows kept goes


@dataclass(slots=True)
class Closed:
    """shut     bool by code, of all such groups
    gone     rows that those had which are not swept yet;  swept: rows that the others had
    rows     that came, to all groups; -1: not known
    promises  by which groups have to be looked for"""

    shut: np.ndarray = field(default_factory=lambda: np.zeros(0, np.bool_))
    gone: int = 0
    swept: int = 0
    rows: int = -1
    promises: Sweep[Promise] = field(default_factory=Sweep)

    def came(self, rows: int) -> None:
        """More rows have come."""
        if self.rows >= 0:
            self.rows += rows

    def close(self, codes: np.ndarray, count: np.ndarray) -> np.ndarray | None:
        """Nothing comes to these groups any more, each of which is there once; what is to be swept
        now, bool by code.  `count`: rows that came, by code."""
        self.shut = grown(self.shut, len(count), False)
        fresh = codes[~self.shut[codes]]
        self.shut[fresh] = True
        self.promises.freed(len(fresh))
        self.gone += int(count[fresh].sum())
        if self.rows < 0:
            self.rows = int(count.sum())
        if not self.gone or self.gone * SHARE < self.rows - self.swept:
            return None
        self.swept += self.gone
        self.gone = 0
        return self.shut

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """States of earlier versions have codes that are owed: they go with the next ones."""
        self.gone, self.rows, self.promises = 0, -1, Sweep()
        for name in state.keys() - {"owed"}:
            setattr(self, name, state[name])
