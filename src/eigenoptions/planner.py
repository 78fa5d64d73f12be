"""Goals from logged data: `Planner` makes a table of a data set, a potential for every goal, and the way there.

**Which potential.** Greedy descent arrives from everywhere only if a potential has no local minimum. The default
representation ``Z = (exp(1 / temperature) I - P)^-1`` of a random walk P sums over all paths, at a price for each move.
Beside the goal ``Z(s, g)`` is the mean over the walk's next states, divided by a number above 1, so one of them has
more: ``-log Z`` has no local minimum. Half of the commute time is the time back, which may fall where the way grows.

**Continuous actions.** A step is explained by ``next_obs - obs = B action + b``. The actions of the table are the
neighbouring cells to aim at. It counts where a step led that by the model leads there: walls are moves that fail.
Jumps, which leave the model by more than a cell, happen whatever one aims at; a last action goes where they began.
"""

from __future__ import annotations

from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_array, csr_array, eye_array, hstack, kron
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.sparse.linalg import splu
from scipy.spatial import cKDTree

from eigenoptions._validation import check_choice, check_float, check_int, check_real
from eigenoptions.mdp import MDP, Transitions, graph, reachable
from eigenoptions.mdp.transitions import read_spaces
from eigenoptions.options import TERMINATE, Option, OptionSet, Purpose, eigenpurposes
from eigenoptions.options.solver import first_best, solve
from eigenoptions.spectra import spectrum

__all__ = ["Planner"]

POTENTIALS = ("log-z", "hitting", "shortest", "commute")

Array = NDArray[np.float64]


