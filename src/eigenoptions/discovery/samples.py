"""Options from samples: of transitions, or of an environment that is sampled first (paper, Section 5).

`gather` makes one stream of differences out of many parts, files or workers. And how close samples come: `approach`
measures how the options of a sampled table become those of the exact one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import subspace_angles

from eigenoptions.discovery.experience import OF_FEATURES, TableExperience, described, experience, nested
from eigenoptions.features import Map, Raw
from eigenoptions.mdp import MDP, Transitions, graph
from eigenoptions.options import OptionSet, eigenpurposes
from eigenoptions.options.fitted import checked_actions
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.options.solver import solve
from eigenoptions.options.walks import walk
from eigenoptions.parallel import current, on_engine, pmap
from eigenoptions.spectra import spectrum
from eigenoptions.spectra.gram import Gram

MANY = 8  # copies of an environment that are sampled together
ROWS = 1 << 20  # most transitions of a file that are in memory at a time
JOBS = 8  # shares into which the parts of a stream are cut where that shows in the last bits
SUFFIXES = (".npy", ".npz", ".safetensors")


def from_transitions(
    transitions: Transitions | Iterable[Transitions],
    n_options: int | None = None,
    *,
    features: str | Map | None = None,
    space: Any = None,
    n_actions: int | None = None,
    gamma: float | None = None,
    provenance: dict[str, Any] | None = None,
    **settings: Any,
) -> OptionSet | LinearOptionSet:
    """Eigenoptions from samples alone (Section 5).

    Parameters
    ----------
    transitions
        A batch, or batches one after the other (a `Recording`, a `stream`): then one is in memory at a time.
    n_options
        How many, both signs counted; None for all that the samples tell.
    features
        The map phi: a function from a batch of observations to ``(N, d)``, or a name (``"fourier"``, ``"tiles"``,
        ``"raw"``, ``"bits"``). None: one-hot where observations are state numbers, else ``"fourier"``.
    space
        Of the observations, for the number of states and the bounds of features. None: both are taken from the first
        batch.
    n_actions
        Number of actions; None: the largest in the first batch, plus one.
    gamma
        Discount of the purposes; None: 0.9 for a table, 0.99 for features.
    provenance
        What to record in the set beside the settings.
    settings
        `both_signs` (True) and `skip_zero` (True). With features also `policy` (``"learned"`` or ``"look-ahead"``),
        `basis` and `stop` of `fit`, `whiten`, `cells` and `each` of `FeatureExperience`, and those of a map that is
        named: `order`, `coupled`, `tiles`, `tilings`, `size`.

    Returns
    -------
    OptionSet or LinearOptionSet
        An `OptionSet` where states are numbered: purposes of the sampled graph, solved on the sampled MDP. Otherwise a
        `LinearOptionSet`.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> from_transitions(walk(maze("four-rooms"), 5000), n_options=4)
    OptionSet(4 options on 104 states: e2+, e2-, e3+, e3-)
    """
    batches = iter([transitions] if isinstance(transitions, Transitions) else transitions)
    first = next(batches, None)
    if not isinstance(first, Transitions):
        raise ValueError(
            f"give Transitions or batches of them, got {type(first if first else transitions).__name__}"
        )
    _, n_actions = checked_actions(first, n_actions)
    own = {name: settings.pop(name) for name in OF_FEATURES if name in settings}
    past = experience(space, n_actions, features, first, **own)
    try:
        for batch in chain([first], batches):
            past.add(batch)
    except RuntimeError as stopped:  # an environment that failed on the way
        stopped.experience = past  # type: ignore[attr-defined]
        stopped.args = (f"{stopped}; what was seen is in .experience of this error, with its .options()",)
        raise
    if gamma is not None:
        settings["gamma"] = gamma
    return past.options(n_options, provenance=provenance, **settings)


@on_engine()
def from_samples(
    env: Any,
    n_options: int | None = None,
    *,
    steps: int = 50_000,
    features: str | Map | None = None,
    n_envs: int | None = None,
    rng: int | np.random.Generator = 0,
    max_episode_steps: int | None = None,
    progress: Any = None,
    **settings: Any,
) -> OptionSet | LinearOptionSet:
    """Eigenoptions of an environment, from a random walk through it (Section 5).

    Parameters
    ----------
    env
        An id, an environment, a function that makes one, a vector environment, or an `MDP`.
    n_options, features
        As in `from_transitions`. Dict observations need a function.
    steps
        Transitions to sample.
    n_envs
        Copies sampled together; None: 8, or 1 for an environment that is given as an object.
    rng, max_episode_steps, progress
        As in `envs.collect`.
    settings
        As in `from_transitions`. With ``policy="look-ahead"`` the options are bound to `env` if it is an environment;
        otherwise bind them later, with ``options.look_ahead(env)``.

    Examples
    --------
    >>> from_samples("CartPole-v1", n_options=4, steps=2000)
    LinearOptionSet(4 learned options on 67 features: e1+, e1-, e2+, e2-)
    """
    from eigenoptions.envs import stream

    space, n_actions, coords, name = described(env)
    if n_envs is None:
        n_envs = MANY if isinstance(env, str | MDP) or (callable(env) and not hasattr(env, "step")) else 1
    inside = nested(space, features)
    how: dict[str, Any] = {
        "n_envs": n_envs,
        "rng": rng,
        "max_episode_steps": max_episode_steps,
        "progress": progress,
    }
    if (
        inside
    ):  # observations that are no arrays are stored as their features, which then stand for themselves
        how["features"] = features
    made = from_transitions(
        stream(env, steps, **how),
        n_options,
        features=Raw() if inside else features,
        space=None if inside else space,
        n_actions=n_actions,
        provenance={"environment": name, "steps": int(steps)},
        **settings,
    )
    if isinstance(made, OptionSet):
        return replace(made, coords=coords)
    if inside:
        assert callable(features)
        made = replace(made, features=features)
    return made.look_ahead(env) if made.weights is None and hasattr(env, "step") else made


@on_engine()
def gather(
    parts: Any,
    n_features: int | None = None,
    *,
    dedupe: bool = True,
    features: Any = None,
    progress: Callable[[int, int], object] | None = None,
) -> Gram:
    """One `Gram` of transitions that lie in many files, or that workers make (Section 5.1).

    Each worker makes a local set of the differences in its share of the parts; the sets are then joined by content, so
    a difference that several of them saw still counts once. The result is that of one stream over all parts in their
    order, to the last bit: with `dedupe` however the parts were shared out, and on every engine.

    Parameters
    ----------
    parts
        A list of parts, a `Recording` of `envs.collect`, or the path of a folder or file. A part is

        * a path: ``.npy`` of shape ``(N, 2)`` (states) or ``(N, 2, d)`` (features), which is read a million rows at a
          time; ``.npz`` with ``obs`` and ``next_obs``; ``.safetensors`` that `collect` wrote; a folder of such;
        * `Transitions`, or a pair of arrays before and after;
        * a function without arguments that gives one of these or many, called where the part is worked on.
    n_features, dedupe, features
        As in `Gram`.
    progress
        Called with shares done and shares in all.

    Examples
    --------
    Four walks through a corridor of five states: all of its eight transitions, each once.

    >>> from functools import partial
    >>> from eigenoptions.mdp import maze
    >>> gather([partial(walk, maze("....."), 100, rng=seed) for seed in range(4)])
    Gram(8 differences of 5 states)
    """
    make = {"n_features": n_features, "dedupe": dedupe, "features": features}
    total = Gram(**make)  # what is wrong with these is told before anything is read
    spans = _spans(parts)
    if not spans:
        raise ValueError("there is nothing to gather: give at least one file, batch or function")
    if current().name == "serial" and dedupe:
        for i, span in enumerate(spans):
            for before, after in _pairs(span):
                total.add(before, after)
            if progress is not None:
                progress(i + 1, len(spans))
        return total
    waiting: dict[int, list[Gram]] = {}
    joined = 0

    def join(i: int, part: list[Gram]) -> None:
        """Take what a job made when it is its turn, while others are still made; then it is forgotten."""
        nonlocal joined
        waiting[i] = part
        while joined in waiting:
            total.absorb(waiting.pop(joined).pop())
            joined += 1

    # Sums without dedupe depend on how they were cut, so that must not depend on workers. The more shares, the more
    # often a difference travels: few are best, but not fewer than workers.
    many = 2 * (current().workers or os.cpu_count() or 1) if dedupe else JOBS
    bounds = np.linspace(0, len(spans), min(many, len(spans)) + 1).astype(int)
    pmap(
        _gathered,
        [spans[low:high] for low, high in pairwise(bounds.tolist())],
        shared={"make": make},
        progress=progress,
        arrived=join,
    )
    return total


def _gathered(job: list[Any], make: dict[str, Any]) -> list[Gram]:
    """The stream over a share of the parts, in a list that its reader empties."""
    gram = Gram(**make)
    for span in job:
        for before, after in _pairs(span):
            gram.add(before, after)
    return [gram]


def _spans(parts: Any) -> list[Any]:
    """Parts in pieces that fit in memory: a file and its rows, a file, a batch or a function; all of them checked."""
    from eigenoptions.envs.collecting import Recording

    if isinstance(parts, Recording):
        return [(str(path), 0, count) for path, count in zip(parts.files, parts.counts, strict=True)]
    if isinstance(parts, Transitions) or callable(parts):
        return [parts]
    if not isinstance(parts, str | Path):
        if _is_pair(parts):
            return [parts]
        if isinstance(parts, np.ndarray) or not hasattr(parts, "__iter__"):
            kind = type(parts).__name__
            raise TypeError(
                f"a part is a path, Transitions, a pair (before, after) or a function, got {kind}"
            )
        return [span for part in parts for span in _spans(part)]
    path = Path(parts)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
        if not files:
            raise FileNotFoundError(f"no transitions in {path}: there is no {', '.join(SUFFIXES)} file")
        return [span for file in files for span in _spans(file)]
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}: give the path of a file with transitions")
    if path.suffix not in SUFFIXES:
        raise ValueError(f"transitions are read from {', '.join(SUFFIXES)} files, got {str(path)!r}")
    if path.suffix != ".npy":
        return [(str(path), 0, None)]
    rows = np.load(path, mmap_mode="r", allow_pickle=False)
    if rows.ndim not in (2, 3) or rows.shape[1] != 2:
        raise ValueError(f"{path} must hold (N, 2) states or (N, 2, d) features, it holds {rows.shape}")
    return [(str(path), low, min(low + ROWS, len(rows))) for low in range(0, max(len(rows), 1), ROWS)]


def _pairs(span: Any) -> Iterator[tuple[Any, Any]]:
    """Batches before and after, of a piece."""
    if isinstance(span, Transitions):
        yield span.obs, span.next_obs
    elif _is_pair(span):
        yield span[0], span[1]
    elif callable(span):
        made = span()
        for part in [made] if isinstance(made, Transitions | str | Path) or _is_pair(made) else made:
            for piece in _spans(part):
                yield from _pairs(piece)
    else:
        yield _read(*span)


def _read(name: str, low: int, high: int | None) -> tuple[Any, Any]:
    """Rows of a file, before and after; nothing of it stays mapped."""
    from eigenoptions.envs.collecting import read_chunk

    path = Path(name)
    if path.suffix == ".npy":
        rows = np.load(path, mmap_mode="r", allow_pickle=False)[low:high]
        return np.array(rows[:, 0]), np.array(rows[:, 1])
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            if not {"obs", "next_obs"} <= set(file):
                raise ValueError(f"{path} must hold obs and next_obs, it holds {', '.join(file)}")
            return file["obs"][low:high], file["next_obs"][low:high]
    batch = read_chunk(path)[1]
    return batch.obs[low:high], batch.next_obs[low:high]


def _is_pair(part: Any) -> bool:
    """Whether this is two batches of features, before and after."""
    return isinstance(part, tuple) and len(part) == 2 and all(hasattr(side, "shape") for side in part)


@dataclass(frozen=True, eq=False)
class Approach:
    """How the options of samples come close to the exact ones.

    Attributes
    ----------
    transitions
        ``(T,)`` numbers of transitions.
    angles
        ``(runs, T, K)`` principal angles between the sampled and the exact eigenspace, largest first, in degrees.
    agreement
        ``(runs, T)`` share of equal actions, over all options and states.
    differences
        ``(runs, T)`` distinct differences seen.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> approach(maze("i-maze"), [100, 200], k=2, runs=3).angles.shape
    (3, 2, 2)
    """

    transitions: NDArray[np.int64]
    angles: NDArray[np.float64]
    agreement: NDArray[np.float64]
    differences: NDArray[np.int64]


def approach(
    mdp: MDP,
    transitions: Iterable[int] = (100, 300, 1_000, 3_000, 10_000, 30_000),
    *,
    k: int = 8,
    runs: int = 10,
    gamma: float = 0.9,
    rng: int = 0,
) -> Approach:
    """Sampled eigenoptions against the exact ones, as transitions of a random walk grow (Section 5.1).

    The exact ones are those of the combinatorial Laplacian (Theorem 5.1). The sampled ones know nothing but the walk:
    their purposes are those of the sampled graph, and they are solved on the sampled MDP. Signs are matched first.

    Parameters
    ----------
    mdp
        The table; the walk begins at its start and does not end at its goal.
    transitions
        When to look.
    k
        Eigenvectors, those of the smallest eigenvalues but zero; twice as many options.
    runs
        Walks.
    gamma, rng
        Discount of the purposes, and seed.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> close = approach(maze("i-maze"), [50, 20_000], k=2, runs=3)
    >>> bool(close.angles[:, -1].max() < 1e-5), float(close.agreement[:, -1].min())
    (True, 1.0)
    """
    table = MDP(mdp.transition, coords=mdp.coords, start=mdp.start)
    when = np.array(sorted(transitions))
    exact = spectrum(graph(table), k + 1, "combinatorial")
    truth = solve(table, eigenpurposes(exact), gamma).policy.reshape(k, 2, -1)
    angles = np.full((runs, len(when), k), 90.0)
    agreement, differences = np.zeros((runs, len(when))), np.zeros((runs, len(when)), dtype=np.int64)
    for run, seed in enumerate(np.random.SeedSequence(rng).spawn(runs)):
        path = walk(table, int(when[-1]), rng=np.random.default_rng(seed))
        past = TableExperience(table.n_states, table.n_actions)
        low = 0
        for i, high in enumerate(when.tolist()):
            past.add(Transitions(*(part[low:high] for part in vars(path).values())))
            low = high
            differences[run, i] = len(past.gram)
            options = past.options(2 * k, gamma=gamma, at_most=True)
            found = past.spectrum(min(past.n_seen, len(options) // 2 + 1))
            vectors = found.vectors[:, found.n_zero :]
            if vectors.shape[1] < k:
                continue
            angles[run, i] = np.rad2deg(subspace_angles(vectors, exact.vectors[:, 1:]))
            mine = options.policy.reshape(k, 2, -1).copy()
            turned = np.einsum("sk,sk->k", vectors, exact.vectors[:, 1:]) < 0
            mine[turned] = mine[turned, ::-1]
            agreement[run, i] = (mine == truth).mean()
    return Approach(when, angles, agreement, differences)
