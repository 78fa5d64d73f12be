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
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd

import eigenoptions as eo
from eigenoptions.envs import MazeEnv
from eigenoptions.mdp.maps import open_map, perfect_map, rooms_map
from eigenoptions.options.exploration import find_recurrent_states, mean_first_visit, tune_exploration
from eigenoptions.options.walks import continue_after_end, make_tables, stack_policies

FOLDER = Path(__file__).parent
FIGURE = FOLDER.parent / "docs" / "images" / "exploration.svg"


def make_rooms(rows: int, cols: int, size: int, seed: int, centred: bool = False) -> Callable[[], eo.MDP]:
    return lambda: eo.maze(rooms_map(rows, cols, size, centred=centred, rng=seed))


def make_minigrid(name: str, seed: int) -> Callable[[], eo.MDP]:
    return lambda: eo.from_env(f"minigrid:MiniGrid-{name}", seed=seed)


def make_graph(make: Callable[..., Any], *arguments: Any) -> Callable[[], eo.MDP]:
    def make_mdp() -> eo.MDP:
        whole = make(*arguments, seed=111)
        largest = whole.subgraph(max(nx.connected_components(whole), key=len))
        return eo.from_graph(nx.convert_node_labels_to_integers(largest))

    return make_mdp


MAPS: dict[str, Callable[[], eo.MDP]] = {
    "rooms 2x3": make_rooms(2, 3, 10, 111),
    "rooms 3x3 centred": make_rooms(3, 3, 9, 112, centred=True),
    "rooms 3x4": make_rooms(3, 4, 10, 113),
    "rooms 4x4": make_rooms(4, 4, 10, 114),
    "rooms 4x4 of 16": make_rooms(4, 4, 16, 115),
    "rooms 6x6 of 5": make_rooms(6, 6, 5, 116),
    "rooms 5x5": make_rooms(5, 5, 10, 117),
    "rooms 12x5": make_rooms(12, 5, 10, 118),
    "rooms 12x12 of 6": make_rooms(12, 12, 6, 119),
    "rooms 10x10": make_rooms(10, 10, 10, 120),
    "rooms 17x17": make_rooms(17, 17, 10, 121),
    "perfect 8x8": lambda: eo.maze(perfect_map(8, 8, rng=121)),
    "perfect 14x14": lambda: eo.maze(perfect_map(14, 14, rng=122)),
    "perfect 20x20": lambda: eo.maze(perfect_map(20, 20, rng=123)),
    "perfect 35x35": lambda: eo.maze(perfect_map(35, 35, rng=124)),
    "perfect 60x60": lambda: eo.maze(perfect_map(60, 60, rng=125)),
    "open 12x12": lambda: eo.maze(open_map(12, 12)),
    "open 8x60": lambda: eo.maze(open_map(8, 60)),
    "open 50x50": lambda: eo.maze(open_map(50, 50)),
    "FourRooms": make_minigrid("FourRooms-v0", 15),
    "MultiRoom-N2": make_minigrid("MultiRoom-N2-S4-v0", 15),
    "MultiRoom-N6": make_minigrid("MultiRoom-N6-v0", 15),
    "KeyCorridorS3R1": make_minigrid("KeyCorridorS3R1-v0", 15),
    "DoorKey-5x5": make_minigrid("DoorKey-5x5-v0", 15),
    "DoorKey-8x8": make_minigrid("DoorKey-8x8-v0", 15),
    "UnlockPickup": make_minigrid("UnlockPickup-v0", 15),
    "Taxi": lambda: eo.from_env("Taxi-v4"),
    "geometric graph": make_graph(nx.random_geometric_graph, 800, 0.06),
    "preferential graph": make_graph(nx.barabasi_albert_graph, 600, 2),
    "random tree": make_graph(nx.random_labeled_tree, 500),
}


def main(arguments: Sequence[str]) -> None:
    """Measure all maps, and write the table and the figure."""
    parser = argparse.ArgumentParser("python -m reproduction exploration", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three small maps and few walks")
    parser.add_argument("--walks", type=int, default=10, help="walks with and without options on each map")
    parser.add_argument("--out", type=Path, default=FOLDER / "exploration.csv", help="table of the results")
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
    has_exact = mdp.n_states <= 1000 and mdp.goal is None and bool(find_recurrent_states(mdp).all())

    def first_visits(options: eo.OptionSet | None, chances: tuple[float, float], limit: float) -> Any:
        tables = make_tables(endless, stack_policies(mdp, options), *chances)
        # A seed that `tune_exploration` does not use.
        return np.array([mean_first_visit(tables, targets, int(limit), [1000, i])[0] for i in range(n_walks)])

    primitive = first_visits(None, (0.0, 0.0), 2**62)
    rows = []
    for n_options in (8, 16, 32, 64):
        start = time.process_time()
        # As an agent's user has them: options of an environment.
        options: Any = eo.discover(MazeEnv(mdp), n_options)
        found_at = time.process_time()
        found = tune_exploration(mdp, options)
        seconds = {"discovery": found_at - start, "tuning": time.process_time() - found_at}
        chances = found.option_chance, found.stop_chance
        ratio, error, exact = 1.0, 0.0, 1.0 if has_exact else np.nan
        if found.option_chance > 0:
            times = first_visits(options, chances, 40 * primitive.mean())
            ratio = times.mean() / primitive.mean()
            # Two standard errors of the quotient of two means.
            spread = [part.std(ddof=1) / part.mean() / len(part) ** 0.5 for part in (times, primitive)]
            error = 2 * ratio * float(np.hypot(*spread))
            if has_exact:
                exact = eo.diffusion_time(mdp, options, option_chance=chances[0], stop_chance=chances[1])
                exact /= eo.diffusion_time(mdp)
        operator = options.provenance.get("operator", "normalized")
        row = {"space": name, "states": mdp.n_states, "operator": operator, "options": n_options}
        row |= {"primitive": primitive.mean(), "option_chance": chances[0], "stop_chance": chances[1]}
        rows.append({**row, "ratio": ratio, "error": error, "exact": exact, **seconds})
    return rows


def draw_ratios(table: pd.DataFrame) -> Any:
    """A point per map and number of options; left of 1 options help."""
    figure, ax = plt.subplots(figsize=(6.5, 6), layout="constrained")
    sizes = table.groupby("space", sort=False).states.first()
    heights = dict(zip(sizes.index, range(len(sizes), 0, -1), strict=True))
    for (n_options, part), marker in zip(table.groupby("options"), "o^sD", strict=True):
        points: Any = {"xerr": part.error, "fmt": marker, "ms": 4, "lw": 0.7, "label": f"{n_options} options"}
        ax.errorbar(part.ratio, part.space.map(heights), **points)
    ax.axvline(1.0, color="grey", lw=0.8)
    ax.set_yticks(list(heights.values()), [f"{name} ({n:,})" for name, n in sizes.items()], fontsize=7)
    ax.set(xlabel="mean time of first visits, relative to primitive actions", xlim=(0, 1.1))
    ax.legend(loc=(0.66, 0.8), fontsize=7)
    return figure
