"""A chart of a game: its states as an ordinary MDP, for planning (paper, Sections 3 and 5.2).

Looking one step ahead does not lead around a wall. `chart` explores a game breadth first, and distinguishes states by a
few key bytes of memory, such as the player's position. The result is a transition table, so that everything made for
tables serves a game too: `plan` finds the optimal options of directions in memory, ``discover(chart.mdp)`` the
eigenoptions of the game's own graph, and `follow` plays them in the real game.

The chart is an approximation. What is not in the key (cars, ghosts, skulls, clocks, dots eaten) is that of the first
visitor of a state: its memory represents the state, and what actions did to it is in the table. Only a visitor that no
action takes elsewhere, because it is dying or caught, is replaced by the next one, up to four times. In the game
options therefore do not always arrive where the table predicts, but they look again after every action.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from eigenoptions._validation import check_choice, check_int, check_type
from eigenoptions.atari.emulator import Bytes, Emulator, Progress
from eigenoptions.atari.games import known
from eigenoptions.atari.lockstep import on_a_grid
from eigenoptions.atari.ram import BYTES, Ram, check_addresses
from eigenoptions.atari.rollouts import Node, Rolling, Rollouts, Rules
from eigenoptions.atari.starts import HOLD_FRAMES, Start, player_bytes
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet, Purpose
from eigenoptions.options.solver import solve

# Visitors of a state that are tried, as long as none of them can leave it.
MAX_VISITORS = 4
# Distance of two states for each unequal byte that is not part of a position: more than between any two positions.
UNEQUAL_BYTE_DISTANCE = 256


@dataclass(frozen=True, eq=False, repr=False)
class Chart:
    """States of a game that have different key bytes, and where actions lead.

    Attributes
    ----------
    game, starts, frames
        Name of the game, the state of each start (equal keys are one state), and the number of frames emulated.
    mdp
        The table; an action is one of the game's, held for `hold` frames. Its `coords` are lines and columns of the
        screen, where they are known: several states, and several rooms, may share them.
    ram
        ``(S, 128)`` memory of the visitor that represents each state: the first that could leave it, or the first.
    lost, beyond
        ``(S, A)`` where an action loses a life or ends the game, and where it leads out of a chart that was full. In
        the table it stays in its state: that has no value, so no optimal option takes it, and it is no edge.
    hold, watch
        Frames per step, and addresses of the key bytes.
    """

    game: str
    mdp: MDP
    ram: Bytes
    lost: NDArray[np.bool_]
    beyond: NDArray[np.bool_]
    starts: tuple[int, ...]
    hold: int
    watch: tuple[int, ...]
    frames: int

    def __len__(self) -> int:
        """Number of states S."""
        return len(self.ram)

    def __repr__(self) -> str:
        left = int(self.beyond.any(axis=1).sum())
        edge = f"{left} on its edge" if left else "complete"
        return f"Chart({self.game}: {len(self)} states, {edge}, {self.hold} frames per step, {self.frames} frames)"

    @property
    def keys(self) -> Bytes:
        """``(S, k)`` the key bytes of each state."""
        return self.ram[:, list(self.watch)]

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        return {key.tobytes(): i for i, key in enumerate(self.keys)}

    @cached_property
    def _places(self) -> NDArray[np.bool_]:
        """``(k,)`` which key bytes are the player's position; all of them where none is known to be."""
        places = np.isin(self.watch, known(self.game).position)
        return places if places.any() else np.ones(len(self.watch), dtype=np.bool_)

    def at(self, keys: ArrayLike, *, nearest: bool = False) -> NDArray[np.int64]:
        """``(...)`` numbers of the states with these key bytes ``(..., k)``, -1 for those that are not in the chart.

        With `nearest` those get the most similar state: with the fewest unequal bytes beside the player's position,
        then the smallest distance of positions (the largest difference of a byte), then the smallest number.
        """
        wanted = np.ascontiguousarray(keys, dtype=np.uint8)
        if wanted.shape[-1:] != (len(self.watch),):
            raise ValueError(f"keys must have shape (..., {len(self.watch)}), got {wanted.shape}")
        flat = wanted.reshape(-1, len(self.watch))
        found = np.array([self._numbers.get(key.tobytes(), -1) for key in flat], dtype=np.int64)
        for i in np.flatnonzero(found < 0) if nearest else ():
            apart = np.abs(self.keys.astype(np.int64) - flat[i])
            unequal = (apart[:, ~self._places] > 0).sum(axis=1)
            found[i] = (apart[:, self._places].max(axis=1) + UNEQUAL_BYTE_DISTANCE * unequal).argmin()
        return found.reshape(wanted.shape[:-1])

    def locate(self, ram: ArrayLike, *, nearest: bool = False) -> int:
        """Number of the state with this memory ``(128,)``, or -1; with `nearest` the most similar state, see `at`."""
        memory = np.asarray(ram)
        if memory.shape != (BYTES,):
            raise ValueError(f"ram must have shape ({BYTES},), got {memory.shape}")
        return int(self.at(memory[list(self.watch)], nearest=nearest))


