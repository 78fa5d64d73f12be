"""Appendix C: options leading to doorways.

The four options used as a baseline, each defined in a single room and leading to the
closest doorway.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.sparse.csgraph import shortest_path

import eigenoptions as eo
from eigenoptions import MDP, OptionSet
from eigenoptions.discovery.methods.bottleneck import find_rooms
from eigenoptions.mdp.betweenness import compute_betweenness
from eigenoptions.plots import draw_policy
from reproduction.claims import Finding, Tests, claim, move_limit
from reproduction.drawing import make_maps
from reproduction.lab import Data, Job, Jobs, Results, get_tables
from reproduction.readings import BOTTLENECKS, EXTRA_STEP
from reproduction.runs.diffusion import compute_diffusion_times
from reproduction.runs.options import load_authors_table, make_options
from reproduction.thresholds import NEAR

SECTION = "Appendix C"
ORDER = 90
CAPTION = "Red: the option may not start."


def list_jobs(*, maze: str = "four-rooms") -> Jobs:
    """Find the bottleneck options of a maze, and follow them."""
    options = {"method": "bottleneck"}
    return {"options": [Job(measure_options, {"maze": maze, "options": options})]}


def measure_options(*, maze: str, options: Mapping[str, Any]) -> Data:
    """What bottleneck options do, and what they do to planning and exploration.

    `options` are arguments of `make_options`. ``starts`` has the steps of each option
    from each state where it may start, ``states`` how many shortest paths lead through
    each state, and ``planning`` the sweeps of value iteration and the diffusion time
    with and without options.
    """
    mdp = eo.maze(maze)
    graph = eo.graph(mdp)
    found = make_options(mdp, **options)
    assert found is not None
    room, doorways = find_rooms(mdp)
    distances = shortest_path(graph, unweighted=True)
    to_doorway = distances[:, doorways].min(axis=1).astype(int)

    # Share of the pairs of other states whose shortest path leads through each state.
    n_pairs = (mdp.n_states - 1) * (mdp.n_states - 2)
    betweenness = compute_betweenness(graph) / n_pairs

    starts = []
    for number, state in np.argwhere(found.initiation).tolist():
        n_steps = len(found.follow(number, state)) - 1
        starts.append(
            {
                "option": found[number].label,
                "steps": n_steps,
                "room": room[state] + 1,
                "closest_doorway": to_doorway[state],
            }
        )

    planning = []
    for name, choices in {
        "primitive actions": None,
        "bottleneck options": found,
    }.items():
        diffusion_time = eo.diffusion_time(mdp, choices)
        longer = diffusion_time
        if choices is not None:
            longer = compute_diffusion_times(mdp, choices, [len(choices)])[1][0]
        planning.append(
            {
                "choices": name,
                "sweeps": count_sweeps(mdp, choices),
                "diffusion_time": diffusion_time,
                "with_extra_step": longer,
            }
        )
    return {
        "starts": pd.DataFrame(starts),
        "states": pd.DataFrame(
            {
                "room": room + 1,
                "betweenness": betweenness,
                "steps_to_doorway": to_doorway,
            }
        ),
        "planning": pd.DataFrame(planning),
    }


def count_sweeps(mdp: MDP, options: OptionSet | None) -> float:
    """Sweeps of value iteration until a state has a plan: a value above 0.

    The result is the mean over all states and goals. The reward is 1 on reaching the
    goal; an option that touches the goal on its way ends there.
    """
    paths = []
    for state, successors in enumerate(np.asarray(mdp.successors)):
        paths += [[state, successor] for successor in successors]
    if options is not None:
        for number, state in np.argwhere(options.initiation).tolist():
            paths.append(options.follow(number, state).tolist())

    # touches[m, g]: whether path m touches state g after its start.
    touches = np.zeros((len(paths), mdp.n_states), dtype=bool)
    for number, path in enumerate(paths):
        touches[number, path[1:]] = True
    starts = np.array([path[0] for path in paths])
    ends = np.array([path[-1] for path in paths])

    # has_plan[s, g]: whether a plan leads from s to g.
    has_plan = np.eye(mdp.n_states, dtype=bool)
    n_sweeps = 0
    while not has_plan.all():
        # Each pair without a plan needs this sweep.
        n_sweeps += int(np.count_nonzero(~has_plan))
        leads_to_goal = touches | has_plan[ends]
        np.logical_or.at(has_plan, starts, leads_to_goal)
    return n_sweeps / (mdp.n_states * (mdp.n_states - 1))


def tabulate_results(results: Results) -> Data:
    """The tables of the only job, and those of the authors' options."""
    theirs = {
        f"authors_{name}": load_authors_table(name) for name in ("starts", "planning")
    }
    return {**get_tables(results["options"]), **theirs}


