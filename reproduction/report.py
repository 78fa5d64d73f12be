"""Pages of results: claims, figures and tables in one self-contained HTML file, with the data beside it as CSV."""

from __future__ import annotations

import inspect
import io
import json
import platform
import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

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
from eigenoptions.plots.figures import STYLE
from reproduction import lab as thresholds
from reproduction.lab import VERDICTS, Block, Claim, Data, Experiment, Lab

HERE = Path(__file__).parent
# The claims that are the heart of the paper; the page says so if all of them hold.
STORY = {"theorem-3.1", "enough-options-help", "bottlenecks-increase"}
STORY |= {"most-scenarios", "outperform-primitive"}


@dataclass(frozen=True)
class Section:
    """One section of a page: anchor, heading, first paragraph, blocks, claims, and folded blocks by their summary.

    A block is a paragraph, a data frame, a pair of a caption and a data frame, a Matplotlib figure, or markup.
    """

    name: str
    title: str
    text: str = ""
    shown: Sequence[Block] = ()
    claims: Sequence[Claim] = ()
    folded: Mapping[str, Sequence[Block]] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """Data and claims of an experiment, with its settings and the CPU time of its jobs."""

    experiment: Experiment
    data: Data
    settings: Mapping[str, Any]
    seconds: float
    claims: Sequence[Claim]


def write_report(
    folder: Path, outcomes: Sequence[Outcome], lab: Lab, missing: Sequence[str] = ()
) -> Path:
    """Write ``data/*.csv``, ``results.json`` and ``index.html``, and return the path of the page.

    `lab` is where the experiments ran, and `missing` are titles of those that have not been run.
    """
    data, page, claims = folder / "data", folder / "index.html", {}
    data.mkdir(parents=True, exist_ok=True)
    for outcome in outcomes:
        for name, table in outcome.data.items():
            table.to_csv(data / f"{outcome.experiment.name}-{name}.csv", index=False)
        for claim in outcome.claims:
            words = {
                "section": claim.section,
                "verdict": claim.verdict,
                "on_the_edge": bool(claim.edge),
            }
            claims[claim.id] = words | {"measured": claim.measured}
    summary = summarize(outcomes)
    results = {
        name: summary[name] for name in ("tables", "games", "numbers", "minutes")
    }
    text = json.dumps(
        results | {"quick": lab.quick, "claims": claims}, indent=1, ensure_ascii=False
    )
    write_atomically(folder / "results.json", text.encode())
    header = _render(
        "header", quick=lab.quick, atari=lab.atari, missing=missing, summary=summary
    )
    sections = [make_section(outcome) for outcome in outcomes]
    write_page(
        page, "Eigenoptions: a reproduction", sections, header=header, rules=True
    )
    return page


def summarize(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """What the top of the page says: verdicts of tables and games, what fails, headline numbers, the main story."""
    judged = [
        (o, claim) for o in outcomes for claim in o.claims if claim.section != "ours"
    ]
    tables = [claim for o, claim in judged if not o.experiment.atari]
    games = [claim for o, claim in judged if o.experiment.atari]
    return {
        "n_tables": len(tables),
        "tables": count_verdicts(tables),
        "n_games": len(games),
        "games": count_verdicts(games),
        "failed": [claim for _, claim in judged if claim.verdict == "does not hold"],
        "edges": [claim for _, claim in judged if claim.edge],
        "story": {claim.id for claim in tables if claim.verdict == "holds"} >= STORY,
        "numbers": [
            o.experiment.headline(o.data) for o in outcomes if o.experiment.headline
        ],
        "minutes": round(sum(o.seconds for o in outcomes) / 60, 2),
    }


def count_verdicts(claims: Sequence[Claim]) -> str:
    """How many claims have each verdict.

    >>> count_verdicts([Claim("", "", [True], ""), Claim("", "", [True, False], "")])
    'holds 1, partly 1'
    """
    counts = {
        verdict: sum(claim.verdict == verdict for claim in claims)
        for verdict in VERDICTS
    }
    return ", ".join(f"{verdict} {n}" for verdict, n in counts.items() if n) or "none"


def make_section(outcome: Outcome) -> Section:
    """Section of an experiment: its figure, claims, and folded analysis, settings and data."""
    e, data = outcome.experiment, outcome.data
    with matplotlib.rc_context(STYLE):
        figures = [
            e.figure(data),
            Markup("<figcaption>{}</figcaption>").format(e.caption),
        ]
    settings = outcome.settings.items()
    terms = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in settings
    }
    files = [f"{e.name}-{name}.csv" for name in data]
    facts = _render(
        "facts", terms=terms | {"computed in": f"{outcome.seconds:,.1f} s"}, files=files
    )
    if e.ours:
        source, shown, folded = (
            "Beyond the paper",
            [],
            {"Figure and numbers": [*figures, *e.notes(data)]},
        )
    else:
        source, shown, folded = f"The paper ({place(e.section)})", figures, {}
        if notes := list(e.notes(data)):
            folded = {"Our own analysis": notes}
    text = Markup("<b>{}:</b> {}").format(source, e.shows)
    folded["Settings, data and time"] = [facts]
    return Section(e.name, e.title, text, shown, outcome.claims, folded)


