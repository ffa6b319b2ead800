"""The conversation that the page on the protocol shows, held with a server."""

from __future__ import annotations

import json
import re
from typing import Any

import dsms
from dsms_client.protocol import pack
from tests.pages.text import ROOT
from tests.server.harness import Running

ANY = "…"


def conversation() -> list[tuple[str, dict[str, Any]]]:
    """(direction, frame) of the lines that begin with an arrow."""
    page = (ROOT / "server" / "protocol.md").read_text(encoding="utf-8")
    return [
        (found[1], _frame(found[2])) for found in re.finditer(r"^    ([→←]) (\{.*\})$", page, re.M)
    ]


def _frame(line: str) -> dict[str, Any]:
    quoted = re.sub(r"(?<=[{ ])(\w+):(?= )", r'"\1":', line).replace("nil", "null")
    return json.loads(re.sub(rf'(?<!["\w ]){ANY}|(?<=: ){ANY}', f'"{ANY}"', quoted))


def like(shown: Any, came: Any) -> bool:
    """Whether a value is as shown, `…` standing for anything."""
    match shown:
        case dict():
            return (
                isinstance(came, dict)
                and shown.keys() == came.keys()
                and all(like(v, came[k]) for k, v in shown.items())
            )
        case list():
            return (
                isinstance(came, list) and len(shown) == len(came) and all(map(like, shown, came))
            )
        case str() if ANY in shown:
            return (
                shown == ANY
                or re.fullmatch(".*".join(map(re.escape, shown.split(ANY))), came) is not None
            )
    return shown == came


def test_the_conversation_goes_as_shown():
    frames = conversation()
    assert {frame["op"] for way, frame in frames if way == "→"} >= {
        "hello",
        "execute",
        "subscribe",
        "ingest",
    }
    server = Running(dsms.Engine(), token="a secret")
    with server.peer() as peer:
        for way, frame in frames:
            if way == "→":
                peer.raw(pack(frame))
            else:
                came = peer.push() if "push" in frame else peer.reply(frame["id"])
                assert like(frame, came), (frame, came)
    server.stop()
