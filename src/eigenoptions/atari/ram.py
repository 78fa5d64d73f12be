"""Feature maps of a console's memory: every byte becomes a few features (paper, Section 5.2).

The paper's features are bits. Adding one to a byte can flip all of its bits (127 becomes 128), so potentials linear in
bits are rough; the other codings are smoother in the byte's value. Each coding is a table of 256 rows, one per value,
that is looked up for each byte; a frame therefore changes only the features of the few bytes that it wrote to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions._validation import check_choice, check_int
from eigenoptions.features import Bits, FeatureMap

# Size of an Atari 2600's memory.
BYTES = 128
CODES = ("bits", "bytes", "onehot", "thermometer")


@dataclass(frozen=True)
class Ram(FeatureMap):
    """Features of bytes ``(N, 128)``: ``Ram()`` is the paper's 1,024 bits.

    Attributes
    ----------
    code
        ``"bits"``: eight features per byte, the lowest first. ``"bytes"``: one per byte, its value / 256. ``"onehot"``:
        one feature for each of `steps` equal ranges of values, one of them on. ``"thermometer"``: `steps` - 1
        features, on up to the value's range, so that near values have near features.
    addresses, columns
        Addresses of the bytes and, of their features, the numbers of those that are used, ascending; None: all.
    steps
        Number of ranges of values for the last two codes, in 2..256.
    n_bytes
        Size of the memory.

    Examples
    --------
    >>> ram = np.array([[5, 200]], dtype=np.uint8)
    >>> Ram("thermometer", steps=4, n_bytes=2)(ram).astype(int).tolist()
    [[0, 0, 0, 1, 1, 1]]
    >>> Ram("bytes", addresses=(1,), n_bytes=2)(ram).tolist()
    [[0.78125]]
    >>> Ram().width, Ram("thermometer", steps=16).width
    (1024, 1920)
    """

    code: str = "bits"
    addresses: tuple[int, ...] | None = None
    steps: int = 256
    columns: tuple[int, ...] | None = None
    n_bytes: int = BYTES
    name: ClassVar[str] = "ram"

    def __post_init__(self) -> None:
        check_choice("code", self.code, CODES)
        check_int("steps", self.steps, 2, 256)
        if self.steps != 256 and self.code in ("bits", "bytes"):
            raise ValueError(f"steps are for onehot and thermometer, not for {self.code}: leave them out")
        check_int("n_bytes", self.n_bytes)
        _numbers(self, "addresses", self.n_bytes)
        _numbers(self, "columns", len(self.watched) * self.each)

    @property
    def label(self) -> str:
        """A short name: ``"bits"``, ``"thermometer-16"``."""
        return self.code if self.steps == 256 else f"{self.code}-{self.steps}"

    @property
    def each(self) -> int:
        """Features per byte, before `columns`."""
        return int(self.table.shape[1])

    @property
    def width(self) -> int:
        """Number of features d."""
        return len(self.watched) * self.each if self.columns is None else len(self.columns)

    @cached_property
    def watched(self) -> NDArray[np.intp]:
        """Addresses of the bytes that are used."""
        return np.arange(self.n_bytes) if self.addresses is None else np.array(self.addresses, dtype=np.intp)

    @cached_property
    def table(self) -> NDArray[Any]:
        """``(256, each)`` the features of each value of a byte: booleans, or floats with code ``"bytes"``."""
        value = np.arange(256)[:, None]
        place = value * self.steps // 256
        tables: dict[str, NDArray[Any]] = {
            "bits": Bits()(value.astype(np.uint8)),
            # 256 is a power of two, so sums of such numbers are exact.
            "bytes": value / 256.0,
            "onehot": place == np.arange(self.steps),
            "thermometer": place >= np.arange(1, self.steps),
        }
        return tables[self.code]

    def __call__(self, obs: ArrayLike) -> NDArray[Any]:
        """``(N, n_bytes)`` bytes to ``(N, width)``."""
        ram = np.asarray(obs)
        if ram.dtype != np.uint8 or ram.ndim != 2 or ram.shape[1] != self.n_bytes:
            got = f"{ram.dtype} of shape {ram.shape}"
            raise ValueError(f"memory must be bytes (uint8) of shape (N, {self.n_bytes}), got {got}")
        if self.columns is None:
            return np.asarray(self.table[ram[:, self.watched]].reshape(len(ram), self.width))
        which, unit = np.divmod(np.array(self.columns, dtype=np.intp), self.each)
        return np.asarray(self.table[ram[:, self.watched[which]], unit])


def bits(ram: ArrayLike) -> NDArray[np.bool_]:
    """``(..., 1024)`` the bits of RAM ``(..., 128)``: bit j of byte b is feature ``8 b + j``, the lowest first.

    >>> ram = np.zeros(128, dtype=np.uint8)
    >>> ram[14] = 6
    >>> np.flatnonzero(bits(ram)).tolist()
    [113, 114]
    """
    memory = np.asarray(ram)
    if not (
        memory.ndim
        and memory.dtype.kind in "iu"
        and 0 <= memory.min(initial=0) <= memory.max(initial=0) < 256
    ):
        raise ValueError(
            f"memory must be bytes, 0..255, of shape (..., 128), got {memory.dtype} of shape {memory.shape}"
        )
    memory = memory.astype(np.uint8)
    return Bits()(memory.reshape(-1, memory.shape[-1])).reshape(*memory.shape[:-1], -1)


def check_addresses(watch: Sequence[int]) -> None:
    """Raise ValueError unless these are addresses of bytes."""
    if any(not isinstance(b, int | np.integer) or not 0 <= b < BYTES for b in watch):
        raise ValueError(f"watch must be addresses in 0..{BYTES - 1}, got {watch!r}")


def _numbers(features: Ram, field: str, end: int) -> None:
    """Check that a field is None or ascending numbers in 0..end - 1, and convert it to a tuple of ints."""
    value = getattr(features, field)
    if value is None:
        return
    given = np.asarray(value)
    whole = given.ndim == 1 and given.size and given.dtype.kind in "iu"
    if not whole or given[0] < 0 or given[-1] >= end or (np.diff(given.astype(np.int64)) <= 0).any():
        raise ValueError(
            f"{field} must be different numbers in 0..{end - 1}, ascending, got {str(value)[:80]}"
        )
    object.__setattr__(features, field, tuple(given.tolist()))