def draw_figure(data: Data) -> Figure:
    """The four options."""
    options = eo.discover(eo.maze("four-rooms"), method="bottleneck")
    figure, axes = make_maps(len(options))
    for ax, option in zip(axes, options, strict=True):
        draw_policy(ax, options.mdp, option.policy)
        ax.set_title(option.label)
    return figure


@claim(
    "closest-doorway",
    "Each option is defined in a room and it moves the agent toward the closest "
    "doorway.",
)
def move_toward_closest_doorway(data: Data) -> Finding:
    states = data["states"]
    room_sizes = states[states.room > 0].groupby("room").size()

    def judge(starts: pd.DataFrame) -> Tests:
        fills_one_room = [
            rooms.nunique() == 1 and len(rooms) == room_sizes[rooms.iloc[0]]
            for _, rooms in starts.groupby("option", sort=False).room
        ]
        is_direct = starts.steps == starts.closest_doorway
        return [len(fills_one_room) == 4 and all(fills_one_room), is_direct.all()]

    theirs = data["authors_starts"]
    n_direct = int((theirs.steps == theirs.closest_doorway).sum())
    return Finding(
        tests=judge(theirs),
        readings={BOTTLENECKS: judge(data["starts"])},
        replays="reproduction/authors/starts.csv",
        measured=f"{theirs.option.nunique()} options of the authors for "
        f"{len(room_sizes)} rooms; {n_direct} of {len(theirs)} states take the "
        "shortest path to the closest doorway",
        evidence="The sentence describes the authors' options, so it is judged by "
        "their files; an option must be available in all of one room and nowhere else, "
        "and lead to the closest doorway on a shortest path. Ours do so by "
        "construction, and are used for all other claims.",
    )


@claim(
    "doorways-most-visited",
    "Bottleneck states are the states most frequently visited when considering the "
    "shortest distance between any two states.",
    section="2.2",
)
def visit_doorways_most(data: Data) -> Finding:
    states = data["states"]
    busiest = states.sort_values("betweenness", ascending=False, kind="stable")
    n_doorways = int((states.steps_to_doorway == 0).sum())
    steps = busiest.steps_to_doorway[:n_doorways]

    n_at = (steps == 0).sum()
    n_beside = ((steps > 0) & (steps <= NEAR)).sum()
    return Finding(
        tests=[steps.max() == 0, steps.max() <= NEAR],
        readings=move_limit(
            "NEAR", lambda near: [steps.max() == 0, steps.max() <= near]
        ),
        measured=f"the {n_doorways} states with the highest betweenness: doorways "
        f"{n_at}, beside one {n_beside}",
        evidence="Betweenness: the share of shortest paths between other states that "
        "lead through a state of the 4-room domain. Two tests: the busiest states are "
        "the doorways; they are at most one step from one.",
    )


@claim(
    "planning-not-exploration",
    "Not all options capable of accelerating planning are useful for exploration.",
    section="1",
)
def accelerate_planning_not_exploration(data: Data) -> Finding:
    def judge(planning: pd.DataFrame, time: str = "diffusion_time") -> Tests:
        sweeps = planning.sweeps.to_numpy()
        times = planning[time].to_numpy()
        return [sweeps[1] < sweeps[0], times[1] > times[0]]

    without, with_options = data["planning"].itertuples()
    return Finding(
        tests=judge(data["planning"]),
        readings={
            EXTRA_STEP: judge(data["planning"], "with_extra_step"),
            BOTTLENECKS: judge(data["authors_planning"]),
        },
        measured=f"bottleneck options: {with_options.sweeps:.1f} sweeps of value "
        f"iteration to a plan instead of {without.sweeps:.1f}, and a diffusion time "
        f"of {with_options.diffusion_time:,.0f} instead of "
        f"{without.diffusion_time:,.0f}",
        evidence="Two tests: fewer sweeps until a state has a plan (mean over states "
        "and goals of the 4-room domain), and a slower random walk.",
    )
