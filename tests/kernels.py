"""Compile the kernels before the tests, each once: ``make test`` does so whenever one of them has changed.

Else the processes of a test run would all compile the same kernels at the same time. What nothing here calls is
compiled by the first test that does.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import gymnasium
import numpy as np

import eigenoptions as eo
from eigenoptions.discovery.frontier import Explorer
from eigenoptions.options.walks import walk


def spectra() -> None:
    rooms = eo.maze("four-rooms")
    eo.discover(rooms, 8)
    # Of a graph that is not bipartite, and of a large one.
    eo.spectrum(eo.graph(rooms) + eo.graph(rooms, weights=eo.graph(rooms) @ eo.graph(rooms)), 8)
    eo.spectrum(eo.graph(eo.maze("rooms:6x6")), 8, solver="sparse")
    # Not of spectra: both parts take the same time.
    Explorer(rooms.n_states, 4, rng=0).walk(rooms, 200)
    slippery = slips()
    eo.solve(slippery, eo.eigenpurposes(eo.spectrum(eo.graph(slippery), 4)))


def walks() -> None:
    rooms, slippery = eo.maze("four-rooms"), slips()
    options = eo.discover(rooms, 4, method="random", rng=0)
    for mdp in (rooms, slippery):
        walk(mdp, 100)
        eo.diffusion_time(mdp)
        eo.q_learning(mdp, runs=1, episodes=2, start=0, goal=3)
    walk(rooms, 100, options)
    eo.diffusion_time(rooms, options)
    eo.diffusion_time(rooms, options, option_chance=0.05)
    eo.diffusion_estimate(rooms, options, walks=2)
    for learn in (eo.q_learning, eo.smdp_q_learning, eo.intra_option_q_learning):
        learn(rooms, options, runs=1, episodes=2)
    seen = walk(rooms, 2000)
    eo.Gram().add(seen.obs, seen.next_obs)
    eo.Gram().add(np.eye(104)[seen.obs], np.eye(104)[seen.next_obs])
    for method in ("bottleneck", "betweenness"):
        eo.discover(rooms, 2, method=method)
    envs = gymnasium.make_vec("eigenoptions/FourRooms-v0", num_envs=2)
    wrapped = eo.OptionsVectorWrapper(envs, options)
    wrapped.reset(seed=0)
    wrapped.step(np.array([0, 1]))
    wrapped.close()


def slips() -> eo.MDP:
    """The I-maze, in which one move in five goes to the side."""
    maze = eo.maze("i-maze")
    P = maze.transition.toarray().reshape(maze.n_states, maze.n_actions, maze.n_states)
    return eo.MDP(0.8 * P + 0.2 * np.roll(P, 1, axis=1), start=0, goal=3)


PARTS: dict[str, Callable[[], None]] = {"spectra": spectra, "walks": walks}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        PARTS[sys.argv[1]]()
    else:
        parts = [subprocess.Popen([sys.executable, "-m", "tests.kernels", name]) for name in PARTS]
        sys.exit(max(part.wait() for part in parts))
