"""What `discover` may be given: mazes, environments, what was found, recorded data."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eigenoptions._registry import source_readers
from eigenoptions._types import Progress, Randomness
from eigenoptions.discovery.request import Request
from eigenoptions.discovery.tables import discover_table
from eigenoptions.envs.families import find_family
from eigenoptions.envs.finite import SearchResult, mdp_from_table, try_search
from eigenoptions.envs.fixed_seed import choose_seed
from eigenoptions.envs.sources import (
    count_actions,
    env_name,
    make_env,
)
from eigenoptions.mdp import MDP, from_graph, maze
from eigenoptions.mdp.graphs import is_graph
from eigenoptions.mdp.spaces import find_sampled_space, is_array_space
from eigenoptions.options import OptionSet

if TYPE_CHECKING:
    from eigenoptions.samples.linear import LinearOptionSet

logger = logging.getLogger("eigenoptions")


@dataclass(frozen=True, eq=False)
class ReadSource:
    """What a source of `discover` was read as.

    Attributes
    ----------
    table : MDP or None
        The table; None of what a room reads.
    kind : str
        Where it comes from: "table", "explored" or "samples".
    request : Request
        The request without the values that were used here.
    is_environment : bool
        Whether it comes from an environment, not from a maze or a log.
    discover_room : callable, default=None
        From a request to options, where a room read the source.
    """

    table: MDP | None
    kind: str
    request: Request
    is_environment: bool
    discover_room: Callable[[Request], OptionSet | LinearOptionSet] | None = None

    def discover(self) -> OptionSet | LinearOptionSet:
        """Return the options that were asked for."""
        if self.discover_room is not None:
            return self.discover_room(self.request)
        assert self.table is not None
        return discover_table(
            self.table,
            self.request,
            {"source": self.kind},
            is_environment=self.is_environment,
        )


def read_source(source: Any, request: Request) -> ReadSource:
    """Read whatever `discover` accepts as its source."""
    if isinstance(source, str | Path) and not is_environment_id(source):
        source = maze(source, rng=request.rng)
    if is_graph(source):
        source = from_graph(source, length=request.length, pos=request.pos)
        request = replace(request, length=False, pos=None)
    if request.seed is not None:
        check_has_reset(source)
    read: ReadSource
    if request.key is not None:
        read = source_readers.find("key")(source, request)
        return read

    # What a room makes itself, such as `Found`, has a reader of its own.
    if (read_object := source_readers.find_for(source)) is not None:
        read = read_object(source, request)
        return read

    # What is a table already, unless the caller wants samples.
    wants_samples = request.wants_samples
    if isinstance(source, MDP) and not wants_samples:
        return ReadSource(source, "table", request, is_environment=False)
    if not is_environment_source(source):
        read = source_readers.find("data")(source, request)
        return read

    # An MDP has all of its options.
    if not isinstance(source, MDP):
        request = request.with_default_number()
    if not wants_samples:
        table = read_environment(
            source, request.progress, seed=request.seed, rng=request.rng
        )
        if table is not None:
            data, kind = table
            if isinstance(data, MDP):
                return ReadSource(data, kind, request, is_environment=True)
            read_object = source_readers.find_for(data)
            assert read_object is not None
            read = read_object(data, request)
            return read
    if request.seed is not None and request.needs_layout:
        raise ValueError(
            "seed= is that of a layout, but samples begin in many: leave it out (rng= "
            "draws the samples), or give key= or FixedSeed(env, seed)"
        )
    read = source_readers.find("sampled environment")(source, request)
    return read


def follow_fixed_seed(source: Any, request: Request) -> Request:
    """Return the request with the seed of `FixedSeed` for all that is random."""
    return replace(request, rng=choose_seed(source, request.seed))


def check_has_reset(source: Any) -> None:
    """Raise ValueError for a source whose reset nobody can seed."""
    if isinstance(source, MDP) or not is_environment_source(source):
        raise ValueError(
            f"seed= is that of an environment's reset, and {type(source).__name__} has "
            "none: rng= draws what is random here"
        )


def is_environment_source(source: Any) -> bool:
    """Whether a source is an environment, or makes one, and not recorded data."""
    return isinstance(source, MDP | str) or callable(source) or hasattr(source, "step")


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
) -> tuple[object, str] | None:
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
    (MDP or object, str) or None
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
        if mdp.recognition is not None and mdp.recognition.layout is not None:
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
) -> object:
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
        explore_key = source_readers.find("explored environment")
        return explore_key(
            env, None, seed=seed, rng=rng, steps=max_states, progress=progress
        )

    # There are too many states. Take the part that `explore` finds in as many steps.
    n_steps = max_states
    explore = source_readers.find("explored part")
    part: MDP = explore(env, n_steps, seed=seed, rng=rng, progress=progress).mdp
    logger.warning(
        "%s has more than %s states: options are of the %s that explore found in %s "
        "steps; found = explore(env, steps) and discover(found) take more",
        name,
        f"{max_states:,}",
        f"{part.n_states:,}",
        f"{n_steps:,}",
    )
    return part
