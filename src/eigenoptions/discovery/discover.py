"""`discover`: from a source to options (paper, Sections 3 to 5, Appendices C and D).

A source is a table, something that has one (a maze, a finite environment), or something to sample. A method (see
`methods`) chooses purposes, and `solve` turns them into options. Samples of numbered states become a table, too; in
feature spaces, options are learned from the samples (`sampling`).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.sparse.csgraph import connected_components

from eigenoptions._validation import (
    Progress,
    check_int,
    check_settings,
    make_generator,
)
from eigenoptions.discovery.method import Method, TooFewOptionsError, get_method
from eigenoptions.mdp import MDP, graph, maze
from eigenoptions.mdp.chains import uniform_walk
from eigenoptions.options import TERMINATE, OptionSet, Purpose
from eigenoptions.options.solver import solve

if TYPE_CHECKING:
    from eigenoptions.discovery.sampling import Samples
    from eigenoptions.options.linear import LinearOptionSet

__all__ = ["discover"]

log = logging.getLogger("eigenoptions")


@overload
def discover(
    source: MDP,
    n_options: int | None = ...,
    method: str = ...,
    *,
    gamma: float | None = ...,
    **settings: Any,
) -> OptionSet: ...
@overload
def discover(
    source: Any,
    n_options: int | None = ...,
    method: str = ...,
    *,
    gamma: float | None = ...,
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
        An `MDP`; whatever `maze` accepts (a name, the text of a map, a path); a Gymnasium environment, its id or a
        function that creates it; or whatever `Transitions.of` accepts (arrays, dicts, replay buffers, Minari data
        sets). A finite environment is read exactly: from its table, or by exploring it if it is deterministic (of one
        with many states and Dict observations, the first 20,000). Others are sampled by a random walk, and so is any
        environment for which `steps` or `features` is given. What was done is logged and recorded in
        ``provenance["source"]``: "table", "explored" or "samples". Samples of numbered states
        give an `OptionSet`, other observations a `LinearOptionSet`.
    n_options : int, optional
        Number of options, both signs counted. Default: 32 of an environment or samples, which served exploration and
        learning on maps of every kind (16 of trained features); all there are of an MDP or a maze, and of methods that
        have one per room.
    method : str, default "eigen"
        One of `methods`: ``"eigen"``, eigenoptions in order of eigenvalue, + before -; ``"bottleneck"``, one option per
        room, to its closest doorway (Appendix C); ``"random"``, shortest paths to random states (Appendix D); and more.
    gamma : float, optional
        Discount of the options' purposes. By default that of the method: 0.9 for eigenoptions (0.99 in a feature
        space), and so close to 1 that the goal matters everywhere for options that lead to a goal.
    rng : int or Generator, default 0
        Draws samples, generated mazes, and what the method draws.
    progress : callable, optional
        Called as ``progress(done, total)`` in each part of the work.
    settings
        Settings of the method, for ``"eigen"``: `operator` ("normalized"; of an environment "random-walk", if a quarter
        of the options would stop at the end that they should leave), `both_signs` (True), `skip_zero` (True) and
        `weights` of the graph. To sample: `steps` (50,000), `n_envs` and `max_episode_steps`. For samples: `space` of
        the observations and `n_actions`, where the data do not declare them; `features`, and then the settings of
        `discovery.sampling.discover_linear`.

    Examples
    --------
    >>> discover("four-rooms", n_options=4)
    OptionSet(4 options on 104 states: e2+, e2-, e3+, e3-)
    >>> discover("four-rooms", method="bottleneck")
    OptionSet(4 options on 104 states: room 1, room 2, room 3, room 4)
    >>> discover("MountainCar-v0", n_options=2, steps=2000, features="fourier")
    LinearOptionSet(2 learned options on 16 features: e2+, e2-)
    """
    chosen = get_method(method)
    if isinstance(source, str | Path) and not is_environment_id(source):
        source = maze(source, rng=rng)
    has_own_number = (
        isinstance(source, MDP)
        or chosen.n_options is None
        or settings.get("features") == "deep"
    )
    data, kind = _read_source(source, settings, rng, progress)

    def derive(n: int | None) -> OptionSet | LinearOptionSet:
        if isinstance(data, MDP):
            about, is_environment = {"source": kind}, not isinstance(source, MDP)
            return _discover_table(
                data, n, chosen, gamma, rng, progress, settings, about, is_environment
            )
        return discover_samples(
            data, n, chosen, gamma=gamma, rng=rng, progress=progress, **settings
        )

    if n_options is not None or has_own_number:
        options = derive(
            None if n_options is None else check_int("n_options", n_options)
        )
    else:
        options = derive_at_most(32, derive)
    if getattr(options, "kind", "") == "look-ahead" and hasattr(source, "step"):
        # The options of an environment that is given look ahead in it.
        return options.look_ahead(source)  # type: ignore[union-attr]
    return options


