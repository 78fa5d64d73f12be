"""Online, with an incomplete graph: explore, derive options, explore further with them (the paper's closing question).

"It would also be interesting to see if the options we discover can be generated incrementally and with incomplete
graphs." `cycle` does it on any environment, `exploration` measures what it is worth on a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.discovery.experience import (
    OF_FEATURES,
    FeatureExperience,
    TableExperience,
    described,
    experience,
    nested,
)
from eigenoptions.features import Map, Raw
from eigenoptions.mdp import MDP, Transitions
from eigenoptions.options import OptionSet
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.options.walks import walk


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Where a `cycle` stands after a round.

    Attributes
    ----------
    round
        From 1 on.
    steps
        Primitive steps so far.
    seen
        States seen so far; of features, cells of the observations.
    differences
        Distinct differences phi(s') - phi(s) so far: rows of the incidence matrix.
    transitions
        What this round saw.
    options
        What it led to: the options that the next round explores with. None while there is nothing to derive them from.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> next(cycle(maze("i-maze"), steps=100, n_options=2)).options
    OptionSet(2 options on 19 states: e2+, e2-)
    """

    round: int
    steps: int
    seen: int
    differences: int
    transitions: Transitions
    options: OptionSet | LinearOptionSet | None

    def __repr__(self) -> str:
        return f"Snapshot(round {self.round}: {self.steps} steps, {self.seen} seen, {self.differences} differences)"


def cycle(
    env: Any,
    *,
    n_options: int = 16,
    steps: int = 1000,
    rounds: int | None = None,
    features: str | Map | None = None,
    option_chance: float | None = 0.05,
    rng: int | np.random.Generator = 0,
    n_envs: int = 1,
    max_episode_steps: int | None = None,
    **settings: Any,
) -> Iterator[Snapshot]:
    """Explore, derive options from what was seen, explore further with them, and so on (Section 7).

    Parameters
    ----------
    env
        An `MDP` (walked by compiled code), or whatever `envs.collect` takes.
    n_options
        The most options at a time, both signs counted.
    steps
        Primitive steps a round. In a table the walk goes on where it was; other environments are reset each round.
    rounds
        How many; None: for ever.
    features
        As in `from_transitions`: None for numbered states, a name, or a function of observations.
    option_chance
        Chance that a decision is for an option, where one may start; options run to their end. None: uniform over the
        primitive actions and the options, as in the paper's experiments. Then almost all time is spent on the way
        between ends of what is known, and less is seen than without options (see `exploration`).
    rng, n_envs, max_episode_steps
        As in `envs.collect`.
    settings
        As in `from_transitions`.

    Yields
    ------
    Snapshot
        One a round.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> for snapshot in cycle(maze("four-rooms"), steps=500, rounds=3):
    ...     print(snapshot)
    Snapshot(round 1: 500 steps, 78 seen, 177 differences)
    Snapshot(round 2: 1000 steps, 101 seen, 278 differences)
    Snapshot(round 3: 1500 steps, 103 seen, 300 differences)
    """
    from eigenoptions.envs import collect

    for name, value in (("n_options", n_options), ("rounds", rounds), ("steps", steps)):
        if value is not None and (not isinstance(value, int | np.integer) or value < 1):
            raise ValueError(f"{name} must be at least 1, got {value!r}")
    dice = np.random.default_rng(rng)
    space, n_actions, coords, _ = described(env)
    inside = nested(space, features)
    own: dict[str, Any] = {name: settings.pop(name) for name in OF_FEATURES if name in settings}
    how: dict[str, Any] = {"option_chance": option_chance, "max_episode_steps": max_episode_steps}
    stored: dict[str, Any] = {"features": features} if inside else {}
    past: TableExperience | FeatureExperience | None = None
    options: Any = None
    begin: int | None = None
    for i in count(1) if rounds is None else range(1, rounds + 1):
        if isinstance(env, MDP):
            batch = walk(env, steps, options, begin=begin, rng=dice, **how)
            begin = None if batch.terminated[-1] else int(batch.next_obs[-1])
        else:
            batch = collect(env, steps, policy=options, rng=dice, n_envs=n_envs, **how, **stored)
        if past is None:  # bounds that are not finite are taken from the first round
            if inside:
                past = experience(None, n_actions, Raw(), batch, **own)
            else:
                past = experience(space, n_actions, features, batch, **own)
            if isinstance(past, TableExperience):
                past.coords = coords
        past.add(batch)
        if len(past.gram):
            options = past.options(n_options, at_most=True, **settings)
            options = replace(options, features=features) if inside else options
        yield Snapshot(i, i * steps, past.n_seen, len(past.gram), batch, options)


@dataclass(frozen=True, eq=False)
class Exploration:
    """States seen against steps.

    Attributes
    ----------
    steps
        ``(T,)`` primitive steps.
    seen
        For each way to explore, ``(runs, T)`` states seen by then.
    n_states
        How many there are.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> exploration(maze("i-maze"), 500, runs=1, points=2).n_states
    19
    """

    steps: NDArray[np.int64]
    seen: dict[str, NDArray[np.int64]]
    n_states: int


def exploration(
    mdp: MDP,
    steps: int = 4_000,
    *,
    runs: int = 30,
    round_steps: int = 250,
    n_options: int = 16,
    option_chance: float = 0.05,
    points: int = 100,
    rng: int = 0,
) -> Exploration:
    """States seen against steps: with primitive actions only, and with the options of `cycle` chosen in two ways.

    One of them is uniform over actions and options; the other chooses an option with probability `option_chance`.

    Parameters
    ----------
    mdp
        The table. Its goal is left out: nobody knows of it, and it ends no episode.
    steps
        Primitive steps of a run, one walk without a reset.
    runs
        Seeds; the same for every way to explore.
    round_steps, n_options, option_chance
        Of the cycle; see there.
    points
        Where the curves are looked at.
    rng
        Seed.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> curves = exploration(maze("i-maze"), 1000, runs=2, points=4)
    >>> curves.steps.tolist(), list(curves.seen)
    ([250, 500, 750, 1000], ['actions only', 'options, uniform choice', 'options, 1 decision in 20'])
    """
    for name, value in (("steps", steps), ("runs", runs), ("points", points)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be at least 1, got {value!r}")
    table = MDP(mdp.transition, coords=mdp.coords, start=mdp.start)
    at = np.linspace(0, steps, points + 1).round().astype(np.int64)[1:]
    how: dict[str, Any] = {"steps": round_steps, "rounds": -(-steps // round_steps), "n_options": n_options}
    ways = {"options, uniform choice": None, f"options, 1 decision in {1 / option_chance:.3g}": option_chance}
    seen: dict[str, list[NDArray[np.int64]]] = {"actions only": [], **{name: [] for name in ways}}
    for seed in np.random.SeedSequence(rng).spawn(runs):
        seen["actions only"].append(_seen([walk(table, steps, rng=np.random.default_rng(seed))], at))
        for name, chance in ways.items():
            rounds = cycle(table, option_chance=chance, rng=np.random.default_rng(seed), **how)
            seen[name].append(_seen([snapshot.transitions for snapshot in rounds], at))
    return Exploration(at, {name: np.array(lines) for name, lines in seen.items()}, table.n_states)


def _seen(batches: Sequence[Transitions], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many different states were visited within each number of steps."""
    visits = np.concatenate([np.stack([batch.obs, batch.next_obs], axis=1) for batch in batches])
    first = np.unique(visits.ravel(), return_index=True)[1] // 2 + 1
    return np.searchsorted(np.sort(first), at, side="right")
