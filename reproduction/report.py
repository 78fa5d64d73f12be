"""The report: claims, figures and tables in one self-contained HTML page.

The data are beside it as CSV, and the verdicts as ``results.json``.
"""

from __future__ import annotations

import io
import json
import platform
import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import matplotlib
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from rich.text import Text

from eigenoptions import __version__
from eigenoptions.options.files import write_atomically
from eigenoptions.plots.style import STYLE
from reproduction import thresholds
from reproduction.claims import VERDICTS, Claim, Finding
from reproduction.experiment import FOLDER as EXPERIMENTS
from reproduction.experiment import Block, Experiment
from reproduction.lab import Data, Lab, hash_files, list_library_files

HERE = Path(__file__).parent

# The claims that are the heart of the paper; the page says so if all of them hold.
STORY = {
    "theorem-3.1",
    "enough-options-help",
    "bottlenecks-increase",
    "most-scenarios",
    "outperform-primitive",
}


@dataclass(frozen=True)
class Section:
    """A section of a page.

    Attributes
    ----------
    name, title : str
        The anchor, and the heading.
    text : str, default=""
        The first paragraph.
    shown : sequence of Block
        Paragraphs, tables, figures or markup.
    claims : sequence of Claim
        The claims that the section judges.
    folded : mapping
        Further blocks, which the reader may unfold, by their summary.
    """

    name: str
    title: str
    text: str = ""
    shown: Sequence[Block] = ()
    claims: Sequence[Claim] = ()
    folded: Mapping[str, Sequence[Block]] = field(default_factory=dict)


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
            "verdict": claim.verdict,
            "on_the_edge": bool(claim.edge),
            "measured": claim.measured,
        }
        for chapter in chapters
        for claim in chapter.section.claims
    }
    results = {
        "tables": summary["tables"],
        "games": summary["games"],
        "numbers": summary["numbers"],
        "minutes": summary["minutes"],
        "quick": lab.quick,
        "claims": verdicts,
    }
    text = json.dumps(results, indent=1, ensure_ascii=False)
    write_atomically(folder / "results.json", text.encode())

    page = folder / "index.html"
    header = _render(
        "header", quick=lab.quick, atari=lab.atari, missing=missing, summary=summary
    )
    write_page(
        page,
        "Eigenoptions: a reproduction",
        [chapter.section for chapter in chapters],
        header=header,
        rules=True,
    )
    return page


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
    upheld = {claim.id for claim in tables if claim.verdict == "holds"}
    seconds = sum(chapter.seconds for chapter in chapters)
    return {
        "n_tables": len(tables),
        "tables": count_verdicts(tables),
        "n_games": len(games),
        "games": count_verdicts(games),
        "failed": [claim for claim in judged if claim.verdict == "does not hold"],
        "edges": [claim for claim in judged if claim.edge],
        "story": upheld >= STORY,
        "numbers": [chapter.headline for chapter in chapters if chapter.headline],
        "minutes": round(seconds / 60, 2),
    }


def count_verdicts(claims: Sequence[Finding]) -> str:
    """How many claims have each verdict, as text.

    >>> proved = Finding(tests=[True], measured="")
    >>> open_ = Finding(tests=[True, False], measured="")
    >>> count_verdicts([proved, open_])
    'holds 1, partly 1'
    """
    counts = []
    for verdict in VERDICTS:
        n = sum(claim.verdict == verdict for claim in claims)
        if n:
            counts.append(f"{verdict} {n}")
    return ", ".join(counts) or "none"


def print_claims(claims: Sequence[Claim]) -> None:
    """Print a table of claims, and how many have each verdict."""
    table = Table("verdict", "claim", "measured", box=None, padding=(0, 2, 0, 0))
    for claim in claims:
        table.add_row(claim.verdict, claim.id, Text(claim.measured))

    console = Console(soft_wrap=not sys.stdout.isatty())
    console.print(table)
    console.print(f"{len(claims)} claims: {count_verdicts(claims)}")


# Pages and their sections


def make_section(outcome: Outcome) -> Section:
    """The section of an experiment, with everything it shows as HTML.

    Analysis, settings and data are folded; of an experiment of ours, the figure too.
    """
    experiment = outcome.experiment
    caption = Markup("<figcaption>{}</figcaption>").format(experiment.caption)
    with matplotlib.rc_context(STYLE):
        figure = [experiment.draw_figure(outcome.data), caption]
    notes = list(experiment.write_notes(outcome.data))

    shown: list[Block] = []
    folded: dict[str, Sequence[Block]] = {}
    if experiment.ours:
        source = "Beyond the paper"
        folded["Figure and numbers"] = [*figure, *notes]
    else:
        source = f"The paper ({place(experiment.section)})"
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
        claims=outcome.claims,
        folded={
            summary: [show_block(block, f"{title}, {summary}") for block in blocks]
            for summary, blocks in folded.items()
        },
    )