class Planner:
    """Reach any goal that logged data show a way to.

    Numbered states with numbered actions are counted as they are. Vectors are sorted into the cells of a grid, which
    become the states. Of continuous actions a linear model of displacement is fitted; the table's actions are then the
    neighbouring cells to aim at and, if the data have jumps, the place where they began.

    Parameters
    ----------
    data
        Whatever `Transitions.of` accepts; actions may be vectors.
    cell_size : float or array (d,), optional
        Sides of the cells. By default five large steps (the 0.9 quantile of the changes of each coordinate).
    potential : {"log-z", "hitting", "shortest", "commute"}, default="log-z"
        What `potential` and `distance` measure: minus the logarithm of the default representation Z(s, goal), the mean
        time of a random walk to the goal, the least number of moves, or the walk's time to the goal and back.
    greedy : bool, default=False
        Whether `act` descends the potential move by move, as one must who has a distance only. By default it follows
        ``option(goal)``: `solve` knows which moves are random, and takes a way round rather than a gamble.
    gamma : float, default=0.999
        Discount per move of the options. The closer to 1, the longer the way round.
    temperature : float, default=1.3
        Of the default representation: a move costs ``1 / temperature``.
    reversible : bool, default=True
        With continuous actions: whether a move to a neighbouring cell that was seen in one direction counts in the
        other, too.

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
                f"data must have at least 2 transitions, got {len(batch)}: record more steps"
            )
        discrete = batch.action.ndim == 1 and batch.action.dtype.kind in "iu"
        self.centers: Array | None = None
        self._grid: _Grid | None = None
        self._model: _Displacement | None = None
        if batch.obs.ndim == 1:
            self.mdp = MDP.from_transitions(data if discrete else batch)
            seen = [batch.obs, batch.next_obs]
        else:
            obs = _check_vectors("obs", batch.obs)
            next_obs = _check_vectors("next_obs", batch.next_obs, obs.shape[1])
            self._grid = _Grid(obs, next_obs, cell_size)
            seen = [
                self._grid.find(self._grid.cell(points)) for points in (obs, next_obs)
            ]
            both, n_states = np.concatenate([obs, next_obs]), len(self._grid.keys)
            self.centers = _mean_rows(both, np.concatenate(seen), n_states)
            if discrete:
                steps, n_actions = (
                    (seen[0], batch.action, seen[1]),
                    read_spaces(data)[1],
                )
                self.mdp = MDP.from_transitions(
                    steps, n_states, n_actions, coords=self._grid.coords
                )
            else:
                self._model = _Displacement(obs, batch.action, next_obs)
                expected = obs + self._model.predict(batch.action)
                self.mdp, self._targets = _count_moves(
                    self._grid, obs, expected, next_obs, reversible
                )
            self._find_homes(self._grid)
        self._seen = np.bincount(np.concatenate(seen), minlength=self.mdp.n_states) > 0
        self._policies: dict[int, list[int]] = {}
        self._potentials: dict[int, Array] = {}

    def _find_homes(self, grid: _Grid, near: float = 2.0) -> None:
        """Let observations in cells that were never entered, or never left, belong to a near cell that was both."""
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
                f"an observation must be {len(self._grid.size)} finite numbers, got {obs}"
            )
        state = self._grid.number.get(self._grid.corner(point), -1)
        if state < 0:
            distance, home = self._tree.query(point / self._grid.size)
            if distance > self._near:
                remedy = "choose a point in it, or give a larger cell_size"
                raise ValueError(
                    f"{np.round(obs, 3)} is {distance:.1f} cells away from the data: {remedy}"
                )
            state = int(self._homes[home])
        return state

    def potential(self, goal: Any) -> Array:
        """One number per state: 0 at the goal, less the farther away, -inf where the data show no way to the goal."""
        state = self.state(goal)
        if state not in self._potentials:
            self._potentials[state] = self._compute_potential(state)
        return self._potentials[state].copy()

    def _compute_potential(self, goal: int) -> Array:
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
                # Beyond the range of floating point numbers every move costs what it costs on the average before.
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
        """Minus the potential of the goal at an observation; inf where the data show no way."""
        return -float(self.potential(goal)[self.state(obs)])

    def act(self, obs: Any, goal: Any) -> Any:
        """The action that leads to the goal: a number (TERMINATE at the goal), or a vector within those of the data."""
        state, last = self.state(obs), self.state(goal)
        action = self._policy(last)[state]
        if action == TERMINATE and state != last and not self._greedy:
            way = f"from {np.round(obs, 3)} to {np.round(goal, 3)}"
            raise ValueError(
                f"the data show no way {way}: record steps between, or give a larger cell_size"
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
                first, acts = first_best(gain, 1e-9)
                policy = np.where(
                    acts & (np.arange(len(value)) != goal), first, TERMINATE
                )
            else:
                policy = self._solve([goal]).policy[0]
            self._policies[goal] = policy.tolist()
        return self._policies[goal]

    def plan(self, obs: Any, goal: Any) -> NDArray[Any]:
        """States on the most likely way from an observation to the goal: numbers ``(n,)``, or centres ``(n, d)``."""
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
                f"no way from {np.round(obs, 3)} to {np.round(goal, 3)}: record more steps"
            )
        return np.array(way) if self.centers is None else self.centers[way]

    def option(self, goal: Any) -> Option:
        """The option that leads to a goal, on `mdp`; ``OptionsWrapper(env, [...], state=planner.state)`` runs it."""
        return self._solve([self.state(goal)])[0]

    def options(self, n: int) -> OptionSet:
        """Options to `n` landmarks: the states where eigenvectors of the graph are largest and smallest, in order.

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
        landmarks = list(dict.fromkeys(int(vector.argmax()) for vector in vectors))
        if len(landmarks) < n:
            raise ValueError(
                f"n must be in 1..{len(landmarks)}, the number of landmarks, got {n}"
            )
        return self._solve(landmarks[:n])

    def _solve(self, goals: list[int]) -> OptionSet:
        states = np.arange(self.mdp.n_states)
        purposes = [
            Purpose((states == goal) * 1.0, goal=goal, exact=True) for goal in goals
        ]
        provenance = {"method": "planner", "dynamics": "estimated"}
        return solve(self.mdp, purposes, self._gamma, provenance=provenance)

    @cached_property
    def _walk(self) -> csr_array:
        """``(S, S)`` the random walk that takes every action of the table equally often."""
        S, A = self.mdp.n_states, self.mdp.n_actions
        return csr_array(
            kron(eye_array(S), np.full((1, A), 1.0 / A), format="csr")
            @ self.mdp.transition
        )

    @cached_property
    def _factors(self) -> Any:
        # With diagonal pivots nothing is subtracted from positive numbers: the smallest entries of Z are accurate too.
        price = np.exp(1.0 / self._temperature)
        system = csc_array(eye_array(self.mdp.n_states) * price - self._walk)
        settings: Any = {
            "permc_spec": "MMD_AT_PLUS_A",
            "options": {"SymmetricMode": True},
        }
        return splu(system, diag_pivot_thresh=0.0, **settings)

    @cached_property
    def _commuting(self) -> tuple[Array, float]:
        """Inverse of the Laplacian plus a constant in each component, and the sum of all degrees (S * S numbers)."""
        W = graph(self.mdp).toarray()
        degree, component = W.sum(axis=1), connected_components(W)[1]
        joined = component == component[:, None]
        return np.linalg.inv(np.diag(degree) - W + joined / joined.sum(axis=1)), float(
            degree.sum()
        )

    def __repr__(self) -> str:
        return f"Planner({self.mdp.n_states} states, {self.mdp.n_actions} actions, {self._kind})"


