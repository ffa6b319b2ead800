"""What sources and sinks have of the server that they run in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, cast

from dsms.api import IngestReport
from dsms.sql.catalog import ConnectorDef
from dsms_server.connectors import options, registry
from dsms_server.connectors.formats import BESIDE, Reading, reading, writing
from dsms_server.connectors.positions import Positions
from dsms_server.connectors.protocol import Connector, Option, Place, Sink, Source
from dsms_server.connectors.supervisor import Supervised
from dsms_server.core import Core
from dsms_server.decode import Payload

ON_ERROR = Option(
    "on_error", "what a message is that is none", default="skip", words=("skip", "stop")
)
START = Option(
    "start", "with which result rows a sink begins: those to come, or all that the log has",
    default="now", words=("now", "beginning"),
)  # a sentence  # fmt: skip
FORMAT = Option("format", "of messages", default="json")


def known_options(found: Connector, kind: str, format: str) -> list[Option]:
    """All that WITH may say for such a source or sink.  Raises DS448."""
    if kind == "source":
        assert found.source is not None
        own: Any = found.source
        of_all, formats = [ON_ERROR], cast(Any, reading)
    else:
        assert found.sink is not None
        own, of_all, formats = found.sink, [START], writing
    if not own.needs_format:
        return [*own.options, *of_all]
    words = found.source.beside if kind == "source" and found.source is not None else ()
    columns = [Option(w + BESIDE, f"the column that has the {w} of a message") for w in words]
    return [*own.options, *of_all, FORMAT, *formats(format).options, *columns]


@dataclass(slots=True)
class Context:
    """pool       threads in which messages are decoded and made
    files, sink_files, secrets  folders, as the server was told
    take_memory   raises DS625 if there is none for so many bytes
    count_rows    notes what became of rows"""

    core: Core
    pool: ThreadPoolExecutor
    positions: Positions
    take_memory: Callable[[int], None]
    count_rows: Callable[[IngestReport], None]
    files: tuple[str, ...] = ()
    sink_files: tuple[str, ...] = ()
    secrets: str | None = None
    safe_mode: bool = False  # nothing begins

    def take_rows(self, payload: Payload) -> None:
        """Raise DS625 if there is no memory for these rows."""
        rows = payload.converted
        self.take_memory(0 if rows is None else sum(c.nbytes for c in rows.columns))

    def source(
        self, definition: ConnectorDef, values: Mapping[str, Any], watched: Supervised
    ) -> tuple[Source, Reading]:
        """A connection that is to be opened, and how its messages are read."""
        found = registry.find("source", definition.connector)
        registry.check_library(found)
        said = self._resolved(known_options(found, "source", _format(values)), values, watched)
        assert found.source is not None
        source = found.source(said, Place(definition.name, self.files))
        return source, reading(said["format"] if source.needs_format else "arrow")(said)

    def sink(
        self,
        definition: ConnectorDef,
        values: Mapping[str, Any],
        watched: Supervised,
        changes: bool,
        columns: tuple[tuple[str, str], ...],
    ) -> Sink:
        """A connection that is to be opened.  `changes`: rows also leave; `columns`: of the query,
        names and types."""
        found = registry.find("sink", definition.connector)
        registry.check_library(found)
        said = self._resolved(known_options(found, "sink", _format(values)), values, watched)
        assert found.sink is not None
        made = writing(said["format"])(said, changes) if found.sink.needs_format else None
        return found.sink(said, Place(definition.name, self.sink_files, changes, columns, made))

    def _resolved(
        self, known: Iterable[Option], values: Mapping[str, Any], watched: Supervised
    ) -> dict[str, Any]:
        said, watched.hidden = options.resolved(known, values, self.secrets)
        return said


def _format(values: Mapping[str, Any]) -> str:
    return str(values.get("format") or FORMAT.default)


def checked(kind: str, connector: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a source or sink with their values, secrets as their places.  Raises DS447,
    DS448, DS449, DS663."""
    found = registry.find(kind, connector)
    registry.check_library(found)
    known = known_options(found, kind, _format(said))
    return options.check(known, said, f"the {kind} {connector}")
