"""Options from samples: of transitions, or of an environment that is sampled first (paper, Section 5).

And how close they come: `approach` measures how the options of a sampled table become those of the exact one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import subspace_angles

from eigenoptions.acting import LinearOptionSet
from eigenoptions.experience import OF_FEATURES, TableExperience, described, experience, nested
from eigenoptions.features import Map, Raw
from eigenoptions.fitting import checked_actions
from eigenoptions.mdp import MDP, Transitions, graph
from eigenoptions.options import OptionSet, eigenpurposes
from eigenoptions.planning import solve
from eigenoptions.spectra import spectrum
from eigenoptions.walks import walk

MANY = 8  # copies of an environment that are sampled together


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
