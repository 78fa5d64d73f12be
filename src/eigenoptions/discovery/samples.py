"""Options from samples: of transitions, or of an environment that is sampled first (paper, Section 5).

`gather` computes one stream of differences from many parts: files, batches, or functions that workers call.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import check_settings
from eigenoptions.discovery.experience import FeatureExperience, TableExperience, one_number
from eigenoptions.discovery.trained import TRAINED, TrainedExperience
from eigenoptions.features import Map, OneHot, Raw, named, settings_of
from eigenoptions.mdp import MDP, Transitions
from eigenoptions.mdp.transitions import read_spaces
from eigenoptions.options import OptionSet
from eigenoptions.options.fitted import checked_actions
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.options.lookahead import name_of
from eigenoptions.parallel import current_engine, run_jobs
from eigenoptions.spectra.gram import Gram

log = logging.getLogger("eigenoptions")

# The feature map of observations that are not numbered, where none is given.
DEFAULT_FEATURES = "fourier"
# Default number of copies of an environment that are sampled together.
DEFAULT_COPIES = 8
# Settings of `envs.stream` that `from_samples` accepts beside its own.
COLLECTION_SETTINGS = ("n_envs", "max_episode_steps")
# Most rows of a file that are in memory at a time.
MAX_ROWS_IN_MEMORY = 1 << 20
# Number of jobs without `dedupe`, where it shows in the last bits of the sums.
JOBS_WITHOUT_DEDUPE = 8
SUFFIXES = (".npy", ".npz", ".safetensors")

Experience = TableExperience | FeatureExperience | TrainedExperience


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
    transitions, n_options, gamma
        A batch, an iterable of batches (a `Recording`, a `stream`), of which one is in memory at a time, or what
        `Transitions.of` accepts; the others as in `discover`.
    features
        The map phi: a function from a batch of observations to ``(N, d)``, or a name of `features.MAPS` (``"fourier"``,
        ``"tiles"``, ...). None: one-hot where observations are state numbers, else ``"fourier"``.
    space, n_actions
        Space of the observations, for the number of states and the bounds of features, and number of actions. None:
        they are taken from the first batch, with a warning, since the samples need not have reached all. Without a
        space, whole numbers ``(N,)`` or ``(N, 1)`` are numbers of states.
    provenance
        Entries to record in the set beside the settings.
    settings
        `both_signs` (True) and `skip_zero` (True); or `method`, a `Method` other than eigenoptions where states are
        numbered, its settings, and `rng`, its seed. With features also `policy` (``"learned"`` or ``"look-ahead"``),
        `basis` and the settings of `options.fitted.FitSettings`, `whiten`, `cells` and `each` of `FeatureExperience`,
        and those of a map that is given by name: `order`, `tiles` and so on.

    Returns
    -------
    OptionSet or LinearOptionSet
        The former where states are numbered: purposes of the sampled graph, solved on the sampled MDP.

    Examples
    --------
    >>> from eigenoptions.options.walks import walk
    >>> from eigenoptions.mdp import maze
    >>> from_transitions(walk(maze("four-rooms"), 5000), n_options=4)
    OptionSet(4 options on 104 states: e2+, e2-, e3+, e3-)
    """
    first, batches, declared = _batches(transitions)
    space = declared[0] if space is None else space
    n_actions = declared[1] if n_actions is None else n_actions
    given, n_actions = n_actions, checked_actions(first, n_actions)[1]
    past, rest = begin(first, space, n_actions, features, settings)
    table = isinstance(past, TableExperience)
    # What the samples decide by themselves is reported.
    missing = [] if given is not None else [f"n_actions ({n_actions})"]
    bounded = getattr(getattr(past, "features", None), "low", None) is not None
    if space is None and not callable(features) and (table or bounded):
        what = f"{past.n_states} states" if isinstance(past, TableExperience) else "the bounds of features"
        missing.append(f"space ({what})")
    if missing:
        log.warning(
            "taken from the samples, which need not have reached all of them: %s; pass them",
            " and ".join(missing),
        )
    for batch in batches:
        past.add(batch)
    return past.options(n_options, gamma=gamma, provenance=provenance, **rest)


