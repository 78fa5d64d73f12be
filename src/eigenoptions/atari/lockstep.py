"""Many options from one state of a game, in lock step (paper, Section 5.2).

Every option tries all actions in the emulator and takes ``argmax_a e . (phi(s') - phi(s))``. Options that stand in the
same state try the same things, so all of them advance together, and each distinct state is tried once: the work grows
with the number of states, not of options. Only the states of the present frame, and those one step ahead, are kept.

TERMINATE is worth 0. The paper does not say what follows when no action is positive, and in these games that is so
every second frame; `after` is that choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from eigenoptions.atari.coding import Potentials
from eigenoptions.atari.emulator import Emulator
from eigenoptions.atari.frontier import myopic, plan
from eigenoptions.atari.ram import Ram
from eigenoptions.atari.rolling import Rolling, Rollouts, Until, one_of, whole
from eigenoptions.options.ties import COMPUTED_FLOOR, first_best, tolerance

After = Literal["best", "noop", "random", "stop"]


def lockstep(
    emulator: Emulator,
    state: Any,
    direction: ArrayLike,
    coding: Ram | None = None,
    frames: int = 200,
    *,
    after: After = "best",
    hold: int = 1,
    depth: int = 1,
    gamma: float = 0.0,
    published: bool = False,
    until: Until = "life",
    watch: Sequence[int] = (),
    rng: int | np.random.Generator = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Rollouts:
    """Roll out all options from one state; the emulator is left as it was found.

    Parameters
    ----------
    emulator
        The game.
    state
        Where all begin, as `Emulator.save` gave it.
    direction
        ``(n, d)`` the vectors e.
    coding
        The map phi from memory to d features; None: the paper's 1,024 bits.
    frames
        Most frames of a roll-out.
    after
        What an option does where no action is positive. ``"best"``: it starts again at once, and takes the best action
        all the same. ``"noop"``: nothing, for a frame. ``"random"``: any action. ``"stop"``: its roll-out ends.
    hold
        Frames that an action is held, trying and playing; the last may be cut by `frames`.
    depth, gamma
        1: the paper's myopic choice, whatever gamma is. More: states `depth` steps ahead, equal ones merged, are a
        small MDP, in which ``q(s, a) = r + gamma max(0, max_a' q(s', a'))`` is solved exactly; of that plan the first
        action is taken, and the next one is made afresh. What ends the roll-out is worth nothing afterwards.
    published
        As the authors' program does: rewards are taken against what the last action tried at the frame before led to,
        and every one above 0 counts, rounding noise too. It goes on with ``after="noop"``.
    until
        ``"life"``: a roll-out ends when a life is lost; ``"game"``: when the game is over.
    watch
        Addresses of bytes to record, such as the player's position.
    rng
        For ``after="random"``: option i draws the same number at the same frame, whatever the others do.
    progress
        Called with the number of frames done and `frames`.

    Examples
    --------
    One option likes a large number in byte 14, the chicken's height; the other a small one.

    >>> emulator = Emulator("Freeway")
    >>> coding = Ram("bytes", addresses=(14,))
    >>> up, down = lockstep(emulator, emulator.save(), [[1.0], [-1.0]], coding, 30, watch=(14,)).watched[:, -1, 0]
    >>> int(up), int(down)
    (36, 6)
    """
    potentials = Potentials(direction, Ram() if coding is None else coding)
    n, n_actions = len(potentials), emulator.n_actions
    whole(depth=depth)
    _check(emulator, after, depth, gamma, published)
    depth = depth if gamma > 0.0 else 1  # what comes later is worth nothing
    seed = int(rng.integers(2**63)) if isinstance(rng, np.random.Generator) else int(rng)
    floor = 0.0 if published else COMPUTED_FLOOR
    equal = tolerance(np.abs(potentials.direction).max(axis=1), 0.0, floor)
    offset = np.zeros(n)  # of the published code: how much better than here what it compares with is
    how: Any = {"hold": hold, "depth": depth, "until": until, "watch": watch, "progress": progress}
    with Rolling(emulator, state, n, frames, **how) as rolling:
        for t in rolling.decisions():
            frontier = rolling.frontier
            frontier.expand()

            # What each action is worth to each option, options sorted by their states.
            order = np.argsort(rolling.at, kind="stable")
            live, at = rolling.live[order], rolling.at[order]
            rolling.live, rolling.at = live, at
            bounds = np.searchsorted(at, np.arange(len(frontier) + 1))
            if depth == 1:
                q = myopic(frontier.nodes, potentials, live, bounds)
            else:
                q = np.empty((len(live), n_actions))
                for node, low, high in zip(frontier.nodes, bounds[:-1], bounds[1:], strict=True):
                    q[low:high] = plan(node, potentials, live[low:high], depth, gamma)
            worth = q - offset[live, None] if published else q
            chosen, acts = first_best(worth, equal[live])
            none = ~acts
            if after == "noop":
                chosen[none] = emulator.actions.index("NOOP")
            elif after == "random":
                draws = np.random.default_rng([seed, t]).random(n)
                chosen[none] = (draws[live[none]] * n_actions).astype(np.intp)
            if published:
                offset[live] = q[:, -1] - q[np.arange(len(live)), chosen]
            leave = after == "stop"
            rolling.stop(none, leave=leave)
            rolling.take(chosen[~none] if leave else chosen)
    return rolling.log


def _check(emulator: Emulator, after: str, depth: int, gamma: float, published: bool) -> None:
    if not 0.0 <= gamma <= 1.0:
        raise ValueError(f"gamma must be in 0..1, got {gamma!r}")
    one_of("after", after, After)
    if published and depth > 1:
        raise ValueError(f"the published code looks one step ahead: depth must be 1, got {depth}")
    if after == "noop" and "NOOP" not in emulator.actions:
        raise ValueError(f"{emulator.game} has no action NOOP: use after='best'")