class _Grid:
    """Cells with equal sides, numbered where the data are."""

    def __init__(self, obs: Array, next_obs: Array, size: ArrayLike | None) -> None:
        change = np.quantile(np.abs(next_obs - obs), 0.9, axis=0)
        sides = np.asarray(
            np.where(change > 0, 5.0 * change, 1.0) if size is None else size,
            np.float64,
        )
        if not (np.isfinite(sides) & (sides > 0)).all() or sides.shape not in (
            (),
            change.shape,
        ):
            raise ValueError(
                f"cell_size must be > 0, one number or {len(change)}, got {size!r}"
            )
        self.size: Array = np.broadcast_to(sides, change.shape)
        self.low = np.minimum(obs.min(axis=0), next_obs.min(axis=0))
        high = np.maximum(obs.max(axis=0), next_obs.max(axis=0))
        # Two empty cells on each side, so that no neighbour of a cell is at the other end of the next row.
        self.shape = np.floor((high - self.low) / self.size) + 5
        if self.shape.prod() > 2**62:
            raise ValueError(
                f"cell_size {sides.tolist()} gives more than 2**62 cells: give a larger one"
            )
        self.strides = np.cumprod([1, *self.shape[:0:-1].astype(np.int64)])[::-1]
        self.keys = np.unique(
            np.concatenate([self.key(self.cell(obs)), self.key(self.cell(next_obs))])
        )
        self.corners = (
            self.keys[:, None] // self.strides % self.shape.astype(np.int64) - 2
        )
        self.number = {
            tuple(corner): i for i, corner in enumerate(self.corners.tolist())
        }
        # A map has rows and columns: the second coordinate rises, the first goes to the right.
        plane = self.corners[:, ::-1] * [-1, 1] if len(change) == 2 else None
        self.coords = None if plane is None else plane - plane.min(axis=0)
        self._bounds = self.low.tolist(), self.size.tolist()

    def cell(self, points: Array) -> NDArray[np.int64]:
        return np.asarray(np.floor((points - self.low) / self.size), dtype=np.int64)

    def corner(self, point: Array) -> tuple[int, ...]:
        """As `cell`, fast for one point."""
        columns = zip(point.tolist(), *self._bounds, strict=True)
        return tuple(int((x - low) // side) for x, low, side in columns)

    def key(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.asarray((cells + 2) @ self.strides)

    def find(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of cells; -1 where there are no data."""
        key = self.key(cells)
        number = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        return np.where(self.keys[number] == key, number, -1)


class _Displacement:
    """``next_obs - obs = B action + b``, fitted to the half of the steps that it explains best, for each coordinate."""

    def __init__(self, obs: Array, action: Any, next_obs: Array) -> None:
        action = _check_vectors(
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

    def predict(self, action: Any) -> Array:
        return np.asarray(np.reshape(action, (len(action), -1)) @ self.B.T + self.b)

    def count_steps(self, displacement: Array) -> float:
        """The number of largest steps that lead as far."""
        return float(max(self.rates.dot(displacement).tolist()))

    def aim(
        self, point: Array, target: Any, border: Array | None = None, near: float = 0.1
    ) -> Array:
        """The action that leads straight to a target; if it takes several steps, first within `near` of the border."""
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


def _count_moves(
    grid: _Grid, obs: Array, expected: Array, next_obs: Array, reversible: bool
) -> tuple[MDP, Array]:
    """Table of cells by the neighbour that was aimed at, and the place ``(S, A, d)`` to aim at for each move."""
    S, moves = len(grid.keys), _neighbour_moves(obs.shape[1])
    before, after = grid.find(grid.cell(obs)), grid.find(grid.cell(next_obs))
    A, rows = len(moves), np.arange(S * len(moves))
    neighbour = grid.find(grid.corners[:, None] + moves)
    # The number of a move among all, that of staying (A / 2) included.
    aim = (np.clip(grid.cell(expected) - grid.cell(obs), -1, 1) + 1) @ 3 ** np.arange(
        obs.shape[1]
    )[::-1]
    jumped = (np.abs(next_obs - expected) > grid.size).any(axis=1)
    aimed = (aim != A // 2) & ~jumped
    row = (before * A + aim - (aim > A // 2))[aimed]
    counts = csr_array((np.ones(len(row)), (row, after[aimed])), shape=(S * A, S))
    if reversible:
        state, move = np.nonzero(neighbour >= 0)
        to = neighbour[state, move]
        back = np.asarray(counts[to * A + A - 1 - move, state]).ravel()
        counts = csr_array(
            counts + csr_array((back, (state * A + move, to)), shape=counts.shape)
        )
    # Where others crossed the border, on the way there or back: a straight line to it meets no corner of a wall.
    arrived = neighbour.ravel()[row] == after[aimed]
    crossed, forth = np.flatnonzero(aimed)[arrived], row[arrived]
    places = np.concatenate([next_obs[crossed], obs[crossed]])
    number = np.concatenate([forth, after[crossed] * A + A - 1 - forth % A])
    middles = grid.low + (grid.corners[:, None] + moves + 0.5) * grid.size
    seen = (np.bincount(number, minlength=S * A) > 0).reshape(S, A, 1)
    targets = np.where(
        seen, _mean_rows(places, number, S * A).reshape(middles.shape), middles
    )
    # A straight line to a diagonal neighbour may lead through a third cell, whose policy leads back: leave the cell
    # where others did, on this way or back. NaN: on other moves there is no border to go by.
    diagonal = (np.abs(moves).sum(axis=1) > 1)[:, None] & seen
    borders = np.where(diagonal, targets[neighbour, np.arange(A)[::-1]], np.nan)
    targets = np.stack([targets, borders], axis=2)
    # One failure more than was seen: a move that succeeded once is not certain, and one never tried stays.
    failure = csr_array((np.ones(S * A), (rows, rows // A)), shape=counts.shape)
    table = csr_array(
        (counts + failure).multiply(1.0 / (counts.sum(axis=1) + 1.0)[:, None])
    )
    n_jumps = np.bincount(before[jumped], minlength=S)
    if n_jumps.any():
        # Adjacent cells with jumps share where these lead: few were seen in each, and luck must not look like a chance.
        state, move = np.nonzero(
            (neighbour >= 0) & (n_jumps > 0)[:, None] & (n_jumps[neighbour] > 0)
        )
        touching = csr_array(
            (np.ones(len(state)), (state, neighbour[state, move])), shape=(S, S)
        )
        region = connected_components(touching, directed=False)[1]
        jumps = csr_array(
            (np.ones(jumped.sum()), (region[before[jumped]], after[jumped])),
            shape=(S, S),
        )
        jumps = csr_array(
            jumps.multiply(1.0 / np.maximum(jumps.sum(axis=1), 1.0)[:, None])
        )[region]
        exits = np.bincount(before[(before != after) | jumped], minlength=S)
        share = (n_jumps / np.maximum(exits, 1))[rows // A, None]
        table = table.multiply(1.0 - share) + jumps[rows // A].multiply(share)
        # The last action goes where others jumped: only a part of the cell may jump.
        jumps = jumps + eye_array(S).multiply((n_jumps == 0)[:, None])
        table = csr_array(hstack([table.reshape(S, A * S), jumps]).reshape(-1, S))
        targets = np.insert(targets, A, np.nan, axis=1)
        targets[:, A, 0] = _mean_rows(obs[jumped], before[jumped], S)
    table.eliminate_zeros()
    return MDP(table, coords=grid.coords), targets


def _neighbour_moves(d: int) -> NDArray[np.int64]:
    """``(3**d - 1, d)`` the steps to all neighbouring cells; the last one is minus the first one, and so on."""
    if d > 4:
        raise ValueError(
            f"obs may have 4 columns if actions are vectors, got {d}: keep the position"
        )
    moves = np.array(np.meshgrid(*[(-1, 0, 1)] * d, indexing="ij")).reshape(d, -1).T
    return np.delete(moves, len(moves) // 2, axis=0)


def _mean_rows(points: Array, number: NDArray[np.int64], n: int) -> Array:
    """Mean of the points with each number below n."""
    count = np.maximum(np.bincount(number, minlength=n), 1)
    return np.stack(
        [np.bincount(number, column, minlength=n) / count for column in points.T],
        axis=1,
    )


def _check_vectors(name: str, array: Any, width: int | None = None) -> Array:
    vectors = np.asarray(check_real(name, array), dtype=np.float64)
    if vectors.ndim != 2 or width not in (None, vectors.shape[1]):
        raise ValueError(
            f"{name} must have shape (N, {width or 'd'}), got {vectors.shape}: flatten each"
        )
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise ValueError(
            f"{name} must be finite, got {vectors[bad[0]]} in row {bad[0]}: leave it out"
        )
    return vectors
