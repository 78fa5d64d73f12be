"""Roll-outs of many options from one state of a game, advanced together (paper, Section 5.2).

Whatever chooses the actions (look-ahead in `lockstep`, a policy on a chart in `follow`, a given list in `play`), what
follows is the same: options in equal states that take equal actions share one edge, which is emulated once. Equal
states, by the emulator's own bytes, are one `Node`. States tried for one decision serve the next; those that no option
can reach any more are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions._validation import check_choice, check_float, check_int
from eigenoptions.atari.emulator import Bytes, Emulator, Held, Progress
from eigenoptions.atari.ram import check_addresses

# States kept at once when looking several steps ahead; about 8 kB each.
MAX_STATES_AHEAD = 50_000

After = Literal["best", "noop", "random", "stop"]
Until = Literal["life", "game"]


@dataclass(frozen=True)
class Rules:
    """How options are rolled out.

    Attributes
    ----------
    after
        What an option does where no action is positive. ``"best"``: it starts again at once and takes the best action
        all the same. ``"noop"``: nothing, for one step. ``"random"``: any action. ``"stop"``: its roll-out ends.
    hold
        Frames per step: an action is held so long, in trying and in playing; `frames` may cut the last step.
    depth, gamma
        With depth 1 the choice is the paper's myopic one, whatever gamma is. With more, the states up to `depth` steps
        ahead, equal ones merged, are a small MDP, in which ``q(s, a) = r + gamma max(0, max_a' q(s', a'))`` is solved
        exactly; the first action of that plan is taken, and the next decision plans anew. What ends the roll-out has
        value zero afterwards.
    until, watch
        ``"life"``: a roll-out ends when a life is lost; ``"game"``: when the game is over. Addresses of bytes to log.
    rng
        Random generator or seed for ``after="random"``. Option i draws the same number at the same frame, whatever
        the others do.

    Examples
    --------
    >>> Rules(after="noop", hold=8).after
    'noop'
    """

    after: After = "best"
    hold: int = 1
    depth: int = 1
    gamma: float = 0.0
    until: Until = "life"
    watch: Sequence[int] = ()
    rng: int | np.random.Generator = 0

    def __post_init__(self) -> None:
        check_choice("after", self.after, get_args(After))
        check_choice("until", self.until, get_args(Until))
        check_int("hold", self.hold)
        check_int("depth", self.depth)
        check_float("gamma", self.gamma, minimum=0, maximum=1)
        check_addresses(self.watch)
        if isinstance(self.rng, np.random.Generator):
            # Drawn once, so that the record always stands for the same numbers.
            object.__setattr__(self, "rng", int(self.rng.integers(2**63)))

    @property
    def horizon(self) -> int:
        """Steps that a decision looks ahead: `depth`, or 1 where gamma gives later steps no value."""
        return self.depth if self.gamma > 0.0 else 1


@dataclass(frozen=True, eq=False)
class Rollouts:
    """What n options did, frame by frame.

    Attributes
    ----------
    actions, watched
        ``(n, frames)`` int8 the action taken, -1 after the end; ``(n, frames, w)`` the watched bytes after it, then 0.
    stopped
        ``(n, frames)`` whether no action was positive there: the option would have terminated.
    score, length, died
        ``(n,)`` sum of the game's rewards, frames that were played, and whether a life was lost.
    acts, frontier
        Frames that were emulated, looking ahead included; and ``(frames,)`` number of distinct states of the options.
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


@dataclass(slots=True, eq=False)
class Node:
    """A state and its memory ``(128,)``; once actions were tried, their `edges` and the memory `after` ``(A, 128)``."""

    state: Any
    ram: Bytes
    edges: tuple[Edge, ...] = ()
    after: Bytes = field(init=False)


@dataclass(slots=True, eq=False)
class Edge:
    """What an action does in a state: the node that it leads to, and what happened on the way."""

    to: Node
    held: Held


class Rolling:
    """Roll-outs of n options from one state, in a ``with`` block, after which the emulator is as it was found.

    `live` ``(k,)`` are the numbers of the options that go on, `nodes` the distinct states that they are in, in order of
    arrival, `at` ``(k,)`` the index there of each option's, and `log` is what happened so far.
    """

    def __init__(
        self,
        emulator: Emulator,
        state: Any,
        n: int,
        frames: int,
        rules: Rules,
        progress: Progress | None = None,
    ) -> None:
        if not n:
            raise ValueError("there are no options: give at least one")
        self.rules, self._frames = rules, check_int("frames", frames)
        self._emulator, self._progress = emulator, progress
        self._noop = emulator.noop if rules.after == "noop" else -1
        self._watch = np.array(rules.watch, dtype=np.intp)
        self.log = Rollouts(
            np.full((n, frames), -1, dtype=np.int8),
            np.zeros((n, frames, len(self._watch)), dtype=np.uint8),
            np.zeros((n, frames), dtype=np.bool_),
            np.zeros(n),
            np.zeros(n, dtype=np.int64),
            np.zeros(n, dtype=np.bool_),
            0,
            np.zeros(frames, dtype=np.int64),
        )
        self.live, self.at = np.arange(n), np.zeros(n, dtype=np.intp)
        self._found, self._acts, self._span = emulator.save(), emulator.acts, (0, 0)
        emulator.restore(state)
        over, self.nodes = emulator.over, [Node(state, emulator.ram())]
        if over:
            emulator.restore(self._found)
            raise ValueError("the game is over in this state: give one from which it goes on")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._emulator.restore(self._found)
        self.log = replace(self.log, acts=self._emulator.acts - self._acts)

    def decisions(self) -> Iterator[int]:
        """The frame of each decision, as long as some option is live."""
        for t in range(0, self._frames, self.rules.hold):
            if not len(self.live):
                return
            self._span = (t, min(t + self.rules.hold, self._frames))
            self.log.frontier[slice(*self._span)] = len(self.nodes)
            yield t

    def expand(self) -> None:
        """Try every action in every state that is less than `Rules.horizon` steps ahead and was not tried before."""
        layer: Iterable[Node] = self.nodes
        steps, visited = self.rules.horizon, 0
        for ahead in range(1, steps + 1):
            known: dict[bytes, Node] = {}
            reached: dict[Node, None] = {}
            for node in layer:
                if not node.edges:
                    self._try_all(node)
                    # One step ahead, only states that are taken need to be merged, in `_advance`.
                    for edge in node.edges if steps > 1 else ():
                        edge.to = self._merged(edge.to, known)
                if ahead < steps:
                    reached |= dict.fromkeys(edge.to for edge in node.edges if not edge.held.ended)
                visited += 1
                if steps > 1 and visited + len(known) > MAX_STATES_AHEAD:
                    raise ValueError(
                        f"looking {steps} steps ahead from {len(self.nodes)} states reaches more than "
                        f"{MAX_STATES_AHEAD} states: lower depth, or roll out fewer options at a time"
                    )
            layer = reached

    def sort_by_state(self) -> NDArray[np.intp]:
        """Sort the live options by their states; returns ``(states + 1,)`` where those of each state begin."""
        order = np.argsort(self.at, kind="stable")
        self.live, self.at = self.live[order], self.at[order]
        return np.searchsorted(self.at, np.arange(len(self.nodes) + 1))

    def take(self, chosen: NDArray[np.intp], idle: NDArray[np.bool_] | None = None) -> NDArray[np.intp]:
        """Let each live option take its action; each pair of a state and an action is emulated once.

        Options that are `idle`, since no action is positive, follow ``rules.after`` instead. Returns the actions
        ``(k,)`` of the options that were live before.
        """
        taken = actions = chosen.copy()
        if idle is not None:
            self.log.stopped[self.live[idle], slice(*self._span)] = True
            if self.rules.after == "noop":
                taken[idle] = self._noop
            elif self.rules.after == "random":
                seed: Any = [self.rules.rng, self._span[0]]
                draws = np.random.default_rng(seed).random(len(self.log))
                taken[idle] = (draws[self.live[idle]] * self._emulator.n_actions).astype(np.intp)
            elif self.rules.after == "stop":
                self.live, self.at, actions = self.live[~idle], self.at[~idle], taken[~idle]
        if len(self.live):
            self._advance(actions)
        return taken

    def _advance(self, actions: NDArray[np.intp]) -> None:
        t, end = self._span
        n_actions = self._emulator.n_actions
        pair = self.at * n_actions + actions
        is_taken = np.bincount(pair, minlength=n_actions * len(self.nodes)) > 0
        which = (np.cumsum(is_taken) - 1)[pair]
        pairs = (divmod(p, n_actions) for p in np.flatnonzero(is_taken).tolist())
        edges = [self._edge(self.nodes[index], action, end - t) for index, action in pairs]
        self._record([edge.held for edge in edges], which, actions)
        goes_on = np.array([not edge.held.ended for edge in edges], dtype=np.bool_)
        known: dict[bytes, Node] = {}
        there = [self._merged(edge.to, known) for edge in edges if not edge.held.ended]
        self.nodes = list(dict.fromkeys(there))
        number_of = {node: i for i, node in enumerate(self.nodes)}
        place = np.empty(len(edges), dtype=np.intp)
        place[goes_on] = [number_of[node] for node in there]
        self.live, self.at = self.live[goes_on[which]], place[which][goes_on[which]]
        if self._progress is not None:
            self._progress(end, self._frames)

    def _edge(self, node: Node, action: int, frames: int) -> Edge:
        """What an action does in a state: as it was tried, or else held now for so many frames."""
        if node.edges:
            return node.edges[action]
        self._emulator.restore(node.state)
        held = self._emulator.hold(action, frames, one_life=self.rules.until == "life")
        return Edge(Node(self._emulator.save(), held.rams[-1]), held)

    def _merged(self, node: Node, known: dict[bytes, Node]) -> Node:
        """The first node seen in this state; `known` holds those seen, by a digest of the state's many bytes."""
        digest = blake2b(self._emulator.key(node.state), digest_size=16).digest()
        return known.setdefault(digest, node)

    def _try_all(self, node: Node) -> None:
        one_life = self.rules.until == "life"
        tried = self._emulator.try_actions(node.state, self.rules.hold, one_life=one_life)
        node.edges = tuple(Edge(Node(self._emulator.save(), held.rams[-1]), held) for held in tried)
        # Faster than np.stack, which took about 5 % of the time of the emulator.
        node.after = np.empty((len(node.edges), len(node.ram)), dtype=np.uint8)
        for action, edge in enumerate(node.edges):
            node.after[action] = edge.held.rams[-1]

    def _record(self, taken: list[Held], which: NDArray[np.intp], actions: NDArray[np.intp]) -> None:
        """Enter into the log what happened along the edges that were taken, `which` of them per live option."""
        (t, end), log = self._span, self.log
        for frame in range(end - t):
            # An end may come while an action is held.
            on = [i for i, held in enumerate(taken) if frame < len(held.rewards)]
            if not on:
                return
            place = np.full(len(taken), -1, dtype=np.intp)
            place[on] = np.arange(len(on))
            here = place[which] >= 0
            options, row = self.live[here], place[which[here]]
            seen = np.stack([taken[i].rams[frame] for i in on])
            log.actions[options, t + frame] = actions[here]
            log.watched[options, t + frame] = seen[:, self._watch][row]
            log.score[options] += np.array([taken[i].rewards[frame] for i in on])[row]
            log.died[options] |= np.array([0 <= taken[i].lost <= frame for i in on])[row]
            log.length[options] += 1


def play(
    emulator: Emulator, state: Any, actions: ArrayLike, *, until: Until = "life", watch: Sequence[int] = ()
) -> Rollouts:
    """Take given actions ``(n, frames)`` from one state, such as random walks or one action all the time.

    >>> emulator = Emulator("Freeway")
    >>> play(emulator, emulator.save(), [[1] * 30, [0] * 30], watch=(14,)).watched[:, -1, 0].tolist()
    [36, 6]
    """
    given = np.asarray(actions)
    # Also floats are refused: they would be cut off.
    if (
        given.dtype.kind not in "iu"
        or given.ndim != 2
        or not ((given >= 0) & (given < emulator.n_actions)).all()
    ):
        raise ValueError(f"actions must be numbers in 0..{emulator.n_actions - 1} of shape (n, frames)")
    rules = Rules(until=until, watch=watch)
    with Rolling(emulator, state, len(given), given.shape[1], rules) as rolling:
        for t in rolling.decisions():
            rolling.take(given[rolling.live, t])
    return rolling.log
