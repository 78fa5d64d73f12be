"""`RewardPaths`: ways to what was rewarded, over steps that happened.

The time to go of an observation is that of a shortest path over the steps that
happened, and from a step to others that begin near by. The model of one step only looks
ahead from where the agent is, to a place of these steps: so it is not asked about
places that nobody saw.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree

from eigenoptions._kernels.model_arrays import Table
from eigenoptions._types import BoolArray, FloatArray
from eigenoptions.explore.axes import Axes
from eigenoptions.explore.known_space import KnownSpace, Leg
from eigenoptions.explore.step_model import make_table

# Steps begin near by if they are so near, in large steps, and how many are asked.
NEAR = 1.0
N_NEAREST = 8
# The steps that it takes to get to one that begins one large step away.
DETOUR = 2.0
# A table of few steps promises too much: its times count so many times.
PESSIMISM = 2.0
# An agent that is so far from its way, in large steps, plans anew.
OFF = 0.5


class RewardPaths:
    """Ways to rewarded steps.

    Parameters
    ----------
    known_space : KnownSpace
        The model of one step, fitted to all steps.
    obs, next_obs : ndarray of shape (N, D)
        Observations before and after each step.
    is_last : ndarray of bool of shape (N,)
        Which steps end an episode.
    is_rewarded : ndarray of bool of shape (N,)
        Which steps are rewarded.
    """

    def __init__(
        self,
        known_space: KnownSpace,
        obs: FloatArray,
        next_obs: FloatArray,
        is_last: BoolArray,
        is_rewarded: BoolArray,
    ) -> None:
        assert known_space.axes is not None
        self.known_space = known_space
        self.axes: Axes = known_space.axes
        before = self.axes.read(obs)
        after = self.axes.read(next_obs)
        self._tree = cKDTree(_spread(self.axes, before))
        self._times = self._find_times(before, is_last, is_rewarded)
        is_known = np.isfinite(self._times)
        self.longest = max(float(self._times[is_known].max()), 1.0)
        self._rewarded = cKDTree(_spread(self.axes, after[is_rewarded]))
        self.table = self._make_table(before, after, is_rewarded)

    def _find_times(
        self, before: FloatArray, is_last: BoolArray, is_rewarded: BoolArray
    ) -> FloatArray:
        """``(N,)`` the steps that it takes from before each step to a reward."""
        n_steps = len(before)
        far, near = self._tree.query(
            self._tree.data, k=min(N_NEAREST, n_steps), distance_upper_bound=NEAR
        )
        rows = np.repeat(np.arange(n_steps), far.reshape(n_steps, -1).shape[1])
        far, near = far.ravel(), near.ravel()
        is_link = np.isfinite(far) & (near != rows)
        goes_on = np.flatnonzero(~is_last[:-1] & ~is_rewarded[:-1])
        rewarded = np.flatnonzero(is_rewarded)
        # The goal is an additional node, the last.
        heads = np.concatenate([rows[is_link], goes_on, rewarded])
        tails = np.concatenate(
            [near[is_link], goes_on + 1, np.full(len(rewarded), n_steps)]
        )
        lengths = np.concatenate(
            [DETOUR * far[is_link] + 1e-3, np.ones(len(goes_on) + len(rewarded))]
        )
        shape = (n_steps + 1, n_steps + 1)
        # Backwards, from the goal. Of several links the shortest counts.
        graph = _take_shortest(tails, heads, lengths, shape)
        times = dijkstra(graph, indices=n_steps)
        return np.asarray(times[:-1])

    def _make_table(
        self, before: FloatArray, after: FloatArray, is_rewarded: BoolArray
    ) -> Table:
        """The least time of each cell, as `kernels.search` takes it."""
        is_known = np.isfinite(self._times)
        points = np.concatenate([before[is_known], after[is_rewarded]])
        times = np.concatenate(
            [PESSIMISM * self._times[is_known], np.zeros(int(is_rewarded.sum()))]
        )
        table = make_table(len(points), 1)
        from eigenoptions._kernels.looking_ahead import note_times

        note_times(self.known_space.space, table, points, times)
        return table

    def measure(self, rows: FloatArray) -> FloatArray:
        """The steps to a reward from observations; inf where no way is known."""
        points = _spread(self.axes, self.axes.read(rows))
        far, near = self._tree.query(points, distance_upper_bound=2.0 * NEAR)
        times = np.append(self._times, np.inf)[near]
        return np.where(np.isfinite(far), times + DETOUR * far, np.inf)

    def imagine(self, row: FloatArray, code: int) -> tuple[FloatArray, bool]:
        """The observation after an action, and whether the reward is there."""
        point = self.known_space.expect(self.axes.read(row[None])[0], code)
        after = self.axes.write(point[None], row[None])[0]
        far, _ = self._rewarded.query(_spread(self.axes, point[None]))
        return after, bool(far[0] < NEAR)

    def begin(self) -> RewardController:
        """Begin a path from anywhere."""
        return RewardController(self)


class RewardController:
    """An agent on its way to a reward.

    Parameters
    ----------
    reward_paths : RewardPaths
        The known ways.
    """

    def __init__(self, reward_paths: RewardPaths) -> None:
        self._reward_paths = reward_paths
        self._legs: list[Leg] = []
        self._expected: FloatArray | None = None

    def act(self, row: FloatArray) -> int:
        """The number of the action at an observation; -1 where no way is known."""
        reward_paths = self._reward_paths
        known_space = reward_paths.known_space
        point = reward_paths.axes.read(row[None])[0]
        if self._expected is not None:
            off = reward_paths.axes.subtract(point[None], self._expected[None])
            if np.abs(off).max() > OFF:
                self._legs = []
        else:
            self._legs = []
        self._expected = None
        if not self._legs:
            self._legs = known_space.find_path_to_reward(point, reward_paths.table)
        if not self._legs:
            return -1
        leg = self._legs.pop(0)
        if leg.n_steps > 1:
            self._legs.insert(0, leg._replace(n_steps=leg.n_steps - 1))
        self._expected = known_space.expect(point, leg.action)
        return leg.action


def _spread(axes: Axes, points: FloatArray) -> FloatArray:
    """Points in a space where near is near: an angle is a place on a circle."""
    parts = [points[:, ~axes.is_angle]]
    for i in np.flatnonzero(axes.is_angle):
        turn = 2.0 * np.pi * points[:, i] / axes.turns[i]
        radius = axes.turns[i] / (2.0 * np.pi)
        parts.append(radius * np.stack([np.cos(turn), np.sin(turn)], axis=1))
    return np.concatenate(parts, axis=1)


def _take_shortest(
    heads: FloatArray, tails: FloatArray, lengths: FloatArray, shape: tuple[int, int]
) -> csr_array:
    """A graph of links, of several the shortest."""
    order = np.lexsort((lengths, tails, heads))
    heads, tails, lengths = heads[order], tails[order], lengths[order]
    is_new = np.ones(len(heads), dtype=np.bool_)
    is_new[1:] = (heads[1:] != heads[:-1]) | (tails[1:] != tails[:-1])
    graph = csr_array((lengths[is_new], (heads[is_new], tails[is_new])), shape=shape)
    # Older versions of `dijkstra` take no other numbers.
    graph.indices = graph.indices.astype(np.int32)
    graph.indptr = graph.indptr.astype(np.int32)
    return graph
