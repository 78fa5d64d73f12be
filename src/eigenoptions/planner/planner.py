"""Goals from logged data: a table, a potential for every goal, and the way there.

**Which potential.** Greedy descent arrives from everywhere only if a potential has no
local minimum. The default representation ``Z = (exp(1 / temperature) I - P)^-1`` of a
random walk P sums over all paths, at a price for each move. Beside the goal ``Z(s, g)``
is the mean over the walk's next states, divided by a number above 1, so one of them has
more: ``-log Z`` has no local minimum. Half of the commute time is the time back, which
may fall where the way grows.

**Continuous actions.** A step is explained by ``next_obs - obs = B action + b``. The
actions of the table are the neighbouring cells to aim at. It counts where a step led
that by the model leads there: walls are moves that fail. Jumps, which leave the model
by more than a cell, happen whatever one aims at; a last action goes where they began.
"""

from __future__ import annotations

from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.sparse.linalg import splu
from scipy.spatial import cKDTree

from eigenoptions._ties import find_first_maximum
from eigenoptions._types import FloatArray
from eigenoptions._validation import check_choice, check_float, check_int
from eigenoptions.data import Transitions
from eigenoptions.data.spaces import read_spaces
from eigenoptions.mdp import MDP, graph, reachable
from eigenoptions.mdp.chains import uniform_walk
from eigenoptions.options import TERMINATE, Option, OptionSet, eigenpurposes
from eigenoptions.options.purposes import make_goal_purposes
from eigenoptions.options.solver import choose_actions, solve
from eigenoptions.planner.displacement import Displacement
from eigenoptions.planner.grid import Grid, check_vectors, mean_rows
from eigenoptions.planner.moves import count_moves
from eigenoptions.spectra import spectrum

__all__ = ["Planner"]

POTENTIALS = ("log-z", "hitting", "shortest", "commute")


