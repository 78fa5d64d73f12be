"""Self-contained HTML pages: claims grouped by section, and one section per experiment. No scripts: CSS filters."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from collections.abc import Mapping, Sequence
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from eigenoptions import __version__
from reproduction import panels as plots
from reproduction.claims import declarations
from reproduction.experiment import (
    FAILS,
    HOLDS,
    OURS,
    PARTLY,
    PLURALS,
    UNDECIDED,
    VERDICTS,
    Claim,
    Experiment,
    Note,
    Outcome,
    Results,
)
from reproduction.tables import tables

Shown = Sequence[tuple[Outcome, list[Claim]]]
CLASSES = {HOLDS: "yes", PARTLY: "part", FAILS: "no", UNDECIDED: "open"}


def sheet(title: str, body: str, contents: str = "") -> str:
    """A complete page; `contents` is a list of links that stays in view."""
    style = (files("reproduction") / "report.css").read_text()
    aside = f'<nav class="contents">{contents}</nav>\n' if contents else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>\n{style}</style></head>\n"
        f'<body>\n{aside}<div class="page">{body}\n'
        f"<footer><p>{escape(versions())}. Page written on {time.strftime('%Y-%m-%d')}.</p></footer></div>\n"
        "</body></html>\n"
    )


def verdicts(shown: Shown, note: str = "", order: Sequence[str] = ()) -> str:
    """All claims, each once, grouped by section of the paper, with a filter; `order` are claim ids in their order."""
    place = {name: i for i, name in enumerate(order)}
    pairs = [(claim, outcome.experiment) for outcome, its in shown for claim in its]
    pairs.sort(key=lambda pair: place.get(pair[0].id, len(place)))
    filters = [
        f'<input type="radio" name="show" id="show-all" checked><label for="show-all">all {len(pairs)}</label>'
    ]
    for v in VERDICTS:
        many = sum(claim.verdict == v for claim, _ in pairs)
        name = f"show-{CLASSES[v]}"
        filters.append(
            f'<input type="radio" name="show" id="{name}"><label class="{CLASSES[v]}" for="{name}">{many} '
            f"{PLURALS[v].removeprefix('are ')}</label>"
        )
    # Titles begin with the section, so that their alphabetical order is that of the paper.
    headings = declarations()["groups"]
    titles = sorted(set(headings.values()), key=lambda title: (title == headings[OURS], title))
    groups: dict[str, list[str]] = {title: [] for title in titles}
    for claim, experiment in pairs:
        # The first heading whose beginning fits the claim's section.
        title = next(title for begin, title in headings.items() if claim.section.startswith(begin))
        groups[title].append(_claim(claim, experiment))
    body = "".join(
        f'<div class="group"><h3>{escape(title)}</h3>{"".join(of)}</div>\n'
        for title, of in groups.items()
        if of
    )
    return f"""<section id="claims">
<h2>Claims</h2>{note}
<div class="filter">{"".join(filters)}
{body}</div>
</section>"""


def _claim(claim: Claim, experiment: Experiment) -> str:
    kind = CLASSES[claim.verdict]
    name = f' id="claim-{escape(claim.id)}"' if claim.id else ""
    lesson = f'<span class="lesson">{escape(claim.lesson or claim.measured)}</span>'
    lesson = lesson if claim.verdict == FAILS else ""
    source = "Not a claim of the paper" if claim.section == OURS else f"The paper, {_place(claim.section)}"
    return (
        f'<details class="claim {kind}"{name}><summary><span class="chip {kind}">{claim.verdict}</span>'
        f'<span class="said">{escape(claim.sentence)}{lesson}</span></summary>'
        f'<div class="why"><p><b>Measured:</b> {escape(claim.measured)}.</p>{table(claim.rows)}'
        f'<p>{escape(claim.evidence)}</p><p class="facts">{escape(source)}; shown in '
        f'<a href="#{experiment.name}">{escape(experiment.title)}</a>.</p></div></details>\n'
    )


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A small table; columns in the order of the first row."""
    if not rows:
        return ""
    head = "".join(f"<th>{escape(str(name))}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell(row.get(name, '')))}</td>" for name in rows[0]) + "</tr>"
        for row in rows
    )
    inside = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="scroll"><table class="small">{inside}</table></div>'


def terms(pairs: Mapping[str, Any]) -> str:
    """Pairs of a definition list; what is no text as JSON."""
    return "".join(
        f"<div><dt>{escape(k)}</dt><dd>{escape(v if isinstance(v, str) else json.dumps(v))}</dd></div>"
        for k, v in pairs.items()
    )


def files_of(results: Results, prefix: str = "data/") -> str:
    """Links to the tables of results."""
    return ", ".join(f'<a href="{prefix}{name}.csv">{escape(name)}.csv</a>' for name in tables(results))


