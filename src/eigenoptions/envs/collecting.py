"""Samples of an environment: `stream` them in chunks, `collect` them in memory or on disk (paper, Section 5.1).

Every chunk begins with a reset and has random numbers of its own, a child of the one seed. So a chunk does not depend
on those before it: a collection that was interrupted continues with the missing chunks and ends in the same bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np

from eigenoptions import files
from eigenoptions._checks import check_settings, locked
from eigenoptions.envs.sampler import ChunkError, Sampler, Sampling, Source, head
from eigenoptions.envs.search import Progress
from eigenoptions.mdp import Transitions
from eigenoptions.parallel import Engine, current, on_engine, pmap

log = logging.getLogger("eigenoptions")

# Version of the format of transitions files.
FORMAT = 1
PARTS = ("obs", "action", "next_obs", "terminated")
# Transitions between two calls of progress.
REPORT_EVERY = 1024
# Most chunks and bytes per job of a worker, and jobs that are out at a time.
JOB_CHUNKS, JOB_BYTES, OPEN_JOBS = 8, 1 << 26, 16


class CollectionStopped(RuntimeError):  # noqa: N818 (a public name)
    """The environment failed, or gave observations that cannot be stored.

    With ``collect(..., out=folder)`` the folder holds the transitions up to there; `stream` has yielded them.

    Examples
    --------
    >>> raise CollectionStopped("collection stopped after 3 of 9 transitions")
    Traceback (most recent call last):
    eigenoptions.envs.collecting.CollectionStopped: collection stopped after 3 of 9 transitions
    """


@dataclass(frozen=True)
class Recording:
    """Transitions in a folder: iterate over chunks (one in memory at a time), or `load` them all.

    Attributes
    ----------
    folder
        Folder of the chunks.
    counts
        Number of transitions that are read from each chunk; the folder may hold more.

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
            batch = read_chunk(_file(self.folder, i))[1]
            yield batch if len(batch) == count else head(batch, count)

    @property
    def files(self) -> tuple[Path, ...]:
        """One file per chunk."""
        return tuple(_file(self.folder, i) for i in range(len(self.counts)))

    def load(self) -> Transitions:
        """Read all transitions into memory."""
        return _joined(self)


class Settings(Sampling, total=False):
    """Settings of `stream` and `collect`; see `collect`."""

    engine: str
    workers: int | None
    progress: Progress | None


@on_engine()
def stream(env: Source, steps: int, **settings: Unpack[Settings]) -> Iterator[Transitions]:
    """Yield transitions in chunks without keeping them, so that any number of them fits in memory.

    Where the environment fails, the unfinished chunk is yielded before `CollectionStopped` is raised.

    Examples
    --------
    >>> [len(batch) for batch in stream("eigenoptions/IMaze-v0", 250, chunk=100, n_envs=8)]
    [100, 100, 50]
    """
    return _streamed(env, steps, settings, current())


