"""Connections that have not authenticated yet: so many at a time, and no address crowds the others
out.

Places of sessions belong to peers that have proven themselves, by the token or, where none is asked
for, by a request that can be read.  All others are strangers.  When there are too many, the one
that has been here longest of the address with the most of them has to go; so a newcomer always
finds a place, and one address alone harms only itself.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Strangers(Generic[K]):
    """At most `limit` keys, each of an address; all operations take constant time but the choice of
    the key that must go."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._of: dict[K, str] = {}
        self._at: dict[str, dict[K, None]] = {}  # in the order they came

    def __len__(self) -> int:
        return len(self._of)

    def __contains__(self, key: K) -> bool:
        return key in self._of

    def enter(self, key: K, address: str) -> K | None:
        """Count `key` in; returns the key that has to leave for it, no longer counted, or None."""
        self._of[key] = address
        self._at.setdefault(address, {})[key] = None
        if len(self._of) <= self.limit:
            return None
        crowd = max(self._at.values(), key=len)
        oldest = next(iter(crowd))
        self.leave(oldest)
        return oldest

    def leave(self, key: K) -> bool:
        """Count `key` out, if it is in."""
        address = self._of.pop(key, None)
        if address is None:
            return False
        here = self._at[address]
        del here[key]
        if not here:
            del self._at[address]
        return True


def address_of(peername: object) -> str:
    """What a connection is counted for: its IPv4 address, or the 64 bits of an IPv6 network, which
    one host has all to itself; "" if the system doesn't say."""
    if not isinstance(peername, tuple) or not peername:
        return ""
    text = str(peername[0]).partition("%")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))