def derive_at_most(n_options: int, derive: Callable[[int], Any]) -> Any:
    """Options of ``derive(n_options)``, or as many as there are."""
    try:
        return derive(n_options)
    except TooFewOptionsError as error:
        if not error.available:
            raise
        return derive(error.available)


def _read_source(
    source: Any,
    settings: dict[str, Any],
    rng: int | np.random.Generator,
    progress: Progress | None,
) -> tuple[MDP | Samples, str]:
    """The MDP or the samples of a source, and where they come from; takes the settings of sampling out."""
    wants_samples = "steps" in settings or "features" in settings
    if isinstance(source, MDP) and not wants_samples:
        return source, "table"

    from eigenoptions.discovery import sampling

    if not (
        isinstance(source, MDP | str) or callable(source) or hasattr(source, "step")
    ):
        sizes = {
            name: settings.pop(name)
            for name in ("space", "n_actions")
            if name in settings
        }
        return sampling.read_samples(source, **sizes), "samples"
    if (
        not wants_samples
        and (table := sampling.read_environment(source, progress)) is not None
    ):
        return table
    names = ("steps", "n_envs", "max_episode_steps")
    collecting = {name: settings.pop(name) for name in names if name in settings}
    features = settings.get("features")
    return sampling.sample_environment(
        source, features, rng=rng, progress=progress, **collecting
    ), "samples"


