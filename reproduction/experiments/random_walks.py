"""Section 4.2: random walks with options.

The text says how options change a random walk, without a figure. This one shows where walkers spend their time.
"""

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import shortest_path
from scipy.stats import spearmanr

import eigenoptions as eo
from eigenoptions.discovery.methods.bottleneck import find_rooms
from eigenoptions.options.walks import walk
from eigenoptions.plots import draw_values
from reproduction.drawing import Figure, make_maps
from reproduction.experiments.agents import MAZES, counts_for, make_options, run_agents
from reproduction.lab import (
    FEW,
    SKEWED,
    STRONG,
    UNLIKELY,
    Claim,
    Claims,
    Data,
    Lab,
    list_items,
    list_rows,
)
from reproduction.statistics import compare_means

SECTION, ORDER = "4.2", 75
QUICK = {
    "mazes": ["i-maze", "four-rooms"],
    "options": [0, 2, 8, 16],
    "walkers": 30,
    "steps": 1500,
}
CAPTION = "Bright: where a walk spends most of its time."
BARE, DOORS, EIGEN = "primitive actions", "bottleneck options", "eigenoptions"
# Steps from a doorway from which on a cell is inside a room.
INSIDE = 3


def run(
    lab: Lab,
    *,
    mazes=MAZES,
    options=(0, 2, 4, 8, 16, 32, 64),
    walkers=400,
    steps=6000,
    short=100,
    seed=2017,
) -> Data:
    """Random walks from random states, with each number of eigenoptions, and with bottleneck options in four rooms."""
    agents = []
    for name in mazes:
        for n in counts_for(name, options):
            agents.append(
                {
                    "maze": name,
                    "options": {"n": n},
                    "kind": EIGEN if n else BARE,
                    "n_options": n,
                }
            )
        if name == "four-rooms":
            agents.append(
                {
                    "maze": name,
                    "options": {"method": "bottleneck"},
                    "kind": DOORS,
                    "n_options": 4,
                }
            )
    settings = {"walkers": walkers, "steps": steps, "short": short}
    jobs = [{**agent, **settings, "seed": (seed, i)} for i, agent in enumerate(agents)]
    results = run_agents(lab, measure_walks, jobs)
    return {
        name: pd.concat(
            [
                result[name].assign(**columns, within=short)
                for columns, result in results
            ]
        )
        for name in ("sets", "walks", "time")
    }


def measure_walks(*, maze, options, walkers, steps, short, seed) -> Data:
    """What walkers do: time per state, distances, steps until all states are seen, changes of room."""
    mdp = eo.maze(maze)
    found, rng = make_options(mdp, **options), np.random.default_rng(seed)
    path = np.empty((walkers, steps + 1), dtype=np.int64)
    path[:, 0] = rng.integers(mdp.n_states, size=walkers)
    for states in path:
        # Walks do not end at the goal.
        states[1:] = walk(
            eo.MDP(mdp.transition), steps, found, begin=int(states[0]), rng=rng
        ).next_obs
    distances = shortest_path(eo.graph(mdp), unweighted=True)
    first_visit = np.full((walkers, mdp.n_states), np.inf)
    for step in range(steps, -1, -1):
        first_visit[np.arange(walkers), path[:, step]] = step
    time = np.bincount(path.ravel(), minlength=mdp.n_states) / path.size
    entropy = -(time[time > 0] * np.log(time[time > 0])).sum()
    room, doors = find_rooms(mdp)
    changes = sum(
        (np.diff(room[states][room[states] >= 0]) != 0).sum() for states in path
    )
    inside = (
        time[distances[:, doors].min(axis=1) >= INSIDE].sum() if len(doors) else np.nan
    )
    cells = np.asarray(mdp.coords)
    corners = [
        np.argmin(cells @ [down, right]) for down in (1, -1) for right in (1, -1)
    ]
    row = {
        "diffusion_time": eo.diffusion_time(mdp, found),
        "effective_states": np.exp(entropy) / mdp.n_states,
        "seen_in_1000": (first_visit <= 1000).mean(),
        "room_changes_per_1000": 1000 * changes / (walkers * steps),
        "time_inside": inside,
        "steps_to_corners": eo.hitting_times(mdp, found)[:, corners].sum()
        / (4 * (mdp.n_states - 1)),
    }
    walks = {
        "farthest": distances[path[:, :1], path[:, : short + 1]].max(axis=1),
        "steps_to_all": first_visit.max(axis=1),
        "seen_in_1000": (first_visit <= 1000).mean(axis=1),
    }
    return {
        "sets": pd.DataFrame([row]),
        "walks": pd.DataFrame(walks),
        "time": pd.DataFrame({"share": time}),
    }


