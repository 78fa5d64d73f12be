"""Pages of results: claims, figures and tables in one self-contained HTML file, with the data beside it as CSV."""

from __future__ import annotations

import inspect
import io
import json
import platform
import sys
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
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
from eigenoptions.options.storage import write_atomically
from eigenoptions.plots.figures import STYLE
from reproduction import lab as thresholds
from reproduction.lab import VERDICTS, Block, Claim, Data, Experiment, Lab

HERE = Path(__file__).parent
# CSS class and plural of each verdict.
CLASSES = dict(zip(VERDICTS, ("yes", "part", "no", "open"), strict=True))
PLURALS = dict(zip(VERDICTS, ("hold", "hold partly", "do not hold", "are not decided"), strict=True))
SINGULARS = dict(zip(VERDICTS, ("holds", "holds partly", "does not hold", "is not decided"), strict=True))
# Headings of the groups of claims, by the beginning of a claim's section; the first that fits counts.
HEADINGS = {
    "1": "1 Introduction",
    "2": "2 Background",
    "3": "3 Option discovery through the Laplacian",
    "Theorem 3": "3 Option discovery through the Laplacian",
    "Figure 2": "3 Option discovery through the Laplacian",
    "4.1": "4.1 Discovered options",
    "4.2": "4.2 Exploration",
    "4.3": "4.3 Accumulating rewards",
    "4": "4 Empirical evaluation",
    "5.2": "5.2 Function approximation: Atari games",
    "5": "5.1 Sample-based option discovery",
    "Lemma 5": "5.1 Sample-based option discovery",
    "Theorem 5": "5.1 Sample-based option discovery",
    "6": "6 Related work",
    "Appendix A": "A Lemmas and proofs",
    "Appendix B": "B Diffusion time",
    "Appendix C": "C Options leading to doorways",
    "Appendix D": "D Random options and multiple tasks",
    "Appendix E": "E Atari games",
    "ours": "Beyond the paper",
}


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


def write_report(folder: Path, outcomes: Sequence[Outcome], lab: Lab, missing: Sequence[str] = ()) -> Path:
    """Write ``data/*.csv``, ``data/claims.csv``, ``results.json`` and ``index.html``, and return the path of the page.

    `lab` is where the experiments ran, and `missing` are titles of those that have not been run.
    """
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    for outcome in outcomes:
        for name, table in outcome.data.items():
            table.to_csv(data / f"{outcome.experiment.name}-{name}.csv", index=False)
    claims_table(outcomes).to_csv(data / "claims.csv", index=False)
    summary = summarize(outcomes)
    results = {name: summary[name] for name in ("tables", "games", "numbers", "minutes")} | {
        "quick": lab.quick
    }
    results["claims"] = {
        c.id: {
            "section": c.section,
            "verdict": c.verdict,
            "on_the_edge": bool(c.edge),
            "measured": c.measured,
        }
        for outcome in outcomes
        for c in outcome.claims
    }
    write_atomically(folder / "results.json", json.dumps(results, indent=1, ensure_ascii=False).encode())
    header = _render("header", quick=lab.quick, atari=lab.atari, missing=missing, summary=summary)
    page, sections = folder / "index.html", [make_section(outcome) for outcome in outcomes]
    write_page(page, "Eigenoptions: a reproduction", sections, header=header, rules=True)
    return page


def claims_table(outcomes: Iterable[Outcome]) -> pd.DataFrame:
    """One row per claim: experiment, id, section, sentence, verdict, measured, evidence, lesson and edge."""
    columns = ("id", "section", "sentence", "verdict", "measured", "evidence", "lesson", "edge")
    return pd.DataFrame(
        [
            {"experiment": outcome.experiment.name, **{name: getattr(claim, name) for name in columns}}
            for outcome in outcomes
            for claim in outcome.claims
        ]
    )


def summarize(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """What the top of the page says: verdicts of tables and games, what fails, headline numbers, the main story."""
    judged = [(o, claim) for o in outcomes for claim in o.claims if claim.section != "ours"]
    tables = [claim for o, claim in judged if not o.experiment.atari]
    games = [claim for o, claim in judged if o.experiment.atari]
    story = {
        "theorem-3.1",
        "enough-options-help",
        "bottlenecks-increase",
        "most-scenarios",
        "outperform-primitive",
    }
    return {
        "n_tables": len(tables),
        "tables": count_verdicts(tables),
        "n_games": len(games),
        "games": count_verdicts(games),
        "failed": [claim for _, claim in judged if claim.verdict == "does not hold"],
        "edges": [claim for _, claim in judged if claim.edge],
        "story": story <= {claim.id for claim in tables if claim.verdict == "holds"},
        "numbers": [o.experiment.headline(o.data) for o in outcomes if o.experiment.headline],
        "minutes": round(sum(o.seconds for o in outcomes) / 60, 2),
    }


def count_verdicts(claims: Sequence[Claim]) -> str:
    """How many claims have each verdict, in words.

    >>> count_verdicts([Claim("", "", [True], ""), Claim("", "", [True, False], "")])
    '1 holds, 1 holds partly'
    """
    counts = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in VERDICTS}
    words = [f"{n} {(SINGULARS if n == 1 else PLURALS)[verdict]}" for verdict, n in counts.items() if n]
    return ", ".join(words) or "none"