def _streamed(env: Source, steps: int, settings: Settings, engine: Engine) -> Iterator[Transitions]:
    run = _run(env, steps, settings, engine)
    for _, batch in run.chunks(range(len(run.sampler.counts))):
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
        Folder for chunks (safetensors). A call with the same settings collects only the chunks that are missing;
        one with more `steps` adds the rest.
    policy
        None: uniformly random actions. An `OptionSet` (or a list of objects with ``act``): each decision is uniform
        over the primitive actions and the options that may start, and options run to their end, as in the paper. Or a
        function from a batch of observations ``(n_envs, ...)`` to actions ``(n_envs,)``; one with a state of its own
        cannot be resumed to the same bytes.
    n_envs
        Number of copies stepped together (1).
    rng
        Seed (0) or generator; one seed gives the same bytes, in memory and on disk.
    chunk
        Number of transitions per chunk. Every chunk begins with a reset, so it should be much longer than an episode.
        None: 16,384, or fewer where observations are large (64 MB per chunk).
    max_episode_steps
        Truncate episodes after this many steps (None: as the environment does).
    features
        Function from a batch of observations to an array ``(n_envs, ...)``, which is stored instead of them; needed
        for Dict observations.
    option_chance
        With options as policy: the probability that a decision is for an option, where one may start. None: uniform
        over actions and options.
    progress
        Called with the number of transitions collected and wanted.

    Returns
    -------
    Transitions or Recording
        `Transitions` in memory; with `out` a `Recording`, which is read chunk by chunk.

    Raises
    ------
    CollectionStopped
        Where the environment fails; with `out`, the folder keeps the transitions up to there.

    Examples
    --------
    >>> batch = collect("FrozenLake-v1", 100, n_envs=4)
    >>> batch.obs.shape, batch.action.dtype, bool(batch.terminated.any())
    ((100,), dtype('int64'), True)
    """
    run = _run(env, steps, settings, current())
    if out is not None:
        return _record(run, Path(out))
    try:
        return _joined([batch for _, batch in run.chunks(range(len(run.sampler.counts)))])
    except CollectionStopped as stopped:
        stopped.args = (f"{stopped}; with out=, a folder keeps them",)
        raise


def load_transitions(folder: str | Path) -> Recording:
    """Transitions that `collect` wrote into a folder.

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
        counts.append(len(read_chunk(_file(place, len(counts)))[1]))
    if not counts:
        raise FileNotFoundError(f"no transitions in {place}: collect(..., out=folder) writes them")
    return Recording(place, tuple(counts))


