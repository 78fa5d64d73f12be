"""Random numbers of kernels: SplitMix64.

Number n of a stream is ``mix(seed + n * GOLDEN)``. A stream is therefore one counter,
and what a kernel draws is a pure function of its seed.

One number of 64 bits serves several draws, as long as they read different bits: a
choice of one in n reads the low 32, a probability the high 32, a successor the high 53.
"""

from __future__ import annotations

import numpy as np

from eigenoptions._kernels.compilation import compile_helper
from eigenoptions._splitmix import GOLDEN, mix_bits

_LOW_32_BITS = np.uint64(0xFFFFFFFF)
_11 = np.uint64(11)
_32 = np.uint64(32)

# The same source as the hash of features, compiled.
mix = compile_helper(mix_bits)


@compile_helper
def draw(counter: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Advance the counter of a stream: the new counter, and its random number."""
    counter += GOLDEN
    return counter, mix(counter)


@compile_helper
def pick_index(number: np.uint64, n: int) -> int:
    """One of 0..n-1, all equally likely, from the low half of a random number."""
    index = ((number & _LOW_32_BITS) * np.uint64(n)) >> _32
    # Signed: where numba meets signed and unsigned integers, it makes them floats.
    return int(np.int64(index))


@compile_helper
def happens(number: np.uint64, probability: float) -> bool:
    """True with this probability, from the high half of a random number."""
    return float(number >> _32) < probability * 2.0**32


@compile_helper
def scale_to_unit(number: np.uint64) -> float:
    """A float in [0, 1), from the high 53 bits of a random number."""
    return float(number >> _11) * 2.0**-53
