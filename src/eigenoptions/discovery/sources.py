"""What `discover` may be given: mazes, environments, what was found, recorded data."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from eigenoptions._types import Progress, Randomness
from eigenoptions._validation import check_int
from eigenoptions.discovery.tables import Request
from eigenoptions.envs.families import Key, find_family
from eigenoptions.envs.finite import SearchResult, mdp_from_table, try_search
from eigenoptions.envs.fixed_seed import choose_seed
from eigenoptions.envs.sources import (
    count_actions,
    env_name,
    make_env,
)
from eigenoptions.explore.explorer import Explorable, Explorer, explore
from eigenoptions.explore.found import Found
from eigenoptions.mdp import MDP, from_graph, maze
from eigenoptions.mdp.graphs import is_graph
from eigenoptions.samples.sampling import (
    Samples,
    find_sampled_space,
    is_array_space,
    read_samples,
    sample_environment,
)

logger = logging.getLogger("eigenoptions")


class NoLayoutError(ValueError):
    """A seed was given for an environment that is sampled, in many layouts."""


@dataclass(frozen=True, eq=False)
class ReadSource:
    """What a source of `discover` was read as.

    Attributes
    ----------
    data : MDP, Samples or Found
        The table, what was sampled, or what `explore` found.
    kind : str
        Where it comes from: "table", "explored" or "samples".
    request : Request
        The request without the settings that were used here.
    is_environment : bool
        Whether the table is that of an environment, not of a maze.
    """

    data: MDP | Samples | Found
    kind: str
    request: Request
    is_environment: bool


def read_source(source: Any, request: Request) -> ReadSource:
    """Read whatever `discover` accepts as its source."""
    if isinstance(source, str | Path) and not is_environment_id(source):
        source = maze(source, rng=request.rng)
    if is_graph(source):
        names = ("directed", "length", "pos", "max_actions")
        about_graph, request = _take_settings(request, names)
        source = from_graph(source, **about_graph)
    if request.seed is not None:
        _check_has_reset(source)

    # What is a table already, unless the caller wants samples.
    wants_samples = "steps" in request.settings or "features" in request.settings
    if not wants_samples:
        if isinstance(source, MDP):
            return ReadSource(source, "table", request, is_environment=False)
        if isinstance(source, Found):
            return ReadSource(source, "explored", request, is_environment=True)

    # Trained features have a number of their own, and an MDP has all of its options.
    if not isinstance(source, MDP) and request.settings.get("features") != "deep":
        request = request.with_default_number()
    if isinstance(source, Found):
        source = source.transitions
    if not _is_environment(source):
        declared, request = _take_settings(request, ("space", "n_actions"))
        samples = read_samples(source, **declared)
        return ReadSource(samples, "samples", request, is_environment=False)

    if not wants_samples:
        table = read_environment(
            source, request.progress, seed=request.seed, rng=request.rng
        )
        if table is not None:
            data, kind = table
            return ReadSource(data, kind, request, is_environment=True)
    if request.seed is not None:
        raise NoLayoutError(
            "seed= is that of a layout, but samples begin in many: leave it out (rng= "
            "draws the samples), or give key= or FixedSeed(env, seed)"
        )
    return _sample_source(source, request)


def follow_fixed_seed(source: Any, request: Request) -> Request:
    """Return the request with the seed of `FixedSeed` for all that is random."""
    return replace(request, rng=choose_seed(source, request.seed))


def _check_has_reset(source: Any) -> None:
    """Raise ValueError for a source whose reset nobody can seed."""
    if isinstance(source, MDP | Found) or not _is_environment(source):
        raise ValueError(
            f"seed= is that of an environment's reset, and {type(source).__name__} has "
            "none: rng= draws what is random here"
        )


def _is_environment(source: Any) -> bool:
    """Whether a source is an environment, or makes one, and not recorded data."""
    return isinstance(source, MDP | str) or callable(source) or hasattr(source, "step")


def explore_source(source: Any, key: str | Key, request: Request) -> ReadSource:
    """Explore an environment whose states are those of a key."""
    if isinstance(source, str | Path) and not is_environment_id(source):
        source = maze(source, rng=request.rng)
    if isinstance(source, Found):
        raise ValueError(
            f"{source!r} has a key already: leave out key, or give the environment"
        )
    if request.seed is not None:
        _check_has_reset(source)
    is_single = _is_environment(source) and not hasattr(source, "num_envs")
    if not is_single:
        raise ValueError(
            "key= is for a single environment, its id, or a function that makes it, "
            f"got {type(source).__name__}"
        )
    if "features" in request.settings:
        raise ValueError("key= makes a table, and features= does without: give one")

    exploring, request = _take_settings(request, ("steps",))
    found = explore_key(
        source,
        key,
        seed=request.seed,
        rng=request.rng,
        progress=request.progress,
        **exploring,
    )
    return ReadSource(found, "explored", request, is_environment=True)


def explore_key(
    env: Explorable,
    key: str | Key | None,
    *,
    seed: int | None,
    rng: Randomness | None,
    steps: int = 20_000,
    progress: Progress | None = None,
    check_every: int = 100,
) -> Found:
    """Explore an environment until all states of a key are known, or steps are over.

    Parameters
    ----------
    env : str, gymnasium.Env, callable or MDP
        The environment.
    key : str, callable or None
        How its states are recognised; None: as its family does.
    seed, rng
        As in `explore`.
    steps : int, default=20000
        Most steps.
    progress : callable, default=None
        Called as ``progress(done, steps)``.
    check_every : int, default=100
        Steps after which it is asked whether all is known.
    """
    steps = check_int("steps", steps)
    explorer = Explorer(env, key=key, seed=seed, rng=rng)
    with nullcontext() if explorer.env is env else closing(explorer.env):
        for step in range(1, steps + 1):
            explorer.step()
            if progress is not None:
                progress(step, steps)
            if step % check_every == 0 and explorer.is_known:
                break

    found = explorer.found
    n_untried = int((found.untried & ~found.given_up).sum())
    if n_untried:
        logger.warning(
            "%s: options are of the %d states that explore found in %d steps, with %d "
            "actions untried; more steps= show more",
            found.about.name,
            len(found.seen),
            found.n_steps,
            n_untried,
        )
    return found


def _sample_source(source: Any, request: Request) -> ReadSource:
    """Sample an environment by a random walk."""
    names = ("steps", "n_envs", "max_episode_steps")
    collecting, request = _take_settings(request, names)
    samples = sample_environment(
        source,
        request.settings.get("features"),
        rng=request.rng,
        progress=request.progress,
        **collecting,
    )
    if "features" not in request.settings:
        _warn_of_repeated(samples)
    return ReadSource(samples, "samples", request, is_environment=False)


def _warn_of_repeated(samples: Samples, n_visits: int = 20) -> None:
    """Warn where vectors repeat: they are states, and cells would blur them.

    Parameters
    ----------
    samples : Samples
        Steps of an environment.
    n_visits : int, default=20
        Mean number of visits from which on observations count as repeated.
    """
    obs = samples.transitions.obs
    if obs.ndim < 2:
        return
    n_different = len({row.tobytes() for row in np.ascontiguousarray(obs)})
    if n_different * n_visits <= len(obs):
        logger.warning(
            "%s: the %s observations that were sampled are only %s different ones; "
            'discover(env, key="observation") makes a state of each, where cells '
            "put several together",
            samples.provenance["environment"],
            f"{len(obs):,}",
            f"{n_different:,}",
        )


def _take_settings(
    request: Request, names: Iterable[str]
) -> tuple[dict[str, Any], Request]:
    """The settings with some names, and the request without them."""
    taken = {}
    others = dict(request.settings)
    for name in names:
        if name in others:
            taken[name] = others.pop(name)
    return taken, replace(request, settings=others)


def is_environment_id(source: str | Path) -> bool:
    """Whether a source is the id of a Gymnasium environment, and not a maze or a file.

    Examples
    --------
    >>> is_environment_id("FrozenLake-v1"), is_environment_id("four-rooms")
    (True, False)
    """
    if not isinstance(source, str):
        return False
    # An optional module, an optional namespace, a name and a version.
    pattern = r"([\w.]+:)?([\w-]+/)?[\w.-]+-v\d+"
    return bool(re.fullmatch(pattern, source)) and not Path(source).is_file()


def read_environment(
    source: Any,
    progress: Progress | None = None,
    max_states: int = 20_000,
    seed: int | None = None,
    rng: Randomness | None = None,
) -> tuple[MDP | Found, str] | None:
    """The MDP of a finite environment; None for an environment to be sampled.

    To be sampled is one with continuous observations, one that cannot be copied or is
    not repeatable, and one that has too many states. Observations that are not arrays
    (Dict, Tuple) cannot be sampled: then the part is taken that `explore` finds in
    `max_states` steps.

    Parameters
    ----------
    source : environment, id or callable
        The environment.
    progress : callable, default=None
        Called with the numbers of states expanded and found.
    max_states : int, default=20000
        Most states of a search.
    seed, rng : default=None
        As in `explore`: the seed of the reset before the search, and what a walk draws.

    Returns
    -------
    (MDP or Found, str) or None
        The table, or what was explored, and whether it is the environment's own
        ("table") or the result of a search or of exploring ("explored").
    """
    if hasattr(source, "single_observation_space"):
        return None
    env = make_env(source() if callable(source) else source)
    with nullcontext() if env is source else closing(env):
        n_actions = count_actions(env)
        name = env_name(env)
        seed = choose_seed(env, seed)
        mdp = mdp_from_table(env)
        kind = "table"
        if mdp is None:
            kind = "explored"
            searched = _search_states(
                env, n_actions, name, progress, max_states, seed, rng
            )
            if not isinstance(searched, MDP):
                return None if searched is None else (searched, kind)
            mdp = searched

        layout = ""
        if (mdp.recognition or {}).get("layout"):
            layout = f", the layout of seed {seed}"
        logger.info(
            "%s: %d states (%s%s); give steps= to sample it",
            name,
            mdp.n_states,
            kind,
            layout,
        )
        return mdp, kind


def _search_states(
    env: Any,
    n_actions: int,
    name: str,
    progress: Progress | None,
    max_states: int,
    seed: int,
    rng: Randomness | None,
) -> MDP | Found | None:
    """The MDP of a search, or what was explored; None if it is to be sampled."""
    space = find_sampled_space(env.observation_space)
    if getattr(space.dtype, "kind", "") == "f":
        problem = ValueError("observations are continuous")
        searched = SearchResult(mdp=None, problem=problem)
    else:
        searched = try_search(
            env, n_actions, max_states=max_states, progress=progress, seed=seed
        )
    if searched.problem is None:
        return searched.mdp

    # Observations that are arrays can be sampled instead.
    if is_array_space(space):
        logger.info(
            "%s is sampled, since it has no table and cannot be searched: %s",
            name,
            searched.problem,
        )
        return None
    family = find_family(env)
    repeats = family.by == "observation" and family.find_obstacle(env) is None
    if not searched.is_too_large and not repeats:
        # A search of the inside has its own remedies, and floats do not repeat.
        raise searched.problem
    if not searched.is_too_large:
        logger.info(
            "%s is explored, since it has no table and cannot be searched: %s",
            name,
            searched.problem,
        )
        return explore_key(
            env, None, seed=seed, rng=rng, steps=max_states, progress=progress
        )

    # There are too many states. Take the part that `explore` finds in as many steps.
    n_steps = max_states
    part = explore(env, n_steps, seed=seed, rng=rng, progress=progress).mdp
    logger.warning(
        "%s has more than %s states: options are of the %s that explore found in %s "
        "steps; found = explore(env, steps) and discover(found) take more",
        name,
        f"{max_states:,}",
        f"{part.n_states:,}",
        f"{n_steps:,}",
    )
    return part
