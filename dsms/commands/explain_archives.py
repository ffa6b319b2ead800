"""What EXPLAIN says of a SELECT that reads archives: which of their files would be read now, and
what is skipped.

Nothing but manifests and the footers of landed files is looked at, and Spark is not asked.
"""

from __future__ import annotations

from dsms.commands.select import optimized
from dsms.oneshot.pushdown import Needed, needed
from dsms.oneshot.reads import reads
from dsms.plan.physical import Phys
from dsms.reads.archives import archived_clock, archiving_of, is_here, moved_up, source_of
from dsms.reads.leaves import instant
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.types import FOREVER
from dsms.storage.archive.explained import explain_lines
from dsms.storage.archive.job import ArchiveSource


def reads_archive(statement: ast.SelectStatement) -> bool:
    """Whether it says ARCHIVE somewhere."""
    found = ast.walk(statement.query)
    return any(isinstance(n, ast.TableRef | ast.Window) and n.archive for n in found)


def archive_plan(runtime: Runtime, bound: lp.Output, by: str = "auto") -> tuple[Phys, list[str]]:
    """The plan, and the lines."""
    phys, plan = runtime.plan(bound), optimized(runtime.planner(), bound)
    at = instant(runtime, reads(plan).values())
    wanted = needed(plan, at, moved_up(runtime))
    sources = {leaf: _source(runtime, need, at) for leaf, need in wanted.items()}
    here = is_here(runtime, sources, by)
    lines = ["runs on DuckDB in this process, once" if here else "runs on Spark, once"]
    for leaf, need in wanted.items():
        lines += _leaf(need, sources[leaf])
    return phys, lines


def _source(runtime: Runtime, need: Needed, at: int) -> ArchiveSource:
    archiving = archiving_of(runtime, need.scan)
    known = at if at < FOREVER else archived_clock(runtime, need.scan)
    return source_of(archiving, archiving.seam, need, known)


def _leaf(need: Needed, source: ArchiveSource) -> list[str]:
    scan = need.scan
    assert scan.archive is not None
    name = (
        scan.stream.name
        if scan.alias == scan.stream.name
        else f"{scan.stream.name} AS {scan.alias}"
    )
    return explain_lines(name, source, need.described(), scan.archive.live)
