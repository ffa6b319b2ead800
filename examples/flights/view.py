"""What a persistent query answers right now, kept from its pushes."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from dsms_client import Client, Push, Subscription

Row = tuple[Any, ...]


@dataclass(slots=True)
class View:
    """A query's answer as a bag of rows; what came last, as (instant, + or -, row); all that ever
    entered: `news`.

    Of a periodic query the bag is the answer of the last boundary, and `answers` has those before
    it, by boundary."""

    subscription: Subscription
    rows: Counter[Row] = field(default_factory=Counter)
    news: list[Row] = field(default_factory=list)
    latest: deque[tuple[int | None, str, Row]] = field(default_factory=lambda: deque(maxlen=10))
    answers: dict[int, list[Row]] = field(default_factory=dict)
    seen: int = 0  # result rows
    next_seq: int = 0  # the number of the row that follows them

    def apply(self, push: Push) -> None:
        """Take in a push.  Raises ValueError if it deletes what is not there: that must never
        come."""
        match push.kind:
            case "snapshot":
                self.rows = Counter(push.rows)
            case "insert":
                self.rows.update(push.rows)
                self.news += push.rows
                self.seen += len(push)
            case "delete":
                self.rows.subtract(push.rows)
                if any(n < 0 for n in self.rows.values()):
                    raise ValueError(
                        f"{push.query} took back rows that it never gave: {-self.rows}"
                    )
                self.rows = +self.rows
                self.seen += len(push)
            case "result" | "progress":
                assert push.at is not None
                # of many rows it comes in several pushes
                answer = self.answers.setdefault(push.at, [])
                answer += push.rows
                self.rows = Counter(answer)
                self.seen += len(push)
            case "end":
                raise ValueError(f"{push.query} ended: {push.message}")
        self.next_seq = push.next_seq
        if push.kind in ("insert", "delete"):
            sign = "+" if push.kind == "insert" else "-"
            self.latest.extend(
                (at, sign, row) for at, row in zip(push.instants, push.rows, strict=True)
            )

    def answer(self) -> list[Row]:
        """The rows in an order fit to be read."""
        return sorted(self.rows.elements(), key=repr)


def watch(client: Client, names: list[str]) -> dict[str, View]:
    """Subscribe to queries."""
    return {name: View(client.subscribe(name)) for name in names}


def catch_up(client: Client, views: dict[str, View], patience: float = 20.0) -> None:
    """Take pushes until each view has all rows that its query has answered so far.  Raises
    TimeoutError."""
    status = client.query("SHOW QUERIES")
    name, count = status.columns.index("query"), status.columns.index("result_rows")
    for row in status.rows:
        view = views.get(row[name])
        while view is not None and view.next_seq < row[count]:
            push = view.subscription.next(timeout=patience)
            if push is not None:
                view.apply(push)
