"""Section 4.2: random walks with options.

The text says how options change a random walk, without a figure. This one shows where
walkers spend their time.
"""

from collections.abc import Callable, Mapping, Sequence
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
from eigenoptions.plots import draw_values
from eigenoptions.samples.walking import walk
from reproduction.claims import (
    Finding,
    Tests,
    claim,
    list_items,
    list_rows,
    move_limit,
)
from reproduction.drawing import make_maps
from reproduction.lab import Data, Job, Jobs, Result, Results
from reproduction.readings import (
    BOTTLENECKS,
    EXTRA_STEP,
    NO_MARGIN,
    TWO_OPTIONS,
    WALLS,
    WITHOUT_E1,
    complete_readings,
)
from reproduction.runs.diffusion import compute_hitting_times
from reproduction.runs.options import (
    CHANGED_MAZES,
    MAZES,
    OPTION_READINGS,
    limit_counts,
    load_authors_table,
    make_options,
)
from reproduction.statistics import compare_means, is_above_zero
from reproduction.thresholds import FEW, MARGIN, SKEWED, STRONG, UNLIKELY

SECTION = "4.2"
ORDER = 75
QUICK = {
    "mazes": ["i-maze", "four-rooms"],
    "options": [0, 2, 8, 16],
    "walkers": 30,
    "reading_walkers": 30,
    "steps": 1500,
    "readings": [WITHOUT_E1, WALLS],
}
CAPTION = "Bright: where a walk spends most of its time."

# Kinds of choices that a walk has.
PRIMITIVE = "primitive actions"
BOTTLENECK = "bottleneck options"
EIGEN = "eigenoptions"

# Steps from a doorway from which on a cell is inside a room.
INSIDE = 3

# Steps from the start up to which a walker is still around it.
AROUND = 2

# The state of each walker (rows) at each step.
Paths = NDArray[np.int64]