@dataclass(frozen=True)
class _Run:
    """A sampler with its engine; `recipe` holds what a worker needs to build a sampler of its own."""

    sampler: Sampler
    recipe: dict[str, Any]
    engine: Engine
    progress: Progress | None

    def chunks(self, wanted: Sequence[int]) -> Iterator[tuple[int, Transitions]]:
        """Sample the wanted chunks in order; yield an unfinished one too, and raise CollectionStopped."""
        counts = self.sampler.counts
        try:
            for i, batch, error in (self._by_workers if self.recipe else self._here)(wanted):
                if len(batch) or error is None:
                    yield i, batch
                if error is not None:
                    done = sum(counts[:i]) + len(batch)
                    message = f"collection stopped after {done} of {sum(counts)} transitions: {error}"
                    raise CollectionStopped(message) from error.__cause__
        finally:
            self.sampler.close()

    def _here(self, wanted: Sequence[int]) -> Iterator[tuple[int, Transitions, ChunkError | None]]:
        """Chunks sampled in this process: number, transitions, and the error that cut it short."""
        for i in wanted:
            try:
                yield i, self.sampler.chunk(i, self._reporter(i)), None
            except ChunkError as error:
                yield i, error.part, error

    def _by_workers(self, wanted: Sequence[int]) -> Iterator[tuple[int, Transitions, ChunkError | None]]:
        """The same by workers, in the same order; a window of jobs at a time, so that memory is bounded."""
        counts = self.sampler.counts
        size = max(1, self.sampler.row_bytes * counts[0])
        group = max(1, min(JOB_CHUNKS, JOB_BYTES // size, -(-len(wanted) // JOB_CHUNKS)))
        jobs = [list(wanted[low : low + group]) for low in range(0, len(wanted), group)]
        window = max(OPEN_JOBS, 4 * (self.engine.workers or 1))
        for low in range(0, len(jobs), window):
            part = jobs[low : low + window]
            done = pmap(_sampled, part, self.engine.name, shared=self.recipe, workers=self.engine.workers)
            for numbers, (batches, reason) in zip(part, done, strict=True):
                for k, (i, batch) in enumerate(zip(numbers, batches, strict=False)):
                    last = reason is not None and k == len(batches) - 1
                    yield i, batch, ChunkError(str(reason), batch) if last else None
                    if self.progress is not None and not last:
                        self.progress(sum(counts[:i]) + len(batch), sum(counts))

    def _reporter(self, i: int) -> Callable[[int], None]:
        """Callback for the transitions of chunk i so far, which reports from time to time and at the end."""
        counts = self.sampler.counts
        before, total = sum(counts[:i]), sum(counts)
        reported = before

        def report(rows: int) -> None:
            nonlocal reported
            if self.progress is not None and (before + rows - reported >= REPORT_EVERY or rows == counts[i]):
                reported = before + rows
                self.progress(reported, total)

        return report


def _run(env: Source, steps: int, settings: Settings, engine: Engine) -> _Run:
    """Check the settings and make the sampler; without a recipe it samples in this process."""
    given: dict[str, Any] = dict(settings)
    check_settings("collect", given, Settings.__annotations__, ("steps", "engine", "workers"))
    progress = given.pop("progress", None)
    sampler = Sampler(env, steps, **given)
    recipe = {"env": env, "steps": steps, "settings": {**given, "rng": sampler.entropy}}
    if engine.name == "serial":
        recipe = {}
    elif hasattr(env, "step") and not isinstance(env, type):
        log.warning(
            "an environment given as an object is walked in this process, not by engine %r: "
            "give its id, or a function that makes it",
            engine.name,
        )
        recipe = {}
    return _Run(sampler, recipe, engine, progress)


def _sampled(
    job: list[int], env: Source, steps: int, settings: dict[str, Any]
) -> tuple[list[Transitions], str | None]:
    """Chunks with these numbers, and None; or those up to the first that failed, and the reason."""
    sampler = Sampler(env, steps, **settings)
    done: list[Transitions] = []
    try:
        for i in job:
            done.append(sampler.chunk(i, lambda rows: None))
    except ChunkError as error:
        return [*done, error.part], str(error)
    finally:
        sampler.close()
    return done, None


def _record(run: _Run, folder: Path) -> Recording:
    """Fill a folder with the chunks that are missing, short, or damaged."""
    sampler = run.sampler
    try:
        folder.mkdir(parents=True, exist_ok=True)
        missing = [i for i in range(len(sampler.counts)) if _is_missing(sampler, folder, i)]
    except OSError as error:
        sampler.close()
        raise type(error)(f"cannot write into {folder}: {error.strerror}; choose a folder") from None
    except ValueError:
        sampler.close()
        raise
    header = {"kind": "transitions", "format": FORMAT, "settings": sampler.settings}
    try:
        for i, batch in run.chunks(missing):
            # One item per array, so one checksum: a chunk is read whole.
            files.write(_file(folder, i), header, {name: getattr(batch, name)[None] for name in PARTS})
    except CollectionStopped as stopped:
        stopped.args = (f"{stopped}; they are in {folder}, and the same call goes on from there",)
        raise
    return Recording(folder, sampler.counts)


def _is_missing(sampler: Sampler, folder: Path, i: int) -> bool:
    """Whether a chunk has to be collected; ValueError if the folder holds a collection with other settings."""
    if not _file(folder, i).exists():
        return True
    try:
        header, batch = read_chunk(_file(folder, i))
    except files.DamagedFileError as damage:
        log.warning("%s; it is collected again", damage)
        return True
    for name, now in sampler.settings.items():
        was = header["settings"].get(name)
        if was != now:
            raise ValueError(
                f"{folder} holds a collection with {name} {was!r}, not {now!r}: choose another folder, "
                "or the same settings to go on with it"
            )
    return len(batch) < sampler.counts[i]


def _file(folder: Path, i: int) -> Path:
    return folder / f"chunk-{i:06d}.safetensors"


def read_chunk(path: str | Path) -> tuple[dict[str, Any], Transitions]:
    """Header and transitions of one file that `collect` wrote."""
    header, arrays = files.read(path, "transitions", FORMAT)
    return header, Transitions(*locked(*(arrays[name][0] for name in PARTS)))


def _joined(batches: Iterable[Transitions]) -> Transitions:
    parts = list(batches)
    if len(parts) == 1:
        return parts[0]
    return Transitions(*locked(*(np.concatenate([getattr(part, name) for part in parts]) for name in PARTS)))
