"""Diffusion times with growing numbers of options (paper, Section 4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

import eigenoptions as eo
from eigenoptions._types import FloatArray
from eigenoptions.mdp.chains import follow_options, uniform_walk
from reproduction.lab import Result
from reproduction.runs.options import make_options


def diffuse(
    *, maze: str, options: Mapping[str, Any], counts: Sequence[int] | None = None
) -> pd.DataFrame:
    """Diffusion time of a maze by number of options.

    ``diffusion_time`` counts the k moves of an option, ``with_extra_step`` k + 1.

    Parameters
    ----------
    maze : str
        Name of the maze.
    options : mapping
        Arguments of `make_options`.
    counts : sequence of int, optional
        Numbers of options; by default 0, 1, 2, ... up to all of them. Those that there
        are not are left out.
    """
    mdp = eo.maze(maze)
    found = make_options(mdp, **options)
    assert found is not None
    if counts is None:
        counts = range(len(found) + 1)
    counts = [n for n in counts if n <= len(found)]

    times, with_extra_step = compute_diffusion_times(mdp, found, counts)
    return pd.DataFrame(
        {
            "n_options": counts,
            "diffusion_time": times,
            "with_extra_step": with_extra_step,
        }
    )


def compute_diffusion_times(
    mdp: eo.MDP, options: eo.OptionSet, counts: Sequence[int]
) -> tuple[FloatArray, FloatArray]:
    """Diffusion times with the first options, and those with k + 1 steps per option.

    The arguments are those of `compute_hitting_times`.

    Examples
    --------
    >>> i_maze = eo.maze("i-maze")
    >>> options = make_options(i_maze, n=4)
    >>> times, with_extra_step = compute_diffusion_times(i_maze, options, [0, 4])
    >>> times.round(2).tolist(), with_extra_step.round(2).tolist()
    ([246.22, 24.47], [246.22, 27.38])
    """
    n_pairs = mdp.n_states * (mdp.n_states - 1)
    times = compute_hitting_times(mdp, options, counts)
    sums = np.array([pairs.sum(axis=(0, 1)) for pairs in times])
    with_k, with_extra_step = (sums / n_pairs).T
    return with_k, with_extra_step


def compute_hitting_times(
    mdp: eo.MDP, options: eo.OptionSet, counts: Sequence[int]
) -> Iterator[FloatArray]:
    """Expected steps between all states, by one linear system per goal.

    Yields for each number of options an array ``(S, S, 2)``: the steps to each goal
    (first axis) from each start, with k and with k + 1 steps for an option of k moves.
    The latter is as the published program counts: an option that terminates takes a
    step for it. One that touches the goal on its way, or ends there, does not.

    Parameters
    ----------
    mdp : MDP
        A maze.
    options : OptionSet
        Options that always end.
    counts : sequence of int
        Numbers of options, in ascending order.
    """
    n_options = len(options)
    n_states = mdp.n_states
    shape = (n_options, n_states, n_states)
    passes, ends, steps = follow_options(mdp, options.policy, stop_chance=0.0)
    # q[o, g, s]: whether option o, started in s, passes g; T[o, s, t]: whether it ends
    # in t.
    q = passes.toarray().reshape(shape)
    T = ends.toarray().reshape(shape)
    starts = (options.policy >= 0).astype(float)

    # For each goal: the rates from state to state, and the sums over decisions of steps
    # and of terminations away from the goal.
    states = np.arange(n_states)
    actions = mdp.n_actions * uniform_walk(mdp).toarray()
    rates = np.repeat(actions[None], n_states, axis=0)
    n_steps = np.full((n_states, n_states), float(mdp.n_actions))
    n_ends = np.zeros((n_states, n_states))
    n_decisions = np.full(n_states, float(mdp.n_actions))

    n_added = 0
    for count in counts:
        new = slice(n_added, count)
        n_added = count
        # An option that passes the goal stops there.
        rates += T[new].sum(axis=0)
        rates -= q[new].transpose(1, 2, 0) @ T[new].transpose(1, 0, 2)
        saved = (q[new] * steps[new][:, :, None]).sum(axis=0)
        n_steps += steps[new].sum(axis=0) - saved
        at_goal = q[new].sum(axis=0) + T[new].sum(axis=0).T
        n_ends += starts[new].sum(axis=0) - at_goal
        n_decisions += starts[new].sum(axis=0)

        systems = np.diag(n_decisions) - rates
        systems[states, states] = np.eye(n_states)
        right = np.stack([n_steps, n_steps + n_ends], axis=2)
        right[states, states] = 0.0
        yield np.linalg.solve(systems, right)


def stack_times(results: Sequence[Result]) -> pd.DataFrame:
    """The tables of `diffuse`, one below the other, the jobs' columns first."""
    tables = []
    for columns, times in results:
        names = pd.DataFrame({**columns}, index=times.index)
        tables.append(names.join(times))
    return pd.concat(tables, ignore_index=True)
