"""Samples of an environment: `stream` them in chunks, `collect` them in memory or on disk (paper, Section 5.1).

Every chunk begins with a reset and has random numbers of its own, a child of the one seed. So a chunk does not depend
on those before it: a collection that was interrupted continues with the missing chunks and ends in the same bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np

from eigenoptions import files
from eigenoptions._validation import check_settings, set_readonly
from eigenoptions.envs.sampler import ChunkError, Sampler, Sampling, Source, head
from eigenoptions.envs.search import Progress
from eigenoptions.mdp import Transitions
from eigenoptions.parallel import Engine, current_engine, run_jobs

log = logging.getLogger("eigenoptions")

# Version of the format of transitions files.
FORMAT = 1
PARTS = ("obs", "action", "next_obs", "terminated")
# Transitions between two calls of progress.
REPORT_EVERY = 1024
# Most chunks and bytes per job of a worker, and jobs that are out at a time.
JOB_CHUNKS, JOB_BYTES, OPEN_JOBS = 8, 1 << 26, 16

# Number of a chunk, its transitions, and the error that cut it short.
Sampled = tuple[int, Transitions, ChunkError | None]
Report = Callable[[int], object]


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

    progress: Progress | None


def stream(env: Source, steps: int, **settings: Unpack[Settings]) -> Iterator[Transitions]:
    """Yield transitions in chunks without keeping them, so that any number of them fits in memory.

    Where the environment fails, the unfinished chunk is yielded before `CollectionStopped` is raised.

    Examples
    --------
    >>> [len(batch) for batch in stream("eigenoptions/IMaze-v0", 250, chunk=100, n_envs=8)]
    [100, 100, 50]
    """
    return _streamed(env, steps, settings, current_engine())


def _streamed(env: Source, steps: int, settings: Settings, engine: Engine) -> Iterator[Transitions]:
    run = _Run(env, steps, settings, engine)
    for _, batch in run.chunks(range(len(run.sampler.counts))):
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
    run = _Run(env, steps, settings, current_engine())
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


class _Run:
    """A collection: a sampler, and the engine whose workers build samplers of their own from a recipe."""

    def __init__(self, env: Source, steps: int, settings: Settings, engine: Engine) -> None:
        given: dict[str, Any] = dict(settings)
        check_settings("collect", given, Settings.__annotations__, ("steps",))
        self.engine, self.progress = engine, given.pop("progress", None)
        self.sampler = Sampler(env, steps, **given)
        recipe = {"env": env, "steps": steps, "settings": {**given, "rng": self.sampler.entropy}}
        # None: chunks are sampled in this process.
        self.recipe = None if engine.name == "serial" else recipe
        if self.recipe and hasattr(env, "step") and not isinstance(env, type):
            log.warning(
                "an environment given as an object is walked in this process, not by engine %r: "
                "give its id, or a function that makes it",
                engine.name,
            )
            self.recipe = None

    def chunks(self, wanted: Sequence[int]) -> Iterator[tuple[int, Transitions]]:
        """Sample the wanted chunks in order; yield an unfinished one too, and raise CollectionStopped."""
        counts = self.sampler.counts
        try:
            done = self._by_workers(wanted) if self.recipe else _sample(self.sampler, wanted, self._reporter)
            for i, batch, error in done:
                if len(batch) or error is None:
                    yield i, batch
                if error is not None:
                    rows = sum(counts[:i]) + len(batch)
                    message = f"collection stopped after {rows} of {sum(counts)} transitions: {error}"
                    raise CollectionStopped(message) from error.__cause__
        finally:
            self.sampler.close()

    def _by_workers(self, wanted: Sequence[int]) -> Iterator[Sampled]:
        """Chunks sampled by workers, in order; a window of jobs at a time, so that memory is bounded."""
        counts = self.sampler.counts
        size = max(1, self.sampler.row_bytes * counts[0])
        group = max(1, min(JOB_CHUNKS, JOB_BYTES // size, -(-len(wanted) // JOB_CHUNKS)))
        jobs = [list(wanted[low : low + group]) for low in range(0, len(wanted), group)]
        window = max(OPEN_JOBS, 4 * (self.engine.workers or 1))
        for low in range(0, len(jobs), window):
            part = jobs[low : low + window]
            done = run_jobs(_job, part, shared=self.recipe)
            for i, batch, reason in chain.from_iterable(done):
                yield i, batch, None if reason is None else ChunkError(reason, batch)
                if self.progress is not None and reason is None:
                    self.progress(sum(counts[:i]) + len(batch), sum(counts))

    def _reporter(self, i: int) -> Report:
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


def _sample(sampler: Sampler, wanted: Sequence[int], reporter: Callable[[int], Report]) -> Iterator[Sampled]:
    """Chunks with these numbers, up to the first that fails."""
    for i in wanted:
        try:
            yield i, sampler.chunk(i, reporter(i)), None
        except ChunkError as error:
            yield i, error.part, error
            return


def _job(
    job: list[int], env: Source, steps: int, settings: dict[str, Any]
) -> list[tuple[int, Transitions, str | None]]:
    """The same by a worker, with the reason of a failure."""
    sampler = Sampler(env, steps, **settings)
    try:
        done = list(_sample(sampler, job, lambda i: lambda rows: None))
    finally:
        sampler.close()
    return [(i, batch, None if error is None else str(error)) for i, batch, error in done]


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
    return header, Transitions(*set_readonly(*(arrays[name][0] for name in PARTS)))


def _joined(batches: Iterable[Transitions]) -> Transitions:
    parts = list(batches)
    if len(parts) == 1:
        return parts[0]
    return Transitions(
        *set_readonly(*(np.concatenate([getattr(part, name) for part in parts]) for name in PARTS))
    )
