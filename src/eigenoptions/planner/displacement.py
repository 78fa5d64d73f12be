"""A linear model of what actions move."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions._types import FloatArray
from eigenoptions.planner.grid import check_vectors


class Displacement:
    """``next_obs - obs = B action + b``, for each coordinate.

    It is fitted to the half of the steps that it explains best.
    """

    def __init__(self, obs: FloatArray, action: Any, next_obs: FloatArray) -> None:
        action = check_vectors(
            "action", action[:, None] if action.ndim == 1 else action
        )
        rows = np.linspace(0, len(obs) - 1, min(len(obs), 20_000)).astype(np.int64)
        inputs, change = (
            np.column_stack([action[rows], np.ones(len(rows))]),
            (next_obs - obs)[rows],
        )
        weights = np.empty((inputs.shape[1], obs.shape[1]))
        for j, target in enumerate(change.T):
            kept = np.abs(target) <= 3.0 * np.median(np.abs(target))
            for _ in range(30):
                weights[:, j] = np.linalg.lstsq(inputs[kept], target[kept], rcond=None)[
                    0
                ]
                residual = np.abs(target - inputs @ weights[:, j])
                kept = residual <= np.median(residual)
        self.B, self.b = weights[:-1].T, weights[-1]
        self.inverse = np.linalg.pinv(self.B)
        self.low, self.high = action.min(axis=0), action.max(axis=0)
        reach = np.maximum(np.maximum(-self.low, self.high), 1e-300)
        limits = (
            np.where(self.high > 0, self.high, reach),
            -np.where(self.low < 0, -self.low, reach),
        )
        self.rates = np.concatenate([self.inverse / limit[:, None] for limit in limits])

    def predict(self, action: Any) -> FloatArray:
        """The displacement that the model expects of each action."""
        return np.asarray(np.reshape(action, (len(action), -1)) @ self.B.T + self.b)

    def count_steps(self, displacement: FloatArray) -> float:
        """The number of largest steps that lead as far."""
        return float(max(self.rates.dot(displacement).tolist()))

    def aim(
        self,
        point: FloatArray,
        target: Any,
        border: FloatArray | None = None,
        near: float = 0.1,
    ) -> FloatArray:
        """The action that leads straight to a target.

        If that takes several steps, go first within `near` of the border.
        """
        displacement = target - point - self.b
        n_steps = self.count_steps(displacement)
        if (
            n_steps > 1.0
            and border is not None
            and self.count_steps(border - point) > near
        ):
            return self.aim(point, border)
        action = self.inverse.dot(displacement) / max(n_steps, 1.0)
        return np.asarray(np.minimum(np.maximum(action, self.low), self.high))
