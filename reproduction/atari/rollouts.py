"""Roll-outs of many options from one state of a game, in lock step (paper, Section 5.2).

Options in equal states that take equal actions share one edge of a graph, which is emulated once; equal states, by the
emulator's own bytes, are one `Node`. The work grows with the number of states, not of options. Only the states of the
present frame, and those ahead, are kept.

TERMINATE has value 0. The paper does not define what follows when no action is positive, and in these games that
happens every second frame. As in the published program, nothing is done for one step, and the option goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions.atari import Emulator, Ram
from eigenoptions.atari.emulator import Bytes, Step
from eigenoptions.options.solver import COMPUTED_TOLERANCE, first_best

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rollouts:
    """What n options did, frame by frame."""

    actions: NDArray[np.int8]  # (n, frames) the action taken, -1 after the end
    watched: NDArray[np.uint8]  # (n, frames, w) the watched bytes after it, then 0
    stopped: NDArray[np.bool_]  # (n, frames) whether no action was positive: the option would have terminated
    score: NDArray[np.float64]  # (n,) sum of the game's rewards
    length: NDArray[np.int64]  # (n,) frames that were played
    died: NDArray[np.bool_]  # (n,) whether a life was lost


@dataclass(slots=True, eq=False)
class Node:
    """A state with its memory ``(128,)``, and what is known of its actions: what happens, and where they lead."""

    state: Any
    ram: Bytes
    edges: dict[int, tuple[Step, Node]] = field(default_factory=dict)


# The nodes in which options are, the index of each option's node, the numbers of the options, and the frame, to the
# action of each option, or -1 where none is positive.
Choose = Callable[[list[Node], NDArray[np.intp], NDArray[np.intp], int], NDArray[np.intp]]


def roll_out(
    emulator: Emulator,
    state: Any,
    n: int,
    choose: Choose,
    frames: int,
    *,
    frame_skip: int = 1,
    one_life: bool = True,
    watch: Sequence[int] = (),
    look_ahead: bool = False,
) -> Rollouts:
    """Follow n options from one state, at most so many frames; the emulator is left as it was.

    `choose` chooses their actions, each of which is repeated for `frame_skip` frames; with `look_ahead` all actions are
    tried in each node before it is called. With `one_life` a roll-out ends when a life is lost, else when the game is
    over. `watch` are addresses of bytes to log.
    """
    n_actions, before = emulator.n_actions, emulator.save()
    log = Rollouts(
        np.full((n, frames), -1, dtype=np.int8),
        np.zeros((n, frames, len(watch)), dtype=np.uint8),
        np.zeros((n, frames), dtype=np.bool_),
        np.zeros(n),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.bool_),
    )
    emulator.restore(state)
    nodes, live, at = [Node(state, emulator.ram())], np.arange(n), np.zeros(n, dtype=np.intp)
    for t in range(0, frames, frame_skip):
        if not len(live):
            break
        end = min(t + frame_skip, frames)
        for node in nodes if look_ahead else ():
            tried = enumerate(emulator.try_actions(node.state, frame_skip, one_life=one_life))
            node.edges = {a: (step, Node(emulator.save(), step.rams[-1])) for a, step in tried}
        chosen = choose(nodes, at, live, t)
        log.stopped[live[chosen < 0], t:end] = True
        actions = np.maximum(chosen, 0)
        # Each pair of a node and an action is emulated once.
        pairs, which = np.unique(at * n_actions + actions, return_inverse=True)
        edges = []
        for index, action in (divmod(pair, n_actions) for pair in pairs.tolist()):
            node = nodes[index]
            if action not in node.edges:
                emulator.restore(node.state)
                step = emulator.step(action, frame_skip, one_life=one_life)
                node.edges[action] = step, Node(emulator.save(), step.rams[-1])
            edges.append(node.edges[action])
        for number, (step, _) in enumerate(edges):
            options = live[which == number]
            played = min(len(step.rams), end - t)
            rams = np.stack(step.rams[:played])[:, list(watch)]
            log.actions[options, t : t + played] = actions[which == number][:, None]
            log.watched[options, t : t + played] = rams
            log.score[options] += sum(step.rewards[:played])
            log.died[options] |= 0 <= step.life_lost < played
            log.length[options] += played
        # Merge equal states, and leave out the options that came to their end.
        known: dict[bytes, int] = {}
        place = np.full(len(edges), -1, dtype=np.intp)
        nodes = []
        for number, (step, node) in enumerate(edges):
            if not step.ended:
                digest = blake2b(emulator.key(node.state), digest_size=16).digest()
                if digest not in known:
                    known[digest] = len(nodes)
                    nodes.append(node)
                place[number] = known[digest]
        goes_on = place[which] >= 0
        live, at = live[goes_on], place[which][goes_on]
    emulator.restore(before)
    return log


def roll_out_directions(
    emulator: Emulator,
    state: Any,
    directions: ArrayLike,
    features: Ram,
    frames: int,
    *,
    published: bool = False,
    **rules: Any,
) -> Rollouts:
    """Roll out options that take ``argmax_a e . (phi(s') - phi(s))``, by trying every action.

    `directions` ``(n, d)`` are the vectors e, and `features` the map phi; `rules` are those of `roll_out`. If
    `published`, then with a fault of the authors' program: it compares what an action leads to with what the last
    action tried at the frame before led to, instead of with the present state, and every reward above 0 counts, also
    rounding noise.

    One option prefers a large number in byte 14, the chicken's height; the other a small one:

    >>> emulator, height = Emulator("Freeway"), Ram("bytes", addresses=(14,))
    >>> done = roll_out_directions(emulator, emulator.save(), [[1.0], [-1.0]], height, 30, watch=(14,))
    >>> done.watched[:, -1, 0].tolist()
    [36, 6]
    """
    e = round_to_grid(directions, features)
    near_tie = COMPUTED_TOLERANCE * np.abs(e).max(axis=1)
    # By how much the state that the published program compares with is better than the present one.
    offset = np.zeros(len(e))

    def choose(nodes: list[Node], at: NDArray[np.intp], live: NDArray[np.intp], t: int) -> NDArray[np.intp]:
        q = np.empty((len(live), emulator.n_actions))
        for i, node in enumerate(nodes):
            group = np.flatnonzero(at == i)
            phi = features(np.stack([node.ram, *(there.ram for _, there in node.edges.values())])).astype(
                float
            )
            difference = phi[1:] - phi[0]
            changed = np.flatnonzero(difference.any(axis=0))
            q[group] = e[np.ix_(live[group], changed)] @ difference[:, changed].T
        if not published:
            best, positive = first_best(q, near_tie[live])
            return np.where(positive, best, -1)
        best, positive = first_best(q - offset[live, None], 0.0)
        taken = np.where(positive, best, 0)
        offset[live] = q[:, -1] - q[np.arange(len(live)), taken]
        return np.where(positive, best, -1)

    return roll_out(emulator, state, len(e), choose, frames, look_ahead=True, **rules)


def roll_out_actions(emulator: Emulator, state: Any, actions: ArrayLike, **rules: Any) -> Rollouts:
    """Take given actions ``(n, frames)``, such as random walks or one action all the time.

    >>> emulator = Emulator("Freeway")
    >>> roll_out_actions(emulator, emulator.save(), [[1] * 30, [0] * 30], watch=(14,)).watched[:, -1, 0].tolist()
    [36, 6]
    """
    given = np.asarray(actions, dtype=np.intp)
    return roll_out(
        emulator, state, len(given), lambda nodes, at, live, t: given[live, t], given.shape[1], **rules
    )


def round_to_grid(directions: ArrayLike, features: Ram) -> Array:
    """Directions ``(n, d)``, each rounded to multiples of a power of two, so that sums of rewards are exact.

    The order of summation, and with it the number of options at once, then cannot change a decision. The step is at
    most 2^-51 of the sum of the absolute entries (2^-43 with code ``"bytes"``), far below the noise of an eigenvector.

    >>> e = round_to_grid([[0.1, 0.2, -0.3]], Ram("bytes", addresses=(0, 1, 2)))
    >>> float(e[0] @ [1.0, 1.0, 1.0]), bool(np.abs(e - [0.1, 0.2, -0.3]).max() < 1e-13)
    (0.0, True)
    """
    e = np.asarray(directions, dtype=np.float64)
    # The sum is below 2^power, and features are multiples of 1, or of 2^-8.
    _, power = np.frexp(np.abs(e).sum(axis=1, keepdims=True))
    step = power - 52 + (8 if features.code == "bytes" else 0)
    rounded: Array = np.ldexp(np.rint(np.ldexp(e, -step)), step)
    return rounded