def _cell(value: Any) -> str:
    return (
        f"{value:.3g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
    )


def section(
    outcome: Outcome, claims: list[Claim], lead: str = "", more: str = "", data: str | None = None
) -> str:
    """One experiment: `lead` HTML or its figure, links to its claims, and folded analysis with `more` HTML.

    `data` is the prefix of its tables. With a lead, and beyond the paper, the figure is part of the folded analysis.
    """
    e = outcome.experiment
    own = _picture(e.figure(outcome.results), e.name, e.title, e.caption)
    shown = lead or ("" if e.ours else own)
    folded = ("" if shown == own else own) + more
    if e.closer is not None:
        folded += _picture(e.closer(outcome.results), f"{e.name}-closer", f"{e.title}, further analysis")
    folded += "".join(map(_note, e.notes(outcome.results)))
    said = "Beyond the paper:" if e.ours else f"The paper ({_place(e.section)}):"
    chips = " ".join(
        f'<a href="#claim-{escape(c.id)}" title="{escape(c.sentence)}"><span class="chip {CLASSES[c.verdict]}">'
        f"{c.verdict}</span> {escape(_short(c))}</a>"
        for c in claims
        if c.id
    )
    fold = (
        f"<details><summary>{'Figure and numbers' if e.ours else 'Our own analysis'}</summary>{folded}</details>\n"
        if folded
        else ""
    )
    return f"""<section id="{e.name}">
<h2>{escape(e.title)}</h2>
<p><b>{escape(said)}</b> {escape(e.shows)}</p>
{shown}
{f'<p class="chips">{chips}</p>' if chips else ""}{fold}<details><summary>Settings, data and time</summary>
<dl>{terms(outcome.settings)}
{terms({"computed": _where(outcome)})}
<div><dt>data</dt><dd>{files_of(outcome.results, f"data/{e.name}-" if data is None else data)}</dd></div></dl></details>
</section>
"""


def _place(section: str) -> str:
    return section if section[0].isalpha() else f"Section {section}"


def _short(claim: Claim) -> str:
    """A few words for a claim, from its id."""
    words = claim.id.replace("-ours-", "-against-random-").replace("-", " ")
    return words.removesuffix(" 0")


def _picture(figure: Any, name: str, label: str, caption: str = "") -> str:
    drawing = inline(plots.svg(figure), name, label)
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure><div class="sheet">{drawing}</div>{below}</figure>'


def _note(note: Note) -> str:
    if isinstance(note, str):
        return f"<p>{escape(note)}</p>"
    text, rows = note
    return (f"<p>{escape(text)}</p>" if text else "") + table(rows)


def inline(svg: str, prefix: str, label: str) -> str:
    """Prepare an SVG file for a page: no prolog, no metadata, a label, and ids that no other picture has."""
    drawing = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.S)
    drawing = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", drawing)
    head, rest = drawing.split(">", 1)
    width = float(re.search(r'width="([\d.]+)pt"', head)[1])  # type: ignore[index]
    height = float(re.search(r'height="([\d.]+)pt"', head)[1])  # type: ignore[index]
    head = re.sub(r' (width|height)="[\d.]+pt"', "", head)
    # As wide as the page allows, but never too small to read.
    size = f"width:{1.55 * width:.0f}px;min-width:{1.1 * width:.0f}px"
    size += f";max-height:{0.95 * height:.0f}px" if height > width else ""
    return f'{head} role="img" aria-label="{escape(label)}" style="{size}">{rest}'


def duration(seconds: float) -> str:
    """Seconds or minutes as text."""
    return f"{seconds:.2f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def _where(outcome: Outcome) -> str:
    """Duration, engine, machine and date."""
    at = outcome.origin
    if not at:
        return f"in {duration(outcome.seconds)}"
    cores = f"{at['cores']} core{'s' * (at['cores'] != 1)}"
    return f"in {duration(outcome.seconds)} by {at['engine']} on {cores}, {at['date']}, {at['versions']}"


def taken(shown: Shown) -> str:
    """Total duration, and the number of cores."""
    cores = sorted({o.origin["cores"] for o, _ in shown if o.origin})
    on = f" on {' or '.join(map(str, cores))} core{'s' * (cores != [1])}" if cores else ""
    return f"Time taken by the experiments: <b>{duration(sum(o.seconds for o, _ in shown))}</b>{on}."


def origin(engine: str) -> dict[str, Any]:
    """Origin of results: engine, cores, versions and date."""
    return {
        "engine": engine,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "versions": versions(),
        "date": time.strftime("%Y-%m-%d"),
    }


def versions() -> str:
    """Versions of this library, of Python and of the main dependencies."""
    parts = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba", "matplotlib"))
    return (
        f"eigenoptions {__version__}, Python {platform.python_version()}, {parts}, {platform.system()} "
        f"{platform.machine()}"
    )
