"""What EXPLAIN says of a SELECT that reads archives: which of their files would be read now, and what is skipped.

Nothing but manifests and the footers of landed files is looked at, and Spark is not asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsms.adhoc.archived import Needed, needed
from dsms.adhoc.reads import reads
from dsms.plan.physical import Phys
from dsms.running.archive_reads import archived_clock, archiving_of, moved_up, source_of
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.types import FOREVER
from dsms.storage.archive.explained import told

if TYPE_CHECKING:
    from dsms.engine import Engine


def reads_archive(statement: ast.SelectStatement) -> bool:
    """Whether it says ARCHIVE somewhere."""
    found = ast.walk(statement.query)
    return any(isinstance(n, ast.TableRef | ast.Window) and n.archive for n in found)


def archive_plan(engine: Engine, bound: lp.Output) -> tuple[Phys, list[str]]:
    """The plan, and the lines."""
    from dsms.commands.explain import plan_query
    from dsms.commands.leaves import instant
    from dsms.commands.select import optimized

    phys, plan = plan_query(engine, bound, ()), optimized(engine, bound)
    at = instant(engine.runtime, reads(plan).values())
    lines = ["runs on Spark, once"]
    for need in needed(plan, at, moved_up(engine.runtime)).values():
        lines += _leaf(engine, need, at)
    return phys, lines


def _leaf(engine: Engine, need: Needed, at: int) -> list[str]:
    scan, runtime = need.scan, engine.runtime
    assert scan.archive is not None
    archiving = archiving_of(runtime, scan)
    source = source_of(archiving, archiving.seam, need, at if at < FOREVER else archived_clock(runtime, scan))
    name = scan.stream.name if scan.alias == scan.stream.name else f"{scan.stream.name} AS {scan.alias}"
    return told(name, source, need.told(), scan.archive.live)
