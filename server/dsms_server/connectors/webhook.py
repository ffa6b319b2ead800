"""Webhooks: a request for some rows at a time, or one for each row.  At least once: a request that
was not answered with 2xx is made again, with the same `Idempotency-Key`, by which a receiver knows
what it has had."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import aiohttp

from dsms_server.connectors.protocol import (
    Connector,
    Failed,
    Option,
    Place,
    Sink,
    Told,
    Unreachable,
)

AGAIN = {408, 425, 429}  # answers of 4xx that are about the moment, not the request
_FIELD = re.compile(r"\{([^{}]*)\}")


class WebhookSink(Sink):
    """With `template` a request a row, whose body is the template with values as JSON in the place
    of {column}; without, the rows as they are in the format."""

    options = (
        Option("url", "http:// or https://", needed=True),
        Option("method", "of the request", default="POST", words=("POST", "PUT", "PATCH")),
        Option("authorization", "the header of that name", "secret"),
        Option("template", "the body of the request for a row"),
        Option("content_type", "of the body; that of the format unless said"),
        Option("rows", "in one request, at most", "whole", default=100),
        Option("timeout", "for an answer", "length", default=30.0),
    )

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        super().__init__(options, place)
        self._session: aiohttp.ClientSession | None = None
        self.at_once = 1 if options["template"] else max(1, options["rows"])

    async def open(self, note: Any) -> int | None:
        if not re.match(r"https?://", self.said["url"]):
            raise Failed("DS665", "the url of a webhook begins with http:// or https://")
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=self.said["timeout"])
        )
        return None

    async def write(self, told: Told) -> Any:
        for one in _cut(told, self.at_once or 1):
            await self._ask(one)

    async def _ask(self, told: Told) -> None:
        body, media = await self._body(told)
        kind = "snapshot-" if told.snapshot else ""
        headers = {
            "Content-Type": media,
            "Idempotency-Key": f"{self.place.name}-{kind}{told.first}-{len(told)}",
        }
        if self.said["authorization"]:
            headers["Authorization"] = self.said["authorization"]
        assert self._session is not None
        try:
            async with self._session.request(
                self.said["method"], self.said["url"], data=body, headers=headers
            ) as answer:
                status, text = (
                    answer.status,
                    (await answer.content.read(200)).decode(errors="replace"),
                )
        except (aiohttp.ClientError, TimeoutError) as problem:
            raise Unreachable("DS664", str(problem) or type(problem).__name__) from None
        if 200 <= status < 300:
            return
        if 400 <= status < 500 and status not in AGAIN:
            hint = "mend the receiver, or the sink; RESUME SINK tries again"
            raise Failed("DS665", f"the receiver answers {status}: {text}", hint=hint)
        raise Unreachable("DS664", f"the receiver answers {status}: {text}")

    async def _body(self, told: Told) -> tuple[bytes, str]:
        writing = self.place.writing
        assert writing is not None
        form, media = self.said["template"], self.said["content_type"] or writing.media
        if not form:
            return await self.whole(told), media
        row = json.loads((await self.lines(told))[0])

        def value(found: re.Match[str]) -> str:
            return json.dumps(row[found[1]]) if found[1] in row else found[0]

        return _FIELD.sub(value, form).encode(), media

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


def _cut(told: Told, most: int) -> list[Told]:
    """A snapshot is cut here, too: its requests say so."""
    if not told.snapshot:
        return [told]
    out = []
    for at in range(0, len(told), most):
        rows, signs, ats = (
            told.rows.slice(at, most),
            told.signs[at : at + most],
            told.ats[at : at + most],
        )
        out.append(Told(rows, signs, ats, told.first + at, told.upto, True))
    return out


CONNECTOR = Connector("webhook", None, WebhookSink)
