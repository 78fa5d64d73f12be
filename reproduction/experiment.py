"""Experiments: one file each in `experiments`, found by its name.

The docstring of the file has the title and, after a blank line, what the paper shows
there. These names have a meaning; the first four are needed::

    SECTION = "4.3"                         # of the paper
    ORDER = 80                              # position in the report

    def list_jobs(*, runs=100, seed=2017):  # defaults are the paper's settings
        return {"returns": [Job(learn, {...}, {"domain": ...}), ...]}

    def tabulate_results(results):          # of these jobs, by the same names
        return {"runs": stack_tables(results["returns"])}

    def draw_figure(data):                  # a Matplotlib figure of these tables
        ...

    @claim("most-scenarios", "In most scenarios eigenoptions improve performance.")
    def improve_performance(data):          # one function per claim, of these tables
        return Finding(tests=[...], measured="...", evidence="...")

    def draw_narrow_figure(data):           # the same for a telephone
    def write_notes(data):                  # paragraphs and tables of further analysis
    def write_headline(data):               # a number for the top, with its meaning
    def list_further_claims(data):          # claims whose number depends on the data
    def play_game(lab):                     # tables of a game that is played anew
    QUICK = {"runs": 4}                     # settings that only check that it works
    CAPTION = "..."                         # what the figure does not say itself
    OURS = True                             # it goes beyond the paper
    NOTES_FIRST = True                      # nothing is folded: notes, then the figure
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
from matplotlib.figure import Figure

from reproduction.claims import Claim, Statement
from reproduction.lab import Data, Jobs, Lab, Results

FOLDER = Path(__file__).parent / "experiments"

# What a page shows: a paragraph, a table, a table with its caption, or a figure.
Block: TypeAlias = str | pd.DataFrame | tuple[str, pd.DataFrame] | Figure


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A figure or statement of the paper: its runs, figure and claims.

    See the module's docstring for what each of the functions does.

    Attributes
    ----------
    name : str
        Name of its file.
    title, shows : str
        The title, and what the paper shows there.
    section : str
        Section of the paper.
    order : float
        Position in the report.
    caption : str
        What the figure does not say itself.
    ours : bool
        Whether the experiment goes beyond the paper.
    notes_first : bool
        Whether the notes are shown, above the figure, instead of folded.
    quick : mapping
        Settings of a run that only checks that everything works.
    statements : sequence of Statement
        The claims, in the order of the file.
    """

    name: str
    title: str
    shows: str
    section: str
    order: float
    caption: str
    ours: bool
    notes_first: bool
    quick: Mapping[str, Any]
    list_jobs: Callable[..., Jobs]
    tabulate_results: Callable[[Results], Data]
    draw_figure: Callable[[Data], Figure]
    draw_narrow_figure: Callable[[Data], Figure] | None
    statements: Sequence[Statement]
    list_further_claims: Callable[[Data], Iterable[Claim]]
    write_notes: Callable[[Data], Iterable[Block]]
    write_headline: Callable[[Data], tuple[str, str]] | None
    play_game: Callable[[Lab], Data] | None

    @property
    def is_game(self) -> bool:
        """Whether this is an Atari game, judged by stored results unless played."""
        return self.play_game is not None

    def choose_settings(self, quick: bool) -> dict[str, Any]:
        """The paper's settings, or those of a quick run."""
        parameters = inspect.signature(self.list_jobs).parameters.values()
        settings = {parameter.name: parameter.default for parameter in parameters}
        if quick:
            settings |= self.quick
        return settings

    def run(self, lab: Lab, settings: Mapping[str, Any]) -> Data:
        """The tables of the experiment."""
        if lab.atari and self.play_game is not None:
            return self.play_game(lab)
        results = lab.run(self.list_jobs(**settings))
        return self.tabulate_results(results)

    def judge(self, data: Data) -> list[Claim]:
        """The claims, as the tables decide them."""
        claims = [statement.judge(data, self.section) for statement in self.statements]
        return [*claims, *self.list_further_claims(data)]


def list_experiments() -> list[str]:
    """The names of all experiments, without loading them."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


def read_title(name: str) -> str:
    """The title of an experiment, from its file, which is not run.

    >>> read_title("figure7")
    'Figure 7: accumulating reward'
    """
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(source)) or ""
    return docstring.partition("\n")[0].removesuffix(".")


def load_experiment(name: str) -> Experiment:
    """Load one experiment: the file of this name, and what that imports."""
    module = import_module(f"reproduction.experiments.{name}")
    title, shows, *_ = str(inspect.getdoc(module)).split("\n\n")
    parts = vars(module)
    return Experiment(
        name=name,
        title=title.removesuffix("."),
        shows=shows.replace("\n", " "),
        section=parts["SECTION"],
        order=parts["ORDER"],
        caption=parts.get("CAPTION", ""),
        ours=parts.get("OURS", False),
        notes_first=parts.get("NOTES_FIRST", False),
        quick=parts.get("QUICK", {}),
        list_jobs=parts["list_jobs"],
        tabulate_results=parts["tabulate_results"],
        draw_figure=parts["draw_figure"],
        draw_narrow_figure=parts.get("draw_narrow_figure"),
        statements=[part for part in parts.values() if isinstance(part, Statement)],
        list_further_claims=parts.get("list_further_claims", _list_nothing),
        write_notes=parts.get("write_notes", _list_nothing),
        write_headline=parts.get("write_headline"),
        play_game=parts.get("play_game"),
    )


def _list_nothing(data: Data) -> tuple[()]:
    """What an experiment has that defines no such function."""
    return ()
