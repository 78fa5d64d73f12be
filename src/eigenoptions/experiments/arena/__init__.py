"""The arena: contests on the same tasks, each in one file of this folder that ends in ``CONTEST``.

`contests` finds them, and ``eigenoptions arena NAME`` runs them. Contests are no experiments of the paper, so
`reproduce` does not run them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from eigenoptions._checks import one_of
from eigenoptions.experiments.experiment import Experiment

EXPERIMENTS: tuple[Experiment, ...] = ()
# Sizes of every contest: seconds to check that everything works, minutes, and the one whose results are in the docs.
SIZES = ("quick", "default")


@dataclass(frozen=True)
class Report:
    """Results of a contest: a table for the terminal, plain data for JSON, and the files that were written."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    data: dict[str, Any]
    files: list[Path] = field(default_factory=list)


@dataclass(frozen=True)
class Contest:
    """A contest of the arena.

    Attributes
    ----------
    name, summary
        What the command line calls it, and one line for help texts.
    run
        ``run(folder, size, methods, domains, fresh=, tell=, progress=)`` returns a `Report`. Finished jobs are stored
        in ``folder/jobs``. Empty `methods` or `domains` stand for all of them; `engine` and `workers` as in `parallel`.
    """

    name: str
    summary: str
    run: Callable[..., Report]


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
    return known[one_of("contest", name, tuple(known))]
