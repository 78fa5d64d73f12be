"""`reproduce`: run the experiments, and set what came out on one page that needs nothing from outside.

The page opens with the claims, then shows each figure beside what the paper shows. Every number on it comes
from results, which lie beside it as CSV.
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

from eigenoptions.experiments import EXPERIMENTS, rules
from eigenoptions.experiments.experiment import Experiment
from eigenoptions.experiments.page import Shown, made, section, sheet, taken, verdicts
from eigenoptions.experiments.results import Outcome, get, put, tables
from eigenoptions.experiments.store import Store
from eigenoptions.files import write_bytes
from eigenoptions.parallel import Progress, pmap

EXTRAS = {"atari": "ale_py"}  # of experiments, and the package that tells whether they are installed
FULL = Path("out/atari")  # where `eigenoptions atari` leaves its results
MARK = ".eigenoptions-report"  # a folder that has it is ours to write in

log = logging.getLogger("eigenoptions")


def reproduce(
    folder: str | Path = "report",
    settings: str = "paper",
    only: Sequence[str] = (),
    *,
    fresh: bool = False,
    engine: str = "processes",
    workers: int | None = None,
    tell: Callable[[str], object] = lambda news: None,
    progress: Callable[[Progress], object] | None = None,
) -> list[Outcome]:
    """Run experiments that have no results yet and write ``index.html`` and ``data/`` into a folder.

    Every finished job is kept in ``jobs/``, so a run that was killed goes on with what is missing.

    Parameters
    ----------
    folder
        Made if it is not there; a folder with other things in it is refused, and one that another run is using.
    settings
        ``"paper"`` or ``"quick"``.
    only
        Names of experiments to run; the page also shows others whose results are at hand.
    fresh
        Run again what has results; without `only`, results of other settings and code are thrown away too.
    engine, workers
        Who does the jobs, see `parallel.pmap`; the results are the same.
    tell
        Called with a line of news before each run.
    progress
        Called as jobs of a run are done.

    Returns
    -------
    list of Outcome
        What the page shows.
    """
    out = Path(folder)
    chosen = _chosen(only, settings)
    pmap(abs, [], engine, workers=workers)  # refuses what it must before anything is written
    _claim(out)
    start_over = fresh and not only
    with Store(out / "jobs", fresh=start_over) as store:
        _clear(out, start_over)
        outcomes = []
        for experiment in EXPERIMENTS:
            given = experiment.settings[settings]
            again = fresh and experiment in chosen
            outcome = None if again else get(store, experiment, given)
            if outcome is None and experiment in chosen:
                if again:
                    store.delete(experiment.run, dict(given))
                tell(experiment.title)
                start, saved = time.perf_counter(), store.seconds_saved
                over = partial(store.pmap, engine=engine, workers=workers, progress=progress, fresh=again)
                results = experiment.run(given, over)
                seconds = time.perf_counter() - start + store.seconds_saved - saved
                outcome = Outcome(experiment, given, results, seconds, made(engine))
                put(store, outcome)
            if outcome is not None:
                outcomes.append(outcome)
        tell("writing the report")
        try:
            _write(out, outcomes, settings)
        except OSError as error:
            why = f"cannot write {error.filename}: {error.strerror}" if error.strerror else str(error)
            told = type(error)(
                f"{why}; all results are kept in {store.folder}: start again when it can be written"
            )
            raise told from None
    return outcomes


def page(shown: Shown, settings: str, more: Mapping[str, str] | None = None) -> str:
    """HTML of the report, from outcomes and their claims, with `more` for some of the sections."""
    missing = [e.title for e in EXPERIMENTS if e.name not in {o.experiment.name for o, _ in shown}]
    absent = f"<p>Not run yet: {escape(', '.join(missing))}.</p>" if missing else ""
    contents = "".join(
        f'<li><a href="#{o.experiment.name}">{escape(o.experiment.title)}</a></li>' for o, _ in shown
    )
    body = f"""<header>
