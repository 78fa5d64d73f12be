"""Online, with an incomplete graph: explore, derive options, explore further with them (the paper's closing question).

"It would also be interesting to see if the options we discover can be generated incrementally and with incomplete
graphs." `cycle` does it on any environment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from eigenoptions._validation import check_choice, check_int, make_generator
from eigenoptions.discovery.experience import TableExperience
from eigenoptions.discovery.frontier import CELLS_GAMMA, Cells, Explorer
from eigenoptions.discovery.methods import from_samples_only
from eigenoptions.discovery.methods import method as declared
from eigenoptions.discovery.samples import Experience, Opened, begin, opened
from eigenoptions.features import Map, Raw
from eigenoptions.mdp import MDP, Transitions
from eigenoptions.options import OptionSet
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.options.walks import walk

# Ways to explore: a random walk that takes options at times, or `frontier.Explorer`.
EXPLORATIONS = ("options", "frontier")


@dataclass(frozen=True, eq=False)
class Snapshot:
    """State of a `cycle` after a round.

    Attributes
    ----------
    round, transitions, options
        Number of the round, from 1, its transitions, and the options that the next one explores with; None while no
        transition has changed a feature.
    steps, seen, differences
        So far: primitive steps, states seen (with features, cells of the observations), and distinct differences
        phi(s') - phi(s), which are the rows of the incidence matrix.

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
    method: str = "eigen",
    features: str | Map | None = None,
    option_chance: float | None = 0.05,
    rng: int | np.random.Generator = 0,
    **settings: Any,
) -> Iterator[Snapshot]:
    """Explore, derive options from the transitions, explore further with them, and so on: one snapshot per round.

    Parameters
    ----------
    env, n_options
        An `MDP` (walked by compiled code), or whatever `envs.collect` accepts; and most options at a time.
    steps, rounds
        Primitive steps per round, and number of rounds (None: no limit). In a table the walk continues where it was;
        other environments are reset each round.
    method, features, rng
        As in `discover`; methods other than ``"eigen"`` need states that are numbered.
    option_chance
        Probability that a decision is for an option, where one may start; options run to their end. None: uniform over
        the primitive actions and the options, as in the paper's experiments. Then almost all time is spent on the way
        between ends of the known part, and less is seen than without options (see ``examples/exploration.py``).
    explore
        ``"options"``: a random walk that takes the options of the last round. ``"frontier"``: every action leads toward
        what is unknown (`discovery.frontier.Explorer`), which sees tables two to thirty times as fast; the options are
        derived but not taken. It needs states that are numbered, or bounded observations, which are sorted into cells.
    settings
        `n_envs` and `max_episode_steps` as in `envs.collect`; the others as in `from_transitions`, or those of the
        method.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> for snapshot in cycle(maze("four-rooms"), steps=500, rounds=3):
    ...     print(snapshot)
    Snapshot(round 1: 500 steps, 78 seen, 177 differences)
    Snapshot(round 2: 1000 steps, 101 seen, 278 differences)
    Snapshot(round 3: 1500 steps, 103 seen, 300 differences)
    >>> next(cycle(maze("four-rooms"), steps=600, explore="frontier")).seen
    104
    """
    from eigenoptions.envs import collect

    check_int("n_options", n_options)
    check_int("steps", steps)
    if rounds is not None:
        check_int("rounds", rounds)
    frontier = check_choice("explore", settings.pop("explore", EXPLORATIONS[0]), EXPLORATIONS) == "frontier"
    generator, limit = make_generator(rng), settings.pop("max_episode_steps", None)
    if method != "eigen":
        settings |= {"method": from_samples_only(declared(method)), "rng": generator}
    past: Experience | None = None
    options: Any = None
    start: int | None = None
    with opened(env, settings.pop("n_envs", 1), limit) as about:
        stored = about.stored(features)
        how: dict[str, Any] = {"option_chance": option_chance, "rng": generator}
        explorer = _explorer(about, generator) if frontier else None
        for i in count(1) if rounds is None else range(1, rounds + 1):
            if isinstance(env, MDP):
                go: dict[str, Any] = {"begin": start, "max_episode_steps": limit}
                batch = (
                    explorer.walk(env, steps, **go) if explorer else walk(env, steps, options, **go, **how)
                )
                start = None if batch.terminated[-1] else int(batch.next_obs[-1])
            else:
                if explorer:
                    explorer.begin()
                batch = collect(about.envs, steps, policy=explorer or options, **how, **stored)
            if past is None:
                # Bounds that are not finite are taken from the first round.
                space, phi = (None, Raw()) if stored else (about.space, features)
                past, settings = begin(batch, space, about.n_actions, phi, settings)
                if isinstance(past, TableExperience):
                    past.coords = about.coords
            past.add(batch)
            if len(past.gram):
                options = None
                # A method may find nothing in what was seen so far, such as a doorway.
                with suppress(*([] if method == "eigen" else [ValueError])):
                    options = replace(past.options(n_options, at_most=True, **settings), **stored)
            yield Snapshot(i, i * steps, past.n_seen, len(past.gram), batch, options)


def _explorer(about: Opened, rng: np.random.Generator) -> Explorer:
    """An explorer of the states of an environment, with random numbers of its own."""
    space, own = about.space, rng.spawn(1)[0]
    if hasattr(space, "n") and not space.shape:
        return Explorer(int(space.n), about.n_actions, rng=own)
    low, high = getattr(space, "low", np.inf), getattr(space, "high", np.inf)
    try:
        cells = Cells(low, high)
    except ValueError as error:
        raise ValueError(
            f'explore="frontier" needs states that are numbered, or cells of them; {error}: use explore="options"'
        ) from None
    return Explorer(cells.count, about.n_actions, gamma=CELLS_GAMMA, rng=own, state=cells)
