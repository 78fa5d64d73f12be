"""The page of the contest of methods: rankings, tables, curves, maps, and what each method is good and bad at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import inf, isfinite
from typing import Any

from eigenoptions.discovery.methods import get_method as declared
from reproduction import panels as plots
from reproduction.arena.domains import DOMAINS, build
from reproduction.arena.jobs import NONE
from reproduction.arena.pictures import curves, option_map
from reproduction.arena.ranking import MEASURES, Measure, Value, character, ranking, ranks
from reproduction.claims import note
from reproduction.experiment import Results, Settings
from reproduction.page import duration, inline, sheet, terms

TITLE = "Arena: methods of option discovery"
# Files beside the page.
DATA = ("rows", "learning", "online", "discovery", "ranking")
# Notes about how the measures are taken.
PROTOCOL = ("diffusion", "seeds", "learning", "online", "defaults")


def page(
    results: Results, settings: Settings, seconds: float, origin: dict[str, Any], data: str = "data/"
) -> str:
    """HTML of the whole page; `data` is where its tables are, or empty for a page without links to them."""
    links = ", ".join(f'<a href="{data}{name}.csv">{name}.csv</a>' for name in DATA)
    n = len(results["methods"]) - 1
    cores = f"{origin['cores']} core{'s' * (origin['cores'] != 1)}"
    shown = [m for m in MEASURES if ranking(results, m)]
    body = f"""<header>
