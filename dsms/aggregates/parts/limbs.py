"""Exact sums: fixed-point numbers of 32-bit limbs, one row per group, and their correctly rounded
quotients.

A number is the sum of limb[j] * 2^(base + 32 j).  While it is added to, limbs are signed and may
leave 32 bits (int64 holds 2^28 additions easily); `settle` carries.  So addition and subtraction
are exact inverses whatever the order: a sum depends on the set of its terms only, never drifts, and
needs no memory of them.  (The idea of a long accumulator is Kulisch's; the range of exponents here
grows only as far as the data go.)
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

M32 = 0xFFFFFFFF
POWERS = np.ldexp(1.0, np.arange(-1000, 900))
CARRY_EVERY = 1 << 28  # additions after which all limbs must be settled
SPACE = 3  # zero limbs below a dividend: 96 bits after the point


@njit(cache=True, nogil=True)
def add(acc, g, pos, m, sign):
    """acc[g] += sign * m * 2^pos for 0 <= m < 2^62 (`pos` counts from the base)."""
    j, r = pos >> 5, pos & 31
    low = (m & M32) << r
    high = (m >> 32) << r
    acc[g, j] += sign * (low & M32)
    acc[g, j + 1] += sign * ((low >> 32) + (high & M32))
    acc[g, j + 2] += sign * (high >> 32)


@njit(cache=True, nogil=True)
def settle(acc, g):
    """Carry: all limbs but the last come to lie in [0, 2^32)."""
    carry = acc[g, 0] * 0
    last = acc.shape[1] - 1
    for j in range(last):
        v = acc[g, j] + carry
        acc[g, j] = v & M32
        carry = v >> 32
    acc[g, last] += carry


@njit(cache=True, nogil=True)
def settle_all(acc):
    for g in range(len(acc)):
        settle(acc, g)


@njit(cache=True, nogil=True)
def magnitude(acc, g, out, at):
    """|acc[g]| as limbs of 32 bits at out[at : at + K + 1] (K limbs and the spill of the last);
    True if negative."""
    settle(acc, g)
    last = acc.shape[1] - 1
    negative = acc[g, last] < 0
    if not negative:
        for j in range(last):
            out[at + j] = acc[g, j]
        out[at + last] = acc[g, last] & M32
        out[at + last + 1] = acc[g, last] >> 32
        return False
    borrow = acc[g, last] * 0
    for j in range(last):
        v = -acc[g, j] - borrow
        out[at + j] = v & M32
        borrow = -(v >> 32)
    v = -acc[g, last] - borrow
    out[at + last] = v & M32
    out[at + last + 1] = v >> 32
    return True


@njit(cache=True, nogil=True)
def bit_length(q):
    """Number of bits of q >= 0."""
    n = 0
    for step in (32, 16, 8, 4, 2, 1):
        if q >> step:
            q >>= step
            n += step
    return n + 1 if q else 0


@njit(cache=True, nogil=True)
def divide(limbs, n, d):
    """limbs[:n] //= d for 0 < d < 2^47; True if something was left over."""
    rest = limbs[0] * 0
    if d < 2147483648:
        for j in range(n - 1, -1, -1):
            v = (rest << 32) | limbs[j]
            q = v // d
            limbs[j] = q
            rest = v - q * d
        return rest != 0
    for j in range(n - 1, -1, -1):
        v = (rest << 16) | (limbs[j] >> 16)
        q = v // d
        v = ((v - q * d) << 16) | (limbs[j] & 0xFFFF)
        limbs[j] = (q << 16) | (v // d)
        rest = v % d
    return rest != 0


@njit(cache=True, nogil=True)
def multiply(a, na, b, nb, out):
    """out[: na + nb] = a[:na] * b[:nb], limbs of 32 bits."""
    for k in range(na + nb):
        out[k] = 0
    for i in range(na):
        if a[i] == 0:
            continue
        carry = np.uint64(0)
        x = np.uint64(a[i])
        for j in range(nb):
            v = x * np.uint64(b[j]) + np.uint64(out[i + j]) + carry
            out[i + j] = np.int64(v & np.uint64(M32))
            carry = v >> np.uint64(32)
        out[i + nb] = np.int64(carry)


@njit(cache=True, nogil=True)
def subtract(a, b, n):
    """a[:n] -= b[:n], for a >= b."""
    borrow = a[0] * 0
    for j in range(n):
        v = a[j] - b[j] - borrow
        a[j] = v & M32
        borrow = -(v >> 32)


@njit(cache=True, nogil=True)
def to_double(limbs, n, base, sticky):
    """The double nearest to limbs[:n] * 2^base, ties to even; `sticky`: a bit more than that, below
    the last limb."""
    h = n - 1
    while h >= 0 and limbs[h] == 0:
        h -= 1
    if h < 0:
        return 0.0
    q = limbs[h]
    e = base + 32 * h
    room = 62 - bit_length(q)
    j = h - 1
    if room >= 32 and j >= 0:
        q = (q << 32) | limbs[j]
        e -= 32
        room -= 32
        j -= 1
    if room > 0 and j >= 0:
        q = (q << room) | (limbs[j] >> (32 - room))
        e -= room
        sticky = sticky or (limbs[j] & ((1 << (32 - room)) - 1)) != 0
        j -= 1
    while j >= 0 and not sticky:
        sticky = limbs[j] != 0
        j -= 1
    return rounded(q, e, sticky)


@njit(cache=True, nogil=True)
def rounded(q, e, sticky):
    """The double nearest to q * 2^e (0 < q < 2^62; of 53 bits or more if `sticky`), ties to even;
    infinite if too large."""
    length = bit_length(q)
    if length + e > 1024:
        return math.inf
    drop = max(length - 53, -1074 - e)
    if drop <= 0:
        return math.ldexp(float(q), int(e))
    if drop > length + 1:
        return 0.0
    m = q >> drop
    rest = q & ((1 << drop) - 1)
    half = 1 << (drop - 1)
    if rest > half or (rest == half and (sticky or m & 1)):
        m += 1
    if bit_length(m) + e + drop > 1024:
        return math.inf
    return math.ldexp(float(m), int(e + drop))


@njit(cache=True, nogil=True)
def nearest(acc, g, base, d):
    """The double nearest to acc[g] * 2^base / d for 0 < d < 2^31: long division from the top, as
    far as 62 bits need.

    Digits below the last limb are zero: five of them are enough for 55 bits of any quotient."""
    last = acc.shape[1] - 1
    carry = acc[g, 0] * 0  # `settle`, spelled out: this is called for every answer
    for j in range(last):
        v = acc[g, j] + carry
        acc[g, j] = v & M32
        carry = v >> 32
    acc[g, last] += carry
    q = acc[g, last]
    negative = q < 0
    z = 0  # the lowest limb that is not zero: below it nothing is borrowed
    if negative:
        while z < last and acc[g, z] == 0:
            z += 1
        q = -q if z == last else -q - 1
    rest = q % d if d > 1 else q * 0
    q = q // d if d > 1 else q
    e = base + 32 * last
    j = last - 1
    sticky = False
    # until it has 55 bits; it never has more than 62 from here
    while q < 0x40000000000000 and j >= -5:
        digit = acc[g, j] if j >= 0 else q * 0
        if negative and j >= z:
            digit = (0x100000000 if j == z else M32) - digit
        if d > 1:
            v = (rest << 32) | digit
            digit = v // d
            rest = v - digit * d
        take = (
            32
            if q < 0x40000000
            else (24 if q < 0x4000000000 else (16 if q < 0x400000000000 else 8))
        )
        q = (q << take) | (digit >> (32 - take))
        sticky = (digit & ((1 << (32 - take)) - 1)) != 0
        e -= take
        j -= 1
    sticky = sticky or rest != 0
    while j >= 0 and not sticky:
        sticky = acc[g, j] != 0
        j -= 1
    if e > -1000 and e < 900:  # q has 55 bits or is exact: the conversion rounds as it must
        value = float(q | sticky) * POWERS[e + 1000]
    else:
        value = rounded(q, e, sticky)
    return -value if negative else value


@njit(cache=True, nogil=True)
def mean(acc, g, base, n, tens, scratch):
    """The double nearest to acc[g] * 2^base / (n * product of tens)."""
    scratch[:] = 0
    size = len(scratch)
    negative = magnitude(acc, g, scratch, SPACE)
    sticky = False
    for ten in tens:
        sticky = divide(scratch, size, ten) or sticky
    sticky = divide(scratch, size, n) or sticky
    value = to_double(scratch, size, base - 32 * SPACE, sticky)
    return -value if negative else value


@njit(cache=True, nogil=True)
def exponents(words, valid, sign, slot):
    """Least and greatest power of two by which the last bit of an arriving finite double counts;
    (1, 0) if none."""
    low, high = 1, 0
    seen = False
    for i in range(len(slot)):
        s = slot[i]
        if sign[i] < 0 or (len(valid) and not valid[s]):
            continue
        w = words[s]
        field = ((w ^ 0x7FFFFFFFFFFFFFFF if w < 0 else w) >> 52) & 0x7FF
        if field == 0x7FF or w == 0:
            continue
        e = max(field, 1) - 1075
        if not seen:
            low = high = e
            seen = True
        low, high = min(low, e), max(high, e)
    return low, high


@njit(cache=True, nogil=True)
def parts(w):
    """A word of a finite double as (mantissa, exponent of its last bit, sign); mantissa -1 for NaN,
    +inf, -inf with exponent 0, 1, 2."""
    sign = -1 if w < 0 else 1
    b = w ^ 0x7FFFFFFFFFFFFFFF if w < 0 else w
    field = (b >> 52) & 0x7FF
    m = b & 0xFFFFFFFFFFFFF
    if field == 0x7FF:
        return -1, (0 if m else (1 if sign > 0 else 2)), sign
    if field == 0:
        return m, -1074, sign
    return m | 0x10000000000000, field - 1075, sign


def relaid(acc: np.ndarray, shift: int, limbs: int) -> np.ndarray:
    """The numbers with `shift` new limbs below and `limbs` limbs in all."""
    settle_all(acc)
    out = np.zeros((len(acc), limbs), np.int64)
    out[:, shift : shift + acc.shape[1]] = acc
    top = shift + acc.shape[1] - 1
    if top < limbs - 1:  # the sign moves up with the last limb
        out[:, top + 1] = out[:, top] >> 32
        out[:, top] &= M32
    return out
