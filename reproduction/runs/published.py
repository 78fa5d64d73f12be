"""The learner of the published program, whose options last two steps.

That program, in the version of its last commit, overwrites the number of a chosen
option with that of the primitive action it stands for. On the next step it therefore
repeats this action, wherever it leads, and then chooses again. This is a port from that
description. Its curves are labelled with twice the number of options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

import eigenoptions as eo
from eigenoptions._types import FloatArray
from reproduction.lab import Job
from reproduction.runs.options import make_options

# Numbers of options of the published program, and its labels are twice these.
PUBLISHED_COUNTS = (0, 1, 2, 4, 32, 64, 128)

# Numbers of states, actions and options.
Numbers = NDArray[np.int64]


def list_published_jobs(
    *,
    episodes: Mapping[str, int],
    options: Sequence[int] = PUBLISHED_COUNTS,
    runs: int = 300,
    seed: int = 2020,
) -> list[Job]:
    """Learning of the task of Figure 7 with each number of options, named by labels.

    The first label that is too large for a maze stands for all of its options.
    """
    jobs = []
    for maze in episodes:
        numbers = {min(n, 2 * eo.maze(maze).n_states): n for n in reversed(options)}
        for n_options, n in sorted(numbers.items()):
            arguments = {
                "maze": maze,
                "options": {"n": n_options},
                "runs": runs,
                "episodes": episodes[maze],
                "seed": seed,
            }
            columns = {"domain": maze, "label": 2 * n}
            jobs.append(Job(learn_in_two_steps, arguments, columns))
    return jobs


def learn_in_two_steps(
    *,
    maze: str,
    options: Mapping[str, Any],
    runs: int,
    episodes: int,
    seed: int,
    start: int | None = None,
    goal: int | None = None,
) -> NDArray[np.uint8]:
    """``(runs, episodes)`` whether each evaluation reached the goal.

    The task is that of the maze, or from another start to another goal.
    """
    mdp = eo.maze(maze).with_task(start, goal)
    found = make_options(mdp, **options)
    policy = np.empty((0, mdp.n_states), dtype=np.int64)
    if found is not None:
        policy = found.policy.astype(np.int64)

    # available[s]: the options that may start in s, those that may not at the end.
    available = np.argsort(policy < 0, axis=0, kind="stable").T
    return simulate_learning(
        np.asarray(mdp.successors, dtype=np.int64),
        policy,
        available,
        (policy >= 0).sum(axis=0),
        (mdp.start, mdp.goal),
        runs,
        episodes,
        np.random.default_rng(seed),
    )


@njit(cache=True)  # type: ignore[untyped-decorator]
def simulate_learning(
    successors: Numbers,
    policy: Numbers,
    available: Numbers,
    n_available: Numbers,
    task: tuple[int, int],
    runs: int,
    episodes: int,
    rng: np.random.Generator,
    alpha: float = 0.1,
    gamma: float = 0.9,
    epsilon: float = 0.01,
    max_steps: int = 100,
) -> NDArray[np.uint8]:
    """``(runs, episodes)`` whether the greedy evaluation after each episode succeeds.

    Parameters
    ----------
    successors : array, shape (S, A)
        Where actions lead.
    policy : array, shape (n, S)
        Actions of the options.
    available : array, shape (S, n)
        In each state, the options that may start there come first.
    n_available : array, shape (S,)
        How many these are.
    task : tuple of int
        Start and goal.
    runs, episodes : int
        How much is learned.
    rng : Generator
        Random numbers.
    alpha, gamma, epsilon : float
        Step size, discount, and share of random actions in evaluation.
    max_steps : int, default=100
        Of an episode.
    """
    n_states, n_actions = successors.shape
    start, goal = task
    returns = np.zeros((runs, episodes), dtype=np.uint8)
    for run in range(runs):
        q = np.zeros((n_states, n_actions))
        # Every second episode evaluates what the one before it has learned.
        for half in range(2 * episodes):
            is_learning = half % 2 == 0
            state = start
            repeated = -1
            n_steps = 0
            while state != goal and n_steps < max_steps:
                if repeated >= 0:
                    # The second and last step of an option.
                    action = repeated
                    repeated = -1
                elif is_learning:
                    action = int(rng.random() * (n_actions + n_available[state]))
                    if action >= n_actions:
                        option = available[state, action - n_actions]
                        action = policy[option, state]
                        repeated = action
                else:
                    action = choose_action(q[state], epsilon, rng)

                successor = successors[state, action]
                if is_learning:
                    target = 1.0
                    if successor != goal:
                        target = gamma * q[successor].max()
                    q[state, action] += alpha * (target - q[state, action])
                state = successor
                n_steps += 1
            if not is_learning and state == goal:
                returns[run, half // 2] = 1
    return returns


@njit(cache=True)  # type: ignore[untyped-decorator]
def choose_action(values: FloatArray, epsilon: float, rng: np.random.Generator) -> int:
    """One of the actions with the largest value, or with probability epsilon any."""
    any_action = int(rng.random() * len(values))
    if rng.random() < epsilon:
        return any_action

    best = 0
    n_ties = 1
    for action in range(1, len(values)):
        if values[action] > values[best]:
            best = action
            n_ties = 1
        elif values[action] == values[best]:
            # Each tie replaces the one before it with probability 1 / ties.
            n_ties += 1
            if rng.random() * n_ties < 1.0:
                best = action
    return best
