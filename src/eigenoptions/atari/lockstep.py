"""Many options from one state of a game, in lock step (paper, Section 5.2).

Every option tries all actions in the emulator and takes ``argmax_a e . (phi(s') - phi(s))``. Options that stand in the
same state try the same things, so all of them advance together, and each distinct state is tried once: the work grows
with the number of states, not of options. Only the states of the present frame, and those one step ahead, are kept.

TERMINATE is worth 0. The paper does not say what follows when no action is positive, and in these games that is so
every second frame; `after` is that choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions.atari.coding import Potentials
from eigenoptions.atari.emulator import Emulator
from eigenoptions.atari.frontier import Edge, Frontier, myopic, plan
from eigenoptions.features.ram import Ram
from eigenoptions.options.linear import TIE

After = Literal["best", "noop", "random", "stop"]
Until = Literal["life", "game"]


@dataclass(frozen=True, eq=False)
class Rollouts:
    """What n options did, frame by frame.

    Attributes
    ----------
    actions
        ``(n, frames)`` int8 the action taken; -1 after the end.
    watched
        ``(n, frames, w)`` the watched bytes after each frame; 0 after the end.
    stopped
        ``(n, frames)`` whether no action was positive there: the option would have ended.
    score
        ``(n,)`` sum of the game's rewards.
    length
        ``(n,)`` frames that were played.
    died
        ``(n,)`` whether a life was lost.
    acts
        Frames that were emulated, looking ahead included.
    frontier
        ``(frames,)`` distinct states that options stood in; 0 when no option was left.
    """

    actions: NDArray[np.int8]
    watched: NDArray[np.uint8]
    stopped: NDArray[np.bool_]
    score: NDArray[np.float64]
    length: NDArray[np.int64]
    died: NDArray[np.bool_]
    acts: int
    frontier: NDArray[np.int64]

    def __len__(self) -> int:
        """Number of options n."""
        return len(self.score)

    def __repr__(self) -> str:
        n, frames = self.actions.shape
        return f"Rollouts({n} options, {frames} frames: score {self.score.mean():g}, {self.acts} acts)"

    def alone(self, n_actions: int, hold: int = 1, depth: int = 1) -> int:
        """Frames that roll-outs one by one would emulate, merging nothing.

        Every decision of every option tries `n_actions` actions, `hold` frames each, in each state `depth` - 1 steps
        ahead; what lies nearer was tried by the decisions before.
        """
        decisions = int((-(-self.length // hold)).sum())
        return int(decisions * n_actions**depth * hold)


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
    _check(emulator, n, frames, after, hold, depth, gamma, published, until, watch)
    depth = depth if gamma > 0.0 else 1  # what comes later is worth nothing
    seed = int(rng.integers(2**63)) if isinstance(rng, np.random.Generator) else int(rng)
    tie = np.zeros(n) if published else TIE * np.abs(potentials.direction).max(axis=1)
    offset = np.zeros(n)  # of the published code: how much better than here what it compares with is
    watching = np.array(watch, dtype=np.intp)
    log = _blank(n, frames, len(watching))
    live = np.arange(n)
    at = np.zeros(n, dtype=np.intp)  # which state of the frontier each live option is in
    found, acts = emulator.save(), emulator.acts
    try:
        frontier = Frontier(emulator, state, hold, depth, until == "life")
        for t in range(0, frames, hold):
            end = min(t + hold, frames)
            frontier.expand()
            log.frontier[t:end] = len(frontier)

            # What each action is worth to each option, options sorted by their states.
            order = np.argsort(at, kind="stable")
            live, at = live[order], at[order]
            bounds = np.searchsorted(at, np.arange(len(frontier) + 1))
            if depth == 1:
                q = myopic(frontier.nodes, potentials, live, bounds)
            else:
                q = np.empty((len(live), n_actions))
                for node, low, high in zip(frontier.nodes, bounds[:-1], bounds[1:], strict=True):
                    q[low:high] = plan(node, potentials, live[low:high], depth, gamma)
            worth = q - offset[live, None] if published else q
            best = worth.max(axis=1)
            chosen = (worth >= (best - tie[live])[:, None]).argmax(axis=1)  # the first of equal actions
            none = ~(best > tie[live])
            log.stopped[live[none], t:end] = True
            if after == "noop":
                chosen[none] = emulator.actions.index("NOOP")
            elif after == "random":
                draws = np.random.default_rng([seed, t]).random(n)
                chosen[none] = (draws[live[none]] * n_actions).astype(np.intp)
            elif after == "stop":
                live, at, chosen, q = (part[~none] for part in (live, at, chosen, q))
            if published:
                offset[live] = q[:, -1] - q[np.arange(len(live)), chosen]

            # Every pair of a state and an action that somebody takes, once.
            pair = at * n_actions + chosen
            somebody = np.bincount(pair, minlength=n_actions * len(frontier)) > 0
            which = (np.cumsum(somebody) - 1)[pair]
            taken = [
                frontier.nodes[p // n_actions].edges[p % n_actions] for p in np.flatnonzero(somebody).tolist()
            ]
            _keep(log, taken, which, live, chosen, t, end, watching)
            goes_on = np.array([not edge.ended for edge in taken], dtype=np.bool_)
            place = np.empty(len(taken), dtype=np.intp)
            place[goes_on] = frontier.advance([edge for edge in taken if not edge.ended])
            live, at = live[goes_on[which]], place[which][goes_on[which]]
            if progress is not None:
                progress(end, frames)
            if not len(live):
                break
    finally:
        emulator.restore(found)
    return replace(log, acts=emulator.acts - acts)


def _blank(n: int, frames: int, width: int) -> Rollouts:
    """Nothing has happened yet."""
    return Rollouts(
        np.full((n, frames), -1, dtype=np.int8),
        np.zeros((n, frames, width), dtype=np.uint8),
        np.zeros((n, frames), dtype=np.bool_),
        np.zeros(n),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.bool_),
        0,
        np.zeros(frames, dtype=np.int64),
    )


def _keep(
    log: Rollouts,
    taken: list[Edge],
    which: NDArray[np.intp],
    live: NDArray[np.intp],
    chosen: NDArray[np.intp],
    t: int,
    end: int,
    watching: NDArray[np.intp],
) -> None:
    """Write down what happened along the edges that were taken, one for each live option, from frame t to `end`."""
    for frame in range(end - t):
        on = [i for i, edge in enumerate(taken) if frame < len(edge.rewards)]  # an end may come while holding
        if not on:
            return
        place = np.full(len(taken), -1, dtype=np.intp)
        place[on] = np.arange(len(on))
        here = place[which] >= 0
        options, row = live[here], place[which[here]]
        log.actions[options, t + frame] = chosen[here]
        log.watched[options, t + frame] = np.stack([taken[i].rams[frame] for i in on])[:, watching][row]
        log.score[options] += np.array([taken[i].rewards[frame] for i in on])[row]
        log.died[options] |= np.array([0 <= taken[i].lost <= frame for i in on])[row]
        log.length[options] += 1


def _check(
    emulator: Emulator,
    n: int,
    frames: int,
    after: str,
    hold: int,
    depth: int,
    gamma: float,
    published: bool,
    until: str,
    watch: Sequence[int],
) -> None:
    if not n:
        raise ValueError("there are no options: direction must have at least one row")
    for name, value in (("frames", frames), ("hold", hold), ("depth", depth)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be at least 1, got {value!r}")
    if not 0.0 <= gamma <= 1.0:
        raise ValueError(f"gamma must be in 0..1, got {gamma!r}")
    for name, text, kinds in (("after", after, get_args(After)), ("until", until, get_args(Until))):
        if text not in kinds:
            raise ValueError(f"{name} must be one of {', '.join(kinds)}, got {text!r}")
    if published and depth > 1:
        raise ValueError(f"the published code looks one step ahead: depth must be 1, got {depth}")
    if any(not isinstance(b, int | np.integer) or not 0 <= b < 128 for b in watch):
        raise ValueError(f"watch must be addresses in 0..127, got {watch!r}")
    if after == "noop" and "NOOP" not in emulator.actions:
        raise ValueError(f"{emulator.game} has no action NOOP: use after='best'")
