"""Arrow: a message is an IPC stream."""

from __future__ import annotations

from dsms.errors import DsmsError
from dsms.intake.convert import Converted, to_batch
from dsms.untrusted.stream import read_stream
from dsms_client.columns import ipc
from dsms_server.connectors.formats.base import Decoded, Reading, Writing, target
from dsms_server.connectors.protocol import Messages, Told
from dsms_server.decode import StreamShape
from dsms_server.pieces import join


class ReadArrow(Reading):
    """A message that is none, or whose columns do not fit, is rejected as a whole."""

    def rows_of(self, messages: Messages, shape: StreamShape) -> Decoded:
        pieces: list[Converted] = []
        rejected, why = 0, None
        for body in messages.bodies:
            try:
                pieces.append(to_batch(read_stream(body, "a message"), *target(shape)))
            except DsmsError as problem:
                rejected, why = rejected + 1, why or problem.message
        return Decoded.of(join(pieces, shape.schema), shape, rejected, why)


class WriteArrow(Writing):
    """One message for all rows that are told at once."""

    media = "application/vnd.apache.arrow.stream"

    def lines(self, told: Told) -> list[bytes]:
        return [self.whole(told)]

    def whole(self, told: Told) -> bytes:
        return bytes(ipc(self.table(told)))
