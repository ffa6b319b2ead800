"""Any trace file as links: CSV (also .gz), Parquet; columns are recognised by name, or named on the
command line.

time          ts, time, timestamp, ...: seconds, milliseconds or microseconds (recognised by size),
              or dates
source        src, source, host, client, ...           destination   dst, destination, path, url,
              remote_host, ...
protocol      protocol, service, ... ; where there is a path, the kind of file it names; else
              nothing selects
size          bytes, size, length, ...                 duration      duration, ...

The trace is split by destination into links of about equal rate, as in Golab 2006, §3.6.1.
"telnet" is its most frequent protocol, "ftp" the one whose frequency is nearest to a tenth of that.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from tests.benchmarks.trace import Trace

KNOWN = {
    "time": ("ts", "time", "timestamp", "ts_ms", "t"),
    "source": ("src", "source", "source_ip", "host", "client", "local_host", "orig", "ip"),
    "destination": ("dst", "destination", "path", "url", "remote_host", "resp", "query", "server"),
    "protocol": ("protocol", "service", "type", "proto", "method"),
    "size": ("size", "bytes", "length", "bytes_orig"),
    "duration": ("duration", "duration_s"),
}
NEEDED = ("time", "source", "destination")


def load(file: str, named: dict[str, str] | None = None, links: int = 3) -> Trace:
    """The trace in a file.  `named` maps the roles above to columns.  Raises SystemExit with what
    is missing."""
    table = _read(file)
    columns = _roles(table.column_names, named or {}, file)
    table = table.filter(pc.and_(*(pc.is_valid(table[columns[k]]) for k in ("time", "source"))))
    ts = _instants(table[columns["time"]])
    order = np.argsort(ts, kind="stable")
    table, ts = table.take(pa.array(order)), ts[order] - ts[order[0]]
    protocol, popular, selective = _protocol(table, columns)
    dst = _codes(table[columns["destination"]])
    values = {
        "duration": _numbers(table, columns.get("duration"), float),
        "protocol": protocol,
        "size": _numbers(table, columns.get("size"), int),
        "src": _codes(table[columns["source"]]),
        "dst": dst,
    }
    link = _balanced(dst, links)
    batches = tuple(_link(ts, values, np.flatnonzero(link == k)) for k in range(links))
    unit = max(1, int(ts[-1]) * links // len(ts))
    about = (
        f"{Path(file).name}: {len(ts):,} tuples as {links} links, a time unit being "
        f"{unit / 1e6:.3g} s"
    )
    return Trace(batches, unit, popular, selective, about)


def _read(file: str) -> pa.Table:
    try:
        if file.endswith((".parquet", ".pq")):
            return pyarrow.parquet.read_table(file)
        return pyarrow.csv.read_csv(file)  # decompresses by the file's ending
    except (OSError, pa.ArrowException) as problem:
        raise SystemExit(f"cannot read the trace {file}: {problem}") from None


def _roles(present: list[str], named: dict[str, str], file: str) -> dict[str, str]:
    lower = {name.casefold(): name for name in present}
    found = {role: lower[n] for role, names in KNOWN.items() for n in reversed(names) if n in lower}
    found.update(named)
    lost = [role for role in NEEDED if found.get(role) not in present]
    lost += [role for role, name in named.items() if name not in present or role not in KNOWN]
    if lost:
        have = ", ".join(present)
        raise SystemExit(
            f"{file}: which column is the {lost[0]}?  Say --columns {lost[0]}=NAME; there are "
            f"{have}"
        )
    return found


def _instants(column: pa.ChunkedArray) -> np.ndarray:
    if pa.types.is_temporal(column.type):
        return column.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    numbers = column.cast(pa.float64()).to_numpy()
    largest = float(np.abs(numbers).max())
    scale = 1e6 if largest < 1e11 else 1e3 if largest < 1e14 else 1.0
    return np.round(numbers * scale).astype(np.int64)


def _protocol(table: pa.Table, columns: dict[str, str]) -> tuple[np.ndarray, int, int]:
    """Codes, the most frequent one, and the one nearest to a tenth of it."""
    if columns["destination"].casefold() in ("path", "url"):
        path = pc.utf8_lower(table[columns["destination"]].cast(pa.string()))
        kind = pc.struct_field(pc.extract_regex(path, r"\.(?P<kind>[a-z]{2,5})$"), "kind")
        codes = _codes(kind)
    elif "protocol" in columns:
        codes = _codes(table[columns["protocol"]])
    else:
        codes = np.zeros(len(table), np.int64)
    counts = np.bincount(codes)
    popular = int(counts.argmax())
    return codes, popular, int(np.abs(counts - counts[popular] / 10).argmin())


def _codes(column: pa.ChunkedArray) -> np.ndarray:
    """Dense numbers for values; NULL is a value."""
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    whole = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.unify_dictionaries().combine_chunks()
    return whole.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _numbers(table: pa.Table, name: str | None, kind: type) -> np.ndarray:
    if name is None:
        return np.zeros(len(table), kind)
    return pc.fill_null(table[name].cast(pa.float64()), 0.0).to_numpy().astype(kind)


def _balanced(dst: np.ndarray, links: int) -> np.ndarray:
    """The link of each tuple: destinations, busiest first, go to the link with the fewest tuples so
    far."""
    counts = np.bincount(dst)
    load, home = np.zeros(links, np.int64), np.zeros(len(counts), np.int64)
    for d in np.argsort(-counts, kind="stable"):
        home[d] = load.argmin()
        load[home[d]] += counts[d]
    return home[dst]


def _link(ts: np.ndarray, values: dict[str, np.ndarray], rows: np.ndarray) -> pa.RecordBatch:
    columns = {"ts": ts[rows], **{k: v[rows] for k, v in values.items()}}
    return pa.RecordBatch.from_pydict({k: pa.array(v) for k, v in columns.items()})