def write_page(
    path: Path,
    title: str,
    sections: Sequence[Section],
    *,
    header: str = "",
    rules: bool = False,
) -> None:
    """Write a self-contained page.

    Parameters
    ----------
    path : Path
        The file.
    title : str
        Title of the page.
    sections : sequence of Section
        The sections; a list of all their claims, by section of the paper, comes first.
    header : str, default=""
        Markup below the title.
    rules : bool, default=False
        Whether the page ends with how claims are judged.
    """
    html = _render(
        "page",
        title=title,
        sections=sections,
        header=header,
        claims=[(claim, section) for section in sections for claim in section.claims],
        rules=rules,
        css=Markup((HERE / "report.css").read_text()),
    )
    write_atomically(path, html.encode())


def show_block(block: Block, title: str) -> Markup:
    """HTML of a paragraph, a table with its caption, or a figure called `title`."""
    if isinstance(block, Markup):
        return block
    if isinstance(block, Figure):
        return show_figure(block, title)
    if isinstance(block, pd.DataFrame):
        return show_table(block)
    if isinstance(block, tuple):
        return Markup("").join(show_block(part, title) for part in block)
    if block:
        return Markup("<p>{}</p>").format(block)
    return Markup("")


def show_table(table: pd.DataFrame | None) -> Markup:
    """HTML of a small table; numbers have three digits, or all before the point."""
    if table is None or table.empty:
        return Markup("")
    html = table.rename_axis(columns=None).to_html(
        index=False,
        border=0,
        classes="small",
        na_rep="",
        justify="unset",
        float_format=_format_number,
    )
    return Markup(f'<div class="scroll">{html}</div>')


def show_figure(figure: Figure, alt: str) -> Markup:
    """HTML of a figure, as wide as the page allows but never too small to read."""
    svg = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "eigenoptions"}):
        figure.savefig(svg, format="svg", metadata={"Date": None})
    source = f"data:image/svg+xml;base64,{b64encode(svg.getvalue()).decode()}"

    width = 72 * figure.get_figwidth()
    size = f"width:{1.6 * width:.0f}px;min-width:{1.1 * width:.0f}px"
    image = Markup(
        '<figure><div class="sheet"><img alt="{}" style="{}" src="{}"></div></figure>'
    )
    return image.format(alt, size, source)


def place(section: str) -> str:
    """A section of the paper in words.

    >>> place("4.2"), place("Appendix D")
    ('Section 4.2', 'Appendix D')
    """
    if section[0].isalpha():
        return section
    return f"Section {section}"


def versions() -> str:
    """Versions of this library, of Python and of the main dependencies."""
    packages = [f"{name} {version(name)}" for name in ("numpy", "scipy", "matplotlib")]
    parts = [
        f"eigenoptions {__version__}",
        f"Python {platform.python_version()}",
        *packages,
        platform.platform(),
    ]
    return ", ".join(parts)


def _list_facts(outcome: Outcome) -> Markup:
    """HTML of the settings, the time and the files of an experiment."""
    terms = {}
    for name, value in outcome.settings.items():
        terms[name] = value if isinstance(value, str) else json.dumps(value)
    terms["computed in"] = f"{outcome.seconds:,.1f} s"

    files = [f"{outcome.experiment.name}-{name}.csv" for name in outcome.data]
    return _render("facts", terms=terms, files=files)


def _locate_chapter(lab: Lab, name: str) -> Path:
    """The file of a chapter, named by the sources and settings that decide it."""
    source = (EXPERIMENTS / f"{name}.py").read_text(encoding="utf-8")
    key = joblib.hash([_hash_shared_sources(), source, lab.quick])
    return lab.cache / "chapters" / f"{name}-{key}.joblib"


@cache
def _hash_shared_sources() -> str:
    """Hash of the library and of what all experiments use."""
    own = [path for path in HERE.iterdir() if path.suffix in (".py", ".html", ".css")]
    shared = [*own, *HERE.glob("runs/*.py"), *HERE.glob("atari/*.py")]
    return hash_files([*list_library_files(), *sorted(shared)])


def _format_number(number: float) -> str:
    """Three digits, or all of those before the point."""
    if abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:#.3g}"


def _render(part: str, **values: Any) -> Markup:
    """Render a macro of the template."""
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    limits = {name: value for name, value in vars(thresholds).items() if name.isupper()}
    environment.globals |= {
        **limits,
        "VERDICTS": VERDICTS,
        "place": place,
        "versions": versions,
        "show_block": show_block,
        "show_table": show_table,
    }
    macros = environment.get_template("report.html").module
    return Markup(getattr(macros, part)(**values))
