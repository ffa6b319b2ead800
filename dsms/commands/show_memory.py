"""SHOW MEMORY: which part of the memory is whose, as the engine and the server that it runs in
account for it."""

from __future__ import annotations

from collections.abc import Iterator

from dsms.api import Rows
from dsms.commands.rows import as_rows
from dsms.commands.slices import Free, one_by_one
from dsms.running.registered import HIDDEN
from dsms.running.runtime import Runtime
from dsms.sessions import MemoryLine
from dsms.sql.types import INT, STRING


def show_memory(runtime: Runtime) -> Free[Rows]:
    """A line for each holder of each part, the largest of a part first."""
    memory, lines = runtime.settings.memory, (yield from one_by_one(held(runtime)))
    if memory is not None:
        lines += memory.lines()
        lines.append(MemoryLine("all", None, sum(line.bytes for line in lines), memory.limit))
    lines = sorted(lines, key=lambda line: (line.part, -line.bytes, line.holder or ""))
    return as_rows(
        [
            ("part", STRING, [line.part for line in lines]),
            ("holder", STRING, [line.holder for line in lines]),
            ("bytes", INT, [line.bytes for line in lines]),
            ("limit", INT, [line.limit for line in lines]),
        ]
    )


def held(runtime: Runtime) -> Iterator[MemoryLine]:
    """What the engine holds: of streams, what is kept of them by default, indices, tables,
    synopses, queries, and their results for those who resume.

    Things may come and go between two lines."""
    settings = runtime.settings
    for key, entry in list(runtime.inputs.items()):
        ring = runtime.rings.get(key)
        size = entry.nbytes() + (ring.nbytes if ring is not None else 0)
        yield MemoryLine("streams", entry.definition.name, size)
        recent = runtime.recents.streams.get(key)
        if recent is not None and recent.count:
            share = settings.retain_default_bytes
            yield MemoryLine("kept", entry.definition.name, recent.nbytes, share)
        indices = sum(index.nbytes for index, _ in runtime.indices.of(key))
        indices += sum(counts.nbytes for counts in runtime.indices.counts_of(key).values())
        indices += sum(found.nbytes for found in runtime.indices.sorted_of(key).values())
        if indices:
            yield MemoryLine("indices", entry.definition.name, indices)
    for table in list(runtime.tables.values()):
        yield MemoryLine("tables", table.definition.name, table.nbytes)
    for group in runtime.shared.all():
        name = " * ".join(runtime.inputs[side].definition.name for side in group.sides)
        yield MemoryLine("synopses", name, group.nbytes)
    for query in list(runtime.queries.values()):
        if runtime.queries.get(query.home) is not query:
            continue  # it went meanwhile
        name = query.name.rstrip(HIDDEN)
        yield MemoryLine("queries", name, query.nbytes(), query.state_limit)
        yield MemoryLine("results", query.name, query.log.nbytes, settings.result_log_bytes)
        waiting = sum(reader.pending_bytes for reader in query.readers)
        if waiting:
            yield MemoryLine("subscribers", query.name, waiting)
    if runtime.durable is not None and runtime.durable.packing.held:
        yield MemoryLine("checkpoint", None, runtime.durable.packing.held)
