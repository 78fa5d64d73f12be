"""The automatic setting of exploration, measured on 30 state spaces (docs/choosing.md).

``python -m reproduction exploration [--quick] [--walks 10]`` writes ``reproduction/exploration.csv`` and
``docs/images/exploration.svg``. Random walks with the automatic setting are compared with walks of primitive actions:
the mean time of the first visits of each state, and up to 1,000 states the exact diffusion time.

The settings, the number of options and the Laplacian were chosen on other maps: rooms 3x3, 6x6, 7x7 (of 6 cells), 2x2
(of 15), perfect mazes of 12 and 25, open maps, MiniGrid's MultiRoom-N4-S5, KeyCorridorS3R2, DoorKey-6x6, FourRooms and
Unlock (seed 1), FrozenLake8x8, CliffWalking, and four random graphs (seed 1). When another Laplacian is taken, and how
many walks decide, was fixed on maps of the same kinds as these, with other seeds; the open maps and Taxi have none.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd

import eigenoptions as eo
from eigenoptions.envs import MazeEnv
from eigenoptions.mdp.chains import continue_after_end, find_recurrent_states
from eigenoptions.mdp.mazes import open_map, perfect_map, rooms_map
from eigenoptions.options.tuning import measure_first_visits, tune_exploration
from eigenoptions.options.walks import make_tables, stack_policies

FOLDER = Path(__file__).parent
FIGURE = FOLDER.parent / "docs" / "images" / "exploration.svg"


def make_maze(draw: Callable[..., str], *size: int, **settings: Any) -> eo.MDP:
    return eo.maze(draw(*size, **settings))


def make_minigrid(name: str) -> eo.MDP:
    return eo.from_env(f"minigrid:MiniGrid-{name}-v0", seed=15)


def make_graph(make: Callable[..., Any], *arguments: Any) -> eo.MDP:
    whole = make(*arguments, seed=111)
    largest = whole.subgraph(max(nx.connected_components(whole), key=len))
    return eo.from_graph(nx.convert_node_labels_to_integers(largest))


# Sizes of perfect mazes, and their seeds.
PERFECT = {8: 121, 14: 122, 20: 123, 35: 124, 60: 125}
MAPS: dict[str, Callable[[], eo.MDP]] = {
    "rooms 2x3": partial(make_maze, rooms_map, 2, 3, 10, rng=111),
    "rooms 3x3 centred": partial(make_maze, rooms_map, 3, 3, 9, rng=112, centred=True),
    "rooms 3x4": partial(make_maze, rooms_map, 3, 4, 10, rng=113),
    "rooms 4x4": partial(make_maze, rooms_map, 4, 4, 10, rng=114),
    "rooms 4x4 of 16": partial(make_maze, rooms_map, 4, 4, 16, rng=115),
    "rooms 6x6 of 5": partial(make_maze, rooms_map, 6, 6, 5, rng=116),
    "rooms 5x5": partial(make_maze, rooms_map, 5, 5, 10, rng=117),
    "rooms 12x5": partial(make_maze, rooms_map, 12, 5, 10, rng=118),
    "rooms 12x12 of 6": partial(make_maze, rooms_map, 12, 12, 6, rng=119),
    "rooms 10x10": partial(make_maze, rooms_map, 10, 10, 10, rng=120),
    "rooms 17x17": partial(make_maze, rooms_map, 17, 17, 10, rng=121),
    **{
        f"perfect {n}x{n}": partial(make_maze, perfect_map, n, n, rng=seed)
        for n, seed in PERFECT.items()
    },
    **{
        f"open {m}x{n}": partial(make_maze, open_map, m, n)
        for m, n in ((12, 12), (8, 60), (50, 50))
    },
    "FourRooms": partial(make_minigrid, "FourRooms"),
    "MultiRoom-N2": partial(make_minigrid, "MultiRoom-N2-S4"),
    **{
        name: partial(make_minigrid, name)
        for name in ("MultiRoom-N6", "KeyCorridorS3R1")
    },
    **{
        name: partial(make_minigrid, name)
        for name in ("DoorKey-5x5", "DoorKey-8x8", "UnlockPickup")
    },
    "Taxi": partial(eo.from_env, "Taxi-v4"),
    "geometric graph": partial(make_graph, nx.random_geometric_graph, 800, 0.06),
    "preferential graph": partial(make_graph, nx.barabasi_albert_graph, 600, 2),
    "random tree": partial(make_graph, nx.random_labeled_tree, 500),
}


def main(arguments: Sequence[str]) -> None:
    """Measure all maps, and write the table and the figure."""
    parser = argparse.ArgumentParser(
        "python -m reproduction exploration", description=__doc__
    )
    parser.add_argument(
        "--quick", action="store_true", help="three small maps and few walks"
    )
    parser.add_argument(
        "--walks",
        type=int,
        default=10,
        help="walks with and without options on each map",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=FOLDER / "exploration.csv",
        help="table of the results",
    )
    options = parser.parse_args(arguments)
    names = ["rooms 2x3", "perfect 8x8", "DoorKey-5x5"] if options.quick else list(MAPS)
    rows: list[dict[str, Any]] = []
    for name in names:
        rows += measure(name, 4 if options.quick else options.walks)
        table = pd.DataFrame(rows).round(4)
        table.to_csv(options.out, index=False)
        print(table[table.space == name].to_string(index=False), flush=True)
    if not options.quick:
        draw_ratios(table).savefig(FIGURE)


def measure(name: str, n_walks: int) -> list[dict[str, Any]]:
    """Ratios of one map to primitive actions with 8, 16, 32 and 64 options at the automatic setting."""
    mdp = MAPS[name]()
    endless = continue_after_end(mdp)
    targets = find_recurrent_states(endless)
    has_exact = (
        mdp.n_states <= 1000
        and mdp.goal is None
        and bool(find_recurrent_states(mdp).all())
    )

    def first_visits(
        options: eo.OptionSet | None, chances: tuple[float, float], limit: float
    ) -> Any:
        tables = make_tables(endless, stack_policies(mdp, options), *chances)
        # A seed that `tune_exploration` does not use.
        return np.array(
            [
                measure_first_visits(tables, targets, int(limit), [1000, i])[0]
                for i in range(n_walks)
            ]
        )

    primitive = first_visits(None, (0.0, 0.0), 2**62)
    rows = []
    for n_options in (8, 16, 32, 64):
        start = time.process_time()
        # As an agent's user has them: options of an environment.
        options: Any = eo.discover(MazeEnv(mdp), n_options)
        found_at = time.process_time()
        found = tune_exploration(mdp, options)
        seconds = {
            "discovery": found_at - start,
            "tuning": time.process_time() - found_at,
        }
        chances = found.option_chance, found.stop_chance
        ratio, error, exact = 1.0, 0.0, 1.0 if has_exact else np.nan
        if found.option_chance > 0:
            times = first_visits(options, chances, 40 * primitive.mean())
            ratio = times.mean() / primitive.mean()
            # Two standard errors of the quotient of two means.
            spread = [
                part.std(ddof=1) / part.mean() / len(part) ** 0.5
                for part in (times, primitive)
            ]
            error = 2 * ratio * float(np.hypot(*spread))
            if has_exact:
                exact = eo.diffusion_time(
                    mdp, options, option_chance=chances[0], stop_chance=chances[1]
                )
                exact /= eo.diffusion_time(mdp)
        operator = options.provenance.get("operator", "normalized")
        row = {
            "space": name,
            "states": mdp.n_states,
            "operator": operator,
            "options": n_options,
        }
        row |= {
            "primitive": primitive.mean(),
            "option_chance": chances[0],
            "stop_chance": chances[1],
        }
        rows.append({**row, "ratio": ratio, "error": error, "exact": exact, **seconds})
    return rows


def draw_ratios(table: pd.DataFrame) -> Any:
    """A point per map and number of options; left of 1 options help."""
    figure, ax = plt.subplots(figsize=(6.5, 6), layout="constrained")
    sizes = table.groupby("space", sort=False).states.first()
    heights = dict(zip(sizes.index, range(len(sizes), 0, -1), strict=True))
    for (n_options, part), marker in zip(table.groupby("options"), "o^sD", strict=True):
        points: Any = {
            "xerr": part.error,
            "fmt": marker,
            "ms": 4,
            "lw": 0.7,
            "label": f"{n_options} options",
        }
        ax.errorbar(part.ratio, part.space.map(heights), **points)
    ax.axvline(1.0, color="grey", lw=0.8)
    ax.set_yticks(
        list(heights.values()),
        [f"{name} ({n:,})" for name, n in sizes.items()],
        fontsize=7,
    )
    ax.set(
        xlabel="mean time of first visits, relative to primitive actions", xlim=(0, 1.1)
    )
    ax.legend(loc=(0.66, 0.8), fontsize=7)
    return figure
