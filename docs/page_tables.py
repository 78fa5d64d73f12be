"""Tables of the pages, from stored runs; ``make numbers`` compares them.

Each function reads the file of one run and returns its table as Markdown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.stored import read_table  # noqa: E402
from reproduction.markdown import compare_tables, make_table  # noqa: E402
from studies.ogbench import tabulate_descents, tabulate_success  # noqa: E402

STUDIES = ROOT / "studies"

# Rows of the table of spaces: what they are called, and how their names begin.
SPACES = {
    "maps of rooms": ("rooms",),
    "perfect mazes": ("perfect 8x8", "perfect 14x14", "perfect 20x20"),
    "perfect maze": ("perfect 35x35",),
    "perfect maze, large": ("perfect 60x60",),
    "open maps": ("open",),
    "MiniGrid rooms": ("FourRooms", "MultiRoom"),
    "KeyCorridorS3R1": ("KeyCorridor",),
    "DoorKey-5x5": ("DoorKey-5x5",),
    "DoorKey-8x8": ("DoorKey-8x8",),
    "UnlockPickup": ("UnlockPickup",),
    "Taxi": ("Taxi",),
    "geometric graph": ("geometric",),
    "preferential graph": ("preferential",),
    "random tree": ("random tree",),
}


def tabulate_exploration() -> str:
    """Ratios to primitive actions by kind of space and number of options."""
    runs = pd.read_csv(STUDIES / "exploration.csv")
    rows = []
    for label, beginnings in SPACES.items():
        group = runs[runs.space.str.startswith(beginnings)]
        states = _describe_range(group.states, "{:,.0f}")
        n_spaces = group.space.nunique()
        name = f"{label} ({states})"
        if n_spaces > 1:
            name = f"{n_spaces} {name}"
        cells = [_describe_ratios(part) for _, part in group.groupby("options")]
        rows.append([name, *cells])
    counts = ["8 options", "16", "32", "64"]
    return make_table(["spaces (states)", *counts], rows)


def _describe_ratios(runs: pd.DataFrame) -> str:
    """The range of the ratios; "no" where options are not used."""
    if (runs.option_chance == 0).all():
        return "no"
    return _describe_range(runs.ratio, "{:.2f}")


def _describe_range(numbers: pd.Series, form: str) -> str:
    """The least and the largest number as text, or one if they are equal."""
    low = form.format(numbers.min())
    high = form.format(numbers.max())
    return low if low == high else f"{low}–{high}"


def _round(number: float) -> str:
    """Two digits, without an exponent."""
    return f"{float(f'{number:.2g}'):,g}"


def tabulate_vectors() -> str:
    """Options of cells and fitted options, by task: means and ranges of the logs."""
    runs = read_table("vector_options")
    rows = []
    for task, kinds in runs.groupby("task", sort=False):
        row = [str(task)]
        for kind in ("cells", "fitted"):
            logs = kinds[kinds.options == kind]
            n_used = int((logs.option_chance > 0).sum())
            seen = f"{logs.seen.mean():.2f} ({_describe_range(logs.seen, '{:.2f}')})"
            if n_used == 0:
                seen = "not used"
            elif n_used < len(logs):
                seen += f", used in {n_used} of {len(logs)}"
            row += [seen, str(logs.longest.max())]
        rows.append(row)
    head = ["task", "cells: seen", "longest", "fitted: seen", "longest"]
    return make_table(head, rows)


def tabulate_pixel_rooms() -> str:
    """Share of time in the second room, with and without options."""
    runs = read_table("pixel_rooms")
    rows = []
    for rooms, seeds in runs.groupby("rooms", sort=False):
        share = f"{seeds.options.mean():.0%}"
        shares = _describe_range(seeds.options, "{:.0%}")
        rows.append(
            [
                str(rooms),
                f"{seeds.plain.mean():.1%}",
                f"{share} ({shares})",
                f"{seeds.longest.max()} steps",
                f"{seeds.cpu_seconds.mean():.0f} CPU s",
            ]
        )
    head = ["rooms", "actions alone", "with options", "longest option", "discover"]
    return make_table(head, rows)


def tabulate_ratios() -> str:
    """Benchmarks that have a rival."""
    runs = read_table("ratios")
    rows = [
        [run.name, run.rival, _round(run.ratio)]
        for run in runs[runs.unit == "s"]
        .dropna(subset=["ratio"])
        .itertuples(index=False)
    ]
    return make_table(["what", "against", "ratio"], rows)


def tabulate_times() -> str:
    """Some benchmarks without a rival."""
    runs = read_table("ratios")
    runs = runs[runs.benchmark.isin(["first-call", "wrapper", "explore", "million"])]
    rows = []
    for run in runs.itertuples(index=False):
        time = f"{_round(run.ours)} {run.unit}"
        if not np.isnan(run.theirs):
            time += f" ({_round(run.theirs)} without)"
        rows.append([run.name, time])
    return make_table(["what", "time"], rows)


def tabulate_deep() -> str:
    """Mean cosines of learned eigenfunctions, ours and ALLO's."""
    runs = read_table("deep")
    jitter = runs[runs.kind == "jitter"]
    rows = [
        [
            "positions anywhere within a cell",
            _count_runs(jitter),
            _describe_cosines(jitter.ours),
            _describe_cosines(jitter.allo),
        ]
    ]

    exact = runs[runs.kind == "xy"]
    if not exact.empty:
        ours = _describe_cosines(exact.ours)
        published = "0.84 to 1.00 (published, 12 grids)"
        rows.append(
            ["positions that repeat exactly", _count_runs(exact), ours, published]
        )

    # The same grid, with ALLO trained until more time changes nothing.
    longer = read_table("allo")
    if not longer.empty:
        *_, limit = longer.itertuples()
        is_same = (jitter.grid == limit.grid) & (jitter.seed == limit.seed)
        (run,) = jitter[is_same].itertuples()
        rows.append(
            [
                f"within a cell, {limit.grid}, ALLO for {limit.seconds:.0f} CPU s",
                "1",
                f"{run.ours:.2f} ({run.cpu_seconds:.0f} CPU s)",
                f"{limit.cosine:.2f}",
            ]
        )
    return make_table(["observations", "grids x seeds", "this library", "ALLO"], rows)


