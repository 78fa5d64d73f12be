"""Roll-outs of many options under way: who is where, what each did, and one emulation for all who do the same.

Whoever chooses the actions (look-ahead in `lockstep`, a policy on a chart in `charting.follow`, nobody in `play`), what
follows is the same: options in equal states that take equal actions are one edge, which is emulated once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions.atari.emulator import BYTES, Emulator
from eigenoptions.atari.frontier import Edge, Frontier

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


class Rolling:
    """Roll-outs of n options from one state; inside a ``with`` block, after which the emulator is as it was found.

    Attributes
    ----------
    frontier
        The distinct states that live options are in.
    live, at
        ``(k,)`` numbers of the options that go on, and which state of the frontier each is in.
    log
        What happened so far.
    """

    def __init__(
        self,
        emulator: Emulator,
        state: Any,
        n: int,
        frames: int,
        *,
        hold: int = 1,
        depth: int = 1,
        until: Until = "life",
        watch: Sequence[int] = (),
        progress: Callable[[int, int], object] | None = None,
    ) -> None:
        if not n:
            raise ValueError("there are no options: give at least one")
        whole(frames=frames, hold=hold, depth=depth)
        one_of("until", until, Until)
        addresses(watch)
        self._emulator, self._progress, self._frames, self._hold = emulator, progress, frames, hold
        self._watching = np.array(watch, dtype=np.intp)
        self._found, self._acts = emulator.save(), emulator.acts
        self.log = Rollouts(
            np.full((n, frames), -1, dtype=np.int8),
            np.zeros((n, frames, len(self._watching)), dtype=np.uint8),
            np.zeros((n, frames), dtype=np.bool_),
            np.zeros(n),
            np.zeros(n, dtype=np.int64),
            np.zeros(n, dtype=np.bool_),
            0,
            np.zeros(frames, dtype=np.int64),
        )
        self.live, self.at = np.arange(n), np.zeros(n, dtype=np.intp)
        try:
            self.frontier = Frontier(emulator, state, hold, depth, until == "life")
        except ValueError:
            emulator.restore(self._found)
            raise
        self._span = (0, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._emulator.restore(self._found)
        self.log = replace(self.log, acts=self._emulator.acts - self._acts)

    def decisions(self) -> Iterator[int]:
        """The frame of each decision, as long as some option is live."""
        for t in range(0, self._frames, self._hold):
            if not len(self.live):
                return
            self._span = (t, min(t + self._hold, self._frames))
            self.log.frontier[slice(*self._span)] = len(self.frontier)
            yield t

    def stop(self, none: NDArray[np.bool_], *, leave: bool) -> None:
        """Note that some live options found nothing worth doing; with `leave` their roll-outs end."""
        self.log.stopped[self.live[none], slice(*self._span)] = True
        if leave:
            self.live, self.at = self.live[~none], self.at[~none]

    def take(self, chosen: NDArray[np.intp]) -> None:
        """Let each live option take its action: every pair of a state and an action that somebody takes, once."""
        if not len(self.live):
            return
        t, end = self._span
        n_actions = self._emulator.n_actions
        pair = self.at * n_actions + chosen
        somebody = np.bincount(pair, minlength=n_actions * len(self.frontier)) > 0
        which = (np.cumsum(somebody) - 1)[pair]
        taken = [
            self.frontier.edge(p // n_actions, p % n_actions, end - t)
            for p in np.flatnonzero(somebody).tolist()
        ]
        self._keep(taken, which, chosen)
        goes_on = np.array([not edge.ended for edge in taken], dtype=np.bool_)
        place = np.empty(len(taken), dtype=np.intp)
        place[goes_on] = self.frontier.advance([edge for edge in taken if not edge.ended])
        self.live, self.at = self.live[goes_on[which]], place[which][goes_on[which]]
        if self._progress is not None:
            self._progress(end, self._frames)

    def _keep(self, taken: list[Edge], which: NDArray[np.intp], chosen: NDArray[np.intp]) -> None:
        """Write down what happened along the edges that were taken, one for each live option."""
        (t, end), log = self._span, self.log
        for frame in range(end - t):
            on = [
                i for i, edge in enumerate(taken) if frame < len(edge.rewards)
            ]  # an end may come while holding
            if not on:
                return
            place = np.full(len(taken), -1, dtype=np.intp)
            place[on] = np.arange(len(on))
            here = place[which] >= 0
            options, row = self.live[here], place[which[here]]
            seen = np.stack([taken[i].rams[frame] for i in on])
            log.actions[options, t + frame] = chosen[here]
            log.watched[options, t + frame] = seen[:, self._watching][row]
            log.score[options] += np.array([taken[i].rewards[frame] for i in on])[row]
            log.died[options] |= np.array([0 <= taken[i].lost <= frame for i in on])[row]
            log.length[options] += 1


def play(
    emulator: Emulator,
    state: Any,
    actions: ArrayLike,
    *,
    until: Until = "life",
    watch: Sequence[int] = (),
) -> Rollouts:
    """Take given actions ``(n, frames)`` from one state, whatever they lead to: random walks, one action all the time.

    >>> emulator = Emulator("Freeway")
    >>> play(emulator, emulator.save(), [[1] * 30, [0] * 30], watch=(14,)).watched[:, -1, 0].tolist()
    [36, 6]
    """
    given = np.asarray(actions, dtype=np.intp)
    if given.ndim != 2 or not ((given >= 0) & (given < emulator.n_actions)).all():
        raise ValueError(f"actions must be numbers in 0..{emulator.n_actions - 1} of shape (n, frames)")
    with Rolling(emulator, state, len(given), given.shape[1], until=until, watch=watch) as rolling:
        for t in rolling.decisions():
            rolling.take(given[rolling.live, t])
    return rolling.log


def whole(**numbers: int) -> None:
    """Raise ValueError unless these are whole numbers from 1."""
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be at least 1, got {value!r}")


def one_of(name: str, text: str, kinds: Any) -> None:
    """Raise ValueError unless a word is one of those of a Literal."""
    if text not in get_args(kinds):
        raise ValueError(f"{name} must be one of {', '.join(get_args(kinds))}, got {text!r}")


def addresses(watch: Sequence[int]) -> None:
    """Raise ValueError unless these are addresses of bytes."""
    if any(not isinstance(b, int | np.integer) or not 0 <= b < BYTES for b in watch):
        raise ValueError(f"watch must be addresses in 0..{BYTES - 1}, got {watch!r}")
