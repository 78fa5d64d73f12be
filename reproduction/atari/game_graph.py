"""The graph of a game: its states as an ordinary MDP, for planning (paper, Sections 3 and 5.2).

Looking one step ahead does not lead around a wall. `explore_game` explores a game breadth first, and distinguishes
states by a few key bytes of memory; `plan` finds the optimal options of directions in memory on the resulting table,
and `follow` plays them in the real game.

The graph is an approximation. What is not in the key (cars, ghosts, skulls, clocks, dots eaten) is that of the first
emulator state seen in a graph state; only if no action leads elsewhere from it, the next one is tried. In the game
options do not always arrive where the table predicts, but they look again after every action.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions.atari import Emulator, Ram
from eigenoptions.atari.emulator import Bytes
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet, Purpose
from eigenoptions.options.solver import solve
from reproduction.atari.games import get_game
from reproduction.atari.rollouts import Node, Rollouts, roll_out, round_to_grid
from reproduction.atari.starts import Start


@dataclass(frozen=True, eq=False)
class GameGraph:
    """States of a game that have different key bytes, and where actions lead.

    An action that loses a life, or leads out of a graph that is full, stays in its state in the table: that has no
    value, so no optimal option takes it, and it is no edge.
    """

    game: str
    mdp: MDP  # an action is one of the game's, repeated for `frame_skip` frames
    ram: Bytes  # (S, 128) memory of the emulator state that represents each state
    loses_life: NDArray[np.bool_]  # (S, A)
    leaves_graph: NDArray[np.bool_]  # (S, A)
    starts: tuple[int, ...]  # the state of each start
    frame_skip: int
    key_bytes: tuple[int, ...]

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        return {key.tobytes(): i for i, key in enumerate(self.ram[:, list(self.key_bytes)])}

    def locate(self, ram: Bytes) -> int:
        """The state with this memory ``(128,)``, or the most similar one.

        That is the one with the fewest unequal key bytes beside the player's position, then the smallest distance of
        positions (the largest difference of a byte), then the smallest number.
        """
        key = ram[list(self.key_bytes)]
        number = self._numbers.get(key.tobytes(), -1)
        if number >= 0:
            return number
        is_position = np.isin(self.key_bytes, get_game(self.game).position)
        apart = np.abs(self.ram[:, list(self.key_bytes)].astype(np.int64) - key)
        unequal = (apart[:, ~is_position] > 0).sum(axis=1)
        return int((apart[:, is_position].max(axis=1) + 256 * unequal).argmin())


def explore_game(
    game: str,
    starts: Sequence[Start],
    *,
    frame_skip: int = 8,
    max_states: int = 2_000,
    max_tries: int = 4,
) -> GameGraph:
    """Explore a game breadth first from all starts at once: every action, for `frame_skip` frames, in every state.

    States are distinguished by the player's position and the game's context. Of each graph state up to `max_tries`
    emulator states are tried, as long as none of them can leave it. In Freeway the key is the chicken's height:

    >>> heights = explore_game("Freeway", [Start("Freeway", (0,) * 60, (14,), (6,))], max_states=8)
    >>> heights.ram[:, 14].tolist(), heights.mdp.successors[0].tolist()
    ([6, 14, 22, 30, 38, 46, 54, 62], [0, 1, 0])
    """
    emulator, known = Emulator(game), get_game(game)
    key = sorted({*known.position, *known.context})
    numbers: dict[bytes, int] = {}
    rams: list[Bytes] = []
    tries: list[int] = []
    # Graph states that need another emulator state, since no action leads elsewhere from those tried.
    stuck: set[int] = set()
    queue: deque[tuple[int, Node]] = deque()

    def visit(node: Node) -> int:
        """The number of a node's state, -1 where it is new and the graph is full; queues the node if it is needed."""
        name = node.ram[key].tobytes()
        number = numbers.get(name, -1)
        if number < 0 and len(rams) < max_states:
            number = numbers[name] = len(rams)
            rams.append(node.ram)
            tries.append(0)
            stuck.add(number)
        if number in stuck:
            stuck.remove(number)
            tries[number] += 1
            queue.append((number, node))
        return number

    first = []
    for start in starts:
        emulator.replay(start.actions)
        first.append(visit(Node(emulator.save(), emulator.ram())))
    rows: dict[int, NDArray[np.int64]] = {}
    while queue:
        here, node = queue.popleft()
        # Of each action: the next state, whether a life is lost, whether it leads out of the graph.
        row = np.full((3, emulator.n_actions), [[here], [0], [0]])
        for action, step in enumerate(emulator.try_actions(node.state, frame_skip, one_life=True)):
            there = -1 if step.ended else visit(Node(emulator.save(), step.rams[-1]))
            row[:, action] = here if there < 0 else there, step.ended, there < 0 and not step.ended
        leaves = (row[0] != here).any() or row[2].any()
        if leaves or here not in rows:
            rams[here], rows[here] = node.ram, row
        if not leaves and tries[here] < max_tries:
            stuck.add(here)
    ram = np.stack(rams)
    successors, loses_life, leaves_graph = np.stack([rows[i] for i in range(len(ram))], axis=1)
    coords = np.rint(known.to_screen(ram[:, list(known.position)])).astype(np.int64)[:, ::-1]
    mdp = MDP.from_successors(successors, coords=coords, start=first[0], name=emulator.game)
    flags = loses_life.astype(bool), leaves_graph.astype(bool)
    return GameGraph(emulator.game, mdp, ram, *flags, tuple(first), frame_skip, tuple(key))


def plan(graph: GameGraph, directions: ArrayLike, features: Ram, gamma: float = 0.9) -> OptionSet:
    """Optimal options in a game graph for the potentials ``e . phi(ram)`` of directions ``(n, d)`` in memory.

    >>> heights = explore_game("Freeway", [Start("Freeway", (0,) * 60, (14,), (6,))], max_states=8)
    >>> plan(heights, [[1.0], [-1.0]], Ram("bytes", addresses=(14,))).policy.tolist()
    [[1, 1, 1, 1, 1, 1, 1, -1], [-1, 2, 2, 2, 2, 2, 2, 2]]
    """
    potentials = round_to_grid(directions, features) @ features(graph.ram).astype(np.float64).T
    return solve(graph.mdp, [Purpose(f, f"d{i + 1}", exact=True) for i, f in enumerate(potentials)], gamma)


def follow(
    emulator: Emulator, state: Any, graph: GameGraph, options: OptionSet, frames: int, **rules: Any
) -> Rollouts:
    """Follow options of a game graph in the real game, all from one state; see `roll_out`.

    After every step each option takes its action in the state of the present memory, or in the most similar one. Where
    it terminates nothing is done for one step.
    """

    def choose(nodes: list[Node], at: NDArray[np.intp], live: NDArray[np.intp], t: int) -> NDArray[np.intp]:
        states = np.array([graph.locate(node.ram) for node in nodes])
        actions: NDArray[np.intp] = options.policy[live, states[at]].astype(np.intp)
        return actions

    return roll_out(emulator, state, len(options), choose, frames, frame_skip=graph.frame_skip, **rules)
