"""Roll-outs of many options from one state of a game, in lock step (paper, Section 5.2).

Options in equal states that take equal actions share one edge of a tree, which is emulated once; equal states, by the
emulator's own bytes, are one `Node`. The work grows with the number of states, not of options.

An option of the paper looks one step ahead. TERMINATE has value 0; the paper does not define what follows when no
action is positive, and in these games that happens every second frame. As in the published program, nothing is done for
one step, and the option goes on.

Looking one step ahead does not lead around a wall. So options can also be planned on a graph of the game, an ordinary
MDP whose states differ in a few key bytes of memory. It is an approximation: what is not in the key (cars, ghosts,
clocks, dots eaten) is that of the first emulator state seen in a graph state. Options look again after every action.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions._ties import COMPUTED_TOLERANCE
from eigenoptions.atari import Emulator, Ram
from eigenoptions.atari.emulator import Bytes, Step
from eigenoptions.mdp import MDP
from eigenoptions.options import Purpose
from eigenoptions.options.solver import choose_actions, solve
from reproduction.atari.games import Game, get_game

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rollouts:
    """What n options did, frame by frame."""

    start: NDArray[np.uint8]  # (w,) the watched bytes before the first action
    actions: NDArray[np.int8]  # (n, frames) the action taken, -1 after the end
    watched: NDArray[np.uint8]  # (n, frames, w) the watched bytes after it, then 0
    score: Array  # (n,) sum of the game's rewards
    length: NDArray[np.int64]  # (n,) frames that were played
    died: NDArray[np.bool_]  # (n,) whether a life was lost


@dataclass(slots=True, eq=False)
class Node:
    """A state of an emulator with its memory ``(128,)``, and what is known of its actions."""

    emulator: Emulator
    frame_skip: int
    state: Any
    ram: Bytes
    edges: dict[int, tuple[Step, Node]] = field(default_factory=dict)

    def take(self, action: int) -> tuple[Step, Node]:
        """What happens while an action is repeated for `frame_skip` frames, and where it leads; emulated once."""
        if action not in self.edges:
            self.emulator.restore(self.state)
            step = self.emulator.step(action, self.frame_skip, one_life=True)
            node = Node(
                self.emulator, self.frame_skip, self.emulator.save(), step.rams[-1]
            )
            self.edges[action] = step, node
        return self.edges[action]


# From nodes, the index of each option's node, the numbers of the options, and the frame, to the actions of the options.
Choose = Callable[
    [list[Node], NDArray[np.intp], NDArray[np.intp], int], NDArray[np.intp]
]


def roll_out(
    emulator: Emulator,
    n: int,
    choose: Choose,
    frames: int,
    watch: Sequence[int],
    frame_skip: int = 1,
) -> Rollouts:
    """Follow n options from the present state, at most so many frames or until a life is lost.

    `choose` chooses their actions, each of which is repeated for `frame_skip` frames. `watch` are addresses to log.
    """
    log = Rollouts(
        emulator.ram()[list(watch)],
        np.full((n, frames), -1, dtype=np.int8),
        np.zeros((n, frames, len(watch)), dtype=np.uint8),
        np.zeros(n),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.bool_),
    )
    nodes = [Node(emulator, frame_skip, emulator.save(), emulator.ram())]
    live, at = np.arange(n), np.zeros(n, dtype=np.intp)
    for t in range(0, frames, frame_skip):
        if not len(live):
            break
        # Each pair of a node and an action is emulated once.
        chosen = at * emulator.n_actions + choose(nodes, at, live, t)
        pairs, pair_index = np.unique(chosen, return_inverse=True)
        numbers: dict[bytes, int] = {}
        next_nodes: list[Node] = []
        next_at = np.full(len(pairs), -1)
        for i, (index, action) in enumerate(
            divmod(pair, emulator.n_actions) for pair in pairs.tolist()
        ):
            step, node = nodes[index].take(action)
            options, played = live[pair_index == i], min(len(step.rams), frames - t)
            log.actions[options, t : t + played] = action
            log.watched[options, t : t + played] = np.stack(step.rams[:played])[
                :, list(watch)
            ]
            log.score[options] += sum(step.rewards[:played])
            log.length[options] += played
            log.died[options] |= 0 <= step.life_lost < played
            # Equal states become one node; options that came to their end have none.
            if not step.ended:
                next_at[i] = numbers.setdefault(emulator.key(node.state), len(numbers))
                if next_at[i] == len(next_nodes):
                    next_nodes.append(node)
        nodes, at = next_nodes, next_at[pair_index]
        live, at = live[at >= 0], at[at >= 0]
    return log


def look_ahead(
    directions: ArrayLike, features: Ram, *, published: bool = False
) -> Choose:
    """Options that take ``argmax_a e . (phi(s') - phi(s))``, by trying every action.

    `directions` ``(n, d)`` are the vectors e, and `features` the map phi. If `published`, then with a fault of the
    authors' program: it compares what an action leads to with what the last action tried at the frame before led to,
    instead of with the present state, and every reward above 0 counts, also rounding noise.

    One option prefers a large number in byte 14, the chicken's height; the other a small one:

    >>> options = look_ahead([[1.0], [-1.0]], Ram("bytes", addresses=(14,)))
    >>> roll_out(Emulator("Freeway"), 2, options, 30, (14,)).watched[:, -1, 0].tolist()
    [36, 6]
    """
    e = round_to_grid(directions, features)
    near_tie = (0.0 if published else COMPUTED_TOLERANCE) * np.abs(e).max(axis=1)
    # By how much the state that the published program compares with is better than the present one.
    offset = np.zeros(len(e))

    def choose(
        nodes: list[Node], at: NDArray[np.intp], live: NDArray[np.intp], t: int
    ) -> NDArray[np.intp]:
        q = np.empty((len(live), nodes[0].emulator.n_actions))
        for i, node in enumerate(nodes):
            reached = [node.take(action)[1].ram for action in range(q.shape[1])]
            phi = features(np.stack([node.ram, *reached])).astype(float)
            q[at == i] = e[live[at == i]] @ (phi[1:] - phi[0]).T
        # Where no action is better, an option does nothing: action 0.
        actions = np.maximum(choose_actions(q - offset[live, None], near_tie[live]), 0)
        if published:
            offset[live] = q[:, -1] - q[np.arange(len(live)), actions]
        return actions

    return choose


def round_to_grid(directions: ArrayLike, features: Ram) -> Array:
    """Directions ``(n, d)``, each rounded to multiples of a power of two, so that sums of rewards are exact.

    The order of summation, and with it the number of options at once, then cannot change a decision. The step is at
    most 2^-51 of the sum of the absolute entries (2^-43 with code ``"bytes"``), far below the noise of an eigenvector.
    """
    e = np.asarray(directions, dtype=np.float64)
    # The sum is below 2^power, and features are multiples of 1, or of 2^-8.
    _, power = np.frexp(np.abs(e).sum(axis=1, keepdims=True))
    step = power - 52 + (8 if features.code == "bytes" else 0)
    return np.ldexp(np.rint(np.ldexp(e, -step)), step)


class GameGraph(NamedTuple):
    """States of a game that have different key bytes, and where actions lead.

    An action that loses a life, or leads out of a graph that is full, stays in its state in the table: that has no
    value, so no optimal option takes it, and it is no edge.
    """

    game: Game
    mdp: MDP
    ram: Bytes  # (S, 128) memory of the emulator state that represents each state

    def locate(self, ram: Bytes) -> int:
        """The state with this memory ``(128,)``, or the most similar one: least other context, then least distance."""
        position, context = list(self.game.position), list(self.game.context)
        unequal = (self.ram[:, context] != ram[context]).sum(axis=1)
        distance = np.abs(self.ram[:, position].astype(np.int64) - ram[position]).max(
            axis=1
        )
        return int((distance + 256 * unequal).argmin())


def explore_game(
    game: str, starts: Sequence[Sequence[int]], frame_skip: int, max_states: int
) -> GameGraph:
    """Explore a game breadth first from all starts at once: every action, for `frame_skip` frames, in every state.

    Up to four emulator states are tried of a graph state, as long as none of them can leave it.
    """
    emulator, known = Emulator(game), get_game(game)
    key = [*known.position, *known.context]
    numbers: dict[bytes, int] = {}
    rams: list[Bytes] = []
    tries: list[int] = []
    # Graph states that need another emulator state, since no action leads elsewhere from those tried.
    stuck: set[int] = set()
    queue: deque[tuple[int, Any, Bytes]] = deque()

    def visit(ram: Bytes) -> int:
        """The number of the emulator's state, -1 where it is new and the graph is full; queues it if it is needed."""
        number = numbers.get(ram[key].tobytes(), -1)
        if number < 0 and len(rams) < max_states:
            number = numbers[ram[key].tobytes()] = len(rams)
            rams.append(ram)
            tries.append(0)
            stuck.add(number)
        if number in stuck:
            stuck.remove(number)
            tries[number] += 1
            queue.append((number, emulator.save(), ram))
        return number

    for actions in starts:
        emulator.replay(actions)
        visit(emulator.ram())
    successors: dict[int, list[int]] = {}
    while queue:
        here, state, ram = queue.popleft()
        steps = emulator.try_actions(state, frame_skip, one_life=True)
        reached = [here if step.ended else visit(step.rams[-1]) for step in steps]
        leaves = any(there != here for there in reached)
        if leaves or here not in successors:
            rams[here], successors[here] = (
                ram,
                [here if there < 0 else there for there in reached],
            )
        if not leaves and tries[here] < 4:
            stuck.add(here)
    mdp = MDP.from_successors(np.array([successors[i] for i in range(len(rams))]))
    return GameGraph(known, mdp, np.stack(rams))


def make_plans(
    directions: ArrayLike, features: Ram, graph: GameGraph, gamma: float = 0.9
) -> Choose:
    """The optimal options in a game graph for the potentials ``e . phi(ram)`` of directions ``(n, d)``.

    After every step each option takes its action in the state of the present memory, or in the most similar one. Where
    it terminates nothing is done for one step.
    """
    potentials = (
        round_to_grid(directions, features) @ features(graph.ram).astype(np.float64).T
    )
    purposes = [
        Purpose(potential, f"d{i + 1}", exact=True)
        for i, potential in enumerate(potentials)
    ]
    policy = solve(graph.mdp, purposes, gamma).policy

    def choose(
        nodes: list[Node], at: NDArray[np.intp], live: NDArray[np.intp], t: int
    ) -> NDArray[np.intp]:
        states = np.array([graph.locate(node.ram) for node in nodes])
        return np.maximum(policy[live, states[at]], 0).astype(np.intp)

    return choose
