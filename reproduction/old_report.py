"""`reproduce`: run the experiments and write their results to one self-contained page.

The page begins with the findings and the claims, then shows each figure beside what the paper shows. Every number on it
is computed from results, which are written beside it as CSV.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from html import escape
from importlib.util import find_spec
from pathlib import Path

from eigenoptions.files import remove_leftovers, write_bytes
from eigenoptions.parallel import current_engine
from reproduction import all_experiments
from reproduction.claims import claim_order, declarations, rules, statements
from reproduction.experiment import FAILS, HOLDS, OURS, Experiment, Outcome, counted
from reproduction.page import Shown, origin, section, sheet, table, taken, terms, verdicts
from reproduction.store import Store, claim_folder, make_folder
from reproduction.tables import tables, to_csv

# The package whose presence shows that an extra is installed.
EXTRAS = {"atari": "ale_py"}
# Where `eigenoptions atari` writes its results.
ATARI_RESULTS = Path("out/atari")

log = logging.getLogger("eigenoptions")


def reproduce(
    folder: str | Path = "report",
    settings: str = "paper",
    only: Sequence[str] = (),
    *,
    fresh: bool = False,
    tell: Callable[[str], object] = lambda news: None,
    progress: Callable[[int, int], object] | None = None,
) -> list[Outcome]:
    """Run the experiments that have no results yet and write ``index.html`` and ``data/`` into a folder.

    Every finished job is stored in ``jobs/``, so an interrupted run computes only what is missing when it is repeated.
    Returns the outcomes that the page shows.

    Parameters
    ----------
    folder
        Created if it does not exist; a folder with other content, or one that another run is using, is refused.
    settings
        ``"paper"`` or ``"quick"``.
    only
        Names of experiments to run; the page also shows others that have results.
    fresh
        Run again what has results; without `only`, results of other settings and code are deleted too.
    tell
        Called with one line of text before each experiment.
    progress
        Called with jobs done and jobs in all, as the jobs of an experiment finish.
    """
    out = Path(folder)
    chosen = _chosen(only, settings)
    claim_folder(out, "a report", "reproduce")
    with Store(out / "jobs", fresh=fresh and not only) as store:
        _clear(out, fresh and not only)
        run = partial(store.pmap, progress=progress)
        outcomes = []
        for experiment in all_experiments():
            given = dict(experiment.settings[settings])
            again = fresh and experiment in chosen
            if again:
                store.delete(experiment.run, given)
            stored = store.get(experiment.run, given)
            if stored is None and experiment in chosen:
                tell(f"{chosen.index(experiment) + 1} of {len(chosen)}: {experiment.title}")
                start, saved = time.perf_counter(), store.seconds_saved
                results = experiment.run(given, partial(run, fresh=again))
                seconds = time.perf_counter() - start + store.seconds_saved - saved
                stored = {"results": results, "seconds": seconds, "origin": origin(current_engine().name)}
                store.put(experiment.run, given, stored)
            if stored is not None:
                outcomes.append(Outcome(experiment, given, **stored))
        tell("writing the report")
        try:
            _write(out, outcomes, settings)
        except OSError as error:
            reason = f"cannot write {error.filename}: {error.strerror}" if error.strerror else str(error)
            raise type(error)(
                f"{reason}; all results are kept in {store.folder}: start again when it can be written"
            ) from None
    return outcomes


def page(shown: Shown, settings: str, pictures: Mapping[str, tuple[str, str]] | None = None) -> str:
    """HTML of the report, from outcomes and their claims.

    `pictures` has, by experiment, HTML to show instead of its figure, and HTML for its folded analysis.
    """
    names = {o.experiment.name for o, _ in shown}
    missing = [e.title for e in all_experiments() if e.name not in names]
    absent = f"<p>Not run yet: {escape(', '.join(missing))}.</p>" if missing else ""
    contents = "".join(
        f'<li><a href="#{name}">{escape(title)}</a></li>'
        for name, title in [
            ("top", "Findings"),
            ("claims", "Claims"),
            *((o.experiment.name, o.experiment.title) for o, _ in shown),
            ("statements", "Every sentence"),
            ("rules", "Rules"),
        ]
    )
    body = f"""<header id="top">
