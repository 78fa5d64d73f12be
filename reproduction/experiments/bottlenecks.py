"""Appendix C: options leading to doorways.

The four options used as a baseline, each defined in a single room and leading to the closest doorway.
"""

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import shortest_path

import eigenoptions as eo
from eigenoptions import MDP, OptionSet
from eigenoptions.discovery.methods.bottleneck import find_rooms
from eigenoptions.mdp.betweenness import compute_betweenness
from eigenoptions.plots import draw_policy
from reproduction.drawing import Figure, make_maps
from reproduction.lab import NEAR, Claim, Claims, Data, Lab

SECTION, ORDER = "Appendix C", 90
CAPTION = "Red: the option may not start."


def run(lab: Lab, *, maze="four-rooms") -> Data:
    """Bottleneck options; for each of their states the steps they take, and the distance to the closest doorway."""
    mdp = eo.maze(maze)
    options = eo.discover(mdp, method="bottleneck")
    room, doors = find_rooms(mdp)
    # Share of the pairs of other states whose shortest path leads through each state.
    share = compute_betweenness(eo.graph(mdp)) / (
        (mdp.n_states - 1) * (mdp.n_states - 2)
    )
    distances = (
        shortest_path(eo.graph(mdp), unweighted=True)[:, doors].min(axis=1).astype(int)
    )
    starts = [
        (options[i].label, len(options.follow(i, s)) - 1, room[s] + 1, distances[s])
        for i, s in np.argwhere(options.initiation).tolist()
    ]
    planning = [
        (name, count_sweeps(mdp, some), eo.diffusion_time(mdp, some))
        for name, some in (("primitive actions", None), ("bottleneck options", options))
    ]
    return {
        "starts": pd.DataFrame(
            starts, columns=["option", "steps", "room", "closest_doorway"]
        ),
        "states": pd.DataFrame(
            {"room": room + 1, "betweenness": share, "steps_to_doorway": distances}
        ),
        "planning": pd.DataFrame(
            planning, columns=["choices", "sweeps", "diffusion_time"]
        ),
    }


def count_sweeps(mdp: MDP, options: OptionSet | None) -> float:
    """Sweeps of value iteration until a state has a plan (a value above 0), the mean over all states and goals.

    The reward is 1 on reaching the goal; an option that touches the goal on its way ends there.
    """
    paths = [[s, t] for s in range(mdp.n_states) for t in np.asarray(mdp.successors)[s]]
    if options is not None:
        paths += [options.follow(int(i), s) for i, s in np.argwhere(options.initiation)]
    # touched[m, g]: whether path m touches state g.
    touched = np.zeros((len(paths), mdp.n_states), dtype=bool)
    for m, path in enumerate(paths):
        touched[m, path[1:]] = True
    starts, ends = (np.array([path[i] for path in paths]) for i in (0, -1))
    has_plan, sweeps = np.eye(mdp.n_states, dtype=bool), 0
    while not has_plan.all():
        sweeps += np.count_nonzero(~has_plan)
        reached = touched | has_plan[ends]
        np.logical_or.at(has_plan, starts, reached)
    return sweeps / (mdp.n_states * (mdp.n_states - 1))


def figure(data: Data) -> Figure:
    options = eo.discover(eo.maze("four-rooms"), method="bottleneck")
    picture, axes = make_maps(len(options))
    for ax, option in zip(axes, options, strict=True):
        draw_policy(ax, options.mdp, option.policy)
        ax.set_title(option.label)
    return picture


def claims(data: Data) -> Claims:
    starts = data["starts"]
    busy = data["states"].sort_values("betweenness", ascending=False, kind="stable")
    sizes = busy[busy.room > 0].groupby("room").size()
    by_option = starts.groupby("option", sort=False).room
    whole = [
        rooms.nunique() == 1 and len(rooms) == sizes[rooms.iloc[0]]
        for _, rooms in by_option
    ]
    direct = int((starts.steps == starts.closest_doorway).sum())
    yield Claim(
        "closest-doorway",
        "Each option is defined in a room and it moves the agent toward the closest doorway.",
        tests=[len(whole) == 4 and all(whole), direct == len(starts)],
        measured=f"{len(whole)} options for {len(sizes)} rooms; {direct} of {len(starts)} states take the shortest "
        "path to the closest doorway",
        evidence="Rooms and doorways (states whose neighbours do not meet again nearby) are found automatically; an "
        "option must be available in all of one room and nowhere else.",
    )
    doors = int((busy.steps_to_doorway == 0).sum())
    first = busy.steps_to_doorway[:doors]
    at, beside = (first == 0).sum(), ((first > 0) & (first <= NEAR)).sum()
    yield Claim(
        "doorways-most-visited",
        "Bottleneck states are the states most frequently visited when considering the shortest distance between any "
        "two states.",
        section="2.2",
        tests=[first.max() == 0, first.max() <= NEAR],
        measured=f"the {doors} states with the highest betweenness: doorways {at}, beside one {beside}",
        evidence="Betweenness: the share of shortest paths between other states that lead through a state of the "
        "4-room domain. Two tests: the busiest states are the doorways; they are at most one step from one.",
    )
    bare, options = data["planning"].itertuples()
    yield Claim(
        "planning-not-exploration",
        "Not all options capable of accelerating planning are useful for exploration.",
        section="1",
        tests=[
            options.sweeps < bare.sweeps,
            options.diffusion_time > bare.diffusion_time,
        ],
        measured=f"bottleneck options: {options.sweeps:.1f} sweeps of value iteration to a plan instead of "
        f"{bare.sweeps:.1f}, and a diffusion time of {options.diffusion_time:,.0f} instead of "
        f"{bare.diffusion_time:,.0f}",
        evidence="Two tests: fewer sweeps until a state has a plan (mean over states and goals of the 4-room "
        "domain), and a slower random walk.",
    )
