"""Figure 6: diffusion time.

Expected number of steps between any two states when following a random walk over
actions and options, as eigenoptions are added in order of eigenvalue; and the same with
options that look for doorways.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import eigenoptions as eo
from eigenoptions._types import FloatArray
from reproduction.claims import (
    Finding,
    claim,
    demonstration,
    list_items,
    list_rows,
    move_limit,
)
from reproduction.drawing import add_legend, draw_lines, make_graphs
from reproduction.experiment import Block
from reproduction.lab import Data, Job, Jobs, Results, stack_tables
from reproduction.readings import (
    AUTHORS_BASIS,
    BOTTLENECKS,
    EXTRA_STEP,
    ONE_SIGN,
    RANDOM_BASES,
    TIES,
    WALLS,
    WITHOUT_E1,
)
from reproduction.runs.diffusion import compute_diffusion_times, diffuse, stack_times
from reproduction.runs.options import (
    MAZES,
    OPTION_READINGS,
    limit_counts,
    load_authors_table,
    make_eigenoptions,
)
from reproduction.thresholds import FEW, FIRST, GREATLY

SECTION = "4.2"
ORDER = 70
QUICK = {
    "mazes": ["i-maze", "four-rooms"],
    "n": 12,
    "grid": [0, 1, 2, 3, 12],
    "readings": [WITHOUT_E1, WALLS],
    "options": [2, 4],
    "orders": 2,
}

# Numbers of options at which other readings are computed; a curve is smooth between.
GRID = (
    *(0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 38, 48, 64, 80, 96),
    *(128, 160, 200, 208, 338),
)

# Settings of other readings of the paper, and of bases of repeated eigenvalues.
READINGS: dict[str, dict[str, Any]] = {
    **OPTION_READINGS,
    ONE_SIGN: {"both_signs": False},
}
BASES: dict[str, dict[str, Any]] = {
    "ours": {},
    "ours turned by 45 degrees": {"angle": 45},
    "ours turned by 90 degrees": {"angle": 90},
    AUTHORS_BASIS: OPTION_READINGS[AUTHORS_BASIS],
    **{name: OPTION_READINGS[name] for name in RANDOM_BASES},
}


def list_jobs(
    *,
    mazes: Sequence[str] = MAZES,
    n: int | None = None,
    grid: Sequence[int] = GRID,
    readings: Sequence[str] = tuple(READINGS),
    options: Sequence[int] = (2, 4, 8, 16, 32, 64),
    orders: int = 24,
) -> Jobs:
    """Diffusion times by number of options, also under other readings of the paper.

    `n` limits the number of eigenoptions; `grid` are the numbers at which other
    readings are computed, and `options` those for which the best probability of an
    option is found. `orders` are orders of equally good actions.
    """
    all_options = {} if n is None else {"n": n}
    diffusion = [
        Job(
            diffuse,
            {"maze": maze, "options": all_options},
            {"domain": maze, "kind": "eigenoptions"},
        )
        for maze in mazes
    ]
    diffusion.append(
        Job(
            diffuse,
            {"maze": "four-rooms", "options": {"method": "bottleneck"}},
            {"domain": "four-rooms", "kind": "bottleneck"},
        )
    )
    bases = [
        Job(
            diffuse,
            {
                "maze": "open-room",
                "options": {**all_options, **settings},
                "counts": grid,
            },
            {"domain": "open-room", "basis": basis},
        )
        for basis, settings in BASES.items()
    ]
    others = [
        Job(
            diffuse,
            {
                "maze": maze,
                "options": {**all_options, **READINGS[reading]},
                "counts": grid,
            },
            {"domain": maze, "reading": reading},
        )
        for maze in mazes
        for reading in readings
    ]
    probabilities = [
        Job(choose_options, {"maze": maze, "n": count})
        for maze in mazes
        for count in limit_counts(maze, options, skip_zero=True)
        if count in options
    ]
    ties = [
        Job(break_ties, {"maze": maze, "order": order}, {"domain": maze})
        for maze in mazes
        for order in list(permutations(range(4)))[:orders]
    ]
    return {
        "diffusion": diffusion,
        "ties": ties,
        "bases": bases,
        "readings": others,
        "dynamic_programming": [Job(sweep, {"maze": maze}) for maze in mazes],
        "probabilities": probabilities,
    }


def sweep(*, maze: str) -> dict[str, Any]:
    """Diffusion time of primitive actions by Appendix B, and by linear equations.

    Appendix B evaluates the random policy with reward 1 per step, for each goal. The
    other numbers are those with eight options: as all curves are computed here, and as
    the library does it, with a proof of its accuracy.
    """
    mdp = eo.maze(maze)
    n_states = mdp.n_states
    successors = np.asarray(mdp.successors)

    # v[g, s]: steps from s to g. One sweep serves all goals.
    v = np.zeros((n_states, n_states))
    change = 1.0
    while change > 1e-6:
        new = 1.0 + v[:, successors].mean(axis=2)
        np.fill_diagonal(new, 0.0)
        change = float(np.abs(new - v).max())
        v = new
    options = make_eigenoptions(mdp, FEW)
    (with_options,), _ = compute_diffusion_times(mdp, options, [FEW])
    return {
        "domain": maze,
        "swept": v.sum() / (n_states * (n_states - 1)),
        "solved": eo.diffusion_time(mdp),
        "with_options": with_options,
        "proved": eo.diffusion_time(mdp, options),
    }


def break_ties(*, maze: str, order: Sequence[int]) -> pd.DataFrame:
    """Diffusion times with the first options if ties are broken in another order.

    Of equally good actions an option takes the first in this order. Neither sign of an
    eigenvector comes before the other for a reason, so both orders of signs are here.
    """
    mdp = eo.maze(maze)
    plus_first = make_eigenoptions(mdp, 4, action_order=order)
    counts = (0, *FIRST)
    tables = []
    for first_sign, numbers in (("+", [0, 1, 2, 3]), ("-", [1, 0, 3, 2])):
        times, _ = compute_diffusion_times(mdp, plus_first[numbers], counts)
        table = pd.DataFrame({"n_options": counts, "diffusion_time": times})
        names = "".join("URDL"[action] for action in order)
        tables.append(table.assign(order=names, first_sign=first_sign))
    return pd.concat(tables)


def choose_options(*, maze: str, n: int) -> dict[str, Any]:
    """Diffusion time with n eigenoptions, chosen uniformly and with the best chance.

    The options of eigenvalue zero are left out.
    """
    mdp = eo.maze(maze)
    options = make_eigenoptions(mdp, n, skip_zero=True)
    best = eo.best_option_chance(mdp, options)
    return {
        "domain": maze,
        "options": n,
        "no options": eo.diffusion_time(mdp),
        "uniform choice": eo.diffusion_time(mdp, options),
        "best probability": best.chance,
        "time with it": best.diffusion_time,
    }


def tabulate_results(results: Results) -> Data:
    """Diffusion times of all groups, and one row per maze or number of options."""
    swept = [row for _, row in results["dynamic_programming"]]
    chosen = [row for _, row in results["probabilities"]]
    return {
        "diffusion": stack_times(results["diffusion"]),
        "ties": stack_tables(results["ties"]),
        "bases": stack_times(results["bases"]),
        "readings": stack_times(results["readings"]),
        "authors": load_authors_table("diffusion"),
        "dynamic_programming": pd.DataFrame(swept),
        "probabilities": pd.DataFrame(chosen),
    }


def draw_figure(data: Data) -> Figure:
    """Diffusion time by number of eigenoptions, and of bottleneck options."""
    return _draw_graphs(data, width=8.8, columns=4)


def draw_narrow_figure(data: Data) -> Figure:
    """The same, two graphs in a row."""
    return _draw_graphs(data, width=4.6, columns=2)


def _draw_graphs(data: Data, *, width: float, columns: int) -> Figure:
    """The figure, with so many graphs in a row."""
    curves = _find_curves(data, "eigenoptions")
    figure, axes = make_graphs(len(curves) + 1, width, columns, ylabel="diffusion time")

    for ax, (domain, times) in zip(axes, curves.items(), strict=False):
        if domain == "open-room":
            bases = _tabulate_bases(data).drop("ours")
            draw_lines(ax, bases.columns, {}, thin={"other bases": bases})
        draw_lines(
            ax,
            range(len(times)),
            {"eigenoptions": times},
            baseline=times[0],
            title=domain,
            yscale="log",
        )

    times = _find_curves(data, "bottleneck")["four-rooms"]
    counts = range(len(times))
    draw_lines(
        axes[-1],
        counts,
        {"bottleneck options": times},
        baseline=times[0],
        ticks=counts,
        title="bottleneck options",
        ylim=(0, 1.1 * times.max()),
    )

    for ax in axes:
        ax.set_xlabel("options")
    return add_legend(figure, columns)


def write_headline(data: Data) -> tuple[str, str]:
    """The shortest diffusion time of the 4-room domain."""
    times = _find_curves(data, "eigenoptions")["four-rooms"]
    words = (
        "between two states of the 4-room domain with eigenoptions, "
        f"{times[0]:,.0f} without"
    )
    return f"{times.min():,.0f} steps", words


def write_notes(data: Data) -> Iterator[Block]:
    """What the uniform choice does, and what the basis of the open room does."""
    yield (
        '"The first options hurt" is a consequence of the uniform choice: taken '
        "rarely, the first few options already help. Diffusion times by the "
        "probability of an option (without e1):",
        data["probabilities"],
    )
    bases = _tabulate_bases(data)
    shown = [n for n in (0, 2, 3, 4, 6, 8, 16, 32, 64) if n in bases]
    yield (
        "Thin lines in the open room: other bases of its repeated eigenvalues, which "
        "are equally right: ours turned, that of the published program, and random "
        "ones. Diffusion time by basis and number of options:",
        bases[shown].reset_index(),
    )


@claim("first-options-hurt", "The first options added hurt exploration.")
def hurt_exploration_at_first(data: Data) -> Finding:
    curves = _find_curves(data, "eigenoptions")
    first = list(FIRST)
    worst = {domain: times[first].max() / times[0] for domain, times in curves.items()}

    def judge(times: FloatArray) -> bool:
        return bool((times[first] > times[0]).all())

    ties = _tabulate_ties(data)
    hurts = ties[first].gt(ties[0], axis=0).all(axis=1).groupby("domain", sort=False)
    peaks = ties[first].max(axis=1) / ties[0]
    ranges = peaks.groupby("domain", sort=False).agg(["min", "max"])
    return Finding(
        tests=[judge(times) for times in curves.values()],
        readings={**_judge_readings(data, judge), TIES: list(hurts.all())},
        measured=f"with {FIRST[0]} to {FIRST[2]} options the diffusion time is up to "
        f"{list_items('{1:,.0f} times ({0})', worst)} that of primitive actions",
        evidence="Each of these numbers of options must be above primitive actions, in "
        "each domain. In the I-Maze the fourth option ends the harm. How much they "
        "hurt depends on which of two equally good actions an option takes, and on "
        "which sign comes first: over all orders of actions and both of signs it is "
        f"{list_rows('{min:,.0f} to {max:,.0f} times ({domain})', ranges)}. It is a "
        "consequence of the uniform choice, see the analysis below Figure 6.",
    )


@claim(
    "enough-options-help",
    "When enough options are added, exploration is greatly improved when compared to a "
    "random walk using only primitive actions.",
)
def improve_exploration_greatly(data: Data) -> Finding:
    curves = _find_curves(data, "eigenoptions")
    least = {domain: times.min() / times[0] for domain, times in curves.items()}
    reached_with = [str(times.argmin()) for times in curves.values()]
    # Numbers of options from which a curve stays below its first value.
    below_from = [
        str(np.flatnonzero(times >= times[0])[-1] + 1) for times in curves.values()
    ]

    def judge(times: FloatArray, limit: float = GREATLY) -> bool:
        return bool(times.min() <= limit * times[0])

    def move(limit: float) -> list[bool]:
        return [judge(times, limit) for times in curves.values()]

    return Finding(
        tests=[judge(times) for times in curves.values()],
        readings={**_judge_readings(data, judge), **move_limit("GREATLY", move)},
        measured=list_items("{}: {:.2f} of the time without", least),
        evidence=f"'Greatly': to at most {GREATLY:.0%} of the time with primitive "
        "actions, in each domain. The least times are reached with "
        f"{', '.join(reached_with)} options, and the curves stay below primitive "
        f"actions from {', '.join(below_from)} on.",
    )


@claim(
    "bottlenecks-increase",
    "The diffusion time in the 4-room domain is increased when only bottleneck options "
    "are used.",
)
def increase_diffusion_time(data: Data) -> Finding:
    times = _find_curves(data, "bottleneck")["four-rooms"]
    longer = _find_curves(data, "bottleneck", "with_extra_step")["four-rooms"]
    theirs = data["authors"].diffusion_time.to_numpy()
    return Finding(
        tests=[times[-1] > times[0]],
        readings={
            EXTRA_STEP: [longer[-1] > longer[0]],
            BOTTLENECKS: [theirs[-1] > theirs[0]],
        },
        measured=f"{' → '.join(f'{time:,.0f}' for time in times)} steps with 0 to 4 "
        "bottleneck options",
        evidence="Judged with all four options of Appendix C; with one to three the "
        "time depends on the order of the rooms. With the authors' own files it is "
        f"{theirs[-1]:,.0f} steps.",
    )


@demonstration(
    "dynamic-programming",
    "In tabular domains, we can easily compute the diffusion time with dynamic "
    "programming: reward +1 per step, no discount, averaged over all goals.",
    section="Appendix B",
)
def compute_diffusion_time(data: Data) -> Finding:
    swept = data["dynamic_programming"]
    return Finding(
        tests=[
            *(abs(swept.swept - swept.solved) < 1e-3 * swept.solved),
            *(abs(swept.with_options - swept.proved) < 1e-6 * swept.proved),
        ],
        measured=f"{list_rows('{domain} {swept:,.2f}', swept)} steps, as by linear "
        "equations",
        evidence="Policy evaluation until no value changes must agree to a thousandth "
        "with the exact solution, which all other numbers use, and that one to a "
        f"millionth with the library's, whose accuracy is proved, with {FEW} options.",
    )


def _find_curves(
    data: Data, kind: str, column: str = "diffusion_time"
) -> dict[str, FloatArray]:
    """Diffusion times with 0, 1, 2, ... options, by domain."""
    diffusion = data["diffusion"][data["diffusion"].kind == kind]
    return {
        domain: curve[column].to_numpy()
        for domain, curve in diffusion.groupby("domain", sort=False)
    }


def _judge_readings(
    data: Data, judge: Callable[[FloatArray], bool]
) -> dict[str, list[bool]]:
    """The tests of each reading, one per domain, of curves that begin at 0 options."""
    longer = _find_curves(data, "eigenoptions", "with_extra_step")
    tests = {EXTRA_STEP: [judge(times) for times in longer.values()]}
    for reading, table in data["readings"].groupby("reading", sort=False):
        tests[reading] = [
            judge(curve.diffusion_time.to_numpy())
            for _, curve in table.groupby("domain", sort=False)
        ]
    return tests


def _tabulate_ties(data: Data) -> pd.DataFrame:
    """Diffusion times by order of actions and signs, and by number of options."""
    return data["ties"].pivot(
        index=["domain", "order", "first_sign"],
        columns="n_options",
        values="diffusion_time",
    )


def _tabulate_bases(data: Data) -> pd.DataFrame:
    """Diffusion times of the open room by basis and number of options."""
    bases = data["bases"]
    times = bases.pivot(index="basis", columns="n_options", values="diffusion_time")
    return times.loc[bases.basis.unique()]
