"""Memory that training and the Ritz step need, estimated before they start."""

from __future__ import annotations

import os

import numpy as np

from eigenoptions.deep.dataset import Dataset
from eigenoptions.deep.encoder import COMPONENT_SAMPLE, MAX_SIDE, NOISY_SAMPLE, RANDOM_CHANNELS
from eigenoptions.deep.ritz import BLOCK

# Copies of the sample of observations while its principal components are computed, and of features in the Ritz step.
SAMPLE_COPIES, FEATURE_COPIES = 3, 4
# Numbers per transition that pairs of observations take: places, ends and numbers of both sides.
NUMBERS_PER_TRANSITION = 6


def available_bytes() -> int:
    """Bytes of memory that are available on this machine."""
    try:
        return int(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (ValueError, OSError, AttributeError):
        return 1 << 34


def check_training(data: Dataset) -> None:
    """Raise MemoryError where the sample of observations from which an encoder is built does not fit."""
    one = data.observations[0]
    rows = min(len(data.observations), COMPONENT_SAMPLE if data.repeating else NOISY_SAMPLE)
    inputs = float(one.size)
    if one.ndim > 1:
        # Large images are pooled, and those without noise pass a random convolution of stride 2.
        inputs /= (-(-max(one.shape[-3:]) // MAX_SIDE)) ** 2
        inputs *= RANDOM_CHANNELS / 4 if data.repeating else 1
    needed = rows * (one.nbytes + SAMPLE_COPIES * 4 * inputs)
    check("training", needed, "use smaller observations")


def check_ritz(data: Dataset, features: int) -> None:
    """Raise MemoryError where the Ritz step on so many features does not fit; it is called before training."""
    held = len(data.observations) if data.repeating else 2 * BLOCK
    matrices = 8.0 * features**2
    needed = 8.0 * (NUMBERS_PER_TRANSITION * len(data) + FEATURE_COPIES * held * features + matrices)
    check(
        f"the Ritz step on {features} features",
        needed,
        "use fewer transitions, or a module with fewer features",
    )


def check(what: str, needed: float, remedy: str) -> None:
    """Raise MemoryError where so many bytes are not available."""
    free = available_bytes()
    if needed > free:
        raise MemoryError(
            f"{what} needs about {np.ceil(needed / 1e8) / 10:.1f} GB, {free / 1e9:.1f} GB are available: {remedy}"
        )
