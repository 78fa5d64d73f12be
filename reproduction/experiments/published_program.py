"""Looking closer: the published program.

Section 4.3 follows options until termination. The program published with the paper does not; this is Figure 7 by its
learner, with its labels.

That program, in the version of its last commit, overwrites the number of a chosen option with that of the primitive
action it stands for. On the next step it therefore repeats this action, wherever it leads, and then chooses again: an
option lasts two steps. Its curves are labelled with twice the number of options. This is a port from that description.
"""

from itertools import product

import numpy as np
import pandas as pd
from numba import njit

import eigenoptions as eo
from reproduction.drawing import Figure, add_legend, draw_lines, make_graphs
from reproduction.experiments.agents import EPISODES, make_options, run_agents
from reproduction.lab import Blocks, Data, Lab
from reproduction.statistics import compare_means

SECTION, ORDER = "4.3", 160
QUICK = {"episodes": {"i-maze": 30}, "options": [0, 1, 4, 32], "runs": 4}
OURS = True


def run(
    lab: Lab,
    *,
    episodes=EPISODES,
    options=(0, 1, 2, 4, 32, 64, 128),
    runs=300,
    seed=2020,
) -> Data:
    """Mean returns by label; those of options that are followed to their end are in Figure 7."""
    agents, common = [], {"runs": runs, "seed": seed}
    for name, n in product(episodes, options):
        some = {"n": min(n, 2 * eo.maze(name).n_states)}
        agents.append(
            {
                "maze": name,
                "options": some,
                "episodes": episodes[name],
                "label": 2 * n,
                **common,
            }
        )
    learned = run_agents(lab, learn_in_two_steps, agents)
    return {
        "runs": pd.concat(
            [pd.DataFrame({"mean_return": means}).assign(**c) for c, means in learned]
        )
    }


def learn_in_two_steps(*, maze, options, runs, episodes, seed):
    """``(runs,)`` mean returns of Q-learning with options that take their first action twice."""
    mdp = eo.maze(maze)
    found = make_options(mdp, **options)
    policy = (
        np.empty((0, mdp.n_states), dtype=np.int64)
        if found is None
        else found.policy.astype(np.int64)
    )
    # available[s]: the options that may start in s, those that may not at the end.
    available = np.argsort(policy < 0, axis=0, kind="stable").T
    rng, successors = (
        np.random.default_rng(seed),
        np.asarray(mdp.successors, dtype=np.int64),
    )
    counts, ends = (policy >= 0).sum(axis=0), (mdp.start, mdp.goal)
    return simulate(successors, policy, available, counts, ends, runs, episodes, rng)


@njit(cache=True)  # type: ignore[untyped-decorator]
def simulate(successors, policy, available, counts, ends, runs, episodes, rng):
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
                            ties = (
                                1 if q[s, b] > q[s, a] else ties + (q[s, b] == q[s, a])
                            )
                            if q[s, b] > q[s, a] or (
                                q[s, b] == q[s, a] and rng.random() * ties < 1.0
                            ):
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


def figure(data: Data) -> Figure:
    domains = data["runs"].groupby("domain", sort=False)
    picture, axes = make_graphs(
        len(domains), sharey=True, ylabel="mean return of a run"
    )
    for ax, (domain, runs) in zip(axes, domains, strict=True):
        returns = runs.pivot(columns="label", values="mean_return")
        labels, lines = (
            returns.columns[1:],
            {"two steps per option": returns[returns.columns[1:]]},
        )
        settings = {
            "title": domain,
            "xlabel": "label (twice the number of options)",
            "ylim": (-0.02, 1.02),
        }
        draw_lines(
            ax,
            range(len(labels)),
            lines,
            baseline=returns[0].mean(),
            ticks=labels,
            **settings,
        )
    return add_legend(picture)


def notes(data: Data) -> Blocks:
    best = []
    for domain, runs in data["runs"].groupby("domain", sort=False):
        returns = runs.pivot(columns="label", values="mean_return")
        others = [label for label in returns if label not in (0, 64)]
        gaps = {
            label: compare_means(returns[label], returns[64], len(others))
            for label in others
        }
        ahead = (
            ", ".join(str(label) for label, gap in gaps.items() if gap.better) or "none"
        )
        best.append(
            f"{domain}: highest with label {returns.mean().drop(0).idxmax()}, ahead of 64: {ahead}"
        )
    means = (
        data["runs"]
        .groupby(["domain", "label"], sort=False)
        .mean_return.mean()
        .unstack()
    )
    yield f"Mean return by label. {'; '.join(best)}.", means.reset_index()
    yield (
        "The published program takes the first action of an option twice and then chooses again. It labels the curve "
        "of n options 2n, treats walls as states, so that the I-Maze has options that do nothing, and has 1, 2, 4, "
        "32, 64, 128 and 256 options, so 16 and 32 were probably not among the labels of the paper. It is not known "
        "whether this version drew Figure 7. With it, 64 is at the top in the open room and in the I-Maze, though no "
        "more than level with others, and the fewest options are the exceptions, as the text says; in the 4-room "
        "domain label 8 is best. Diffusion times come from other code, which follows options to their end."
    )