def chart(
    game: str,
    starts: Sequence[Start],
    *,
    hold: int = HOLD_FRAMES,
    watch: Sequence[int] | None = None,
    limit: int = 2_000,
    rng: int | np.random.Generator = 0,
    progress: Progress | None = None,
) -> Chart:
    """Chart a game breadth first from all starts at once: every action in every state.

    Parameters
    ----------
    game, starts, hold
        Name of the game, states to begin with, and frames that an action is held.
    watch, rng
        Addresses of the key bytes: states are the same if these are. None: the player's position and the game's
        `Game.context`; where the position is not known, `player_bytes`, which draws from `rng`.
    limit
        Maximal number of states; when the chart is full, actions that lead elsewhere are `Chart.beyond`.
    progress
        Called with the number of states tried and of states found so far.

    Examples
    --------
    In Freeway the key is the chicken's height. The chart's MDP has eigenoptions of its own (Section 3).

    >>> from eigenoptions.discovery import discover
    >>> heights = chart("Freeway", [Start("Freeway", (0,) * 60, (14,), (6,))], limit=8)
    >>> heights
    Chart(Freeway: 8 states, 1 on its edge, 8 frames per step, 252 frames)
    >>> heights.keys.ravel().tolist(), heights.mdp.successors[0].tolist()
    ([6, 14, 22, 30, 38, 46, 54, 62], [0, 1, 0])
    >>> discover(heights.mdp, n_options=2, operator="combinatorial").policy.tolist()
    [[-1, 2, 2, 2, 2, 2, 2, 2], [1, 1, 1, 1, 1, 1, 1, -1]]
    """
    hold, limit = check_int("hold", hold), check_int("limit", limit)
    if not starts:
        raise ValueError("there are no starts: give at least one, such as find_starts gives")
    emulator = Emulator(game)
    key = _key_bytes(emulator, starts[0], watch, rng)
    before, states, first = emulator.acts, _States(key, limit), []
    for i, start in enumerate(starts):
        start.reach(emulator)
        if emulator.over:
            raise ValueError(f"the game is over at start {i}: give states from which it goes on")
        first.append(states.visit(Node(emulator.save(), emulator.ram())))
        if first[-1] < 0:
            raise ValueError(f"limit must be at least the number of different starts, got {limit}")
    rows: dict[int, NDArray[np.int32]] = {}
    while states.queue:
        here, node = states.queue.popleft()
        # Of each action: the next state, whether a life is lost, whether it leads out of the chart.
        row = np.full((3, emulator.n_actions), [[here], [0], [0]], dtype=np.int32)
        for action, held in enumerate(emulator.try_actions(node.state, hold, one_life=True)):
            there = -1 if held.ended else states.visit(Node(emulator.save(), held.rams[-1]))
            row[:, action] = here if there < 0 else there, held.ended, there < 0 and not held.ended
        leaves = bool((row[0] != here).any() or row[2].any())
        if leaves or here not in rows:
            states.rams[here], rows[here] = node.ram, row
        if not leaves:
            states.stuck(here)
        if progress is not None:
            progress(len(rows), len(states.rams))
    ram = np.stack(states.rams)
    successors, *flags = np.stack([rows[i] for i in range(len(ram))], axis=1)
    mdp = _table(emulator.game, ram, successors, first[0])
    lost, beyond = (flag.astype(np.bool_) for flag in flags)
    return Chart(
        emulator.game, mdp, ram, lost, beyond, tuple(first), hold, tuple(key), emulator.acts - before
    )


class _States:
    """States found so far by their key bytes, and in `queue` the visitors that are still to be tried."""

    def __init__(self, key: list[int], limit: int) -> None:
        self.rams: list[Bytes] = []
        self.queue: deque[tuple[int, Node]] = deque()
        self._key, self._limit = key, limit
        self._numbers: dict[bytes, int] = {}
        # Of each state, the visitors that may still be tried.
        self._left: list[int] = []
        # States that need a visitor: none so far could leave.
        self._open: set[int] = set()

    def visit(self, node: Node) -> int:
        """Number of the state of a node, -1 where it is new and the limit is reached; queues the node if needed."""
        name = node.ram[self._key].tobytes()
        i = self._numbers.get(name, -1)
        if i < 0 and len(self.rams) < self._limit:
            i = self._numbers[name] = len(self.rams)
            self.rams.append(node.ram)
            self._left.append(MAX_VISITORS)
            self._open.add(i)
        if i in self._open:
            self._open.remove(i)
            self._left[i] -= 1
            self.queue.append((i, node))
        return i

    def stuck(self, number: int) -> None:
        """Note that a visitor could not leave a state, so that the next one is tried too."""
        if self._left[number]:
            self._open.add(number)


