"""Many options of a game that look ahead in its emulator, in lock step (paper, Section 5.2).

Every option tries all actions and takes ``argmax_a e . (phi(s') - phi(s))``. Options in the same state try the same
actions, so all of them advance together and each distinct state is tried once: the work grows with the number of
states, not of options. Only the states of the present frame, and those ahead, are kept.

TERMINATE has value 0. The paper does not define what follows when no action is positive, and in these games that
happens every second frame; ``Rules.after`` is that choice.

A frame writes to a few of the 128 bytes, so a reward is a sum over the features of those bytes. Directions are rounded
to a grid so fine that it does not matter and so coarse that every such sum is exact in double precision. The order of
summation, and with it the number of states or options at once, then cannot change a decision, so results can be shared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions.atari.emulator import Bytes, Emulator, Progress
from eigenoptions.atari.ram import Ram
from eigenoptions.atari.rollouts import Node, Rolling, Rollouts, Rules
from eigenoptions.options.solver import COMPUTED_FLOOR, first_best, tolerance

__all__ = ["Potentials", "Rollouts", "lockstep", "on_a_grid"]

Array = NDArray[np.float64]


def lockstep(
    emulator: Emulator,
    state: Any,
    direction: ArrayLike,
    coding: Ram | None = None,
    frames: int = 200,
    rules: Rules | None = None,
    *,
    progress: Progress | None = None,
    **changes: Any,
) -> Rollouts:
    """Roll out all options from one state; the emulator is left as it was found.

    Parameters
    ----------
    emulator, state
        Emulator of the game, and the state in which all options begin, from `Emulator.save`.
    direction, coding
        ``(n, d)`` the vectors e, and the map phi from memory to d features (None: the paper's 1,024 bits).
    frames, progress
        Maximal number of frames of a roll-out; `progress` is called with the number done and this one.
    rules, changes
        What options do where no action is positive, how far they look ahead and when a roll-out ends, and fields of
        these rules to change.

    Examples
    --------
    One option prefers a large number in byte 14, the chicken's height; the other a small one.

    >>> emulator, coding = Emulator("Freeway"), Ram("bytes", addresses=(14,))
    >>> lockstep(emulator, emulator.save(), [[1.0], [-1.0]], coding, 30, watch=(14,)).watched[:, -1, 0].tolist()
    [36, 6]
    """
    rules = replace(rules or Rules(), **changes)
    potentials = Potentials(direction, Ram() if coding is None else coding)
    equal = tolerance(np.abs(potentials.direction).max(axis=1), 0.0, COMPUTED_FLOOR)
    with Rolling(emulator, state, len(potentials), frames, rules, progress) as rolling:
        for _ in rolling.decisions():
            q = action_values(rolling, potentials)
            chosen, acts = first_best(q, equal[rolling.live])
            rolling.take(chosen, ~acts)
    return rolling.log


def action_values(rolling: Rolling, potentials: Potentials) -> Array:
    """``(k, A)`` the value of each action to each live option, as far ahead as the rules ask; sorts these by state."""
    rules = rolling.rules
    rolling.expand()
    bounds = rolling.sort_by_state()
    if rules.horizon == 1:
        here = np.stack([node.ram for node in rolling.nodes])
        there = np.stack([node.after for node in rolling.nodes])
        return potentials.gains(here, there, rolling.live, bounds)
    groups = zip(rolling.nodes, np.split(rolling.live, bounds[1:-1]), strict=True)
    return np.concatenate(
        [_planned(node, potentials, group, rules, rules.horizon, {}) for node, group in groups]
    )


def on_a_grid(direction: ArrayLike, coding: Ram) -> Array:
    """Directions ``(n, d)``, each rounded to multiples of a power of two, so that sums of rewards are exact.

    The step is at most 2^-51 of the sum of the absolute entries (2^-43 with code ``"bytes"``), far below the noise of
    an eigenvector.

    >>> e = on_a_grid([[0.1, 0.2, -0.3]], Ram("bytes", addresses=(0, 1, 2)))
    >>> float(e[0] @ [1.0, 1.0, 1.0]), bool(np.abs(e - [0.1, 0.2, -0.3]).max() < 1e-13)
    (0.0, True)
    """
    e = np.asarray(direction, dtype=np.float64)
    if e.ndim != 2 or e.shape[1] != coding.width or not np.isfinite(e).all():
        wanted = f"(n, {coding.width}), as wide as the coding"
        raise ValueError(f"direction must be finite numbers of shape {wanted}, got shape {e.shape}")
    # The sum is below 2^power, and features are multiples of 1, or of 2^-8.
    _, power = np.frexp(np.abs(e).sum(axis=1, keepdims=True))
    step = power - 52 + (8 if coding.code == "bytes" else 0)
    rounded: Array = np.ldexp(np.rint(np.ldexp(e, -step)), step)
    return rounded


class Potentials:
    """Differences of the potentials ``e . phi`` of n purposes between states of memory, exact to the last bit.

    >>> here, there = np.zeros((1, 128), dtype=np.uint8), np.zeros((1, 2, 128), dtype=np.uint8)
    >>> there[0, :, 14] = 1, 2
    >>> e = np.zeros((2, 1024))
    >>> e[0, 8 * 14], e[1, 8 * 14 + 1] = 1.0, -1.0
    >>> Potentials(e, Ram()).gains(here, there, np.arange(2), [0, 2]).tolist()
    [[1.0, 0.0], [0.0, -1.0]]
    """

    def __init__(self, direction: ArrayLike, coding: Ram) -> None:
        self.coding = coding
        self.direction = on_a_grid(direction, coding)
        self._table = coding.table.astype(np.float64)
        # Features that never changed have no weight.
        used = np.flatnonzero(self.direction.any(axis=0))
        self._weights = np.ascontiguousarray(self.direction[:, used])
        columns = np.arange(coding.width) if coding.columns is None else np.array(coding.columns)
        place = np.full(len(coding.watched) * coding.each, -1, dtype=np.intp)
        place[columns[used]] = np.arange(len(used))
        self._place = place.reshape(-1, coding.each)

    def __len__(self) -> int:
        """Number of purposes n."""
        return len(self.direction)

    def gains(self, here: Bytes, there: Bytes, purposes: NDArray[np.intp], bounds: ArrayLike) -> Array:
        """``(k, N)`` rewards ``e . (phi(there) - phi(here))``, each purpose between its own states.

        `here` ``(U, 128)`` and `there` ``(U, N, 128)`` are memory, `purposes` ``(k,)`` numbers, those at one `here`
        side by side, `bounds` ``(U + 1,)`` where those of each `here` begin, and k.
        """
        from eigenoptions._kernels.gains import gains

        found = np.empty((len(purposes), there.shape[1]))
        watched, ends = self.coding.watched, np.asarray(bounds, dtype=np.intp)
        gains(here, there, watched, self._table, self._place, self._weights, purposes, ends, found)
        return found


def _planned(
    node: Node,
    potentials: Potentials,
    group: NDArray[np.intp],
    rules: Rules,
    steps: int,
    known: dict[Any, Array],
) -> Array:
    """``(k, A)`` the value of each action to the options of `group`, so many steps ahead; `known` are those found."""
    if (node, steps) not in known:
        q = potentials.gains(node.ram[None], node.after[None], group, [0, len(group)])
        for action, edge in enumerate(node.edges):
            # What ends the roll-out, and a state that was not tried, has no value afterwards.
            if steps > 1 and edge.to.edges and not edge.held.ended:
                then = _planned(edge.to, potentials, group, rules, steps - 1, known)
                q[:, action] += rules.gamma * np.maximum(then.max(axis=1), 0.0)
        known[node, steps] = q
    return known[node, steps]
