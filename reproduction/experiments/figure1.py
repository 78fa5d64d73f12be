"""Figure 1: the domains.

An open room of 10 x 10 cells, an I-Maze and the 4-room domain, the three mazes of the evaluation.
"""

import numpy as np
import pandas as pd

import eigenoptions as eo
from eigenoptions.plots import draw_maze
from reproduction.drawing import Figure, make_maps
from reproduction.experiments.agents import MAZES
from reproduction.lab import Claim, Claims, Data, Lab, list_rows

SECTION, ORDER = "4", 10


def run(lab: Lab, *, mazes=MAZES) -> Data:
    """Read the maps."""
    rows = []
    for name in mazes:
        mdp = eo.maze(name)
        cells, states = np.asarray(mdp.coords), np.arange(mdp.n_states)
        targets = cells[:, None] + np.array([[-1, 0], [0, 1], [1, 0], [0, -1]])
        wall = ~(targets[:, :, None] == cells).all(axis=3).any(axis=2)
        stays = mdp.successors == states[:, None]
        row = {"domain": name, "states": mdp.n_states, "actions": mdp.n_actions}
        row |= {
            "deterministic": mdp.successors is not None,
            "start": mdp.start,
            "goal": mdp.goal,
        }
        rows.append(
            row
            | {"moves_into_walls": wall.sum(), "of_these_stay": (wall & stays).sum()}
        )
    return {"domains": pd.DataFrame(rows)}


def figure(data: Data) -> Figure:
    picture, axes = make_maps(len(data["domains"]))
    for ax, domain in zip(axes, data["domains"].itertuples(), strict=True):
        draw_maze(ax, eo.maze(domain.domain))
        ax.set_title(f"{domain.domain}, {domain.states} states")
    return picture


def claims(data: Data) -> Claims:
    domains = data["domains"]
    yield Claim(
        "domains",
        "Their transitions are deterministic. Agents have access to four actions: up, down, right, and left.",
        tests=[(domains.deterministic & (domains.actions == 4)).all()],
        measured=list_rows("{domain}: {states} states and {actions} actions", domains),
        evidence="The paper has its maps as pictures only; these follow its text.",
    )
    yield Claim(
        "walls",
        "When an action that would have taken the agent into a wall is chosen, the agent's state does not change.",
        tests=[(domains.of_these_stay == domains.moves_into_walls).all()],
        measured=list_rows(
            "{domain}: {of_these_stay} of {moves_into_walls} such moves", domains
        ),
        evidence="Every action of every state whose target is a wall or off the map.",
    )
