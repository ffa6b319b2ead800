"""Groups to which no row comes any more, and whose state goes (punctuations).

To sweep it costs as much as there is of it, so that is done when a share of all rows is concerned:
a row is touched a few times for it, however many promises come.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

SHARE = 8  # a sweep pays when one of so many rows kept goes


@dataclass(slots=True)
class Closed:
    """shut     bool by code, of all such groups;  owed: codes of those that are not swept yet
    swept    rows that the others had"""

    shut: np.ndarray = field(default_factory=lambda: np.zeros(0, np.bool_))
    owed: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    swept: int = 0

    def close(self, codes: np.ndarray, count: np.ndarray) -> np.ndarray | None:
        """Nothing comes to these groups any more; what is to be swept now, bool by code.  `count`:
        rows that came, by code."""
        if len(self.shut) < len(count):
            more = np.zeros(len(count) - len(self.shut), np.bool_)
            self.shut = np.concatenate([self.shut, more])
        fresh = codes[~self.shut[codes]]
        self.shut[fresh] = True
        self.owed = np.concatenate([self.owed, fresh])
        gone = int(count[self.owed].sum())
        if not gone or gone * SHARE < int(count.sum()) - self.swept:
            return None
        out = np.zeros(len(count), np.bool_)
        out[self.owed] = True
        self.swept += gone
        self.owed = np.zeros(0, np.int64)
        return out
