"""Self-contained HTML pages: a table of claims, and one section per experiment."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from collections.abc import Sequence
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from eigenoptions import __version__, plots
from eigenoptions.experiments.experiment import FAILS, HOLDS, PARTLY, VERDICTS, Claim, Experiment, Outcome
from eigenoptions.experiments.tables import tables

Shown = Sequence[tuple[Outcome, list[Claim]]]


def sheet(title: str, body: str) -> str:
    """A complete page."""
    style = (files("eigenoptions.experiments") / "report.css").read_text()
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>\n{style}</style></head>\n"
        f"<body>\n{body}\n"
        f"<footer><p>{escape(versions())}. Page written on {time.strftime('%Y-%m-%d')}.</p></footer>\n"
        "</body></html>\n"
    )


def verdicts(shown: Shown, note: str = "") -> str:
    """The number of claims per verdict, and a table of all claims."""
    claims = [claim for _, its in shown for claim in its]
    counts = " ".join(
        f'<span class="chip {_class(v)}">{sum(c.verdict == v for c in claims)} {text}</span>'
        for v, text in zip(VERDICTS, ("hold", "partly", "do not hold"), strict=True)
    )
    rows = "".join(_row(c, o.experiment) for o, its in shown for c in its)
    return f"""<section id="claims">
<h2>Claims</h2>
<p>{counts}</p>{note}
<table class="claims"><thead>
<tr><th>The paper says</th><th>Section</th><th>Measured here</th><th>Verdict</th></tr></thead>
<tbody>{rows}</tbody></table>
</section>"""


def section(outcome: Outcome, claims: list[Claim], more: str = "", data: str | None = None) -> str:
    """One experiment: its figure, `more` HTML, the evidence and the settings; `data` is the prefix of its tables."""
    e = outcome.experiment
    begin = f"data/{e.name}-" if data is None else data
    links = ", ".join(
        f'<a href="{begin}{table}.csv">{escape(table)}.csv</a>' for table in tables(outcome.results)
    )
    evidence = "".join(
        f'<li><span class="chip {_class(c.verdict)}">{c.verdict}</span> <em>{escape(c.sentence)}</em> '
        f"Measured: {escape(c.measured)}. {escape(c.evidence)}</li>"
        for c in claims
    )
    notes = "".join(f"<p>{escape(note)}</p>" for note in e.notes(outcome.results))
    if notes:
        notes = f'<div class="notes"><h3>Further analysis</h3>{notes}</div>\n'
    given = "".join(
        f"<div><dt>{escape(k)}</dt><dd>{escape(v if isinstance(v, str) else json.dumps(v))}</dd></div>"
        for k, v in outcome.settings.items()
    )
    return f"""<section id="{e.name}">
<h2>{escape(e.title)}</h2>
<p><b>The paper ({escape(e.section if e.section[0].isalpha() else f"Section {e.section}")}):</b> {escape(e.shows)}</p>
<figure><div class="sheet">{inline(plots.svg(e.figure(outcome.results)), e.name, e.title)}</div></figure>{more}
<ul class="evidence">{evidence}</ul>
{notes}<details><summary>Settings, data and time</summary><dl>{given}
<div><dt>computed</dt><dd>{escape(_where(outcome))}</dd></div>
<div><dt>data</dt><dd>{links}</dd></div></dl></details>
</section>
"""


def _row(claim: Claim, experiment: Experiment) -> str:
    return (
        f'<tr><td><a href="#{experiment.name}">{escape(claim.sentence)}</a></td>'
        f'<td data-head="Section">{escape(claim.section)}</td>'
        f'<td data-head="Measured here">{escape(claim.measured)}</td>'
        f'<td><span class="chip {_class(claim.verdict)}">{claim.verdict}</span></td></tr>\n'
    )


def inline(svg: str, prefix: str, label: str) -> str:
    """Prepare an SVG file for a page: no prolog, no metadata, a label, and ids that no other picture has."""
    drawing = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.S)
    drawing = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", drawing)
    head, rest = drawing.split(">", 1)
    width = float(re.search(r'width="([\d.]+)pt"', head)[1])  # type: ignore[index]
    head = re.sub(r' (width|height)="[\d.]+pt"', "", head)
    # As wide as the page allows, but never too small to read.
    size = f"width:{1.9 * width:.0f}px;min-width:{1.1 * width:.0f}px"
    return f'{head} role="img" aria-label="{escape(label)}" style="{size}">{rest}'


def _class(verdict: str) -> str:
    return {HOLDS: "yes", PARTLY: "part", FAILS: "no"}[verdict]


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
