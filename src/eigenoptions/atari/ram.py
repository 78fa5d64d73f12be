"""The memory of an Atari game as features: its bits, or its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions._validation import check_choice, check_int
from eigenoptions.samples.features import FeatureMap

# Size of an Atari 2600's memory.
N_BYTES = 128


@dataclass(frozen=True)
class Ram(FeatureMap):
    """Features of memory ``(N, 128)`` (paper, Section 5.2).

    Parameters
    ----------
    code : {"bits", "bytes"}, default="bits"
        ``"bits"``: eight booleans per byte, the lowest bit first. ``"bytes"``: one
        number per byte, its value / 256.
    addresses : tuple of int, optional
        The bytes that are used, ascending. By default all are: the paper's 1,024 bits.

    Examples
    --------
    >>> ram = np.zeros((1, 128), dtype=np.uint8)
    >>> ram[0, 14] = 6
    >>> Ram(addresses=(14,))(ram).astype(int).tolist()
    [[0, 1, 1, 0, 0, 0, 0, 0]]
    >>> Ram("bytes", addresses=(14,))(ram).tolist(), Ram().n_features
    ([[0.0234375]], 1024)
    """

    code: str = "bits"
    addresses: tuple[int, ...] | None = None

    name: ClassVar[str] = "ram"

    def __post_init__(self) -> None:
        check_choice("code", self.code, ("bits", "bytes"))
        if self.addresses is None:
            return

        addresses = tuple(
            check_int("an address", address, 0, N_BYTES - 1)
            for address in self.addresses
        )
        if not addresses or (np.diff(addresses) <= 0).any():
            raise ValueError(
                f"addresses must be different and ascending, got {self.addresses}"
            )
        object.__setattr__(self, "addresses", addresses)

    @property
    def n_features(self) -> int:
        """Number of features d."""
        n_bytes = N_BYTES if self.addresses is None else len(self.addresses)
        if self.code == "bits":
            return 8 * n_bytes
        return n_bytes

    def __call__(self, obs: ArrayLike) -> NDArray[Any]:
        """Map memory ``(N, 128)`` to features ``(N, d)``.

        Bits are booleans, bytes are floats.
        """
        ram = np.asarray(obs)
        if ram.dtype != np.uint8 or ram.ndim != 2 or ram.shape[1] != N_BYTES:
            raise ValueError(
                f"memory must be uint8 of shape (N, {N_BYTES}), "
                f"got {ram.dtype} of {ram.shape}"
            )

        if self.addresses is not None:
            ram = ram[:, list(self.addresses)]
        if self.code == "bits":
            return np.unpackbits(ram, axis=1, bitorder="little").view(np.bool_)
        # 256 is a power of two, so sums of these numbers are exact.
        return ram / 256.0
