"""Logs of a network monitor: SYNTHETIC ones.

Hosts with Zipf-like popularity (the first is a gateway that stands for many) look names up, connect
and shake hands; one host tries what it finds, and every now and then there is an alarm.  Nothing in
it was measured anywhere.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SECOND = 1_000_000  # µs
BEGIN = 1_709_294_400 * SECOND  # 2024-03-01 12:00:00 UTC
HOSTS, PROBER = 40, "10.66.6.6"

Logs = dict[str, pa.Table]


def synthetic(seconds: int, rate: int, seed: int = 7) -> Logs:
    """Logs of so many seconds and connections a second, each in order of time."""
    rng = np.random.default_rng(seed)
    n = seconds * rate
    ts = np.sort(rng.integers(0, seconds * SECOND, n)) + BEGIN
    share = 1 / np.arange(1, HOSTS + 1)
    hosts = [f"10.0.{i >> 8}.{i & 255}" for i in range(HOSTS)]
    who = np.array(hosts)[rng.choice(HOSTS, n, p=share / share.sum())]
    probing = rng.random(n) < 0.02
    who[probing] = PROBER
    uid = np.array([f"C{i:07d}" for i in range(n)])
    failed = np.where(probing, rng.random(n) < 0.7, rng.random(n) < 0.03)
    port = np.where(probing, rng.integers(1, 1024, n), rng.choice([80, 443, 53, 22], n))
    name = np.array([f"site{i}.example" for i in rng.zipf(1.4, n) % 500])
    tls, web = rng.random(n) < 0.6, rng.random(n) < 0.4
    alarm = rng.random(n) < 0.1 / rate
    return {
        "conn": _log(ts, uid=uid, host=who, port=port, state=np.where(failed, "REJ", "SF")),
        "dns": _log(_later(rng, ts, 0.05), uid=uid, host=who, query=name),
        "ssl": _log(_later(rng, ts, 0.3), tls, uid=uid, host=who, server_name=name,
                    established=~failed),
        "http": _log(_later(rng, ts, 20), tls & web, uid=uid, host=who,
                     method=np.where(rng.random(n) < 0.8, "GET", "POST"),
                     status=np.where(failed, 500, 200)),
        "notice": _log(ts, alarm, host=who, note=np.where(probing, "Scan::Port", "SSL::Expired")),
    }  # a table  # fmt: skip


def _later(rng: np.random.Generator, ts: np.ndarray, seconds: float) -> np.ndarray:
    """Written a while after."""
    return ts + rng.exponential(seconds * SECOND, len(ts)).astype(np.int64)


def _log(ts: np.ndarray, some: np.ndarray | None = None, **columns: np.ndarray) -> pa.Table:
    """Those lines in order of time."""
    at = np.arange(len(ts)) if some is None else np.flatnonzero(some)
    at = at[np.argsort(ts[at], kind="stable")]
    return pa.table({**{name: c[at] for name, c in columns.items()}, "ts": ts[at]})
