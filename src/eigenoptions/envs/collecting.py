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

from eigenoptions import storage
from eigenoptions.envs.exploring import Progress
from eigenoptions.envs.walking import Halt, Policy, Source, Walker
from eigenoptions.mdp import Transitions
from eigenoptions.options import OptionSet

log = logging.getLogger("eigenoptions")

FORMAT = 1  # of transitions files
TOLD = 1024  # transitions between two calls of progress


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
    progress: Progress | None


def stream(env: Source, steps: int, **settings: Unpack[Settings]) -> Iterator[Transitions]:
    """Collect in chunks that are given out and forgotten, so that any number of transitions fits in memory.

    Where the environment fails, what there is of the chunk is given out before `CollectionStopped` is raised.

    Examples
    --------
    >>> [len(batch) for batch in stream("eigenoptions/IMaze-v0", 250, chunk=100, n_envs=8)]
    [100, 100, 50]
    """
    walker, progress = _walker(env, steps, settings)
    for _, batch in _walk(walker, range(len(walker.counts)), progress):
        yield batch


@overload
def collect(env: Source, steps: int, *, out: None = None, **settings: Unpack[Settings]) -> Transitions: ...
@overload
def collect(env: Source, steps: int, *, out: str | Path, **settings: Unpack[Settings]) -> Recording: ...
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
    walker, progress = _walker(env, steps, settings)
    if out is not None:
        return _record(walker, Path(out), progress)
    done: list[Transitions] = []
    try:
        done.extend(batch for _, batch in _walk(walker, range(len(walker.counts)), progress))
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


def _walker(env: Source, steps: int, settings: Settings) -> tuple[Walker, Progress | None]:
    given = dict(settings)
    progress = given.pop("progress", None)
    return Walker(env, steps, **given), progress  # type: ignore[arg-type, return-value]


def _walk(
    walker: Walker, wanted: Iterable[int], progress: Progress | None
) -> Iterator[tuple[int, Transitions]]:
    """Walk the wanted chunks in order; give out what there is of a broken one, and raise CollectionStopped."""
    total = sum(walker.counts)
    try:
        for i in wanted:
            before = sum(walker.counts[:i])
            try:
                batch = walker.chunk(i, _teller(progress, before, walker.counts[i], total))
            except Halt as halt:
                if len(halt.part):
                    yield i, halt.part
                n = before + len(halt.part)
                raise CollectionStopped(
                    f"collection stopped after {n} of {total} transitions: {halt}"
                ) from halt.__cause__
            yield i, batch
    finally:
        walker.close()


def _teller(progress: Progress | None, before: int, count: int, total: int) -> Callable[[int], None]:
    """Pass on how far a chunk is, now and then and at its end."""
    told = before

    def tell(rows: int) -> None:
        nonlocal told
        if progress is not None and (before + rows - told >= TOLD or rows == count):
            told = before + rows
            progress(told, total)

    return tell


def _record(walker: Walker, folder: Path, progress: Progress | None) -> Recording:
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
        except ValueError as damage:
            if "damaged" not in str(damage):  # another version's, or something else: not ours to replace
                walker.close()
                raise
            log.warning("%s; it is collected again", damage)
            missing.append(i)
            continue
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
        for i, batch in _walk(walker, missing, progress):
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
    storage.write(_file(folder, i), header, arrays)  # one item, so one seal: a chunk is read whole


def _read(folder: Path, i: int) -> tuple[dict[str, Any], Transitions]:
    header, arrays = storage.read(_file(folder, i), "transitions", FORMAT)
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
