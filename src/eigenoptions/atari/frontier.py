"""The states of a game that options stand in, and those they can reach within a few steps: a small exact MDP.

A `Node` is a state, an `Edge` what an action does there. Equal states, told by the emulator's own bytes, are one node.
States ahead that were tried for one decision serve the next; those that nobody can reach any more are let go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.atari.coding import Potentials
from eigenoptions.atari.emulator import Emulator

MOST_STATES = 50_000  # kept at once, when looking several steps ahead: about 8 kB each

Bytes = NDArray[np.uint8]


class Node:
    """A state of the game.

    Attributes
    ----------
    state, ram, lives
        As the emulator gives them.
    edges
        One for each action; empty before the state was tried.
    after
        ``(A, 128)`` the memory that each action leads to, once it was tried.
    """

    __slots__ = ("after", "edges", "lives", "ram", "state")

    def __init__(self, state: Any, ram: Bytes, lives: int) -> None:
        self.state, self.ram, self.lives = state, ram, lives
        self.edges: tuple[Edge, ...] = ()
        self.after: Bytes


@dataclass(slots=True)
class Edge:
    """What an action does in a state.

    Attributes
    ----------
    to
        The state it leads to.
    rewards
        Of the game, one for each frame that was played.
    rams
        The memory after each of these frames.
    ended
        Whether the roll-out ends there.
    lost
        The first frame at which a life was lost, or -1.
    """

    to: Node
    rewards: tuple[float, ...]
    rams: tuple[Bytes, ...]
    ended: bool
    lost: int


class Frontier:
    """The distinct states of the present frame: its `nodes`, in order of arrival."""

    def __init__(self, emulator: Emulator, state: Any, hold: int, depth: int, one_life: bool) -> None:
        self.emulator, self.hold, self.depth, self.one_life = emulator, hold, depth, one_life
        emulator.restore(state)
        if emulator.over:
            raise ValueError("the game is over in this state: give one from which it goes on")
        self.nodes = [Node(state, emulator.ram(), emulator.lives)]

    def __len__(self) -> int:
        return len(self.nodes)

    def expand(self) -> None:
        """Try every action in every state that lies less than `depth` steps ahead and was not tried before."""
        layer: Iterable[Node] = self.nodes
        held = 0
        for ahead in range(self.depth):
            known: dict[int, list[Node]] = {}
            reached: dict[int, Node] = {}
            for node in layer:
                if not node.edges:
                    self._try(node)
                    if self.depth > 1:  # one step ahead only states that are taken need to be told apart
                        for edge in node.edges:
                            edge.to = self._merged(edge.to, known)
                if ahead < self.depth - 1:
                    reached.update((id(edge.to), edge.to) for edge in node.edges if not edge.ended)
                held += 1
                if self.depth > 1 and held + len(known) > MOST_STATES:
                    raise ValueError(
                        f"looking {self.depth} steps ahead from {len(self)} states reaches more than "
                        f"{MOST_STATES} states: lower depth, or roll out fewer options at a time"
                    )
            layer = reached.values()

    def advance(self, edges: list[Edge]) -> NDArray[np.intp]:
        """Go along these edges; the number of the state, in the new frontier, that each leads to."""
        known: dict[int, list[Node]] = {}
        place: dict[int, int] = {}
        number = np.empty(len(edges), dtype=np.intp)
        nodes: list[Node] = []
        for i, edge in enumerate(edges):
            node = self._merged(edge.to, known)
            number[i] = place.setdefault(id(node), len(nodes))
            if number[i] == len(nodes):
                nodes.append(node)
        self.nodes = nodes
        return number

    def _merged(self, node: Node, known: dict[int, list[Node]]) -> Node:
        """The first node seen in this state; `known` are those seen, by a hash of their bytes.

        The bytes of a state are as large as the state, so they are made again to compare and not kept.
        """
        key = self.emulator.key(node.state)
        alike = known.setdefault(hash(key), [])
        for other in alike:
            if other is node or self.emulator.key(other.state) == key:
                return other
        alike.append(node)
        return node

    def edge(self, number: int, action: int, frames: int) -> Edge:
        """What an action does in one of the states: as it was tried, or else held now for so many frames."""
        node = self.nodes[number]
        return node.edges[action] if node.edges else held(self.emulator, node, action, frames, self.one_life)

    def _try(self, node: Node) -> None:
        actions = range(self.emulator.n_actions)
        node.edges = tuple(held(self.emulator, node, a, self.hold, self.one_life) for a in actions)
        node.after = np.stack([edge.rams[-1] for edge in node.edges])


def held(emulator: Emulator, node: Node, action: int, frames: int, one_life: bool) -> Edge:
    """Hold an action in a state for some frames, or until the roll-out ends; the emulator is left there."""
    emulator.restore(node.state)
    rewards: tuple[float, ...] = ()
    rams: tuple[Bytes, ...] = ()
    lost, ended = -1, False
    while len(rams) < frames and not ended:
        rewards += (emulator.act(action),)
        rams += (emulator.ram(),)
        lives = emulator.lives
        if lives < node.lives and lost < 0:
            lost = len(rams) - 1
        ended = emulator.over or (one_life and lost >= 0)
    return Edge(Node(emulator.save(), rams[-1], lives), rewards, rams, ended, lost)


def myopic(
    nodes: list[Node], potentials: Potentials, options: NDArray[np.intp], bounds: NDArray[np.intp]
) -> NDArray[np.float64]:
    """``(k, A)`` what each action is worth to each option one step ahead, the paper's way; see `Potentials.gains`."""
    here, there = np.stack([node.ram for node in nodes]), np.stack([node.after for node in nodes])
    return potentials.gains(here, there, options, bounds)


