"""The automatic setting of exploration on 30 state spaces (docs/choosing-results.md).

``python -m studies exploration [--quick] [--walks 10]`` writes
``studies/exploration.csv`` and ``docs/images/exploration.svg``. Random walks with
the automatic setting are compared with walks of primitive actions: the mean time of the
first visits of each state, and up to 1,000 states the exact diffusion time.

``python -m studies exploration --laplacians`` writes
``studies/exploration_laplacians.csv``: the same with 32 options of each of two
Laplacians, on the spaces of at most 1,300 states.

The settings, the number of options and the Laplacian were chosen on other maps: rooms
3x3, 6x6, 7x7 (of 6 cells), 2x2 (of 15), perfect mazes of 12 and 25, open maps,
MiniGrid's MultiRoom-N4-S5, KeyCorridorS3R2, DoorKey-6x6, FourRooms and Unlock (seed 1),
FrozenLake8x8, CliffWalking, and four random graphs (seed 1). When another Laplacian is
taken, and how many walks decide, was fixed on maps of the same kinds as these, with
other seeds; the open maps and Taxi have none.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import eigenoptions as eo
from eigenoptions import MDP, OptionSet
from eigenoptions._types import FloatArray
from eigenoptions.envs import MazeEnv
from eigenoptions.mdp.chains import continue_after_end, find_recurrent_states
from eigenoptions.mdp.mazes import open_map, perfect_map, rooms_map
from eigenoptions.options.tuning import measure_first_visits, tune_exploration
from eigenoptions.options.walks import make_tables, stack_policies

FOLDER = Path(__file__).parent
FIGURE = FOLDER.parent / "docs" / "images" / "exploration.svg"


def make_maze(draw_map: Callable[..., str], *size: int, **settings: Any) -> MDP:
    """The maze of a generated map."""
    return eo.maze(draw_map(*size, **settings))


def make_minigrid(name: str) -> MDP:
    """The table of a MiniGrid environment."""
    return eo.from_env(f"minigrid:MiniGrid-{name}-v0", seed=15)


def make_graph(draw_graph: Callable[..., Any], *settings: Any) -> MDP:
    """The largest part of a random graph of networkx."""
    graph = draw_graph(*settings, seed=111)
    largest = max(nx.connected_components(graph), key=len)
    part = graph.subgraph(largest)
    return eo.from_graph(nx.convert_node_labels_to_integers(part))


MAPS: dict[str, Callable[[], MDP]] = {
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
    "perfect 8x8": partial(make_maze, perfect_map, 8, 8, rng=121),
    "perfect 14x14": partial(make_maze, perfect_map, 14, 14, rng=122),
    "perfect 20x20": partial(make_maze, perfect_map, 20, 20, rng=123),
    "perfect 35x35": partial(make_maze, perfect_map, 35, 35, rng=124),
    "perfect 60x60": partial(make_maze, perfect_map, 60, 60, rng=125),
    "open 12x12": partial(make_maze, open_map, 12, 12),
    "open 8x60": partial(make_maze, open_map, 8, 60),
    "open 50x50": partial(make_maze, open_map, 50, 50),
    "FourRooms": partial(make_minigrid, "FourRooms"),
    "MultiRoom-N2": partial(make_minigrid, "MultiRoom-N2-S4"),
    "MultiRoom-N6": partial(make_minigrid, "MultiRoom-N6"),
    "KeyCorridorS3R1": partial(make_minigrid, "KeyCorridorS3R1"),
    "DoorKey-5x5": partial(make_minigrid, "DoorKey-5x5"),
    "DoorKey-8x8": partial(make_minigrid, "DoorKey-8x8"),
    "UnlockPickup": partial(make_minigrid, "UnlockPickup"),
    "Taxi": partial(eo.from_env, "Taxi-v4"),
    "geometric graph": partial(make_graph, nx.random_geometric_graph, 800, 0.06),
    "preferential graph": partial(make_graph, nx.barabasi_albert_graph, 600, 2),
    "random tree": partial(make_graph, nx.random_labeled_tree, 500),
}


def main(arguments: Sequence[str]) -> None:
    """Measure all maps, and write the table and the figure."""
    options = make_parser().parse_args(arguments)
    names = list(MAPS)
    n_walks = options.walks
    if options.quick:
        names = ["rooms 2x3", "perfect 8x8", "DoorKey-5x5"]
        n_walks = 4

    measure = measure_map
    out = FOLDER / "exploration.csv"
    if options.laplacians:
        measure = compare_laplacians
        out = FOLDER / "exploration_laplacians.csv"

    rows: list[dict[str, Any]] = []
    for name in names:
        measured = measure(name, n_walks)
        if not measured:
            continue
        rows += measured
        table = pd.DataFrame(rows).round(4)
        table.to_csv(options.out or out, index=False)
        print(table[table.space == name].to_string(index=False), flush=True)
    if not options.quick and not options.laplacians:
        draw_ratios(table).savefig(FIGURE)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command."""
    parser = argparse.ArgumentParser(
        "python -m studies exploration", description=__doc__
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
        "--laplacians", action="store_true", help="compare two Laplacians"
    )
    parser.add_argument("--out", type=Path, help="table of the results")
    return parser


def measure_map(name: str, n_walks: int) -> list[dict[str, Any]]:
    """Compare the automatic setting with primitive actions on one map.

    There is one row for each of 8, 16, 32 and 64 options.
    """
    mdp = MAPS[name]()
    primitive = measure_walks(mdp, None, n_walks)
    return [
        measure_options(name, mdp, primitive, n_options)
        for n_options in (8, 16, 32, 64)
    ]


