"""Codings of a computer's memory: every byte becomes a few features (paper, Section 5.2).

The paper's features are bits. There a step of one can turn over every bit of a byte (127 becomes 128), so potentials
linear in bits are rough; the other codings are smoother in the byte's value. All are a table of 256 rows, one for each
value, that is looked up for each byte; so a step of the machine changes the features of the few bytes it wrote to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions.features import Bits, register

BYTES = 128  # of an Atari 2600
CODES = ("bits", "bytes", "onehot", "thermometer")


@register
@dataclass(frozen=True)
class Ram:
    """Features of bytes ``(N, 128)``: ``Ram()`` is the paper's 1,024 bits.

    Attributes
    ----------
    code
        ``"bits"``: eight a byte, the lowest first. ``"bytes"``: one number a byte, its value / 256. ``"onehot"``: one
        feature for each of `steps` equal ranges of values, one of them on. ``"thermometer"``: `steps` - 1 features, on
        up to the value's range, so that near values have near features.
    addresses
        The bytes that are looked at, ascending; None: all.
    steps
        Ranges of values of the last two codes: 2 to 256.
    columns
        The features that are kept, ascending, numbered as if all were; None: all. See `narrowed`.
    n_bytes
        Of memory.

    Examples
    --------
    >>> ram = np.array([[5, 200]], dtype=np.uint8)
    >>> Ram(n_bytes=2)(ram).astype(int).tolist()
    [[1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1]]
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
        if self.code not in CODES:
            raise ValueError(f"code must be one of {', '.join(CODES)}, got {self.code!r}")
        if not isinstance(self.steps, int | np.integer) or not 2 <= self.steps <= 256:
            raise ValueError(f"steps must be in 2..256, got {self.steps!r}")
        if self.steps != 256 and self.code in ("bits", "bytes"):
            raise ValueError(f"steps are for onehot and thermometer, not for {self.code}: leave them out")
        if not isinstance(self.n_bytes, int | np.integer) or self.n_bytes < 1:
            raise ValueError(f"n_bytes must be at least 1, got {self.n_bytes!r}")
        _numbers(self, "addresses", self.n_bytes)
        _numbers(self, "columns", len(self.watched) * self.each)

    @property
    def label(self) -> str:
        """A short name: ``"bits"``, ``"thermometer-16"``."""
        return self.code if self.steps == 256 else f"{self.code}-{self.steps}"

    @property
    def each(self) -> int:
        """Features a byte, before `columns`."""
        return int(self.table.shape[1])

    @property
    def width(self) -> int:
        """Number of features d."""
        return len(self.watched) * self.each if self.columns is None else len(self.columns)

    @cached_property
    def watched(self) -> NDArray[np.intp]:
        """The addresses that are looked at."""
        return np.arange(self.n_bytes) if self.addresses is None else np.array(self.addresses, dtype=np.intp)

    @cached_property
    def table(self) -> NDArray[Any]:
        """``(256, each)`` the features of each value of a byte: booleans, or floats with code ``"bytes"``."""
        value = np.arange(256)[:, None]
        place = value * self.steps // 256
        made: NDArray[Any]
        if self.code == "bits":
            made = Bits()(value.astype(np.uint8))
        elif self.code == "bytes":
            made = value / 256.0  # a power of two: sums of such numbers are exact
        elif self.code == "onehot":
            made = place == np.arange(self.steps)
        else:
            made = place >= np.arange(1, self.steps)
        return made

    def __call__(self, obs: ArrayLike) -> NDArray[Any]:
        """``(N, n_bytes)`` bytes to ``(N, width)``."""
        ram = np.asarray(obs)
        if ram.dtype != np.uint8 or ram.ndim != 2 or ram.shape[1] != self.n_bytes:
            raise ValueError(
                f"memory must be bytes (uint8) of shape (N, {self.n_bytes}), got {ram.dtype} of shape {ram.shape}"
            )
        phi: NDArray[Any]
        if self.columns is None:
            phi = self.table[ram[:, self.watched]].reshape(len(ram), self.width)
        else:
            which, unit = np.divmod(np.array(self.columns, dtype=np.intp), self.each)
            phi = self.table[ram[:, self.watched[which]], unit]
        return phi

    def narrowed(self, ram: ArrayLike) -> Ram:
        """The same coding without bytes that never change in `ram` ``(N, n_bytes)``, nor features that do not.

        What it leaves out is constant there, so potentials differ by a constant only, and rewards do not.

        Examples
        --------
        >>> Ram("onehot", n_bytes=3).narrowed(np.array([[1, 7, 0], [3, 7, 0]], dtype=np.uint8))
        Ram(code='onehot', addresses=(0,), steps=256, columns=(1, 3), n_bytes=3)
        """
        seen = np.asarray(ram)
        if seen.dtype != np.uint8 or seen.ndim != 2 or seen.shape[1] != self.n_bytes or not len(seen):
            raise ValueError(
                f"memory must be bytes (uint8) of shape (N, {self.n_bytes}), got {seen.dtype} of shape {seen.shape}"
            )
        before = np.arange(len(self.watched) * self.each) if self.columns is None else np.array(self.columns)
        addresses: list[int] = []
        columns: list[int] = []
        for i, address in enumerate(self.watched.tolist()):
            rows = self.table[np.unique(seen[:, address])]
            units = np.flatnonzero((rows != rows[0]).any(axis=0))
            kept = units[np.isin(i * self.each + units, before)]
            if len(kept):
                columns += (len(addresses) * self.each + kept).tolist()
                addresses.append(address)
        if not addresses:
            raise ValueError(f"nothing changes in {len(seen)} rows of memory: give rows that differ")
        return replace(self, addresses=tuple(addresses), columns=tuple(columns))


def _numbers(features: Ram, field: str, end: int) -> None:
    """Check an ascending tuple of numbers in 0..end - 1, and keep it as one of ints."""
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