def plan(
    node: Node, potentials: Potentials, group: NDArray[np.intp], depth: int, gamma: float
) -> NDArray[np.float64]:
    """``(k, A)`` what each action is worth to the options of `group`, `depth` steps ahead (backward induction).

    ``q(s, a) = r + gamma max(0, max_a' q(s', a'))``: at every step ahead an option may stop, which is worth 0.
    """
    layers = [[node]]
    steps = []  # (N, A) where each action leads in the next layer, and whether it goes on from there
    for _ in range(depth):
        ahead: dict[int, tuple[int, Node]] = {}
        for here in layers[-1]:
            for edge in here.edges:
                ahead.setdefault(id(edge.to), (len(ahead), edge.to))
        if not ahead:  # the roll-out is over whatever is done
            break
        n_actions = len(node.edges)
        to = np.zeros((len(layers[-1]), n_actions), dtype=np.intp)
        goes_on = np.zeros((len(layers[-1]), n_actions), dtype=np.bool_)
        for i, here in enumerate(layers[-1]):
            if here.edges:
                to[i] = [ahead[id(edge.to)][0] for edge in here.edges]
                goes_on[i] = [not edge.ended for edge in here.edges]
        steps.append((to, goes_on))
        layers.append([there for _, there in ahead.values()])
    value = np.zeros((len(group), len(layers[-1])))
    potential = _potential(node, layers[-1], potentials, group)
    for layer, (to, goes_on) in zip(layers[-2::-1], steps[::-1], strict=True):
        before = _potential(node, layer, potentials, group)
        q = potential[:, to] - before[:, :, None] + gamma * np.where(goes_on, value[:, to], 0.0)
        tried = np.array([bool(here.edges) for here in layer])  # others end the roll-out
        value = np.where(tried, np.maximum(q.max(axis=2), 0.0), 0.0)
        potential = before
    return q[:, 0]


def _potential(
    root: Node, layer: list[Node], potentials: Potentials, group: NDArray[np.intp]
) -> NDArray[np.float64]:
    """``(k, N)`` potentials of the nodes, less that of the root."""
    there = np.stack([node.ram for node in layer])
    return potentials.gains(root.ram[None], there[None], group, [0, len(group)])