def compare_laplacians(
    name: str, n_walks: int, n_options: int = 32, max_states: int = 1_300
) -> list[dict[str, Any]]:
    """Compare options of two Laplacians on one map; nothing if it is too large."""
    mdp = MAPS[name]()
    if mdp.n_states > max_states:
        return []
    primitive = measure_walks(mdp, None, n_walks)
    return [
        measure_options(name, mdp, primitive, n_options, operator=operator)
        for operator in ("normalized", "random-walk")
    ]


def measure_options(
    name: str, mdp: MDP, primitive: FloatArray, n_options: int, **settings: Any
) -> dict[str, Any]:
    """Compare options with primitive actions: one row.

    Parameters
    ----------
    name : str
        Name of the map.
    mdp : MDP
        The map.
    primitive : array, shape (n_walks,)
        Times of walks of primitive actions.
    n_options : int
        How many options are discovered.
    settings
        Further arguments of `discover`.
    """
    # As an agent's user has them: options of an environment.
    start = time.process_time()
    options = eo.discover(MazeEnv(mdp), n_options, **settings)
    assert isinstance(options, OptionSet)
    found_at = time.process_time()
    tuned = tune_exploration(mdp, options)
    tuned_at = time.process_time()

    # None belongs to a choice without tuning.
    assert tuned.option_chance is not None
    chances = (tuned.option_chance, tuned.stop_chance)
    return {
        "space": name,
        "states": mdp.n_states,
        "operator": options.provenance.get("operator", "normalized"),
        "options": n_options,
        "primitive": primitive.mean(),
        "option_chance": tuned.option_chance,
        "stop_chance": tuned.stop_chance,
        **compare_with_primitive(mdp, options, chances, primitive),
        "discovery": found_at - start,
        "tuning": tuned_at - found_at,
    }


def compare_with_primitive(
    mdp: MDP, options: OptionSet, chances: tuple[float, float], primitive: FloatArray
) -> dict[str, float]:
    """Times with options relative to primitive actions.

    ``ratio`` is that of the mean time of first visits, ``error`` two standard errors of
    it, and ``exact`` that of the diffusion time; NaN where that cannot be computed.
    """
    option_chance, stop_chance = chances
    is_recurrent = find_recurrent_states(mdp).all()
    has_exact = mdp.n_states <= 1000 and mdp.goal is None and bool(is_recurrent)
    if option_chance == 0:
        # Options are not used.
        return {"ratio": 1.0, "error": 0.0, "exact": 1.0 if has_exact else np.nan}

    limit = int(40 * primitive.mean())
    times = measure_walks(mdp, options, len(primitive), chances, limit)
    ratio = times.mean() / primitive.mean()
    # The standard error of a quotient of two means.
    error = ratio * np.hypot(_estimate_error(times), _estimate_error(primitive))

    exact = np.nan
    if has_exact:
        with_options = eo.diffusion_time(
            mdp, options, option_chance=option_chance, stop_chance=stop_chance
        )
        exact = with_options / eo.diffusion_time(mdp)
    return {"ratio": ratio, "error": 2 * error, "exact": exact}


def measure_walks(
    mdp: MDP,
    options: OptionSet | None,
    n_walks: int,
    chances: tuple[float, float] = (0.0, 0.0),
    limit: int = 2**62,
) -> FloatArray:
    """``(n_walks,)`` mean times of the first visits of all states.

    Parameters
    ----------
    mdp : MDP
        The map; where an episode ends, the walk continues at the start.
    options : OptionSet or None
        Its options.
    n_walks : int
        How many walks.
    chances : tuple of float, default=(0.0, 0.0)
        Probabilities of an option, and that an option stops.
    limit : int, default=2**62
        Steps of a walk, at most.
    """
    endless = continue_after_end(mdp)
    targets = find_recurrent_states(endless)
    tables = make_tables(endless, stack_policies(mdp, options), *chances)
    times = []
    for number in range(n_walks):
        # A seed that `tune_exploration` does not use.
        seed = [1000, number]
        mean_time, _ = measure_first_visits(tables, targets, limit, seed)
        times.append(mean_time)
    return np.array(times)


def _estimate_error(times: FloatArray) -> float:
    """The standard error of the mean, relative to it."""
    error: float = times.std(ddof=1) / times.mean() / len(times) ** 0.5
    return error


def draw_ratios(table: pd.DataFrame) -> Figure:
    """A point per map and number of options; left of 1 options help."""
    figure, ax = plt.subplots(figsize=(6.5, 6), layout="constrained")
    sizes = table.groupby("space", sort=False).states.first()
    heights = dict(zip(sizes.index, range(len(sizes), 0, -1), strict=True))
    for (n_options, part), marker in zip(table.groupby("options"), "o^sD", strict=True):
        ax.errorbar(
            part.ratio,
            part.space.map(heights),
            xerr=part.error,
            fmt=marker,
            ms=4,
            lw=0.7,
            label=f"{n_options} options",
        )
    ax.axvline(1.0, color="grey", lw=0.8)
    names = [f"{name} ({n_states:,})" for name, n_states in sizes.items()]
    ax.set_yticks(list(heights.values()), names, fontsize=7)
    ax.set(
        xlabel="mean time of first visits, relative to primitive actions", xlim=(0, 1.1)
    )
    ax.legend(loc=(0.66, 0.8), fontsize=7)
    return figure
