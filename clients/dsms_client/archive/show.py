"""Archives and jobs on them as text for people.  Input are the maps that `--json` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dsms.tabular.texts import duration, instant

SHADES = " ▁▂▃▄▅▆▇█"
Fields = Mapping[str, Any]


def size(count: float) -> str:
    """Bytes for people: ``512 B``, ``98.3 KB``."""
    if count < 1000:
        return f"{count:.0f} B"
    for unit in ("KB", "MB", "GB"):
        count /= 1000
        if count < 1000:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} TB"


def plural(count: int, what: str) -> str:
    """``1 file``, ``2,000 files``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def percent(part: float, whole: float) -> str:
    """A share of something, ``12 %``."""
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


def picture(report: Fields) -> Iterator[str]:
    """An archive: its layout as a picture, what it holds, what waits to be taken over."""
    layout = report["layout"]
    lifetime = "for good" if report["lifetime"] is None else f"for {duration(report['lifetime'])}"
    by = f", clustered by {report['cluster_by']}" if report["cluster_by"] else ""
    yield f"{report['kind']} {report['name']}, kept {lifetime}{by}; in {report['folder']}"
    yield (
        f"layout {layout['generations']} x {layout['expirations']}, {layout['order']}, "
        f"{layout['strategy']}, an update every {duration(layout['every'])}"
    )
    yield ""
    yield from _grid(report["subs"], layout["generations"], layout["expirations"])
    yield ""
    yield (
        f"index    {_upto(report['upto'])}: {_content(report)}, about "
        f"{report['expired']:.0%} expired"
    ).replace("%", " %")
    waiting = report["waiting"]
    waits = f"{_content(waiting)} to be taken over" if waiting["files"] else "nothing waits"
    yield f"landing  {_upto(report['landed'])}: {waits}"
    for line in report["damaged"]:
        yield f"damaged  {line}"


def _upto(at: int | None) -> str:
    return "empty" if at is None else f"up to {instant(at)}"


def _content(report: Fields) -> str:
    return (
        f"{plural(report['rows'], 'row')}, {size(report['bytes'])} in "
        f"{plural(report['files'], 'file')}"
    )


def _grid(subs: list[Fields], generations: int, expirations: int) -> Iterator[str]:
    """A line for each partition of insertion times, a column for each of expiration times."""
    most = max((s["bytes"] for s in subs), default=0)
    cells = [_cell(s, most) for s in subs]
    width = max(map(len, cells))
    heads = [f"expiring {e}" for e in range(expirations)]
    yield "            " + "  ".join(h.ljust(width) for h in heads).rstrip()
    for g in range(generations):
        row = cells[g * expirations : (g + 1) * expirations]
        yield f"inserted {g:<2} " + "  ".join(c.ljust(width) for c in row).rstrip()


def _cell(sub: Fields, most: int) -> str:
    shade = SHADES[-(-(len(SHADES) - 1) * sub["bytes"] // most)] if most else " "
    return f"{shade} {sub['rows']:,} rows {size(sub['bytes'])}"


def updated(name: str, report: Fields, what: str) -> Iterator[str]:
    """What an update or a compaction did."""
    if not report["touched"] and not report["damaged"]:
        yield f"{name}: nothing to do, the index holds what landed up to {instant(report['upto'])}"
        return
    taken = f"{plural(report['taken'], 'row')} taken over, " if what == "updated" else ""
    share = percent(report["bytes_written"], report["bytes"])
    yield (
        f"{name} {what}: {taken}{plural(report['expired'], 'row')} gone; {report['seconds']:.1f} s"
    )
    yield (
        f"  {plural(len(report['rewritten']), 'sub-index').replace('indexs', 'indices')} of "
        f"{len(report['touched'])} touched written: {size(report['bytes_written'])}, {share} of "
        "the index"
    )
    yield (
        f"  it holds what landed up to {instant(report['upto'])}: "
        f"{plural(report['rows'], 'row')}, {size(report['bytes'])}"
    )
    for line in report["damaged"]:
        yield f"  damaged, set aside: {line}"


def figures(report: Fields) -> str:
    """What a reading read and what it skipped."""
    all_bytes = report["bytes_read"] + report["bytes_skipped"]
    return (
        f"read {plural(report['files_read'], 'file')}, {size(report['bytes_read'])} "
        f"({percent(report['bytes_read'], all_bytes)}); skipped "
        f"{plural(report['files_skipped'], 'file')}, {size(report['bytes_skipped'])}"
    )


def scanned(report: Fields) -> Iterator[str]:
    """What a scan found."""
    when = (
        f", from {instant(report['first'])} to {instant(report['last'])}" if report["rows"] else ""
    )
    yield f"{plural(report['rows'], 'row')}{when}; {report['seconds']:.1f} s"
    yield figures(report)
