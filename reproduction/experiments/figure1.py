"""Figure 1: the domains.

An open room of 10 x 10 cells, an I-Maze and the 4-room domain, the three mazes of the
evaluation.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import eigenoptions as eo
from eigenoptions.plots import draw_maze
from reproduction.claims import Finding, demonstration, list_rows
from reproduction.drawing import make_maps
from reproduction.lab import Data, Job, Jobs, Results
from reproduction.runs.options import MAZES

SECTION = "4"
ORDER = 10


def list_jobs(*, mazes: Sequence[str] = MAZES) -> Jobs:
    """Read the maps."""
    return {"domains": [Job(describe_maze, {"maze": maze}) for maze in mazes]}


def describe_maze(*, maze: str) -> dict[str, Any]:
    """The size of a maze, and what happens where an action leads into a wall."""
    mdp = eo.maze(maze)
    cells = np.asarray(mdp.coords)

    # Up, right, down and left; a target that is no free cell is a wall.
    targets = cells[:, None] + np.array([[-1, 0], [0, 1], [1, 0], [0, -1]])
    is_free = (targets[:, :, None] == cells).all(axis=3).any(axis=2)
    stays = mdp.successors == np.arange(mdp.n_states)[:, None]
    return {
        "domain": maze,
        "states": mdp.n_states,
        "actions": mdp.n_actions,
        "deterministic": mdp.successors is not None,
        "start": mdp.start,
        "goal": mdp.goal,
        "moves_into_walls": (~is_free).sum(),
        "of_these_stay": (~is_free & stays).sum(),
    }


def tabulate_results(results: Results) -> Data:
    """One row per maze."""
    return {"domains": pd.DataFrame([row for _, row in results["domains"]])}


def draw_figure(data: Data) -> Figure:
    """The three mazes."""
    figure, axes = make_maps(len(data["domains"]))
    for ax, domain in zip(axes, data["domains"].itertuples(), strict=True):
        draw_maze(ax, eo.maze(domain.domain))
        ax.set_title(f"{domain.domain}, {domain.states} states")
    return figure


@demonstration(
    "domains",
    "Their transitions are deterministic. Agents have access to four actions: up, "
    "down, right, and left.",
)
def have_four_actions(data: Data) -> Finding:
    domains = data["domains"]
    return Finding(
        tests=[(domains.deterministic & (domains.actions == 4)).all()],
        measured=list_rows("{domain}: {states} states and {actions} actions", domains),
        evidence="The paper has its maps as pictures only; these follow its text.",
    )


@demonstration(
    "walls",
    "When an action that would have taken the agent into a wall is chosen, the "
    "agent's state does not change.",
)
def stay_before_walls(data: Data) -> Finding:
    domains = data["domains"]
    return Finding(
        tests=[(domains.of_these_stay == domains.moves_into_walls).all()],
        measured=list_rows(
            "{domain}: {of_these_stay} of {moves_into_walls} such moves", domains
        ),
        evidence="Every action of every state whose target is a wall or off the map.",
    )
