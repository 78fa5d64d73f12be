"""Covering eigenoptions: representation, options, data, again (the ROD cycle of Machado et al., JMLR 2023).

Each round of `rod_cycle` walks some steps with the options so far, learns the successor representation Psi of what it
saw by temporal differences, takes the first eigenvector e of ``(Psi + Psi') / 2`` with the sign that points away from
what was visited, ``sum of e < 0``, and adds the option that maximises ``e(s') - e(s)`` on the transitions seen. With
the default representation Z instead, the purpose is ``log e`` of the first eigenvector of ``(Z + Z') / 2``, which also
leads away from costly states (reward-aware covering eigenoptions, RACE, of Tse et al., NeurIPS 2025).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import check_choice, check_int, make_generator
from eigenoptions.discovery.experience import TableExperience
from eigenoptions.discovery.methods import Method, Progress
from eigenoptions.discovery.methods.reward_aware import LOG_ERROR, rewards_per_state
from eigenoptions.mdp import MDP, reachable
from eigenoptions.options import OptionSet, Purpose
from eigenoptions.options.solver import solve
from eigenoptions.options.walks import walk
from eigenoptions.spectra.representations import learned_default, learned_successor, smallest_eigenvectors

# Rounds after which a search for all states ends in any case.
MAX_ROUNDS = 1_000
# Discount of the successor representation.
SR_GAMMA = 0.99
# Most squarings of a representation on the way to its first eigenvector: as many as 2^30 products.
MAX_SQUARINGS = 30


@dataclass(frozen=True, eq=False)
class Round:
    """State of a `rod_cycle` after a round.

    Primitive steps so far, ``(S,)`` states seen, the options so far, and ``(round_steps,)`` states entered now.
    """

    steps: int
    seen: NDArray[np.bool_]
    options: OptionSet
    entered: NDArray[np.int64]


def options(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    gamma: float = 0.99,
    round_steps: int = 100,
    option_chance: float = 0.05,
    progress: Progress | None = None,
) -> OptionSet:
    """The options of the first rounds of the cycle, one per round; None: until every reachable state was seen."""
    rounds = rod_cycle(mdp, round_steps=round_steps, option_chance=option_chance, gamma=gamma, rng=rng)
    first = np.arange(mdp.n_states) if mdp.start is None else [mdp.start]
    within = reachable(mdp.transition, first)
    for i in count(1):
        found = next(rounds)
        done = (found.seen | ~within).all() if n_options is None else i == n_options
        if progress is not None:
            progress(*((int(found.seen.sum()), int(within.sum())) if n_options is None else (i, n_options)))
        if done or i == MAX_ROUNDS:
            break
    return replace(found.options, provenance={})


def rod_cycle(
    mdp: MDP,
    *,
    round_steps: int = 100,
    option_chance: float = 0.05,
    gamma: float = 0.99,
    keep: int | None = None,
    representation: str = "successor",
    td: tuple[float, int] = (0.1, 10),
    rng: int | np.random.Generator = 0,
) -> Iterator[Round]:
    """The representation-driven option discovery cycle: one more option per round, without end.

    Parameters
    ----------
    mdp, rng
        The table that is walked, and a seed or random generator. Each round begins at its start; without one, in any
        state.
    round_steps, option_chance
        Primitive steps per round, and probability that a decision is for an option, where one may start.
    gamma, keep
        Discount of the options' purposes, and number of options kept, those of the latest rounds (None: all).
    representation, td
        "successor", or "default" for an MDP with negative rewards per state; step size of its temporal differences, and
        sweeps over the transitions of a round.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> cycle = rod_cycle(eo.maze("four-rooms"))
    >>> [int(found.seen.sum()) for found, _ in zip(cycle, range(4))]
    [20, 37, 47, 58]
    """
    check_int("round_steps", round_steps)
    check_choice("representation", representation, ("successor", "default"))
    rewards = rewards_per_state(mdp) if representation == "default" else None
    if keep is not None:
        check_int("keep", keep)
    how: dict[str, Any] = dict(zip(("alpha", "sweeps"), td, strict=True))
    generator = make_generator(rng)
    # An episode never ends early, so that every round has all of its steps.
    endless = replace(mdp, goal=None)
    past = TableExperience(mdp.n_states, mdp.n_actions, mdp.coords)
    table: NDArray[np.float64] | None = None
    made: OptionSet | None = None
    for i in count(1):
        batch = walk(endless, round_steps, made, option_chance=option_chance, rng=generator)
        past.add(batch)
        moves, how["begin"] = (batch.obs, batch.next_obs), table
        if rewards is not None:
            table = learned_default(*moves, rewards, **how)
            purpose = Purpose(_cheap(table), f"round {i}", index=1)
        else:
            table = learned_successor(*moves, mdp.n_states, gamma=SR_GAMMA, **how)
            values, vectors = smallest_eigenvectors(-(table + table.T) / 2.0, 1)
            e = vectors[:, 0] * (-1.0 if vectors[:, 0].sum() >= 0 else 1.0)
            purpose = Purpose(e, f"round {i}", index=1, eigenvalue=-float(values[0]))
        new = replace(solve(past.mdp(), purpose, gamma), mdp=mdp)
        made = new if made is None else (made + new)[-keep if keep else 0 :]
        yield Round(i * round_steps, past.seen.copy(), made, batch.next_obs)


def _cheap(Z: NDArray[np.float64]) -> NDArray[np.float64]:
    """``(S,)`` the logarithm of the first eigenvector over the states that were left, 0 elsewhere, of length 1.

    Z has no negative entries, so that squaring it loses no small entry to rounding, as other methods would.
    """
    left = Z.sum(axis=1) != 1.0
    power = (Z + Z.T)[np.ix_(left, left)]
    e = power.sum(axis=1)
    for _ in range(MAX_SQUARINGS):
        power = power @ power
        power /= power.max()
        last, e = e / e.max(), power.sum(axis=1)
        if np.abs(np.log(e / e.max()) - np.log(last)).max() < LOG_ERROR:
            break
    potential = np.zeros(len(Z))
    potential[left] = np.log(e / np.linalg.norm(e))
    return potential / np.linalg.norm(potential)


def entered(mdp: MDP, rng: int | np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """The states that the cycle enters, round by round."""
    return (found.entered for found in rod_cycle(mdp, rng=rng))


METHOD = Method(
    "covering-eigen",
    options=options,
    gamma=0.99,
    max_states=1_000,
    explore=entered,
    summary="found while exploring: each option leads away from what was visited so far",
)
