"""Samples as a source of options: of environments, of recorded data, in feature spaces (paper, Section 5)."""

from __future__ import annotations

import logging
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, fields, replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import Progress, check_choice, check_int, check_settings
from eigenoptions.data import Transitions
from eigenoptions.data.spaces import count_states, read_spaces
from eigenoptions.discovery.method import take_first
from eigenoptions.features import (
    Map,
    compute_features,
    flatten_observations,
    get_feature_map,
    make_features,
)
from eigenoptions.mdp import MDP
from eigenoptions.options import eigenpurposes
from eigenoptions.options.fitting import fit
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.spectra.incidence import feature_spectrum

log = logging.getLogger("eigenoptions")


@dataclass(frozen=True, eq=False)
class Samples:
    """Transitions and what is known of their environment."""

    transitions: Transitions
    n_actions: int
    # None where observations are not the numbers of states.
    n_states: int | None = None
    # Gymnasium space of the observations.
    space: Any = None
    coords: NDArray[np.int_] | None = None
    # The map that was applied while sampling, of observations that are not arrays (Dict).
    features: Map | None = None
    provenance: dict[str, Any] = field(default_factory=dict)


def read_samples(data: Any, space: Any = None, n_actions: int | None = None) -> Samples:
    """Samples of recorded data: whatever `Transitions.of` accepts."""
    declared_space, declared_actions = read_spaces(data)
    transitions = Transitions.of(data)
    if not len(transitions):
        raise ValueError("there are no transitions: collect some")
    space = declared_space if space is None else space
    n_actions = (
        declared_actions if n_actions is None else check_int("n_actions", n_actions)
    )
    n_states = count_states(space)
    if space is None or n_actions is None:
        log.warning(
            "n_actions or the observation space were inferred from the data, which need not show all: pass n_actions= "
            "and space= to be safe"
        )
    if (
        space is None
        and transitions.obs.ndim == 1
        and transitions.obs.dtype.kind in "iu"
    ):
        n_states = int(max(transitions.obs.max(), transitions.next_obs.max())) + 1
    if transitions.obs.dtype.kind == "U":
        n_states = len(np.unique([transitions.obs, transitions.next_obs]))
    if n_actions is None:
        n_actions = check_int(
            "n_actions", int(transitions.action.max()) + 1, maximum=1 << 20
        )
    return Samples(
        transitions,
        n_actions,
        n_states,
        space,
        provenance={"transitions": len(transitions)},
    )


def read_environment(
    source: Any, progress: Progress | None = None, max_states: int = 20_000
) -> tuple[MDP, str] | None:
    """The MDP of a finite environment, and whether it is its "table" or was "explored"; None for one to be sampled.

    That is one with continuous observations, that cannot be copied, is not repeatable, or has too many states; of one
    with too many whose observations are not arrays, the part that was found.
    """
    from eigenoptions.envs import StateLimitReached, from_env
    from eigenoptions.envs.finite import mdp_from_table
    from eigenoptions.envs.sources import count_actions, env_name, make_env

    if hasattr(source, "single_observation_space"):
        return None
    env = make_env(source() if callable(source) else source)
    with nullcontext() if env is source else closing(env):
        count_actions(env)
        name, space = env_name(env), find_sampled_space(env.observation_space)
        mdp, kind = mdp_from_table(env), "table"
        try:
            if mdp is None and getattr(space.dtype, "kind", "") == "f":
                raise ValueError("observations are continuous")
            if mdp is None:
                mdp, kind = (
                    from_env(env, progress=progress, max_states=max_states),
                    "explored",
                )
        except ValueError as error:
            if is_array_space(space):
                log.info(
                    "%s is sampled, since it has no table and cannot be explored: %s",
                    name,
                    error,
                )
                return None
            if not isinstance(error, StateLimitReached):
                raise
            mdp, kind = error.mdp, "explored"
            log.warning(
                "%s has more states: options are of the %d found first",
                name,
                mdp.n_states,
            )
        layout = (
            ", the layout of seed 0" if (mdp.recognition or {}).get("layout") else ""
        )
        log.info(
            "%s: %d states (%s%s); give steps= to sample it",
            name,
            mdp.n_states,
            kind,
            layout,
        )
        return mdp, kind


def find_sampled_space(space: Any) -> Any:
    """The space of what is sampled: of goal environments (Dict) that of the part "observation"."""
    is_goal_space = hasattr(space, "spaces") and "observation" in space.spaces
    return space["observation"] if is_goal_space else space


def is_array_space(space: Any) -> bool:
    """Whether observations of a space are numbers or arrays (Discrete, Box, MultiDiscrete, MultiBinary)."""
    return any(hasattr(space, attribute) for attribute in ("n", "low", "nvec"))


