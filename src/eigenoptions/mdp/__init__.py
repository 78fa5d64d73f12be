"""Finite dynamics and their graph (paper, Sections 2 and 3).

`MDP` (a transition table), `Transitions` (samples), `maze`, `graph` (the weights W of an undirected graph whose nodes
are states and whose edges are transitions) and `reachable`. Row ``s * n_actions + a`` of ``MDP.transition`` is the
distribution p(. | s, a).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import breadth_first_order

from eigenoptions._validation import check_csr, check_real, readonly

WALLS, FREE = "#X", ". SG"
# Row and column offsets of the actions 0 up, 1 right, 2 down, 3 left.
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
FOLDER = files("eigenoptions.mdp") / "mazes"
Features = Callable[[NDArray[Any]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False, repr=False)
class MDP:
    """Finite dynamics; a task when they have a start and a goal.

    Attributes
    ----------
    transition
        ``(S * A, S)`` csr array; row ``s * A + a`` is p(. | s, a). A dense ``(S, A, S)`` array is accepted too.
    n_states, n_actions
        S and A; by default read off the table.
    start, goal
        State numbers of a task, or None.
    coords, name, legend
        For pictures only: ``(S, 2)`` row and column of each state, or None; a title; and what a picture does not show,
        such as the names of actions.
    reward
        ``(S,)`` the mean reward of leaving each state, or ``(S * A,)`` of each action, or None. Only methods that
        need rewards use it, and it is not part of the fingerprint.

    Examples
    --------
    >>> flip = MDP(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> flip
    MDP(2 states, 1 action, deterministic)
    """

    transition: csr_array
    n_states: int = 0
    n_actions: int = 0
    coords: NDArray[np.int_] | None = None
    start: int | None = None
    goal: int | None = None
    name: str = ""
    reward: NDArray[np.float64] | None = None
    legend: str = ""

    def __post_init__(self) -> None:
        table = _table(self.transition)
        rows, n = table.shape
        checked: dict[str, Any] = {"transition": table, "n_states": n, "n_actions": rows // n}
        for field in ("n_states", "n_actions"):
            if (given := getattr(self, field)) not in (0, found := checked[field]):
                raise ValueError(f"{field} is {found} by the shape of transition {table.shape}, got {given}")
        if self.coords is not None:
            checked["coords"] = coords = readonly(self.coords)
            if coords.shape != (n, 2) or coords.dtype.kind not in "iu":
                found = f"{coords.dtype} {coords.shape}"
                raise ValueError(f"coords must be whole numbers of shape ({n}, 2), got {found}")
        if self.reward is not None:
            checked["reward"] = reward = np.array(self.reward, dtype=np.float64).ravel()
            if len(reward) not in (n, rows) or not np.isfinite(reward).all():
                allowed = f"{n} finite numbers, one per state, or {rows}, one per state and action"
                raise ValueError(f"reward must be {allowed}, got {np.shape(self.reward)}")
        for field in ("start", "goal"):
            if (state := getattr(self, field)) is not None:
                whole = isinstance(state, int | np.integer) and not isinstance(state, bool)
                if not (whole and 0 <= state < n):
                    raise ValueError(f"{field} must be a state in 0..{n - 1}, got {state!r}")
                checked[field] = int(state)
        for field, value in checked.items():
            object.__setattr__(self, field, value)

    @cached_property
    def successors(self) -> NDArray[np.int32] | None:
        """``(S, A)`` next state of each action, or None where some action is stochastic."""
        if not np.array_equal(self.transition.indptr, np.arange(len(self.transition.indptr))):
            return None
        successors: NDArray[np.int32] = self.transition.indices.astype(np.int32)
        successors.setflags(write=False)
        return successors.reshape(self.n_states, self.n_actions)

    @cached_property
    def likely(self) -> NDArray[np.int32]:
        """``(S, A)`` most likely next state of each action, for pictures.

        Of equally likely ones the one nearest to the mean move, so that a slippery action points where it aims at.
        """
        if self.successors is not None:
            return self.successors
        table, first = self.transition, self.transition.indptr[:-1]
        row = np.repeat(np.arange(len(first)), np.diff(table.indptr))
        off = np.zeros(table.nnz)
        if self.coords is not None:
            move = (self.coords[table.indices] - self.coords[row // self.n_actions]).astype(np.float64)
            mean = np.add.reduceat(table.data[:, None] * move, first)
            off = ((move - mean[row]) ** 2).sum(axis=1).round(9)
        unlikely = table.data < (1.0 - 1e-9) * np.maximum.reduceat(table.data, first)[row]
        best = np.lexsort((table.indices, off, unlikely, row))[first]
        return readonly(table.indices[best].astype(np.int32)).reshape(self.n_states, self.n_actions)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the state space and its dynamics, by which options files are checked."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(f"{self.n_states},{self.n_actions};".encode())
        for part in (self.transition.indptr, self.transition.indices):
            digest.update(np.ascontiguousarray(part, dtype="<i8").data)
        digest.update(np.ascontiguousarray(self.transition.data, dtype="<f8").data)
        return digest.hexdigest()

    def task(self, start: int | None = None, goal: int | None = None) -> MDP:
        """The same dynamics with another start, another goal, or both.

        >>> maze("four-rooms").task(goal=0)
        MDP(four-rooms: 104 states, 4 actions, deterministic, start 94, goal 0)
        """
        start = self.start if start is None else start
        return replace(self, start=start, goal=self.goal if goal is None else goal)

    def __repr__(self) -> str:
        sizes = {"state": self.n_states, "action": self.n_actions}
        ends = {"start": self.start, "goal": self.goal}
        parts = [f"{count} {word}{'s' * (count > 1)}" for word, count in sizes.items()]
        parts += ["stochastic" if self.successors is None else "deterministic"]
        parts += [f"{field} {state}" for field, state in ends.items() if state is not None]
        return f"MDP({self.name + ': ' if self.name else ''}{', '.join(parts)})"

    def __str__(self) -> str:
        if self.coords is None:
            return repr(self)
        from eigenoptions import _text as sketch

        marks = self._marks()
        glyphs = [marks.get(state, " ") for state in range(self.n_states)]
        return "\n".join([sketch.text(self.coords, glyphs), *filter(None, [self.legend]), repr(self)])

    def _repr_html_(self) -> str:
        from eigenoptions import _text as sketch

        picture = "" if self.coords is None else sketch.svg(self.coords, marks=self._marks()) + "<br>"
        legend = f"{escape(self.legend)}<br>" if picture and self.legend else ""
        return f"<div>{picture}{legend}<code>{escape(repr(self))}</code></div>"

    def _marks(self) -> dict[int, str]:
        return {s: letter for s, letter in ((self.start, "S"), (self.goal, "G")) if s is not None}


@dataclass(frozen=True, eq=False, repr=False)
class Transitions:
    """A batch of experience: samples of an environment (Section 5.1). Its arrays are read-only copies.

    Attributes
    ----------
    obs, next_obs
        ``(N, ...)`` observations before and after.
    action, terminated
        ``(N,)`` actions taken, and whether the episode ended there; columns ``(N, 1)`` are flattened.

    Examples
    --------
    >>> Transitions(np.array([0, 1]), np.array([1, 1]), np.array([1, 2]), np.array([False, True]))
    Transitions(2 steps, 1 end; obs int64 (2,), 0 to 1; action int64 (2,), 1 to 1)
    """

    obs: NDArray[Any]
    action: NDArray[np.int_]
    next_obs: NDArray[Any]
    terminated: NDArray[np.bool_]

    def __post_init__(self) -> None:
        for name, part in list(vars(self).items()):
            object.__setattr__(self, name, readonly(part))
        sizes = {name: len(part) for name, part in vars(self).items()}
        if len(set(sizes.values())) != 1:
            raise ValueError(f"all parts of Transitions must have one length, got {sizes}")
        for name in ("action", "terminated"):
            # Replay buffers hold columns.
            if getattr(part := getattr(self, name), "shape", ()) == (len(self), 1):
                object.__setattr__(self, name, part.reshape(len(self)))

    @classmethod
    def of(cls, data: Any) -> Transitions:
        """Transitions of recorded data, which `discover` accepts directly too.

        Parameters
        ----------
        data
            Arrays ``(obs, action, next_obs, terminated)``, also without the last or with a reward in the middle; a list
            of such steps; a dict with the names of D4RL (without ``next_observations``, those of the next row within
            episodes), CleanRL or this class; a replay buffer of Stable-Baselines3, without its decisions for options;
            a Minari data set. Tensors and lists are arrays too; ``(N, 1)`` whole numbers are actions or states.

        Examples
        --------
        >>> Transitions.of({"observations": [0, 1, 2], "actions": [[1], [1], [0]], "terminals": [0, 0, 1]}).next_obs
        array([1, 2])
        """
        from eigenoptions.mdp.data import columns_of

        return cls(*columns_of(vars(data) if isinstance(data, Transitions) else data))

    def __len__(self) -> int:
        return len(self.obs)

    def __repr__(self) -> str:
        from eigenoptions._text import count, describe

        sizes = f"{count(len(self), 'step')}, {count(int(np.sum(self.terminated)), 'end')}"
        return f"Transitions({sizes}; obs {describe(self.obs)}; action {describe(self.action)})"

    def _repr_html_(self) -> str:
        from eigenoptions._text import arrays_html

        return arrays_html(f"{len(self)} steps", vars(self))


def maze(source: str | Path, *, rng: int | np.random.Generator = 0) -> MDP:
    r"""MDP of a maze: a name, a map by rule, the text of a map, or a path to one (Figure 1, Section 4).

    Map text has one character per cell: ``#`` or ``X`` wall, ``.`` or space free, ``S`` start, ``G`` goal. Lines may
    differ in length; missing cells are walls. A first line ``rows,cols`` (the authors' ``.mdp`` files) is accepted.
    States are the free cells in reading order. Actions are 0 up, 1 right, 2 down, 3 left; a move into a wall leaves
    the state unchanged.

    Parameters
    ----------
    source, rng
        One of `mazes`, a map by rule such as ``"rooms:30x30"`` (see `eigenoptions.mdp.maps`), whose doors and corridors
        `rng` places, the text of a map, or the path to a text file.

    Examples
    --------
    >>> maze("four-rooms")
    MDP(four-rooms: 104 states, 4 actions, deterministic, start 94, goal 9)
    >>> maze("rooms:2x3")
    MDP(rooms:2x3: 607 states, 4 actions, deterministic)
    >>> maze("S.#\n#.G").successors.tolist()
    [[0, 1, 0, 0], [1, 1, 2, 0], [1, 3, 2, 2], [3, 3, 3, 2]]
    """
    name, text = _maze_text(source, rng)
    grid, above = _grid(text)
    free = np.isin(grid, list(FREE))
    if not free.any():
        raise ValueError("the map has no free cell: write . or a space where a state should be")
    coords = np.argwhere(free)
    table = moves_on(coords)
    ends: dict[str, Any] = {}
    for letter, word in (("S", "start"), ("G", "goal")):
        found = np.argwhere(grid == letter)
        if len(found) > 1:
            where = " and ".join(f"line {y + 1 + above} column {x + 1}" for y, x in found[:2])
            raise ValueError(f"the map has {len(found)} {word}s ({letter}), at {where}: keep one")
        ends[word] = np.flatnonzero((coords == found[0]).all(axis=1))[0] if len(found) else None
    return MDP(table, coords=coords, name=name, **ends)


def moves_on(coords: NDArray[np.int_]) -> csr_array:
    """``(4 S, S)`` table of a maze whose states are these cells: up, right, down, left, or stay where there is no cell.

    >>> moves_on(np.array([[0, 0], [0, 1]])).indices.tolist()
    [0, 1, 0, 0, 1, 1, 1, 0]
    """
    cells = coords - coords.min(axis=0) + 1
    here = np.arange(len(cells), dtype=np.int32)
    number = np.full(tuple(cells.max(axis=0) + 2), -1, dtype=np.int32)
    number[tuple(cells.T)] = here
    moves = np.stack([number[tuple((cells + move).T)] for move in MOVES], axis=1)
    moves = np.where(moves >= 0, moves, here[:, None]).ravel()
    indptr = np.arange(len(moves) + 1, dtype=np.int32)
    return csr_array((np.ones(len(moves)), moves, indptr), shape=(len(moves), len(cells)))


def mazes() -> list[str]:
    """Names of the built-in mazes.

    >>> mazes()
    ['four-rooms', 'i-maze', 'open-room']
    """
    return sorted(path.name[:-4] for path in FOLDER.iterdir() if path.name.endswith(".txt"))


def _maze_text(source: str | Path, rng: int | np.random.Generator) -> tuple[str, str]:
    """Name and text of a map; see `maze`."""
    if isinstance(source, str):
        if source in mazes():
            return source, (FOLDER / f"{source}.txt").read_text(encoding="utf-8")
        if "\n" in source or not set(source) - set(WALLS + FREE):
            return "", source
    elif not isinstance(source, Path):
        raise TypeError(f"a maze is a name, the text of a map or a path, got {type(source).__name__}")
    from eigenoptions.mdp import maps

    ruled = maps.by_rule(source, rng) if isinstance(source, str) else None
    return maps.of_file(source, mazes()) if ruled is None else (str(source), ruled)


def _grid(text: str) -> tuple[NDArray[np.str_], int]:
    """Checked characters of a map as a rectangle, missing cells filled with wall; and the number of lines above it."""
    lines = text.removeprefix("\ufeff").splitlines()
    filled = [y for y, line in enumerate(lines) if line]
    above = filled[0] if filled else 0
    size = re.fullmatch(r"\s*(\d+)\s*,\s*(\d+)\s*", lines[above]) if filled else None
    above += size is not None
    lines = lines[above : filled[-1] + 1] if filled else []
    if not lines:
        raise ValueError("the map is empty: give at least one line with a free cell (.)")
    high, wide = len(lines), max(map(len, lines))
    if size and (high > int(size[1]) or wide > int(size[2])):
        found = f"the map has {high} rows and {wide} columns"
        raise ValueError(f"the first line says {int(size[1])},{int(size[2])} but {found}: correct it")
    known = set(WALLS + FREE)
    for y, line in enumerate(lines):
        for x, character in enumerate(line) if set(line) - known else ():
            if character not in known:
                raise ValueError(
                    f"unknown character {character!r} at line {y + 1 + above} column {x + 1}: "
                    "use # or X for walls, . or space for free cells, S start, G goal"
                )
    return np.array([list(line.ljust(wide, "#")) for line in lines], dtype="U1"), above


def graph(mdp: MDP, weights: str | ArrayLike | csr_array = "adjacency") -> csr_array:
    """Undirected graph of an MDP: symmetric weights W with an empty diagonal (Section 2.3).

    Parameters
    ----------
    mdp, weights
        ``"adjacency"``: weight 1 where some action leads from one state to the other, either way (the paper's A).
        ``"random-walk"``: the mean of p(s' | s) and p(s | s') under the uniform policy.
        Or an own ``(S, S)`` array of non-negative weights.

    Returns
    -------
    csr_array
        ``(S, S)``. Directed tables are symmetrised: an edge that can be walked one way only counts as an edge,
        because the Laplacian's eigenvectors are real and orthogonal only for symmetric weights. Self-loops (blocked
        moves) are left out: staying carries no direction.

    Examples
    --------
    >>> graph(maze("S.G")).toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    if not isinstance(mdp, MDP):
        kind = type(mdp).__name__
        raise TypeError(f"graph takes an MDP, got {kind}: make one with maze(...) or from_env(...)")
    n = mdp.n_states
    if isinstance(weights, str):
        if weights not in ("adjacency", "random-walk"):
            allowed = '"adjacency", "random-walk" or an (S, S) array'
            raise ValueError(f"weights must be {allowed}, got {weights!r}")
        table = mdp.transition.tocoo()
        share = np.ones(table.nnz) if weights == "adjacency" else table.data / mdp.n_actions
        W = csr_array((share, (table.row // mdp.n_actions, table.col)), shape=(n, n))
    else:
        if issparse(weights):
            W = check_csr("weights", weights)
        else:
            W = csr_array(np.atleast_2d(np.asarray(check_real("weights", weights), dtype=float)))
        if W.shape != (n, n):
            raise ValueError(f"weights must have shape ({n}, {n}) for {n} states, got {W.shape}")
        _nonnegative(W.data, "weights")
        W = W.astype(np.float64)
    W.sum_duplicates()
    W = csr_array(W + W.T)
    W.setdiag(0.0)
    W.eliminate_zeros()
    W.sort_indices()
    W.data[:] = 1.0 if isinstance(weights, str) and weights == "adjacency" else 0.5 * W.data
    return W


def reachable(transition: csr_array, states: ArrayLike, *, backward: bool = False) -> NDArray[np.bool_]:
    """Which states can be reached from some of `states`, or can reach one of them.

    Every stored entry of `transition` ``(S * A, S)`` or ``(S, S)`` is a possible move from the state of its row.
    `states` are numbers or a mask ``(S,)``; they are part of the result, a mask too. With `backward` moves are followed
    against their direction.

    >>> one_way = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> reachable(one_way, [1]).tolist()
    [False, True, True]
    >>> reachable(one_way, [1], backward=True).tolist()
    [True, True, False]
    """
    found, before = _search(transition, states, backward)
    mask = np.zeros(len(before), dtype=np.bool_)
    mask[found] = True
    return mask[:-1]


def distance(mdp: MDP, start: int, goal: int) -> int | None:
    """Smallest number of moves that can lead from one state to another, or None where no path does.

    >>> distance(maze("S.G"), 0, 2)
    2
    """
    _, before = _search(mdp.transition, [start])
    moves, state = 0, goal
    while state != start and before[goal] >= 0:
        moves, state = moves + 1, before[state]
    return moves if before[goal] >= 0 else None


def _search(
    transition: csr_array, states: ArrayLike, backward: bool = False
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Breadth-first search from one more node S that leads to all of `states`: nodes found, and their predecessors."""
    moves = check_csr("transition", transition) if issparse(transition) else csr_array(transition)
    n = moves.shape[1]
    if n == 0 or moves.shape[0] == 0 or moves.shape[0] % n:
        raise ValueError(f"transition must have shape (S*A, S) with at least one state, got {moves.shape}")
    per_state = moves.shape[0] // n
    moves = csr_array((moves.data, moves.indices, moves.indptr[::per_state]), shape=(n, n))
    if backward:
        moves = csr_array(moves.T)
    first = np.asarray(states)
    if first.size and first.dtype.kind not in "biu":
        raise ValueError(f"states must be numbers in 0..{n - 1} or a mask, got {first.dtype}")
    first = np.flatnonzero(first) if first.dtype == np.bool_ else first.astype(np.intp).ravel()
    if len(first) and not 0 <= first.min() <= first.max() < n:
        raise ValueError(f"states must be in 0..{n - 1}, got {first.min()}..{first.max()}")
    indices = np.concatenate([moves.indices, first])
    indptr = np.append(moves.indptr, len(indices))
    links = csr_array((np.ones(len(indices)), indices, indptr), shape=(n + 1, n + 1))
    found, before = breadth_first_order(links, n, return_predecessors=True)
    return found, before


def _table(transition: Any) -> csr_array:
    """A checked, canonical copy of a transition table: sorted, without explicit zeros, rows summing to 1."""
    if issparse(transition) and len(transition.shape) == 2:
        table = csr_array(check_csr("transition", transition), dtype=np.float64, copy=True)
    else:
        given = transition.toarray() if issparse(transition) else transition
        dense = np.asarray(check_real("transition", given), dtype=np.float64)
        if dense.ndim == 3 and dense.shape[0] == dense.shape[2]:
            dense = dense.reshape(-1, dense.shape[2])
        if dense.ndim != 2:
            raise ValueError(f"transition must have shape (S*A, S) or (S, A, S), got {dense.shape}")
        table = csr_array(dense)
    rows, n = table.shape
    if n == 0 or rows == 0 or rows % n:
        what = "with at least one state and action"
        raise ValueError(f"transition must have shape (S*A, S) {what}, got {table.shape}")
    _nonnegative(table.data, "transition probabilities")
    table.sum_duplicates()
    table.eliminate_zeros()
    sums = np.asarray(table.sum(axis=1)).ravel()
    off = np.flatnonzero(np.abs(sums - 1.0) > 1e-9)
    if len(off):
        s, a = divmod(off[0], table.shape[0] // n)
        found = f"row {off[0]} (state {s}, action {a}) sums to {sums[off[0]]:.6g}"
        raise ValueError(f"transition rows must sum to 1, but {found}")
    for part in (table.data, table.indices, table.indptr):
        part.setflags(write=False)
    return table


def _nonnegative(data: NDArray[np.float64], what: str) -> None:
    bad = np.flatnonzero(~(data >= 0) | ~np.isfinite(data))
    if len(bad):
        raise ValueError(f"{what} must be finite and not negative, got {data[bad[0]]}")
