"""How networks see MiniGrid's view: types and states of cells as one-hot vectors."""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from gymnasium.spaces import Box
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

# How many types of objects MiniGrid has, and how many states (of doors).
_N_TYPES = 11
_N_STATES = 4


class ViewEncoder(BaseFeaturesExtractor):
    """From views ``(N, 7, 7, 3)`` to ``(N, 735)`` of zeros and ones.

    Colours are left out: the tasks have one door and one key at most. It serves our own
    network, and as `features_extractor_class` those of SB3.

    Examples
    --------
    >>> space = Box(0, 255, (7, 7, 3))
    >>> ViewEncoder(space)(torch.zeros(2, 7, 7, 3)).sum(dim=1).tolist()
    [98.0, 98.0]
    """

    def __init__(self, observation_space: Box) -> None:
        shape = observation_space.shape
        # SB3 moves the channels of what looks like an image to the front.
        channels_first = shape[0] == 3
        n_cells = prod(shape) // 3
        super().__init__(observation_space, n_cells * (_N_TYPES + _N_STATES))

        # Where the ones of each cell begin, for its type and for its state.
        self._channels_first = channels_first
        first = torch.arange(n_cells)[:, None] * (_N_TYPES + _N_STATES)
        self._offsets = (first + torch.tensor([0, _N_TYPES])).flatten()

    def forward(self, views: Any) -> torch.Tensor:
        """Encode views."""
        if self._channels_first:
            views = views.movedim(1, -1)
        types_and_states = views[..., ::2].reshape(len(views), -1)
        places = types_and_states.long() + self._offsets
        encoded = torch.zeros(len(views), self.features_dim)
        return encoded.scatter_(1, places, 1.0)
