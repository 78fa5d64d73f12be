"""Online, with an incomplete graph: explore, derive options, explore further.

This is the paper's closing question: "It would also be interesting to see if the
options we discover can be generated incrementally and with incomplete graphs."
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from eigenoptions._types import FeatureFunction, Randomness
from eigenoptions._validation import check_int, make_generator
from eigenoptions.data import Transitions
from eigenoptions.discovery.feature_space import find_rare_transitions
from eigenoptions.discovery.from_samples import discover_samples
from eigenoptions.discovery.method import NoOptionsError, get_method
from eigenoptions.discovery.samples import Samples, sample_environment
from eigenoptions.discovery.tables import Request
from eigenoptions.envs.sources import make_vector_env
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.options.tuning import resolve_exploration
from eigenoptions.options.walks import walk


@dataclass(frozen=True, eq=False)
class Snapshot:
    """State of a `cycle` after a round."""

    # Number of the round, from 1, and primitive steps so far.
    round: int
    steps: int
    # Number of states seen so far; with features, of pairs of a cell of the
    # observations and an action.
    seen: int
    # Those of this round.
    transitions: Transitions
    # What the next round explores with; None while there are none.
    options: OptionSet | LinearOptionSet | None

    def __repr__(self) -> str:
        return f"Snapshot(round {self.round}: {self.steps} steps, {self.seen} seen)"


def cycle(
    env: Any,
    *,
    n_options: int = 16,
    steps: int = 1000,
    rounds: int | None = None,
    method: str = "eigen",
    features: str | FeatureFunction | None = None,
    option_chance: float | str | None = "auto",
    stop_chance: float = 0.0,
    n_envs: int = 1,
    max_episode_steps: int | None = None,
    gamma: float | None = None,
    rng: Randomness = 0,
    **settings: Any,
) -> Iterator[Snapshot]:
    """Explore, derive options from the transitions, explore with them: round by round.

    Parameters
    ----------
    env
        An `MDP`, or whatever `envs.collect` accepts. In an MDP the walk continues where
        it was; other environments are reset each round.
    n_options : int, default 16
        Largest number of options.
    steps : int, default 1000
        Primitive steps per round.
    rounds : int, optional
        Number of rounds; without end by default.
    method : str, default "eigen"
        As in `discover`; others than ``"eigen"`` need numbered states.
    features : str or callable, optional
        As in `discover`.
    option_chance, stop_chance : float, default "auto" and 0
        Probabilities that a decision is for an option, and that an option terminates
        after each of its steps. "auto" is 0.01 and 0.05: a setting tuned on the part
        that is known would not serve the rest. None: uniform over the primitive actions
        and the options, as in the paper's experiments; less is then seen than without
        options.
    gamma : float, default=None
        As in `discover`.
    n_envs, max_episode_steps, rng
        As in `envs.collect`.
    settings
        Those of the method, or of `discovery.feature_space.discover_features`.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> for snapshot in cycle(maze("four-rooms"), steps=500, rounds=3):
    ...     print(snapshot)
    Snapshot(round 1: 500 steps, 78 seen)
    Snapshot(round 2: 1000 steps, 103 seen)
    Snapshot(round 3: 1500 steps, 104 seen)
    """
    n_options = check_int("n_options", n_options)
    steps = check_int("steps", steps)
    chosen, generator = get_method(method), make_generator(rng)
    exploration = resolve_exploration(None, option_chance, stop_chance)
    choice: Any = {
        "option_chance": exploration.option_chance,
        "stop_chance": exploration.stop_chance,
    }
    choice["rng"] = generator
    is_table = isinstance(env, MDP)
    envs, owned = (
        (env, False) if is_table else make_vector_env(env, n_envs, max_episode_steps)
    )
    batches: list[Transitions] = []
    options: Any = None
    start = None
    with closing(envs) if owned else nullcontext():
        for i in (
            count(1) if rounds is None else range(1, check_int("rounds", rounds) + 1)
        ):
            if is_table:
                batch = walk(
                    env,
                    steps,
                    options,
                    begin=start,
                    max_episode_steps=max_episode_steps,
                    **choice,
                )
                start = None if batch.terminated[-1] else int(batch.next_obs[-1])
                samples = Samples(batch, env.n_actions, env.n_states, coords=env.coords)
            else:
                samples = sample_environment(
                    envs, features, steps=steps, policy=options, **choice
                )
            batches.append(samples.transitions)
            samples = replace(samples, transitions=Transitions.of(batches))
            request = Request(
                method=chosen,
                n_options=n_options,
                gamma=gamma,
                rng=generator.spawn(1)[0],
                settings={"features": features, **settings},
                is_default=True,
            )
            try:
                options = discover_samples(samples, request)
            except NoOptionsError:
                options = None
            transitions = samples.transitions
            seen: Any = np.union1d(transitions.obs, transitions.next_obs)
            if not isinstance(options, OptionSet) and transitions.obs.ndim > 1:
                seen = find_rare_transitions(
                    transitions, getattr(options, "features", None), per_cell=1
                )
            yield Snapshot(i, i * steps, len(seen), batches[-1], options)