def figure(data: Data) -> Figure:
    time = data["time"][data["time"].domain == "four-rooms"]
    shown = [(BARE, 0), (DOORS, 4), (EIGEN, FEW), (EIGEN, time.n_options.max())]
    picture, axes = make_maps(len(shown))
    for ax, (kind, n) in zip(axes, shown, strict=True):
        share = time[(time.kind == kind) & (time.n_options == n)].share
        values = np.log10(np.maximum(share * len(share), 1e-2))
        bar = "time, powers of 10 of the mean" if ax is axes[-1] else None
        draw_values(
            ax,
            eo.maze("four-rooms"),
            values,
            signed=False,
            limits=(-2.0, 1.0),
            colorbar=bar,
        )
        ax.set_title(f"{n} {kind}" if n else kind)
    return picture


def claims(data: Data) -> Claims:
    yield from judge_eigenoptions(data)
    yield from judge_bottlenecks(data)


def judge_eigenoptions(data: Data) -> Claims:
    sets, walks = (data[name][data[name].kind != DOORS] for name in ("sets", "walks"))
    farther, more = (
        compare_with_actions(walks, name) for name in ("farthest", "seen_in_1000")
    )
    yield Claim(
        "larger-distances",
        "Agents performing a random walk, when equipped with options, are expected to cover larger distances in the "
        "state space.",
        tests=[difference.above(margin=1.0) for difference in farther],
        measured=f"farthest from the start in {walks.within.iloc[0]} steps, more than with primitive actions: "
        + list_items("{} {.mean:+.1f} steps", farther),
        evidence="Mean over random starts with the largest number of eigenoptions tried; one step is what matters. "
        f"Intervals: {'; '.join(map(str, farther))}.",
    )
    yield Claim(
        "small-portion",
        "Options that operate at different time scales decrease the likelihood the agent will explore only a small "
        "portion of the state space.",
        section="1",
        tests=[difference.better for difference in more],
        measured="share of the states seen in 1,000 steps, more than with primitive actions: "
        + list_items("{} {}", more),
        evidence="Mean over random starts with the largest number of eigenoptions tried.",
    )
    domains = {
        domain: table.set_index("n_options")
        for domain, table in sets.groupby("domain", sort=False)
    }
    rank = {
        d: spearmanr(table.diffusion_time, table.seen_in_1000).statistic
        for d, table in domains.items()
    }
    yield Claim(
        "diffusion-implies-coverage",
        "A small expected number of steps implies that it is more likely that the agent will reach all states with a "
        "random walk.",
        tests=[correlation <= -STRONG for correlation in rank.values()],
        measured="rank correlation of diffusion time and the share of states seen in 1,000 steps: "
        + list_items("{} {:+.2f}", rank),
        evidence=f"Over numbers of options; at most -{STRONG:g} in each domain.",
    )
    shares = pd.DataFrame(
        {"few": sets[sets.n_options == FEW].set_index("domain").effective_states}
    )
    shares[["many", "most"]] = sets.groupby("domain")[
        ["effective_states", "n_options"]
    ].last()
    close = shares.index[(shares.few - SKEWED).abs() < 0.02]
    yield Claim(
        "skewed-time",
        "When exploring, a uniformly random policy over options and primitive actions skews where agents spend their "
        "time.",
        tests=list(shares.few <= SKEWED),
        measured=f"effective share of the states with {FEW} options: {list_rows('{domain} {few:.0%}', shares)}",
        evidence="The effective share (the exponential of the entropy over the number of states) is 100% if all "
        "states are visited equally often, as with primitive actions. With a few options it must be at most "
        f"{SKEWED:.0%}.",
        edge=f"The limit of {SKEWED:.0%} is ours, and {' and '.join(close)} is within 2% of it."
        if len(close)
        else "",
    )
    yield Claim(
        "bias-with-few",
        "This biasing is often observed when fewer options are available.",
        tests=list(shares.few < shares.many),
        measured=f"effective share with {FEW} options, and with the most: "
        + list_rows("{domain} {few:.0%}, {many:.0%} ({most})", shares),
        evidence="The effective share of the states must be lower with few options than with many.",
    )