def _batches(data: Any) -> tuple[Transitions, Iterator[Transitions], tuple[Any, int | None]]:
    """The first batch, all batches, and the space of observations and number of actions that the data declare."""
    listed = isinstance(data, Sequence) and len(data) > 0 and isinstance(data[0], Transitions)
    columns = isinstance(data, Transitions | Mapping | Sequence) or hasattr(data, "iterate_episodes")
    if (columns and not listed) or not hasattr(data, "__iter__"):
        batch = data if isinstance(data, Transitions) else Transitions.of(data)
        return batch, iter([batch]), read_spaces(data)
    batches = iter(data)
    first = next(batches, None)
    if not isinstance(first, Transitions):
        kind = type(data if first is None else first).__name__
        raise ValueError(f"give Transitions, batches of them or what Transitions.of accepts, got {kind}")
    return first, chain([first], batches), (None, None)


def begin(
    first: Transitions, space: Any, n_actions: int, features: str | Map | None, settings: dict[str, Any]
) -> tuple[Experience, dict[str, Any]]:
    """An empty experience for batches like the first, and the settings that remain for its options.

    It is a table where states are numbered, by the space or, without one, by the type of the observations.
    """
    obs: Any = first.obs
    if features is None:
        numbers = _numbers(first) if space is None else None
        numbered = numbers is not None or (hasattr(space, "n") and not space.shape)
        features, obs = (OneHot.name if numbered else DEFAULT_FEATURES), obs if numbers is None else numbers
    known = settings_of(features) if isinstance(features, str) else ()
    names = known if features in (TRAINED, OneHot.name) else (*FeatureExperience.settings, *known)
    own, rest = ({k: v for k, v in settings.items() if (k in names) == mine} for mine in (True, False))
    past: Experience
    if features == TRAINED:
        past = TrainedExperience(n_actions, **own)
    else:
        more = {name: own.pop(name) for name in FeatureExperience.settings if name in own}
        phi = named(features, space, obs, **own) if isinstance(features, str) else features
        if isinstance(phi, OneHot):
            check_settings("a table of states", more, ())
            past = TableExperience(phi.n_states, n_actions)
        else:
            past = FeatureExperience(phi, n_actions, **more)
    method = rest.get("method")
    if method is None:
        also = ("steps", "features", *COLLECTION_SETTINGS)
        check_settings("discovery from samples", rest, (*past.option_settings, *names), also)
    elif isinstance(past, TableExperience):
        check_settings(f"method {method.name!r}", rest, (*method.settings, "method", "rng"))
    else:
        raise ValueError(
            f"from samples, method {method.name!r} needs states that are numbered, but these have features: "
            'use method="eigen"'
        )
    return past, rest


def _numbers(batch: Transitions) -> NDArray[Any] | None:
    """The states before and after, where each observation is one whole number; else None."""
    obs = np.asarray(batch.obs)
    if not one_number(obs):
        return None
    if obs.dtype.kind == "f" and (obs == np.floor(obs)).all():
        raise ValueError(
            f"observations are whole numbers stored as {obs.dtype}: give states as integers (obs.astype(int)) or "
            'with space=Discrete(n), and measurements with features="fourier"'
        )
    # The last states of an episode are in next_obs only.
    return np.concatenate([obs.ravel(), np.ravel(batch.next_obs)]) if obs.dtype.kind in "iu" else None


