"""Experiments, claims, thresholds and cached jobs: what every experiment is made of.

An experiment is a module of `experiments` with its runs, its figure and its claims side by side. Its docstring is its
title and what the paper shows there::

    SECTION, ORDER = "4.3", 80  # section of the paper, position in the report
    QUICK = {"runs": 4}  # settings of a quick run

    def run(lab, *, runs=100, seed=2017):  # keyword defaults are the settings of the paper
        jobs = [dict(maze=name, n=n, runs=runs, seed=seed) for name in MAZES for n in COUNTS]
        return {"returns": pd.concat(lab.pmap(learn, jobs))}  # data frames by name; learn(maze=..., n=..., ...)

    def claims(data):  # a function of these data frames alone
        better = ...
        yield Claim("most-scenarios", "In most scenarios eigenoptions improve performance.",
                    tests=[better > 12], measured=f"better in {better} of 24 scenarios", evidence="How it was judged.")

    def figure(data): ...  # a Matplotlib figure

Everything slow goes through `Lab.pmap`, which computes each job once: an interrupted run computes only what is missing.
The games are `reproduction.atari.EXPERIMENTS`; their `run` reads stored results unless ``lab.atari``.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
from rich.console import Console
from rich.progress import Progress

import eigenoptions
from eigenoptions.options.files import write_atomically
from eigenoptions.parallel import run_jobs, using

Data = dict[str, pd.DataFrame]
# What a page shows: a paragraph, a table with its caption, or a Matplotlib figure.
Block = Any
Blocks = Iterator[Block]

# Thresholds for the paper's words of degree, fixed before the experiments were run; what was not is in `report.html`.
FEW = 8  # "a few options": both signs of the four eigenvectors of Figures 3 to 5
FIRST = (1, 2, 3)  # "the first options"
GREATLY = 0.5  # "greatly improved": at most this share of the diffusion time of primitive actions
SEVERAL = 1000.0  # "several orders of magnitude": at least this factor
NEARLY_ALL = 0.9  # "almost fully connected": at least this share of all options
ALMOST_ALL = 0.9  # "in almost all settings": at least this share of them
ROBUST = 0.8  # "fairly robust": at least this share of the best mean return
MAJOR = 2.0  # "a major impact": at least this factor
OFTEN = 0.9  # "often defined in the whole state space": the median option starts in this share of the states
NEAR = 1  # "near a doorway": at most this many steps
MARGIN = 0.05  # "no effect": the smallest difference of mean returns that matters, one evaluation episode in twenty
UNLIKELY = 0.05  # "very unlikely": at most this probability
DENSE = 0.9  # "dense": at least this share of the moves that change the state have a reward other than zero
DOZENS = 24  # "dozens": at least this many
SKEWED = 0.9  # "skews": the effective share of the states is at most this
STRONG = 0.8  # "implies": at least this rank correlation
VERDICTS = ("holds", "partly", "does not hold", "not decided")


@dataclass(frozen=True)
class Claim:
    """A statement beside what was measured.

    Attributes
    ----------
    id, sentence
        Name; and the paper's words, or close to them.
    tests
        Whether each test is passed; None where the sample is too small to decide. See `verdict`.
    measured, evidence, table
        The result in one line; how it was measured, and what explains a difference; the numbers behind it.
    section
        Place in the paper (``"4.2"``, ``"Appendix D"``), by default that of the experiment; or ``"ours"`` for a
        statement that the paper does not make.
    lesson
        One sentence for readers if the claim does not hold.
    edge
        Why the verdict is on the edge: the reading, seed, margin or number of runs under which it turns.
    title
        A few words; those of the id by default.

    Examples
    --------
    >>> Claim("even", "2 is even.", tests=[2 % 2 == 0], measured="2 mod 2 = 0").verdict
    'holds'
    """

    id: str
    sentence: str
    tests: Sequence[Any]
    measured: str
    evidence: str = ""
    section: str = ""
    lesson: str = ""
    edge: str = ""
    title: str = ""
    table: pd.DataFrame | None = None

    @property
    def verdict(self) -> str:
        """Whether all tests are passed ("holds"), some ("partly") or none, or whether that depends on open ones.

        >>> [Claim("", "", tests, "").verdict for tests in ([True], [True, False], [False], [True, None])]
        ['holds', 'partly', 'does not hold', 'not decided']
        """
        passed = any(t for t in self.tests if t is not None)
        failed = any(not t for t in self.tests if t is not None)
        if passed and failed:
            return "partly"
        if not len(self.tests) or any(t is None for t in self.tests):
            return "not decided"
        return "holds" if passed else "does not hold"


Claims = Iterator[Claim]


def at_least(tests: Iterable[bool | None], count: float) -> bool | None:
    """Whether at least `count` tests are passed; None if that depends on undecided ones.

    >>> at_least([True, True, None], 2), at_least([True, False, None], 2), at_least([False, False, None], 2)
    (True, None, False)
    """
    results = list(tests)
    passed, undecided = sum(t is True for t in results), sum(t is None for t in results)
    return True if passed >= count else False if passed + undecided < count else None


def list_rows(form: str, table: pd.DataFrame) -> str:
    """The rows of a table as text; `form` has the names of columns, or of the index, in braces.

    >>> list_rows("{domain} {share:.0%}", pd.DataFrame({"domain": ["maze", "room"], "share": [0.25, 1.0]}))
    'maze 25%, room 100%'
    """
    return ", ".join(
        form.format(**row) for row in table.reset_index().to_dict("records")
    )


def list_items(form: str, items: Mapping[Any, Any] | pd.Series) -> str:
    """The keys and values of a mapping as text.

    >>> list_items("{} {:.0%}", {"maze": 0.25, "room": 1.0})
    'maze 25%, room 100%'
    """
    return ", ".join(form.format(key, value) for key, value in items.items())


@dataclass(frozen=True)
class Experiment:
    """A figure or statement of the paper: its runs, figure and claims.

    `run` is a function of a `Lab` and keyword settings, with those of the paper as defaults, to data frames by name;
    `quick` are settings of a run that only checks that everything works. All other functions get these data: `figure`
    returns a Matplotlib figure, `notes` paragraphs and tables (caption, data frame) of further analysis, and
    `headline` a number for the top of the page with its meaning. `shows` says what the paper shows there, `caption`
    what the figure does not say itself, and `ours` that the experiment goes beyond the paper.
    """

    name: str
    title: str
    section: str
    shows: str
    run: Callable[..., Data]
    figure: Callable[[Data], Any]
    claims: Callable[[Data], Iterable[Claim]] = lambda data: ()
    quick: Mapping[str, Any] = field(default_factory=dict)
    order: float = 1000
    caption: str = ""
    notes: Callable[[Data], Iterable[Block]] = lambda data: ()
    headline: Callable[[Data], tuple[str, str]] | None = None
    ours: bool = False
    atari: bool = False

    def judge(self, data: Data) -> list[Claim]:
        """The claims with their sections."""
        return [
            replace(claim, section=claim.section or self.section)
            for claim in self.claims(data)
        ]


class MissingJobsError(Exception):
    """Raised by a `Lab` that may not compute: some jobs are not in the cache."""


class Lab:
    """Where experiments run: a map over jobs whose results are cached in a folder, one file per job.

    With `quick` experiments have their quick settings, with `atari` the games are run anew; unless `compute`, missing
    jobs raise `MissingJobsError`. `progress` is called with the number of jobs done and in all, and `describe` with a
    few words on what is computed next. `seconds` is the CPU time of all jobs that were asked for, also of cached ones.
    """

    def __init__(
        self, cache: str | Path, *, quick: bool = False, atari: bool = False
    ) -> None:
        self.cache = Path(cache)
        self.quick, self.atari, self.compute, self.seconds = quick, atari, True, 0.0
        self.progress: Callable[[int, int], object] = lambda done, total: None
        self.describe: Callable[[str], object] = lambda text: None

    def pmap(
        self, function: Callable[..., Any], jobs: Iterable[Mapping[str, Any]]
    ) -> list[Any]:
        """Return ``[function(**job) for job in jobs]``, computed in parallel unless it is in the cache.

        The key of a job is the function with its arguments, the source of the library (without `cli`, `studio` and
        `plots`) and of the function's own module.
        """
        calls = [dict(job) for job in jobs]
        name = f"{function.__module__}.{function.__qualname__}"
        keys = [
            joblib.hash([name, source_version(function.__module__), job])
            for job in calls
        ]
        paths = [self.cache / key[:2] / f"{key[2:]}.joblib" for key in keys]
        missing = {
            p: (p, function, job)
            for p, job in zip(paths, calls, strict=True)
            if not p.exists()
        }
        if missing and not self.compute:
            raise MissingJobsError(
                f"{len(missing)} jobs of {name} are not in {self.cache}"
            )
        if missing:
            cached, total = len(paths) - len(missing), len(paths)
            tasks = list(missing.values())
            run_jobs(
                _compute_and_store,
                tasks,
                progress=lambda done, _: self.progress(cached + done, total),
            )
        loaded = [joblib.load(path) for path in paths]
        self.seconds += sum(seconds for _, seconds in loaded)
        return [result for result, _ in loaded]


@contextmanager
def open_lab(
    folder: str | Path, *, quick: bool = False, atari: bool = False
) -> Iterator[Lab]:
    """Lock a folder for one run, and yield a `Lab` that caches its jobs in ``folder/cache`` and shows a progress bar.

    The folder is created if it does not exist; one with other content, or that another run is using, is refused.
    """
    folder = Path(folder)
    mark = folder / ".reproduction"
    if (
        folder.exists()
        and not mark.exists()
        and (not folder.is_dir() or any(folder.iterdir()))
    ):
        raise FileExistsError(
            f"{folder} has content other than a report: give a new or empty folder (--out)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=True)
    progress = Progress(
        console=console, transient=True, disable=not console.is_terminal
    )
    with mark.open("a") as lock, progress as bar:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            advice = "wait for it, or give another folder (--out)"
            raise BlockingIOError(f"another run is using {folder}: {advice}") from None
        task = bar.add_task("loading", total=None)
        lab = Lab(folder / "cache", quick=quick, atari=atari)
        lab.progress = lambda done, total: bar.update(task, completed=done, total=total)
        lab.describe = lambda text: bar.update(
            task, description=text, completed=0, total=None
        )
        with using("processes"):
            yield lab


def _compute_and_store(task: tuple[Path, Callable[..., Any], dict[str, Any]]) -> None:
    """Run one job in a worker and write its result and CPU time to the cache."""
    path, function, job = task
    start = time.process_time()
    result = function(**job)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    joblib.dump((result, time.process_time() - start), content)
    write_atomically(path, content.getvalue())


@cache
def source_version(module: str) -> str:
    """Hash of the source of the library, without `cli`, `studio` and `plots`, and of a module."""
    library = Path(eigenoptions.__file__).parent
    paths = [
        path for path in sorted(library.rglob("*")) if path.suffix in (".py", ".txt")
    ]
    paths = [
        path
        for path in paths
        if path.relative_to(library).parts[0] not in ("cli", "studio", "plots")
    ]
    digest = hashlib.blake2b(digest_size=8)
    for path in [*paths, Path(str(sys.modules[module].__file__))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()