def judge_bottlenecks(data: Data) -> Claims:
    sets, walks = (
        data[name][data[name].domain == "four-rooms"] for name in ("sets", "walks")
    )
    rooms = sets.drop_duplicates("kind", keep="last").set_index("kind")
    bare, doors, own = (rooms.loc[kind] for kind in (BARE, DOORS, EIGEN))
    yield Claim(
        "corners-less-likely",
        "If the only options available are those leading to doorways, it is less likely the agent will reach the outer "
        "corners.",
        tests=[doors.steps_to_corners > bare.steps_to_corners],
        measured=f"reaching the four corners takes {doors.steps_to_corners:,.0f} steps on average with bottleneck "
        f"options and {bare.steps_to_corners:,.0f} without",
        evidence="Expected steps from all other states to each corner of the 4-room domain, computed exactly.",
    )
    yield Claim(
        "between-rooms",
        "With options that lead to doorways it is very likely agents will be always moving between rooms, never really "
        "exploring inside a room.",
        tests=[
            doors.room_changes_per_1000 > bare.room_changes_per_1000,
            doors.time_inside <= UNLIKELY,
        ],
        measured=f"{doors.room_changes_per_1000:.0f} changes of room per 1,000 steps instead of "
        f"{bare.room_changes_per_1000:.0f}; {doors.time_inside:.0%} of the time inside rooms instead of "
        f"{bare.time_inside:.0%}",
        evidence=f"Two tests: more changes of room than with primitive actions, and at most {UNLIKELY:.0%} of the "
        f"time at least {INSIDE} steps from every doorway.",
    )
    yield Claim(
        "mitigated",
        "These issues are mitigated with eigenoptions.",
        tests=[
            own.steps_to_corners < doors.steps_to_corners,
            own.time_inside > doors.time_inside,
        ],
        measured=f"with {own.n_options} eigenoptions reaching the corners takes {own.steps_to_corners:,.0f} steps "
        f"instead of {doors.steps_to_corners:,.0f} with bottleneck options, and {own.time_inside:.0%} of the time is "
        f"spent inside rooms instead of {doors.time_inside:.0%}",
        evidence="Two tests against bottleneck options: fewer steps to the corners, and more time inside rooms.",
    )
    steps = walks.set_index("kind").steps_to_all
    half = steps[BARE].median()
    done = (steps[DOORS] <= half).mean()
    yield Claim(
        "whole-environment",
        "It is very unlikely for an agent to explore the whole environment if it keeps going back and forth between "
        "similar high-level goals.",
        tests=[done <= UNLIKELY if np.isfinite(half) else None],
        measured=f"in {half:,.0f} steps, in which half of the walks with primitive actions see every state, "
        f"{done:.0%} do with bottleneck options"
        if np.isfinite(half)
        else "the walks are too short: fewer than half of those with primitive actions see every state",
        evidence=f"Random walks in the 4-room domain; very unlikely is at most {UNLIKELY:.0%}.",
    )


def compare_with_actions(walks: pd.DataFrame, measure: str) -> pd.Series:
    """Difference of a measure between the most eigenoptions and primitive actions, by domain."""
    values = {
        domain: y.set_index("n_options")[measure]
        for domain, y in walks.groupby("domain", sort=False)
    }
    return pd.Series(
        {
            d: compare_means(y[y.index.max()], y[0], len(values))
            for d, y in values.items()
        }
    )