def from_samples(
    env: Any,
    n_options: int | None = None,
    *,
    steps: int = 50_000,
    features: str | Map | None = None,
    rng: int | np.random.Generator = 0,
    progress: Callable[[int, int], object] | None = None,
    **settings: Any,
) -> OptionSet | LinearOptionSet:
    """Eigenoptions of an environment, from a random walk through it (Section 5).

    Parameters
    ----------
    env, n_options, features
        An id, an environment, a function that creates one, a vector environment, or an `MDP`; the others as in
        `from_transitions`. Dict observations need a function.
    steps, rng, progress
        Number of transitions to sample; the others as in `envs.collect`.
    settings
        `n_envs` (copies sampled together: 8, or 1 for an environment that is given as an object), `max_episode_steps`
        as in `envs.collect`; the others as in `from_transitions`. With ``policy="look-ahead"`` the options are bound to
        `env` if it is an environment; otherwise bind them later, with ``options.look_ahead(env)``.

    Examples
    --------
    >>> from_samples("CartPole-v1", n_options=4, steps=2000)
    LinearOptionSet(4 learned options on 67 features: e2+, e2-, e3+, e3-)
    """
    from eigenoptions.envs import stream

    how: dict[str, Any] = {name: settings.pop(name, None) for name in COLLECTION_SETTINGS}
    if "method" in settings:
        # A child of a generator, so that the samples do not depend on it.
        settings["rng"] = rng.spawn(1)[0] if isinstance(rng, np.random.Generator) else rng
    with opened(env, **how) as about:
        stored = about.stored(features)
        # Workers create their own copies, so they are given the source.
        source: Any = about.envs
        if current_engine().name != "serial":
            source, stored = env, {**stored, **how, "n_envs": about.envs.num_envs}
        made = from_transitions(
            stream(source, steps, rng=rng, progress=progress, **stored),
            n_options,
            features=Raw() if "features" in stored else features,
            space=None if "features" in stored else about.space,
            n_actions=about.n_actions,
            provenance={"environment": about.name, "steps": int(steps)},
            **settings,
        )
    if isinstance(made, OptionSet):
        return replace(made, mdp=replace(made.mdp, coords=about.coords))
    if "features" in stored:
        made = replace(made, features=stored["features"])
    return made.look_ahead(env) if made.weights is None and is_environment(env) else made


def is_environment(source: Any) -> bool:
    """Whether this is an environment, not its id nor a function or class that creates it."""
    return hasattr(source, "step") and not isinstance(source, type)


@dataclass(frozen=True)
class Opened:
    """A vector environment to be sampled, its name, and the coordinates of its states if they are known."""

    envs: Any
    n_actions: int
    name: str
    coords: NDArray[np.int_] | None

    @property
    def space(self) -> Any:
        """Space of the observations of one copy."""
        return self.envs.single_observation_space

    def stored(self, features: str | Map | None) -> dict[str, Any]:
        """Features that are stored in place of observations that are no arrays (Dict, Tuple); else nothing."""
        arrays = any(hasattr(self.space, part) for part in ("n", "low", "nvec"))
        return {"features": features} if callable(features) and not arrays else {}


@contextmanager
def opened(env: Any, n_envs: int | None = None, max_episode_steps: int | None = None) -> Iterator[Opened]:
    """The vector environment of an id, an environment, a function, a vector environment or an MDP.

    >>> with opened("CliffWalking-v1") as cliff:
    ...     cliff.space
    Discrete(48)
    """
    from eigenoptions.envs.fit import mdp_of
    from eigenoptions.envs.sampler import vectorised
    from eigenoptions.envs.tables import count_actions

    copies = 1 if is_environment(env) else DEFAULT_COPIES
    envs, owned = vectorised(env, copies if n_envs is None else n_envs, max_episode_steps)
    try:
        first = envs.envs[0] if hasattr(envs, "envs") else envs
        known = mdp_of(envs)
        numbered = known is not None and getattr(envs.single_observation_space, "n", None) == known.n_states
        name = env.name if isinstance(env, MDP) else name_of(first)
        yield Opened(envs, count_actions(envs), name, known.coords if known and numbered else None)
    finally:
        if owned:
            envs.close()


