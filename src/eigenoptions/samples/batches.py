"""Batches of Tianshou: objects with keys."""

from __future__ import annotations

from typing import Any

from eigenoptions.samples.arrays import read_dict
from eigenoptions.samples.parts import Parts


def is_batch(data: Any) -> bool:
    """Whether this is a batch of Tianshou: its parts have keys, and it has indices.

    Data frames have keys, too, but are read by their columns.
    """
    has_keys = hasattr(data, "keys") and hasattr(data, "obs") and hasattr(data, "act")
    return has_keys and not hasattr(data, "columns")


def read_batch(batch: Any) -> Parts:
    """Parts of a batch by their names. Parts that hold nothing are left out."""
    data = {}
    for name in batch.keys():  # noqa: SIM118
        value = batch[name]
        # An empty batch stands for what was not given.
        if hasattr(value, "keys") and not list(value.keys()):
            continue
        data[name] = value
    return read_dict(data)