def list_jobs(
    *,
    mazes: Sequence[str] = MAZES,
    options: Sequence[int] = (0, 2, 4, 8, 16, 32, 64),
    walkers: int = 400,
    reading_walkers: int = 200,
    steps: int = 6000,
    short: int = 100,
    seed: int = 2017,
    readings: Sequence[str] = tuple(OPTION_READINGS),
) -> Jobs:
    """Walks from random states with each number of options.

    In the 4-room domain walkers also have bottleneck options. `short` are the steps in
    which the distance from the start is measured; `readings` change the eigenoptions.
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

    others = []
    for reading in readings:
        choice = OPTION_READINGS[reading]
        for maze in CHANGED_MAZES.get(reading, MAZES):
            counts = limit_counts(maze, options, **choice) if maze in mazes else []
            for n in counts:
                columns = {"domain": maze, "kind": EIGEN, "n_options": n}
                if n:
                    others.append(({"n": n, **choice}, columns | {"reading": reading}))

    shared = {"steps": steps, "short": short}
    return {
        "walks": _list_walk_jobs(agents, {"walkers": walkers, **shared}, seed),
        "readings": _list_walk_jobs(
            others, {"walkers": reading_walkers, **shared}, seed + 1
        ),
    }


def _list_walk_jobs(
    agents: Sequence[tuple[dict[str, Any], dict[str, Any]]],
    shared: Mapping[str, int],
    seed: int,
) -> list[Job]:
    """Walks of agents, given as settings of their options and as their columns."""
    jobs = []
    for number, (settings, columns) in enumerate(agents):
        arguments = {
            "maze": columns["domain"],
            "options": settings,
            "seed": (seed, number),
            **shared,
        }
        jobs.append(
            Job(measure_walks, arguments, {**columns, "within": shared["short"]})
        )
    return jobs


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
    n_pairs = mdp.n_states * (mdp.n_states - 1)
    corners = find_corners(mdp)
    to_goals = eo.hitting_times(mdp, found)
    longer = _count_extra_steps(mdp, found, to_goals)

    row = {
        "diffusion_time": to_goals.sum() / n_pairs,
        "longer_diffusion_time": longer.sum() / n_pairs,
        "effective_states": np.exp(entropy) / mdp.n_states,
        "seen_in_1000": is_seen_soon.mean(),
        **measure_rooms(mdp, paths, time, distances),
        "steps_to_corners": to_goals[:, corners].sum() / (4 * (mdp.n_states - 1)),
        "longer_to_corners": longer[:, corners].sum() / (4 * (mdp.n_states - 1)),
    }
    starts = paths[:, :1]
    soon = paths[:, : short + 1]
    from_start = distances[starts, soon]
    walks = {
        "farthest": from_start.max(axis=1),
        "around_start": (from_start <= AROUND).mean(axis=1),
        "undone": (soon[:, 2:] == soon[:, :-2]).mean(axis=1),
        "steps_to_all": first_visit.max(axis=1),
        "seen_in_1000": is_seen_soon.mean(axis=1),
    }
    return {
        "sets": pd.DataFrame([row]),
        "walks": pd.DataFrame(walks),
        "time": pd.DataFrame({"share": time}),
    }


def _count_extra_steps(
    mdp: MDP, options: OptionSet | None, to_goals: FloatArray
) -> FloatArray:
    """Hitting times ``(S, S)`` if an option of k moves costs k + 1 steps."""
    if options is None:
        return to_goals
    (times,) = compute_hitting_times(mdp, options, [len(options)])
    longer: FloatArray = times[:, :, 1].T
    return longer


def walk_from_random_states(
    mdp: MDP,
    options: OptionSet | None,
    n_walkers: int,
    n_steps: int,
    seed: Sequence[int],
) -> Paths:
    """Random walks over actions and options, which do not end at the goal."""
    # Without a start, every episode begins in a random state.
    endless = MDP(mdp.transition)
    steps = walk(
        endless,
        n_walkers * n_steps,
        options,
        max_episode_steps=n_steps,
        rng=np.random.default_rng(seed),
    )
    paths = np.empty((n_walkers, n_steps + 1), dtype=np.int64)
    paths[:, 0] = np.asarray(steps.obs)[::n_steps]
    paths[:, 1:] = np.asarray(steps.next_obs).reshape(n_walkers, n_steps)
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
    """The tables of all walks, those of other readings, and the authors' own."""
    data = {name: _stack(results["walks"], name) for name in ("sets", "walks", "time")}
    if results["readings"]:
        for name in ("sets", "walks"):
            data[f"{name}_of_readings"] = _stack(results["readings"], name)
    for name in ("sets", "walks"):
        data[f"authors_{name}"] = load_authors_table(name)
    return data


def _stack(results: Sequence[Result], name: str) -> pd.DataFrame:
    """One table of all walks, with the columns that name them."""
    tables = [tables[name].assign(**columns) for columns, tables in results]
    return pd.concat(tables)


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

    def judge(walks: pd.DataFrame) -> Tests:
        gains = _compare_with_primitive_actions(walks, "farthest")
        return [gain.above(margin=1.0) for gain in gains]

    return Finding(
        tests=judge(walks),
        readings={
            NO_MARGIN: [is_above_zero(gain) for gain in gains],
            **_judge_readings(data, "walks", judge),
        },
        measured=f"farthest from the start in {walks.within.iloc[0]} steps, more than "
        f"with primitive actions: {list_items('{} {.mean:+.1f} steps', gains)}",
        evidence="Mean over random starts with the largest number of eigenoptions "
        "tried; one step is what matters. Intervals: "
        f"{'; '.join(str(gain) for gain in gains)}.",
    )