def sample_environment(
    env: Any,
    features: str | Map | None = None,
    *,
    steps: int = 50_000,
    n_envs: int | None = None,
    max_episode_steps: int | None = None,
    rng: int | np.random.Generator = 0,
    **collecting: Any,
) -> Samples:
    """Samples of a random walk through an environment.

    Parameters
    ----------
    env
        An id, an environment, a function that creates one, a vector environment, or an `MDP`.
    features : str or callable, optional
        A function is applied while sampling where observations are not arrays (Dict, Tuple).
    steps, n_envs, max_episode_steps, rng, collecting
        As in `envs.collect`; `n_envs` is 8 by default, or 1 for an environment that is given as an object.

    Examples
    --------
    >>> sample_environment("CliffWalking-v1", steps=100).space
    Discrete(48)
    """
    from eigenoptions.envs import collect
    from eigenoptions.envs.finite import mdp_from_table
    from eigenoptions.envs.sources import count_actions, env_name, make_vector_env

    if n_envs is None:
        n_envs = 8 if isinstance(env, str | MDP) or callable(env) else 1
    envs, owned = make_vector_env(env, n_envs, max_episode_steps)
    with closing(envs) if owned else nullcontext():
        first: Any = envs.envs[0] if hasattr(envs, "envs") else envs
        n_actions = count_actions(envs)
        whole_space: Any = envs.single_observation_space
        space = find_sampled_space(whole_space)
        applied = features if callable(features) and not is_array_space(space) else None
        mapping = applied
        if applied is None and space is not whole_space:
            mapping = itemgetter("observation")
        if features is None and np.prod(space.shape or 1) > 1000:
            raise ValueError(
                f'observations of {env_name(first)} are images of shape {space.shape}: give features= ("deep" learns '
                'them; an Atari game also has gymnasium.make(..., obs_type="ram"))'
            )
        mdp = mdp_from_table(first) if first is not envs else None
        n_states = count_states(space)
        transitions = collect(envs, steps, rng=rng, features=mapping, **collecting)
        name = env.name if isinstance(env, MDP) else env_name(first)
        return Samples(
            transitions,
            n_actions,
            n_states,
            None if applied else space,
            coords=mdp.coords if mdp is not None and mdp.n_states == n_states else None,
            features=applied,
            provenance={
                "transitions": len(transitions),
                "environment": name,
                "steps": int(steps),
            },
        )


