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

import pandas as pd
from matplotlib.figure import Figure

from reproduction.drawing import add_legend, draw_lines, make_graphs
from reproduction.experiment import Block
from reproduction.lab import Data, Jobs, Results
from reproduction.runs.learning import EPISODES
from reproduction.runs.published import PUBLISHED_COUNTS, list_published_jobs
from reproduction.statistics import compare_means

SECTION = "4.3"
ORDER = 160
QUICK = {"episodes": {"i-maze": 30}, "options": [0, 1, 4, 32], "runs": 4}
OURS = True


def list_jobs(
    *,
    episodes: Mapping[str, int] = EPISODES,
    options: Sequence[int] = PUBLISHED_COUNTS,
    runs: int = 300,
    seed: int = 2020,
) -> Jobs:
    """Mean returns by label; options that run to their end are in Figure 7."""
    jobs = list_published_jobs(episodes=episodes, options=options, runs=runs, seed=seed)
    return {"runs": jobs}


def tabulate_results(results: Results) -> Data:
    """One row per run."""
    tables = [
        pd.DataFrame({"mean_return": returns.mean(axis=1)}).assign(**columns)
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
