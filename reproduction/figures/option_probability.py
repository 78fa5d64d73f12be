"""Looking closer: probability of an option.

The paper's random walk chooses uniformly among actions and options. Here an option is chosen with a given
probability, a primitive action otherwise.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

import eigenoptions as eo
from reproduction.drawing import add_legend, draw_lines, make_graphs
from reproduction.figures.agents import MAZES, make_eigenoptions
from reproduction.lab import Block, Data, Lab

SECTION, ORDER = "4.2", 140
QUICK = {"mazes": ["i-maze"], "options": [2, 4], "probabilities": [0.05, 0.4]}
OURS = True


def run(
    lab: Lab,
    *,
    mazes: Sequence[str] = MAZES,
    options: Sequence[int] = (2, 4, 8, 16, 32, 64),
    probabilities: Sequence[float] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8),
) -> Data:
    """Exact diffusion times, and the best probability, for each number of eigenoptions (eigenvalue zero left out)."""
    pairs = [(name, n) for name in mazes for n in options if n <= 2 * (eo.maze(name).n_states - 1)]
    jobs = [{"maze": name, "n": n, "probabilities": tuple(probabilities)} for name, n in pairs]
    results = lab.pmap(measure, jobs)
    return {
        "probabilities": pd.concat([times for times, _ in results]),
        "best": pd.concat([best for _, best in results]),
    }


def measure(*, maze: str, n: int, probabilities: Sequence[float]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Diffusion time by probability of an option, and at the best one, with n eigenoptions."""
    mdp = eo.maze(maze)
    options = make_eigenoptions(mdp, n, skip_zero=True)
    times = [eo.diffusion_time(mdp, options, option_chance=p) for p in probabilities]
    best = eo.best_option_chance(mdp, options)
    row = {
        "primitive": eo.diffusion_time(mdp),
        "uniform": eo.diffusion_time(mdp, options),
        "best_probability": best.chance,
        "best_time": best.diffusion_time,
    }
    key = {"domain": maze, "n_options": n}
    return (
        pd.DataFrame({"probability": probabilities, "diffusion_time": times}).assign(**key),
        pd.DataFrame([row]).assign(**key),
    )


def figure(data: Data) -> Any:
    domains = data["probabilities"].groupby("domain", sort=False)
    picture, axes = make_graphs(len(domains), width=8.0)
    for ax, (domain, table) in zip(axes, domains, strict=True):
        times = table.pivot(index="n_options", columns="probability", values="diffusion_time")
        primitive = data["best"].set_index("domain").primitive[[domain]].iloc[0]
        draw_lines(
            ax,
            range(times.shape[1]),
            {f"{n} options": row for n, row in times.iterrows()},
            baseline=primitive,
            ticks=[f"{p:g}".removeprefix("0") for p in times.columns],
            title=domain,
            xlabel="probability of an option",
            ylim=(0.0, min(times.min(axis=1).max() + 3 * primitive, 2.5 * primitive)),
        )
    axes[0].set_ylabel("diffusion time")
    add_legend(picture)
    return picture


def notes(data: Data) -> Iterator[Block]:
    best = data["best"]
    yield (
        '"The first options hurt" is a consequence of the uniform choice: taken rarely, the first few '
        "options already help. The best probability grows with the number of options. All numbers are exact; "
        "eigenvalue zero is left out, as `discover` does by default.",
        pd.DataFrame(
            {
                "domain": best.domain,
                "options": best.n_options,
                "no options": best.primitive.map("{:,.1f}".format),
                "uniform choice": best.uniform.map("{:,.1f}".format),
                "best probability": best.best_probability.map("{:.2f}".format),
                "diffusion time with it": best.best_time.map("{:,.1f}".format),
            }
        ),
    )
