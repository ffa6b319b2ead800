"""Events of NEXMark, in columns: of each fifty one is a person, three are auctions, 46 are bids.

Some auctions, bidders and sellers are hot: one of a hundred gets half of the bids, makes three
quarters of them, or opens three quarters of the auctions, for as long as it is the newest such one.
Others are drawn from the newest thousand people and hundred auctions, and some few that are still
to come.  Prices are spread evenly over the powers of ten from 1 to 10^6 dollars, in cents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SECOND = 1_000_000  # µs
EPOCH = 50  # events of which one is a person, and AUCTIONS are auctions
AUCTIONS = 3
FIRST = 1000  # the first id of people and of auctions
CATEGORY, CATEGORIES = 10, 5
HOT = 100  # one of so many is hot
ACTIVE, OPEN = 1000, 100  # people and auctions among which the others are drawn
LEAD = 10  # ... and so many that have not come yet
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond")
CHANNELS = ("Google", "Facebook", "Baidu", "Apple")  # half of the bids come by these
OTHERS = 10_000  # other channels
WORDS = 1000  # texts are drawn from so many
MIDNIGHT = 1_436_918_400 * SECOND  # 15 July 2015


@dataclass(frozen=True, slots=True)
class Events:
    """Rows of each stream in the order in which they arrive, and their places among all of them.

    rows    by stream: columns as `declare.cql` has them
    places  by stream: int64[n], rising
    """

    count: int
    rows: dict[str, pa.RecordBatch]
    places: dict[str, np.ndarray] = field(repr=False)

    def frames(self, size: int) -> Iterator[list[tuple[str, pa.RecordBatch]]]:
        """`size` events after the other, those of each stream together; no stream without any."""
        for first in range(0, self.count, size):
            frame = []
            for name, places in self.places.items():
                start, stop = np.searchsorted(places, (first, first + size))
                if start < stop:
                    frame.append((name, self.rows[name].slice(start, stop - start)))
            yield frame


def make(
    count: int, rate: float = 10_000, seed: int = 1, disorder: int = 0, start: int = MIDNIGHT
) -> Events:
    """`count` events, the same for the same arguments.

    rate      events a second of event time
    disorder  µs by which an event may be late, at most
    start     of the first event, µs since 1970"""
    rng = np.random.default_rng(seed)
    number = np.arange(count)
    made = _Maker(rng, start + (number * (SECOND / rate)).astype(np.int64), rate)
    within = number % EPOCH
    of = {
        "person": np.flatnonzero(within < 1),
        "auction": np.flatnonzero((within >= 1) & (within <= AUCTIONS)),
        "bid": np.flatnonzero(within > AUCTIONS),
    }
    arrival = np.argsort(made.ts + rng.integers(0, disorder + 1, count), kind="stable")
    place = np.empty(count, np.int64)
    place[arrival] = number
    rows, places = {}, {}
    for name, mine in of.items():
        order = np.argsort(place[mine])
        rows[name] = getattr(made, name)(mine).take(pa.array(order))
        places[name] = place[mine][order]
    return Events(count, rows, places)


def people(number: np.ndarray) -> np.ndarray:
    """How many people there are once the event of that number has come."""
    return number // EPOCH + 1


def auctions(number: np.ndarray) -> np.ndarray:
    """How many auctions."""
    return number // EPOCH * AUCTIONS + np.minimum(number % EPOCH, AUCTIONS)


class _Maker:
    """Columns of the events of given numbers."""

    def __init__(self, rng: np.random.Generator, ts: np.ndarray, rate: float) -> None:
        self.rng, self.ts = rng, ts
        self.horizon = int(OPEN * EPOCH / AUCTIONS / rate * SECOND)  # µs that an auction is open
        lengths, letters = rng.integers(4, 12, WORDS), np.array(list("abcdefghijklmnopqrstuvwxyz"))
        self.words = pa.array(["".join(rng.choice(letters, n)) for n in lengths])

    def person(self, number: np.ndarray) -> pa.RecordBatch:
        n = len(number)
        names = [pc.utf8_capitalize(self._word(n)) for _ in range(2)]
        address = pc.binary_join_element_wise(self._word(n), self._word(n), "@")
        digits = [pa.array(self.rng.integers(1000, 10_000, n)).cast(pa.string()) for _ in range(4)]
        return _batch(
            id=FIRST + people(number) - 1,
            name=pc.binary_join_element_wise(*names, " "),
            email_address=pc.binary_join_element_wise(address, ".com", ""),
            credit_card=pc.binary_join_element_wise(*digits, " "),
            city=self._one_of(pa.array(CITIES), n),
            state=self._one_of(pa.array(STATES), n),
            date_time=_instants(self.ts[number]),
            extra=self._text(n, 8),
        )

    def auction(self, number: np.ndarray) -> pa.RecordBatch:
        n, rng = len(number), self.rng
        initial = self._price(n)
        length = rng.integers(1, 2 * self.horizon + 2, n)
        return _batch(
            id=FIRST + auctions(number) - 1,
            item_name=self._text(n, 2),
            description=self._text(n, 10),
            initial_bid=initial,
            reserve=initial + self._price(n),
            date_time=_instants(self.ts[number]),
            expires=_instants(self.ts[number] + length),
            seller=self._drawn(people(number), 3 / 4, 0, ACTIVE),
            category=CATEGORY + rng.integers(0, CATEGORIES, n),
            extra=self._text(n, 8),
        )

    def bid(self, number: np.ndarray) -> pa.RecordBatch:
        n = len(number)
        channel, url = self._channels(n)
        return _batch(
            auction=self._drawn(auctions(number), 1 / 2, 0, OPEN),
            bidder=self._drawn(people(number), 3 / 4, 1, ACTIVE),
            price=self._price(n),
            channel=channel,
            url=url,
            date_time=_instants(self.ts[number]),
            extra=self._text(n, 8),
        )

    def _drawn(self, there: np.ndarray, hot: float, which: int, active: int) -> np.ndarray:
        """Ids of one of `there` each: a hot one with that chance, else one of the newest."""
        n, rng = len(there), self.rng
        since = np.maximum(there - active, 0)
        others = since + (rng.random(n) * (there - since + LEAD)).astype(np.int64)
        newest = np.maximum(there - 1, 0) // HOT * HOT + which
        return FIRST + np.where(rng.random(n) < hot, newest, others)

    def _channels(self, n: int) -> tuple[pa.Array, pa.Array]:
        """Channels, and addresses, in which most of the others have their number."""
        rng = self.rng
        other = rng.integers(0, OTHERS, n)
        known, told = rng.random(n) < 1 / 2, rng.random(n) < 9 / 10
        number = pa.array(other).cast(pa.string())
        named = pc.binary_join_element_wise("channel-", number, "")
        channel = pc.if_else(pa.array(known), self._one_of(pa.array(CHANNELS), n), named)
        folders = [self._word(n) for _ in range(3)]
        base = pc.binary_join_element_wise(
            "https://auctions.example", *folders, "item.htm?query=1", "/"
        )
        query = pc.binary_join_element_wise(base, number, "&channel_id=")
        return channel, pc.if_else(pa.array(told & ~known), query, base)

    def _price(self, n: int) -> np.ndarray:
        return np.round(10 ** (self.rng.random(n) * 6) * 100).astype(np.int64)

    def _word(self, n: int) -> pa.Array:
        return self._one_of(self.words, n)

    def _text(self, n: int, words: int) -> pa.Array:
        """One of some hundred texts of so many words each."""
        some = [self._word(WORDS) for _ in range(words)]
        return self._one_of(pc.binary_join_element_wise(*some, " "), n)

    def _one_of(self, texts: pa.Array, n: int) -> pa.Array:
        return texts.take(pa.array(self.rng.integers(0, len(texts), n)))


def _instants(micros: np.ndarray) -> pa.Array:
    return pa.array(micros).cast(pa.timestamp("us"))


def _batch(**columns: pa.Array | np.ndarray) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)
