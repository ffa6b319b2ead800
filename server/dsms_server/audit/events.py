"""What is written down: an event is one line, a JSON object in ASCII.

No text of a user's can begin a line, or steer a terminal: all but printable ASCII is escaped.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass, field
from typing import Any

from dsms.secret_texts import without_secrets

MOST_TEXT = 16 << 10  # characters of a statement
MOST_NAME = 256  # ... of a name

# what `--audit` may name, and the events that it stands for
GROUPS: dict[str, frozenset[str]] = {
    "logins": frozenset({"login", "login_refused", "logout"}),
    "changes": frozenset({"change"}),
    "selects": frozenset({"select"}),
    "rights": frozenset({"rights"}),
    "sessions": frozenset({"session"}),
    "subscriptions": frozenset({"subscribe", "unsubscribe"}),
    "ingest": frozenset({"ingest", "heartbeat", "end"}),
}
# of statements, and a right that was missing whatever it was for
GROUPS["statements"] = GROUPS["changes"] | GROUPS["selects"] | GROUPS["rights"] | GROUPS["sessions"]
GROUPS["refused"] = frozenset({"refused"})
GROUPS["all"] = frozenset().union(*GROUPS.values())
ALWAYS = frozenset({"start", "stop", "lost"})  # of the log itself
REFUSED = "DS670"


def chosen(names: tuple[str, ...]) -> frozenset[str]:
    """The events that groups of these names stand for."""
    return ALWAYS.union(*(GROUPS[name] for name in names))


@dataclass(frozen=True, slots=True)
class Event:
    """kind   what has happened, a word of `GROUPS` or `ALWAYS`
    at     when, µs since the epoch
    who    whose it is: session, user, address, client, certificate
    said   what else there is to say, None: nothing
    text   of a statement, as it came (`of_text`)
    """

    kind: str
    at: int
    who: dict[str, Any] = field(default_factory=dict)
    said: dict[str, Any] = field(default_factory=dict)
    text: str | None = None

    @property
    def groups(self) -> set[str]:
        """The kinds by which it may be chosen: what was refused is that, too."""
        return {self.kind, "refused"} if self.said.get("outcome") == REFUSED else {self.kind}

    @property
    def size(self) -> int:
        """About how many bytes it holds."""
        return 512 + len(self.text or "")


def line(event: Event, run: str, number: int) -> bytes:
    """An event as it is written, number `number` of a run of the server."""
    fields: dict[str, Any] = {"time": instant(event.at), "run": run, "n": number}
    fields["event"] = event.kind
    for key, value in {**event.who, **event.said}.items():
        if value is not None:
            fields[key] = _short(value) if isinstance(value, str) else value
    if event.text is not None:
        fields["text"] = without_secrets(event.text)
    return json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n"


def of_text(text: str) -> tuple[str, int | None]:
    """What an event keeps of a statement's text, and how many characters it has if that is not
    all."""
    return text[:MOST_TEXT], len(text) if len(text) > MOST_TEXT else None


def instant(micros: int) -> str:
    """UTC, to the microsecond."""
    at = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)
    return at.isoformat(timespec="microseconds") + "Z"


def _short(text: str) -> str:
    return text if len(text) <= MOST_NAME else text[: MOST_NAME - 3] + "..."