def _count_runs(runs: pd.DataFrame) -> str:
    """How many grids there are, and the range of their numbers of seeds."""
    seeds = runs.groupby("grid").seed.nunique()
    return f"{len(seeds)} x {_describe_range(seeds, '{}')}"


def _describe_cosines(cosines: pd.Series) -> str:
    """The range and the median."""
    return f"{_describe_range(cosines, '{:.2f}')}, median {cosines.median():.2f}"


def tabulate_shaping() -> str:
    """First arrival and final success of each agent, by potential."""
    runs = pd.read_csv(STUDIES / "shaping.csv")
    potentials = ("log-z", "commute", "euclidean", "none")
    rows = []
    for key, group in runs.groupby(["task", "agent"], sort=False):
        # One column for both: a table of six is too wide for a telephone.
        row = [", ".join(key)]
        for potential in potentials:
            seeds = group[group.potential == potential]
            arrival = f"{seeds.first_arrival.mean():,.0f}"
            row.append(f"{seeds.success.mean():.0f}% ({arrival})")
        rows.append(row)
    return make_table(["task, agent", *potentials], rows)


def read_ogbench() -> pd.DataFrame:
    """Stored runs of the planner in OGBench."""
    return pd.read_csv(STUDIES / "ogbench.csv")


def tabulate_giant_descents() -> str:
    """Four potentials on the giant maze; on the teleport maze there is one."""
    runs = read_ogbench()
    return tabulate_descents(runs[runs.maze == "giant"])


def tabulate_hall() -> str:
    """Goals that the planner reaches in a hall, by data and thickness of walls."""
    runs = read_table("ratios")
    runs = runs[(runs.benchmark == "planner") & runs.name.str.contains("goals")]
    parts = runs.name.str.extract(r"walls (.*), ([\d,]+) steps, (.*): goals of (\d+)")
    runs = runs.assign(walls=parts[0], steps=parts[1], kind=parts[2], goals=parts[3])
    rows = []
    for key, row in runs.groupby(["steps", "kind"], sort=False):
        steps, kind = key
        data = f"{steps} steps"
        if kind == "one axis":
            data += " along one axis"
        reached = [f"{run.ours:.0f} of {run.goals}" for run in row.itertuples()]
        rows.append([data, *reached])
    return make_table(["data", *(f"walls {w}" for w in runs.walls.unique())], rows)


# Layouts of the test in studies/layouts.py, the same for all seeds.
N_LAYOUTS = 100


def tabulate_skills() -> str:
    """Returns of agents with skills in layouts never seen, and of random choice."""
    runs = pd.read_csv(STUDIES / "layouts.csv")
    rows = []
    for task, seeds in runs[runs.way == "skills"].groupby("task", sort=False):
        rows.append(
            [
                str(task),
                str(len(seeds)),
                _describe_returns(seeds),
                f"{seeds['return'].min():.3f}",
                f"{seeds.random_return.mean():.3f}",
                f"{seeds.random_return.max():.3f}",
                f"{seeds.frames_before.mean():,.0f}",
            ]
        )
    head = ["layouts", "seeds", "return", "worst seed", "random choice", "best seed"]
    return make_table([*head, "frames before training"], rows)


def tabulate_follow() -> str:
    """Returns of the way to what pays, without an agent."""
    runs = pd.read_csv(STUDIES / "layouts.csv")
    rows = []
    for task, seeds in runs[runs.way == "follow"].groupby("task", sort=False):
        row = [str(task), str(len(seeds)), _describe_returns(seeds)]
        rows.append([*row, f"{seeds['return'].min():.3f}"])
    return make_table(["layouts", "seeds", "return", "worst seed"], rows)


def _describe_returns(seeds: pd.DataFrame) -> str:
    """Mean return, and half of a 95% interval over seeds and layouts.

    All seeds are tested in the same layouts, so that these do not average out.
    """
    of_layouts = (seeds.deviation**2).mean() / N_LAYOUTS
    of_seeds = seeds["return"].var() / len(seeds) if len(seeds) > 1 else 0.0
    half = 1.96 * np.sqrt(of_layouts + of_seeds)
    return f"{seeds['return'].mean():.3f} ± {half:.3f}"


TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "choosing-results.md": {
        "exploration": tabulate_exploration,
        "vectors": tabulate_vectors,
    },
    "layouts.md": {
        "skills": tabulate_skills,
        "follow": tabulate_follow,
    },
    "pixels.md": {"pixel-rooms": tabulate_pixel_rooms},
    "benchmarks.md": {
        "ratios": tabulate_ratios,
        "times": tabulate_times,
        "deep": tabulate_deep,
    },
    "planner.md": {"hall": tabulate_hall},
    "planner-results.md": {
        "descents": tabulate_giant_descents,
        "ogbench": lambda: tabulate_success(read_ogbench()),
        "shaping": tabulate_shaping,
    },
}


def find_differences(write: bool = False) -> list[str]:
    """Return which tables are not as stored; with `write`, correct them."""
    differences = []
    for page, functions in TABLES.items():
        tables = {name: tabulate() for name, tabulate in functions.items()}
        differences += compare_tables(ROOT / "docs" / page, tables, write)
    return differences
