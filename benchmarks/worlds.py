"""Worlds of the benchmarks of `deep`: grids of the literature and MiniGrid, what is observed of them, and the truth."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

import eigenoptions as eo
from eigenoptions.deep import Dataset
from eigenoptions.mdp.maps import rooms_map
from eigenoptions.options.walks import walk

GRIDS = Path(__file__).resolve().parent / "grids"
# Side of a frame, and standard deviation of its noise as a share of the range.
SIDE, NOISE = 84, 0.1
# Steps of an episode.
EPISODE = 50


@cache
def minigrid() -> Any:
    """MiniGrid's four rooms, always the same ones."""
    import gymnasium as gym

    env = gym.make("minigrid:MiniGrid-FourRooms-v0")
    env.reset(seed=0)
    return env


@cache
def headings() -> list[tuple[int, int, int]]:
    """States of MiniGrid's four rooms: column, row and direction of the agent."""
    world = minigrid().unwrapped.grid
    free = [(x, y) for y in range(world.height) for x in range(world.width)
            if getattr(world.get(x, y), "type", "goal") == "goal"]  # fmt: skip
    return [(x, y, d) for x, y in free for d in range(4)]


def turning() -> eo.MDP:
    """MiniGrid's four rooms as a table: turn left, turn right, go forward."""
    number = {state: i for i, state in enumerate(headings())}
    after = []
    for x, y, d in headings():
        ahead = (x + (1, 0, -1, 0)[d], y + (0, 1, 0, -1)[d], d)
        after += [number[x, y, (d - 1) % 4], number[x, y, (d + 1) % 4], number.get(ahead, number[x, y, d])]
    n = len(after)
    return eo.MDP(csr_array((np.ones(n), after, np.arange(n + 1)), shape=(n, n // 3)))


def views(kind: str) -> np.ndarray:
    """``(S, h, w, 3)`` what MiniGrid shows in each state: the whole map, or what lies before the agent."""
    from minigrid.wrappers import RGBImgObsWrapper, RGBImgPartialObsWrapper

    env = minigrid()
    show = RGBImgObsWrapper(env, 4) if kind == "map" else RGBImgPartialObsWrapper(env, 6)
    seen = []
    for x, y, d in headings():
        env.unwrapped.agent_pos, env.unwrapped.agent_dir = (x, y), d
        seen.append(show.observation(env.unwrapped.gen_obs())["image"])
    return np.stack(seen)


@cache
def grid(name: str) -> eo.MDP:
    """The largest connected part of a grid, without start and goal."""
    if name == "MiniGrid":
        return turning()
    whole = eo.maze(rooms_map(3, 3, size=5) if name == "nine rooms" else GRIDS / f"{name}.txt")
    part = connected_components(eo.graph(whole))[1]
    cells = whole.coords[part == np.bincount(part).argmax()]
    text = np.full(cells.max(axis=0) + 1, "X")
    text[tuple(cells.T)] = " "
    found = eo.maze("\n".join("".join(row) for row in text))
    return eo.MDP(found.transition, coords=found.coords)


@cache
def truth(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Values ``(S,)`` and vectors of I - P of the uniform random walk."""
    mdp = grid(name)
    P = mdp.transition.toarray().reshape(mdp.n_states, mdp.n_actions, -1).mean(axis=1)
    return np.linalg.eigh(np.eye(len(P)) - P)


def frames(mdp: eo.MDP, side: int | None) -> np.ndarray:
    """``(S, h, w)`` one grey image per state: walls dark, the agent bright; one pixel per cell, or `side` x `side`."""
    cells = mdp.coords - mdp.coords.min(axis=0) + 1
    h, w = cells.max(axis=0) + 2
    image = np.zeros((h, w), dtype=np.uint8)
    image[tuple(cells.T)] = 100
    images = np.repeat(image[None], len(cells), axis=0)
    images[np.arange(len(cells)), *cells.T] = 255
    if side is None:
        return images
    rows, columns = (np.arange(side) * n // side for n in (h, w))
    return images[:, rows][:, :, columns]


@cache
def noise_pool() -> np.ndarray:
    """Many values of noise, of which each frame takes a window at a place of its own."""
    return (np.random.default_rng(0).standard_normal(1 << 24, dtype=np.float32) * (255 * NOISE)).astype(
        np.int16
    )


def noisy(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Grey images with noise of their own, so that none occurs twice."""
    windows = np.lib.stride_tricks.sliding_window_view(noise_pool(), images[0].size)
    added = windows[rng.integers(len(windows), size=len(images))].reshape(images.shape)
    return np.clip(images + added, 0, 255).astype(np.uint8)


def recorded(images: np.ndarray, steps: eo.Transitions, rng: np.random.Generator) -> Dataset:
    """Each frame as it was recorded, with its own noise: what follows a transition is seen once."""
    linked = np.arange(len(steps)) % EPISODE > 0
    first = np.cumsum(~linked)
    after = np.arange(len(steps)) + first
    state = np.empty(after[-1] + 1, dtype=np.int64)
    state[after], state[after - 1] = steps.next_obs, steps.obs
    seen = np.empty((len(state), *images.shape[1:]), dtype=np.uint8)
    for low in range(0, len(seen), 512):
        seen[low : low + 512] = noisy(images[state[low : low + 512]], rng)
    return Dataset(seen, after - 1, after, steps.action, steps.terminated)


def observed(name: str, kind: str) -> np.ndarray:
    if name == "MiniGrid":
        return views(kind)
    mdp = grid(name)
    return mdp.coords.astype(float) if kind == "xy" else frames(mdp, None if kind == "pixel" else SIDE)


def dataset(name: str, kind: str, seed: int, transitions: int) -> Dataset:
    steps = walk(grid(name), transitions, rng=seed, max_episode_steps=EPISODE)
    if kind == "noise":
        return recorded(observed(name, kind), steps, np.random.default_rng(seed))
    return Dataset(observed(name, kind), steps.obs, steps.next_obs, steps.action, steps.terminated)


def cosines(name: str, functions: np.ndarray) -> list[float]:
    """Of each function ``(S, K)`` with the eigenspace of its eigenvalue."""
    values, vectors = truth(name)
    f = functions - functions.mean(axis=0)
    f = f / np.maximum(np.linalg.norm(f, axis=0), 1e-300)
    wanted = [vectors[:, np.abs(values - values[i + 1]) < 1e-9] for i in range(f.shape[1])]
    return [float(np.linalg.norm(V.T @ f[:, i])) for i, V in enumerate(wanted)]


def span(name: str, functions: np.ndarray) -> float:
    """Share of the span of the true eigenfunctions that functions ``(S, K)`` and a constant span."""
    V = truth(name)[1][:, 1 : functions.shape[1] + 1]
    q = np.linalg.qr(functions - functions.mean(axis=0))[0]
    return float(np.linalg.norm(q.T @ V) ** 2 / V.shape[1])
