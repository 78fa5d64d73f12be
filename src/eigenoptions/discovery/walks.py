"""Random walks through a table with actions and options, compiled (paper, Section 5.1)."""

from __future__ import annotations

import numpy as np

from eigenoptions.mdp import MDP, Transitions
from eigenoptions.options import OptionSet


def walk(
    mdp: MDP,
    steps: int,
    options: OptionSet | None = None,
    *,
    option_chance: float | None = None,
    begin: int | None = None,
    rng: int | np.random.Generator = 0,
    max_episode_steps: int | None = None,
) -> Transitions:
    """Transitions of a table, compiled: each decision for an action or an option, which runs to its end.

    Parameters
    ----------
    mdp
        The table. Episodes begin at its start (without one, anywhere) and end at its goal, if it has one.
    steps
        How many transitions.
    options
        Made for this many states and actions; None for primitive actions only.
    option_chance
        Chance that a decision is for an option, where one may start. None: uniform over actions and options.
    begin
        State to begin in; None: as every episode does.
    rng
        Seed or generator.
    max_episode_steps
        Begin anew after so many steps; None: never.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> walk(maze("S.G"), 4, rng=1).next_obs.tolist()
    [0, 1, 1, 1]
    """
    from eigenoptions._kernels.learning import cumulate
    from eigenoptions._kernels.wandering import wander

    for name, value in (("steps", steps), ("max_episode_steps", max_episode_steps)):
        if value is not None and (not isinstance(value, int | np.integer) or value < 1):
            raise ValueError(f"{name} must be at least 1, got {value!r}")
    if option_chance is not None and not 0 <= option_chance <= 1:
        raise ValueError(
            f"option_chance must be in [0, 1], or None for a uniform choice, got {option_chance!r}"
        )
    if begin is not None and not 0 <= begin < mdp.n_states:
        raise ValueError(f"begin must be a state in 0..{mdp.n_states - 1}, got {begin!r}")
    policy = np.empty((0, mdp.n_states), dtype=np.int32)
    if options is not None:
        options.check(mdp)
        policy = np.ascontiguousarray(options.policy, dtype=np.int32)
    may = policy.T >= 0
    first = np.concatenate([[0], np.cumsum(may.sum(axis=1))]).astype(np.int64)
    menu = first, np.nonzero(may)[1].astype(np.int64), -1.0 if option_chance is None else float(option_chance)
    starts = np.arange(mdp.n_states) if mdp.start is None else np.array([mdp.start])
    goal = -1 if mdp.goal is None else mdp.goal
    if mdp.start is None and goal >= 0 and mdp.n_states > 1:
        starts = np.delete(starts, goal)
    limit = np.iinfo(np.int64).max if max_episode_steps is None else int(max_episode_steps)
    episodes = -1 if begin is None else int(begin), starts, goal, limit
    seed = np.random.default_rng(rng).integers(2**64, dtype=np.uint64)
    state, action, after = (np.empty(int(steps), dtype=np.int64) for _ in range(3))
    T = mdp.transition
    sums = cumulate(T.indptr, T.data)
    wander(T.indptr, T.indices, sums, mdp.n_actions, policy, *menu, *episodes, seed, state, action, after)
    return Transitions(state, action, after, after == goal)
