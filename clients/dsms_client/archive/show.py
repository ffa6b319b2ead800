"""Archives and jobs on them as text for people.  Input are the maps that `--json` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dsms_client.shell.show import duration, instant

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


def picture(told: Fields) -> Iterator[str]:
    """An archive: its layout as a picture, what it holds, what waits to be taken over."""
    layout = told["layout"]
    lifetime = "for good" if told["lifetime"] is None else f"for {duration(told['lifetime'])}"
    by = f", clustered by {told['cluster_by']}" if told["cluster_by"] else ""
    yield f"{told['kind']} {told['name']}, kept {lifetime}{by}; in {told['folder']}"
    yield (
        f"layout {layout['generations']} x {layout['expirations']}, {layout['order']}, {layout['strategy']}, "
        f"an update every {duration(layout['every'])}"
    )
    yield ""
    yield from _grid(told["subs"], layout["generations"], layout["expirations"])
    yield ""
    yield f"index    {_upto(told['upto'])}: {_content(told)}, about {told['expired']:.0%} expired".replace("%", " %")
    waiting = told["waiting"]
    waits = f"{_content(waiting)} to be taken over" if waiting["files"] else "nothing waits"
    yield f"landing  {_upto(told['landed'])}: {waits}"
    for line in told["damaged"]:
        yield f"damaged  {line}"


def _upto(at: int | None) -> str:
    return "empty" if at is None else f"up to {instant(at)}"


def _content(told: Fields) -> str:
    return f"{plural(told['rows'], 'row')}, {size(told['bytes'])} in {plural(told['files'], 'file')}"


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


def updated(name: str, told: Fields, what: str) -> Iterator[str]:
    """What an update or a compaction did."""
    if not told["touched"] and not told["damaged"]:
        yield f"{name}: nothing to do, the index holds what landed up to {instant(told['upto'])}"
        return
    taken = f"{plural(told['taken'], 'row')} taken over, " if what == "updated" else ""
    share = percent(told["bytes_written"], told["bytes"])
    yield f"{name} {what}: {taken}{plural(told['expired'], 'row')} gone; {told['seconds']:.1f} s"
    yield (
        f"  {plural(len(told['rewritten']), 'sub-index').replace('indexs', 'indices')} of "
        f"{len(told['touched'])} touched written: {size(told['bytes_written'])}, {share} of the index"
    )
    yield f"  it holds what landed up to {instant(told['upto'])}: {plural(told['rows'], 'row')}, {size(told['bytes'])}"
    for line in told["damaged"]:
        yield f"  damaged, set aside: {line}"


def figures(told: Fields) -> str:
    """What a reading read and what it skipped."""
    all_bytes = told["bytes_read"] + told["bytes_skipped"]
    return (
        f"read {plural(told['files_read'], 'file')}, {size(told['bytes_read'])} "
        f"({percent(told['bytes_read'], all_bytes)}); skipped {plural(told['files_skipped'], 'file')}, "
        f"{size(told['bytes_skipped'])}"
    )


def scanned(told: Fields) -> Iterator[str]:
    """What a scan found."""
    when = f", from {instant(told['first'])} to {instant(told['last'])}" if told["rows"] else ""
    yield f"{plural(told['rows'], 'row')}{when}; {told['seconds']:.1f} s"
    yield figures(told)
