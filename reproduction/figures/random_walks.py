"""Section 4.2: random walks with options.

The text says how options change a random walk, without a figure. This one shows where walkers spend their time.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import shortest_path
from scipy.stats import spearmanr

import eigenoptions as eo
from eigenoptions import MDP, OptionSet
from eigenoptions.discovery.methods.bottleneck import find_rooms
from eigenoptions.options.walks import walk
from eigenoptions.plots import draw_values
from reproduction.drawing import make_maps
from reproduction.figures.agents import MAZES, counts_for, make_options
from reproduction.lab import FEW, SKEWED, STRONG, UNLIKELY, Claim, Data, Lab
from reproduction.statistics import compare_means

SECTION, ORDER = "4.2", 75
QUICK = {"mazes": ["i-maze", "four-rooms"], "options": [0, 2, 8, 16], "walkers": 30, "steps": 1500}
CAPTION = "Bright: where a walk spends most of its time."
# Steps from a doorway from which on a cell is inside a room.
INSIDE = 3


def run(
    lab: Lab,
    *,
    mazes: Sequence[str] = MAZES,
    options: Sequence[int] = (0, 2, 4, 8, 16, 32, 64),
    walkers: int = 400,
    steps: int = 6000,
    short: int = 100,
    seed: int = 2017,
) -> Data:
    """Random walks from random states, with each number of eigenoptions, and with bottleneck options in four rooms."""
    agents: list[dict[str, Any]] = []
    for name in mazes:
        for n in counts_for(name, options):
            kind = "eigenoptions" if n else "primitive actions"
            agents.append({"maze": name, "options": {"n": n}, "kind": kind, "n_options": n})
        if name == "four-rooms":
            doors = {"method": "bottleneck"}
            agents.append({"maze": name, "options": doors, "kind": "bottleneck options", "n_options": 4})
    settings = {"walkers": walkers, "steps": steps, "short": short}
    jobs = [{"maze": agent.pop("maze"), "options": agent.pop("options"), **settings} for agent in agents]
    results = lab.pmap(measure_walks, [{**job, "seed": (seed, i)} for i, job in enumerate(jobs)])
    return {
        name: pd.concat(
            [
                result[name].assign(domain=job["maze"], **agent, short=short)
                for job, agent, result in zip(jobs, agents, results, strict=True)
            ]
        )
        for name in ("sets", "walks", "time")
    }


def measure_walks(
    *, maze: str, options: Mapping[str, Any], walkers: int, steps: int, short: int, seed: Sequence[int]
) -> dict[str, pd.DataFrame]:
    """What walkers do: time per state, distances, steps until all states are seen, changes of room."""
    mdp = eo.maze(maze)
    found, rng = make_options(mdp, **options), np.random.default_rng(seed)
    # Walks do not end at the goal.
    endless = MDP(mdp.transition)
    path = np.empty((walkers, steps + 1), dtype=np.int64)
    path[:, 0] = rng.integers(mdp.n_states, size=walkers)
    for states in path:
        states[1:] = walk(endless, steps, found, begin=int(states[0]), rng=rng).next_obs
    distances = shortest_path(eo.graph(mdp), unweighted=True)
    seen = np.full((walkers, mdp.n_states), np.inf)
    for step in range(steps, -1, -1):
        seen[np.arange(walkers), path[:, step]] = step
    time = np.bincount(path.ravel(), minlength=mdp.n_states) / path.size
    entropy = -(time[time > 0] * np.log(time[time > 0])).sum()
    room, doors = find_rooms(mdp)
    changes = inside = np.nan
    if len(doors):
        visits = [room[states][room[states] >= 0] for states in path]
        changes = sum((np.diff(visited) != 0).sum() for visited in visits)
        inside = time[distances[:, doors].min(axis=1) >= INSIDE].sum()
    row = {
        "diffusion_time": eo.diffusion_time(mdp, found),
        "effective_states": np.exp(entropy) / mdp.n_states,
        "seen_in_1000": (seen <= 1000).mean(),
        "room_changes_per_1000": 1000 * changes / (walkers * steps),
        "time_inside": inside,
        "steps_to_corners": measure_corners(mdp, found),
    }
    farthest = distances[path[:, :1], path[:, : short + 1]].max(axis=1)
    return {
        "sets": pd.DataFrame([row]),
        "walks": pd.DataFrame(
            {
                "walker": range(walkers),
                "farthest": farthest,
                "steps_to_all": seen.max(axis=1),
                "seen_in_1000": (seen <= 1000).mean(axis=1),
            }
        ),
        "time": pd.DataFrame({"state": range(mdp.n_states), "share": time}),
    }


def measure_corners(mdp: MDP, options: OptionSet | None) -> float:
    """Expected steps from all other states to the four corners of a maze, the mean."""
    cells = np.asarray(mdp.coords)
    corners = [np.argmin(cells @ [down, right]) for down in (1, -1) for right in (1, -1)]
    return float(eo.hitting_times(mdp, options)[:, corners].sum() / (4 * (mdp.n_states - 1)))


def figure(data: Data) -> Any:
    time = data["time"][data["time"].domain == "four-rooms"]
    most = time.n_options.max()
    shown = [
        ("primitive actions", 0),
        ("bottleneck options", 4),
        ("eigenoptions", FEW),
        ("eigenoptions", most),
    ]
    picture, axes = make_maps(len(shown))
    for ax, (kind, n) in zip(axes, shown, strict=True):
        share = time[(time.kind == kind) & (time.n_options == n)].share
        values = np.log10(np.maximum(share * len(share), 1e-2))
        bar = "time, powers of 10 of the mean" if n == most else None
        draw_values(ax, eo.maze("four-rooms"), values, signed=False, limits=(-2.0, 1.0), colorbar=bar)
        ax.set_title(name_walk(kind, n))
    return picture


def claims(data: Data) -> Iterator[Claim]:
    sets, walks = (data[name][data[name].kind != "bottleneck options"] for name in ("sets", "walks"))
    domains = {domain: table.set_index("n_options") for domain, table in sets.groupby("domain", sort=False)}
    farther, more = (compare_with_actions(walks, name) for name in ("farthest", "seen_in_1000"))
    yield Claim(
        "larger-distances",
        "Agents performing a random walk, when equipped with options, are expected to cover larger distances "
        "in the state space.",
        tests=[difference.above(margin=1.0) for difference in farther],
        measured=f"farthest from the start in {walks.short.iloc[0]} steps, more than with primitive actions: "
        + "; ".join(f"{domain} {difference.mean:+.1f} steps" for domain, difference in farther.items()),
        evidence="Mean over random starts with the largest number of eigenoptions tried; one step is what "
        "matters.",
        table=pd.DataFrame({"domain": farther.index, "difference in steps": farther.map(str)}),
    )
    yield Claim(
        "small-portion",
        "Options that operate at different time scales decrease the likelihood the agent will explore only a small "
        "portion of the state space.",
        section="1",
        tests=[difference.better for difference in more],
        measured="share of the states seen in 1,000 steps, more than with primitive actions: "
        + "; ".join(f"{domain} {difference}" for domain, difference in more.items()),
        evidence="Mean over random starts with the largest number of eigenoptions tried.",
        table=pd.DataFrame({domain: table.seen_in_1000 for domain, table in domains.items()})
        .rename_axis("options")
        .reset_index(),
    )
    rank = {
        name: spearmanr(table.diffusion_time, table.seen_in_1000).statistic for name, table in domains.items()
    }
    yield Claim(
        "diffusion-implies-coverage",
        "A small expected number of steps implies that it is more likely that the agent will reach all states "
        "with a random walk.",
        tests=[correlation <= -STRONG for correlation in rank.values()],
        measured="rank correlation of diffusion time and the share of states seen in 1,000 steps: "
        + ", ".join(f"{domain} {correlation:+.2f}" for domain, correlation in rank.items()),
        evidence=f"Over numbers of options; at most -{STRONG:g} in each domain.",
    )
    shares = {domain: table.effective_states for domain, table in domains.items()}
    close = [domain for domain, share in shares.items() if abs(share[FEW] - SKEWED) < 0.02]
    table = pd.DataFrame(shares).T.map(lambda share: f"{share:.0%}" if share == share else "")
    yield Claim(
        "skewed-time",
        "When exploring, a uniformly random policy over options and primitive actions skews where agents spend "
        "their time.",
        tests=[share[FEW] <= SKEWED for share in shares.values()],
        measured=f"effective share of the states with {FEW} options: "
        + ", ".join(f"{domain} {share[FEW]:.0%}" for domain, share in shares.items()),
        evidence="The effective share is 100% if all states are visited equally often, as with primitive actions "
        "(the exponential of the entropy over the number of states). With a few options it must be at most "
        f"{SKEWED:.0%}.",
        edge=f"The limit of {SKEWED:.0%} is ours, and {' and '.join(close)} is within 2% of it."
        if close
        else "",
        table=table.rename_axis("effective share of the states").reset_index(),
    )
    yield Claim(
        "bias-with-few",
        "This biasing is often observed when fewer options are available.",
        tests=[share[FEW] < share.iloc[-1] for share in shares.values()],
        measured="; ".join(
            f"{domain}: {share[FEW]:.0%} with {FEW}, {share.iloc[-1]:.0%} with {share.index[-1]}"
            for domain, share in shares.items()
        ),
        evidence="The effective share of the states must be lower with few options than with many.",
    )
    rooms = (
        data["sets"][data["sets"].domain == "four-rooms"]
        .drop_duplicates("kind", keep="last")
        .set_index("kind")
    )
    bare, doors, own = (
        rooms.loc[kind] for kind in ("primitive actions", "bottleneck options", "eigenoptions")
    )
    yield Claim(
        "corners-less-likely",
        "If the only options available are those leading to doorways, it is less likely the agent will reach the "
        "outer corners.",
        tests=[doors.steps_to_corners > bare.steps_to_corners],
        measured=f"reaching the four corners takes {doors.steps_to_corners:,.0f} steps on average with bottleneck "
        f"options and {bare.steps_to_corners:,.0f} without",
        evidence="Expected steps from all other states to each corner of the map, computed exactly.",
    )
    yield Claim(
        "between-rooms",
        "With options that lead to doorways it is very likely agents will be always moving between rooms, "
        "never really exploring inside a room.",
        tests=[doors.room_changes_per_1000 > bare.room_changes_per_1000, doors.time_inside <= UNLIKELY],
        measured=f"{doors.room_changes_per_1000:.0f} changes of room per 1,000 steps instead of "
        f"{bare.room_changes_per_1000:.0f}; {doors.time_inside:.0%} of the time inside rooms instead of "
        f"{bare.time_inside:.0%}",
        evidence=f"Two tests: more changes of room than with primitive actions, and at most {UNLIKELY:.0%} of the "
        f"time inside a room, at least {INSIDE} steps from every doorway.",
    )
    yield Claim(
        "mitigated",
        "These issues are mitigated with eigenoptions.",
        tests=[own.steps_to_corners < doors.steps_to_corners, own.time_inside > doors.time_inside],
        measured=f"with {own.n_options} eigenoptions reaching the corners takes {own.steps_to_corners:,.0f} steps "
        f"instead of {doors.steps_to_corners:,.0f} with bottleneck options, and {own.time_inside:.0%} of the time is "
        f"spent inside rooms instead of {doors.time_inside:.0%}",
        evidence="Two tests against bottleneck options: fewer steps to the corners, and more time inside rooms. "
        f"Without options it is {bare.steps_to_corners:,.0f} steps and {bare.time_inside:.0%}.",
    )
    steps = data["walks"][data["walks"].domain == "four-rooms"].set_index("kind").steps_to_all
    half = steps["primitive actions"].median()
    done = (steps["bottleneck options"] <= half).mean()
    yield Claim(
        "whole-environment",
        "It is very unlikely for an agent to explore the whole environment if it keeps going back and forth "
        "between similar high-level goals.",
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
        domain: table.set_index("n_options")[measure] for domain, table in walks.groupby("domain", sort=False)
    }
    return pd.Series({d: compare_means(y[y.index.max()], y[0], len(values)) for d, y in values.items()})


def name_walk(kind: str, n: int) -> str:
    """Name of a walk with this many options of a kind."""
    return f"{n} {kind}" if n else kind