class Planner:
    """Reach any goal that logged data show a way to.

    Numbered states with numbered actions are counted as they are. Vectors are sorted
    into the cells of a grid, which become the states. Of continuous actions a linear
    model of displacement is fitted; the table's actions are then the neighbouring cells
    to aim at and, if the data have jumps, the place where they began.

    Parameters
    ----------
    data
        Whatever `Transitions.of` accepts; actions may be vectors.
    cell_size : float or array (d,), optional
        Sides of the cells. By default five large steps (the 0.9 quantile of the changes
        of each coordinate).
    potential : {"log-z", "hitting", "shortest", "commute"}, default="log-z"
        What `potential` and `distance` measure: minus the logarithm of the default
        representation Z(s, goal), the mean time of a random walk to the goal, the least
        number of moves, or the walk's time to the goal and back.
    greedy : bool, default=False
        Whether `act` descends the potential move by move, as one must who has a
        distance only. By default it follows ``option(goal)``: `solve` knows which moves
        are random, and takes a way round rather than a gamble.
    gamma : float, default=0.999
        Discount per move of the options. The closer to 1, the longer the way round.
    temperature : float, default=1.3
        Of the default representation: a move costs ``1 / temperature``.
    reversible : bool, default=True
        With continuous actions: whether a move to a neighbouring cell that was seen in
        one direction counts in the other, too.

    Attributes
    ----------
    mdp : MDP
        The table.
    centers : array (S, d) or None
        Mean observation in each cell; None for numbered states.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> rng = np.random.default_rng(0)
    >>> obs, action = rng.uniform(0, 10, (20_000, 2)), rng.uniform(-1, 1, (20_000, 2))
    >>> planner = eo.Planner((obs, action, np.clip(obs + 0.2 * action, 0, 10)))
    >>> planner
    Planner(144 states, 8 actions, log-z)
    >>> planner.act([2.0, 5.5], [9.0, 5.5]).round()
    array([1., 0.])
    """

    def __init__(
        self,
        data: Any,
        cell_size: ArrayLike | None = None,
        *,
        potential: str = "log-z",
        greedy: bool = False,
        gamma: float = 0.999,
        temperature: float = 1.3,
        reversible: bool = True,
    ) -> None:
        self._kind = check_choice("potential", potential, POTENTIALS)
        self._greedy, self._gamma = (
            greedy,
            check_float("gamma", gamma, minimum=0, below=1),
        )
        self._temperature = check_float("temperature", temperature, above=0)
        batch = Transitions.of(data, continuous=True)
        if len(batch) < 2:
            raise ValueError(
                f"data must have at least 2 transitions, got {len(batch)}: record "
                "more steps"
            )
        discrete = batch.action.ndim == 1 and batch.action.dtype.kind in "iu"
        self.centers: FloatArray | None = None
        self._grid: Grid | None = None
        self._model: Displacement | None = None
        if batch.obs.ndim == 1:
            self.mdp = MDP.from_transitions(data if discrete else batch)
            seen = [batch.obs, batch.next_obs]
        else:
            obs = check_vectors("obs", batch.obs)
            next_obs = check_vectors("next_obs", batch.next_obs, obs.shape[1])
            self._grid = Grid(obs, next_obs, cell_size)
            seen = [
                self._grid.find(self._grid.cell(points)) for points in (obs, next_obs)
            ]
            both, n_states = np.concatenate([obs, next_obs]), len(self._grid.keys)
            self.centers = mean_rows(both, np.concatenate(seen), n_states)
            if discrete:
                steps, n_actions = (
                    (seen[0], batch.action, seen[1]),
                    read_spaces(data)[1],
                )
                self.mdp = MDP.from_transitions(
                    steps, n_states, n_actions, coords=self._grid.coords
                )
            else:
                self._model = Displacement(obs, batch.action, next_obs)
                expected = obs + self._model.predict(batch.action)
                self.mdp, self._targets = count_moves(
                    self._grid, obs, expected, next_obs, reversible
                )
            self._find_homes(self._grid)
        self._seen = np.bincount(np.concatenate(seen), minlength=self.mdp.n_states) > 0
        self._policies: dict[int, list[int]] = {}
        self._potentials: dict[int, FloatArray] = {}

    def _find_homes(self, grid: Grid, near: float = 2.0) -> None:
        """Give observations in cells that were never entered or left a near cell."""
        self._near = near
        component = connected_components(self._walk, connection="strong")[1]
        joined = np.bincount(component)[component] > 1
        self._homes = np.flatnonzero(joined) if joined.any() else np.arange(len(joined))
        assert self.centers is not None
        self._tree = cKDTree(self.centers[self._homes] / grid.size)
        for state in np.flatnonzero(~joined):
            distance, home = self._tree.query(self.centers[state] / grid.size)
            if distance <= near:
                grid.number[tuple(grid.corners[state].tolist())] = int(
                    self._homes[home]
                )

    def state(self, obs: Any) -> int:
        """The number of the state, or of the cell, that an observation belongs to."""
        if self._grid is None:
            state = check_int("state", obs, 0, self.mdp.n_states - 1)
            if not self._seen[state]:
                raise ValueError(
                    f"state {state} is not in the data: record transitions there"
                )
            return state
        point = np.asarray(obs, dtype=np.float64)
        if point.shape != self._grid.size.shape or not all(
            map(isfinite, point.tolist())
        ):
            raise ValueError(
                f"an observation must be {len(self._grid.size)} finite numbers, "
                f"got {obs}"
            )
        state = self._grid.number.get(self._grid.corner(point), -1)
        if state < 0:
            distance, home = self._tree.query(point / self._grid.size)
            if distance > self._near:
                remedy = "choose a point in it, or give a larger cell_size"
                raise ValueError(
                    f"{np.round(obs, 3)} is {distance:.1f} cells away from the data: "
                    f"{remedy}"
                )
            state = int(self._homes[home])
        return state

    def potential(self, goal: Any) -> FloatArray:
        """One number per state: 0 at the goal, less far away, -inf without a way."""
        state = self.state(goal)
        if state not in self._potentials:
            self._potentials[state] = self._compute_potential(state)
        return self._potentials[state].copy()

    def _compute_potential(self, goal: int) -> FloatArray:
        states = np.arange(self.mdp.n_states)
        moves = np.asarray(
            dijkstra(csr_array(self._walk.T), indices=goal, unweighted=True)
        )
        if self._kind == "log-z":
            z = self._factors.solve((states == goal).astype(np.float64))
            far = (z < 1e-250) & np.isfinite(moves)
            with np.errstate(divide="ignore"):
                value = np.log(z / z[goal])
            if far.any():
                # Beyond the range of floating point numbers every move costs what it
                # costs on the average before.
                near = z >= 1e-250
                price = -value[near].min() / moves[near].max()
                value[far] = value[near].min() - price * (
                    1 + moves[far] - moves[far].min()
                )
        elif self._kind == "hitting":
            endless = reachable(self._walk, np.isinf(moves), backward=True)
            inner = np.flatnonzero(~endless & (states != goal))
            value = np.where(states == goal, 0.0, -np.inf)
            system = csc_array(eye_array(len(inner)) - self._walk[inner][:, inner])
            value[inner] = -splu(system).solve(np.ones(len(inner)))
        elif self._kind == "shortest":
            value = -moves
        else:
            inverse, volume = self._commuting
            value = -volume * (
                np.diag(inverse) + inverse[goal, goal] - 2.0 * inverse[goal]
            )
        return np.asarray(np.where(np.isfinite(moves), value, -np.inf))

    def distance(self, obs: Any, goal: Any) -> float:
        """Minus the potential of the goal at an observation; inf without a way."""
        return -float(self.potential(goal)[self.state(obs)])

    def act(self, obs: Any, goal: Any) -> Any:
        """The action that leads to the goal.

        It is a number, TERMINATE at the goal, or a vector within those of the data.
        """
        state, last = self.state(obs), self.state(goal)
        action = self._policy(last)[state]
        if action == TERMINATE and state != last and not self._greedy:
            way = f"from {np.round(obs, 3)} to {np.round(goal, 3)}"
            raise ValueError(
                f"the data show no way {way}: record steps between, or give a larger "
                "cell_size"
            )
        if self._model is None:
            return action
        point = np.asarray(obs, dtype=np.float64)
        targets = (
            [goal]
            if state == last
            else self._targets[state, action]
            if action >= 0
            else [point]
        )
        return self._model.aim(point, *targets)

    def _policy(self, goal: int) -> list[int]:
        """The action of the table in each state, of the option or of greedy descent."""
        if goal not in self._policies:
            if self._greedy:
                value = self._compute_potential(goal)
                value = np.maximum(value, 10.0 * value[np.isfinite(value)].min() - 1.0)
                gain = (self.mdp.transition @ value).reshape(
                    self.mdp.n_states, -1
                ) - value[:, None]
                policy = choose_actions(gain, 1e-9)
                policy[goal] = TERMINATE
            else:
                policy = self._solve([goal]).policy[0]
            self._policies[goal] = policy.tolist()
        return self._policies[goal]

    def plan(self, obs: Any, goal: Any) -> NDArray[Any]:
        """States on the most likely way to the goal.

        They are numbers ``(n,)``, or centres of cells ``(n, d)``.
        """
        state, last = self.state(obs), self.state(goal)
        policy, way = self._policy(last), [state]
        while way[-1] != last and policy[way[-1]] >= 0:
            row = self.mdp.transition[[way[-1] * self.mdp.n_actions + policy[way[-1]]]]
            leads = [
                to == last or (policy[to] >= 0 and to not in way) for to in row.indices
            ]
            chances = np.where(leads, row.data, 0.0)
            if not chances.any():
                break
            way.append(int(row.indices[chances.argmax()]))
        if way[-1] != last:
            raise ValueError(
                f"no way from {np.round(obs, 3)} to {np.round(goal, 3)}: record more "
                "steps"
            )
        return np.array(way) if self.centers is None else self.centers[way]

    def option(self, goal: Any) -> Option:
        """The option that leads to a goal, on `mdp`.

        ``OptionsWrapper(env, [...], state=planner.state)`` runs it.
        """
        return self._solve([self.state(goal)])[0]

    def options(self, n: int) -> OptionSet:
        """Options to `n` landmarks, where eigenvectors are largest and smallest.

        >>> import eigenoptions as eo
        >>> env = eo.envs.MazeEnv("four-rooms")
        >>> planner = Planner(eo.collect(env, 20_000, rng=0))
        >>> planner.options(3)
        OptionSet(3 options on 104 states: goal 84, goal 18, goal 11)
        """
        n = check_int("n", n, 1, self.mdp.n_states)
        W = graph(self.mdp)
        k = min(
            self.mdp.n_states,
            n + 8 + connected_components(W, directed=False, return_labels=False),
        )
        vectors = [
            np.asarray(purpose.potential) for purpose in eigenpurposes(spectrum(W, k))
        ]
        landmarks = list(
            dict.fromkeys(int(find_first_maximum(vector)) for vector in vectors)
        )
        if len(landmarks) < n:
            raise ValueError(
                f"n must be in 1..{len(landmarks)}, the number of landmarks, got {n}"
            )
        return self._solve(landmarks[:n])

    def _solve(self, goals: list[int]) -> OptionSet:
        purposes = make_goal_purposes(self.mdp, goals)
        provenance = {"method": "planner", "dynamics": "estimated"}
        return solve(self.mdp, purposes, self._gamma, provenance=provenance)

    @cached_property
    def _walk(self) -> csr_array:
        """``(S, S)`` the random walk that takes every action equally often."""
        return uniform_walk(self.mdp)

    @cached_property
    def _factors(self) -> Any:
        # With diagonal pivots nothing is subtracted from positive numbers: the smallest
        # entries of Z are accurate too.
        price = np.exp(1.0 / self._temperature)
        system = csc_array(eye_array(self.mdp.n_states) * price - self._walk)
        settings: Any = {
            "permc_spec": "MMD_AT_PLUS_A",
            "options": {"SymmetricMode": True},
        }
        return splu(system, diag_pivot_thresh=0.0, **settings)

    @cached_property
    def _commuting(self) -> tuple[FloatArray, float]:
        """The inverse of the Laplacian, and the sum of all degrees.

        The Laplacian is singular: a constant is added in each component.
        """
        W = graph(self.mdp).toarray()
        degree, component = W.sum(axis=1), connected_components(W)[1]
        joined = component == component[:, None]
        return np.linalg.inv(np.diag(degree) - W + joined / joined.sum(axis=1)), float(
            degree.sum()
        )

    def __repr__(self) -> str:
        return (
            f"Planner({self.mdp.n_states} states, {self.mdp.n_actions} actions, "
            f"{self._kind})"
        )
