"""The arena: contests on the same tasks, each in one file of this folder that ends in ``CONTEST``.

`contests` finds them, and ``eigenoptions arena NAME`` runs them. Contests are no experiments of the paper, so
`reproduce` does not run them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from eigenoptions._validation import check_choice
from eigenoptions.options.storage import write_atomically
from reproduction.experiment import Experiment, Pmap, Results, Settings
from reproduction.store import Store, claim_folder, make_folder
from reproduction.tables import tables

EXPERIMENTS: tuple[Experiment, ...] = ()


@dataclass(frozen=True)
class Report:
    """Results of a contest: a table for the terminal, plain data for JSON, texts of files, and the files to look at."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    data: dict[str, Any]
    texts: Mapping[str, str]
    files: list[Path] = field(default_factory=list)


@dataclass(frozen=True)
class Contest:
    """A contest of the arena.

    Attributes
    ----------
    name, summary
        What the command line calls it, and one line for help texts.
    chosen
        ``chosen(size, methods, domains)`` returns settings: those of ``"quick"`` (seconds or minutes, to check that
        everything works) or ``"default"`` (the one whose results are in the docs), for some methods and domains.
    study
        ``study(settings, store, pmap, tell)`` returns results; `pmap` is that of the store, and reports progress.
    report
        ``report(results, settings, seconds)`` returns a `Report` with ``index.html`` among its texts.
    """

    name: str
    summary: str
    chosen: Callable[[str, Sequence[str], Sequence[str]], Settings]
    study: Callable[[Settings, Store, Pmap, Callable[[str], object]], Results]
    report: Callable[[Results, Settings, float], Report]

    def run(
        self,
        folder: str | Path,
        size: str = "default",
        methods: Sequence[str] = (),
        domains: Sequence[str] = (),
        *,
        fresh: bool = False,
        tell: Callable[[str], object] = lambda news: None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Report:
        """Run the contest and write ``index.html`` and ``data/`` into a folder; an interrupted run can be continued.

        Parameters
        ----------
        folder
            Created if it does not exist; one with other content is refused. Finished jobs are stored in ``jobs/``.
        size
            ``"quick"`` or ``"default"``.
        methods, domains
            Names of those that take part; empty for all of the size.
        fresh
            Delete all stored jobs first.
        tell, progress
            As in `reproduce`.
        """
        settings, out = self.chosen(size, methods, domains), Path(folder)
        claim_folder(out, "an arena", "arena" if self.name == "methods" else f"arena {self.name}")
        with Store(out / "jobs", fresh=fresh) as store:
            start = time.perf_counter()
            results = self.study(settings, store, partial(store.pmap, progress=progress), tell)
            seconds = time.perf_counter() - start + store.seconds_saved
        tell("writing the page")
        report = self.report(results, settings, seconds)
        make_folder(out / "data")
        csv = {f"data/{name}.csv": text for name, text in tables(results).items()}
        for name, text in {**csv, **report.texts}.items():
            write_atomically(out / name, text.encode())
        return replace(report, files=[out / "index.html"])


def contests() -> dict[str, Contest]:
    """All contests by name, "methods" first.

    >>> next(iter(contests()))
    'methods'
    """
    modules = [import_module(f"{__name__}.{file.name}") for file in iter_modules(__path__)]
    found = {module.CONTEST.name: module.CONTEST for module in modules if hasattr(module, "CONTEST")}
    return dict(sorted(found.items(), key=lambda item: (item[0] != "methods", item[0])))


def contest(name: str) -> Contest:
    """The contest of this name.

    >>> contest("methods").name
    'methods'
    """
    known = contests()
    return known[check_choice("contest", name, tuple(known))]