def make_section(outcome: Outcome) -> Section:
    """Section of an experiment: its figure, claims, and folded analysis, settings and data."""
    e, data = outcome.experiment, outcome.data
    with matplotlib.rc_context(STYLE):
        figures = [
            e.figure(data),
            Markup("<figcaption>{}</figcaption>").format(e.caption) if e.caption else "",
        ]
        closer = [e.closer(data)] if e.closer else []
    analysis = [*(figures if e.ours else []), *closer, *e.notes(data)]
    links = ", ".join(f'<a href="data/{e.name}-{name}.csv">{name}.csv</a>' for name in data)
    terms = {
        name: json.dumps(value) if not isinstance(value, str) else value
        for name, value in outcome.settings.items()
    }
    facts = _render("facts", terms=terms | {"computed in": f"{outcome.seconds:,.1f} s"}, links=Markup(links))
    folded = {
        "Figure and numbers" if e.ours else "Our own analysis": analysis,
        "Settings, data and time": [facts],
    }
    return Section(
        e.name,
        e.title,
        Markup("<b>{}:</b> {}").format(
            "Beyond the paper" if e.ours else f"The paper ({place(e.section)})", e.shows
        ),
        [] if e.ours else figures,
        outcome.claims,
        {summary: blocks for summary, blocks in folded.items() if blocks},
    )


def write_page(
    path: Path, title: str, sections: Sequence[Section], *, header: str = "", rules: bool = False
) -> None:
    """Write a self-contained page: a header (markup), all claims of the sections by heading, and the sections.

    With `rules` it ends with how claims are judged.
    """
    # In the order of the paper, by the beginning of the heading; our own last.
    headings = sorted(set(HEADINGS.values()), key=lambda heading: (heading == HEADINGS["ours"], heading))
    groups: dict[str, list[tuple[Claim, Section]]] = {heading: [] for heading in headings}
    for section in sections:
        for claim in section.claims:
            begins = [heading for start, heading in HEADINGS.items() if claim.section.startswith(start)]
            groups[begins[0]].append((claim, section))
    html = _render(
        "page",
        title=title,
        sections=sections,
        header=header,
        groups={heading: claims for heading, claims in groups.items() if claims},
        all_claims=[claim for section in sections for claim in section.claims],
        rules=rules,
        css=Markup((HERE / "report.css").read_text()),
    )
    write_atomically(path, html.encode())


def print_claims(claims: Sequence[Claim]) -> None:
    """Print a table of claims, and how many have each verdict."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in ("verdict", "claim", "measured"):
        table.add_column(head)
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
        caption, table = block
        return show_block(caption, title) + show_table(table)
    return Markup("<p>{}</p>").format(block) if block else Markup("")


def show_table(table: pd.DataFrame | None) -> Markup:
    """HTML of a small table; numbers have three digits."""
    if table is None or table.empty:
        return Markup("")
    html = table.rename_axis(columns=None).to_html(
        index=False, border=0, classes="small", na_rep="", float_format="{:.3g}".format, justify="unset"
    )
    return Markup(f'<div class="scroll">{html}</div>')


def show_figure(figure: Figure, alt: str) -> Markup:
    """HTML of a figure, as wide as the page allows but never too small to read."""
    svg = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "eigenoptions"}):
        figure.savefig(svg, format="svg", metadata={"Date": None})
    width = 72 * figure.get_figwidth()
    size = f"width:{1.6 * width:.0f}px;min-width:{1.1 * width:.0f}px"
    source = f"data:image/svg+xml;base64,{b64encode(svg.getvalue()).decode()}"
    image = Markup('<figure><div class="sheet"><img alt="{}" style="{}" src="{}"></div></figure>')
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
    parts = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "matplotlib"))
    return f"eigenoptions {__version__}, Python {platform.python_version()}, {parts}, {platform.platform()}"


def _render(part: str, **values: Any) -> Markup:
    """Render a macro of the template."""
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    words = {"classes": CLASSES, "plurals": PLURALS, "verdicts": VERDICTS}
    functions = {f.__name__: f for f in (place, versions, show_block, show_table)}
    limits = {name: value for name, value in vars(thresholds).items() if name.isupper()}
    environment.globals |= {**limits, **words, **functions}
    template = environment.get_template("report.html")
    return Markup(getattr(template.module, part)(**values))