<h1>{TITLE}</h1>
<p>{n} ways to discover options on the same {len(results["domains"])} domains, by <code>eigenoptions arena</code>.
Every method is one file in <code>discovery/methods</code>; a new one takes part without another line.</p>
<p class="facts">Computed in <b>{duration(seconds)}</b> by {escape(origin["engine"])} on {cores}, {origin["date"]}.
{f"Data: {links}." if data else ""}</p>
</header>
<main>
<section id="ranking"><h2>Ranking</h2>
<p>Mean rank over the domains, 1 is best. A method that has no options on a domain counts there as
<i>{NONE}</i>, primitive actions alone, which is ranked too.</p>
{_ranking(results, shown)}
</section>
<section id="words"><h2>What each method is good and bad at</h2>
<p>Sentences and numbers are computed from the results; maps show the first options.</p>
{"".join(_card(results, name) for name in results["methods"] if name != NONE)}
</section>
<section id="measures"><h2>Every measure, every domain</h2>
<p>The darker, the better on that domain. Where randomness enters, the interval stands below the value.</p>
{"".join(_table(results, m) for m in shown)}
</section>
<section id="curves"><h2>Diffusion time over the number of options</h2>
<h3>At the best chance of an option</h3>{_figure(results, "best")}
<h3>Uniform choice over actions and options, as in the paper</h3>{_figure(results, "uniform")}
</section>
<section id="domains"><h2>Domains</h2>{_domains(results)}</section>
<section id="protocol"><h2>Protocol</h2>{_protocol(settings)}</section>
</main>"""
    return sheet(TITLE, body)


def number(x: float) -> str:
    """A value of a table in three digits.

    >>> number(267.7), number(1.1e6), number(0.0123), number(float("inf"))
    ('268', '1.1e6', '0.0123', 'never')
    """
    if x == inf:
        return "never"
    if abs(x) >= 1e5:
        return f"{x:.1e}".replace("e+0", "e").replace("e+", "e")
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:.3g}"


def _ranking(results: Results, shown: list[Measure]) -> str:
    """One table of mean ranks, methods in the order of the first measure."""
    orders = [{name: rank for name, rank, _ in ranking(results, m)} for m in shown]
    names = dict.fromkeys([*orders[0], *results["methods"]])
    rows = {
        name: [
            _cell(f"{by[name]:.1f}", list(by).index(name), len(by)) if name in by else "<td></td>"
            for by in orders
        ]
        for name in names
    }
    return _heat([m.name for m in shown], rows)


def _table(results: Results, measure: Measure) -> str:
    """Values of one measure by method and domain."""
    values, places = measure.values(results), ranks(results, measure)
    domains = [d for d in results["domains"] if any(key[1] == d for key in values)]
    known = [sum(row[j] == row[j] for row in places.values()) for j in range(len(domains))]
    rows = {}
    for name, _, ratio in ranking(results, measure):
        cells = [
            _cell(_value(values[name, domain]), places[name][j] - 1, known[j])
            if (name, domain) in values
            else '<td class="none">no options</td>'
            for j, domain in enumerate(domains)
        ]
        rows[name] = [*cells, f"<td>{'' if ratio != ratio else f'{ratio:.2g}'}</td>"]
    title = measure.name[0].upper() + measure.name[1:] + (f" ({measure.unit})" if measure.unit else "")
    heads = [*domains, "of none" if measure.against_none else ""]
    return f"<h3>{escape(title)}</h3><p>{escape(measure.about)}</p>{_heat(heads, rows)}\n"


def _heat(heads: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
    """A table with a row of cells per method."""
    head = "".join(f"<th>{escape(name)}</th>" for name in ("method", *heads))
    body = "".join(f"<tr><th>{_name(name)}</th>{''.join(cells)}</tr>\n" for name, cells in rows.items())
    return f'<div class="wide"><table class="heat"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _value(value: Value) -> str:
    spread = isfinite(value.low) and value.low != value.high
    return number(value.mean) + (
        f"<small>{number(value.low)} to {number(value.high)}</small>" if spread else ""
    )


def _cell(text: str, place: float, among: int) -> str:
    """A cell whose shade is its place: full for the best, none for the second half."""
    shade = max(0.0, 1.0 - 2.0 * place / max(among - 1, 1)) if place == place else 0.0
    best = ' class="best"' if place == 0 else ""
    return f'<td{best} style="--h:{shade:.2f}">{text}</td>'


def _name(name: str) -> str:
    return f"<i>{NONE}</i>" if name == NONE else f'<a href="#{escape(name)}">{escape(name)}</a>'


def _card(results: Results, name: str) -> str:
    """Summary, maps and sentences of one method."""
    summary = declared(name).summary
    sentences = "".join(f"<p>{escape(text)}</p>" for text in character(results, name))
    return (
        f'<article id="{escape(name)}"><h3>{escape(name)}</h3><p class="facts">{escape(summary)}</p>'
        f"{_maps(results, name)}{sentences}</article>\n"
    )


def _maps(results: Results, name: str) -> str:
    """The first options on the domain that shows the method best, of those with a map."""
    drawn = {d: p for d, p in results["pictures"].get(name, {}).items() if build(d).coords is not None}
    wanted = "costly" if declared(name).needs_rewards else "four-rooms"
    domain = next((d for d in (wanted, *results["domains"]) if d in drawn), None)
    if domain is None:
        return ""
    mdp, found = build(domain), drawn[domain]
    maps = "".join(
        f"<figure>{option_map(mdp, row, f'{name} {label} on {domain}')}"
        f"<figcaption>{escape(label)}</figcaption></figure>"
        for row, label in zip(found["policy"], found["labels"], strict=True)
    )
    return f'<div class="maps">{maps}</div>'


def _figure(results: Results, how: str) -> str:
    drawn = inline(plots.svg(curves(results, how)), how, f"diffusion time, {how}")
    return f'<figure><div class="sheet">{drawn}</div></figure>'


def _domains(results: Results) -> str:
    about = {name: f"{DOMAINS[name].about}; {build(name).n_states:,} states" for name in results["domains"]}
    return f"<dl>{terms(about)}</dl>"


def _protocol(settings: Settings) -> str:
    known = {**settings, "chances": settings["estimate"]["chances"], "walks": settings["cover"]["seeds"]}
    lines = [str(note(f"arena-{name}", **known)) for name in PROTOCOL]
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
