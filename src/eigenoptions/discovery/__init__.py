"""`discover`: from a source to options (paper, Sections 3 to 5, Appendices C and D).

A source is an MDP, something that has one (a maze, a finite environment), or something to sample. `read_source` decides
which: exact where there is a table, sampled otherwise. A method (see `methods`) then chooses purposes to be solved.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from eigenoptions._validation import check_int, check_settings, make_generator
from eigenoptions.discovery.methods import Method, Progress, from_samples_only
from eigenoptions.discovery.methods import method as declared
from eigenoptions.mdp import MDP, Transitions, maze
from eigenoptions.options import OptionSet, Purpose
from eigenoptions.options.solver import solve

if TYPE_CHECKING:
    from eigenoptions.options.linear import LinearOptionSet

log = logging.getLogger("eigenoptions")

# Percents of the whole work that are done when an environment was explored, and when the purposes are known.
EXPLORED_PERCENT, PURPOSES_PERCENT = 30, 75
# What a Gymnasium id looks like: an optional module, an optional namespace, a name and a version.
ENVIRONMENT_ID = re.compile(r"([\w.]+:)?([\w-]+/)?[\w.-]+-v\d+")
# Entries of an eigenvector below this share of the largest, without sign, are rounding errors.
NEGATIVE = 1e-9
# Parameters of `discover` beside the settings of a method.
PARAMETERS = ("n_options", "method", "gamma", "rng", "progress", "steps", "features")
# Attributes by which recorded data are recognised: of replay buffers and of data sets.
RECORDED = ("buffer_size", "iterate_episodes")
# Settings that ask for samples where there is a table, too.
ASK_FOR_SAMPLES = ("steps", "features")


@dataclass(frozen=True)
class Source:
    """What options are discovered from.

    Attributes
    ----------
    kind
        ``"table"``: the exact MDP, given or read from a maze or an environment's table. ``"explored"``: the exact MDP
        of a deterministic environment, found by trying every action. ``"samples"``: no MDP is known.
    mdp, data
        The MDP, None for samples; and what was given: for samples, transitions or an environment.

    Examples
    --------
    >>> read_source("FrozenLake-v1").kind, read_source("MountainCar-v0").kind
    ('table', 'samples')
    """

    kind: str
    mdp: MDP | None
    data: Any


@overload
def discover(
    source: MDP,
    n_options: int | None = None,
    method: str = "eigen",
    *,
    gamma: float | None = None,
    rng: int | np.random.Generator = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> OptionSet: ...
@overload
def discover(
    source: Any,
    n_options: int | None = None,
    method: str = "eigen",
    *,
    gamma: float | None = None,
    rng: int | np.random.Generator = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> OptionSet | LinearOptionSet: ...
def discover(
    source: Any,
    n_options: int | None = None,
    method: str = "eigen",
    *,
    gamma: float | None = None,
    rng: int | np.random.Generator = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> OptionSet | LinearOptionSet:
    """Options of an MDP, a maze, an environment or samples, without any reward (Sections 3 and 5).

    Parameters
    ----------
    source
        An `MDP`; whatever `maze` accepts (a name, a map by rule, text, a path); a Gymnasium environment, its id or a
        function that creates it; or `Transitions` (also an iterable of batches, or what `Transitions.of` accepts:
        arrays, dicts, replay buffers, Minari data sets). A finite environment is read exactly: from its table, or by
        exploring it if it is deterministic. Others are sampled by a random walk, and so is any source for which
        `steps` or `features` is given. The decision is logged and recorded in
        ``provenance["source"]``, see `Source`. Sampled states that are numbered give an `OptionSet`, other observations
        a `LinearOptionSet`.
    n_options, method
        Number of options, both signs counted (None for all there are), and one of `methods`: ``"eigen"``, eigenoptions
        in order of eigenvalue, + before -; ``"bottleneck"``, one option per room, to its closest doorway (Appendix C);
        ``"random"``, shortest paths to random states (Appendix D); the others are on the page *Methods*.
    gamma
        Discount of the options' purposes; None for the method's own: 0.9 for eigenoptions (0.99 in a feature space),
        and so close to 1 that the goal matters everywhere for options that lead to a goal.
    rng, progress
        Seed or random generator of methods that draw, of samples and of maps by rule; `progress` is called with the
        percents done and 100.
    settings
        Settings of the method, for ``"eigen"``: `operator` ("normalized"), `both_signs` (True), `skip_zero` (True) and
        `weights` of the graph. For samples: `steps` (50,000), `features`, `n_envs`, `max_episode_steps`, and those of
        `eigenoptions.discovery.samples.from_transitions`: `space`, `n_actions`, `policy` and others.

    Examples
    --------
    >>> discover("four-rooms", n_options=4)
    OptionSet(4 options on 104 states: e2+, e2-, e3+, e3-)
    >>> discover("four-rooms", method="bottleneck")
    OptionSet(4 options on 104 states: room 1, room 2, room 3, room 4)
    >>> discover("MountainCar-v0", n_options=2, steps=2000, features="fourier")
    LinearOptionSet(2 learned options on 16 features: e2+, e2-)
    """
    chosen = declared(method)
    many = None if n_options is None else check_int("n_options", n_options)
    sample = any(name in settings for name in ASK_FOR_SAMPLES)
    explored = _share(progress, 0, EXPLORED_PERCENT)
    found = source if isinstance(source, Source) else read_source(source, sample, rng=rng, progress=explored)
    if found.mdp is None:
        return _sampled(found, chosen, many, {"gamma": gamma, "rng": rng, "progress": progress, **settings})
    check_settings(f"method {method!r}", settings, chosen.settings, PARAMETERS)
    mdp, generator = found.mdp, make_generator(rng)
    begin = EXPLORED_PERCENT if found.kind == "explored" else 0
    gamma = chosen.default_gamma(mdp) if gamma is None else gamma
    simple = {k: v for k, v in settings.items() if isinstance(v, str | bool | int | float)}
    record = {"method": method, "source": found.kind, **simple}
    if chosen.options is not None:
        more = {"progress": _share(progress, begin, 100)} if chosen.reports_progress else {}
        made: OptionSet = chosen.options(mdp, many, generator, gamma=gamma, **settings, **more)
        return replace(made, provenance={"gamma": gamma, "mdp": mdp.name, **record, **made.provenance})
    more = {"progress": _share(progress, begin, PURPOSES_PERCENT)} if chosen.reports_progress else {}
    purposes = chosen.function(mdp, many, generator, **settings, **more)
    solving = _share(progress, PURPOSES_PERCENT if more else begin, 100)
    solved = solve(mdp, purposes, gamma, provenance=record, progress=solving)
    if method == "eigen":
        _report_stops(mdp, purposes, solved)
    return solved


def _report_stops(mdp: MDP, purposes: list[Purpose], options: OptionSet) -> None:
    """Warn of options that stop mostly in states where their eigenvector is negative: the end they should leave.

    Only states count that the other end can be reached from and that can be reached from there: elsewhere no setting
    of the options changes where they stop.
    """
    table = mdp.transition
    # All actions of a state in one row; SciPy's search for components does not end if entries are repeated.
    rows = np.ascontiguousarray(table.indptr[:: mdp.n_actions])
    moves = csr_array((table.data, table.indices, rows), shape=(mdp.n_states, mdp.n_states), copy=True)
    moves.sum_duplicates()
    part = connected_components(moves, connection="strong")[1]
    found = []
    for purpose, policy in zip(purposes, options.policy, strict=True):
        stops = (policy < 0) & (part == part[purpose.potential.argmax()])
        low = int((purpose.potential[stops] < -NEGATIVE * np.abs(purpose.potential).max()).sum())
        if 2 * low > (count := int(stops.sum())):
            found.append((purpose.label, low, count))
    if found:
        label, low, count = found[0]
        log.warning(
            f"{len(found)} of {len(options)} options stop mostly at the wrong end of their eigenvector ({label} in "
            f"{count} places, {low} of them where it is negative): try a larger gamma (0.99) or "
            'operator="random-walk"; see the page on choosing them'
        )


def read_source(
    source: Any, sample: bool = False, *, rng: int | np.random.Generator = 0, progress: Progress | None = None
) -> Source:
    """The MDP of a source of `discover`, if it has one: exact where there is a table, sampled otherwise.

    With `sample` no MDP is looked for where the source can be sampled. `rng` is the seed of maps by rule; `progress` is
    called with the numbers of states expanded and found, while an environment is explored.

    >>> read_source("i-maze")
    Source(kind='table', mdp=MDP(i-maze: 19 states, 4 actions, deterministic, start 16, goal 2), data='i-maze')
    """
    is_map = isinstance(source, str | Path) and not is_environment_id(source)
    if is_map or isinstance(source, MDP):
        mdp = maze(source, rng=rng) if is_map else source
        return Source("samples", None, mdp) if sample else Source("table", mdp, source)
    vector = hasattr(source, "single_observation_space")
    if isinstance(source, str) or callable(source) or (hasattr(source, "step") and not vector):
        return Source("samples", None, source) if sample else _exact(source, progress)
    array = hasattr(source, "dtype")
    # A replay buffer of Stable-Baselines3 and a data set of Minari need not be iterable.
    recorded = isinstance(source, Transitions) or any(hasattr(source, name) for name in RECORDED)
    if vector or recorded or (hasattr(source, "__iter__") and not array):
        return Source("samples", None, source)
    kind = "an array" if array else type(source).__name__
    raise TypeError(
        f"discover takes an MDP, a maze, Transitions or an environment, got {kind}: make an MDP of it"
    )


def is_environment_id(source: str | Path) -> bool:
    """Whether a source is the id of a Gymnasium environment, and not a maze or a file.

    >>> is_environment_id("FrozenLake-v1"), is_environment_id("four-rooms")
    (True, False)
    """
    return isinstance(source, str) and bool(ENVIRONMENT_ID.fullmatch(source)) and not Path(source).is_file()


def _exact(source: Any, progress: Progress | None) -> Source:
    """The exact MDP of an environment that is finite; else the environment, to be sampled."""
    from eigenoptions.envs.tables import from_env, known_mdp, made_env
    from eigenoptions.options.lookahead import name_of

    created = callable(source) and (isinstance(source, type) or not hasattr(source, "step"))
    env = made_env(source() if created else source)
    name = name_of(env)
    try:
        mdp = known_mdp(env)
        if mdp is not None:
            log.info("%s: options are computed from its table of %d states", name, mdp.n_states)
            return Source("table", mdp, source)
        dtype = getattr(env.observation_space, "dtype", None)
        if dtype is not None and dtype.kind == "f":
            log.info("%s: observations are continuous, so it is sampled", name)
            return Source("samples", None, source)
        log.info("%s: its states are explored; give steps= or features= to sample it instead", name)
        return Source("explored", from_env(env, progress=progress), source)
    finally:
        if env is not source:
            env.close()


def _sampled(
    found: Source, method: Method, n_options: int | None, settings: dict[str, Any]
) -> OptionSet | LinearOptionSet:
    """Options of samples, or of an environment that is sampled."""
    from eigenoptions.discovery.samples import from_samples, from_transitions

    from_samples_only(method)
    if method.name != "eigen":
        settings["method"] = method
    source = found.data
    if isinstance(source, str | MDP) or callable(source) or hasattr(source, "step"):
        settings["progress"] = _share(settings["progress"], 0, 100)
        return from_samples(source, n_options, **settings)
    # Samples are there already, so there is no progress, and only a method can draw.
    settings.pop("progress")
    if method.name == "eigen":
        settings.pop("rng")
    return from_transitions(source, n_options, **settings)


def _share(progress: Progress | None, low: int, high: int) -> Progress | None:
    """Report a part of the work as percents from low to high of all of it, never backwards."""
    if progress is None:
        return None
    last = low

    def report(done: int, total: int) -> None:
        nonlocal last
        last = max(last, low + (high - low) * done // max(total, 1))
        progress(last, 100)

    return report
