"""Planning with gamma > 0: eigenoptions of a game on a graph of its merged states (beyond the paper's Section 5.2).

The paper approximates options by one step of look-ahead, gamma = 0. Here states that agree in a few *key* bytes (the
player's place, direction and the like) are one node, so that the states within reach are a finite MDP, found breadth
first from the starts with actions held for some frames. On it an option is solved as in the tabular case: reward
``e . (phi(s') - phi(s))``, TERMINATE worth 0, value iteration. Its policy is then followed in the real emulator,
closed loop: key, node, action. Where the game does otherwise than the node (ghosts, clocks), the emulator is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.atari.emulator import Emulator
from eigenoptions.atari.lockstep import Rollouts

Array = NDArray[np.float64]
Bytes = NDArray[np.uint8]
LOST, UNKNOWN = -1, -2  # in `Graph.step`: a life is lost there; nobody has tried
SWEEPS = 200  # of value iteration, at most
CLOSE = 1e-4  # of a potential's standard deviation: values that change less are solved, and less is no reason to act


@dataclass(frozen=True, eq=False)
class Graph:
    """States of a game, merged by key bytes.

    Attributes
    ----------
    ram
        ``(N, 128)`` memory of the state that first reached each node.
    step
        ``(N, A)`` node that each action leads to, LOST, or UNKNOWN.
    key
        Addresses of the key bytes.
    actions
        ``(A,)`` numbers of the actions that were tried, the first of them NOOP.
    """

    ram: Bytes
    step: NDArray[np.int64]
    key: tuple[int, ...]
    actions: tuple[int, ...]

    def nodes(self) -> dict[bytes, int]:
        """Numbers of nodes by their key bytes."""
        return {row.tobytes(): i for i, row in enumerate(self.ram[:, list(self.key)])}


def explore(
    emulator: Emulator,
    states: Sequence[Any],
    key: Sequence[int],
    hold: int,
    actions: Sequence[str],
    most: int,
) -> Graph:
    """Try actions, breadth first from some states, until nothing is new or `most` nodes have been tried."""
    numbers = tuple(emulator.actions.index(name) for name in actions)
    where, found, ram, saved = list(key), dict[bytes, int](), list[Bytes](), list[Any]()

    def node(memory: Bytes) -> int:
        text = memory[where].tobytes()
        if text not in found:
            found[text] = len(ram)
            ram.append(memory)
            saved.append(emulator.save())
        return found[text]

    for state in states:
        emulator.restore(state)
        node(emulator.ram())
    step: list[list[int]] = []
    while len(step) < min(len(ram), most):
        here = saved[len(step)]
        saved[len(step)] = None
        step.append([])
        for action in numbers:
            emulator.restore(here)
            lives = emulator.lives
            for _ in range(hold):
                emulator.act(action)
            lost = emulator.over or emulator.lives < lives
            step[-1].append(LOST if lost else node(emulator.ram()))
    step += [[UNKNOWN] * len(numbers)] * (len(ram) - len(step))
    return Graph(np.stack(ram), np.array(step, dtype=np.int64), tuple(where), numbers)


def plan(potential: Array, step: NDArray[np.int64], gamma: float) -> NDArray[np.int8]:
    """``(N, K)`` the best action of each of K options at each node, or -1 where none is worth more than stopping.

    ``q(s, a) = f(s') - f(s) + gamma max(0, max_a' q(s', a'))``; losing a life is not considered.

    Parameters
    ----------
    potential
        ``(N, K)`` f; each is scaled to standard deviation 1, which changes no policy.
    step
        ``(N, A)`` see `Graph`.
    gamma
        Discount of one step.

    Examples
    --------
    A row of four nodes, actions left and right: with gamma 0.9 a small hill on the way does not stop the option.

    >>> step = np.array([[0, 1], [0, 2], [1, 3], [2, 3]])
    >>> hill = np.array([[0.0], [1.0], [0.5], [3.0]])
    >>> plan(hill, step, 0.0).T.tolist(), plan(hill, step, 0.9).T.tolist()
    ([[1, -1, 1, -1]], [[1, 1, 1, -1]])
    """
    spread = potential.std(axis=0)
    # Rounded, so that the order in which a library sums products cannot turn a decision.
    f = np.round(potential / np.where(spread > 0, spread, 1.0), 9)
    value = np.zeros_like(f)
    for _ in range(SWEEPS):
        best, action = _best(f, f + gamma * value, step)
        new = np.maximum(best, 0.0)
        change = np.abs(new - value).max()
        value = new
        if gamma == 0 or change < CLOSE:
            break
    best, action = _best(f, f + gamma * value, step)
    return np.where(best > CLOSE, action, -1).astype(np.int8)


def _best(f: Array, ahead: Array, step: NDArray[np.int64]) -> tuple[Array, NDArray[np.int8]]:
    best, action = np.full(f.shape, -np.inf), np.full(f.shape, -1, dtype=np.int8)
    for a in range(step.shape[1]):
        known = step[:, a] >= 0
        q = np.where(known[:, None], ahead[np.maximum(step[:, a], 0)], -np.inf)
        better = q > best
        best[better], action[better] = q[better], a
    return best - f, action


def follow(
    emulator: Emulator,
    state: Any,
    graph: Graph,
    policy: NDArray[np.int8],
    frames: int,
    *,
    hold: int,
    until: str,
    watch: Sequence[int],
) -> Rollouts:
    """Follow K policies in the emulator, in lock step; where the node is not known or nothing is worth it, NOOP."""
    n, watching = policy.shape[1], list(watch)
    nodes, key = graph.nodes(), list(graph.key)
    actions = np.full((n, frames), -1, dtype=np.int8)
    watched = np.zeros((n, frames, len(watching)), dtype=np.uint8)
    stopped = np.zeros((n, frames), dtype=np.bool_)
    score, length, died = np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    width = np.zeros(frames, dtype=np.int64)
    before = emulator.acts
    emulator.restore(state)
    front = [(state, emulator.ram(), np.arange(n))]
    for t in range(0, frames, hold):
        end = min(t + hold, frames)
        width[t:end] = len(front)
        merged: dict[bytes, tuple[Any, Bytes, list[NDArray[np.intp]]]] = {}
        for here, memory, options in front:
            number = nodes.get(memory[key].tobytes(), -1)
            wanted = policy[number, options] if number >= 0 else np.full(len(options), -1)
            stopped[options[wanted < 0], t:end] = True
            for choice in np.unique(np.maximum(wanted, 0)).tolist():
                who = options[np.maximum(wanted, 0) == choice]
                emulator.restore(here)
                lives, over = emulator.lives, False
                for frame in range(t, end):
                    score[who] += emulator.act(graph.actions[choice])
                    actions[who, frame], watched[who, frame] = graph.actions[choice], emulator.ram()[watching]
                    length[who] += 1
                    lost = emulator.lives < lives
                    died[who] |= lost
                    over = emulator.over or (until == "life" and lost)
                    if over:
                        break
                if not over:
                    saved = emulator.save()
                    merged.setdefault(emulator.key(saved), (saved, emulator.ram(), []))[2].append(who)
        front = [(saved, memory, np.concatenate(who)) for saved, memory, who in merged.values()]
        if not front:
            break
    emulator.restore(state)
    return Rollouts(actions, watched, stopped, score, length, died, emulator.acts - before, width)
