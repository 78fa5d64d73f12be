"""Samples of an environment: `stream` them in chunks, `collect` them in memory or on disk (paper, Section 5.1).

Every chunk begins with a reset and has random numbers of its own, a child of the one seed. So a chunk depends on
nothing before it: a collection that was interrupted goes on with the missing chunks, and ends in the same bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from eigenoptions import files
from eigenoptions.envs.exploring import Progress
from eigenoptions.envs.walking import Halt, Policy, Source, Walker
from eigenoptions.mdp import Transitions
from eigenoptions.options import OptionSet
from eigenoptions.parallel import Engine, current, on_engine, pmap

log = logging.getLogger("eigenoptions")

FORMAT = 1  # of transitions files
TOLD = 1024  # transitions between two calls of progress
GROUP, JOB_BYTES, WINDOW = 8, 1 << 26, 16  # most chunks and bytes of a job, and jobs that are out at a time


class CollectionStopped(RuntimeError):  # noqa: N818 (it says what happened)
    """The environment failed, or gave observations that are not numbers; what was collected before is kept.

    Attributes
    ----------
    transitions
        What `collect` had in memory; None for a collection on disk, whose folder holds it.

    Examples
    --------
    >>> CollectionStopped("collection stopped after 3 of 9 transitions").transitions is None
    True
    """

    transitions: Transitions | None = None


@dataclass(frozen=True)
class Recording:
    """Transitions in a folder: iterate over chunks (one in memory at a time), or `load` them all.

    Attributes
    ----------
    folder
        Where the chunks are.
    counts
        Transitions of each chunk that count; more may lie in the folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     record = collect("eigenoptions/IMaze-v0", 250, out=folder, chunk=100)
    ...     [len(batch) for batch in record], len(record.load())
    ([100, 100, 50], 250)
    """

    folder: Path
    counts: tuple[int, ...]

    def __len__(self) -> int:
        return sum(self.counts)

    def __iter__(self) -> Iterator[Transitions]:
        for i, count in enumerate(self.counts):
            batch = _read(self.folder, i)[1]
            yield batch if len(batch) == count else _cut(batch, count)

    @property
    def files(self) -> tuple[Path, ...]:
        """One a chunk."""
        return tuple(_file(self.folder, i) for i in range(len(self.counts)))

    def load(self) -> Transitions:
        """All transitions, in memory."""
        return _joined(self)


class Settings(TypedDict, total=False):
    """What `stream` and `collect` have in common; see `collect`."""

    policy: Policy | OptionSet | Sequence[Any] | None
    n_envs: int
    rng: int | np.random.Generator
    chunk: int | None
    max_episode_steps: int | None
    features: Callable[[Any], Any] | None
    option_chance: float | None
    engine: str
    workers: int | None
    progress: Progress | None


@on_engine()
def stream(env: Source, steps: int, **settings: Unpack[Settings]) -> Iterator[Transitions]:
    """Collect in chunks that are given out and forgotten, so that any number of transitions fits in memory.

    Where the environment fails, what there is of the chunk is given out before `CollectionStopped` is raised.

    Examples
    --------
    >>> [len(batch) for batch in stream("eigenoptions/IMaze-v0", 250, chunk=100, n_envs=8)]
    [100, 100, 50]
    """
    return _streamed(env, steps, settings, current())


def _streamed(env: Source, steps: int, settings: Settings, engine: Engine) -> Iterator[Transitions]:
    walker, far, progress = _walker(env, steps, settings, engine)
    for _, batch in _walk(walker, range(len(walker.counts)), far, progress):
        yield batch


@overload
def collect(env: Source, steps: int, *, out: None = None, **settings: Unpack[Settings]) -> Transitions: ...
@overload
def collect(env: Source, steps: int, *, out: str | Path, **settings: Unpack[Settings]) -> Recording: ...
@on_engine()
def collect(
    env: Source, steps: int, *, out: str | Path | None = None, **settings: Unpack[Settings]
) -> Transitions | Recording:
    """Transitions of an environment, in memory or in a folder.

    Parameters
    ----------
    env
        An id, an environment (one copy only), a function that makes one, a vector environment, or an `MDP`.
    steps
        Number of transitions, over all copies together. Resets are not transitions.
    out
        A folder for chunks (safetensors). Called again with the same settings, only what is missing is collected; with
        more `steps`, the rest is added.
    policy
        None: uniformly random actions. An `OptionSet` (or a list of objects with ``act``): each decision is uniform
        over the primitive actions and the options that may start, and options run to their end, as in the paper. Or a
        function from a batch of observations ``(n_envs, ...)`` to actions ``(n_envs,)``; one with a memory of its own
        cannot be resumed to the same bytes.
    n_envs
        Copies stepped together (1).
    rng
        Seed (0) or generator; one seed gives the same bytes, in memory and on disk.
    chunk
        Transitions a chunk. Every chunk begins with a reset, so it should be long against an episode. None: 16,384, or
        fewer where observations are large (64 MB a chunk).
    max_episode_steps
        Truncate episodes after so many steps (None: as the environment does).
    features
        From a batch of observations to an array ``(n_envs, ...)``, stored in their place; needed for Dict observations.
    option_chance
        With options as policy: the chance that a decision is for an option, where one may start. None: uniform over
        actions and options.
    progress
        Called with the numbers of transitions collected and wanted.

    Returns
    -------
    Transitions or Recording
        `Transitions` in memory; with `out` a `Recording`, which is read chunk by chunk.

    Raises
    ------
    CollectionStopped
        Where the environment fails on the way. It says how many transitions there are, and keeps them.

    Examples
    --------
    >>> batch = collect("FrozenLake-v1", 100, n_envs=4)
    >>> batch.obs.shape, batch.action.dtype, bool(batch.terminated.any())
    ((100,), dtype('int64'), True)
    """
    walker, far, progress = _walker(env, steps, settings, current())
    if out is not None:
        return _record(walker, Path(out), far, progress)
    done: list[Transitions] = []
    try:
        done.extend(batch for _, batch in _walk(walker, range(len(walker.counts)), far, progress))
    except CollectionStopped as stopped:
        stopped.transitions = _joined(done)
        stopped.args = (f"{stopped}; they are in .transitions of this error",)
        raise
    return _joined(done)


def load_transitions(folder: str | Path) -> Recording:
    """Find what `collect` wrote into a folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = collect("eigenoptions/IMaze-v0", 30, out=folder, chunk=20)
    ...     load_transitions(folder).counts
    (20, 10)
    """
    place = Path(folder)
    counts: list[int] = []
    while _file(place, len(counts)).exists():
        counts.append(len(_read(place, len(counts))[1]))
    if not counts:
        raise FileNotFoundError(f"no transitions in {place}: collect(..., out=folder) writes them")
    return Recording(place, tuple(counts))


@dataclass(frozen=True)
class _Far:
    """Other processes, and what they need to make a walker of their own."""

    engine: Engine
    recipe: dict[str, Any]


def _walker(
    env: Source, steps: int, settings: Settings, engine: Engine
) -> tuple[Walker, _Far | None, Progress | None]:
    given: dict[str, Any] = dict(settings)
    progress = given.pop("progress", None)
    alone = hasattr(env, "step") and not isinstance(env, type)
    if engine.name == "serial" or alone:
        if engine.name != "serial":
            log.warning(
                "an environment given as an object is walked in this process, not by engine %r: "
                "give its id, or a function that makes it",
                engine.name,
            )
        return Walker(env, steps, **given), None, progress
    walker = Walker(env, steps, **given)
    recipe = {"env": env, "steps": steps, "settings": {**given, "rng": int(walker.entropy)}}
    return walker, _Far(engine, recipe), progress


def _walk(
    walker: Walker, wanted: Sequence[int], far: _Far | None, progress: Progress | None
) -> Iterator[tuple[int, Transitions]]:
    """Walk the wanted chunks in order; give out what there is of a broken one, and raise CollectionStopped."""
    total = sum(walker.counts)
    try:
        for i, batch, why in _near(walker, wanted, progress) if far is None else _afar(walker, wanted, far):
            before = sum(walker.counts[:i])
            if why is None:
                yield i, batch
                if far is not None and progress is not None:
                    progress(before + len(batch), total)
                continue
            if len(batch):
                yield i, batch
            raise CollectionStopped(
                f"collection stopped after {before + len(batch)} of {total} transitions: {why}"
            ) from why.__cause__
    finally:
        walker.close()


def _near(
    walker: Walker, wanted: Sequence[int], progress: Progress | None
) -> Iterator[tuple[int, Transitions, Halt | None]]:
    """Chunks walked here: number, transitions, and why it broke off."""
    total = sum(walker.counts)
    for i in wanted:
        try:
            yield i, walker.chunk(i, _teller(progress, sum(walker.counts[:i]), walker.counts[i], total)), None
        except Halt as halt:
            yield i, halt.part, halt


def _afar(walker: Walker, wanted: Sequence[int], far: _Far) -> Iterator[tuple[int, Transitions, Halt | None]]:
    """Chunks walked by workers, in the same order; a window of jobs at a time, so that memory is bounded."""
    size = max(1, walker._row_bytes() * walker.counts[0])
    group = max(1, min(GROUP, JOB_BYTES // size, -(-len(wanted) // GROUP)))
    jobs = [list(wanted[low : low + group]) for low in range(0, len(wanted), group)]
    window = max(WINDOW, 4 * (far.engine.workers or 1))
    for low in range(0, len(jobs), window):
        part = jobs[low : low + window]
        done = pmap(_walked, part, far.engine.name, shared=far.recipe, workers=far.engine.workers)
        for numbers, (batches, why) in zip(part, done, strict=True):
            for k, (i, batch) in enumerate(zip(numbers, batches, strict=False)):
                last = why is not None and k == len(batches) - 1
                yield i, batch, Halt(str(why), batch) if last else None


def _walked(
    job: list[int], env: Source, steps: int, settings: dict[str, Any]
) -> tuple[list[Transitions], str | None]:
    """Chunks with these numbers; if one broke off, it is the last, and a word says why."""
    walker = Walker(env, steps, **settings)
    done: list[Transitions] = []
    try:
        for i in job:
            done.append(walker.chunk(i, lambda rows: None))
    except Halt as halt:
        return [*done, halt.part], str(halt)
    finally:
        walker.close()
    return done, None


def _teller(progress: Progress | None, before: int, count: int, total: int) -> Callable[[int], None]:
    """Pass on how far a chunk is, now and then and at its end."""
    told = before

    def tell(rows: int) -> None:
        nonlocal told
        if progress is not None and (before + rows - told >= TOLD or rows == count):
            told = before + rows
            progress(told, total)

    return tell


def _record(walker: Walker, folder: Path, far: _Far | None, progress: Progress | None) -> Recording:
    """Fill a folder with the chunks that are missing, short, or damaged."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        walker.close()
        raise type(error)(f"cannot write into {folder}: {error.strerror}; choose a folder") from None
    missing = []
    for i, count in enumerate(walker.counts):
        if not _file(folder, i).exists():
            missing.append(i)
            continue
        try:
            header, batch = _read(folder, i)
        except files.DamagedFileError as damage:
            log.warning("%s; it is collected again", damage)
            missing.append(i)
            continue
        except ValueError:
            walker.close()
            raise
        differ = [k for k, v in walker.settings.items() if header["settings"].get(k) != v]
        if differ:
            walker.close()
            was, now = header["settings"].get(differ[0]), walker.settings[differ[0]]
            raise ValueError(
                f"{folder} holds a collection with {differ[0]} {was!r}, not {now!r}: choose another folder, "
                "or the same settings to go on with it"
            )
        if len(batch) < count:
            missing.append(i)
    try:
        for i, batch in _walk(walker, missing, far, progress):
            _write(folder, i, batch, walker.settings)
    except CollectionStopped as stopped:
        stopped.args = (f"{stopped}; they are in {folder}, and the same call goes on from there",)
        raise
    return Recording(folder, walker.counts)


