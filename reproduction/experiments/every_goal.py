"""Looking closer: every goal.

One task per domain, from corner to corner (Figure 7). Here each state of the 4-room domain is the goal once, to see
what the number of options and random options are worth when the goal may be anywhere.
"""

import numpy as np
import pandas as pd
from scipy.special import ndtri

import eigenoptions as eo
from eigenoptions.plots import draw_values
from reproduction.drawing import Figure, draw_lines, make_graphs
from reproduction.experiments.agents import make_options, run_agents
from reproduction.lab import Blocks, Claim, Claims, Data
from reproduction.statistics import CONFIDENCE, Difference, compare_means

SECTION, ORDER = "4.3", 135
QUICK = {"maze": "i-maze", "options": [0, 4, 16], "many": 16, "runs": 3}
QUICK |= {"sets": 3, "set_runs": 2, "episodes": 10}
OURS = True
COUNTS = (0, 2, 4, 8, 16, 32, 64, 128, 208)


def run(
    lab,
    *,
    maze="four-rooms",
    options=COUNTS,
    many=64,
    runs=20,
    sets=24,
    set_runs=10,
    episodes=250,
    seed=2019,
) -> Data:
    """Mean return for each goal, from one start, by number of eigenoptions and with sets of random options."""
    own = {
        "maze": maze,
        "kind": "eigenoptions",
        "runs": runs,
        "episodes": episodes,
        "seed": seed,
    }
    random = {
        **own,
        "kind": "random",
        "runs": set_runs,
        "seed": seed + 1,
        "n_options": many,
    }
    agents = [
        {**own, "options": {"n": n}, "number": i, "n_options": n}
        for i, n in enumerate(options)
    ]
    for i in range(sets):
        agents.append(
            {
                **random,
                "options": {"method": "random", "n": many, "rng": i},
                "number": i,
            }
        )
    learned = run_agents(lab, learn_every_goal, agents)
    return {
        "goals": pd.concat(
            [goals.assign(**columns, many=many) for columns, goals in learned]
        )
    }


def learn_every_goal(*, maze, options, runs, episodes, seed, number) -> pd.DataFrame:
    """Mean return and its standard error for every goal but the start; each goal has its own random numbers."""
    mdp = eo.maze(maze)
    found = make_options(mdp, **options)
    goals, rows = [s for s in range(mdp.n_states) if s != mdp.start], []
    for i, goal in enumerate(goals):
        rng = np.random.SeedSequence(seed, spawn_key=(number * len(goals) + i,))
        learned = eo.q_learning(
            mdp, found, runs=runs, episodes=episodes, goal=goal, rng=rng
        )
        means = learned.returns.mean(axis=1)
        rows.append((goal, means.mean(), means.std(ddof=1) / np.sqrt(runs)))
    return pd.DataFrame(rows, columns=["goal", "mean_return", "standard_error"]).assign(
        set=number
    )


def figure(data: Data) -> Figure:
    returns, many, mdp = (
        find_returns(data),
        data["goals"].many.iloc[0],
        eo.maze(data["goals"].domain.iloc[0]),
    )
    shown = [n for n in (4, 8, many) if n in returns]
    picture, axes = make_graphs(
        1 + len(shown), width_ratios=(1.7, *[1] * len(shown)), ylabel="mean return"
    )
    lines = {
        "mean of all goals": returns.mean(),
        "worst tenth of goals": returns.quantile(0.1),
    }
    lines["worst goal"] = returns.min()
    x, labels = range(returns.shape[1]), returns.columns
    draw_lines(
        axes[0], x, lines, ticks=labels, xlabel="eigenoptions", ylim=(-0.02, 1.02)
    )
    axes[0].legend()
    for ax, n in zip(axes[1:], shown, strict=True):
        values, bar = (
            returns[n].reindex(range(mdp.n_states)),
            "mean return" if n == shown[-1] else None,
        )
        draw_values(ax, mdp, values, signed=False, limits=(0.0, 1.0), colorbar=bar)
        ax.set_title(f"{n} options")
    return picture


def claims(data: Data) -> Claims:
    returns, n = find_returns(data), data["goals"].many.iloc[0]
    ours, bare = returns[n], returns[0]
    gap, better = (
        compare_means(ours - bare, np.zeros(len(bare))),
        int((ours > bare).sum()),
    )
    yield Claim(
        "same-set-many-tasks",
        "The same set of eigenoptions is able to speed-up learning in different tasks.",
        tests=[gap.above(), better > len(ours) / 2],
        measured=f"with {n} eigenoptions the mean return is higher than with primitive actions for {better} of "
        f"{len(ours)} goals; on average {ours.mean():.3f} against {bare.mean():.3f}",
        evidence=f"Every state but the start is the goal once. The average difference is {gap}; it must be above "
        "zero, and most goals must gain.",
    )


def notes(data: Data) -> Blocks:
    goals, n = data["goals"], data["goals"].many.iloc[0]
    own = {
        m: table
        for m, table in goals[goals.kind == "eigenoptions"].groupby("n_options")
        if m
    }
    sets = [table for _, table in goals[goals.kind == "random"].groupby("set")]
    means = [table.mean_return.mean() for table in sets]
    yield (
        "Mean return over all goals by number of eigenoptions. The first options end in or beside corners, which "
        f"suits the goal of Figure 7; the maps show goals that they leave out. {len(sets)} sets of {n} random "
        f"options reach {np.mean(means):.3f} on average ({min(means):.3f} to {max(means):.3f}): {n} eigenoptions are "
        f"ahead of {sum(compare_sets(own[n], table, len(sets)).better for table in sets)} of them.",
        pd.DataFrame(
            {
                "options": m,
                "mean of all goals": table.mean_return.mean(),
                f"{n} minus this": str(compare_sets(own[n], table, len(own) - 1))
                if m != n
                else "",
                "worst goal": table.mean_return.min(),
            }
            for m, table in own.items()
        ),
    )


def compare_sets(a: pd.DataFrame, b: pd.DataFrame, n_intervals: int) -> Difference:
    """Difference over all goals between two sets of options; the interval covers the noise of the runs."""
    mean = a.mean_return.mean() - b.mean_return.mean()
    variance = (a.standard_error**2).sum() + (b.standard_error**2).sum()
    half = ndtri(1 - (1 - CONFIDENCE) / (2 * n_intervals)) * np.sqrt(variance) / len(a)
    return Difference(mean, mean - half, mean + half)


def find_returns(data: Data) -> pd.DataFrame:
    """Mean return of each goal (rows) by number of eigenoptions (columns)."""
    own = data["goals"][data["goals"].kind == "eigenoptions"]
    return own.pivot(index="goal", columns="n_options", values="mean_return")
