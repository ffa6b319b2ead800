"""A whole scenario from one seed: what is declared, what is sent, and which faults come when."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.faults.sim.disk import WEATHERS
from tests.faults.sim.net import Trouble

VALUES = {"INT": "{n}", "FLOAT": "{n}.5", "STRING": "'x{n}'", "DECIMAL(9,2)": "{n}.25"}
KINDS = ("crash", "crash within", "weather", "clock", "net", "latency")
SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Stream:
    """`stamped`: on system time."""

    name: str
    durability: str
    value: str
    slack: int
    stamped: bool = False

    @property
    def sql(self) -> str:
        durable = f"WITH (durability = {self.durability})"
        if self.stamped:
            return f"CREATE STREAM {self.name} (n INT, k STRING, v {self.value}) {durable}"
        slack = f" SLACK {self.slack} s" if self.slack else ""
        return (
            f"CREATE STREAM {self.name} (n INT, k STRING, v {self.value}, t TIMESTAMP) TIMESTAMP "
            f"BY t{slack} SUBWINDOW 20 s RETAIN 1 DAY {durable}"
        )


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    sql: str
    streams: tuple[str, ...]

    @property
    def declared(self) -> str:
        return f"CREATE QUERY {self.name} AS {self.sql} WITH (result_log = 1000000)"


@dataclass(frozen=True, slots=True)
class Fault:
    """kind   crash (`how`, at `at`; `number` starts die, too); crash within (`number` operations on
    files from then on); weather (of the disk, for `seconds`); clock (jumps by `seconds`, or
    stops for so long); net (a trouble of the next connection, `number` bytes into it);
    latency (all connections are slow for `seconds`)
    """

    kind: str
    at: float
    how: str = ""
    number: int = 0
    seconds: float = 0.0

    def trouble(self) -> Trouble:
        kind, way = self.how.split()
        return Trouble(kind, way, self.number)


@dataclass(frozen=True, slots=True)
class Scenario:
    seed: int
    streams: tuple[Stream, ...]
    queries: tuple[Query, ...]
    frames: dict[str, tuple[tuple[float, tuple[int, ...]], ...]]  # when, and the numbers of rows
    under_way: int
    checkpoint_bytes: int
    faults: tuple[Fault, ...]

    @property
    def length(self) -> float:
        """Seconds."""
        return max(frames[-1][0] for frames in self.frames.values())


def scenario(seed: int) -> Scenario:
    """The scenario of that seed."""
    random = Random(f"scenario {seed}")
    streams = _streams(random)
    frames = {stream.name: _frames(random, stream) for stream in streams}
    length = max(f[-1][0] for f in frames.values())
    return Scenario(
        seed,
        streams,
        tuple(_queries(random, streams)),
        frames,
        random.choice((1, 1, 3)),
        random.choice((1, 500, 3000, 1 << 20)),
        tuple(sorted(_faults(random, length), key=lambda fault: fault.at)),
    )


def _streams(random: Random) -> tuple[Stream, ...]:
    count = random.choice((1, 2, 2, 3))
    made = [
        Stream(
            "abc"[i],
            random.choice(("sync", "sync", "interval", "interval", "none")),
            random.choice(list(VALUES)),
            random.choice((0, 0, 3)),
        )
        for i in range(count)
    ]
    if random.random() < 0.4:
        made.append(Stream("z", random.choice(("sync", "interval")), "INT", 0, stamped=True))
    return tuple(made)


def _queries(random: Random, streams: tuple[Stream, ...]) -> list[Query]:
    out = []
    for s in streams:
        if s.stamped:
            out.append(Query("stamps", f"SELECT n FROM {s.name}", (s.name,)))
            continue
        width, slide = random.choice((4, 10, 30)), random.choice((2, 5))
        whole = [
            f"SELECT n, k, v FROM {s.name}",
            f"SELECT k, COUNT(*) AS c, MAX(v) AS m FROM {s.name} [RANGE {width} s] GROUP BY k",
            f"SELECT k, COUNT(*) AS c FROM {s.name} [RANGE {width * slide} s SLIDE {slide} s] "
            "GROUP BY k ORDER BY c DESC, k",
            f"SELECT DISTINCT k FROM {s.name} [RANGE {width} s]",
            f"SELECT n FROM {s.name} [ROWS 7 SLIDE 5]",
            f"SELECT s.n, r.w FROM {s.name} [RANGE {width} s] s, r WHERE s.k = r.k",
        ]
        for j, sql in enumerate(random.sample(whole, random.randint(1, 2))):
            out.append(Query(f"q{s.name}{j}", sql, (s.name,)))
    plain = [s for s in streams if not s.stamped]
    if len(plain) > 1:
        a, b = random.sample(plain, 2)
        sql = f"SELECT x.n, y.n AS m FROM {a.name} [RANGE 6 s] x, {b.name} [RANGE 3 s] y " \
              "WHERE x.k = y.k"  # a statement  # fmt: skip
        out.append(Query("pairs", sql, (a.name, b.name)))
    return out


def _frames(random: Random, stream: Stream) -> tuple[tuple[float, tuple[int, ...]], ...]:
    at, number, out = 0.0, 0, []
    for _ in range(random.randint(5, 25)):
        at += random.choice((0.0, 0.01, 0.3, 2.0)) * random.random()
        size = random.choice((1, 1, 3, 8, 40))
        rows = list(range(number, number + size))
        if stream.slack and random.random() < 0.5:
            rows = _shuffled(random, rows)
        out.append((at, tuple(rows)))
        number += size
    return tuple(out)


def _shuffled(random: Random, rows: list[int]) -> list[int]:
    """Within the slack: eight rows have a second."""
    pieces = [rows[at : at + 20] for at in range(0, len(rows), 20)]
    return [n for piece in pieces for n in random.sample(piece, len(piece))]


def _faults(random: Random, length: float) -> list[Fault]:
    return [
        _fault(random, random.choice(KINDS), random.uniform(0, length))
        for _ in range(random.choice((0, 1, 2, 3, 5, 8)))
    ]


def _fault(random: Random, kind: str, at: float) -> Fault:
    match kind:
        case "crash":
            return Fault(kind, at, random.choice(("kill", "power")), random.choice((0, 0, 1)))
        case "crash within":
            how = f"{random.choice(('kill', 'power'))} {random.choice(('before', 'after'))}"
            return Fault(kind, at, how, random.randint(0, 60))
        case "weather":
            return Fault(kind, at, random.choice(WEATHERS), 0, random.uniform(0.1, 5.0))
        case "clock":
            how = random.choice(("jump", "jump", "stop"))
            far = random.choice((5.0, 100.0, 3600.0))
            sign = 1 if how == "stop" else random.choice((1, -1))
            return Fault(kind, at, how, 0, sign * random.uniform(0.5, far))
        case "net":
            what = random.choice(("reset", "reset", "silent", "slow"))
            after = random.choice((0, 50, 300, 2000, 20000)) + random.randint(0, 99)
            return Fault(kind, at, f"{what} {random.choice(('in', 'out'))}", after)
    return Fault("latency", at, "", 0, random.uniform(0.1, 5.0))
