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
from scipy.sparse import csr_array

from eigenoptions._validation import check_choice, check_int
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import continue_after_end, find_recurrent_states
from eigenoptions.options.records import OptionSet
from eigenoptions.options.walks import make_tables, stack_policies, visit_states

Mask = NDArray[np.bool_]
# Pairs of an option chance and a stop chance.
Settings = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Exploration:
    """Settings of a random walk over actions and options.

    Attributes
    ----------
    option_chance : float or None
        Probability that a decision is for an option where one is available; 0 if options do not help. None: a uniform
        choice over the actions and the options that are available.
    stop_chance : float
        Probability that an option also terminates after each of its steps.
    ratio : float
        Estimated mean time of first visits relative to that of primitive actions; nan if it was not measured.
    """

    option_chance: float | None
    stop_chance: float
    ratio: float = float("nan")


def tune_exploration(
    mdp: MDP,
    options: OptionSet,
    settings: Settings = (
        *((0.3, 0.3), (0.1, 0.1), (0.03, 0.1), (0.01, 0.05)),
        *((0.3, 0.0), (0.1, 0.0), (0.001, 0.0)),
    ),
    *,
    n_walks: int = 32,
    max_steps: int = 40_000_000,
    rng: int = 0,
) -> Exploration:
    """Option and stop probability by which random walks see the states of an MDP soonest.

    Walks start in random states, and each is scored by the mean time of its first visits. Half of the walks choose the
    best setting. The others decide whether it is clearly better than primitive actions; if it is not, options are not
    used: `option_chance` is 0. Where an episode ends, the walk continues at the start. States that it cannot visit
    again and again do not count.

    Parameters
    ----------
    mdp, options : MDP, OptionSet
        A table and its options.
    settings : tuple of (option_chance, stop_chance)
        What is tried.
    n_walks : int, default=32
        Most walks per setting; fewer where they are long, but at least 4.
    max_steps : int, default=40,000,000
        Most steps of all walks together, one or two CPU seconds; at most 60 per state above 100,000 states. Where a
        walk does not see all states in its part of them, the states that it has seen count.
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
    # A table of samples has many ends: rows that lead from each of them to all states would be slow.
    endless = continue_after_end(mdp, max_restarts=100)
    targets = find_recurrent_states(endless)
    if targets.sum() < 2:
        return Exploration(0.0, 0.0, 1.0)  # no action leads anywhere
    if mdp.n_states > 100_000:
        settings, max_steps = settings[1:4], min(max_steps, 60 * mdp.n_states)
    choices = ((0.0, 0.0), *settings)
    # Short walks take less time in NumPy than their kernel takes to load.
    simulate = walk_together if mdp.n_states <= 150 else walk_one_by_one
    policy, half = (
        stack_policies(mdp, options),
        max(check_int("n_walks", n_walks) // 2, 2),
    )
    times = simulate(
        endless, policy, choices, targets, half, check_int("max_steps", max_steps), rng
    )
    half = times.shape[1] // 2
    best = 1 + int(np.argmin(times[1:, :half].mean(axis=1)))
    # The best of many noisy scores is too good: other walks decide whether it is better than primitive actions.
    ratio = float(times[best, half:].mean() / times[0].mean())
    return (
        Exploration(*choices[best], ratio)
        if ratio < 0.9
        else Exploration(0.0, 0.0, 1.0)
    )


def resolve_exploration(
    options: Any, option_chance: float | str | None, stop_chance: float
) -> Exploration:
    """The settings of a wrapper or a walk; ``option_chance="auto"`` asks `tune_exploration` where there is a table."""
    if not isinstance(option_chance, str):
        return Exploration(option_chance, stop_chance)
    check_choice("option_chance", option_chance, ("auto",))
    if not isinstance(options, OptionSet):
        # The most careful pair: with 32 options it did no harm on any map that it was tried on.
        return Exploration(0.01, 0.05)
    return tune_exploration(options.mdp, options)


def walk_together(
    mdp: MDP,
    policy: NDArray[Any],
    choices: Settings,
    targets: Mask,
    half: int,
    max_steps: int,
    rng: int,
) -> NDArray[np.float64]:
    """``(choices, 2 half)`` mean step of the first visits, by NumPy; at most 10,000 steps of each walk."""
    n, n_actions, n_walks, generator = (
        mdp.n_states,
        mdp.n_actions,
        2 * half,
        np.random.default_rng(rng),
    )
    option_chance, stop_chance = np.repeat(choices, n_walks, axis=0).T
    walks = np.arange(len(option_chance))
    starts = generator.choice(np.flatnonzero(targets), n_walks)
    state, option = np.tile(starts, len(choices)), np.full(len(walks), -1)
    # Row -1 is no option: it never has an action.
    policy = np.vstack([policy, np.full((1, n), -1, dtype=np.int32)])
    available = csr_array(policy.T >= 0)
    n_available = np.diff(available.indptr)
    # Each row sums to 1, so the successor of row r is at r + a uniform number.
    P, cumulative = mdp.transition, np.cumsum(mdp.transition.data)
    seen = np.tile(~targets, (len(walks), 1))
    seen[walks, state] = True
    first, step = np.zeros(seen.shape), 0
    # All walks step together until those of primitive actions have seen nearly all target states.
    while step < min(10_000, max_steps // len(walks)) and seen[:n_walks].mean() < 0.999:
        for u in generator.random((64, 4, len(walks))):
            step += 1
            runs = (policy[option, state] >= 0) & (u[0] >= stop_chance)
            takes_option = ~runs & (u[1] < option_chance) & (n_available[state] > 0)
            chosen = available.indptr[state] + (u[2] * n_available[state]).astype(
                np.int64
            )
            chosen = (
                available.indices[np.where(takes_option, chosen, 0)]
                if available.nnz
                else option
            )
            option = np.where(runs, option, np.where(takes_option, chosen, -1))
            action = np.where(
                option < 0, (u[2] * n_actions).astype(np.int64), policy[option, state]
            )
            after = np.searchsorted(
                cumulative, state * n_actions + action + u[3], side="right"
            )
            state = P.indices[np.minimum(after, P.nnz - 1)]
            is_new = ~seen[walks, state]
            first[walks[is_new], state[is_new]] = step
            seen[walks, state] = True
    first[~seen] = 3.0 * step
    means: NDArray[np.float64] = first.sum(axis=1) / (targets.sum() - 1)
    return means.reshape(len(choices), n_walks)


def walk_one_by_one(
    mdp: MDP,
    policy: NDArray[Any],
    choices: Settings,
    targets: Mask,
    half: int,
    max_steps: int,
    rng: int,
) -> NDArray[np.float64]:
    """The same by the kernel, with fewer walks where they are long; the second half of all but the best are inf."""
    moves, uniform = make_tables(mdp, policy)
    tables = [
        (moves, uniform._replace(option_chance=chance, stop_chance=stop))
        for chance, stop in choices
    ]
    # All settings take the first half of the walks, and the best and primitive actions the second.
    n_parts = len(choices) + 2
    limit = max(max_steps // (2 * n_parts), 1)
    first = [
        mean_first_visit(tables[0], targets, limit, [rng, walk]) for walk in range(2)
    ]
    half = min(max(max_steps // (n_parts * max(steps for _, steps in first)), 2), half)
    times = np.full((len(choices), 2 * half), np.inf)
    times[0, :2] = [mean for mean, _ in first]

    def walk(choice: int, walks: range, limit: int) -> None:
        for walk in walks:
            times[choice, walk], _ = mean_first_visit(
                tables[choice], targets, limit, [rng, walk]
            )

    walk(0, range(2, 2 * half), limit)
    # States that are not seen in four times the mean of primitive actions count three times as many steps.
    limit = min(limit, int(4 * times[0].mean()) + 1)
    for choice in range(1, len(choices)):
        walk(choice, range(half), limit)
    best = 1 + int(np.argmin(times[1:, :half].mean(axis=1)))
    walk(best, range(half, 2 * half), limit)
    if times[best, half:].mean() > limit / 2 and mdp.n_states <= 100_000:
        # Few options see more at first and then stand still: a walk this short does not tell.
        times[best, half:] = np.inf
    return times


def mean_first_visit(
    tables: Any, targets: Mask, limit: int, seed: list[int]
) -> tuple[float, int]:
    """Mean step of the first visits of a walk to the target states, and its steps; not seen: three times `limit`."""
    generator = np.random.default_rng(seed)
    start, touched = (
        int(generator.choice(np.flatnonzero(targets))),
        (~targets).astype(np.uint8),
    )
    total, steps = visit_states(
        tables, start, int(generator.integers(2**63)), touched, limit
    )
    return (total + 3.0 * limit * int((touched == 0).sum())) / (
        int(targets.sum()) - 1
    ), steps