<h1>Eigenoptions: a reproduction</h1>
{_findings(shown)}
<p class="facts">A reproduction of <cite>A Laplacian Framework for Option Discovery in Reinforcement Learning</cite>
(Machado, Bellemare and Bowling, ICML 2017) by <code>eigenoptions reproduce</code>, settings <b>{escape(settings)}</b>
(Atari games in a small run). {taken(shown)} Every number is computed from the results, stored beside this page as
CSV.</p>
</header>
<main>
{verdicts(shown, absent, claim_order())}
{"".join(section(o, its, *(pictures or {}).get(o.experiment.name, ("", ""))) for o, its in shown)}
<section id="statements"><h2>Every sentence of the paper</h2>
{_statements({c.id for _, its in shown for c in its})}
</section>
<section id="rules"><h2>Rules</h2>
{_rules()}
</section>
</main>"""
    return sheet("Eigenoptions: a reproduction", body, f"<ul>{contents}</ul>")


def _findings(shown: Shown) -> str:
    """One paragraph and three numbers."""
    said = [(bool(o.experiment.extra), c) for o, its in shown for c in its if c.section != OURS]
    tables = [c for games, c in said if not games]
    games = [c for games, c in said if games]
    failed = "; ".join(
        f'<a href="#claim-{escape(c.id)}">{escape(c.sentence.rstrip("."))}</a>'
        for _, c in said
        if c.verdict == FAILS and c.id
    )
    story = declarations()["story"]
    holds = {c.id for c in tables if c.verdict == HOLDS}
    text = f"<b>{escape(story['text'])}</b> " if holds.issuperset(story["claims"]) else ""
    about = f"Of {len(tables)} checkable statements about tables and theory {counted(tables)}. "
    text += about if tables else ""
    text += f"Of {len(games)} about Atari games, in this small run, {counted(games)}. " if games else ""
    text += f"What does not hold: {failed}." if failed else ""
    numbers = "".join(
        f"<div><b>{escape(number)}</b>{escape(words)}</div>"
        for o, _ in shown
        if o.experiment.headline is not None
        for number, words in [o.experiment.headline(o.results)]
    )
    return f"<p>{text}</p>\n" + (f'<div class="numbers">{numbers}</div>' if numbers else "")


def _statements(known: set[str]) -> str:
    """HTML of the list of the paper's sentences, folded."""
    rows = []
    for s in statements():
        links = ", ".join(
            f'<a href="#claim-{escape(name)}">{escape(name)}</a>' if name in known else escape(name)
            for name in s.claims
        )
        rows.append(
            f"<tr><td>{escape(s.section)}</td><td>{escape(s.text)}</td><td>{links or escape(s.why)}</td></tr>"
        )
    judged = sum(s.sentences for s in statements() if s.claims)
    total = sum(s.sentences for s in statements())
    return (
        f"<p>{total} sentences; {judged} make checkable statements, each with its claim, and for the others the list "
        'says why they cannot be checked.</p>\n<details class="all"><summary>The list, in the order of the '
        "paper</summary>"
        '<div class="scroll"><table><thead><tr><th>Section</th><th>Sentence</th><th>Claim, or why there is '
        "none</th></tr>"
        f"</thead><tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def _chosen(only: Sequence[str], settings: str) -> list[Experiment]:
    experiments = all_experiments()
    known = [e.name for e in experiments]
    for name in only:
        if name not in known:
            raise ValueError(f"no experiment called {name!r}: there are {', '.join(known)}")
    offered = sorted(set.intersection(*(set(e.settings) for e in experiments)))
    if settings not in offered:
        raise ValueError(f"settings must be one of {', '.join(offered)}, got {settings!r}")
    chosen = [e for e in experiments if not only or e.name in only]
    absent = [e for e in chosen if e.extra and find_spec(EXTRAS[e.extra]) is None]
    for e in absent:
        remedy = f"needs more than is installed: pip install 'eigenoptions[{e.extra}]'"
        if e.name in only:
            raise ImportError(f"{e.name} {remedy}")
        log.warning("%s is left out: it %s", e.title, remedy)
    return [e for e in chosen if e not in absent]


def _clear(out: Path, start_over: bool) -> None:
    """Remove what an interrupted run left half written; remove results of earlier versions, or warn of them."""
    # A folder that cannot be written is reported when the page is written.
    with suppress(OSError):
        for folder in (out, out / "data"):
            remove_leftovers(folder)
    old = sorted((*(out / "data").glob("*.safetensors"), *(out / "jobs").glob("*.jobs")))
    if old and start_over:
        for path in old:
            path.unlink()
    elif old:
        log.warning(
            "%s and %d other files of an earlier version are not used: --fresh removes them",
            old[0],
            len(old) - 1,
        )


def _write(out: Path, outcomes: Sequence[Outcome], settings: str) -> None:
    """Write the page, and the tables behind it."""
    shown = [(outcome, outcome.experiment.claims(outcome.results)) for outcome in outcomes]
    html = page(shown, settings, {o.experiment.name: _pictures(out, o) for o in outcomes}).encode()
    data = out / "data"
    make_folder(data)
    for outcome in outcomes:
        for name, text in tables(outcome.results).items():
            write_bytes(data / f"{outcome.experiment.name}-{name}.csv", text.encode())
    claims = [{"experiment": o.experiment.name, **vars(claim)} for o, its in shown for claim in its]
    for row in claims:
        del row["rows"]
    write_bytes(data / "claims.csv", to_csv(claims).encode())
    write_bytes(out / "index.html", html)


def _rules() -> str:
    """HTML of the rules by which claims are judged."""
    told = rules()
    later = "".join(f"<li>{escape(exception)}</li>" for exception in told["later"])
    return (
        "<p>A claim with several tests holds if all of them are passed, and partly if some are. It is not decided if "
        "that hangs on tests for which the sample is too small.</p>\n"
        f"<details><summary>What is compared</summary><p>{escape(told['compared'])}</p></details>\n"
        f'<details><summary>Words of degree</summary><dl class="rules">{terms(told["words"])}</dl></details>\n'
        f"<details><summary>Rules that were changed</summary>{table(told['changes'])}</details>\n"
        f"<details><summary>Not fixed before the results were seen</summary><ul>{later}</ul></details>"
    )


def _pictures(out: Path, outcome: Outcome) -> tuple[str, str]:
    """HTML of an Atari game's pictures, drawn if they do not exist: the figure like the paper's, and the others."""
    if outcome.experiment.extra != "atari":
        return "", ""
    from reproduction.atari.pictures import LEAD, card_list, draw_highlights, overviews

    name = outcome.experiment.name
    folder = out / "atari" / name
    record = folder / "gallery.json"
    source = {"origin": outcome.origin, "seconds": outcome.seconds}
    try:
        found = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = {}
    if found.get("of") != source:
        folder.mkdir(parents=True, exist_ok=True)
        found = {"of": source, **draw_highlights(outcome.results, folder)}
        write_bytes(record, json.dumps(found).encode())
    large = ATARI_RESULTS / name / "index.html"
    there = escape(os.path.relpath(large, out))
    link = f'here is <a href="{there}">a separate run</a>, and ' if large.is_file() else ""
    figures = dict(found["figures"])
    root = f"atari/{name}/"
    lead = overviews({LEAD: figures.pop(LEAD)}, root, "card lead") if LEAD in figures else ""
    note = (
        f"<p>This is a small run, which cannot decide most claims; {link}<code>eigenoptions atari "
        f"{escape(found['name'])} --full</code> makes a large one, whose results are in docs/atari.md.</p>\n"
    )
    return lead + note, f"{card_list(found['options'], 'atari/')}{overviews(figures, root)}"
