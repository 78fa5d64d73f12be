"""SplitMix64 (Steele, Lea and Flood, 2014): random numbers, and a hash, of 64 bits.

Only operators are used, so that one source serves NumPy arrays and compiled kernels.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Bits = TypeVar("Bits", np.uint64, NDArray[np.uint64])

# Step of the counter: 2**64 divided by the golden ratio, and odd.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)

_FACTOR_1 = np.uint64(0xBF58476D1CE4E5B9)
_FACTOR_2 = np.uint64(0x94D049BB133111EB)
_27 = np.uint64(27)
_30 = np.uint64(30)
_31 = np.uint64(31)


def mix_bits(z: Bits) -> Bits:
    """Mix 64 bits so that each bit of the result depends on all bits of z.

    >>> counters = np.array([1, 2], dtype=np.uint64) * GOLDEN
    >>> [hex(number) for number in mix_bits(counters).tolist()]
    ['0xe220a8397b1dcdaf', '0x6e789e6aa1b965f4']
    """
    z = (z ^ (z >> _30)) * _FACTOR_1
    z = (z ^ (z >> _27)) * _FACTOR_2
    return z ^ (z >> _31)
