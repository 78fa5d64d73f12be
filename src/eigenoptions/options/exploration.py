"""How often to choose an option while exploring, and how soon to stop it: a short simulation decides.

Chosen too often, few options carry a random walk to their ends again and again. An option that also terminates with
a small probability after each step instead pushes the walk along its potential. Which probabilities help depends on
the state space, so `tune_exploration` tries a few of them, "no options" included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from eigenoptions._validation import check_choice, check_int
from eigenoptions.mdp import MDP, reachable
from eigenoptions.options import OptionSet
from eigenoptions.options.walks import list_start_states, make_episodes, make_tables, stack_policies


@dataclass(frozen=True)
class Exploration:
    """Settings of a random walk over actions and options.

    Attributes
    ----------
    option_chance : float
        Probability that a decision is for an option where one is available; 0 if options do not help.
    stop_chance : float
        Probability that an option also terminates after each of its steps.
    ratio : float
        Estimated mean time of first visits relative to that of primitive actions; nan if it was not measured.
    """

    option_chance: float
    stop_chance: float
    ratio: float = float("nan")


def tune_exploration(
    mdp: MDP,
    options: OptionSet,
    settings: tuple[tuple[float, float], ...] = (
        *((0.1, 0.1), (0.03, 0.1), (0.01, 0.05)),
        *((0.3, 0.0), (0.1, 0.0), (0.03, 0.0), (0.01, 0.0), (0.003, 0.0), (0.001, 0.0)),
    ),
    *,
    n_walks: int = 6,
    max_steps: int = 3_000_000,
    rng: int = 0,
) -> Exploration:
    """Option and stop probability by which random walks see the states of an MDP soonest.

    Walks start in random states, and each is scored by the mean time of its first visits. Settings that do worse are
    dropped after two and four walks. The winner must be clearly better than primitive actions, else options are not
    used: `option_chance` is 0. Where an episode ends, the walk continues at the start.

    Parameters
    ----------
    mdp, options : MDP, OptionSet
        A table and its options.
    settings : tuple of (option_chance, stop_chance)
        What is tried.
    n_walks : int, default=6
        Walks per setting.
    max_steps : int, default=3,000,000
        Most steps of a walk. On tables where it does not see all states in them, states seen count.
    rng : int, default=0
        Seed of the walks.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> rooms = eo.maze("rooms:2x2")
    >>> found = tune_exploration(rooms, eo.discover(rooms, 8))
    >>> found.option_chance > 0, found.ratio < 0.6
    (True, True)
    """
    if mdp.successors is not None and (mdp.successors == np.arange(mdp.n_states)[:, None]).all():
        return Exploration(0.0, 0.0, 1.0)  # no action leads anywhere
    endless = continue_after_end(mdp)
    policy = stack_policies(mdp, options)
    # Few walks and no rare options on huge tables, where a walk takes seconds.
    if mdp.n_states > 20_000:
        n_walks, settings = min(n_walks, 2), settings[:3]
    targets = reachable(endless.transition, list_start_states(mdp))

    def first_visits(choice: tuple[float, float], walks: range, limit: int) -> list[float]:
        return [_mean_first_visit(endless, policy, choice, targets, limit, rng, walk) for walk in walks]

    primitive = float(np.mean(first_visits((0.0, 0.0), range(n_walks), check_int("max_steps", max_steps))))
    limit = int(min(4 * primitive, max_steps)) + 1
    scores: dict[tuple[float, float], list[float]] = {choice: [] for choice in settings}
    for low in range(0, n_walks, 2):
        for choice, times in scores.items():
            times += first_visits(choice, range(low, min(low + 2, n_walks)), limit)
        best = min(np.mean(times) for times in scores.values())
        scores = {choice: times for choice, times in scores.items() if np.mean(times) <= 1.3 * best}
    choice = min(scores, key=lambda choice: float(np.mean(scores[choice])))
    # The best of many noisy scores is too good: fresh walks decide whether it is better than primitive actions.
    fresh = range(n_walks, 2 * n_walks)
    ratio = float(
        np.mean(first_visits(choice, fresh, limit)) / np.mean(first_visits((0.0, 0.0), fresh, limit))
    )
    return Exploration(*choice, ratio) if ratio < 0.9 else Exploration(0.0, 0.0, 1.0)


def resolve_exploration(options: Any, option_chance: float | str | None, stop_chance: float) -> Exploration:
    """The settings of a wrapper or a walk; ``option_chance="auto"`` asks `tune_exploration` where there is a table."""
    if not isinstance(option_chance, str):
        return Exploration(option_chance, stop_chance)  # type: ignore[arg-type]
    check_choice("option_chance", option_chance, ("auto",))
    if not isinstance(options, OptionSet):
        # This helped or did no harm in rooms, open maps and trees with 16 options.
        return Exploration(0.02, 0.05)
    return tune_exploration(options.mdp, options)


def continue_after_end(mdp: MDP) -> MDP:
    """The same dynamics without ends: the goal, and states that no action leaves, lead to the start (or anywhere).

    >>> continue_after_end(MDP.from_successors([[0, 1], [1, 1]], start=0)).successors.tolist()
    [[0, 1], [0, 0]]
    """
    n, n_actions = mdp.n_states, mdp.n_actions
    row_state = np.repeat(np.arange(n), n_actions)
    stays = np.asarray(mdp.transition[np.arange(n * n_actions), row_state]).reshape(n, n_actions)
    ends: NDArray[np.bool_] = np.all(stays > 1.0 - 1e-9, axis=1)
    if mdp.goal is not None:
        ends[mdp.goal] = True
    if not ends.any() or ends.all():
        return MDP(mdp.transition)
    restart = np.zeros((1, n))
    restart[0, np.flatnonzero(~ends) if mdp.start is None or ends[mdp.start] else mdp.start] = 1.0
    is_end = ends[row_state]
    table = diags_array((~is_end).astype(float)) @ mdp.transition
    table = table + csr_array(is_end[:, None].astype(float)) @ csr_array(restart / restart.sum())
    return MDP(csr_array(table))


def _mean_first_visit(
    mdp: MDP,
    policy: NDArray[np.int32],
    choice: tuple[float, float],
    targets: NDArray[np.bool_],
    limit: int,
    seed: int,
    walk: int,
) -> float:
    """Mean step of the first visits of one walk to the target states; those not seen count three times `limit`."""
    from eigenoptions._kernels.walking import wander

    # Few options with a chance of 0 are none at all.
    tables = make_tables(mdp, policy if choice[0] > 0 else policy[:0], *choice)
    generator = np.random.default_rng([seed, walk])
    start = int(generator.choice(np.flatnonzero(targets)))
    touched = (~targets).astype(np.uint8)
    touched[start] = 1
    n_left = int((touched == 0).sum())
    place = np.array([start, -1, 0, n_left])
    counter = generator.integers(2**64, size=1, dtype=np.uint64)
    none = np.empty(0, dtype=np.int64)
    total = wander(*tables, make_episodes(mdp, None), place, counter, limit, touched, none, none, none)
    return float(total + 3 * place[3] * limit) / max(n_left, 1)