def discover_linear(
    samples: Samples,
    n_options: int | None = None,
    *,
    features: str | Map | None = None,
    gamma: float | None = None,
    both_signs: bool = True,
    skip_zero: bool = True,
    policy: str = "learned",
    whiten: bool = True,
    per_cell: int | None = 4,
    rng: int | np.random.Generator = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> LinearOptionSet:
    """Eigenoptions in a feature space (Section 5.2).

    A random walk visits some places very often. So that they do not outweigh the others, observations are sorted into
    cells, and of each cell and action only the first few transitions are kept, as a table counts no transition twice.

    Parameters
    ----------
    samples : Samples
        The transitions.
    n_options : int, optional
        Number of options; all there are by default.
    features : str or callable, optional
        The map phi: a function from a batch of observations to ``(N, d)``, or the name of one in `features`; ``"deep"``
        trains one (`deep.learn`). Default: ``"fourier"``; ``"bits"`` for bytes, as the paper's of Atari's memory.
    gamma : float, default 0.99
        Discount of the options' purposes; 0.9 for trained features.
    both_signs, skip_zero : bool, default True
        As in `eigenpurposes`.
    policy : str, default "learned"
        ``"learned"``: action values are fitted to the samples. ``"look-ahead"``: every action is tried in a copy of the
        environment; bind the options with ``options.look_ahead(env)``.
    whiten : bool, default True
        Functions ``e . phi`` have variance 1; False: vectors e of length 1, as in the paper.
    per_cell : int or None, default 4
        Number of transitions of one action kept in each cell, of which 40 lie along each dimension; None for all.
    rng, progress
        Seed and progress of training features.
    settings
        Those of the feature map that is given by name (`order`, `tiles`, ...), of `deep.learn` for trained features
        (its `steps` is called `training_steps`), and of `options.linear.fit`.
    """
    check_choice("policy", policy, ("learned", "look-ahead"))
    is_memory = (
        samples.transitions.obs.dtype == np.uint8 and samples.transitions.obs.ndim == 2
    )
    features = samples.features or features or ("bits" if is_memory else "fourier")
    names: list[str] = []
    if isinstance(features, str):
        feature_map = get_feature_map(features)
        all_names = getattr(feature_map, "settings", None) or [
            field.name for field in fields(feature_map)
        ]
        names = [name for name in all_names if name not in ("low", "high", "n_states")]
    mapping = {name: settings.pop(name) for name in names if name in settings}
    check_settings(
        "discovery in features",
        settings,
        ("iterations", "ridge", "stop", "parts"),
        names,
    )
    provenance = {"method": "eigen", "source": "samples", **samples.provenance}
    signs: Any = {"both_signs": both_signs, "skip_zero": skip_zero}
    if features == "deep":
        from eigenoptions.deep import learn
        from eigenoptions.deep.dataset import Dataset

        data = Dataset.of(samples.transitions)
        n_vectors = (
            8 if n_options is None else -(-n_options // (2 if both_signs else 1))
        )
        if "training_steps" in mapping:
            mapping["steps"] = mapping.pop("training_steps")
        learned: Any = learn(
            data, n_vectors + skip_zero, rng=rng, progress=progress, **mapping
        )
        purposes = eigenpurposes(learned, **signs)[:n_options]
        certificate = {
            "resolved": learned.certificate.resolved.tolist(),
            "score": learned.certificate.score,
        }
        provenance |= {"operator": "learned", "certificate": certificate}
        phi: Any = learned.features
        observations, numbered = data.thin_transitions(20_000)
        table = compute_features(phi, observations)
    else:
        phi = features
        if isinstance(phi, str):
            # Only a Box has bounds; those of other spaces are taken from the observations.
            space = None if hasattr(samples.space, "nvec") else samples.space
            phi = make_features(phi, space, samples.transitions.obs, **mapping)
        kept = find_rare_transitions(samples.transitions, phi, per_cell)
        obs, action, next_obs, terminated = (
            column[kept] for column in vars(samples.transitions).values()
        )
        # Each observation is mapped once: what follows looks its features up.
        observations = np.concatenate([obs, next_obs])
        before, after = np.arange(2 * len(kept)).reshape(2, -1)
        numbered = Transitions(before, action, after, terminated)
        table = (
            observations if samples.features else compute_features(phi, observations)
        )
        purposes = eigenpurposes(
            feature_spectrum(numbered, table.__getitem__, whiten=whiten), **signs
        )
        purposes = take_first(
            n_options, purposes, "signs and eigenvectors of these transitions"
        )
        provenance |= {"operator": "incidence", "whiten": whiten}
    if policy == "look-ahead":
        return LinearOptionSet(
            tuple(purposes), phi, samples.n_actions, provenance=provenance
        )
    if gamma is None:
        gamma = 0.9 if features == "deep" else 0.99
    settings |= {
        "n_actions": samples.n_actions,
        "gamma": gamma,
        "provenance": provenance,
    }
    options = replace(
        fit(numbered, purposes, table.__getitem__, **settings), features=phi
    )
    # Values on trained features are never exact: an option whose potential no longer rises could run for ever.
    return options.with_termination(patience=8) if features == "deep" else options


def find_rare_transitions(
    transitions: Transitions,
    features: Map | None,
    per_cell: int | None = 4,
    n_cells: int = 40,
) -> NDArray[np.intp]:
    """Numbers of the first `per_cell` transitions of each action in each cell of the observations.

    `n_cells` lie along each dimension, between the bounds of the features where they have some, else between those of
    the observations.
    """
    obs = transitions.obs
    if per_cell is None:
        return np.arange(len(obs))
    per_cell = check_int("per_cell", per_cell)
    low, high = getattr(features, "low", None), getattr(features, "high", None)
    if low is None or high is None:
        low, high = (
            find(obs.reshape(len(obs), -1), axis=0).astype(float)
            for find in (np.min, np.max)
        )
    n_dimensions = flatten_observations(obs[:1]).shape[1]
    if n_dimensions != len(low):
        raise ValueError(
            f"observations must have {len(low)} dimensions, got {n_dimensions}"
        )
    extent = np.subtract(high, low)
    scale = n_cells / np.where(extent > 0, extent, 1.0)
    # A cell and an action are one number, their hash.
    weights = np.random.default_rng(0).integers(2**63, size=n_dimensions + 1)
    # In blocks: as floats, images would need eight times their memory.
    blocks = (flatten_observations(obs[i : i + 256]) for i in range(0, len(obs), 256))
    cells = (np.floor((block - low) * scale).astype(np.int64) for block in blocks)
    key = (
        np.concatenate([cell @ weights[1:] for cell in cells])
        + transitions.action * weights[0]
    )
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=~key[order[:1]]))
    rank = np.arange(len(key)) - np.repeat(first, np.diff(first, append=len(key)))
    return np.sort(order[rank < per_cell])
