"""Text: a message is the value of one column of STRING, or of BYTES, as it came."""

from __future__ import annotations

from typing import Any

from dsms.errors import DsmsError
from dsms.intake.convert import to_batch
from dsms.sql.types import Kind
from dsms_server.connectors.formats.base import Decoded, Reading, target
from dsms_server.connectors.protocol import Messages, Option
from dsms_server.decode import StreamShape


class ReadText(Reading):
    """The first column of STRING or BYTES, or the one that `column` names."""

    options = (
        Option("column", "in which messages stand, the first of STRING or BYTES unless said"),
    )

    def rows_of(self, messages: Messages, shape: StreamShape) -> Decoded:
        beside = self.beside(messages)
        fits = {
            f.name: f.type.kind for f in shape.schema if f.type.kind in (Kind.STRING, Kind.BYTES)
        }
        name = self.said["column"] or next((n for n in fits if n not in beside), "")
        text = fits.get(name) is not Kind.BYTES
        values: list[Any] = []
        kept: list[int] = []
        for number, body in enumerate(messages.bodies):
            try:
                values.append(body.decode() if text else bytes(body))
                kept.append(number)
            except UnicodeDecodeError:
                continue
        columns: dict[str, Any] = {n: [v[i] for i in kept] for n, v in beside.items()}
        rejected = len(messages.bodies) - len(kept)
        why = "a message is no text in UTF-8" if rejected else None
        try:
            rows = to_batch({name: values, **columns}, *target(shape))
        except DsmsError as problem:
            none = to_batch([], *target(shape))
            return Decoded(none, shape, len(messages.bodies), problem.message)
        return Decoded.of(rows, shape, rejected, why)
