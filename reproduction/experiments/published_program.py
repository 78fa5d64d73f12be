"""Looking closer: the published program.

The authors published a program (mcmachado/options). It does some things that the paper
does not say, or says otherwise: here is each of them, with a number that it changes.

This is what the version of its last commit does, in a port from its description. It is
not known whether this version drew the paper's figures. In its learner an option lasts
two steps: the number of a chosen option is overwritten with that of the primitive
action it stands for, so that this action is repeated, wherever it leads, and then the
agent chooses again. Its curves are labelled with twice the number of options.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import eigenoptions as eo
from reproduction.atari.protocol import published_starts
from reproduction.atari.stored import load_results
from reproduction.drawing import add_legend, draw_lines, make_graphs
from reproduction.experiment import Block
from reproduction.experiments.figure6 import GRID
from reproduction.lab import Data, Job, Jobs, Results, stack_tables
from reproduction.readings import AUTHORS_BASIS, TOLERANCE, WALLS
from reproduction.runs.diffusion import diffuse, stack_times
from reproduction.runs.learning import (
    COUNTS,
    EPISODES,
    Learner,
    list_learning_jobs,
    stack_runs,
)
from reproduction.runs.options import (
    OPTION_READINGS,
    limit_counts,
    load_authors_table,
    make_eigenoptions,
)
from reproduction.runs.published import PUBLISHED_COUNTS, list_published_jobs
from reproduction.statistics import compare_means

SECTION = "4.2, 4.3 and 5.2"
ORDER = 160
QUICK = {
    "episodes": {"i-maze": 30},
    "options": [0, 2, 4, 32],
    "runs": 4,
    "followed": [0, 2, 4, 32],
    "followed_runs": 4,
    "grid": [0, 4, 32],
}
OURS = True
NOTES_FIRST = True

PAPER = "paper"
PROGRAM = "program"


def list_jobs(
    *,
    episodes: Mapping[str, int] = EPISODES,
    options: Sequence[int] = PUBLISHED_COUNTS,
    runs: int = 300,
    seed: int = 2020,
    followed: Sequence[int] = COUNTS,
    followed_runs: int = 100,
    followed_seed: int = 2017,
    grid: Sequence[int] = GRID,
) -> Jobs:
    """Learning and diffusion times, as the paper has them and by the program.

    Those that Figures 6 and 7 show, too, are computed once.

    Parameters
    ----------
    episodes : mapping
        Episodes of a run, by maze.
    options, runs, seed : sequence of int, int, int
        Numbers of options of the program's agents (its labels are twice these), their
        runs and their seed.
    followed, followed_runs, followed_seed : sequence of int, int, int
        The same for agents that follow options until they end.
    grid : sequence of int
        Numbers of options at which the program's diffusion times are computed.
    """
    learners = [
        Learner(maze, {"n": n}, {"n_options": n})
        for maze in episodes
        for n in limit_counts(maze, followed)
    ]
    diffusion = [
        Job(
            diffuse,
            {"maze": maze, "options": {}},
            {"domain": maze, "change": PAPER},
        )
        for maze in episodes
    ]
    diffusion += [
        Job(
            diffuse,
            {"maze": maze, "options": OPTION_READINGS[change], "counts": grid},
            {"domain": maze, "change": change},
        )
        for maze in episodes
        for change in (WALLS, TOLERANCE, AUTHORS_BASIS)
    ]
    return {
        "runs": list_published_jobs(
            episodes=episodes, options=options, runs=runs, seed=seed
        ),
        "followed": list_learning_jobs(
            learners, runs=followed_runs, episodes=episodes, seed=followed_seed
        ),
        "diffusion": diffusion,
        "idle": [Job(count_idle_options, {"maze": maze}) for maze in episodes],
    }


def count_idle_options(*, maze: str) -> pd.DataFrame:
    """How many options there are, and how many never start, if walls are states."""
    mdp = eo.maze(maze)
    # Without walls, each eigenvector of its free cells gives two options.
    n_own = 2 * mdp.n_states
    options = make_eigenoptions(mdp, **OPTION_READINGS[WALLS])
    never_starts = (options.policy < 0).all(axis=1)
    return pd.DataFrame(
        {
            "domain": [maze],
            "own": [n_own],
            "options": [len(options)],
            "idle": [int(never_starts.sum())],
        }
    )


def tabulate_results(results: Results) -> Data:
    """Runs of both learners, diffusion times, and what each difference changes."""
    data = {
        "runs": stack_runs(results["runs"]),
        "followed": stack_runs(results["followed"]),
        "diffusion": stack_times(results["diffusion"]),
        "idle": stack_tables(results["idle"]),
    }
    differences = [
        *_list_steps(data),
        *_list_options(data),
        *_list_learning(data),
        *_list_bottlenecks(),
        *_list_games(),
    ]
    return {**data, "differences": pd.DataFrame(differences)}


def _list_steps(data: Data) -> Iterator[dict[str, Any]]:
    """What the step for terminating changes."""
    diffusion = data["diffusion"]
    ours = diffusion[diffusion.change == PAPER]
    for domain, curve in ours.groupby("domain", sort=False):
        without = curve.diffusion_time.iloc[0]
        yield _compare(
            "an option of k moves costs k + 1 steps: one for terminating",
            f"{domain}: least diffusion time / that of primitive actions",
            curve.diffusion_time.min() / without,
            curve.with_extra_step.min() / without,
        )


def _list_options(data: Data) -> Iterator[dict[str, Any]]:
    """What other eigenvectors and values change."""
    for row in data["idle"].itertuples():
        yield _compare(
            "walls are states, with one-way edges to free cells; their eigenvectors "
            "give options that never start",
            f"{row.domain}: options ({row.idle} of the program's never start)",
            row.own,
            row.options,
        )

    times = data["diffusion"].set_index(["domain", "change", "n_options"])
    times = times.diffusion_time.unstack("n_options")
    texts = {
        WALLS: "the same: idle options stand among the others",
        TOLERANCE: "values up to 0.001 are zero, and the option terminates",
        AUTHORS_BASIS: "eigenvectors of a repeated eigenvalue as a solver for any "
        "matrix finds them, not orthogonal",
    }
    for change, text in texts.items():
        for domain in times.index.unique("domain"):
            ours = times.loc[domain, PAPER]
            theirs = times.loc[domain, change]
            # The number of options that makes most of the difference.
            n = (np.log(theirs) - np.log(ours)).abs().idxmax()
            if not np.isclose(ours[n], theirs[n], rtol=1e-3):
                yield _compare(
                    text, f"{domain}: diffusion time, {n} options", ours[n], theirs[n]
                )


def _list_learning(data: Data) -> Iterator[dict[str, Any]]:
    """What options of two steps change, and what the labels do."""
    theirs = _average_returns(data["runs"], "label")
    ours = _average_returns(data["followed"], "n_options")
    for domain in theirs.index:
        label = 64 if 64 in theirs else theirs.columns[-1]
        yield _compare(
            "an option lasts two steps: its number is overwritten with that of the "
            "action",
            f"{domain}: mean return with {label // 2} options",
            ours.loc[domain].loc[: label // 2].iloc[-1],
            theirs.loc[domain, label],
        )
    for domain in theirs.index:
        best = theirs.loc[domain].idxmax()
        # The last label stands for all options, of which there may be fewer.
        n_options = min(best // 2, 2 * eo.maze(domain).n_states)
        yield _compare(
            "the curve of n options is labelled 2n",
            f"{domain}: the best curve",
            f"{n_options} options",
            f"label {best}",
        )


def _list_bottlenecks() -> Iterator[dict[str, Any]]:
    """What the files of bottleneck options change."""
    rooms = eo.maze("four-rooms")
    ours = eo.diffusion_time(rooms, eo.discover(rooms, method="bottleneck"))
    theirs = load_authors_table("diffusion").diffusion_time.iloc[-1]
    yield _compare(
        "bottleneck options are files, which do not always lead to the closest doorway",
        "four-rooms: diffusion time, 4 bottleneck options",
        ours,
        theirs,
    )


def _list_games() -> Iterator[dict[str, Any]]:
    """What differs in Freeway, by stored runs."""
    long = load_results(game="Freeway")["long"]
    scores = long[long.variant == "paper"].groupby("kind").score.max()
    yield _compare(
        "a row of V is followed as the program does, not a column (a singular vector)",
        "Freeway: points of the best option",
        scores["singular"],
        scores["published"],
    )
    n_frames = np.mean([len(actions) for actions in published_starts("Freeway")])
    yield _compare(
        "options begin where the recorded actions lead if each is held for one frame "
        "instead of five, as they were recorded",
        "Freeway: frames before an option begins, mean of six starts",
        n_frames,
        n_frames / 5,
    )


def _compare(what: str, number: str, paper: Any, program: Any) -> dict[str, Any]:
    """A row of the table."""
    row = {"the program": what, "number": number, PAPER: paper, PROGRAM: program}
    return {name: _format(value) for name, value in row.items()}


def _format(value: Any) -> str:
    """Text as it is, whole numbers whole, and others with three digits or more."""
    if isinstance(value, str):
        return value
    if float(value).is_integer() or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}"


def _average_returns(runs: pd.DataFrame, column: str) -> pd.DataFrame:
    """Mean return by domain (rows) and a column."""
    means = runs.groupby(["domain", column], sort=False).mean_return.mean()
    return means.unstack().sort_index(axis=1)


def draw_figure(data: Data) -> Figure:
    """Mean return by number of options, with both learners, a graph per domain."""
    theirs = _average_returns(data["runs"], "label")
    ours = _average_returns(data["followed"], "n_options")
    figure, axes = make_graphs(len(theirs), sharey=True, ylabel="mean return")
    for ax, domain in zip(axes, theirs.index, strict=True):
        labels = theirs.columns[1:]
        curve = ours.loc[domain].dropna()
        draw_lines(
            ax,
            range(len(labels)),
            {
                "two steps per option": theirs.loc[domain, labels],
                "options until they end": curve.reindex(labels // 2),
            },
            baseline=theirs.loc[domain, 0],
            ticks=labels,
            title=domain,
            xlabel="label (twice the number of options)",
            ylim=(-0.02, 1.02),
        )
    return add_legend(figure)


def write_notes(data: Data) -> Iterator[Block]:
    """The differences, and which label is best."""
    differences = data["differences"]
    is_said = differences["the program"].duplicated()
    yield (
        "What the program does, and a number under the paper's words and as the "
        "program has it. Where several domains stand, the number of options is the one "
        "at which most changes; where a domain is missing, nothing does.",
        differences.assign(
            **{"the program": differences["the program"].mask(is_said, "")}
        ),
    )
    domains = data["runs"].groupby("domain", sort=False)
    best = [_describe_best_label(domain, runs) for domain, runs in domains]
    means = _average_returns(data["runs"], "label")
    yield f"Mean return by label. {'; '.join(best)}.", means.reset_index()
    yield (
        "The program has 1, 2, 4, 32, 64, 128 and 256 options, so 16 and 32 were "
        "probably not among the labels of the paper. Diffusion times come from other "
        "code, which follows options to their end."
    )


def _describe_best_label(domain: str, runs: pd.DataFrame) -> str:
    """The label with the highest mean return, and those that are ahead of 64."""
    returns = runs.pivot(columns="label", values="mean_return", index="run")
    best = returns.mean().drop(0).idxmax()
    others = [label for label in returns if label not in (0, 64)]
    ahead = []
    for label in others:
        lead = compare_means(returns[label], returns[64], len(others))
        if lead.above():
            ahead.append(str(label))
    return (
        f"{domain}: highest with label {best}, ahead of 64: "
        f"{', '.join(ahead) or 'none'}"
    )