def _file(folder: Path, i: int) -> Path:
    return folder / f"chunk-{i:06d}.safetensors"


def _write(folder: Path, i: int, batch: Transitions, settings: dict[str, Any]) -> None:
    header = {"kind": "transitions", "format": FORMAT, "settings": settings}
    arrays = {name: getattr(batch, name)[None] for name in ("obs", "action", "next_obs", "terminated")}
    files.write(_file(folder, i), header, arrays)  # one item, so one seal: a chunk is read whole


def _read(folder: Path, i: int) -> tuple[dict[str, Any], Transitions]:
    return read_chunk(_file(folder, i))


def read_chunk(path: str | Path) -> tuple[dict[str, Any], Transitions]:
    """Header and transitions of one file that `collect` wrote."""
    header, arrays = files.read(path, "transitions", FORMAT)
    return header, Transitions(*(arrays[name][0] for name in ("obs", "action", "next_obs", "terminated")))


def _cut(batch: Transitions, count: int) -> Transitions:
    return Transitions(
        batch.obs[:count], batch.action[:count], batch.next_obs[:count], batch.terminated[:count]
    )


def _joined(batches: Iterable[Transitions]) -> Transitions:
    parts = list(batches)
    if len(parts) == 1:
        return parts[0]
    if not parts:
        nothing: NDArray[Any] = np.empty(0, dtype=np.int64)
        return Transitions(nothing, nothing, nothing, nothing.astype(np.bool_))
    return Transitions(
        np.concatenate([part.obs for part in parts]),
        np.concatenate([part.action for part in parts]),
        np.concatenate([part.next_obs for part in parts]),
        np.concatenate([part.terminated for part in parts]),
    )
