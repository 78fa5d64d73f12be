"""A chart of a game: its states as an ordinary MDP, for planning (paper, Sections 3 and 5.2).

One step of look-ahead does not go round a wall. `chart` explores a game breadth first with an emulator that can be
saved and restored, and tells states apart by a few key bytes of memory, such as the player's place. What it finds is
a transition table, so that everything made for tables serves a game too: `plan` finds the optimal options of
directions in memory with the one solver of the library, and ``discover(chart.mdp)`` the eigenoptions of the game's own
graph. `follow` takes options back to the real game: every few frames it looks up where the player is.

The chart is an approximation. What is not in the key (cars, ghosts, skulls, clocks, dots eaten) is that of the first
visitor of a state: its memory stands for the state, and what actions did to it is what the table says. Only a visitor
that no action takes elsewhere, since it is dying or caught, makes room for the next one, up to four. In the game
options therefore do not always arrive where the table says, but they look again after every action.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from eigenoptions.atari.coding import on_a_grid
from eigenoptions.atari.emulator import BYTES, Emulator
from eigenoptions.atari.frontier import Node, held
from eigenoptions.atari.games import known
from eigenoptions.atari.ram import Ram
from eigenoptions.atari.rolling import Rolling, Rollouts, Until, addresses, one_of, whole
from eigenoptions.atari.starts import Start, player_bytes
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet, Purpose
from eigenoptions.options.solver import solve

HOLD = 8  # frames
KEYS = {"MontezumaRevenge": (3,), "MsPacman": (56,)}  # beside the player's place: room; direction
VISITORS = 4  # of a state that are tried, as long as none of them can leave it
OTHER = 256  # how far apart two states are for each unequal byte that is no place: more than any place

Bytes = NDArray[np.uint8]
Pause = Literal["noop", "stop"]


@dataclass(frozen=True, eq=False, repr=False)
class Chart:
    """States of a game that have different key bytes, and where actions lead.

    Attributes
    ----------
    game
        Its name.
    mdp
        The table; an action is one of the game's, held for `hold` frames. Its `coords` are lines and columns of the
        screen, where they are known: several states, and several rooms, may share them.
    ram
        ``(S, 128)`` memory of the visitor that stands for each state: the first that could leave it, or the first.
    lost
        ``(S, A)`` where an action loses a life or ends the game. In the table it stays where it is: that is worth
        nothing, so no optimal option takes it, and it is no edge of the graph.
    beyond
        ``(S, A)`` where an action leads out of the chart, which was full. In the table it stays where it is.
    starts
        State number of each start; two of the same key are one state.
    hold
        Frames.
    watch
        Addresses of the key bytes.
    frames
        How many were emulated.
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
        return (
            f"Chart({self.game}: {len(self)} states, {edge}, {self.hold} frames a step, {self.frames} frames)"
        )

    @property
    def keys(self) -> Bytes:
        """``(S, k)`` the key bytes of each state."""
        return self.ram[:, list(self.watch)]

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        return {key.tobytes(): i for i, key in enumerate(self.keys)}

    @cached_property
    def _places(self) -> NDArray[np.bool_]:
        """``(k,)`` which key bytes are the player's place; all of them where none is known to be."""
        places = np.isin(self.watch, known(self.game).position)
        return places if places.any() else np.ones(len(self.watch), dtype=np.bool_)

    def at(self, keys: ArrayLike, *, nearest: bool = False) -> NDArray[np.int64]:
        """``(...)`` numbers of the states with these key bytes ``(..., k)``, -1 for those that are not in the chart.

        With `nearest` those get the state most like them: with the fewest unequal bytes beside the player's place,
        then the smallest distance of places (the largest difference of a byte), then the smallest number.
        """
        wanted = np.ascontiguousarray(keys, dtype=np.uint8)
        if wanted.shape[-1:] != (len(self.watch),):
            raise ValueError(f"keys must have shape (..., {len(self.watch)}), got {wanted.shape}")
        flat = wanted.reshape(-1, len(self.watch))
        found = np.array([self._numbers.get(key.tobytes(), -1) for key in flat], dtype=np.int64)
        if nearest:
            mine = self.keys.astype(np.int64)
            for i in np.flatnonzero(found < 0):
                apart = np.abs(mine - flat[i])
                far = apart[:, self._places].max(axis=1) + OTHER * (apart[:, ~self._places] > 0).sum(axis=1)
                found[i] = far.argmin()
        return found.reshape(wanted.shape[:-1])

    def locate(self, ram: ArrayLike, *, nearest: bool = False) -> int:
        """Number of the state with this memory ``(128,)``, or -1; with `nearest` the state most like it, see `at`."""
        memory = np.asarray(ram)
        if memory.shape != (BYTES,):
            raise ValueError(f"ram must have shape ({BYTES},), got {memory.shape}")
        return int(self.at(memory[list(self.watch)], nearest=nearest))


