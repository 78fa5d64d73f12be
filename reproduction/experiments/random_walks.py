"""Section 4.2: random walks with options.

The text says how options change a random walk, without a figure. This one shows where
walkers spend their time.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path
from scipy.stats import spearmanr

import eigenoptions as eo
from eigenoptions import MDP, OptionSet
from eigenoptions._types import FloatArray
from eigenoptions.discovery.methods.bottleneck import find_rooms
from eigenoptions.options.walks import walk
from eigenoptions.plots import draw_values
from reproduction.claims import Finding, claim, list_items, list_rows
from reproduction.drawing import make_maps
from reproduction.lab import Data, Job, Jobs, Results
from reproduction.readings import LAXER, STRICTER
from reproduction.runs.options import MAZES, limit_counts, make_options
from reproduction.statistics import compare_means
from reproduction.thresholds import FEW, SKEWED, STRONG, UNLIKELY

SECTION = "4.2"
ORDER = 75
QUICK = {
    "mazes": ["i-maze", "four-rooms"],
    "options": [0, 2, 8, 16],
    "walkers": 30,
    "steps": 1500,
}
CAPTION = "Bright: where a walk spends most of its time."

# Kinds of choices that a walk has.
PRIMITIVE = "primitive actions"
BOTTLENECK = "bottleneck options"
EIGEN = "eigenoptions"

# Steps from a doorway from which on a cell is inside a room.
INSIDE = 3

# The state of each walker (rows) at each step.
Paths = NDArray[np.int64]


def list_jobs(
    *,
    mazes: Sequence[str] = MAZES,
    options: Sequence[int] = (0, 2, 4, 8, 16, 32, 64),
    walkers: int = 400,
    steps: int = 6000,
    short: int = 100,
    seed: int = 2017,
) -> Jobs:
    """Walks from random states with each number of options.

    In the 4-room domain walkers also have bottleneck options. `short` are the steps in
    which the distance from the start is measured.
    """
    agents: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for maze in mazes:
        for n in limit_counts(maze, options):
            kind = EIGEN if n else PRIMITIVE
            columns = {"domain": maze, "kind": kind, "n_options": n}
            agents.append(({"n": n}, columns))
        if maze == "four-rooms":
            columns = {"domain": maze, "kind": BOTTLENECK, "n_options": 4}
            agents.append(({"method": "bottleneck"}, columns))

    jobs = []
    for number, (settings, columns) in enumerate(agents):
        arguments = {
            "maze": columns["domain"],
            "options": settings,
            "walkers": walkers,
            "steps": steps,
            "short": short,
            "seed": (seed, number),
        }
        jobs.append(Job(measure_walks, arguments, {**columns, "within": short}))
    return {"walks": jobs}


def measure_walks(
    *,
    maze: str,
    options: Mapping[str, Any],
    walkers: int,
    steps: int,
    short: int,
    seed: Sequence[int],
) -> Data:
    """What walkers do: where they spend their time, how far and how soon they go.

    ``sets`` has one row for all walks, ``walks`` one per walk, ``time`` one per state.
    """
    mdp = eo.maze(maze)
    found = make_options(mdp, **options)
    paths = walk_from_random_states(mdp, found, walkers, steps, seed)
    distances = shortest_path(eo.graph(mdp), unweighted=True)
    first_visit = find_first_visits(paths, mdp.n_states)
    is_seen_soon = first_visit <= 1000

    # Share of the time in each state, and how many states that is in effect.
    time = np.bincount(paths.ravel(), minlength=mdp.n_states) / paths.size
    visited = time[time > 0]
    entropy = -(visited * np.log(visited)).sum()
    to_corners = eo.hitting_times(mdp, found)[:, find_corners(mdp)]

    row = {
        "diffusion_time": eo.diffusion_time(mdp, found),
        "effective_states": np.exp(entropy) / mdp.n_states,
        "seen_in_1000": is_seen_soon.mean(),
        **measure_rooms(mdp, paths, time, distances),
        "steps_to_corners": to_corners.sum() / (4 * (mdp.n_states - 1)),
    }
    starts = paths[:, :1]
    walks = {
        "farthest": distances[starts, paths[:, : short + 1]].max(axis=1),
        "steps_to_all": first_visit.max(axis=1),
        "seen_in_1000": is_seen_soon.mean(axis=1),
    }
    return {
        "sets": pd.DataFrame([row]),
        "walks": pd.DataFrame(walks),
        "time": pd.DataFrame({"share": time}),
    }


def walk_from_random_states(
    mdp: MDP,
    options: OptionSet | None,
    n_walkers: int,
    n_steps: int,
    seed: Sequence[int],
) -> Paths:
    """Random walks over actions and options, which do not end at the goal."""
    rng = np.random.default_rng(seed)
    paths = np.empty((n_walkers, n_steps + 1), dtype=np.int64)
    paths[:, 0] = rng.integers(mdp.n_states, size=n_walkers)

    endless = MDP(mdp.transition)
    for path in paths:
        steps = walk(endless, n_steps, options, begin=int(path[0]), rng=rng)
        path[1:] = steps.next_obs
    return paths


def find_first_visits(paths: Paths, n_states: int) -> FloatArray:
    """``(walkers, S)`` the step of the first visit; infinite if there is none."""
    n_walkers, n_times = paths.shape
    first_visit = np.full((n_walkers, n_states), np.inf)
    # From the last step to the first: the first visit is written last.
    for step in reversed(range(n_times)):
        first_visit[np.arange(n_walkers), paths[:, step]] = step
    return first_visit


def find_corners(mdp: MDP) -> list[int]:
    """The states nearest to the four corners of a maze."""
    cells = np.asarray(mdp.coords)
    directions = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    return [int(np.argmin(cells @ direction)) for direction in directions]


def measure_rooms(
    mdp: MDP, paths: Paths, time: FloatArray, distances: FloatArray
) -> dict[str, float]:
    """How often walkers change the room, and how much of their time is inside one."""
    room, doorways = find_rooms(mdp)
    n_changes = 0
    for path in paths:
        rooms = room[path]
        in_rooms = rooms[rooms >= 0]
        n_changes += int(np.count_nonzero(np.diff(in_rooms)))

    time_inside = np.nan
    if len(doorways):
        is_inside = distances[:, doorways].min(axis=1) >= INSIDE
        time_inside = time[is_inside].sum()

    n_walkers, n_times = paths.shape
    n_steps = n_walkers * (n_times - 1)
    return {
        "room_changes_per_1000": 1000 * n_changes / n_steps,
        "time_inside": time_inside,
    }


def tabulate_results(results: Results) -> Data:
    """The tables of all walks."""
    return {
        name: pd.concat(
            [tables[name].assign(**columns) for columns, tables in results["walks"]]
        )
        for name in ("sets", "walks", "time")
    }


def draw_figure(data: Data) -> Figure:
    """Where walkers of the 4-room domain spend their time."""
    time = data["time"][data["time"].domain == "four-rooms"]
    shown = [
        (PRIMITIVE, 0),
        (BOTTLENECK, 4),
        (EIGEN, FEW),
        (EIGEN, time.n_options.max()),
    ]
    figure, axes = make_maps(len(shown))
    for ax, (kind, n) in zip(axes, shown, strict=True):
        share = time[(time.kind == kind) & (time.n_options == n)].share
        relative = share * len(share)
        is_last = ax is axes[-1]
        draw_values(
            ax,
            eo.maze("four-rooms"),
            np.log10(np.maximum(relative, 1e-2)),
            signed=False,
            limits=(-2.0, 1.0),
            colorbar="time, powers of 10 of the mean" if is_last else None,
        )
        ax.set_title(f"{n} {kind}" if n else kind)
    return figure


# Eigenoptions


@claim(
    "larger-distances",
    "Agents performing a random walk, when equipped with options, are expected to "
    "cover larger distances in the state space.",
)
def cover_larger_distances(data: Data) -> Finding:
    walks = data["walks"]
    gains = _compare_with_primitive_actions(walks, "farthest")
    return Finding(
        tests=[gain.above(margin=1.0) for gain in gains],
        measured=f"farthest from the start in {walks.within.iloc[0]} steps, more than "
        f"with primitive actions: {list_items('{} {.mean:+.1f} steps', gains)}",
        evidence="Mean over random starts with the largest number of eigenoptions "
        "tried; one step is what matters. Intervals: "
        f"{'; '.join(str(gain) for gain in gains)}.",
    )


@claim(
    "small-portion",
    "Options that operate at different time scales decrease the likelihood the agent "
    "will explore only a small portion of the state space.",
    section="1",
)
def explore_more_than_a_small_portion(data: Data) -> Finding:
    gains = _compare_with_primitive_actions(data["walks"], "seen_in_1000")
    return Finding(
        tests=[gain.better for gain in gains],
        measured="share of the states seen in 1,000 steps, more than with primitive "
        f"actions: {list_items('{} {}', gains)}",
        evidence="Mean over random starts with the largest number of eigenoptions "
        "tried.",
    )


@claim(
    "diffusion-implies-coverage",
    "A small expected number of steps implies that it is more likely that the agent "
    "will reach all states with a random walk.",
)
def imply_coverage(data: Data) -> Finding:
    sets = _select_eigenoptions(data["sets"])
    correlations = {
        domain: spearmanr(table.diffusion_time, table.seen_in_1000).statistic
        for domain, table in sets.groupby("domain", sort=False)
    }
    return Finding(
        tests=[correlation <= -STRONG for correlation in correlations.values()],
        measured="rank correlation of diffusion time and the share of states seen in "
        f"1,000 steps: {list_items('{} {:+.2f}', correlations)}",
        evidence=f"Over numbers of options; at most -{STRONG:g} in each domain.",
    )


@claim(
    "skewed-time",
    "When exploring, a uniformly random policy over options and primitive actions "
    "skews where agents spend their time.",
)
def skew_time(data: Data) -> Finding:
    shares = _find_effective_shares(data)
    return Finding(
        tests=list(shares.few <= SKEWED),
        readings={
            STRICTER: list(shares.few <= SKEWED - 0.1),
            LAXER: list(shares.few <= SKEWED + 0.05),
        },
        measured=f"effective share of the states with {FEW} options: "
        + list_rows("{domain} {few:.0%}", shares),
        evidence="The effective share (the exponential of the entropy over the number "
        "of states) is 100% if all states are visited equally often, as with primitive "
        f"actions. With a few options it must be at most {SKEWED:.0%}.",
    )


@claim(
    "bias-with-few", "This biasing is often observed when fewer options are available."
)
def bias_with_fewer_options(data: Data) -> Finding:
    shares = _find_effective_shares(data)
    return Finding(
        tests=list(shares.few < shares.many),
        measured=f"effective share with {FEW} options, and with the most: "
        + list_rows("{domain} {few:.0%}, {many:.0%} ({most})", shares),
        evidence="The effective share of the states must be lower with few options "
        "than with many.",
    )


# Bottleneck options in the 4-room domain


@claim(
    "corners-less-likely",
    "If the only options available are those leading to doorways, it is less likely "
    "the agent will reach the outer corners.",
)
def reach_corners_less_likely(data: Data) -> Finding:
    sets = _select_four_rooms(data)
    without = sets.loc[PRIMITIVE].steps_to_corners
    bottleneck = sets.loc[BOTTLENECK].steps_to_corners
    return Finding(
        tests=[bottleneck > without],
        measured=f"reaching the four corners takes {bottleneck:,.0f} steps on average "
        f"with bottleneck options and {without:,.0f} without",
        evidence="Expected steps from all other states to each corner of the 4-room "
        "domain, computed exactly.",
    )


@claim(
    "between-rooms",
    "With options that lead to doorways it is very likely agents will be always moving "
    "between rooms, never really exploring inside a room.",
)
def move_between_rooms(data: Data) -> Finding:
    sets = _select_four_rooms(data)
    without = sets.loc[PRIMITIVE]
    bottleneck = sets.loc[BOTTLENECK]
    return Finding(
        tests=[
            bottleneck.room_changes_per_1000 > without.room_changes_per_1000,
            bottleneck.time_inside <= UNLIKELY,
        ],
        measured=f"{bottleneck.room_changes_per_1000:.0f} changes of room per 1,000 "
        f"steps instead of {without.room_changes_per_1000:.0f}; "
        f"{bottleneck.time_inside:.0%} of the time inside rooms instead of "
        f"{without.time_inside:.0%}",
        evidence="Two tests: more changes of room than with primitive actions, and at "
        f"most {UNLIKELY:.0%} of the time at least {INSIDE} steps from every doorway.",
    )


@claim("mitigated", "These issues are mitigated with eigenoptions.")
def mitigate_issues(data: Data) -> Finding:
    sets = _select_four_rooms(data)
    bottleneck = sets.loc[BOTTLENECK]
    eigen = sets.loc[EIGEN]
    return Finding(
        tests=[
            eigen.steps_to_corners < bottleneck.steps_to_corners,
            eigen.time_inside > bottleneck.time_inside,
        ],
        measured=f"with {eigen.n_options} eigenoptions reaching the corners takes "
        f"{eigen.steps_to_corners:,.0f} steps instead of "
        f"{bottleneck.steps_to_corners:,.0f} with bottleneck options, and "
        f"{eigen.time_inside:.0%} of the time is spent inside rooms instead of "
        f"{bottleneck.time_inside:.0%}",
        evidence="Two tests against bottleneck options: fewer steps to the corners, "
        "and more time inside rooms.",
    )


@claim(
    "whole-environment",
    "It is very unlikely for an agent to explore the whole environment if it keeps "
    "going back and forth between similar high-level goals.",
)
def miss_whole_environment(data: Data) -> Finding:
    walks = data["walks"][data["walks"].domain == "four-rooms"]
    steps_to_all = walks.set_index("kind").steps_to_all
    # Half of the walks with primitive actions have seen every state by then.
    n_steps = steps_to_all[PRIMITIVE].median()
    evidence = (
        f"Random walks in the 4-room domain; very unlikely is at most {UNLIKELY:.0%}."
    )
    if not np.isfinite(n_steps):
        return Finding(
            tests=[None],
            measured="the walks are too short: fewer than half of those with primitive "
            "actions see every state",
            evidence=evidence,
        )

    share = (steps_to_all[BOTTLENECK] <= n_steps).mean()
    return Finding(
        tests=[share <= UNLIKELY],
        measured=f"in {n_steps:,.0f} steps, in which half of the walks with primitive "
        f"actions see every state, {share:.0%} do with bottleneck options",
        evidence=evidence,
    )


def _select_eigenoptions(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of walks with eigenoptions or without any options."""
    return table[table.kind != BOTTLENECK]


def _select_four_rooms(data: Data) -> pd.DataFrame:
    """One row per kind of choices, of walks in the 4-room domain.

    Of eigenoptions it is the largest number.
    """
    sets = data["sets"][data["sets"].domain == "four-rooms"]
    return sets.drop_duplicates("kind", keep="last").set_index("kind")


def _find_effective_shares(data: Data) -> pd.DataFrame:
    """Effective share of the states with few options and with the most, by domain."""
    sets = _select_eigenoptions(data["sets"])
    few = sets[sets.n_options == FEW].set_index("domain").effective_states
    largest = sets.groupby("domain").last()
    return pd.DataFrame({"few": few}).assign(
        many=largest.effective_states, most=largest.n_options
    )


def _compare_with_primitive_actions(walks: pd.DataFrame, measure: str) -> pd.Series:
    """Difference between the most eigenoptions and primitive actions, by domain."""
    domains = _select_eigenoptions(walks).groupby("domain", sort=False)
    gains = {}
    for domain, table in domains:
        values = table.set_index("n_options")[measure]
        most = values.index.max()
        gains[domain] = compare_means(values[most], values[0], len(domains))
    return pd.Series(gains)
