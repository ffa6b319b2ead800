"""Packets on two links: a SYNTHETIC trace, or one from a file.

The synthetic one has what the questions are about and no more: sources and destinations with
Zipf-like popularity, five protocols with packet sizes of their own, one source that scans ports,
one that floods a destination.  Nothing in it was measured anywhere.  A file is split into two links
by destination; see `from_file`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

LINKS = ("north", "south")
SECOND = 1_000_000  # µs
BEGIN = 1_709_294_400 * SECOND  # 2024-03-01 12:00:00 UTC
LONGEST = 20 * 60 * SECOND  # a trace from a file that lasts longer is replayed faster

SOURCES, DESTINATIONS = 400, 2000
PROTOCOLS = ("http", "https", "dns", "smtp", "ssh")
PORTS = np.array([80, 443, 53, 25, 22])
SHARES = (0.35, 0.35, 0.15, 0.1, 0.05)
SIZES = np.array([6.3, 6.6, 4.8, 6.0, 5.0])  # mean of the logarithm of bytes
SCANNER, FLOODER = "10.66.6.6", "10.99.9.9"

NAMES = {
    "t": ("ts", "t", "time", "timestamp"),
    "src": ("src", "source", "host", "client", "id.orig_h", "orig_h", "orig_host", "local_host"),
    "dst": ("dst", "destination", "path", "url", "id.resp_h", "resp_h", "resp_host", "remote_host"),
    "port": ("port", "dst_port", "id.resp_p", "resp_p", "status"),
    "protocol": ("protocol", "service", "method", "proto"),
    "bytes": ("bytes", "size", "length", "resp_bytes", "bytes_resp"),
}


@dataclass(frozen=True, slots=True)
class Trace:
    """links: name -> packets by time;  begin, end: instants in µs, whole seconds, all packets in
    [begin, end)."""

    about: str
    begin: int
    end: int
    links: dict[str, pa.Table]

    @property
    def packets(self) -> int:
        return sum(len(rows) for rows in self.links.values())

    def sites(self) -> dict[str, str]:
        """Busy destinations and the sites they stand at."""
        counts = pc.value_counts(
            pa.chunked_array([c for rows in self.links.values() for c in rows["dst"].chunks])
        )
        found = sorted(counts.to_pylist(), key=lambda item: (-item["counts"], item["values"]))[:200]
        return {item["values"]: ("oak", "elm", "ash", "yew")[k % 4] for k, item in enumerate(found)}


def synthetic(seconds: int, rate: int, seed: int = 2006) -> Trace:
    """So many seconds with about `rate` packets a second on each link."""
    rng = np.random.default_rng(seed)
    links = {name: _link(k, seconds, rate, rng) for k, name in enumerate(LINKS)}
    about = (
        f"a synthetic trace: {seconds} s of two links with about {rate} packets a second "
        f"each, seed {seed}"
    )
    return Trace(about, BEGIN, BEGIN + seconds * SECOND, links)


def _link(link: int, seconds: int, rate: int, rng: np.random.Generator) -> pa.Table:
    n = int(rng.poisson(seconds * rate))
    kind = rng.choice(len(PORTS), n, p=SHARES)
    src = rng.choice(SOURCES, n, p=_zipf(SOURCES, 1.1))
    dst = rng.choice(DESTINATIONS, n, p=_zipf(DESTINATIONS, 0.9))
    size = np.clip(rng.lognormal(SIZES[kind], 1.0), 40, 1500).astype(np.int64)
    sources = np.array([f"10.0.{k // 250}.{k % 250 + 1}" for k in range(SOURCES)], object)
    hosts = np.array(
        [f"192.168.{link * 8 + k // 250}.{k % 250 + 1}" for k in range(DESTINATIONS)], object
    )
    usual = _table(
        rng.integers(0, seconds * SECOND, n),
        sources[src],
        hosts[dst],
        PORTS[kind],
        np.array(PROTOCOLS, object)[kind],
        size,
    )
    special = _scan(seconds, rng) if link == 0 else _flood(seconds, rng)
    return pa.concat_tables([usual, special]).sort_by("t").combine_chunks()


def _scan(seconds: int, rng: np.random.Generator) -> pa.Table:
    """One source tries 150 ports of one host, for half a minute, two fifths into the trace."""
    n = 150
    at = int(seconds * 0.4) * SECOND + rng.integers(0, min(30, seconds // 4) * SECOND, n)
    return _table(
        at,
        _same(SCANNER, n),
        _same("192.168.0.7", n),
        np.arange(1000, 1000 + n),
        _same("tcp", n),
        np.full(n, 40),
    )


def _flood(seconds: int, rng: np.random.Generator) -> pa.Table:
    """One source sends large packets to one host, for a third of a minute, seven tenths into the
    trace."""
    n = 800
    at = int(seconds * 0.7) * SECOND + rng.integers(0, min(20, seconds // 4) * SECOND, n)
    size = rng.integers(50_000, 65_000, n)
    return _table(
        at, _same(FLOODER, n), _same("192.168.8.1", n), np.full(n, 443), _same("https", n), size
    )


def _same(value: str, n: int) -> np.ndarray:
    return np.full(n, value, object)


def _table(
    at: np.ndarray,
    src: np.ndarray,
    dst: np.ndarray,
    port: np.ndarray,
    protocol: np.ndarray,
    size: np.ndarray,
) -> pa.Table:
    columns = [
        pa.array(c) for c in (src, dst, port.astype(np.int64), protocol, size.astype(np.int64))
    ]
    return pa.table(
        [*columns, pa.array(BEGIN + at, pa.timestamp("us"))],
        ["src", "dst", "port", "protocol", "bytes", "t"],
    )


def _zipf(n: int, steepness: float) -> np.ndarray:
    weight = np.arange(1, n + 1.0) ** -steepness
    return weight / weight.sum()


# ---------------------------------------------------------------- from a file


def from_file(path: str) -> Trace:
    """A CSV file (also .gz) with at least times and sources; columns are found by their names
    (`NAMES`).

    Half of the destinations make the north link, the others the south link.  A trace that lasts
    longer than twenty minutes is replayed so much faster that it lasts twenty.  Raises SystemExit
    if it can't be read."""
    try:
        table = csv.read_csv(path)
    except (OSError, pa.ArrowException) as problem:
        raise SystemExit(f"cannot read the trace {path}: {problem}") from None
    lower = {name.casefold(): name for name in table.column_names}
    found = {role: lower[n] for role, names in NAMES.items() for n in reversed(names) if n in lower}
    if missing := {"t", "src"} - found.keys():
        raise SystemExit(
            f"{path} has no column that looks like {' or '.join(NAMES[missing.pop()])}"
        )
    table = table.filter(pc.and_(pc.is_valid(table[found["t"]]), pc.is_valid(table[found["src"]])))
    order = np.argsort(table[found["t"]].cast(pa.float64()).to_numpy(), kind="stable")
    table = table.take(pa.array(order))
    at, faster = _instants(table[found["t"]].cast(pa.float64()).to_numpy())
    rows = pa.table(
        {
            "src": _text(table, found.get("src"), "?"),
            "dst": _text(table, found.get("dst"), "?"),
            "port": _number(table, found.get("port")),
            "protocol": _text(table, found.get("protocol"), "?"),
            "bytes": _number(table, found.get("bytes")),
            "t": pa.array(BEGIN + at, pa.timestamp("us")),
        }
    )
    home = (
        pc.dictionary_encode(rows["dst"]).combine_chunks().indices.to_numpy(zero_copy_only=False)
        % 2
    )
    links = {
        name: rows.filter(pa.array(home == k)).combine_chunks() for k, name in enumerate(LINKS)
    }
    about = f"{Path(path).name}: {len(rows)} rows" + (
        f", told {faster:.3g} times as fast as they came" if faster > 1 else ""
    )
    return Trace(about, BEGIN, BEGIN + (int(at[-1]) // SECOND + 1) * SECOND, links)


def _instants(numbers: np.ndarray) -> tuple[np.ndarray, float]:
    """µs from the first row on, and how many times faster than they were."""
    largest = float(np.abs(numbers).max())
    # seconds, milliseconds, microseconds
    scale = SECOND if largest < 1e11 else 1000 if largest < 1e14 else 1
    at = np.round((numbers - numbers[0]) * scale).astype(np.int64)
    faster = max(1.0, float(at[-1]) / LONGEST)
    return (at / faster).astype(np.int64), faster


def _text(table: pa.Table, name: str | None, otherwise: str) -> pa.ChunkedArray | pa.Array:
    if name is None:
        return pa.array(_same(otherwise, len(table)))
    return pc.fill_null(table[name].cast(pa.string()), otherwise)


def _number(table: pa.Table, name: str | None) -> pa.ChunkedArray | pa.Array:
    if name is None:
        return pa.array(np.zeros(len(table), np.int64))
    column = table[name]
    if pa.types.is_string(column.type):  # "-" stands for nothing in some logs
        column = pc.if_else(pc.match_substring_regex(column, r"^\d+$"), column, None)
    return pc.fill_null(column.cast(pa.float64()), 0).cast(pa.int64(), safe=False)
