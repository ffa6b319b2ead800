"""A SYNTHETIC wide-area TCP connection trace in place of LBL-CONN-7, which can't be had any more.

It has the properties that Golab 2006, §3.6.1-3.6.4 gives or leans on, and no others:
  - links (the trace split by destination), each with one tuple per time unit on average; a time
    unit is a second here;
  - duration, protocol, payload size, source and destination of each connection;
  - 1,647 source addresses with Zipf-like popularity; telnet ten times as popular as ftp;
  - a join of two links over ftp has about as many results as a link's window has tuples (at 200,000
    time units), over telnet ten times as many: telnet is ten times as frequent but spread over more
    sources;
  - some ten source-destination pairs for each source;
  - sources differ in how much they use each link, so that a part of the negation's results end
    before their time.

Protocols are port numbers (21 ftp, 23 telnet, 25 smtp, 80 http, 119 nntp), addresses are numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

SOURCES = 1647
DESTINATIONS = 400  # of each link
PEERS = 16  # destinations of one source on one link, at most
FTP, TELNET = 21, 23
PORTS = (FTP, TELNET, 25, 80, 119)
SHARES = (0.01, 0.10, 0.45, 0.14, 0.30)
STEEPNESS = (1.6, 0.5, 0.9, 0.8, 1.0)  # Zipf exponent of a source's rank, by protocol
UNIT = 1_000_000  # µs of a time unit

SCHEMA = "ts TIMESTAMP, duration FLOAT, protocol INT, size INT, src INT, dst INT"


@dataclass(frozen=True, slots=True)
class Trace:
    """links: one batch per link, by ts (int64 µs from 0 on); unit: µs between two tuples of a link
    on average; popular, selective: the values of `protocol` that stand for telnet and ftp; about:
    what the trace is."""

    links: tuple[pa.RecordBatch, ...]
    unit: int
    popular: int
    selective: int
    about: str

    @property
    def span(self) -> int:
        """Instant (µs) up to which all links have tuples."""
        return min(int(link.column("ts")[-1].as_py()) for link in self.links)


def synthetic(units: int, links: int = 3, seed: int = 2006) -> Trace:
    """A trace of so many time units."""
    rng = np.random.default_rng(seed)
    use = _use_of_links(links, rng)
    batches = tuple(_link(units, k, use[:, k], rng) for k in range(links))
    about = (
        f"synthetic (not the LBL trace): {links} links, {units:,} time units, {SOURCES:,} "
        f"sources, seed {seed}"
    )
    return Trace(batches, UNIT, TELNET, FTP, about)


def _use_of_links(links: int, rng: np.random.Generator) -> np.ndarray:
    """How much each source uses each link, float[SOURCES, links]: the most popular use all of them,
    the others have a home link and stray to each of the rest at a rate of their own, anything from
    a thousandth to all of it."""
    use = 10.0 ** rng.uniform(-3, 0, (SOURCES, links))
    use[np.arange(SOURCES), rng.integers(0, links, SOURCES)] = 1.0
    use[: SOURCES // 20] = 1.0
    return use


def _link(units: int, link: int, use: np.ndarray, rng: np.random.Generator) -> pa.RecordBatch:
    n = int(rng.poisson(units))
    ts = np.sort(rng.integers(0, units * UNIT, n))
    protocol = rng.choice(np.array(PORTS), n, p=SHARES)
    src = np.empty(n, np.int64)
    for port, steepness in zip(PORTS, STEEPNESS, strict=True):
        rows = np.flatnonzero(protocol == port)
        weight = ranks(port) ** -steepness * use
        src[rows] = rng.choice(SOURCES, len(rows), p=weight / weight.sum())
    nth = rng.choice(PEERS, n, p=_zipf(PEERS, 0.9))
    dst = link * DESTINATIONS + (src * 7919 + nth * 104729) % DESTINATIONS
    columns = {
        "ts": ts,
        "duration": np.round(rng.lognormal(1.0, 1.8, n), 3),
        "protocol": protocol.astype(np.int64),
        "size": rng.lognormal(7.0, 2.0, n).astype(np.int64),
        "src": src,
        "dst": dst,
    }
    return pa.RecordBatch.from_pydict({k: pa.array(v) for k, v in columns.items()})


def ranks(port: int) -> np.ndarray:
    """How sources rank in a protocol, float[SOURCES] from 1 on: alike in all, but ftp has users of
    its own."""
    rank = np.arange(1, SOURCES + 1.0)
    return np.random.default_rng(FTP).permutation(rank) if port == FTP else rank


def _zipf(n: int, steepness: float) -> np.ndarray:
    weight = np.arange(1, n + 1.0) ** -steepness
    return weight / weight.sum()