@claim(
    "no-dithering",
    "Agents performing a random walk, when equipped with options, navigate back and "
    "forth between subgoals instead of dithering around the starting state.",
)
def stop_dithering(data: Data) -> Finding:
    measures = ("around_start", "undone")

    def compare(walks: pd.DataFrame) -> dict[str, pd.Series]:
        return {
            measure: _compare_with_primitive_actions(walks, measure)
            for measure in measures
        }

    def judge(walks: pd.DataFrame, margin: float = MARGIN) -> Tests:
        changes = compare(walks)
        return [
            change.below(margin) for measure in measures for change in changes[measure]
        ]

    walks = data["walks"]
    changes = compare(walks)
    return Finding(
        tests=judge(walks),
        readings={
            NO_MARGIN: judge(walks, margin=0.0),
            **_judge_readings(data, "walks", judge),
        },
        measured="with options minus with primitive actions: share of the time around "
        f"the start {list_items('{} {.mean:+.2f}', changes['around_start'])}; share of "
        f"the steps that are undone {list_items('{} {.mean:+.2f}', changes['undone'])}",
        evidence=f"Walks of {walks.within.iloc[0]} steps with the largest number of "
        f"eigenoptions tried. Two tests per domain: less time at most {AROUND} steps "
        "from the start, and fewer steps after which the walker is where it was two "
        "steps before.",
    )


