"""Exploration toward what is unknown, by one eigenvector of what was seen so far (paper, Section 6: incomplete graphs).

An action that was tried n times leads to the unknown with chance ``prior / (n + prior)``, so an untried one surely.
With the walk P over the known states and the chance d to leave them, discounted by gamma per step, the matrix

    M = [[gamma P, gamma d], [0, 1]]        (the last row is the unknown)

is nonnegative. Its largest eigenvalue is 1, all others are at most gamma, and the eigenvector of 1 is ``(z, 1)`` with
``z(s) = E[gamma^T]`` for a random walk that needs T steps to the unknown. Being positive, it has one sign: up, to the
unknown. It is also the first eigenvector of the default representation (see `spectra.representations`) of the
walk whose steps cost ``-log gamma`` until it leaves what is known.

`Explorer` follows z greedily, which is its option with gamma 0. In a table whose moves are certain, z grows by at least
``1 / gamma`` per step up to an untried action (exactly so for ``prior=0``), so the way there is never lost. What
decides is that tries are counted at every step: it is count-driven planning, and plans by shortest paths to the
nearest untried action are about as good (docs/agents.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions._validation import check_float, check_int, make_generator, set_readonly
from eigenoptions.discovery.experience import state_numbers
from eigenoptions.mdp import MDP, Transitions
from eigenoptions.options.walks import make_episodes, make_tables

# Discount of the random walk, chance of the unknown, and sweeps per update; chosen on the seeds 100 to 109 of the
# domains in docs/agents.md, where gamma from 0.8 to 0.99, prior from 0 to 0.1 and 4 to 20 sweeps are about as good.
GAMMA, PRIOR, SWEEPS = 0.95, 0.01, 10

# Discount where states are cells, chosen on two seeds of MountainCar: a cell is left after several steps only.
CELLS_GAMMA = 0.99
# Cells along a dimension, and most cells: with more than four dimensions there are fewer along each.
CELLS, MAX_CELLS = 20, 200_000


class Cells:
    """Numbers of the cells of a box into which observations fall.

    Parameters
    ----------
    low, high, cells
        Finite bounds of the observations ``(d,)``, and cells along each dimension; None: 20, or as many as give
        200,000 in all.

    Examples
    --------
    >>> cells = Cells([0.0, 0.0], [1.0, 2.0], cells=10)
    >>> cells.count, cells(np.array([[0.0, 0.0], [0.95, 0.3], [1.0, 2.0]])).tolist()
    (100, [0, 91, 99])
    """

    def __init__(self, low: ArrayLike, high: ArrayLike, cells: int | None = None) -> None:
        self.low, top = (np.asarray(end, dtype=np.float64).ravel() for end in (low, high))
        dimensions = len(self.low)
        most = int(MAX_CELLS ** (1.0 / max(dimensions, 1)))
        if len(top) != dimensions or not np.isfinite([self.low, top]).all() or not (top > self.low).all():
            raise ValueError(f"cells need finite bounds, the upper above the lower, got {low!r} and {high!r}")
        if most < 2:
            raise ValueError(
                f"observations of {dimensions} dimensions give more than {MAX_CELLS:,} cells, two along each of them"
            )
        self.cells = min(CELLS, most) if cells is None else check_int("cells", cells, maximum=most)
        self.scale = self.cells / (top - self.low)
        self.count = self.cells**dimensions

    def __call__(self, obs: ArrayLike) -> NDArray[np.int64]:
        """Cell of each observation of a batch ``(N, ...)``; those beyond a bound fall into the cell at it."""
        rows = np.asarray(obs, dtype=np.float64).reshape(-1, len(self.low))
        if not np.isfinite(rows).all():
            raise ValueError(f"observations must be finite, got {rows[~np.isfinite(rows)][0]}")
        place = np.clip((rows - self.low) * self.scale, 0, self.cells - 1).astype(np.int64)
        return place @ self.cells ** np.arange(len(self.low) - 1, -1, -1)


class Explorer:
    """Explores states that are numbered: each action leads toward what is unknown.

    Parameters
    ----------
    n_states, n_actions, rng
        Size of the table, and the seed or generator that decides between equally good actions.
    gamma, prior
        Discount per step of the random walk to the unknown, in (0, 1); an action that was tried n times leads there
        with chance ``prior / (n + prior)``.
    sweeps
        Sweeps over the states around the walk per update of the eigenvector.
    state
        Function from a batch of observations to state numbers, such as `Cells`; None: observations are the numbers.

    Examples
    --------
    A corridor of 20 states: after 100 steps, each of its 80 actions was tried.

    >>> from eigenoptions.mdp import maze
    >>> explorer = Explorer(20, 4)
    >>> path = explorer.walk(maze("S" + 19 * "."), 100)
    >>> explorer.n_seen, int(explorer.tries.min())
    (20, 1)
    """

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        gamma: float = GAMMA,
        prior: float = PRIOR,
        sweeps: int = SWEEPS,
        rng: int | np.random.Generator = 0,
        state: Callable[[Any], Any] | None = None,
    ) -> None:
        from eigenoptions._kernels.frontier import Known

        S, A = check_int("n_states", n_states), check_int("n_actions", n_actions)
        self.n_states, self.n_actions = S, A
        self._rng, self._state = make_generator(rng), state

        sizes = {
            "tries": S * A,
            "link": 0,
            "after": 0,
            "times": 0,
            "queue": S,
            "depth": S,
            "mark": S,
            "totals": 4,
        }
        self._known = Known(
            A,
            check_float("gamma", gamma, above=0, below=1),
            check_float("prior", prior, minimum=0),
            check_int("sweeps", sweeps),
            head=np.full(S * A, -1),
            nearness=np.zeros(S),
            seen=np.zeros(S, np.bool_),
            **{name: np.zeros(size, np.int64) for name, size in sizes.items()},
        )
        # State and action of each copy of an environment whose next observation is still to come.
        self._pending: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    @property
    def n_seen(self) -> int:
        """Number of states seen."""
        return int(self._known.totals[0])

    @property
    def tries(self) -> NDArray[np.int64]:
        """``(S, A)`` how often each action was tried."""
        return self._known.tries.reshape(self.n_states, -1).copy()

    def walk(
        self, mdp: MDP, steps: int, *, begin: int | None = None, max_episode_steps: int | None = None
    ) -> Transitions:
        """Explore a table; the parameters are those of `options.walks.walk`."""
        from eigenoptions._kernels.frontier import roam

        if (mdp.n_states, mdp.n_actions) != (self.n_states, self.n_actions):
            raise ValueError(
                f"an explorer of this table must be made for {mdp.n_states} states and {mdp.n_actions} actions, got "
                f"{self.n_states} and {self.n_actions}"
            )
        check_int("steps", steps)
        places = make_episodes(mdp, begin, max_episode_steps)
        moves, _ = make_tables(mdp, np.empty((0, self.n_states), dtype=np.int32))
        self._reserve(steps + self.n_actions * len(places.starts))
        parts = tuple(np.empty(steps, dtype=np.int64) for _ in range(3))
        roam(moves, self._known, places, self._seed(), *parts)
        return Transitions(*set_readonly(*parts, parts[2] == places.goal))

    def begin(self) -> None:
        """Forget the last observations: the next ones come after a reset."""
        self._pending = None

    def __call__(self, obs: ArrayLike) -> NDArray[np.int64]:
        """Actions for the states of all copies of an environment: a policy for `envs.collect`.

        What the last actions led to is read from these states. After an end of an episode it is the next start.

        >>> explorer = Explorer(3, 2)
        >>> explorer([0]).shape, explorer([1]).shape
        ((1,), (1,))
        >>> int(explorer.tries[0].sum())
        1
        """
        from eigenoptions._kernels.frontier import decide

        numbers = np.atleast_1d(obs) if self._state is None else self._state(obs)
        states = state_numbers(numbers, self.n_states)
        before, taken = self._pending or (np.empty(0, np.int64), np.empty(0, np.int64))
        self._reserve(len(states))
        actions = np.empty_like(states)
        decide(self._known, before, taken, states, self._seed(), actions)
        self._pending = states, actions
        return actions.copy()

    def _reserve(self, more: int) -> None:
        """Make room for this many further outcomes."""
        known = self._known
        need = int(known.totals[1]) + more
        if need > len(known.link):
            link, after, times = (
                np.resize(part, 2 * need) for part in (known.link, known.after, known.times)
            )
            self._known = known._replace(link=link, after=after, times=times)

    def _seed(self) -> Any:
        return self._rng.integers(2**64, dtype=np.uint64)
