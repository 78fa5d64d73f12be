"""Roll-outs of many options from one state of a game, in lock step (Section 5.2).

Options in equal states that take equal actions share one edge of a tree, which is
emulated once; equal states, by the emulator's own bytes, are one `Node`. The work grows
with the number of states, not of options.

An option of the paper looks one step ahead, and takes the argmax over all actions. As
in the published program, nothing is done for one step where no action is positive,
which in these games happens every second frame, and the option goes on. The literal
argmax takes the best action there, too (``rule="argmax"``).

Looking one step ahead does not lead around a wall. So options can also be planned on a
graph of the game (see `game_graph`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions._ties import COMPUTED_TOLERANCE, find_first_maximum
from eigenoptions._types import BoolArray, FloatArray, IndexArray
from eigenoptions.atari import Emulator, Ram
from eigenoptions.atari.emulator import Bytes, EmulatorStep
from eigenoptions.options.solver import choose_actions
from reproduction.atari.joystick import (
    check_memory,
    forget_joystick,
    look_at_memory,
)


@dataclass(frozen=True, eq=False)
class Rollouts:
    """What n options did, frame by frame.

    Attributes
    ----------
    start : array, shape (w,)
        The watched bytes before the first action.
    actions : array, shape (n, frames)
        The action taken, -1 after the end.
    watched : array, shape (n, frames, w)
        The watched bytes after it, 0 after the end.
    score : array, shape (n,)
        Sum of the game's rewards.
    length : array, shape (n,)
        Frames that were played.
    died : array, shape (n,)
        Whether a life was lost.
    """

    start: Bytes
    actions: NDArray[np.int8]
    watched: Bytes
    score: FloatArray
    length: NDArray[np.int64]
    died: BoolArray


@dataclass(slots=True, eq=False)
class Node:
    """A state of an emulator, and what is known of its actions.

    Attributes
    ----------
    emulator : Emulator
        The emulator.
    frame_skip : int
        Frames for which an action is repeated.
    one_life : bool
        Whether a lost life is the end.
    state : object
        The saved state.
    ram : array, shape (128,)
        Its memory.
    edges : dict
        For each action that was taken, what happened and where it led.
    """

    emulator: Emulator
    frame_skip: int
    one_life: bool
    state: Any
    ram: Bytes
    edges: dict[int, tuple[EmulatorStep, Node]] = field(default_factory=dict)
    _ahead: Bytes | None = None

    def take(self, action: int) -> tuple[EmulatorStep, Node]:
        """What happens while an action is repeated, and where it leads."""
        if action not in self.edges:
            step = self._try(action)
            if self._ahead is not None:
                check_memory(self.emulator.game, self._ahead[action], step.rams[-1])
            state = self.emulator.save()
            node = Node(
                self.emulator, self.frame_skip, self.one_life, state, step.rams[-1]
            )
            self.edges[action] = step, node
        return self.edges[action]

    def look(self, known: dict[bytes, Bytes]) -> Bytes:
        """``(A, 128)`` the memory after each action.

        The states are not saved: that would take longer than to emulate again the one
        or two actions that are taken.

        Parameters
        ----------
        known : dict
            What was seen from other nodes of the same frame, by what their memory has
            in common; it is extended.
        """
        game = self.emulator.game
        actions = self.emulator.actions
        if self.frame_skip > 1:
            rams = [self._try(action).rams[-1] for action in range(len(actions))]
            self._ahead = np.stack(rams)
            return self._ahead

        key = forget_joystick(game, self.ram)
        if key not in known:
            known[key] = look_at_memory(game, actions, self.ram, self._try_frame)
        self._ahead = known[key]
        return self._ahead

    def _try(self, action: int) -> EmulatorStep:
        """Repeat an action from this state."""
        self.emulator.restore(self.state)
        return self.emulator.step(action, self.frame_skip, one_life=self.one_life)

    def _try_frame(self, action: int) -> Bytes:
        """The memory one frame later."""
        self.emulator.restore(self.state)
        self.emulator.act(action)
        return self.emulator.ram()


# Chooses the actions of the options that still run, from the nodes that they are in,
# the index of each option's node, the numbers of the options, and the frame.
Choose = Callable[[list[Node], IndexArray, IndexArray, int], IndexArray]


def roll_out(
    emulator: Emulator,
    n: int,
    choose: Choose,
    frames: int,
    watch: Sequence[int],
    frame_skip: int = 1,
    *,
    one_life: bool = True,
) -> Rollouts:
    """Follow options from the present state, until their end or until a life is lost.

    Parameters
    ----------
    emulator : Emulator
        The game.
    n : int
        How many options there are.
    choose : callable
        Chooses their actions.
    frames : int
        Frames that are played, at most.
    watch : sequence of int
        Addresses of memory to log.
    frame_skip : int, default=1
        Frames for which an action is repeated.
    one_life : bool, default=True
        Whether a lost life is the end; otherwise that is the end of the game.
    """
    log = _make_log(emulator, n, frames, watch)
    nodes = [Node(emulator, frame_skip, one_life, emulator.save(), emulator.ram())]
    running = np.arange(n)
    # Index of the node of each running option.
    at = np.zeros(n, dtype=np.intp)

    for frame in range(0, frames, frame_skip):
        if not len(running):
            break
        actions = choose(nodes, at, running, frame)

        # Each pair of a node and an action is emulated once.
        chosen = at * emulator.n_actions + actions
        pairs, pair_numbers = np.unique(chosen, return_inverse=True)
        next_nodes: list[Node] = []
        # Nodes by the emulator's bytes: equal states become one node.
        numbers: dict[bytes, int] = {}
        next_at = np.full(len(pairs), -1)
        for i, pair in enumerate(pairs.tolist()):
            index, action = divmod(pair, emulator.n_actions)
            step, node = nodes[index].take(action)
            _log_step(log, running[pair_numbers == i], action, step, frame, watch)
            # Options that came to their end have no node.
            if not step.ended:
                next_at[i] = numbers.setdefault(emulator.key(node.state), len(numbers))
                if next_at[i] == len(next_nodes):
                    next_nodes.append(node)

        nodes = next_nodes
        at = next_at[pair_numbers]
        running = running[at >= 0]
        at = at[at >= 0]
    return log


def _make_log(
    emulator: Emulator, n: int, frames: int, watch: Sequence[int]
) -> Rollouts:
    """A log without an entry."""
    return Rollouts(
        start=emulator.ram()[list(watch)],
        actions=np.full((n, frames), -1, dtype=np.int8),
        watched=np.zeros((n, frames, len(watch)), dtype=np.uint8),
        score=np.zeros(n),
        length=np.zeros(n, dtype=np.int64),
        died=np.zeros(n, dtype=np.bool_),
    )


def _log_step(
    log: Rollouts,
    options: IndexArray,
    action: int,
    step: EmulatorStep,
    frame: int,
    watch: Sequence[int],
) -> None:
    """Write down what happened to some options from this frame on."""
    n_frames = log.actions.shape[1]
    n_played = min(len(step.rams), n_frames - frame)
    played = slice(frame, frame + n_played)
    rams = np.stack(step.rams[:n_played])

    log.actions[options, played] = action
    log.watched[options, played] = rams[:, list(watch)]
    log.score[options] += sum(step.rewards[:n_played])
    log.length[options] += n_played
    log.died[options] |= 0 <= step.life_lost < n_played


def look_ahead(directions: ArrayLike, features: Ram, *, rule: str = "wait") -> Choose:
    """Options that take ``argmax_a e . (phi(s') - phi(s))``, by trying every action.

    Parameters
    ----------
    directions : array_like, shape (n, d)
        The vectors e.
    features : Ram
        The map phi.
    rule : {"wait", "argmax", "published"}, default="wait"
        What happens where no action is positive: ``"wait"`` does nothing for one step,
        ``"argmax"`` takes the best action all the same. ``"published"`` waits too, and
        has a fault of the authors' program: it compares what an action leads to with
        what the last action tried at the frame before led to, instead of with the
        present state, and every reward above 0 counts, also rounding noise.

    Examples
    --------
    One option prefers a large number in byte 14, the chicken's height; the other a
    small one:

    >>> options = look_ahead([[1.0], [-1.0]], Ram("bytes", addresses=(14,)))
    >>> log = roll_out(Emulator("Freeway"), 2, options, 30, (14,))
    >>> log.watched[:, -1, 0].tolist()
    [36, 6]
    """
    is_published = rule == "published"
    e = round_to_grid(directions, features)
    tolerance = 0.0 if is_published else COMPUTED_TOLERANCE
    near_tie = tolerance * np.abs(e).max(axis=1)
    # By how much the state that the published program compares with is better than the
    # present one.
    offset = np.zeros(len(e))

    def choose(
        nodes: list[Node], at: IndexArray, running: IndexArray, frame: int
    ) -> IndexArray:
        q = np.empty((len(running), nodes[0].emulator.n_actions))
        known: dict[bytes, Bytes] = {}
        for i, node in enumerate(nodes):
            is_here = at == i
            changes = _measure_changes(node, features, known)
            q[is_here] = e[running[is_here]] @ changes.T

        actions = choose_actions(q - offset[running, None], near_tie[running])
        if rule == "argmax":
            best = find_first_maximum(q, near_tie[running])
            actions = np.where(actions < 0, best, actions)
        # Where no action is better, an option does nothing: action 0.
        actions = np.maximum(actions, 0)
        if is_published:
            offset[running] = q[:, -1] - q[np.arange(len(running)), actions]
        return actions

    return choose


def _measure_changes(
    node: Node, features: Ram, known: dict[bytes, Bytes]
) -> FloatArray:
    """``(A, d)`` how each action changes the features."""
    rams = np.concatenate([node.ram[None], node.look(known)])
    phi: FloatArray = features(rams).astype(float)
    changes: FloatArray = phi[1:] - phi[0]
    return changes


def round_to_grid(directions: ArrayLike, features: Ram) -> FloatArray:
    """Directions ``(n, d)`` as multiples of powers of two: sums of rewards are exact.

    The order of summation, and with it the number of options at once, then cannot
    change a decision. The step is at most 2^-51 of the sum of the absolute entries
    (2^-43 with code ``"bytes"``), far below the noise of an eigenvector.
    """
    e = np.asarray(directions, dtype=np.float64)
    # The sum of the absolute entries is below 2^power.
    _, power = np.frexp(np.abs(e).sum(axis=1, keepdims=True))
    # Features are multiples of 1, or of 2^-8 for bytes.
    n_bits = 8 if features.code == "bytes" else 0
    step = power - 52 + n_bits
    rounded: FloatArray = np.ldexp(np.rint(np.ldexp(e, -step)), step)
    return rounded
