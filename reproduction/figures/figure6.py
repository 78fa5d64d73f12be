"""Figure 6: diffusion time.

Expected number of steps between any two states when following a random walk over actions and options, as eigenoptions
are added in order of eigenvalue; and the same with options that look for doorways.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import eigenoptions as eo
from reproduction.drawing import add_legend, draw_lines, make_graphs
from reproduction.figures.agents import ANGLES, MAZES, diffuse_all
from reproduction.lab import FIRST, GREATLY, Block, Claim, Data, Lab, list_rows

SECTION, ORDER = "4.2", 70
QUICK = {"mazes": ["i-maze", "four-rooms"], "n": 12}
# Other readings of the paper, as settings of `make_eigenoptions`.
READINGS: dict[str, dict[str, Any]] = {
    "eigenvalue zero left out": {"skip_zero": True},
    "combinatorial Laplacian": {"operator": "combinatorial"},
    "option discount 0.5": {"gamma": 0.5},
    "option discount 0.99": {"gamma": 0.99},
}


def run(
    lab: Lab, *, mazes: Sequence[str] = MAZES, n: int | None = None, readings: Sequence[str] = tuple(READINGS)
) -> Data:
    """Diffusion time with 0, 1, 2, ... options, also under other readings, and by dynamic programming."""
    rooms, some = "four-rooms", {} if n is None else {"n": n}
    agents = [{"maze": name, "options": some, "domain": name, "kind": "eigenoptions"} for name in mazes]
    agents.append({"maze": rooms, "options": {"method": "bottleneck"}, "domain": rooms, "kind": "bottleneck"})
    turned = [{"maze": "open-room", "options": {**some, "angle": a}, "angle": a} for a in ANGLES]
    others = [
        {"maze": name, "options": {"n": n or 100, **READINGS[reading]}, "domain": name, "reading": reading}
        for name in mazes
        for reading in readings
    ]
    return {
        "diffusion": diffuse_all(lab, agents),
        "bases": diffuse_all(lab, turned),
        "readings": diffuse_all(lab, others),
        "dynamic_programming": pd.DataFrame(lab.pmap(sweep, [{"maze": name} for name in mazes])),
    }


def sweep(*, maze: str) -> dict[str, Any]:
    """Diffusion time of primitive actions by Appendix B, policy evaluation with reward 1 per step, and by equations."""
    mdp = eo.maze(maze)
    S, successors = mdp.n_states, np.asarray(mdp.successors)
    v, change, goals = np.zeros((S, S)), 1.0, np.arange(S)
    while change > 1e-6:
        # v[g, s]: steps from s to g, one sweep for all goals at once.
        new = 1.0 + v[:, successors].mean(axis=2)
        new[goals, goals] = 0.0
        change, v = float(np.abs(new - v).max()), new
    return {"domain": maze, "swept": v.sum() / (S * (S - 1)), "solved": eo.diffusion_time(mdp)}


def figure(data: Data) -> Any:
    curves = find_curves(data, "eigenoptions")
    picture, axes = make_graphs(len(curves) + 1, width=8.8)
    for ax, (domain, y) in zip(axes, curves.items(), strict=False):
        bases = [basis.diffusion_time[: len(y)] for _, basis in data["bases"].groupby("angle")]
        thin = {"other bases": np.array(bases)} if domain == "open-room" else None
        draw_lines(
            ax, range(len(y)), {"eigenoptions": y}, thin=thin, baseline=y[0], title=domain, yscale="log"
        )
    doors = find_curves(data, "bottleneck")["four-rooms"]
    ticks = [str(m) for m in range(len(doors))]
    draw_lines(
        axes[-1],
        range(len(doors)),
        {"bottleneck options": doors},
        baseline=doors[0],
        ticks=ticks,
        title="bottleneck options",
        ylim=(0, 1.1 * doors.max()),
    )
    for ax in axes:
        ax.set_xlabel("options")
    axes[0].set_ylabel("diffusion time")
    add_legend(picture)
    return picture


def claims(data: Data) -> Iterator[Claim]:
    curves = find_curves(data, "eigenoptions")
    readings = data["readings"].pivot(
        index=["reading", "domain"], columns="n_options", values="diffusion_time"
    )
    readings = readings.div([curves[domain][0] for _, domain in readings.index], axis=0)
    worst = {name: y[list(FIRST)].max() / y[0] for name, y in curves.items()}
    first = pd.DataFrame({name: y[:9] for name, y in curves.items()}).T.map("{:,.0f}".format)
    first.columns = ["no options", *first.columns[1:].astype(str)]
    harmless = readings.index[(readings[list(FIRST)] <= 1).any(axis=1)]
    yield Claim(
        "first-options-hurt",
        "The first options added hurt exploration.",
        tests=[(y[list(FIRST)] > y[0]).all() for y in curves.values()],
        measured=f"with {FIRST[0]} to {FIRST[2]} options the diffusion time is up to "
        + ", ".join(f"{factor:,.0f} times ({name})" for name, factor in worst.items())
        + " that of primitive actions",
        evidence=f"Diffusion times with {FIRST[0]} to {FIRST[2]} options must all be above that of primitive "
        "actions, in each domain. In the I-Maze the fourth option ends the harm; in the open room the fourth "
        "does so in one basis of the repeated eigenvalue and not in others. It is a consequence of the uniform "
        "choice: see Looking closer: probability of an option.",
        edge=f"Some of the first {FIRST[2]} options do not hurt under other readings: {name_readings(harmless)}."
        if len(harmless)
        else "",
        table=first.rename_axis("steps").reset_index(),
    )
    table = pd.DataFrame(
        {
            "domain": name,
            "no options": f"{y[0]:,.1f}",
            "least": f"{y.min():,.1f}",
            "with": y.argmin(),
            "below primitive actions": f"from {lasting_gain(y)} options on"
            if lasting_gain(y) < len(y)
            else "never for good",
        }
        for name, y in curves.items()
    )
    least = readings.min(axis=1)
    for reading, row in least.unstack("domain").iterrows():
        table[f"{reading}: least / no options"] = table.domain.map(row).map("{:.3f}".format)
    fails = least.index[least > GREATLY]
    yield Claim(
        "enough-options-help",
        "When enough options are added, exploration is greatly improved when compared to a random walk using "
        "only primitive actions.",
        tests=[y.min() <= GREATLY * y[0] for y in curves.values()],
        measured="; ".join(f"{name}: {y.min() / y[0]:.2f} of the time without" for name, y in curves.items()),
        evidence=f"'Greatly': in each domain the diffusion time falls to at most {GREATLY:.0%} of that with "
        "primitive actions.",
        edge=f"The limit of {GREATLY:.0%} is ours. With up to 100 options the least time is above it under: "
        f"{name_readings(fails)}."
        if len(fails)
        else "",
        table=table,
    )
    doors = find_curves(data, "bottleneck")["four-rooms"]
    yield Claim(
        "bottlenecks-increase",
        "The diffusion time in the 4-room domain is increased when only bottleneck options are used.",
        tests=[doors[-1] > doors[0]],
        measured=f"{' → '.join(f'{x:,.0f}' for x in doors)} steps with 0 to 4 bottleneck options",
        evidence="The four options of Appendix C, added room by room. With one to three of them the time depends "
        "on the order of the rooms; the claim is judged with all four.",
    )
    swept = data["dynamic_programming"]
    yield Claim(
        "dynamic-programming",
        "In tabular domains, we can easily compute the diffusion time with dynamic programming: reward +1 per "
        "step, no discount, averaged over all goals.",
        section="Appendix B",
        tests=list(abs(swept.swept - swept.solved) < 1e-3 * swept.solved),
        measured=f"{list_rows('{domain} {swept:,.2f}', swept)} steps, as by linear equations",
        evidence="Sweeps of policy evaluation until no value changes, against the exact solution that all "
        "other numbers use; they must agree to a thousandth.",
    )


def notes(data: Data) -> Iterator[Block]:
    yield (
        "A likely reason for the steep rise with few options: they are taken as often as primitive actions, so "
        "a state away from where they end is reached only by several primitive actions in a row, and its time "
        "grows exponentially with the distance. The rise ends as soon as there is an option towards each end "
        "of the maze; a corridor has only two."
    )
    curves = find_curves(data, "eigenoptions")
    if "open-room" in curves:
        lines = {"as reported": curves["open-room"]}
        for angle, basis in data["bases"].groupby("angle"):
            lines[f"turned by {angle} degrees"] = basis.diffusion_time.to_numpy()
        counts = [0, 2, 3, 4, 6, 8, 16, 32, 64]
        table = pd.DataFrame({name: y[counts] for name, y in lines.items()}, index=map(str, counts)).T
        yield (
            "Thin lines in the open room: other bases of its repeated eigenvalues, which are equally right. "
            "With four options one of them is already below primitive actions, the others ten times above.",
            table.map("{:,.0f}".format).rename_axis("open room, options").reset_index(),
        )


def headline(data: Data) -> tuple[str, str]:
    y = find_curves(data, "eigenoptions")["four-rooms"]
    return (
        f"{y.min():,.0f} steps",
        f"between two states of the 4-room domain with eigenoptions, {y[0]:,.0f} without",
    )


def find_curves(data: Data, kind: str) -> dict[str, NDArray[np.float64]]:
    """Diffusion times with 0, 1, 2, ... options, by domain."""
    diffusion = data["diffusion"][data["diffusion"].kind == kind]
    return {domain: y.diffusion_time.to_numpy() for domain, y in diffusion.groupby("domain", sort=False)}


def name_readings(rows: pd.MultiIndex) -> str:
    """Readings and their domains as text."""
    return "; ".join(f"{domain}, {reading}" for reading, domain in rows)


def lasting_gain(y: NDArray[np.float64]) -> int:
    """Number of options from which a curve stays below its first value; its length if it does not.

    >>> lasting_gain(np.array([5.0, 9, 4, 6, 3]))
    4
    """
    return int(np.flatnonzero(y >= y[0])[-1]) + 1
