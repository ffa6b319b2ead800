"""Avro, by fastavro: a message is a file with its schema, or a record of the schema that WITH
(schema = ...) says, which may stand behind the five bytes that schema registries put first."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from dsms.errors import DsmsError
from dsms.intake.convert import to_batch
from dsms_server.connectors.formats.base import Decoded, Reading, target
from dsms_server.connectors.formats.json import fitted
from dsms_server.connectors.protocol import Failed, Messages, Option
from dsms_server.decode import StreamShape

FILE, REGISTRY = b"Obj\x01", b"\x00"  # how they begin
ID_BYTES = 5


class ReadAvro(Reading):
    """Fields are columns in any case; others are left out."""

    options = (Option("schema", "of messages that do not have theirs, as JSON"),)

    def __init__(self, said: Mapping[str, Any]) -> None:
        """Raises Failed DS663, DS665."""
        super().__init__(said)
        if find_spec("fastavro") is None:
            hint = "pip install 'dsms[avro]', and start the server again"
            raise Failed("DS663", "avro needs the library fastavro", hint=hint)
        import fastavro

        self._schema: Any = None
        if said["schema"]:
            try:
                self._schema = fastavro.parse_schema(json.loads(said["schema"]))
            except Exception as problem:
                raise Failed("DS665", f"the schema is none: {problem}") from None

    def rows_of(self, messages: Messages, shape: StreamShape) -> Decoded:
        beside = self.beside(messages)
        kinds = {f.name.casefold(): f.type.kind for f in shape.schema}
        rows: list[dict[str, Any]] = []
        rejected, why = 0, None
        for number, body in enumerate(messages.bodies):
            more = {name: values[number] for name, values in beside.items()}
            try:
                rows += [{**fitted(one, kinds), **more} for one in self._records(body)]
            except Exception as problem:  # whatever the library makes of bytes that are none
                rejected, why = rejected + 1, why or f"no Avro: {type(problem).__name__}: {problem}"
        try:
            return Decoded.of(to_batch(rows, *target(shape)), shape, rejected, why)
        except DsmsError as problem:
            none = to_batch([], *target(shape))
            return Decoded(none, shape, rejected + len(rows), problem.message)

    def _records(self, body: bytes) -> list[dict[str, Any]]:
        """Raises what the library raises."""
        import fastavro

        if body.startswith(FILE):
            return list(fastavro.reader(io.BytesIO(body)))
        if self._schema is None:
            raise ValueError("a message without a schema needs WITH (schema = '...')")
        found = self._schemaless(body)
        return [found]

    def _schemaless(self, body: bytes) -> dict[str, Any]:
        """A record, with or without what a registry puts before it: all bytes must be its own."""
        import fastavro

        places = [ID_BYTES, 0] if body.startswith(REGISTRY) else [0]
        for place in places:
            text = io.BytesIO(body[place:])
            try:
                found: dict[str, Any] = fastavro.schemaless_reader(text, self._schema)
            except Exception:
                if place == places[-1]:
                    raise
                continue
            if not text.read(1):
                return found
        raise ValueError("bytes are left over behind the record")
