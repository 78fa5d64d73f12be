"""Goals from logged data: a table, a policy to every goal, and episodes.

**Continuous actions.** A step is explained by ``next_obs - obs = B action + b``. The
actions of the table are the neighbouring cells to aim at. It counts where a step led
that by the model leads there: walls are moves that fail. Jumps, which leave the model
by more than a cell, happen whatever one aims at; a last action goes where they began.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from eigenoptions._progress import ProgressArgument, check_progress, shows_progress
from eigenoptions._registry import notebook_pictures
from eigenoptions._ties import find_first_maximum
from eigenoptions._types import BoolArray, FloatArray, Randomness
from eigenoptions._validation import (
    check_choice,
    check_float,
    check_int,
    make_generator,
)
from eigenoptions.mdp import MDP, graph
from eigenoptions.mdp.chains import stay_at_end
from eigenoptions.options import Option, OptionSet, eigenpurposes
from eigenoptions.options.purposes import make_goal_purposes
from eigenoptions.options.solver import solve
from eigenoptions.samples import Transitions
from eigenoptions.spectra import spectrum
from eigenoptions.vectors.arrivals import count_endings, let_arrive
from eigenoptions.vectors.controller import Controller
from eigenoptions.vectors.displacement import Fit
from eigenoptions.vectors.episode import Episode
from eigenoptions.vectors.goal_options import GoalOption
from eigenoptions.vectors.model import VectorModel
from eigenoptions.vectors.policies import find_most_likely
from eigenoptions.vectors.potentials import POTENTIALS, PotentialFunction, Potentials

__all__ = ["Planner"]


class Planner:
    """Reach any goal that logged data show a way to.

    Numbered states with numbered actions are counted as they are. Vectors are sorted
    into the cells of a grid, which become the states. Of continuous actions a linear
    model of displacement is fitted; the table's actions are then the neighbouring cells
    to aim at and, if the data have jumps, the place where they began.

    Parameters
    ----------
    data : object
        Whatever `Transitions.of` accepts; actions may be vectors.
    cell_size : float or array of shape (columns,), default=None
        Sides of the cells. None: the largest size at which the steps of a cell predict
        each other no worse than at the best size.
    columns : sequence of int or str, default=None
        The columns of the observation to plan with. None: all that ever change. Those
        that nobody steers (`check_columns`) are named in a warning.
    potential : {"log-z", "shortest"} or callable, default="log-z"
        What `potential` and `distance` measure: minus the logarithm of the default
        representation Z(s, goal), or the least number of moves. Or a function of the
        table and the number of the goal, which returns the potential of each state.
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
    rng : int, default=0
        Seed of `act`, which now and then varies a move near places where steps failed.
    progress : bool or callable, default=None
        As in `check_columns`, which takes longest.

    Attributes
    ----------
    mdp : MDP
        The table. A step that ended an episode where others went on leads to an
        additional state, so that no way passes there, but for ways to that very place.
    centers : ndarray of shape (S, columns) or None
        Mean observation in each cell; None for numbered states.
    cell_size : ndarray of shape (d,) or None
        Sides of the cells, one per coordinate: an angle in radians is two, its sine
        and its cosine. None for numbered states.
    fit : Fit or None
        How well the model of what actions move explains the data; None for numbered
        states.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> rng = np.random.default_rng(0)
    >>> obs, action = rng.uniform(0, 10, (20_000, 2)), rng.uniform(-1, 1, (20_000, 2))
    >>> planner = eo.Planner((obs, action, np.clip(obs + 0.2 * action, 0, 10)))
    >>> planner
    Planner(100 states, 8 actions, log-z)
    >>> print(planner.fit)
    the model of actions explains 99% of the movement; 0% of the steps were blocked
    >>> bool(planner.act([2.0, 5.5], [9.0, 5.5])[0] > 0.5)
    True

    One episode, which notices where it is stuck:

    >>> run = planner.start([9.0, 5.5])
    >>> bool(run.act([2.0, 5.5])[0] > 0.5)
    True
    """

    @shows_progress
    def __init__(
        self,
        data: Any,
        cell_size: ArrayLike | None = None,
        *,
        columns: Sequence[int | str] | None = None,
        potential: str | PotentialFunction = "log-z",
        greedy: bool = False,
        gamma: float = 0.999,
        temperature: float = 1.3,
        reversible: bool = True,
        rng: Randomness = 0,
        progress: ProgressArgument = None,
    ) -> None:
        progress = check_progress(progress)
        self._kind = "a potential of yours"
        if not callable(potential):
            self._kind = check_choice("potential", potential, POTENTIALS)
        self._gamma = check_float("gamma", gamma, minimum=0, below=1)
        temperature = check_float("temperature", temperature, above=0)
        self._rng = make_generator(rng)

        self.centers: FloatArray | None = None
        self.cell_size: FloatArray | None = None
        self.fit: Fit | None = None
        self._model: VectorModel | None = None
        self._endings: csr_array | None = None
        batch = Transitions.of(data, continuous=True)
        if batch.obs.ndim == 1:
            is_seen = self._read_numbers(data, batch)
        else:
            model = VectorModel.of(
                data,
                cell_size,
                columns=columns,
                reversible=reversible,
                progress=progress,
            )
            self._model = model
            self.mdp = model.mdp
            self.centers = model.centers
            self.cell_size = model.cells.grid.size
            self.fit = model.fit
            is_seen = np.ones(self.mdp.n_states, dtype=np.bool_)
        self._make_potentials = partial(
            Potentials, kind=potential, temperature=temperature
        )
        self._make_controller = partial(
            Controller,
            model=self._model,
            is_seen=is_seen,
            gamma=self._gamma,
            greedy=greedy,
        )
        self._controller = self._make_controller(
            self.mdp, potentials=self._make_potentials(self.mdp)
        )
        # To goals where episodes ended in the midst of others.
        self._controllers: dict[int, Controller] = {}

    def _read_numbers(self, data: Any, batch: Transitions) -> BoolArray:
        """Count steps between numbered states; return which of them are seen."""
        if len(batch) < 2:
            raise ValueError(
                f"data must have at least 2 transitions, got {len(batch)}: record "
                "more steps"
            )
        # The data themselves may say how many states and actions there are. But where
        # actions are vectors, their error would advise to make a Planner.
        source = data
        if batch.action.ndim != 1 or batch.action.dtype.kind not in "iu":
            source = batch
        self.mdp = MDP.from_transitions(source)
        self._endings = count_endings(batch, self.mdp)
        seen = np.concatenate([batch.obs, batch.next_obs])
        return np.asarray(np.bincount(seen, minlength=self.mdp.n_states) > 0)

    # Where things are

    def state(self, obs: Any) -> int:
        """The number of the state, or of the cell, that an observation belongs to."""
        return self._controller.locate(obs)[1]

    def _toward(self, goal: int) -> Controller:
        """Who goes to a goal: steps that ended there arrive, those elsewhere end."""
        if self._endings is None:
            return self._controller
        if goal not in self._controllers:
            mdp = let_arrive(self.mdp, self._endings, goal)
            controller = self._controller
            if mdp is not self.mdp:
                potentials = self._make_potentials(mdp)
                controller = self._make_controller(mdp, potentials=potentials)
            self._controllers[goal] = controller
        return self._controllers[goal]

    # How far things are

    def potential(self, goal: Any) -> FloatArray:
        """One number per state: 0 at the goal, less far away, -inf without a way."""
        last = self.state(goal)
        return self._toward(last).potentials.find(last).copy()

    def distance(self, obs: Any, goal: Any) -> float:
        """Minus the potential of the goal at an observation; inf without a way."""
        last = self.state(goal)
        return -float(self._toward(last).potentials.find(last)[self.state(obs)])

    # What to do

    def act(self, obs: Any, goal: Any, *, varied: bool = True) -> Any:
        """The action that leads to the goal.

        It is a number, TERMINATE at the goal, or a vector within those of the data.
        Nothing is remembered between calls, so many robots and threads may ask; a
        single robot is served better by `start`. An action that the data show to fail
        from this very place more often than not is not taken if there is another.

        Parameters
        ----------
        obs, goal : object
            Observations, or numbers of states.
        varied : bool, default=True
            Whether to take, where actions are vectors and steps nearby failed, one of
            the three best moves at random now and then. A robot that always does the
            same may stand still at a wall. False: equal questions have equal answers.
        """
        point, state = self._controller.locate(obs)
        goal_point, last = self._controller.locate(goal)
        controller = self._toward(last)
        policy = controller.find_policy(last)
        move, action = controller.decide(policy, point, state, goal_point, last, obs)
        if not varied:
            return action
        return controller.vary(policy, point, state, move, action, self._rng)

    def start(self, goal: Any, patience: int = 3) -> Episode:
        """Begin an episode to a goal, which notices that it is stuck.

        Parameters
        ----------
        goal : object
            An observation, or the number of a state.
        patience : int, default=3
            Steps without progress after which a move is blocked.
        """
        patience = check_int("patience", patience)
        return Episode(self._toward(self.state(goal)), goal, patience)

    # What it believes

    def plan(self, obs: Any, goal: Any) -> NDArray[Any]:
        """States on the most likely way to the goal.

        They are numbers ``(n,)``, or centres of cells ``(n, columns)``.
        """
        state = self.state(obs)
        last = self.state(goal)
        controller = self._toward(last)
        policy = controller.find_policy(last)
        path = find_most_likely(controller.mdp, policy, state, last)
        if path is None:
            raise ValueError(
                f"no way from {np.round(obs, 3)} to {np.round(goal, 3)}: record more "
                "steps"
            )
        if self.centers is None:
            return np.array(path)
        return np.asarray(self.centers[path])

    def simulate(self, start: Any, goal: Any, max_steps: int = 1_000) -> NDArray[Any]:
        """The way that the planner believes it takes, step by step.

        Where actions are vectors, each step goes where the model of actions says.
        Others go to the most likely next state of the table, as `plan` does.

        Parameters
        ----------
        start, goal : object
            Observations, or numbers of states.
        max_steps : int, default=1000
            Steps after which the simulation ends, if it does not arrive.

        Returns
        -------
        ndarray of shape (n, columns), or (n,) for numbered states
            The places, from the start.

        Examples
        --------
        >>> import eigenoptions as eo
        >>> log = eo.collect(eo.envs.MazeEnv("S..G"), 200, rng=0)
        >>> eo.Planner(log).simulate(0, 3)
        array([0, 1, 2, 3])
        """
        max_steps = check_int("max_steps", max_steps)
        model = self._model
        if model is None or not model.has_vector_actions:
            return self.plan(start, goal)[: max_steps + 1]
        controller = self._controller
        point, state = controller.locate(start)
        goal_point, last = controller.locate(goal)
        policy = controller.find_policy(last)
        points = [point]
        for _ in range(max_steps):
            if controller.is_at(point, state, goal_point, last):
                break
            action = controller.decide(policy, point, state, goal_point, last, point)[1]
            point = point + model.expect(point, action)
            state = model.locate(point, point)
            points.append(point)
        return np.array(points)

    # Options

    def option(self, goal: Any) -> Option:
        """The option that leads to a goal, on `mdp`.

        ``OptionsWrapper(env, [...], state=planner.state)`` runs it where actions are
        numbered; `places` gives options that run where they are vectors.
        """
        last = self.state(goal)
        return self._solve(self._toward(last).mdp, [last])[0]

    def options(self, n: int) -> OptionSet:
        """Options to `n` landmarks, where eigenvectors are largest and smallest.

        >>> import eigenoptions as eo
        >>> env = eo.envs.MazeEnv("four-rooms")
        >>> planner = Planner(eo.collect(env, 20_000, rng=0))
        >>> planner.options(3)
        OptionSet(3 options on 104 states: goal 84, goal 18, goal 11)
        """
        return self._solve(self.mdp, self._find_landmarks(n))

    def places(self, goals: int | Sequence[Any]) -> list[GoalOption]:
        """Options that go to places, in actions of the environment itself.

        ``OptionsWrapper(env, planner.places(8))`` runs them, also where actions are
        vectors: the agent then chooses places.

        Parameters
        ----------
        goals : int or sequence
            Number of landmarks, as in `options`, or observations.

        Examples
        --------
        >>> import eigenoptions as eo
        >>> log = eo.collect(eo.envs.MazeEnv("S..G"), 200, rng=0)
        >>> [place.label for place in eo.Planner(log).places([0, 3])]
        ['to 0', 'to 3']
        """
        if not isinstance(goals, int | np.integer):
            return [GoalOption(self._toward(self.state(goal)), goal) for goal in goals]
        landmarks = self._find_landmarks(int(goals))
        if self._model is None:
            return [GoalOption(self._toward(state), state) for state in landmarks]
        examples = [self._model.examples[state] for state in landmarks]
        return [GoalOption(self._controller, example) for example in examples]

    def _find_landmarks(self, n: int) -> list[int]:
        """The first `n` states where eigenvectors are largest or smallest."""
        n = check_int("n", n, 1, self.mdp.n_listed)
        W = graph(stay_at_end(self.mdp))
        # Each component has a constant eigenvector, which has no landmark. Others are
        # largest in the same states, so a few more are needed.
        n_components = connected_components(W, directed=False, return_labels=False)
        k = min(self.mdp.n_listed, n + 8 + n_components)

        landmarks: list[int] = []
        for purpose in eigenpurposes(spectrum(W, k)):
            landmark = int(find_first_maximum(np.asarray(purpose.potential)))
            if landmark not in landmarks:
                landmarks.append(landmark)
        if len(landmarks) < n:
            raise ValueError(
                f"n must be in 1..{len(landmarks)}, the number of landmarks, got {n}"
            )
        return landmarks[:n]

    def _solve(self, mdp: MDP, goals: list[int]) -> OptionSet:
        purposes = make_goal_purposes(mdp, goals)
        provenance = {"method": "planner"}
        return solve(mdp, purposes, self._gamma, provenance=provenance)

    def __repr__(self) -> str:
        return (
            f"Planner({self.mdp.n_states} states, {self.mdp.n_actions} actions, "
            f"{self._kind})"
        )

    def _repr_html_(self) -> str:
        """The cells over two columns, as a notebook shows them."""
        return notebook_pictures.find("planner")(self)