def write_page(
    path: Path,
    title: str,
    sections: Sequence[Section],
    *,
    header: str = "",
    rules: bool = False,
) -> None:
    """Write a self-contained page: a header (markup), all claims by section of the paper, and the sections.

    With `rules` it ends with how claims are judged.
    """
    claims = [(claim, section) for section in sections for claim in section.claims]
    css = Markup((HERE / "report.css").read_text())
    html = _render(
        "page",
        title=title,
        sections=sections,
        header=header,
        claims=claims,
        rules=rules,
        css=css,
    )
    write_atomically(path, html.encode())


def print_claims(claims: Sequence[Claim]) -> None:
    """Print a table of claims, and how many have each verdict."""
    table = Table("verdict", "claim", "measured", box=None, padding=(0, 2, 0, 0))
    for claim in claims:
        table.add_row(claim.verdict, claim.id, Text(claim.measured))
    console = Console(soft_wrap=not sys.stdout.isatty())
    console.print(table)
    console.print(f"{len(claims)} claims: {count_verdicts(claims)}")


def show_block(block: Block, title: str) -> Markup:
    """HTML of a paragraph, a table with its caption, or a figure; Markup stays as it is."""
    if isinstance(block, Markup):
        return block
    if isinstance(block, Figure):
        return show_figure(block, title)
    if isinstance(block, pd.DataFrame):
        return show_table(block)
    if isinstance(block, tuple):
        return Markup("").join(show_block(part, title) for part in block)
    return Markup("<p>{}</p>").format(block) if block else Markup("")


def show_table(table: pd.DataFrame | None) -> Markup:
    """HTML of a small table; numbers have three digits, or all that are before the point."""
    if table is None or table.empty:
        return Markup("")
    settings = {
        "index": False,
        "border": 0,
        "classes": "small",
        "na_rep": "",
        "justify": "unset",
    }
    settings["float_format"] = lambda x: f"{x:,.0f}" if abs(x) >= 100 else f"{x:#.3g}"
    html = table.rename_axis(columns=None).to_html(**settings)
    return Markup(f'<div class="scroll">{html}</div>')


def show_figure(figure: Figure, alt: str) -> Markup:
    """HTML of a figure, as wide as the page allows but never too small to read."""
    svg = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "eigenoptions"}):
        figure.savefig(svg, format="svg", metadata={"Date": None})
    width = 72 * figure.get_figwidth()
    size = f"width:{1.6 * width:.0f}px;min-width:{1.1 * width:.0f}px"
    source = f"data:image/svg+xml;base64,{b64encode(svg.getvalue()).decode()}"
    image = Markup(
        '<figure><div class="sheet"><img alt="{}" style="{}" src="{}"></div></figure>'
    )
    return image.format(alt, size, source)


def place(section: str) -> str:
    """A section of the paper in words.

    >>> place("4.2"), place("Appendix D")
    ('Section 4.2', 'Appendix D')
    """
    return section if section[0].isalpha() else f"Section {section}"


def paper_settings(experiment: Experiment, quick: bool) -> dict[str, Any]:
    """Settings with which an experiment runs: the defaults of its `run`, or what `quick` replaces in them."""
    parameters = inspect.signature(experiment.run).parameters.values()
    settings = {p.name: p.default for p in parameters if p.default is not p.empty}
    return settings | (dict(experiment.quick) if quick else {})


def versions() -> str:
    """Versions of this library, of Python and of the main dependencies."""
    parts = ", ".join(
        f"{name} {version(name)}" for name in ("numpy", "scipy", "matplotlib")
    )
    return f"eigenoptions {__version__}, Python {platform.python_version()}, {parts}, {platform.platform()}"


def _render(part: str, **values: Any) -> Markup:
    """Render a macro of the template."""
    settings = {
        "autoescape": True,
        "undefined": StrictUndefined,
        "trim_blocks": True,
        "lstrip_blocks": True,
    }
    environment = Environment(loader=FileSystemLoader(HERE), **settings)
    functions = {f.__name__: f for f in (place, versions, show_block, show_table)}
    limits = {name: value for name, value in vars(thresholds).items() if name.isupper()}
    environment.globals |= {**limits, **functions}
    return Markup(
        getattr(environment.get_template("report.html").module, part)(**values)
    )