def gather(
    parts: Any,
    n_features: int | None = None,
    *,
    dedupe: bool = True,
    features: Any = None,
    progress: Callable[[int, int], object] | None = None,
) -> Gram:
    """One `Gram` of transitions in many files, or computed by workers (Section 5.1).

    The sets of differences that workers find are joined by content: a difference that several found counts once. The
    result is that of one stream over all parts in their order, to the last bit: with `dedupe` for every distribution of
    the parts, and on every engine.

    Parameters
    ----------
    parts
        A list of parts, a `Recording` of `envs.collect`, or the path of a folder or file. A part is

        * a path: ``.npy`` of shape ``(N, 2)`` (states) or ``(N, 2, d)`` (features), read a million rows at a time;
          ``.npz`` with ``obs`` and ``next_obs``; ``.safetensors`` that `collect` wrote; a folder of such files;
        * `Transitions`, or a pair of arrays before and after;
        * a function without arguments that returns one or several of these, called by the worker.
    n_features, dedupe, features, progress
        As in `Gram`; `progress` is called with the numbers of jobs done and in all.

    Examples
    --------
    Four walks through a corridor of five states: all of its eight transitions, each once.

    >>> from functools import partial
    >>> from eigenoptions.options.walks import walk
    >>> from eigenoptions.mdp import maze
    >>> gather([partial(walk, maze("....."), 100, rng=seed) for seed in range(4)])
    Gram(8 differences of 5 states)
    """
    make = {"n_features": n_features, "dedupe": dedupe, "features": features}
    # Wrong settings are refused before anything is read.
    total = Gram(**make)
    pieces = list(_pieces(parts))
    if not pieces:
        raise ValueError("there is nothing to gather: give at least one file, batch or function")
    if current_engine().name == "serial" and dedupe:
        for i, piece in enumerate(pieces):
            for pair in _pairs(piece):
                total.add(*pair)
            if progress is not None:
                progress(i + 1, len(pieces))
        return total
    waiting: dict[int, list[Gram]] = {}
    joined = 0

    def join(i: int, part: list[Gram]) -> None:
        """Join the results of jobs in order, while others are still computed, and release them."""
        nonlocal joined
        waiting[i] = part
        while joined in waiting:
            total.absorb(waiting.pop(joined).pop())
            joined += 1

    # Sums without dedupe depend on the boundaries of the jobs, which therefore must not depend on workers. The fewer
    # jobs, the fewer copies of a difference are sent; but there must be enough for all workers.
    many = 2 * (current_engine().workers or os.cpu_count() or 1) if dedupe else JOBS_WITHOUT_DEDUPE
    bounds = np.linspace(0, len(pieces), min(many, len(pieces)) + 1).astype(int)
    jobs = [pieces[low:high] for low, high in pairwise(bounds.tolist())]
    run_jobs(_gathered, jobs, shared={"make": make}, progress=progress, on_result=join)
    return total


def _gathered(job: list[Any], make: dict[str, Any]) -> list[Gram]:
    """The stream over the pieces of a job, in a list so that the receiver can release it."""
    gram = Gram(**make)
    for pair in chain.from_iterable(map(_pairs, job)):
        gram.add(*pair)
    return [gram]


def _pieces(parts: Any) -> Iterator[Any]:
    """Parts as pieces that fit in memory: pairs of batches before and after, or functions that return them; checked."""
    from eigenoptions.envs.collecting import Recording

    if isinstance(parts, Recording):
        for path, count in zip(parts.files, parts.counts, strict=True):
            yield partial(_read, str(path), 0, count)
    elif isinstance(parts, Transitions):
        yield parts.obs, parts.next_obs
    elif callable(parts) or _is_pair(parts):
        yield parts
    elif isinstance(parts, str | Path):
        yield from _of_path(Path(parts))
    # A sparse array would be iterated row by row, unchecked.
    elif hasattr(parts, "shape") or not hasattr(parts, "__iter__"):
        kind = type(parts).__name__
        raise TypeError(f"a part is a path, Transitions, a pair (before, after) or a function, got {kind}")
    else:
        for part in parts:
            yield from _pieces(part)


def _of_path(path: Path) -> Iterator[Any]:
    """Functions that read the pieces of a file, or of the files in a folder."""
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
        if not files:
            raise FileNotFoundError(f"no transitions in {path}: there is no {', '.join(SUFFIXES)} file")
        for file in files:
            yield from _of_path(file)
        return
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}: give the path of a file with transitions")
    if path.suffix not in SUFFIXES:
        raise ValueError(f"transitions are read from {', '.join(SUFFIXES)} files, got {str(path)!r}")
    if path.suffix != ".npy":
        yield partial(_read, str(path), 0, None)
        return
    rows = np.load(path, mmap_mode="r", allow_pickle=False)
    if rows.ndim not in (2, 3) or rows.shape[1] != 2:
        raise ValueError(f"{path} must hold (N, 2) states or (N, 2, d) features, it holds {rows.shape}")
    for low in range(0, max(len(rows), 1), MAX_ROWS_IN_MEMORY):
        yield partial(_read, str(path), low, low + MAX_ROWS_IN_MEMORY)


def _pairs(piece: Any) -> Iterator[tuple[Any, Any]]:
    """Batches before and after, of a piece."""
    if _is_pair(piece):
        yield piece
    else:
        yield from chain.from_iterable(map(_pairs, _pieces(piece())))


def _read(name: str, low: int, high: int | None) -> tuple[Any, Any]:
    """Rows of a file, before and after, copied so that the file is not kept open."""
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
