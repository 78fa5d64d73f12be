"""A graph of a game, on which options are planned.

Its states differ in a few key bytes of memory, and it is an ordinary MDP. It is an
approximation: what is not in the key (cars, ghosts, clocks, dots eaten) is that of the
first emulator state seen in a graph state. Options look again after every action.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from eigenoptions._types import FloatArray, IndexArray
from eigenoptions.atari import Emulator, Ram
from eigenoptions.atari.emulator import Bytes
from eigenoptions.mdp import MDP
from eigenoptions.options import Purpose
from eigenoptions.options.solver import solve
from reproduction.atari.games import Game, get_game
from reproduction.atari.rollouts import Choose, Node, round_to_grid


class GameGraph(NamedTuple):
    """States of a game that have different key bytes, and where actions lead.

    An action that loses a life, or leads out of a graph that is full, stays in its
    state in the table: that has no value, so no optimal option takes it, and it is no
    edge.

    Attributes
    ----------
    game : Game
        The game.
    mdp : MDP
        Where actions lead.
    ram : array, shape (S, 128)
        Memory of the emulator state that represents each state.
    """

    game: Game
    mdp: MDP
    ram: Bytes

    def locate(self, ram: Bytes) -> int:
        """The state with this memory ``(128,)``, or the most similar one.

        The most similar state has the least other context, then the least distance.
        """
        context = list(self.game.context)
        position = list(self.game.position)
        n_unequal = (self.ram[:, context] != ram[context]).sum(axis=1)
        offsets = self.ram[:, position].astype(np.int64) - ram[position]
        distance = np.abs(offsets).max(axis=1)
        return int((distance + 256 * n_unequal).argmin())


def explore_game(
    game: str, starts: Sequence[Sequence[int]], frame_skip: int, max_states: int
) -> GameGraph:
    """Explore a game breadth first from all starts: every action in every state.

    Parameters
    ----------
    game : str
        Name of the game.
    starts : sequence of sequences of int
        The actions that lead to each start.
    frame_skip : int
        Frames for which an action is repeated.
    max_states : int
        States of the graph, at most.
    """
    emulator = Emulator(game)
    search = _Search(emulator, get_game(game), max_states)
    for actions in starts:
        emulator.replay(actions)
        search.visit(emulator.ram())

    while search.queue:
        number, state, ram = search.queue.popleft()
        reached = []
        for step in emulator.try_actions(state, frame_skip, one_life=True):
            reached.append(number if step.ended else search.visit(step.rams[-1]))
        search.close(number, ram, reached)

    successors = [search.successors[number] for number in range(len(search.rams))]
    mdp = MDP.from_successors(np.array(successors))
    return GameGraph(search.game, mdp, np.stack(search.rams))


class _Search:
    """What an exploration has seen.

    Up to four emulator states are tried of a graph state, as long as none of them can
    leave it.
    """

    def __init__(self, emulator: Emulator, game: Game, max_states: int) -> None:
        self.emulator = emulator
        self.game = game
        self.max_states = max_states
        self.key = [*game.position, *game.context]
        # Graph states by their key bytes, the memory that represents each, and where
        # its actions lead.
        self.numbers: dict[bytes, int] = {}
        self.rams: list[Bytes] = []
        self.successors: dict[int, list[int]] = {}
        # Emulator states that wait for their actions to be tried, and how many were
        # tried of each graph state.
        self.queue: deque[tuple[int, Any, Bytes]] = deque()
        self.tries: list[int] = []
        # Graph states that need another emulator state, since no action leads elsewhere
        # from those tried.
        self.stuck: set[int] = set()

    def visit(self, ram: Bytes) -> int:
        """The number of the emulator's present state; queues it if it is needed.

        It is -1 where the state is new and the graph is full.
        """
        key = ram[self.key].tobytes()
        number = self.numbers.get(key, -1)
        if number < 0 and len(self.rams) < self.max_states:
            number = len(self.rams)
            self.numbers[key] = number
            self.rams.append(ram)
            self.tries.append(0)
            self.stuck.add(number)

        if number in self.stuck:
            self.stuck.remove(number)
            self.tries[number] += 1
            self.queue.append((number, self.emulator.save(), ram))
        return number

    def close(self, number: int, ram: Bytes, reached: Sequence[int]) -> None:
        """Note where the actions of an emulator state lead."""
        leaves = any(successor != number for successor in reached)
        if leaves or number not in self.successors:
            self.rams[number] = ram
            # An action that leads out of the graph stays in its state.
            self.successors[number] = [
                number if successor < 0 else successor for successor in reached
            ]
        if not leaves and self.tries[number] < 4:
            self.stuck.add(number)


def plan_options(
    directions: ArrayLike, features: Ram, graph: GameGraph, gamma: float = 0.9
) -> Choose:
    """The optimal options in a game graph for the potentials ``e . phi(ram)``.

    After every step each option takes its action in the state of the present memory, or
    in the most similar one. Where it terminates nothing is done for one step.

    Parameters
    ----------
    directions : array_like, shape (n, d)
        The vectors e.
    features : Ram
        The map phi.
    graph : GameGraph
        The graph.
    gamma : float, default=0.9
        Discount of the options.
    """
    phi: FloatArray = features(graph.ram).astype(np.float64)
    potentials = round_to_grid(directions, features) @ phi.T
    purposes = [
        Purpose(potential, f"d{number}", exact=True)
        for number, potential in enumerate(potentials, start=1)
    ]
    policy = solve(graph.mdp, purposes, gamma).policy

    def choose(
        nodes: list[Node], at: IndexArray, running: IndexArray, frame: int
    ) -> IndexArray:
        states = np.array([graph.locate(node.ram) for node in nodes])
        actions: IndexArray = policy[running, states[at]].astype(np.intp)
        return np.maximum(actions, 0)

    return choose
