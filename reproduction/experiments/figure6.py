"""Figure 6: diffusion time.

Expected number of steps between any two states when following a random walk over actions and options, as eigenoptions
are added in order of eigenvalue; and the same with options that look for doorways.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import eigenoptions as eo
from reproduction.drawing import Figure, add_legend, draw_lines, make_graphs
from reproduction.experiments.agents import (
    ANGLES,
    CHOICES,
    MAZES,
    counts_for,
    diffuse_all,
    make_eigenoptions,
)
from reproduction.lab import (
    FIRST,
    GREATLY,
    Blocks,
    Claim,
    Claims,
    Data,
    Lab,
    list_items,
    list_rows,
)

SECTION, ORDER = "4.2", 70
QUICK = {"mazes": ["i-maze", "four-rooms"], "n": 12, "options": [2, 4]}
READINGS = ("eigenvalue zero left out", "combinatorial Laplacian")
READINGS += ("option discount 0.5", "option discount 0.99")


def run(
    lab: Lab, *, mazes=MAZES, n=None, readings=READINGS, options=(2, 4, 8, 16, 32, 64)
) -> Data:
    """Diffusion time by number of options, also under other readings, by dynamic programming, and by probability."""
    some = {} if n is None else {"n": n}
    agents = [{"maze": name, "options": some, "kind": "eigenoptions"} for name in mazes]
    agents.append(
        {
            "maze": "four-rooms",
            "options": {"method": "bottleneck"},
            "kind": "bottleneck",
        }
    )
    turned = [
        {"maze": "open-room", "options": {**some, "angle": a}, "angle": a}
        for a in (0, *ANGLES)
    ]
    others = [
        {
            "maze": name,
            "options": {"n": n or 100, **CHOICES[reading]},
            "reading": reading,
        }
        for name in mazes
        for reading in readings
    ]
    counts = {name: counts_for(name, options, skip_zero=True) for name in mazes}
    jobs = [
        {"maze": name, "n": n} for name in mazes for n in counts[name] if n in options
    ]
    return {
        "diffusion": diffuse_all(lab, agents),
        "bases": diffuse_all(lab, turned),
        "readings": diffuse_all(lab, others),
        "dynamic_programming": pd.DataFrame(
            lab.pmap(sweep, [{"maze": name} for name in mazes])
        ),
        "probabilities": pd.DataFrame(lab.pmap(choose_options, jobs)),
    }


def sweep(*, maze: str) -> dict[str, object]:
    """Diffusion time of primitive actions by Appendix B, policy evaluation with reward 1 per step, and by equations."""
    mdp = eo.maze(maze)
    S, successors = mdp.n_states, np.asarray(mdp.successors)
    v, change = np.zeros((S, S)), 1.0
    while change > 1e-6:
        # v[g, s]: steps from s to g, one sweep for all goals at once.
        new = 1.0 + v[:, successors].mean(axis=2)
        np.fill_diagonal(new, 0.0)
        change, v = float(np.abs(new - v).max()), new
    return {
        "domain": maze,
        "swept": v.sum() / (S * (S - 1)),
        "solved": eo.diffusion_time(mdp),
    }


def choose_options(*, maze: str, n: int) -> dict[str, object]:
    """Diffusion time with n eigenoptions (without e1) under the uniform choice, and with the best probability."""
    mdp = eo.maze(maze)
    options = make_eigenoptions(mdp, n, skip_zero=True)
    best, row = eo.best_option_chance(mdp, options), {"domain": maze, "options": n}
    row |= {
        "no options": eo.diffusion_time(mdp),
        "uniform choice": eo.diffusion_time(mdp, options),
    }
    return row | {"best probability": best.chance, "time with it": best.diffusion_time}


def figure(data: Data) -> Figure:
    curves = find_curves(data, "eigenoptions")
    picture, axes = make_graphs(len(curves) + 1, width=8.8, ylabel="diffusion time")
    for ax, (domain, y) in zip(axes, curves.items(), strict=False):
        bases = (
            data["bases"]
            .pivot(index="angle", columns="n_options", values="diffusion_time")
            .drop(0)
        )
        more = {
            "thin": {"other bases": bases} if domain == "open-room" else None,
            "yscale": "log",
        }
        draw_lines(
            ax, range(len(y)), {"eigenoptions": y}, baseline=y[0], title=domain, **more
        )
    doors = find_curves(data, "bottleneck")["four-rooms"]
    x, more = (
        range(len(doors)),
        {"title": "bottleneck options", "ylim": (0, 1.1 * doors.max())},
    )
    draw_lines(
        axes[-1], x, {"bottleneck options": doors}, baseline=doors[0], ticks=x, **more
    )
    for ax in axes:
        ax.set_xlabel("options")
    return add_legend(picture)


def claims(data: Data) -> Claims:
    curves = find_curves(data, "eigenoptions")
    times = (
        data["readings"]
        .set_index(["domain", "reading", "n_options"])
        .diffusion_time.unstack()
    )
    readings = times.div([curves[domain][0] for domain, _ in times.index], axis=0)
    worst = {name: y[list(FIRST)].max() / y[0] for name, y in curves.items()}
    harmless = readings[(readings[list(FIRST)] <= 1).any(axis=1)]
    yield Claim(
        "first-options-hurt",
        "The first options added hurt exploration.",
        tests=[(y[list(FIRST)] > y[0]).all() for y in curves.values()],
        measured=f"with {FIRST[0]} to {FIRST[2]} options the diffusion time is up to "
        f"{list_items('{1:,.0f} times ({0})', worst)} that of primitive actions",
        evidence="Each of these numbers of options must be above primitive actions, in each domain. In the I-Maze the "
        "fourth option ends the harm. It is a consequence of the uniform choice, see the analysis below Figure 6.",
        edge=f"Some of the first {FIRST[2]} options do not hurt under other readings: "
        f"{list_rows('{domain} ({reading})', harmless)}."
        if len(harmless)
        else "",
    )
    # Numbers of options from which a curve stays below its first value.
    below = [np.flatnonzero(y >= y[0])[-1] + 1 for y in curves.values()]
    least = readings.min(axis=1).rename("share").reset_index()
    fails = least[least.share > GREATLY]
    yield Claim(
        "enough-options-help",
        "When enough options are added, exploration is greatly improved when compared to a random walk using only "
        "primitive actions.",
        tests=[y.min() <= GREATLY * y[0] for y in curves.values()],
        measured=list_items(
            "{}: {:.2f} of the time without",
            {d: y.min() / y[0] for d, y in curves.items()},
        ),
        evidence=f"'Greatly': to at most {GREATLY:.0%} of the time with primitive actions, in each domain. The least "
        f"times are reached with {', '.join(f'{y.argmin()}' for y in curves.values())} options, and the curves stay "
        f"below primitive actions from {', '.join(map(str, below))} on.",
        edge=f"The limit of {GREATLY:.0%} is ours. With up to 100 options the least share is above it under other "
        f"readings: {list_rows('{domain} {share:.3f} ({reading})', fails)}."
        if len(fails)
        else "",
    )
    doors = find_curves(data, "bottleneck")["four-rooms"]
    yield Claim(
        "bottlenecks-increase",
        "The diffusion time in the 4-room domain is increased when only bottleneck options are used.",
        tests=[doors[-1] > doors[0]],
        measured=f"{' → '.join(f'{x:,.0f}' for x in doors)} steps with 0 to 4 bottleneck options",
        evidence="Judged with all four options of Appendix C; with one to three the time depends on the order of the "
        "rooms.",
    )
    swept = data["dynamic_programming"]
    yield Claim(
        "dynamic-programming",
        "In tabular domains, we can easily compute the diffusion time with dynamic programming: reward +1 per step, no "
        "discount, averaged over all goals.",
        section="Appendix B",
        tests=list(abs(swept.swept - swept.solved) < 1e-3 * swept.solved),
        measured=f"{list_rows('{domain} {swept:,.2f}', swept)} steps, as by linear equations",
        evidence="Policy evaluation until no value changes must agree to a thousandth with the exact solution, which "
        "all other numbers use.",
    )


def notes(data: Data) -> Blocks:
    yield (
        '"The first options hurt" is a consequence of the uniform choice: taken rarely, the first few options '
        "already help. Diffusion times by the probability of an option (without e1):",
        data["probabilities"],
    )
    bases = data["bases"].pivot(
        index="angle", columns="n_options", values="diffusion_time"
    )
    yield (
        "Thin lines in the open room: other bases of its repeated eigenvalues, which are equally right. Diffusion "
        "time by the angle at which the basis is turned and the number of options:",
        bases[[n for n in (0, 2, 3, 4, 6, 8, 16, 32, 64) if n in bases]].reset_index(),
    )


def headline(data: Data) -> tuple[str, str]:
    y = find_curves(data, "eigenoptions")["four-rooms"]
    words = f"between two states of the 4-room domain with eigenoptions, {y[0]:,.0f} without"
    return f"{y.min():,.0f} steps", words


def find_curves(data: Data, kind: str) -> dict[str, NDArray[np.float64]]:
    """Diffusion times with 0, 1, 2, ... options, by domain."""
    diffusion = data["diffusion"][data["diffusion"].kind == kind]
    return {
        domain: y.diffusion_time.to_numpy()
        for domain, y in diffusion.groupby("domain", sort=False)
    }