@claim(
    "small-portion",
    "Options that operate at different time scales decrease the likelihood the agent "
    "will explore only a small portion of the state space.",
    section="1",
)
def explore_more_than_a_small_portion(data: Data) -> Finding:
    gains = _compare_with_primitive_actions(data["walks"], "seen_in_1000")

    def judge(walks: pd.DataFrame) -> Tests:
        gains = _compare_with_primitive_actions(walks, "seen_in_1000")
        return [gain.above() for gain in gains]

    return Finding(
        tests=judge(data["walks"]),
        readings={
            NO_MARGIN: [is_above_zero(gain) for gain in gains],
            **_judge_readings(data, "walks", judge),
        },
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
    def correlate(
        sets: pd.DataFrame, times: str = "diffusion_time"
    ) -> dict[str, float]:
        domains = _select_eigenoptions(sets).groupby("domain", sort=False)
        return {
            domain: spearmanr(table[times], table.seen_in_1000).statistic
            for domain, table in domains
        }

    def judge(correlations: Mapping[str, float], limit: float = STRONG) -> Tests:
        return [correlation <= -limit for correlation in correlations.values()]

    correlations = correlate(data["sets"])
    return Finding(
        tests=judge(correlations),
        readings={
            EXTRA_STEP: judge(correlate(data["sets"], "longer_diffusion_time")),
            **_judge_readings(data, "sets", lambda sets: judge(correlate(sets))),
            **move_limit("STRONG", lambda limit: judge(correlations, limit)),
        },
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
    def judge(sets: pd.DataFrame, few: int = FEW, limit: float = SKEWED) -> Tests:
        return list(_find_effective_shares(sets, few).few <= limit)

    sets = data["sets"]
    shares = _find_effective_shares(sets)
    return Finding(
        tests=judge(sets),
        readings={
            TWO_OPTIONS: judge(sets, few=2),
            **_judge_readings(data, "sets", judge),
            **move_limit("SKEWED", lambda limit: judge(sets, limit=limit)),
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
    def judge(sets: pd.DataFrame, few: int = FEW) -> Tests:
        shares = _find_effective_shares(sets, few)
        return list(shares.few < shares.many)

    sets = data["sets"]
    shares = _find_effective_shares(sets)
    return Finding(
        tests=judge(sets),
        readings={
            TWO_OPTIONS: judge(sets, few=2),
            **_judge_readings(data, "sets", judge),
        },
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
    sets = _select_four_rooms(data["sets"])
    without = sets.loc[PRIMITIVE].steps_to_corners
    bottleneck = sets.loc[BOTTLENECK].steps_to_corners
    theirs = _take_authors_options(data, "sets").loc[BOTTLENECK]
    return Finding(
        tests=[bottleneck > without],
        readings={
            EXTRA_STEP: [sets.loc[BOTTLENECK].longer_to_corners > without],
            BOTTLENECKS: [theirs.steps_to_corners > without],
        },
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
    def judge(sets: pd.DataFrame, limit: float = UNLIKELY) -> Tests:
        without = sets.loc[PRIMITIVE]
        bottleneck = sets.loc[BOTTLENECK]
        return [
            bottleneck.room_changes_per_1000 > without.room_changes_per_1000,
            bottleneck.time_inside <= limit,
        ]

    sets = _select_four_rooms(data["sets"])
    without = sets.loc[PRIMITIVE]
    bottleneck = sets.loc[BOTTLENECK]
    return Finding(
        tests=judge(sets),
        readings={
            BOTTLENECKS: judge(_take_authors_options(data, "sets")),
            **move_limit("UNLIKELY", lambda limit: judge(sets, limit)),
        },
        measured=f"{bottleneck.room_changes_per_1000:.0f} changes of room per 1,000 "
        f"steps instead of {without.room_changes_per_1000:.0f}; "
        f"{bottleneck.time_inside:.0%} of the time inside rooms instead of "
        f"{without.time_inside:.0%}",
        evidence="Two tests: more changes of room than with primitive actions, and at "
        f"most {UNLIKELY:.0%} of the time at least {INSIDE} steps from every doorway.",
    )


@claim("mitigated", "These issues are mitigated with eigenoptions.")
def mitigate_issues(data: Data) -> Finding:
    def judge(sets: pd.DataFrame, steps: str = "steps_to_corners") -> Tests:
        bottleneck = sets.loc[BOTTLENECK]
        eigen = sets.loc[EIGEN]
        return [
            eigen[steps] < bottleneck[steps],
            eigen.time_inside > bottleneck.time_inside,
        ]

    def judge_all(sets: pd.DataFrame) -> Tests:
        return judge(_select_four_rooms(sets))

    sets = _select_four_rooms(data["sets"])
    bottleneck = sets.loc[BOTTLENECK]
    eigen = sets.loc[EIGEN]
    return Finding(
        tests=judge(sets),
        readings={
            EXTRA_STEP: judge(sets, "longer_to_corners"),
            BOTTLENECKS: judge(_take_authors_options(data, "sets")),
            **_judge_readings(data, "sets", judge_all),
        },
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
    share_of_theirs = (data["authors_walks"].steps_to_all <= n_steps).mean()
    return Finding(
        tests=[share <= UNLIKELY],
        readings={
            BOTTLENECKS: [share_of_theirs <= UNLIKELY],
            **move_limit("UNLIKELY", lambda limit: [share <= limit]),
        },
        measured=f"in {n_steps:,.0f} steps, in which half of the walks with primitive "
        f"actions see every state, {share:.0%} do with bottleneck options",
        evidence=evidence,
    )


def _select_eigenoptions(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of walks with eigenoptions or without any options."""
    return table[table.kind != BOTTLENECK]


def _select_four_rooms(sets: pd.DataFrame) -> pd.DataFrame:
    """One row per kind of choices, of walks in the 4-room domain.

    Of eigenoptions it is the largest number.
    """
    rows = sets[sets.domain == "four-rooms"]
    return rows.drop_duplicates("kind", keep="last").set_index("kind")


def _take_authors_options(data: Data, name: str) -> pd.DataFrame:
    """The rows of `_select_four_rooms`, with the authors' bottleneck options."""
    rows = _select_four_rooms(data[name])
    theirs = data[f"authors_{name}"].set_index("kind")
    return pd.concat([rows.drop(BOTTLENECK), theirs])


def _find_effective_shares(sets: pd.DataFrame, few: int = FEW) -> pd.DataFrame:
    """Effective share of the states with few options and with the most, by domain."""
    rows = _select_eigenoptions(sets)
    shares = rows[rows.n_options == few].set_index("domain").effective_states
    largest = rows.groupby("domain").last()
    return pd.DataFrame({"few": shares}).assign(
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


def _judge_readings(
    data: Data, name: str, judge: Callable[[pd.DataFrame], Tests]
) -> dict[str, Tests]:
    """The tests of a table under each reading that changes the eigenoptions."""
    others = data.get(f"{name}_of_readings")
    if others is None:
        return {}
    main = data[name]
    doors = main[main.kind == BOTTLENECK]
    tables = complete_readings(_select_eigenoptions(main), others)
    return {
        reading: judge(pd.concat([table, doors])) for reading, table in tables.items()
    }
