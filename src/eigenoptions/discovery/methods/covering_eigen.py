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
from eigenoptions.discovery.methods import Progress, discovery_method
from eigenoptions.discovery.methods.reward_aware import rewards_per_state
from eigenoptions.mdp import MDP, Transitions, reachable
from eigenoptions.options import OptionSet, Purpose
from eigenoptions.options.solver import solve
from eigenoptions.options.walks import walk
from eigenoptions.spectra.representations import learn_representation, smallest_eigenvectors


@dataclass(frozen=True, eq=False)
class Round:
    """State of a `rod_cycle` after a round: steps, states seen and options so far, and the states entered now."""

    steps: int
    seen: NDArray[np.bool_]
    options: OptionSet
    entered: NDArray[np.int64]


@discovery_method(
    "covering-eigen",
    "found while exploring: each option leads away from what was visited so far",
    gamma=0.99,
    max_states=1_000,
)
def discover_options(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    gamma: float = 0.99,
    round_steps: int = 100,
    option_chance: float = 0.05,
    max_rounds: int = 1_000,
    progress: Progress | None = None,
) -> OptionSet:
    """The options of the first rounds of the cycle, one per round; None: until every reachable state was seen."""
    if n_options is not None and n_options > max_rounds:
        raise ValueError(f"n_options must be in 1..{max_rounds}, got {n_options}: raise max_rounds")
    first = np.arange(mdp.n_states) if mdp.start is None else [mdp.start]
    within = reachable(mdp.transition, first)
    rounds = rod_cycle(mdp, round_steps=round_steps, option_chance=option_chance, gamma=gamma, rng=rng)
    for i, latest in enumerate(rounds, 1):
        done, total = (i, n_options) if n_options else (int(latest.seen.sum()), int(within.sum()))
        if progress is not None:
            progress(done, total)
        if i == (n_options or max_rounds) or (n_options is None and (latest.seen | ~within).all()):
            break
    return latest.options


def rod_cycle(
    mdp: MDP,
    *,
    round_steps: int = 100,
    option_chance: float = 0.05,
    gamma: float = 0.99,
    keep: int | None = None,
    representation: str = "successor",
    sr_gamma: float = 0.99,
    alpha: float = 0.1,
    sweeps: int = 10,
    rng: int | np.random.Generator = 0,
) -> Iterator[Round]:
    """The representation-driven option discovery cycle: one more option per round, without end.

    Parameters
    ----------
    mdp : MDP
        The table that is walked. Each round begins at its start; without one, in any state.
    round_steps, option_chance, rng
        Primitive steps per round, the probability that a decision is for an option, and the seed of the walk.
    gamma, keep
        Discount of the options' purposes, and number of options kept, those of the latest rounds (None: all).
    representation : str, default "successor"
        "successor", or "default" for an MDP with negative rewards per state.
    sr_gamma, alpha, sweeps
        Discount of the successor representation, step size of its temporal differences, and number of passes over the
        transitions of a round.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> cycle = rod_cycle(eo.maze("four-rooms"))
    >>> [int(latest.seen.sum()) for latest, _ in zip(cycle, range(4))]
    [20, 37, 47, 58]
    """
    check_int("round_steps", round_steps)
    check_choice("representation", representation, ("successor", "default"))
    rewards = rewards_per_state(mdp) if representation == "default" else None
    if keep is not None:
        check_int("keep", keep)
    generator = make_generator(rng)
    # An episode never ends early, so that every round has all of its steps.
    endless = replace(mdp, goal=None)
    batches: list[Transitions] = []
    seen = np.zeros(mdp.n_states, dtype=np.bool_)
    table: NDArray[np.float64] | None = None
    options: OptionSet | None = None
    for i in count(1):
        batch = walk(endless, round_steps, options, option_chance=option_chance, rng=generator)
        batches.append(batch)
        seen[batch.obs] = seen[batch.next_obs] = True
        learn: dict[str, Any] = {"gamma": sr_gamma, "rewards": rewards, "alpha": alpha, "sweeps": sweeps}
        table = learn_representation(batch.obs, batch.next_obs, mdp.n_states, begin=table, **learn)
        if rewards is not None:
            purpose = Purpose(_log_first_eigenvector(table), f"round {i}", index=1)
        else:
            values, vectors = smallest_eigenvectors(-(table + table.T) / 2.0, 1)
            e = vectors[:, 0] * (-1.0 if vectors[:, 0].sum() >= 0 else 1.0)
            purpose = Purpose(e, f"round {i}", index=1, eigenvalue=-float(values[0]))
        sampled = MDP.from_transitions(batches, mdp.n_states, mdp.n_actions)
        new = replace(solve(sampled, purpose, gamma), mdp=mdp)
        options = new if options is None else (options + new)[-keep if keep else 0 :]
        yield Round(i * round_steps, seen.copy(), options, batch.next_obs)


def _log_first_eigenvector(Z: NDArray[np.float64]) -> NDArray[np.float64]:
    """``(S,)`` the logarithm of the first eigenvector over the states that were left, 0 elsewhere, of length 1.

    Z has no negative entries, so that squaring it loses no small entry to rounding, as other methods would.
    """
    left = Z.sum(axis=1) != 1.0
    power = (Z + Z.T)[np.ix_(left, left)]
    e = power.sum(axis=1)
    for _ in range(30):
        power = power @ power
        power /= power.max()
        last, e = e / e.max(), power.sum(axis=1)
        if np.abs(np.log(e / e.max()) - np.log(last)).max() < 1e-12:
            break
    potential = np.zeros(len(Z))
    potential[left] = np.log(e / np.linalg.norm(e))
    return potential / np.linalg.norm(potential)