def discover_samples(
    samples: Samples,
    n_options: int | None,
    method: Method,
    *,
    gamma: float | None = None,
    rng: int | np.random.Generator = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> OptionSet | LinearOptionSet:
    """Options of samples: of the table that they show where states are numbered, else in a feature space."""
    from eigenoptions.discovery.sampling import discover_linear

    if settings.get("features") is not None or samples.n_states is None:
        if method.name != "eigen":
            raise ValueError(
                f'method {method.name!r} needs numbered states: use method="eigen" for features'
            )
        return discover_linear(
            samples, n_options, gamma=gamma, rng=rng, progress=progress, **settings
        )
    settings.pop("features", None)
    mdp = MDP.from_transitions(
        samples.transitions, samples.n_states, samples.n_actions, coords=samples.coords
    )
    if "weights" in method.settings:
        # The Laplacian of the sampled transitions is that of their incidence matrix (Theorem 5.1).
        settings = {"weights": "incidence", "operator": "combinatorial", **settings}
    if "visits" in method.settings:
        obs = samples.transitions.obs
        numbers = obs if mdp.states is None else np.searchsorted(mdp.states, obs)
        settings.setdefault("visits", np.bincount(numbers, minlength=mdp.n_states))
    provenance = {"source": "samples", "dynamics": "estimated", **samples.provenance}

    # A method knows only the states that the samples connect; in the others no option may start.
    states = np.flatnonzero(np.diff(graph(mdp).indptr))
    if not len(states):
        raise TooFewOptionsError(
            "no transition leads from one state to another: sample more", 0
        )
    state_actions = (states[:, None] * mdp.n_actions + np.arange(mdp.n_actions)).ravel()
    coords = None if mdp.coords is None else mdp.coords[states]
    visited = MDP(mdp.transition[state_actions][:, states], coords=coords)
    settings = {
        name: _restrict_array(value, states, mdp.n_states)
        for name, value in settings.items()
    }
    options = _discover_table(
        visited, n_options, method, gamma, rng, progress, settings, provenance
    )
    policy = np.full(
        (len(options), mdp.n_states), TERMINATE, dtype=options.policy.dtype
    )
    value = np.zeros(policy.shape)
    policy[:, states], value[:, states] = options.policy, options.value
    purposes = tuple(_extend_purpose(p, states, mdp.n_states) for p in options.purposes)
    return OptionSet(mdp, policy, value, purposes, options.provenance)


def _discover_table(
    mdp: MDP,
    n_options: int | None,
    method: Method,
    gamma: float | None,
    rng: int | np.random.Generator,
    progress: Progress | None,
    settings: dict[str, Any],
    provenance: dict[str, Any],
    is_environment: bool = False,
) -> OptionSet:
    """Options of a table; those of an environment are for an agent, and need not be of the paper's Laplacian."""
    own = [name for name in method.settings if name not in ("gamma", "progress")]
    others = ("n_options", "method", "gamma", "rng", "progress", "steps", "features")
    check_settings(f"method {method.name!r}", settings, own, others)
    if gamma is None:
        gamma = method.gamma(mdp) if callable(method.gamma) else method.gamma
    values = {"gamma": gamma, "progress": progress}
    shared = {name: value for name, value in values.items() if name in method.settings}
    result = method.function(mdp, n_options, make_generator(rng), **settings, **shared)
    plain = {
        name: value
        for name, value in settings.items()
        if isinstance(value, str | bool | int | float)
    }
    about = {
        "method": method.name,
        "gamma": gamma,
        "mdp": mdp.name,
        **plain,
        **provenance,
    }
    if isinstance(result, OptionSet):
        return replace(result, provenance=about)
    options = solve(mdp, result, gamma, provenance=about, progress=progress)
    wrong = _find_wrong_ends(options) if method.name == "eigen" else []
    # A few are normal: the option of the smallest hills.
    if 4 * len(wrong) < len(options):
        return options
    stop = f"{len(wrong)} of {len(options)} options terminate mostly where their eigenvector is negative"
    if is_environment and "operator" not in settings:
        # No eigenvector of this one has a local maximum where it is negative.
        log.info(f'{stop}: operator="random-walk" takes the place of "normalized"')
        settings = {**settings, "operator": "random-walk"}
        return _discover_table(
            mdp, n_options, method, gamma, rng, progress, settings, provenance
        )
    log.warning(
        f'{stop} ({", ".join(wrong[:3])}): try a larger gamma (0.99) or operator="random-walk"'
    )
    return options


def _find_wrong_ends(options: OptionSet) -> list[str]:
    """Labels of options that terminate mostly where their eigenvector is negative: the end they should leave."""
    component: NDArray[np.int32] | None = None
    wrong = []
    for purpose, ends in zip(options.purposes, options.termination, strict=True):
        potential = np.asarray(purpose.potential)
        negative = potential < 1e-9 * potential.min()
        if 2 * np.count_nonzero(negative & ends) <= np.count_nonzero(ends):
            continue
        if component is None:
            # Only states count that lead to the other end and back: elsewhere no setting changes where options stop.
            component = connected_components(
                uniform_walk(options.mdp), connection="strong"
            )[1]
        ends = ends & (component == component[potential.argmax()])
        if 2 * np.count_nonzero(negative & ends) > np.count_nonzero(ends):
            wrong.append(purpose.label)
    return wrong


def is_environment_id(source: str | Path) -> bool:
    """Whether a source is the id of a Gymnasium environment, and not a maze or a file.

    >>> is_environment_id("FrozenLake-v1"), is_environment_id("four-rooms")
    (True, False)
    """
    # An optional module, an optional namespace, a name and a version.
    pattern = r"([\w.]+:)?([\w-]+/)?[\w.-]+-v\d+"
    return (
        isinstance(source, str)
        and bool(re.fullmatch(pattern, source))
        and not Path(source).is_file()
    )


def _restrict_array(value: Any, states: NDArray[np.intp], n_states: int) -> Any:
    """An array with one entry per state, or per two states, for some states; other values as they are."""
    if np.shape(value) == (n_states,):
        return np.asarray(value)[states]
    if np.shape(value) == (n_states, n_states):
        return (value if issparse(value) else np.asarray(value))[states][:, states]
    return value


def _extend_purpose(
    purpose: Purpose, states: NDArray[np.intp], n_states: int
) -> Purpose:
    """A purpose on some states as one on all; its option starts in these states only."""
    potential, initiation = np.zeros(n_states), np.zeros(n_states, dtype=np.bool_)
    potential[states] = purpose.potential
    initiation[states] = True if purpose.initiation is None else purpose.initiation
    goal, label = purpose.goal, purpose.label
    if goal is not None:
        # A label that follows from the goal follows from its number among all states.
        label = "" if label == f"goal {goal}" else label
        goal = int(states[goal])
    return replace(
        purpose, potential=potential, initiation=initiation, goal=goal, label=label
    )
