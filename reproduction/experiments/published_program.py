"""Looking closer: the published program.

Section 4.3 follows options until termination. The program published with the paper does
not; this is Figure 7 by its learner, with its labels.

That program, in the version of its last commit, overwrites the number of a chosen
option with that of the primitive action it stands for. On the next step it therefore
repeats this action, wherever it leads, and then chooses again: an option lasts two
steps. Its curves are labelled with twice the number of options. This is a port from
that description.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numba import njit
from numpy.typing import NDArray

import eigenoptions as eo
from eigenoptions._types import FloatArray
from reproduction.drawing import add_legend, draw_lines, make_graphs
from reproduction.experiment import Block
from reproduction.lab import Data, Job, Jobs, Results
from reproduction.runs.learning import EPISODES
from reproduction.runs.options import make_options
from reproduction.statistics import compare_means

SECTION = "4.3"
ORDER = 160
QUICK = {"episodes": {"i-maze": 30}, "options": [0, 1, 4, 32], "runs": 4}
OURS = True

# Numbers of states, actions and options.
Numbers = NDArray[np.int64]


def list_jobs(
    *,
    episodes: Mapping[str, int] = EPISODES,
    options: Sequence[int] = (0, 1, 2, 4, 32, 64, 128),
    runs: int = 300,
    seed: int = 2020,
) -> Jobs:
    """Mean returns by label; options that run to their end are in Figure 7."""
    jobs = []
    for maze in episodes:
        n_eigenoptions = 2 * eo.maze(maze).n_states
        for n in options:
            arguments = {
                "maze": maze,
                "options": {"n": min(n, n_eigenoptions)},
                "runs": runs,
                "episodes": episodes[maze],
                "seed": seed,
            }
            jobs.append(
                Job(learn_in_two_steps, arguments, {"domain": maze, "label": 2 * n})
            )
    return {"runs": jobs}


def learn_in_two_steps(
    *, maze: str, options: Mapping[str, Any], runs: int, episodes: int, seed: int
) -> FloatArray:
    """``(runs,)`` mean returns of Q-learning with options that last two steps."""
    mdp = eo.maze(maze)
    found = make_options(mdp, **options)
    policy = np.empty((0, mdp.n_states), dtype=np.int64)
    if found is not None:
        policy = found.policy.astype(np.int64)

    # available[s]: the options that may start in s, those that may not at the end.
    available = np.argsort(policy < 0, axis=0, kind="stable").T
    returns: FloatArray = simulate_learning(
        np.asarray(mdp.successors, dtype=np.int64),
        policy,
        available,
        (policy >= 0).sum(axis=0),
        (mdp.start, mdp.goal),
        runs,
        episodes,
        np.random.default_rng(seed),
    )
    return returns


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
) -> FloatArray:
    """Mean return of the greedy evaluations that follow each episode, for each run.

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
    mean_returns = np.zeros(runs)
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
                mean_returns[run] += 1.0 / episodes
    return mean_returns


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


def tabulate_results(results: Results) -> Data:
    """One row per run."""
    tables = [
        pd.DataFrame({"mean_return": returns}).assign(**columns)
        for columns, returns in results["runs"]
    ]
    return {"runs": pd.concat(tables)}


def draw_figure(data: Data) -> Figure:
    """Mean return by label, a graph per domain."""
    domains = data["runs"].groupby("domain", sort=False)
    figure, axes = make_graphs(len(domains), sharey=True, ylabel="mean return of a run")
    for ax, (domain, runs) in zip(axes, domains, strict=True):
        returns = runs.pivot(columns="label", values="mean_return")
        labels = returns.columns[1:]
        draw_lines(
            ax,
            range(len(labels)),
            {"two steps per option": returns[labels]},
            baseline=returns[0].mean(),
            ticks=labels,
            title=domain,
            xlabel="label (twice the number of options)",
            ylim=(-0.02, 1.02),
        )
    return add_legend(figure)


def write_notes(data: Data) -> Iterator[Block]:
    """Which label is best, and what is known about the program."""
    domains = data["runs"].groupby("domain", sort=False)
    best = [_describe_best_label(domain, runs) for domain, runs in domains]
    by_label = data["runs"].groupby(["domain", "label"], sort=False)
    means = by_label.mean_return.mean().unstack()
    yield f"Mean return by label. {'; '.join(best)}.", means.reset_index()
    yield (
        "The published program takes the first action of an option twice and then "
        "chooses again. It labels the curve of n options 2n, treats walls as states, "
        "so that the I-Maze has options that do nothing, and has 1, 2, 4, 32, 64, 128 "
        "and 256 options, so 16 and 32 were probably not among the labels of the "
        "paper. It is not known whether this version drew Figure 7. With it, 64 is at "
        "the top in the open room and in the I-Maze, though no more than level with "
        "others, and the fewest options are the exceptions, as the text says; in the "
        "4-room domain label 8 is best. Diffusion times come from other code, which "
        "follows options to their end."
    )


def _describe_best_label(domain: str, runs: pd.DataFrame) -> str:
    """The label with the highest mean return, and those that are ahead of 64."""
    returns = runs.pivot(columns="label", values="mean_return")
    best = returns.mean().drop(0).idxmax()
    others = [label for label in returns if label not in (0, 64)]
    ahead = []
    for label in others:
        lead = compare_means(returns[label], returns[64], len(others))
        if lead.better:
            ahead.append(str(label))
    return (
        f"{domain}: highest with label {best}, ahead of 64: "
        f"{', '.join(ahead) or 'none'}"
    )
