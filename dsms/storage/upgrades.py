"""How fields of earlier versions become those of the next one.

UPGRADES[tag, version] is given the fields of an object of that version, by name, and returns them
as version + 1 has them.  (Fields that come to have a default need none.)  Of a value, an object
that never changes, it may return another object instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dsms.sql.window import (
    NO_SLIDE,
    Landmark,
    Now,
    Partitioned,
    Rows,
    Slide,
    Time,
    Unbounded,
    WindowSpec,
)


def _words(fields: dict[Any, Any]) -> dict[str, Any]:
    """Layout 4 had them as a pair."""
    return {"coding": fields[0], "columns": fields[1]} if 0 in fields else fields


def _without(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Fields that nothing read have gone."""
    return lambda fields: {name: value for name, value in fields.items() if name not in names}


def _only(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The others have gone."""
    return lambda fields: {name: fields[name] for name in names}


def _renamed(old: str, new: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A field has another name."""
    return lambda fields: {new if name == old else name: value for name, value in fields.items()}


def _window_spec(fields: dict[str, Any]) -> WindowSpec:
    """One class stood for all kinds of windows."""
    length, until, kind = fields["length"], fields["until"], fields["kind"]
    slide = _slide(fields, by_rows=kind in ("rows", "partitioned"))
    common = {"internal": fields["internal"], "slide": slide, "archive": fields["archive"]}
    match kind:
        case "time":
            return Time(length, until, fields["calendar"], **common)
        case "now":
            return Now(**common)
        case "rows":
            return Rows(length, until, **common)
        case "partitioned":
            return Partitioned(length, until, fields["partition"], **common)
        case "unbounded":
            return Unbounded(**common)
        case "landmark":
            return Landmark(fields["since"], **common)
    raise ValueError(f"there is no window of kind {kind}")


def _slide(fields: dict[str, Any], by_rows: bool) -> Slide | None:
    every = fields["slide"]
    return (
        None
        if every is None
        else Slide(every, by_rows, fields["align"], fields["zone"], fields["slide_calendar"])
    )


def _output(fields: dict[str, Any]) -> dict[str, Any]:
    """A window stood for its SLIDE."""
    window = fields["slide"]
    return fields | {"slide": None if window is None else window.slide}


def _beat(fields: dict[str, Any]) -> dict[str, Any]:
    """A window stood for its SLIDE, under another name."""
    kept = {name: value for name, value in fields.items() if name != "beat"}
    return kept | {"slide": fields["beat"].slide or NO_SLIDE}


def _queue(key: str, batches: Iterable[Any]) -> Any:
    """A queue of batches, which each class that has one kept in its own way."""
    from dsms.state.queue import BatchQueue

    batches = deque(batches)
    return BatchQueue(key, batches, sum(map(len, batches)))  # type: ignore[arg-type]


def _stream_source(fields: dict[str, Any]) -> dict[str, Any]:
    return {**_without("waiting")(fields), "queue": _queue("ts", fields["queue"])}


def _held(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        **fields,
        "queue": _queue("ts" if fields["numbers"] is None else "number", fields["queue"]),
    }


def _to_archive(fields: dict[str, Any]) -> dict[str, Any]:
    return {"queue": _queue("mark", fields["batches"]), "nbytes": fields["nbytes"]}


def _historical(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, "waiting": _queue("ts", fields["waiting"])}


def _sizes_last(fields: dict[str, Any]) -> dict[str, Any]:
    """The size of a node's tree stood third among its columns, before the links and the luck."""
    return {**fields, "nodes": np.ascontiguousarray(fields["nodes"][:, [0, 1, 3, 4, 5, 2]])}


def _tape(fields: dict[str, Any]) -> dict[str, Any]:
    """All cells were one block."""
    from dsms.synopses.tape import Block

    block = Block(*(fields[name] for name in ("origin", "state", "group", "used")))
    address = block.origin + fields["dead"]
    return {"algebra": fields["algebra"], "blocks": [block], "address": address}


def _valued(fields: dict[str, Any]) -> dict[str, Any]:
    """Rows were places of a hash table, some free."""
    from dsms.aggregates.parts.valued import Valued

    values, table = Valued(), fields["table"]
    values.take(np.ascontiguousarray(table[(table[:, 0] >= 0) & (table[:, 3] > 0)]))
    return {**_without("table", "used")(fields), "values": values}


def _episodes(fields: dict[str, Any]) -> dict[str, Any]:
    """Rows were chained from the first one of an episode to the last."""
    from dsms.state.vec import Vec, Vec2

    extra = fields["store"].extra
    link = extra.pop("link").view
    before, last = Vec(), Vec2()
    before.extend_fill(len(link), -1)
    linked = np.flatnonzero(link >= 0)
    before.view[link[linked]] = linked
    extra["before"] = before
    last.extend(fields["tail"].view)
    last.view[:, 1] = fields["size"].view
    return {**_without("head", "tail", "size")(fields), "last": last}


UPGRADES: dict[tuple[str, int], Callable[[dict[str, Any]], Any]] = {
    ("aggregate.distinct", 1): _valued,
    ("aggregate.topk.top_k", 1): _valued,
    ("archiving.archiving", 1): _without("landed_files"),
    ("archiving.waiting", 1): _to_archive,
    ("boundaries.deaths", 1): _only("spec"),  # the rest is learned anew
    ("ids.id_index", 1): _without("table", "used"),  # it is made anew
    ("logical.output", 1): _output,
    ("logical.window_spec", 1): _window_spec,
    ("lookup_query", 1): _beat,
    ("lookup_query", 2): _without(
        "width",
        "due",
        "until",
        "first",
        "latest",
        "reached",
        "arrivals",
        "slide",
        "reach",
        "quiet",
        "steady",
    ),
    ("matching.match_counter", 1): _without("table", "used"),
    ("periodic.fetcher", 1): _renamed("engine", "here"),
    ("periodic.lazy_op", 1): _beat,
    ("periodic_append_op", 1): _beat,
    ("periodic.scan_reader", 1): _renamed("engine", "here"),
    ("periodic_query", 1): _beat,
    ("shared.join_request", 1): _beat,
    ("shared.feed", 1): _without("newest"),
    ("shared.join_feed", 1): _without("last_born"),
    ("shared.join_feed", 2): _without("where", "newest", "predicate", "terms"),
    ("shared.join_feed.join_column", 1): _without("base", "whole_from", "chosen_for", "widths"),
    ("shared.request", 1): _beat,
    ("sources.stream_source", 1): _stream_source,
    ("aggregate.treap.multisets", 1): _sizes_last,
    ("synopsis.coded.words", 1): _words,
    ("synopsis.tape", 1): _tape,
    ("timed.held", 1): _held,
    ("window.historical_window_op", 1): _historical,
    ("window_episodes.gaps_window_op", 1): _episodes,
    ("window_episodes.session_window_op", 1): _episodes,
    ("window_episodes.when_window_op", 1): _episodes,
}
