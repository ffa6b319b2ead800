"""How a file of JSON begins: with lines of objects, an array, or objects wherever lines end."""

from __future__ import annotations

import json
from typing import Any

from dsms.errors import UsageError
from dsms_client.files.source import HEAD, FileSource


def is_array(kind: str, head: bytes) -> bool:
    """Whether objects stand in an array, in one line or over several, in what begins so."""
    if kind != "json" or head.startswith(b"["):
        return kind == "json"
    return object_of(head.splitlines()[0].decode(errors="surrogateescape")) is None


def object_of(text: str) -> dict[str, Any] | None:
    """The object that a text is; None if it is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def no_object(source: FileSource, head: bytes) -> UsageError:
    """DS530 for a file without an object where the first one should stand."""
    hint = "JSON lines: one object per line; "
    if source.kind == "json":
        what = "does not begin with a JSON object"
        if head[:1] in (b"{", b"[") and len(head) > HEAD // 2:
            what += f" that ends within its first {HEAD >> 10} KB"
        return UsageError("DS530", f"{source.name} {what}", hint=f"{hint}or an array of objects")
    what = f"the first line of {source.name} is not one JSON object"
    hint += "an array of objects, or objects that share lines or have several, need --format json"
    return UsageError("DS530", what, hint=hint)
