"""Looking closer: every goal.

One task per domain, from corner to corner (Figure 7). Here each state of the 4-room
domain is the goal once, to see what the number of options and random options are worth
when the goal may be anywhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import ndtri
from scipy.stats import spearmanr

import eigenoptions as eo
from eigenoptions.plots import draw_values
from reproduction.claims import Finding, Tests, claim, list_items, move_limit
from reproduction.drawing import add_legend, draw_lines, make_graphs
from reproduction.experiment import Block
from reproduction.lab import Data, Job, Jobs, Results, stack_tables
from reproduction.readings import (
    COMBINATORIAL,
    FINAL,
    HIGH_DISCOUNT,
    LOW_DISCOUNT,
    MAIN,
    NO_MARGIN,
    PUBLISHED_LEARNER,
    TOLERANCE,
    WITHOUT_E1,
)
from reproduction.runs.diffusion import diffuse, stack_times
from reproduction.runs.options import OPTION_READINGS, limit_counts, make_options
from reproduction.runs.published import learn_in_two_steps
from reproduction.statistics import (
    CONFIDENCE,
    Difference,
    IsBetter,
    compare_means,
    is_above_zero,
    summarize_runs,
)
from reproduction.thresholds import STRONG

SECTION = "4.3"
ORDER = 135
QUICK = {
    "maze": "i-maze",
    "options": [0, 2, 4, 16],
    "many": 16,
    "runs": 3,
    "sets": 3,
    "set_runs": 2,
    "episodes": 10,
    "readings": [WITHOUT_E1],
}
OURS = True

# Readings that change the first 64 options of the 4-room domain.
READINGS = (WITHOUT_E1, COMBINATORIAL, LOW_DISCOUNT, HIGH_DISCOUNT, TOLERANCE)
COUNTS = (0, 2, 4, 8, 16, 32, 64, 128, 208)


def list_jobs(
    *,
    maze: str = "four-rooms",
    options: Sequence[int] = COUNTS,
    many: int = 64,
    runs: int = 20,
    sets: int = 24,
    set_runs: int = 10,
    episodes: int = 250,
    readings: Sequence[str] = READINGS,
    seed: int = 2019,
) -> Jobs:
    """Learning of each goal, with eigenoptions and with sets of random options.

    Parameters
    ----------
    maze : str
        Name of the maze.
    options, runs : sequence of int, int
        Numbers of eigenoptions, and runs with each for each goal.
    many : int
        The number that the claim speaks of; also of random options.
    sets, set_runs : int
        Sets of random options, and runs with each for each goal.
    episodes : int
        Episodes of a run.
    readings : sequence of str
        Other readings, of the number of eigenoptions that the claim speaks of.
    seed : int
        Seed of all.
    """
    jobs = []
    for number, n in enumerate(options):
        arguments = {
            "maze": maze,
            "options": {"n": n},
            "runs": runs,
            "episodes": episodes,
            "seed": seed,
            "number": number,
        }
        columns = {"domain": maze, "kind": "eigenoptions", "n_options": n, "many": many}
        jobs.append(Job(learn_every_goal, arguments, columns))
    for number in range(sets):
        arguments = {
            "maze": maze,
            "options": {"method": "random", "n": many, "rng": number},
            "runs": set_runs,
            "episodes": episodes,
            "seed": seed + 1,
            "number": number,
        }
        columns = {"domain": maze, "kind": "random", "n_options": many, "many": many}
        jobs.append(Job(learn_every_goal, arguments, columns))

    others = []
    for number, reading in enumerate(readings):
        arguments = {
            "maze": maze,
            "options": {"n": many, **OPTION_READINGS[reading]},
            "runs": runs,
            "episodes": episodes,
            "seed": seed + 2,
            "number": number,
        }
        columns = {"reading": reading, "n_options": many}
        others.append(Job(learn_every_goal, arguments, columns))
    # By the labels of the published program, half as many options.
    arguments = {
        "maze": maze,
        "options": {"n": many // 2},
        "runs": runs,
        "episodes": episodes,
        "seed": seed + 3,
        "number": 0,
        "learner": PUBLISHED_LEARNER,
    }
    columns = {"reading": PUBLISHED_LEARNER, "n_options": many}
    others.append(Job(learn_every_goal, arguments, columns))
    counts = [n for n in limit_counts(maze, options) if n > 0]
    diffusion = [
        Job(
            diffuse,
            {"maze": maze, "options": {}, "counts": counts},
            {"kind": "eigenoptions", "set": 0},
        )
    ]
    for number in range(sets):
        random = {"method": "random", "n": many, "rng": number}
        columns = {"kind": "random", "set": number}
        arguments = {"maze": maze, "options": random, "counts": [many]}
        diffusion.append(Job(diffuse, arguments, columns))
    return {"goals": jobs, "readings": others, "diffusion": diffusion}


def learn_every_goal(
    *,
    maze: str,
    options: Mapping[str, Any],
    runs: int,
    episodes: int,
    seed: int,
    number: int,
    learner: str = MAIN,
) -> pd.DataFrame:
    """Mean return and its standard error for every goal but the start.

    The learner is ours, or that of the published program.
    """
    mdp = eo.maze(maze)
    found = make_options(mdp, **options)
    goals = [state for state in range(mdp.n_states) if state != mdp.start]
    rows = []
    for i, goal in enumerate(goals):
        # Each goal has its own random numbers.
        own_number = number * len(goals) + i
        if learner == PUBLISHED_LEARNER:
            returns = learn_in_two_steps(
                maze=maze,
                options=options,
                runs=runs,
                episodes=episodes,
                seed=seed + own_number,
                goal=goal,
            )
        else:
            rng = np.random.SeedSequence(seed, spawn_key=(own_number,))
            learned = eo.q_learning(
                mdp, found, runs=runs, episodes=episodes, goal=goal, rng=rng
            )
            returns = learned.returns
        means = returns.mean(axis=1)
        rows.append(
            {
                "goal": goal,
                "mean_return": means.mean(),
                "late_return": summarize_runs(returns).late_return.mean(),
                "standard_error": means.std(ddof=1) / np.sqrt(runs),
                "set": number,
                "episodes": episodes,
            }
        )
    return pd.DataFrame(rows)


def tabulate_results(results: Results) -> Data:
    """One row per set of options and goal."""
    return {
        "goals": stack_tables(results["goals"]),
        "readings": stack_tables(results["readings"]),
        "diffusion": stack_times(results["diffusion"]),
    }


def draw_figure(data: Data) -> Figure:
    """Mean return by number of options, and maps of the goals with some of them."""
    goals = data["goals"]
    mdp = eo.maze(goals.domain.iloc[0])
    returns = _find_returns(data)
    shown = [n for n in (4, 8, goals.many.iloc[0]) if n in returns]
    figure, (graph, *maps) = make_graphs(
        1 + len(shown), width_ratios=[1.7] + [1] * len(shown), ylabel="mean return"
    )
    draw_lines(
        graph,
        range(returns.shape[1]),
        {
            "mean of all goals": returns.mean(),
            "worst tenth of goals": returns.quantile(0.1),
            "worst goal": returns.min(),
        },
        ticks=returns.columns,
        xlabel="eigenoptions",
        ylim=(-0.02, 1.02),
    )
    for ax, n in zip(maps, shown, strict=True):
        is_last = n == shown[-1]
        draw_values(
            ax,
            mdp,
            returns[n].reindex(range(mdp.n_states)),
            signed=False,
            limits=(0.0, 1.0),
            colorbar="mean return" if is_last else None,
        )
        ax.set_title(f"{n} options")
    return add_legend(figure)


def write_notes(data: Data) -> Iterator[Block]:
    """Means by number of eigenoptions, beside those of sets of random options."""
    goals = data["goals"]
    many = goals.many.iloc[0]

    # The number of the claim against each other number of eigenoptions.
    is_own = (goals.kind == "eigenoptions") & (goals.n_options > 0)
    by_number = dict(iter(goals[is_own].groupby("n_options")))
    own = by_number[many]
    rows = []
    for n, others in by_number.items():
        lead = ""
        if n != many:
            lead = str(_compare_sets(own, others, len(by_number) - 1))
        rows.append(
            {
                "options": n,
                "mean of all goals": others.mean_return.mean(),
                f"{many} minus this": lead,
                "worst goal": others.mean_return.min(),
            }
        )

    # The same against each set of as many random options.
    sets = [table for _, table in goals[goals.kind == "random"].groupby("set")]
    means = [table.mean_return.mean() for table in sets]
    leads = [_compare_sets(own, table, len(sets)) for table in sets]
    n_behind = [lead.above() for lead in leads].count(True)
    yield (
        "Mean return over all goals by number of eigenoptions. The first options end "
        "in or beside corners, which suits the goal of Figure 7; the maps show goals "
        f"that they leave out. {len(sets)} sets of {many} random options reach "
        f"{np.mean(means):.3f} on average ({min(means):.3f} to {max(means):.3f}): "
        f"{many} eigenoptions are ahead of {n_behind} of them.",
        pd.DataFrame(rows),
    )


@claim(
    "same-set-many-tasks",
    "The same set of eigenoptions is able to speed-up learning in different tasks.",
)
def speed_up_different_tasks(data: Data) -> Finding:
    # Returns with options and without, one entry per goal.
    def compare(own: pd.Series, without: pd.Series) -> Difference:
        # Goals are paired: their differences against zero.
        return compare_means(own - without, np.zeros(len(without)))

    def judge(
        own: pd.Series, without: pd.Series, is_better: IsBetter = Difference.above
    ) -> Tests:
        is_higher = own > without
        return [is_better(compare(own, without)), is_higher.mean() > 0.5]

    n = data["goals"].many.iloc[0]
    returns = _find_returns(data)
    late_returns = _find_returns(data, "late_return")
    own = returns[n]
    without = returns[0]
    gain = compare(own, without)
    n_better = int((own > without).sum())
    returns_of_readings = data["readings"].pivot(
        index="goal", columns="reading", values="mean_return"
    )
    return Finding(
        tests=judge(own, without),
        readings={
            FINAL: judge(late_returns[n], late_returns[0]),
            NO_MARGIN: judge(own, without, is_above_zero),
            **{
                reading: judge(other, without)
                for reading, other in returns_of_readings.items()
            },
        },
        measured=f"with {n} eigenoptions the mean return is higher than with primitive "
        f"actions for {n_better} of {len(own)} goals; on average {own.mean():.3f} "
        f"against {without.mean():.3f}",
        evidence="Every state but the start is the goal once. The average difference "
        f"is {gain}; it must be above zero, and most goals must gain.",
    )


@claim(
    "fewest-attempts",
    "An optimal hierarchy minimizes the geometric mean number of trial-and-error "
    "attempts necessary for the agent to discover the optimal policy for any selected "
    "task (Solway et al., 2014). Our experiments confirm this result, although we "
    "propose diffusion time as a different metric.",
    section="6",
)
def need_fewest_attempts(data: Data) -> Finding:
    attempts = _count_attempts(data)

    def judge(correlations: Mapping[str, float], limit: float = STRONG) -> Tests:
        return [correlation >= limit for correlation in correlations.values()]

    correlations = {
        str(kind): float(spearmanr(rows.diffusion_time, rows.attempts).statistic)
        for kind, rows in attempts.groupby("kind", sort=False)
    }
    least = attempts.loc[attempts.diffusion_time.idxmin()]
    fewest = attempts.loc[attempts.attempts.idxmin()]
    return Finding(
        tests=judge(correlations),
        readings=move_limit("STRONG", lambda limit: judge(correlations, limit)),
        measured="rank correlation of diffusion time and attempts: "
        f"{list_items('{} {:+.2f}', correlations)}. {least.n_options} "
        f"{_name_kind(least.kind)} have the least diffusion time and need "
        f"{least.attempts:.1f} attempts, {fewest.n_options} {_name_kind(fewest.kind)} "
        f"need the fewest, {fewest.attempts:.1f}",
        evidence="The paper computes no optimal hierarchy, so what is judged is "
        "whether the metric that it proposes orders sets of options as attempts do. "
        "Attempts: the evaluation episodes that do not reach the goal, and one; their "
        "geometric mean over all goals of the 4-room domain. Two tests: over numbers "
        "of eigenoptions, and over sets of random options, the rank correlation is at "
        f"least {STRONG:g}.",
        lesson="A short diffusion time does not order sets of options as the attempts "
        "do that an agent needs to learn its tasks.",
    )


def _count_attempts(data: Data) -> pd.DataFrame:
    """Diffusion time of each set of options, and its attempts over all goals."""
    goals = data["goals"][data["goals"].n_options > 0]
    n_failed = goals.episodes * (1 - goals.mean_return)
    # The sets of eigenoptions are told apart by their number of options.
    number = goals.set.where(goals.kind == "random", 0)
    logs = np.log1p(n_failed).groupby([goals.kind, number, goals.n_options], sort=False)
    attempts = np.exp(logs.mean()).rename("attempts").reset_index()
    times = data["diffusion"][["kind", "set", "n_options", "diffusion_time"]]
    return attempts.merge(times)


def _name_kind(kind: str) -> str:
    """A kind of options in words."""
    return "random options" if kind == "random" else kind


def _compare_sets(a: pd.DataFrame, b: pd.DataFrame, n_intervals: int) -> Difference:
    """Difference over all goals between two sets of options.

    The interval covers the noise of the runs.
    """
    n_goals = len(a)
    mean = a.mean_return.mean() - b.mean_return.mean()
    variance = (a.standard_error**2).sum() + (b.standard_error**2).sum()
    quantile = ndtri(1 - (1 - CONFIDENCE) / (2 * n_intervals))
    half = quantile * np.sqrt(variance) / n_goals
    return Difference(mean, mean - half, mean + half)


def _find_returns(data: Data, measure: str = "mean_return") -> pd.DataFrame:
    """Mean return of each goal (rows) by number of eigenoptions (columns)."""
    own = data["goals"][data["goals"].kind == "eigenoptions"]
    return own.pivot(index="goal", columns="n_options", values=measure)
