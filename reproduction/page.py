"""Pages of results: claims, figures and tables in one self-contained HTML file."""

from __future__ import annotations

import io
import platform
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from eigenoptions import __version__
from eigenoptions.options.files import write_atomically
from reproduction import thresholds
from reproduction.claims import VERDICTS, Claim
from reproduction.experiment import Block
from reproduction.readings import DISCOUNTS, OURS, READINGS, WHY_LEARNING, WHY_MAIN
from reproduction.stored_run import list_other_versions

HERE = Path(__file__).parent


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
    demonstrations : sequence of Claim
        What the section shows without a verdict.
    folded : mapping
        Further blocks, which the reader may unfold, by their summary.
    """

    name: str
    title: str
    text: str = ""
    shown: Sequence[Block] = ()
    claims: Sequence[Claim] = ()
    demonstrations: Sequence[Claim] = ()
    folded: Mapping[str, Sequence[Block]] = field(default_factory=dict)


def write_page(
    path: Path,
    title: str,
    sections: Sequence[Section],
    *,
    header: str = "",
    rules: bool = False,
    summary: Mapping[str, Any] | None = None,
) -> None:
    """Write a self-contained page.

    Parameters
    ----------
    path : Path
        The file.
    title : str
        Title of the page.
    sections : sequence of Section
        The sections; a list of all their claims, by section of the paper, follows.
    header : str, default=""
        Markup below the title.
    rules : bool, default=False
        Whether the page says how claims are judged.
    summary : mapping, optional
        Claims and readings for the table at the end (see `report.summarize`).
    """
    html = render_macro(
        "page",
        title=title,
        sections=sections,
        header=header,
        claims=[(claim, section) for section in sections for claim in section.claims],
        rules=rules,
        summary=summary,
        css=Markup((HERE / "report.css").read_text()),
    )
    write_atomically(path, html.encode())


def render_macro(part: str, **values: Any) -> Markup:
    """Render a macro of the template."""
    return Markup(getattr(_load_macros(), part)(**values))


@cache
def _load_macros() -> Any:
    """The macros of the template, which know the limits and readings."""
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
        "READINGS": READINGS,
        "WHY_MAIN": WHY_MAIN,
        "WHY_LEARNING": WHY_LEARNING,
        "OURS": OURS,
        "DISCOUNTS": DISCOUNTS,
        "FIXED_LATE": thresholds.FIXED_LATE,
        "N_LIMITS": len(limits) - len(("MOVED", "FIXED_LATE")),
        "name_place": name_place,
        "list_versions": list_versions,
        "list_other_versions": list_other_versions,
        "show_block": show_block,
        "show_table": show_table,
    }
    return environment.get_template("report.html").module


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
    """HTML of a small table; numbers have three digits, or all before the point.

    Each cell carries the name of its column, which stands beside it where the page is
    too narrow for a table.
    """
    if table is None or table.empty:
        return Markup("")
    rows = [
        [(name, _format_cell(value)) for name, value in row.items()]
        for row in table.to_dict("records")
    ]
    return render_macro("small_table", names=list(table.columns), rows=rows)


def show_figure(figure: Figure, alt: str, narrow: Figure | None = None) -> Markup:
    """HTML of a figure, as wide as the page allows; `narrow` is for a telephone."""
    size = f"width:{1.6 * 72 * figure.get_figwidth():.0f}px"
    image = Markup('<img alt="{}" style="{}" src="{}">')
    picture = image.format(alt, size, _encode_figure(figure))
    if narrow is not None:
        source = Markup('<source media="(max-width:46rem)" srcset="{}">')
        parts = source.format(_encode_figure(narrow)) + picture
        picture = Markup("<picture>{}</picture>").format(parts)
    return Markup('<figure><div class="sheet">{}</div></figure>').format(picture)


def _encode_figure(figure: Figure) -> str:
    """A figure as an address that holds all of it."""
    svg = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "eigenoptions"}):
        figure.savefig(svg, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{b64encode(svg.getvalue()).decode()}"


def name_place(section: str) -> str:
    """A section of the paper in words.

    >>> name_place("4.2"), name_place("Appendix D")
    ('Section 4.2', 'Appendix D')
    """
    if section[0].isalpha():
        return section
    return f"Section {section}"


def list_versions() -> str:
    """Versions of this library, of Python and of the main dependencies."""
    packages = [f"{name} {version(name)}" for name in ("numpy", "scipy", "matplotlib")]
    parts = [
        f"eigenoptions {__version__}",
        f"Python {platform.python_version()}",
        *packages,
        platform.platform(),
    ]
    return ", ".join(parts)


def _format_cell(value: Any) -> str:
    """A cell as text; empty where there is no value."""
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if pd.isna(value) else _format_number(value)
    return str(value)


def _format_number(number: float) -> str:
    """Three digits, or all of those before the point."""
    if abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:#.3g}"
