"""Covering eigenoptions: representation, options, data, again.

The ROD cycle of Machado et al. (JMLR 2023). Each round walks some steps with the
options so far, learns the successor representation Psi of what it saw by temporal
differences, takes the first eigenvector e of ``(Psi + Psi') / 2`` with the sign that
points away from what was visited, ``sum of e < 0``, and adds the option that maximises
``e(s') - e(s)`` on the transitions seen.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eigenoptions._types import FloatArray, Progress
from eigenoptions._validation import check_int
from eigenoptions.data import Transitions
from eigenoptions.discovery.method import discovery_method
from eigenoptions.mdp import MDP, reachable
from eigenoptions.options import OptionSet, Purpose
from eigenoptions.options.solver import solve
from eigenoptions.options.walks import walk
from eigenoptions.spectra.representations import (
    compute_smallest_eigenvectors,
    learn_representation,
)


@discovery_method("covering-eigen", gamma=0.99)
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
    """One option per round of the cycle.

    Without `n_options`, rounds go on until every reachable state was seen, at most
    `max_rounds`. Each round takes `round_steps` from the start of the MDP, without one
    from any state; a decision is for an option with the probability `option_chance`.
    """
    round_steps = check_int("round_steps", round_steps)
    # An episode never ends early, so that every round has all of its steps.
    endless = replace(mdp, goal=None)
    starts = np.arange(mdp.n_states) if mdp.start is None else [mdp.start]
    is_unseen = reachable(mdp.transition, starts)
    n_reachable = int(is_unseen.sum())

    batches: list[Transitions] = []
    psi: FloatArray | None = None
    options: OptionSet | None = None
    for number in range(1, (n_options or max_rounds) + 1):
        batch = walk(
            endless, round_steps, options, option_chance=option_chance, rng=rng
        )
        batches.append(batch)
        psi = learn_representation(
            batch.obs, batch.next_obs, mdp.n_states, sweeps=10, begin=psi
        )
        purpose = _point_away(psi, number)
        sampled = MDP.from_transitions(batches, mdp.n_states, mdp.n_actions)
        option = replace(solve(sampled, purpose, gamma), mdp=mdp)
        options = option if options is None else options + option

        is_unseen[batch.obs] = False
        is_unseen[batch.next_obs] = False
        n_unseen = int(is_unseen.sum())
        if progress is not None:
            if n_options is None:
                progress(n_reachable - n_unseen, n_reachable)
            else:
                progress(number, n_options)
        if n_options is None and not n_unseen:
            break
    assert options is not None
    return options


def _point_away(psi: FloatArray, number: int) -> Purpose:
    """The first eigenvector of a representation, away from what was visited."""
    values, vectors = compute_smallest_eigenvectors(-(psi + psi.T) / 2.0, 1)
    e = vectors[:, 0]
    if e.sum() >= 0:
        e = -e
    return Purpose(e, f"round {number}", index=1, eigenvalue=-float(values[0]))
