"""Covering eigenoptions: representation, options, data, again (the ROD cycle of Machado et al., JMLR 2023).

Each round of `rod_cycle` walks some steps with the options so far, learns the successor representation Psi of what it
saw by temporal differences, takes the first eigenvector e of ``(Psi + Psi') / 2`` with the sign that points away from
what was visited, ``sum of e < 0``, and adds the option that maximises ``e(s') - e(s)`` on the transitions seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import check_int, make_generator
from eigenoptions.discovery.methods import Progress, discovery_method
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
    gamma
        Discount of the options' purposes.
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
    generator = make_generator(rng)
    # An episode never ends early, so that every round has all of its steps.
    endless = replace(mdp, goal=None)
    batches: list[Transitions] = []
    seen = np.zeros(mdp.n_states, dtype=np.bool_)
    psi: NDArray[np.float64] | None = None
    options: OptionSet | None = None
    for i in count(1):
        batch = walk(endless, round_steps, options, option_chance=option_chance, rng=generator)
        batches.append(batch)
        seen[batch.obs] = seen[batch.next_obs] = True
        learn = {"gamma": sr_gamma, "alpha": alpha, "sweeps": sweeps, "begin": psi}
        psi = learn_representation(batch.obs, batch.next_obs, mdp.n_states, **learn)  # type: ignore[arg-type]
        values, vectors = smallest_eigenvectors(-(psi + psi.T) / 2.0, 1)
        e = vectors[:, 0] * (-1.0 if vectors[:, 0].sum() >= 0 else 1.0)
        purpose = Purpose(e, f"round {i}", index=1, eigenvalue=-float(values[0]))
        sampled = MDP.from_transitions(batches, mdp.n_states, mdp.n_actions)
        new = replace(solve(sampled, purpose, gamma), mdp=mdp)
        options = new if options is None else options + new
        yield Round(i * round_steps, seen.copy(), options, batch.next_obs)
