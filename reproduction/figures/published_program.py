"""Looking closer: the published program.

Section 4.3 follows options until termination. The program published with the paper does not; this is Figure 7 by its
learner, with its labels.

That program, in the version of its last commit, overwrites the number of a chosen option with that of the primitive
action it stands for. On the next step it therefore repeats this action, wherever it leads, and then chooses again: an
option lasts two steps. Its curves are labelled with twice the number of options. This is a port from that description.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numba import njit

import eigenoptions as eo
from reproduction.drawing import add_legend, draw_lines, make_graphs
from reproduction.figures.agents import EPISODES, make_options
from reproduction.lab import Block, Data, Lab
from reproduction.statistics import compare_means

SECTION, ORDER = "4.3", 160
QUICK = {"episodes": {"i-maze": 30}, "options": [0, 1, 4, 32], "runs": 4}
OURS = True


def run(
    lab: Lab,
    *,
    episodes: Mapping[str, int] = EPISODES,
    options: Sequence[int] = (0, 1, 2, 4, 32, 64, 128),
    runs: int = 300,
    seed: int = 2020,
) -> Data:
    """Mean returns by label; those of options that are followed to their end are in Figure 7."""
    pairs = [(name, n) for name in episodes for n in options]
    jobs = [
        {
            "maze": name,
            "options": {"n": min(n, 2 * eo.maze(name).n_states)},
            **{"runs": runs, "episodes": episodes[name], "seed": seed},
        }
        for name, n in pairs
    ]
    tables = [
        pd.DataFrame({"domain": name, "label": 2 * n, "run": range(runs), "mean_return": means})
        for (name, n), means in zip(pairs, lab.pmap(learn_in_two_steps, jobs), strict=True)
    ]
    return {"runs": pd.concat(tables)}


def learn_in_two_steps(*, maze: str, options: Mapping[str, Any], runs: int, episodes: int, seed: int) -> Any:
    """``(runs,)`` mean returns of Q-learning with options that take their first action twice."""
    mdp = eo.maze(maze)
    found = make_options(mdp, **options)
    policy = np.empty((0, mdp.n_states), dtype=np.int64) if found is None else found.policy.astype(np.int64)
    # available[s]: the options that may start in s, those that may not at the end.
    available = np.argsort(policy < 0, axis=0, kind="stable").T
    rng, successors = np.random.default_rng(seed), np.asarray(mdp.successors, dtype=np.int64)
    counts, ends = (policy >= 0).sum(axis=0), (mdp.start, mdp.goal)
    return simulate(successors, policy, available, counts, ends, runs, episodes, rng)


@njit(cache=True)  # type: ignore[untyped-decorator]
def simulate(
    successors: Any, policy: Any, available: Any, counts: Any, ends: Any, runs: int, episodes: int, rng: Any
) -> Any:
    """Mean return of the greedy evaluations that follow each episode of Q-learning, for each run."""
    alpha, gamma, epsilon, max_steps = 0.1, 0.9, 0.01, 100
    (n_states, n_actions), (start, goal) = successors.shape, ends
    means = np.zeros(runs)
    for run in range(runs):
        q = np.zeros((n_states, n_actions))
        for half in range(2 * episodes):
            learning = half % 2 == 0
            s, repeated, steps = start, -1, 0
            while s != goal and steps < max_steps:
                if repeated >= 0:
                    a, repeated = repeated, -1
                elif learning:
                    a = int(rng.random() * (n_actions + counts[s]))
                    if a >= n_actions:
                        a = policy[available[s, a - n_actions], s]
                        repeated = a
                else:
                    a = int(rng.random() * n_actions)
                    if rng.random() >= epsilon:
                        # Of the best actions a random one: each tie replaces the last with probability 1 / ties.
                        a, ties = 0, 1
                        for b in range(1, n_actions):
                            ties = 1 if q[s, b] > q[s, a] else ties + (q[s, b] == q[s, a])
                            if q[s, b] > q[s, a] or (q[s, b] == q[s, a] and rng.random() * ties < 1.0):
                                a = b
                after = successors[s, a]
                if learning:
                    target = 1.0 if after == goal else gamma * q[after].max()
                    q[s, a] += alpha * (target - q[s, a])
                s = after
                steps += 1
            if not learning and s == goal:
                means[run] += 1.0 / episodes
    return means


def figure(data: Data) -> Any:
    domains = data["runs"].groupby("domain", sort=False)
    picture, axes = make_graphs(len(domains), sharey=True)
    for ax, (domain, runs) in zip(axes, domains, strict=True):
        returns = runs.pivot(index="run", columns="label", values="mean_return")
        labels = returns.columns[1:]
        draw_lines(
            ax,
            range(len(labels)),
            {"two steps per option": returns[labels]},
            baseline=returns[0].mean(),
            ticks=list(map(str, labels)),
            title=domain,
            xlabel="label (twice the number of options)",
            ylim=(-0.02, 1.02),
        )
    axes[0].set_ylabel("mean return of a run")
    add_legend(picture)
    return picture


def notes(data: Data) -> Iterator[Block]:
    rows, best = [], []
    for domain, runs in data["runs"].groupby("domain", sort=False):
        returns = runs.pivot(index="run", columns="label", values="mean_return")
        means, others = returns.mean(), [label for label in returns if label not in (0, 64)]
        gaps = {label: compare_means(returns[label], returns[64], len(others)) for label in others}
        better = ", ".join(str(label) for label, gap in gaps.items() if gap.better)
        top = means.drop(0).idxmax()
        best.append(f"{domain}: highest with label {top} ({means[top]:.3f}), ahead of 64: {better or 'none'}")
        names = {label: f"label {label}" if label else "primitive" for label in means.index}
        rows.append({"domain": domain} | {names[label]: f"{mean:.3f}" for label, mean in means.items()})
    yield f"Mean return of {data['runs'].run.nunique()} runs by label. {'; '.join(best)}.", pd.DataFrame(rows)
    yield (
        "What is known from reading and running the published program: its learner takes the first action of "
        "an option twice and then chooses again. It labels the curve of n options 2n. It treats walls as "
        "states, so that the I-Maze has options that do nothing. Its numbers of options are 1, 2, 4, 32, 64, "
        "128 and 256, so 16 and 32 were probably not among the labels of the paper."
    )
    yield (
        "It is not known whether this version drew Figure 7. With it, 64 is at the top in the open room and in "
        "the I-Maze, though no more than level with others, and the fewest options are the exceptions, as the "
        "text says; in the 4-room domain label 8 is best. Diffusion times come from other code, which follows "
        "options to their end."
    )