<h1>Eigenoptions, made again</h1>
<p>A reproduction of <cite>A Laplacian Framework for Option Discovery in Reinforcement
Learning</cite> (Machado, Bellemare and Bowling, ICML 2017) by <code>eigenoptions reproduce</code>. Claims are
judged by <a href="#rules">rules</a>, most of which were fixed before the experiments were run; the exceptions are named
there. Every number is computed from the results, which lie beside this page as CSV.</p>
<p class="facts">Settings: <b>{escape(settings)}</b>. {taken(shown)}</p>
</header>
<main>
{verdicts(shown, absent)}
<nav><h2>Figures</h2><ul>{contents}</ul></nav>
{"".join(section(o, its, (more or {}).get(o.experiment.name, "")) for o, its in shown)}
<section id="rules"><h2>Rules</h2>
{_rules()}
</section>
</main>"""
    return sheet("Eigenoptions, made again", body)


def _chosen(only: Sequence[str], settings: str) -> list[Experiment]:
    known = [e.name for e in EXPERIMENTS]
    for name in only:
        if name not in known:
            raise ValueError(f"no experiment called {name!r}: there are {', '.join(known)}")
    offered = sorted(set.intersection(*(set(e.settings) for e in EXPERIMENTS)))
    if settings not in offered:
        raise ValueError(f"settings must be one of {', '.join(offered)}, got {settings!r}")
    chosen = [e for e in EXPERIMENTS if not only or e.name in only]
    absent = [e for e in chosen if e.extra and find_spec(EXTRAS[e.extra]) is None]
    for e in absent:
        remedy = f"needs more than is installed: pip install 'eigenoptions[{e.extra}]'"
        if e.name in only:
            raise ImportError(f"{e.name} {remedy}")
        log.warning("%s is left out: it %s", e.title, remedy)
    return [e for e in chosen if e not in absent]


def _claim(out: Path) -> None:
    """Make the folder and mark it as ours, or refuse."""
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"cannot write the report into {out}: it is a file; give a folder")
    others = (p for p in out.iterdir() if not p.name.startswith(f".{MARK}.")) if out.is_dir() else ()
    if any(others) and not (out / MARK).exists():  # a killed run may have left the mark half written
        raise FileExistsError(
            f"{out} has other things in it than a report of ours: give a new or empty folder"
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise type(error)(f"cannot make the folder {out}: {error.strerror or error}") from None
    if not (out / MARK).exists():
        text = b"This folder was made by `eigenoptions reproduce` and may be written again by it.\n"
        write_bytes(out / MARK, text)


def _clear(out: Path, start_over: bool) -> None:
    """Take away what a killed run left half written; tell of results of earlier versions, or remove them."""
    with suppress(OSError):  # a folder that cannot be written is told of when the report is
        for leftover in (*out.glob(".*.tmp"), *(out / "data").glob(".*.tmp")):
            leftover.unlink()
    old = sorted((out / "data").glob("*.safetensors"))
    if old and start_over:
        for path in old:
            path.unlink()
    elif old:
        log.warning(
            "%s and others like it were made by an earlier version and are not used: --fresh removes them",
            old[0],
        )


def _write(out: Path, outcomes: Sequence[Outcome], settings: str) -> None:
    """Write the page, and the tables behind it."""
    shown = [(outcome, outcome.experiment.claims(outcome.results)) for outcome in outcomes]
    html = page(shown, settings, {o.experiment.name: _pictures(out, o) for o in outcomes}).encode()
    data = out / "data"
    try:
        data.mkdir(exist_ok=True)
    except OSError as error:
        raise type(error)(f"cannot make the folder {data}: {error.strerror or error}") from None
    for outcome in outcomes:
        for table, text in tables(outcome.results).items():
            write_bytes(data / f"{outcome.experiment.name}-{table}.csv", text.encode())
    write_bytes(data / "claims.csv", _claims_csv(shown))
    write_bytes(out / "index.html", html)


def _rules() -> str:
    """What the judgements mean, as `rules` says it."""
    words = [
        ("a few options", f"at most {rules.FEW}"),
        ("the first options", " and ".join(map(str, rules.FIRST))),
        ("greatly improved", f"at most {rules.GREATLY:g} of the diffusion time without options"),
        ("several orders of magnitude", f"at least {rules.SEVERAL:,.0f} times"),
        ("almost fully connected", f"at least {rules.NEARLY_ALL:.0%} of all options"),
        ("in almost all settings", f"at least {rules.ALMOST_ALL:.0%} of them"),
        (
            "fairly robust",
            f"at least {rules.ROBUST:.0%} of the best mean return, with more than a few options",
        ),
        ("a major impact", f"a factor of at least {rules.MAJOR:g}"),
        (
            "often defined in the whole state space",
            f"the median option starts in {rules.OFTEN:.0%} of the states",
        ),
        ("near a doorway", f"at most {rules.NEAR} step from it"),
    ]
    prose = (rules.__doc__ or "").split("\n\n")[1].replace("*", "")
    terms = "".join(f"<div><dt>{escape(word)}</dt><dd>{escape(means)}</dd></div>" for word, means in words)
    later = "".join(f"<li>{escape(exception)}</li>" for exception in rules.LATER)
    return (
        f"<p>{escape(' '.join(prose.split()))}</p>\n<p>A claim with several tests holds if all of them are "
        f'passed, and partly if some are. Words of degree mean:</p>\n<dl class="rules">{terms}</dl>\n'
        f"<p>Not fixed before the results were seen:</p>\n<ul>{later}</ul>"
    )


def _pictures(out: Path, outcome: Outcome) -> str:
    """HTML of pictures and clips of an Atari game, drawn unless they are there, and of the way to a full run."""
    if outcome.experiment.extra != "atari":
        return ""
    from eigenoptions.experiments.atari.gallery import cards, gallery, sheets

    name = outcome.experiment.name
    folder = out / "atari" / name
    record = folder / "gallery.json"
    of = {"made": outcome.made, "seconds": outcome.seconds}
    try:
        found = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = {}
    if found.get("of") != of:
        folder.mkdir(parents=True, exist_ok=True)
        found = {"of": of, **gallery(outcome.results, folder)}
        write_bytes(record, json.dumps(found).encode())
    large = FULL / name / "index.html"
    where = (
        f'a <a href="{escape(os.path.relpath(large, out))}">run of its own</a> is here, and '
        if large.is_file()
        else ""
    )
    return (
        f"<p>This is a small run; {where}<code>eigenoptions atari {escape(found['name'])} --full</code> makes "
        "a large one. The results of one are kept in docs/atari.md.</p>\n"
        f"{cards(found['options'], 'atari/')}{sheets(found['figures'], f'atari/{name}/')}"
    )


def _claims_csv(shown: Shown) -> bytes:
    rows = [{"experiment": o.experiment.name, **vars(claim)} for o, its in shown for claim in its]
    return tables({"claims": rows}).get("claims", "").encode()
