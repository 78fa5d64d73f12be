"""Where experiments are computed: each job once, its result kept in a folder.

A `Job` is a call of a function with keyword arguments. An interrupted run computes
only the jobs whose results are missing.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import pandas as pd
from rich.console import Console
from rich.progress import Progress as ProgressBar

import eigenoptions
from eigenoptions._types import Progress
from eigenoptions.options.files import write_atomically
from eigenoptions.parallel import run_jobs, using

# Tables by name.
Data = dict[str, pd.DataFrame]


@dataclass(frozen=True)
class Job:
    """A call to compute.

    Attributes
    ----------
    function : callable
        A function of a module, which other processes can import.
    arguments : mapping
        Its keyword arguments.
    columns : mapping, optional
        Columns that name the job in tables, with their values.
    """

    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    columns: Mapping[str, Any] = field(default_factory=dict)


class Result(NamedTuple):
    """What a job returned, and the columns that name it in tables."""

    columns: Mapping[str, Any]
    value: Any


# Jobs of an experiment in groups, and their results in the same groups.
Jobs = Mapping[str, Sequence[Job]]
Results = Mapping[str, Sequence[Result]]


class Lab:
    """Computes jobs in parallel, and keeps their results in a folder.

    Parameters
    ----------
    cache : path
        Folder of the results, one file per job.
    quick : bool, default=False
        Whether experiments have their quick settings.
    atari : bool, default=False
        Whether the games are played anew instead of judged by stored results.

    Attributes
    ----------
    seconds : float
        CPU time of all jobs that were asked for, also of those computed earlier.
    progress : callable
        Called with the number of jobs that are done, and of all.
    describe : callable
        Called with a few words on what is computed next.
    """

    def __init__(
        self, cache: str | Path, *, quick: bool = False, atari: bool = False
    ) -> None:
        self.cache = Path(cache)
        self.quick = quick
        self.atari = atari
        self.seconds = 0.0
        self.progress: Progress = lambda done, total: None
        self.describe: Callable[[str], object] = lambda text: None

    def run(self, groups: Jobs) -> Results:
        """The results of groups of jobs, all of which are computed together."""
        jobs = [job for group in groups.values() for job in group]
        values = iter(self._compute(jobs))
        return {
            name: [Result(job.columns, next(values)) for job in group]
            for name, group in groups.items()
        }

    def pmap(
        self, function: Callable[..., Any], calls: Iterable[Mapping[str, Any]]
    ) -> list[Any]:
        """The results of calls of one function, given their keyword arguments."""
        return self._compute([Job(function, arguments) for arguments in calls])

    def _compute(self, jobs: Sequence[Job]) -> list[Any]:
        """The results of jobs; those that are not in the cache are computed."""
        paths = [self._locate(job) for job in jobs]
        missing = {
            path: (path, job)
            for path, job in zip(paths, jobs, strict=True)
            if not path.exists()
        }

        if missing:
            n_cached = len(paths) - len(missing)
            run_jobs(
                _compute_and_store,
                list(missing.values()),
                progress=lambda done, _: self.progress(n_cached + done, len(paths)),
            )

        stored = [joblib.load(path) for path in paths]
        self.seconds += sum(seconds for _, seconds in stored)
        return [value for value, _ in stored]

    def _locate(self, job: Job) -> Path:
        """The file of a job: named by its function, its arguments and the sources."""
        module = job.function.__module__
        name = f"{module}.{job.function.__qualname__}"
        key: str = joblib.hash([name, source_version(module), dict(job.arguments)])
        return self.cache / key[:2] / f"{key[2:]}.joblib"


@contextmanager
def open_lab(
    folder: str | Path, *, quick: bool = False, atari: bool = False
) -> Iterator[Lab]:
    """Lock a folder for one run, and yield a `Lab` that shows a progress bar.

    Parameters
    ----------
    folder : path
        It is created if it does not exist. A folder with other content, or that
        another run is using, is refused. Results of jobs are in ``folder/cache``.
    quick, atari : bool, default=False
        As in `Lab`.
    """
    folder = Path(folder)
    mark = folder / ".reproduction"
    _check_content(folder, mark)
    folder.mkdir(parents=True, exist_ok=True)

    console = Console(stderr=True)
    bar = ProgressBar(console=console, transient=True, disable=not console.is_terminal)
    with mark.open("a") as lock, bar:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BlockingIOError(
                f"another run is using {folder}: "
                "wait for it, or give another folder (--out)"
            ) from None

        task = bar.add_task("loading", total=None)
        lab = Lab(folder / "cache", quick=quick, atari=atari)
        lab.progress = lambda done, total: bar.update(task, completed=done, total=total)
        lab.describe = lambda text: bar.update(
            task, description=text, completed=0, total=None
        )
        with using("processes"):
            yield lab


def stack_tables(results: Iterable[Result]) -> pd.DataFrame:
    """The tables that jobs returned, one below the other, with the jobs' columns.

    >>> tables = [pd.DataFrame({"steps": [3, 4]}), pd.DataFrame({"steps": [5]})]
    >>> results = [Result({"maze": maze}, t) for maze, t in zip("ab", tables)]
    >>> stack_tables(results).to_dict("list")
    {'steps': [3, 4, 5], 'maze': ['a', 'a', 'b']}
    """
    return pd.concat([value.assign(**columns) for columns, value in results])


def get_tables(results: Sequence[Result]) -> Data:
    """The tables that the only job of a group returned."""
    (result,) = results
    tables: Data = result.value
    return tables


@cache
def source_version(module: str) -> str:
    """Hash of the sources that decide a result.

    They are the library without its pages and plots, what experiments share (`runs`),
    the authors' basis, the module of the function, and the stored results beside it.
    """
    here = Path(__file__).parent
    shared = [*sorted(here.glob("runs/*.py")), here / "authors" / "basis.csv"]
    own = Path(str(sys.modules[module].__file__))
    stored = sorted(own.parent.glob("results/*.csv*"))
    return hash_files([*list_library_files(), *shared, own, *stored])


def list_library_files() -> list[Path]:
    """Source files of the library, without `cli`, `studio` and `plots`."""
    library = Path(eigenoptions.__file__).parent
    return [
        path
        for path in sorted(library.rglob("*"))
        if path.suffix in (".py", ".txt")
        and path.relative_to(library).parts[0] not in ("cli", "studio", "plots")
    ]


def hash_files(paths: Iterable[Path]) -> str:
    """Hash of the content of files."""
    digest = hashlib.blake2b(digest_size=8)
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _check_content(folder: Path, mark: Path) -> None:
    """Refuse a folder that exists, is not empty, and has no report."""
    if not folder.exists() or mark.exists():
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise FileExistsError(
            f"{folder} has content other than a report: "
            "give a new or empty folder (--out)"
        )


def _compute_and_store(task: tuple[Path, Job]) -> None:
    """Run a job in a worker, and write its result and CPU time to the cache."""
    path, job = task
    start = time.process_time()
    value = job.function(**job.arguments)
    seconds = time.process_time() - start

    content = io.BytesIO()
    joblib.dump((value, seconds), content)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content.getvalue())
