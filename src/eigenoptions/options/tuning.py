"""How often to choose an option while exploring, and how soon to stop it.

Options that are chosen too often carry a random walk to their ends again and again. An
option that also terminates with a small probability after each step pushes the walk
along its potential instead. Which probabilities help depends on the state space. So
`tune_exploration` tries a few of them, "no options" included, in short simulations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions._types import BoolArray, FloatArray, IntegerArray
from eigenoptions._validation import check_int, show_value
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import continue_after_end, find_recurrent_states
from eigenoptions.options.records import OptionSet
from eigenoptions.options.walks import (
    make_tables,
    stack_policies,
    trace_walk,
    visit_states,
)

if TYPE_CHECKING:
    from eigenoptions._kernels.walking import Choices, Moves


class Setting(NamedTuple):
    """Two probabilities that `tune_exploration` tries.

    Attributes
    ----------
    option_chance : float
        Probability that a decision is for an option where one is available.
    stop_chance : float
        Probability that an option also terminates after each of its steps.
    """

    option_chance: float
    stop_chance: float


@dataclass(frozen=True)
class Exploration:
    """How a random walk over actions and options explores.

    Attributes
    ----------
    option_chance : float or None
        Probability that a decision is for an option where one is available; 0 if
        options do not help. None: a uniform choice over the actions and the options
        that are available.
    stop_chance : float
        Probability that an option also terminates after each of its steps.
    ratio : float, default=nan
        Estimated mean time of first visits, relative to that of primitive actions; nan
        if it was not measured.
    agent_chance : float, default=None
        Probability that an agent, whose options run to their ends, samples an option.
        None: not tuned.
    """

    option_chance: float | None
    stop_chance: float
    ratio: float = float("nan")
    agent_chance: float | None = None


def tune_exploration(
    mdp: MDP,
    options: OptionSet,
    settings: Sequence[Setting] = (
        Setting(option_chance=0.3, stop_chance=0.3),
        Setting(option_chance=0.1, stop_chance=0.1),
        Setting(option_chance=0.03, stop_chance=0.1),
        Setting(option_chance=0.01, stop_chance=0.05),
        Setting(option_chance=0.3, stop_chance=0.0),
        Setting(option_chance=0.1, stop_chance=0.0),
        Setting(option_chance=0.001, stop_chance=0.0),
    ),
    *,
    n_walks: int = 32,
    max_steps: int = 40_000_000,
    horizon: int | None = None,
    visits: IntegerArray | None = None,
    rng: int = 0,
) -> Exploration:
    """Find the probabilities by which random walks see the states of an MDP soonest.

    Walks start in random states, and each is scored by the mean time of its first
    visits. Half of the walks choose the best setting. The others decide whether it is
    clearly better than primitive actions. If it is not, options are not used:
    `option_chance` is 0. Where an episode ends, the walk continues at the start. States
    that it cannot visit again and again do not count.

    Parameters
    ----------
    mdp : MDP
        A table.
    options : OptionSet
        Its options.
    settings : sequence of (option_chance, stop_chance)
        What is tried. By default seven pairs, from bold to careful. Of tables with more
        than 100,000 states, only the second to the fourth are tried.
    n_walks : int, default=32
        Largest number of walks per setting. Where walks are long there are fewer, but
        at least 4.
    max_steps : int, default=40,000,000
        Largest number of steps of all walks together, one or two CPU seconds. Above
        100,000 states at most 60 per state. A walk that does not see all states in its
        share of the steps is scored by the states that it has seen, and a penalty.
    horizon : int, default=None
        Length of the walks: what is seen later does not count. So few options are not
        refused where they see most of the states soon and the last ones late. None:
        until all states are seen.
    visits : ndarray of int of shape (S,), default=None
        With a horizon: how often the data were in each state that is not additional. A
        first visit then counts for 1 / visits: where a log spent most of its time, it
        left little to explore. None: all states count alike.
    rng : int, default=0
        Seed of the walks.

    Returns
    -------
    Exploration
        The best setting, or no options.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> rooms = eo.maze("rooms:2x2")
    >>> found = tune_exploration(rooms, eo.discover(rooms, 8))
    >>> found.option_chance > 0, found.ratio < 0.6
    (True, True)
    """
    no_options = Exploration(option_chance=0.0, stop_chance=0.0, ratio=1.0)

    # A table of samples has many ends. Rows that lead from each of them to all states
    # would be slow.
    endless = continue_after_end(mdp, max_restarts=100)
    targets = find_recurrent_states(endless)
    # Nobody looks for the ends of episodes.
    targets[mdp.n_listed :] = False
    if targets.sum() < 2:
        # No action leads anywhere.
        return no_options

    # Walks through a huge table are long, so there is time for fewer settings.
    if mdp.n_states > 100_000:
        settings = settings[1:4]
        max_steps = min(max_steps, 60 * mdp.n_states)
    primitive = Setting(option_chance=0.0, stop_chance=0.0)
    tried = [primitive] + [Setting(*pair) for pair in settings]

    half = max(check_int("n_walks", n_walks) // 2, 2)
    max_steps = check_int("max_steps", max_steps)
    policies = stack_policies(mdp, options)
    if horizon is not None:
        horizon = check_int("horizon", horizon)
        weights = targets.astype(np.float64)
        if visits is not None:
            weights[: len(visits)] /= np.maximum(visits, 1)
        times = walk_for_some_time(
            endless, policies, tried, weights, half, horizon, seed=rng
        )
    else:
        # Short walks take less time in NumPy than their kernel takes to load.
        simulate = walk_together if mdp.n_states <= 150 else walk_one_by_one
        times = simulate(endless, policies, tried, targets, half, max_steps, seed=rng)

    # The best of many noisy scores is too good. Other walks decide whether it is better
    # than primitive actions.
    best = _find_best(times)
    half = times.shape[1] // 2
    confirmed = times[best, half:]
    ratio = float(confirmed.mean() / times[0].mean())
    is_better = ratio < 0.9
    if horizon is not None:
        # What short walks have not seen is nearly all of their score, so it differs
        # little. But walks of one length vary little, too.
        error = np.hypot(
            confirmed.std() / np.sqrt(half), times[0].std() / np.sqrt(2 * half)
        )
        is_better = bool(confirmed.mean() + 2.0 * error < times[0].mean())
    if is_better:
        return Exploration(tried[best].option_chance, tried[best].stop_chance, ratio)
    return no_options


# For agents, whose options run to their ends. From bold to careful.
AGENT_CHANCES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)


def tune_for_agents(
    mdp: MDP, options: OptionSet, stop_chance: float = 0.0, **how: Any
) -> float:
    """Find the `option_chance` of an agent by `tune_exploration`.

    An agent runs its best options, too, so how soon they stop is for the user to say,
    and only how often one is sampled is tuned.
    """
    settings = [Setting(chance, stop_chance) for chance in AGENT_CHANCES]
    tuned = tune_exploration(mdp, options, settings, **how)
    assert tuned.option_chance is not None
    return tuned.option_chance


def tune_for_all(
    mdp: MDP, options: OptionSet, visits: IntegerArray, horizon: int, n_walks: int
) -> Exploration:
    """Tune random walks and agents: what options without a table bring with them.

    The parameters are those of `tune_exploration`.
    """
    how: dict[str, Any] = {"visits": visits, "horizon": horizon, "n_walks": n_walks}
    walks = tune_exploration(mdp, options, **how)
    return replace(walks, agent_chance=tune_for_agents(mdp, options, 0.0, **how))


def resolve_option_chance(
    options: object, option_chance: float | str | None, stop_chance: float
) -> float | None:
    """Return the `option_chance` of a wrapper as it was given, or tune it."""
    if not isinstance(option_chance, str):
        return option_chance
    check_auto(option_chance)
    if isinstance(options, OptionSet):
        return tune_for_agents(options.mdp, options, stop_chance)
    found: Exploration | None = getattr(options, "exploration", None)
    if found is not None and found.agent_chance is not None:
        return found.agent_chance
    # A careful number: with 32 options it did no harm on any map that we tried.
    return 0.01


def resolve_exploration(
    options: object, option_chance: float | str | None, stop_chance: float
) -> Exploration:
    """Return the settings of a random walk as they were given, or tune them.

    With ``option_chance="auto"``, options that were discovered in data bring both
    probabilities with them, and `tune_exploration` chooses them for options of a table.
    """
    if not isinstance(option_chance, str):
        return Exploration(option_chance, stop_chance)
    check_auto(option_chance)
    if isinstance(options, OptionSet):
        return tune_exploration(options.mdp, options)
    found: Exploration | None = getattr(options, "exploration", None)
    if found is not None:
        return found
    # The most careful pair: with 32 options it did no harm on any map that we tried.
    return Exploration(option_chance=0.01, stop_chance=0.05)


def check_auto(option_chance: str) -> None:
    """Check that an `option_chance` that is text is "auto"."""
    if option_chance != "auto":
        raise ValueError(
            'option_chance must be a probability, "auto" or None, got '
            f"{show_value(option_chance)}"
        )


def _find_best(times: FloatArray) -> int:
    """Return the setting, other than primitive actions, whose first half is soonest.

    `times` ``(settings, walks)`` has primitive actions in its first row.
    """
    half = times.shape[1] // 2
    return 1 + int(np.argmin(times[1:, :half].mean(axis=1)))


def walk_together(
    mdp: MDP,
    policies: IntegerArray,
    settings: Sequence[Setting],
    targets: BoolArray,
    half: int,
    max_steps: int,
    seed: int,
) -> FloatArray:
    """Score walks with NumPy, all walks of all settings at once.

    Parameters
    ----------
    mdp : MDP
        A table without ends.
    policies : array of shape (n, S)
        Options, TERMINATE where they end.
    settings : sequence of Setting
        What is tried. The first one is for primitive actions only.
    targets : array of bool of shape (S,)
        The states that count.
    half : int
        Half of the number of walks per setting.
    max_steps : int
        Largest number of steps of all walks together. A walk has 10,000 at most.
    seed : int
        Seed of the walks.

    Returns
    -------
    array of shape (settings, 2 * half)
        Mean step of the first visits of each walk. A state that was not seen counts
        three times the steps of the walk.
    """
    n_walks = 2 * half
    generator = np.random.default_rng(seed)
    starts = generator.choice(np.flatnonzero(targets), n_walks)
    crowd = _Crowd(
        mdp,
        policies,
        settings=np.repeat(settings, n_walks, axis=0),
        starts=np.tile(starts, len(settings)),
    )

    walks = np.arange(len(crowd.state))
    is_seen = np.tile(~targets, (len(walks), 1))
    is_seen[walks, crowd.state] = True
    first_visit = np.zeros(is_seen.shape)

    # All walks step on until those of primitive actions, which come first, have seen
    # nearly all states. Random numbers are drawn for 64 steps at once.
    n_steps = 0
    most_steps = min(10_000, max_steps // len(walks))
    while n_steps < most_steps and is_seen[:n_walks].mean() < 0.999:
        for numbers in generator.random((64, 4, len(walks))):
            n_steps += 1
            crowd.step(*numbers)
            is_new = ~is_seen[walks, crowd.state]
            first_visit[walks[is_new], crowd.state[is_new]] = n_steps
            is_seen[walks, crowd.state] = True

    first_visit[~is_seen] = 3.0 * n_steps
    means: FloatArray = first_visit.sum(axis=1) / (targets.sum() - 1)
    return means.reshape(len(settings), n_walks)


class _Crowd:
    """Random walks that step together, as arrays with one entry per walk.

    Parameters
    ----------
    mdp : MDP
        The table that all walk through.
    policies : array of shape (n, S)
        Options, TERMINATE where they end.
    settings : array of shape (walks, 2)
        Option chance and stop chance of each walk.
    starts : array of shape (walks,)
        First states.
    """

    def __init__(
        self,
        mdp: MDP,
        policies: IntegerArray,
        settings: FloatArray,
        starts: IntegerArray,
    ) -> None:
        self.state = starts
        # The option that runs; -1: none.
        self._option = np.full(len(starts), -1)
        self._option_chance, self._stop_chance = settings.T

        self._n_actions = mdp.n_actions
        self._successors = mdp.transition.indices
        self._cumulative = np.cumsum(mdp.transition.data)
        # Row -1 is no option: it never has an action.
        no_option = np.full((1, mdp.n_states), -1, dtype=np.int32)
        self._policies = np.vstack([policies, no_option])
        self._available = csr_array(self._policies.T >= 0)
        self._n_available = np.diff(self._available.indptr)

    def step(
        self,
        stop_draws: FloatArray,
        decision_draws: FloatArray,
        choice_draws: FloatArray,
        outcome_draws: FloatArray,
    ) -> None:
        """Take a step in each walk, by uniform random numbers ``(walks,)``.

        They say whether an option stops, whether the next decision is for an option,
        which action or option it is, and where the action leads. States and running
        options are changed.
        """
        # Where none runs, the option is -1: the last row, which has no action.
        option_action = self._policies[self._option, self.state]
        is_running = (option_action >= 0) & (stop_draws >= self._stop_chance)

        # All other walks decide: for one of the options, or for a primitive action.
        has_options = self._n_available[self.state] > 0
        takes_option = (decision_draws < self._option_chance) & has_options
        takers = np.flatnonzero(~is_running & takes_option)
        chosen = np.full(len(self.state), -1)
        chosen[takers] = self._pick_options(self.state[takers], choice_draws[takers])
        self._option = np.where(is_running, self._option, chosen)

        primitive_action = (choice_draws * self._n_actions).astype(np.int64)
        option_action = self._policies[self._option, self.state]
        action = np.where(self._option < 0, primitive_action, option_action)

        # Each row of the table sums to 1, so the successor of row r is where the
        # cumulative sum of all rows exceeds r plus a uniform number.
        row = self.state * self._n_actions + action
        entry = np.searchsorted(self._cumulative, row + outcome_draws, side="right")
        # Rounding may leave the last sum a little below the number of rows.
        entry = np.minimum(entry, len(self._successors) - 1)
        self.state = self._successors[entry]

    def _pick_options(
        self, states: IntegerArray, draws: FloatArray
    ) -> NDArray[np.int32]:
        """Return ``(N,)`` an option that is available in each state ``(N,)``."""
        number = (draws * self._n_available[states]).astype(np.int64)
        first_entry = self._available.indptr[states]
        options: NDArray[np.int32] = self._available.indices[first_entry + number]
        return options


def walk_for_some_time(
    mdp: MDP,
    policies: IntegerArray,
    settings: Sequence[Setting],
    weights: FloatArray,
    half: int,
    horizon: int,
    seed: int,
) -> FloatArray:
    """Score walks of one length with the kernel.

    The parameters are those of `walk_together`, with the length of a walk in place of
    the number of all steps, and in place of the targets how much a first visit of each
    state counts, 0 if it does not.
    """
    moves, uniform = make_tables(mdp, policies)
    times = np.empty((len(settings), 2 * half))
    for i, setting in enumerate(settings):
        choices = uniform._replace(
            option_chance=setting.option_chance, stop_chance=setting.stop_chance
        )
        for number in range(2 * half):
            times[i, number] = _weigh_first_visits(
                (moves, choices), weights, horizon, [seed, number]
            )
    return times


def _weigh_first_visits(
    tables: tuple[Moves, Choices],
    weights: FloatArray,
    horizon: int,
    seed: Sequence[int],
) -> float:
    """The weighted mean step of the first visits of a walk of `horizon` steps."""
    generator = np.random.default_rng(seed)
    start = int(generator.choice(np.flatnonzero(weights)))
    walk_seed = int(generator.integers(2**63))

    entered = trace_walk(tables, start, walk_seed, horizon)
    times = np.full(len(weights), _PENALTY * horizon)
    # Backwards, so that of several visits the first one stays.
    times[entered[::-1]] = np.arange(horizon, 0, -1)

    # The start was seen before the first step.
    counted = weights.copy()
    counted[start] = 0.0
    mean = (counted * times).sum() / counted.sum()
    # In which order entries are added must not decide between two settings.
    return float(np.round(mean, 6))


def walk_one_by_one(
    mdp: MDP,
    policies: IntegerArray,
    settings: Sequence[Setting],
    targets: BoolArray,
    half: int,
    max_steps: int,
    seed: int,
) -> FloatArray:
    """Score walks with the kernel, one after the other.

    The parameters are those of `walk_together`. Where walks are long there are fewer
    than ``2 * half``. Only primitive actions and the best setting take the second half
    of the walks; those of the others are inf.
    """
    moves, uniform = make_tables(mdp, policies)
    tables = []
    for setting in settings:
        choices = uniform._replace(
            option_chance=setting.option_chance, stop_chance=setting.stop_chance
        )
        tables.append((moves, choices))

    # Two walks of primitive actions show how long a walk is, and so how many we can
    # afford: half of the walks for each setting, and the second halves of two of them.
    n_halves = len(settings) + 2
    limit = max(max_steps // (2 * n_halves), 1)
    first_time, first_steps = measure_first_visits(tables[0], targets, limit, [seed, 0])
    second_time, second_steps = measure_first_visits(
        tables[0], targets, limit, [seed, 1]
    )
    affordable = max_steps // (n_halves * max(first_steps, second_steps))
    half = min(max(affordable, 2), half)

    times = np.full((len(settings), 2 * half), np.inf)
    times[0, :2] = first_time, second_time
    others = range(2, 2 * half)
    times[0, 2:] = _measure_walks(tables[0], targets, limit, seed, others)

    # A setting that needs four times as long as primitive actions is no good: its walks
    # may end there.
    limit = min(limit, int(4 * times[0].mean()) + 1)
    for i in range(1, len(settings)):
        times[i, :half] = _measure_walks(tables[i], targets, limit, seed, range(half))

    best = _find_best(times)
    second_half = range(half, 2 * half)
    times[best, half:] = _measure_walks(tables[best], targets, limit, seed, second_half)
    if times[best, half:].mean() > limit / 2 and mdp.n_states <= 100_000:
        # A few options see more at first, and then reach a plateau. A walk this short
        # does not tell.
        times[best, half:] = np.inf
    return times


def _measure_walks(
    tables: tuple[Moves, Choices],
    targets: BoolArray,
    limit: int,
    seed: int,
    numbers: Iterable[int],
) -> list[float]:
    """Return the mean step of first visits of some walks, given by their numbers."""
    times = []
    for number in numbers:
        time, _ = measure_first_visits(tables, targets, limit, [seed, number])
        times.append(time)
    return times


# A target that was not visited counts as if it were visited at so many times the limit.
# Above 1, so that it is worse than a visit at the last step.
_PENALTY = 3.0


def measure_first_visits(
    tables: tuple[Moves, Choices],
    targets: BoolArray,
    limit: int,
    seed: Sequence[int],
) -> tuple[float, int]:
    """Walk from a random target state until all targets were visited.

    Parameters
    ----------
    tables : Moves, Choices
        Dynamics and choices of the walk, from `make_tables`.
    targets : array of bool of shape (S,)
        The states that count.
    limit : int
        Steps after which the walk ends.
    seed : sequence of int
        Seed of the walk.

    Returns
    -------
    mean : float
        Mean step of the first visits of all targets but the start.
    steps : int
        Number of steps of the walk.
    """
    generator = np.random.default_rng(seed)
    start = int(generator.choice(np.flatnonzero(targets)))
    walk_seed = int(generator.integers(2**63))

    # `visit_states` marks in place what the walk visits. States that do not count are
    # marked from the beginning.
    touched = (~targets).astype(np.uint8)
    sum_of_first_visits, n_steps = visit_states(
        tables, start, walk_seed, touched, limit
    )

    n_missed = int((touched == 0).sum())
    n_others = int(targets.sum()) - 1
    mean = (sum_of_first_visits + _PENALTY * limit * n_missed) / n_others
    return mean, n_steps