def chart(
    game: str,
    starts: Sequence[Start],
    *,
    hold: int = HOLD,
    watch: Sequence[int] | None = None,
    limit: int = 2_000,
    rng: int | np.random.Generator = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Chart:
    """Chart a game breadth first from all starts at once: every action in every state.

    Parameters
    ----------
    game
        Its name.
    starts
        Where to begin, such as `find_starts` gives.
    hold
        Frames that an action is held.
    watch
        Addresses of the key bytes: states are the same if these are. None: the player's place, and the room
        (Montezuma's Revenge) or the direction (Ms. Pac-Man); in games where it is not known, `player_bytes`.
    limit
        Most states. All that are in the chart were tried; when it is full, actions that lead elsewhere are `beyond`.
    rng
        Of `player_bytes`; nothing else is drawn.
    progress
        Called with states tried and states found so far.

    Examples
    --------
    Freeway, where the key is the chicken's height: a step up is eight of them.

    >>> start = Start("Freeway", (0,) * 60, (14,), (6,))
    >>> heights = chart("Freeway", [start], limit=8)
    >>> heights
    Chart(Freeway: 8 states, 1 on its edge, 8 frames a step, 252 frames)
    >>> heights.keys.ravel().tolist(), heights.mdp.successors[0].tolist()
    ([6, 14, 22, 30, 38, 46, 54, 62], [0, 1, 0])

    It holds an ordinary MDP, with eigenoptions of its own (Section 3).

    >>> from eigenoptions.discovery import discover
    >>> discover(heights.mdp, n_options=2, operator="combinatorial").policy.tolist()
    [[-1, 2, 2, 2, 2, 2, 2, 2], [1, 1, 1, 1, 1, 1, 1, -1]]
    """
    whole(hold=hold, limit=limit)
    if not starts:
        raise ValueError("there are no starts: give at least one, such as find_starts gives")
    emulator = Emulator(game)
    key = _key(emulator, starts[0], watch, rng)
    before = emulator.acts
    numbers: dict[bytes, int] = {}
    rams: list[Bytes] = []
    visitors: list[int] = []  # of each state, that were tried or are to be
    unclaimed: set[int] = set()  # states whose visitors so far could not leave
    queue: deque[tuple[int, Node]] = deque()  # only states that are still to be tried are kept whole

    def number(node: Node) -> int:
        """Of the state that a node is in; it is queued if it is new and there is room (else -1), or unclaimed."""
        name = node.ram[key].tobytes()
        i = numbers.get(name, -1)
        if i < 0 and len(rams) < limit:
            i = numbers[name] = len(rams)
            rams.append(node.ram)
            visitors.append(0)
            unclaimed.add(i)
        if i in unclaimed:
            unclaimed.remove(i)
            visitors[i] += 1
            queue.append((i, node))
        return i

    begun = []
    for i, start in enumerate(starts):
        start.reach(emulator)
        if emulator.over:
            raise ValueError(f"the game is over at start {i}: give states from which it goes on")
        begun.append(number(Node(emulator.save(), emulator.ram(), emulator.lives)))
        if begun[-1] < 0:
            raise ValueError(
                f"limit must be at least the number of different starts, got {limit} for {len(starts)} starts"
            )
    rows: dict[int, NDArray[np.int32]] = {}
    while queue:
        here, node = queue.popleft()
        row = np.full((3, emulator.n_actions), [[here], [0], [0]], dtype=np.int32)
        for action in range(emulator.n_actions):
            edge = held(emulator, node, action, int(hold), True)
            there = -1 if edge.ended else number(edge.to)
            row[:, action] = here if there < 0 else there, edge.ended, there < 0 and not edge.ended
        leaves = (row[0] != here).any() or row[2].any()
        if leaves or here not in rows:
            rams[here], rows[here] = node.ram, row
        if not leaves and visitors[here] < VISITORS:
            unclaimed.add(here)
        if progress is not None:
            progress(len(rows), len(rams))
    successors, lost, beyond = np.stack([rows[i] for i in range(len(rams))], axis=1)
    ram = np.stack(rams)
    return Chart(
        emulator.game,
        _table(emulator.game, ram, successors, begun[0]),
        ram,
        lost.astype(np.bool_),
        beyond.astype(np.bool_),
        tuple(begun),
        int(hold),
        tuple(key),
        emulator.acts - before,
    )


def plan(
    chart: Chart,
    directions: ArrayLike,
    coding: Ram | None = None,
    gamma: float = 0.9,
    *,
    labels: Sequence[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> OptionSet:
    """Optimal options in a chart for the potentials ``e . phi(ram)`` of directions in memory.

    Parameters
    ----------
    chart
        Of a game.
    directions
        ``(n, d)`` the vectors e. Negate them for the other sign.
    coding
        The map phi from memory to d features; None: the paper's 1,024 bits.
    gamma
        Discount of a step, as in `solve`: how far an option looks over a valley.
    labels
        One for each option; None: ``d1``, ``d2``, ...
    progress
        Called with options done and options in all.

    Examples
    --------
    >>> heights = chart("Freeway", [Start("Freeway", (0,) * 60, (14,), (6,))], limit=8)
    >>> plan(heights, [[1.0], [-1.0]], Ram("bytes", addresses=(14,))).policy.tolist()
    [[1, 1, 1, 1, 1, 1, 1, -1], [-1, 2, 2, 2, 2, 2, 2, 2]]
    """
    phi = Ram() if coding is None else coding
    e = on_a_grid(directions, phi)
    if labels is not None and len(labels) != len(e):
        raise ValueError(f"labels must have one entry for each of {len(e)} directions, got {len(labels)}")
    potentials = e @ phi(chart.ram).astype(np.float64).T  # exact: e is on a grid
    names = labels or [f"d{i + 1}" for i in range(len(e))]
    purposes = [Purpose(f, label) for f, label in zip(potentials, names, strict=True)]
    made = {"game": chart.game, "hold": chart.hold, "watch": list(chart.watch), "coding": phi.label}
    return solve(chart.mdp, purposes, gamma, provenance=made, progress=progress)


def follow(
    emulator: Emulator,
    state: Any,
    chart: Chart,
    options: OptionSet,
    frames: int = 200,
    *,
    until: Until = "life",
    watch: Sequence[int] = (),
    after: Pause = "noop",
    progress: Callable[[int, int], object] | None = None,
) -> Rollouts:
    """Follow options of a chart in the real game, all from one state; the emulator is left as it was found.

    Every `Chart.hold` frames each option looks up the state of the present memory, and takes its action there. Memory
    that is not in the chart counts as the state most like it (`Chart.at`). Options that stand in the same state of the
    emulator and take the same action are emulated once.

    Parameters
    ----------
    emulator
        Of the chart's game.
    state
        Where all begin, as `Emulator.save` gave it.
    chart, options
        Options made for ``chart.mdp``, by `plan`, `discover` or `solve`.
    frames
        Most frames of a roll-out.
    until
        ``"life"``: a roll-out ends when a life is lost; ``"game"``: when the game is over.
    watch
        Addresses of bytes to record, such as the player's position.
    after
        What an option does where it terminates. ``"noop"``: nothing, for `Chart.hold` frames, and then it looks again.
        ``"stop"``: its roll-out ends.
    progress
        Called with the number of frames done and `frames`.

    Examples
    --------
    >>> start = Start("Freeway", (0,) * 60, (14,), (6,))
    >>> heights = chart("Freeway", [start], limit=8)
    >>> up = plan(heights, [[1.0]], Ram("bytes", addresses=(14,)))
    >>> emulator = Emulator("Freeway")
    >>> _ = start.reach(emulator)
    >>> follow(emulator, emulator.save(), heights, up, 80, watch=(14,)).watched[0, ::20, 0].tolist()
    [7, 27, 47, 62]
    """
    if emulator.game != chart.game:
        raise ValueError(f"a chart of {chart.game} cannot be followed in {emulator.game}")
    if len(options):
        options.check(chart.mdp)
    one_of("after", after, Pause)
    if after == "noop" and "NOOP" not in emulator.actions:
        raise ValueError(f"{emulator.game} has no action NOOP: use after='stop'")
    how: Any = {"hold": chart.hold, "until": until, "watch": watch, "progress": progress}
    with Rolling(emulator, state, len(options), frames, **how) as rolling:
        for _ in rolling.decisions():
            place = [chart.locate(node.ram, nearest=True) for node in rolling.frontier.nodes]
            chosen = options.policy[rolling.live, np.array(place)[rolling.at]].astype(np.intp)
            none = chosen < 0
            rolling.stop(none, leave=after == "stop")
            if after == "stop":
                chosen = chosen[~none]
            elif none.any():
                chosen[none] = emulator.actions.index("NOOP")
            rolling.take(chosen)
    return rolling.log


def _key(
    emulator: Emulator, start: Start, watch: Sequence[int] | None, rng: int | np.random.Generator
) -> list[int]:
    """Addresses of the key bytes, ascending."""
    if watch is not None:
        if not len(watch):
            raise ValueError("watch must have at least one address of a key byte; None takes the usual ones")
        addresses(watch)
        return sorted({int(byte) for byte in watch})
    position = known(emulator.game).position
    if not position:
        start.reach(emulator)
        position = player_bytes(emulator, rng)
    return sorted({*position, *KEYS.get(emulator.game, ())})


def _table(game: str, ram: Bytes, successors: NDArray[np.int32], start: int) -> MDP:
    n = successors.size
    rows = np.arange(n + 1, dtype=np.int32)
    transition = csr_array((np.ones(n), successors.ravel(), rows), shape=(n, len(ram)))
    here, coords = known(game), None
    if here.position:
        coords = np.rint(here.to_screen(ram[:, list(here.position)])).astype(np.int64)[:, ::-1]
    return MDP(transition, coords=coords, start=start, name=game)