def plan(
    chart: Chart,
    directions: ArrayLike,
    coding: Ram | None = None,
    gamma: float = 0.9,
    *,
    labels: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> OptionSet:
    """Optimal options in a chart for the potentials ``e . phi(ram)`` of directions in memory.

    Parameters
    ----------
    chart, directions, labels
        Chart of a game, the vectors e ``(n, d)``, and one label per vector (None: ``d1``, ``d2``, ...).
    coding, gamma, progress
        The map phi from memory to d features (None: the paper's bits); the others as in `solve`.

    Examples
    --------
    >>> heights = chart("Freeway", [Start("Freeway", (0,) * 60, (14,), (6,))], limit=8)
    >>> plan(heights, [[1.0], [-1.0]], Ram("bytes", addresses=(14,))).policy.tolist()
    [[1, 1, 1, 1, 1, 1, 1, -1], [-1, 2, 2, 2, 2, 2, 2, 2]]
    """
    check_type("chart", chart, Chart, "make one with chart(game, starts)")
    phi = Ram() if coding is None else coding
    e = on_a_grid(directions, phi)
    if labels is not None and len(labels) != len(e):
        raise ValueError(f"labels must have one entry for each of {len(e)} directions, got {len(labels)}")
    # Exact, since e is on a grid.
    potentials = e @ phi(chart.ram).astype(np.float64).T
    names = labels or [f"d{i + 1}" for i in range(len(e))]
    purposes = [Purpose(f, label) for f, label in zip(potentials, names, strict=True)]
    provenance = {"game": chart.game, "hold": chart.hold, "watch": list(chart.watch), "coding": phi.label}
    return solve(chart.mdp, purposes, gamma, provenance=provenance, progress=progress)


def follow(
    emulator: Emulator,
    state: Any,
    chart: Chart,
    options: OptionSet,
    frames: int = 200,
    rules: Rules | None = None,
    *,
    progress: Progress | None = None,
    **changes: Any,
) -> Rollouts:
    """Follow options of a chart in the real game, all from one state; the emulator is left as it was found.

    Every `Chart.hold` frames each option looks up the state of the present memory, or the most similar one
    (`Chart.at`), and takes its action there.

    Parameters
    ----------
    chart, options
        Options made for ``chart.mdp``, by `plan`, `discover` or `solve`.
    emulator, state, frames, rules, progress, changes
        As in `lockstep`, but where an option terminates it either does nothing for `Chart.hold` frames and looks again
        (``after="noop"``, the default here), or its roll-out ends (``"stop"``).

    Examples
    --------
    >>> start, emulator = Start("Freeway", (0,) * 60, (14,), (6,)), Emulator("Freeway")
    >>> heights = chart("Freeway", [start], limit=8)
    >>> up = plan(heights, [[1.0]], Ram("bytes", addresses=(14,)))
    >>> _ = start.reach(emulator)
    >>> follow(emulator, emulator.save(), heights, up, 80, watch=(14,)).watched[0, ::20, 0].tolist()
    [7, 27, 47, 62]
    """
    check_type("chart", chart, Chart, "make one with chart(game, starts)")
    check_type("options", options, OptionSet, "make them with plan")
    if emulator.game != chart.game:
        raise ValueError(f"a chart of {chart.game} cannot be followed in {emulator.game}")
    if len(options):
        options.check(chart.mdp)
    rules = replace(rules or Rules(after="noop"), **{**changes, "hold": chart.hold, "depth": 1})
    check_choice("after", rules.after, ("noop", "stop"))
    with Rolling(emulator, state, len(options), frames, rules, progress) as rolling:
        for _ in rolling.decisions():
            place = [chart.locate(node.ram, nearest=True) for node in rolling.nodes]
            chosen = options.policy[rolling.live, np.array(place)[rolling.at]].astype(np.intp)
            rolling.take(chosen, chosen < 0)
    return rolling.log


def _key_bytes(emulator: Emulator, start: Start, watch: Sequence[int] | None, rng: Any) -> list[int]:
    """Addresses of the key bytes, ascending."""
    if watch is not None:
        if not len(watch):
            raise ValueError("watch must have at least one address of a key byte; None takes the usual ones")
        check_addresses(watch)
        return sorted({int(byte) for byte in watch})
    game = known(emulator.game)
    if game.position:
        return sorted({*game.position, *game.context})
    start.reach(emulator)
    return sorted({*player_bytes(emulator, rng), *game.context})


def _table(game: str, ram: Bytes, successors: NDArray[np.int32], start: int) -> MDP:
    n = successors.size
    rows = np.arange(n + 1, dtype=np.int32)
    transition = csr_array((np.ones(n), successors.ravel(), rows), shape=(n, len(ram)))
    here, coords = known(game), None
    if here.position:
        coords = np.rint(here.to_screen(ram[:, list(here.position)])).astype(np.int64)[:, ::-1]
    return MDP(transition, coords=coords, start=start, name=game)
