"""The report: a page about all experiments, their tables as CSV, and their verdicts.

What the page says about one experiment is a chapter, which is kept in the folder.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import matplotlib
from markupsafe import Markup
from rich.console import Console
from rich.table import Table
from rich.text import Text

from eigenoptions.options.files import write_atomically
from eigenoptions.plots.style import STYLE
from reproduction.claims import VERDICTS, Claim, count_verdicts
from reproduction.experiment import FOLDER as EXPERIMENTS
from reproduction.experiment import Block, Experiment
from reproduction.lab import Data, Lab, hash_files, list_library_files
from reproduction.page import (
    Section,
    name_place,
    render_macro,
    show_block,
    show_figure,
    write_page,
)
from reproduction.readings import (
    AUTHORS_BASIS,
    BOTTLENECKS,
    DISCOUNTS,
    FINAL,
    MAIN,
    OURS,
    READINGS,
)

HERE = Path(__file__).parent
ARTICLE = HERE.parent / "docs" / "article.md"

# Columns of what is printed where there is no terminal.
WIDTH = 200

# The experiment whose figure stands at the top of the page, too.
LEAD = "figure6"

# Readings of claims about tables that come from stored files.
REPLAYED_READINGS = {
    BOTTLENECKS: "reproduction/authors",
    AUTHORS_BASIS: "reproduction/authors/basis.csv",
}

# The claims that are the heart of the paper; the page says so if all of them hold.
STORY = {
    "theorem-3.1",
    "enough-options-help",
    "bottlenecks-increase",
    "most-scenarios",
    "outperform-primitive",
}


@dataclass(frozen=True)
class Outcome:
    """Tables and claims of an experiment, with its settings and CPU time."""

    experiment: Experiment
    data: Data
    settings: Mapping[str, Any]
    seconds: float
    claims: Sequence[Claim]


@dataclass(frozen=True)
class Chapter:
    """What the report says about one experiment.

    Chapters are kept in the folder of the report. A run of some experiments shows the
    others again without loading them.
    """

    name: str
    order: float
    section: Section
    headline: tuple[str, str] | None
    seconds: float
    is_game: bool
    is_played: bool


# The report of an experiment, and of all of them


def write_chapter(folder: Path, outcome: Outcome, lab: Lab) -> Chapter:
    """Write the tables of an experiment, and keep what the report says about it."""
    experiment = outcome.experiment
    tables = folder / "data"
    tables.mkdir(parents=True, exist_ok=True)
    for name, table in outcome.data.items():
        table.to_csv(tables / f"{experiment.name}-{name}.csv", index=False)

    headline = None
    if experiment.write_headline is not None:
        headline = experiment.write_headline(outcome.data)
    chapter = Chapter(
        name=experiment.name,
        order=experiment.order,
        section=make_section(outcome),
        headline=headline,
        seconds=outcome.seconds,
        is_game=experiment.is_game,
        is_played=experiment.is_game and lab.atari,
    )

    content = io.BytesIO()
    joblib.dump(chapter, content)
    path = _locate_chapter(lab, experiment.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content.getvalue())
    return chapter


def read_chapters(lab: Lab, names: Sequence[str]) -> list[Chapter]:
    """What was kept of these experiments, in the order of the report.

    Chapters that other sources or settings wrote are left out.
    """
    paths = [_locate_chapter(lab, name) for name in names]
    stored: list[Chapter] = [joblib.load(path) for path in paths if path.exists()]
    chapters = [
        chapter
        for chapter in stored
        if not chapter.is_game or chapter.is_played == lab.atari
    ]
    return sorted(chapters, key=lambda chapter: chapter.order)


def write_report(
    folder: Path, chapters: Sequence[Chapter], lab: Lab, missing: Sequence[str] = ()
) -> Path:
    """Write ``results.json`` and ``index.html``, and return the path of the page.

    Parameters
    ----------
    folder : Path
        Where to write.
    chapters : sequence of Chapter
        What to show.
    lab : Lab
        Where the experiments ran.
    missing : sequence of str
        Titles of experiments that have not been run.
    """
    summary = summarize(chapters)
    verdicts = {
        claim.id: {
            "section": claim.section,
            "game": chapter.is_game,
            "verdict": claim.verdict,
            "edge": claim.edge,
            "readings": claim.verdicts,
            "measured": claim.measured,
            "replays": _name_stored_files(claim, chapter),
        }
        for chapter in chapters
        for claim in chapter.section.claims
    }
    shown = {
        claim.id: {"section": claim.section, "measured": claim.measured}
        for chapter in chapters
        for claim in chapter.section.demonstrations
    }
    results = {
        "paper": summary["paper"],
        "tables": summary["tables"],
        "games": summary["games"],
        "numbers": summary["numbers"],
        "minutes": summary["minutes"],
        "quick": lab.quick,
        "computed": sum(not verdict["replays"] for verdict in verdicts.values()),
        "replayed": sum(bool(verdict["replays"]) for verdict in verdicts.values()),
        "replayed_readings": REPLAYED_READINGS,
        "claims": verdicts,
        "demonstrations": shown,
    }
    text = json.dumps(results, indent=1, ensure_ascii=False)
    write_atomically(folder / "results.json", text.encode())

    page = folder / "index.html"
    leads = [chapter.section for chapter in chapters if chapter.name == LEAD]
    header = render_macro(
        "header",
        quick=lab.quick,
        atari=lab.atari,
        missing=missing,
        summary=summary,
        lead=leads[0] if leads else None,
        article=Path(os.path.relpath(ARTICLE, folder)).as_posix(),
    )
    write_page(
        page,
        "Eigenoptions: a reproduction",
        [chapter.section for chapter in chapters],
        header=header,
        rules=True,
        summary=summary if summary["readings"]["claims"] else None,
    )
    return page


def _name_stored_files(claim: Claim, chapter: Chapter) -> str:
    """The stored files that a verdict comes from; empty if it was computed."""
    if chapter.is_game and not chapter.is_played:
        return "reproduction/atari/results"
    return claim.replays


def summarize(chapters: Sequence[Chapter]) -> dict[str, Any]:
    """What the top of the page says: verdicts, what fails, and headline numbers."""
    tables: list[Claim] = []
    games: list[Claim] = []
    for chapter in chapters:
        claims = [c for c in chapter.section.claims if c.section != "ours"]
        if chapter.is_game:
            games += claims
        else:
            tables += claims

    judged = tables + games
    ours = [
        claim
        for chapter in chapters
        for claim in chapter.section.claims
        if claim.section == "ours"
    ]
    replayed = [
        claim.id
        for chapter in chapters
        for claim in chapter.section.claims
        if _name_stored_files(claim, chapter)
    ]
    upheld = {claim.id for claim in tables if claim.verdict == "holds"}
    seconds = sum(chapter.seconds for chapter in chapters)
    return {
        "n_paper": len(judged),
        "paper": count_verdicts(judged),
        "n_ours": len(ours),
        "ours": count_verdicts(ours),
        "n_replayed": len(replayed),
        "counts": {
            verdict: sum(claim.verdict == verdict for claim in judged)
            for verdict in VERDICTS
        },
        "n_tables": len(tables),
        "tables": count_verdicts(tables),
        "n_games": len(games),
        "games": count_verdicts(games),
        "failed": [claim for claim in tables if claim.verdict == "does not hold"],
        "failed_games": [c for c in games if c.verdict == "does not hold"],
        "edges": [claim for claim in judged if claim.edge],
        "opens": [claim for claim in judged if claim.opens],
        "n_with_discounts": sum(
            bool(claim.opens.keys() | (claim.turns.keys() & {*DISCOUNTS}))
            for claim in judged
        ),
        "readings": tabulate_readings(judged),
        "story": upheld >= STORY,
        "numbers": [chapter.headline for chapter in chapters if chapter.headline],
        "minutes": round(seconds / 60, 2),
    }


def tabulate_readings(claims: Sequence[Claim]) -> dict[str, Any]:
    """What the table of claims and readings shows.

    The claims are its rows. Its columns are the main reading, the choices that the
    paper leaves open, and limits and settings of ours. ``late`` says what final
    performance would change.
    """
    names = _list_readings(claims)
    others = [name for name in names if name != MAIN]
    return {
        "claims": claims,
        "open": [name for name in others if name not in OURS],
        "ours": [name for name in others if name in OURS],
        "late": _count_late_verdicts(claims),
    }


def _count_late_verdicts(claims: Sequence[Claim]) -> dict[str, int]:
    """How many verdicts final performance would make lower or higher."""
    order = ["does not hold", "not decided", "partly", "holds"]
    changes = [
        order.index(claim.verdicts[FINAL]) - order.index(claim.verdict)
        for claim in claims
        if FINAL in claim.verdicts
    ]
    return {
        "all": len(changes),
        "lower": sum(change < 0 for change in changes),
        "higher": sum(change > 0 for change in changes),
    }


def _list_readings(claims: Sequence[Claim]) -> list[str]:
    """The readings that apply to some claim, in the order of `READINGS`."""
    used = {name for claim in claims for name in claim.verdicts}
    return [name for name in READINGS if name in used]


def print_claims(claims: Sequence[Claim]) -> None:
    """Print a table of claims, and how many have each verdict."""
    table = Table("verdict", "", "claim", "measured", box=None, padding=(0, 2, 0, 0))
    for claim in claims:
        edge = "on the edge" if claim.edge else ""
        table.add_row(claim.verdict, edge, claim.id, Text(claim.measured))

    # In a file a line may be long; by default a table would be as narrow as 80 columns.
    width = None if sys.stdout.isatty() else WIDTH
    console = Console(width=width)
    console.print(table)
    ours = [claim for claim in claims if claim.section == "ours"]
    of_paper = [claim for claim in claims if claim.section != "ours"]
    console.print(f"{len(of_paper)} claims of the paper: {count_verdicts(of_paper)}")
    if ours:
        console.print(f"{len(ours)} of ours: {count_verdicts(ours)}")


# Pages and their sections


def make_section(outcome: Outcome) -> Section:
    """The section of an experiment, with everything it shows as HTML.

    Analysis, settings and data are folded; of most experiments of ours, the figure too.
    """
    experiment = outcome.experiment
    caption = Markup("<figcaption>{}</figcaption>").format(experiment.caption)
    with matplotlib.rc_context(STYLE):
        drawn = experiment.draw_figure(outcome.data)
        narrow = None
        if experiment.draw_narrow_figure is not None:
            narrow = experiment.draw_narrow_figure(outcome.data)
        figure = [show_figure(drawn, experiment.title, narrow), caption]
    notes = list(experiment.write_notes(outcome.data))

    source = f"The paper ({name_place(experiment.section)})"
    if experiment.ours:
        source = "Beyond the paper"

    shown: list[Block] = []
    folded: dict[str, Sequence[Block]] = {}
    if experiment.notes_first:
        shown = [*notes, *figure]
    elif experiment.ours:
        folded["Figure and numbers"] = [*figure, *notes]
    else:
        shown = figure
        if notes:
            folded["Our own analysis"] = notes
    folded["Settings, data and time"] = [_list_facts(outcome)]

    title = experiment.title
    return Section(
        name=experiment.name,
        title=title,
        text=Markup("<b>{}:</b> {}").format(source, experiment.shows),
        shown=[show_block(block, title) for block in shown],
        claims=[claim for claim in outcome.claims if not claim.is_demonstration],
        demonstrations=[claim for claim in outcome.claims if claim.is_demonstration],
        folded={
            summary: [show_block(block, f"{title}, {summary}") for block in blocks]
            for summary, blocks in folded.items()
        },
    )


def _list_facts(outcome: Outcome) -> Markup:
    """HTML of the settings, the time and the files of an experiment."""
    terms = {}
    for name, value in outcome.settings.items():
        terms[name] = value if isinstance(value, str) else json.dumps(value)
    terms["computed in"] = f"{outcome.seconds:,.1f} s"

    files = [f"{outcome.experiment.name}-{name}.csv" for name in outcome.data]
    return render_macro("facts", terms=terms, files=files)


def _locate_chapter(lab: Lab, name: str) -> Path:
    """The file of a chapter, named by the sources and settings that decide it."""
    source = (EXPERIMENTS / f"{name}.py").read_text(encoding="utf-8")
    key = joblib.hash([_hash_shared_sources(), source, lab.quick])
    return lab.cache / "chapters" / f"{name}-{key}.joblib"


@cache
def _hash_shared_sources() -> str:
    """Hash of the library and of what all experiments use."""
    own = [path for path in HERE.iterdir() if path.suffix in (".py", ".html", ".css")]
    shared = [
        *own,
        *HERE.glob("runs/*.py"),
        *HERE.glob("atari/*.py"),
        *HERE.glob("atari/results/*.csv*"),
        *HERE.glob("authors/*.csv"),
    ]
    return hash_files([*list_library_files(), *sorted(shared)])
