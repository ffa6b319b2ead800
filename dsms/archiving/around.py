"""What archives need of the runtime, as protocols (`dsms.running.runtime`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dsms.archiving.archiving import Archiving
from dsms.intake.stream import StreamInput
from dsms.running.registered import Registered
from dsms.settings import Settings
from dsms.sql.catalog import Catalog
from dsms.state.ring import Need, Ring
from dsms.storage.durable import Durable


class Around(Protocol):
    """Everything declared, by key (`Catalog.key`)."""

    settings: Settings
    catalog: Catalog
    inputs: dict[str, StreamInput]
    rings: dict[str, Ring]
    queries: dict[str, Registered]
    archivings: dict[str, Archiving]
    durable: Durable | None

    @property
    def replaying(self) -> bool:
        """Whether what happens now happened before."""
        ...

    def clock_of(self, streams: Sequence[str]) -> int:
        """The query clock over those streams."""
        ...

    def keep(self, stream: str, who: str, need: Need) -> Ring:
        """The stream's ring, which from now on holds what `who` needs."""
        ...
