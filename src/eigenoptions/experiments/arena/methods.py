"""The contest of methods: every registered method of discovery on the same domains, and one page about it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

from eigenoptions._checks import one_of
from eigenoptions.discovery.methods import methods as method_names
from eigenoptions.experiments.arena import SIZES, Contest, Report
from eigenoptions.experiments.arena.domains import DOMAINS
from eigenoptions.experiments.arena.jobs import NONE
from eigenoptions.experiments.arena.page import page
from eigenoptions.experiments.arena.ranking import MEASURES, ranking
from eigenoptions.experiments.arena.study import SETTINGS
from eigenoptions.experiments.arena.study import run as run_study
from eigenoptions.experiments.experiment import Results
from eigenoptions.experiments.page import origin
from eigenoptions.experiments.store import Store, claim_folder
from eigenoptions.experiments.tables import tables, to_csv
from eigenoptions.files import write_bytes
from eigenoptions.parallel import current, on_engine


@on_engine("processes")
def run(
    folder: str | Path = "arena",
    size: str = "default",
    methods: Sequence[str] = (),
    domains: Sequence[str] = (),
    *,
    fresh: bool = False,
    tell: Callable[[str], object] = lambda news: None,
    progress: Callable[[int, int], object] | None = None,
) -> Report:
    """Run every method on every domain and write ``index.html`` and ``data/`` into a folder.

    Every finished job is stored in ``jobs/``, so an interrupted run computes only what is missing when it is repeated.

    Parameters
    ----------
    folder
        Created if it does not exist; a folder with other content is refused.
    size
        ``"quick"`` or ``"default"``.
    methods, domains
        Names of those that take part; empty for all of the size.
    fresh
        Delete all stored jobs first.
    tell, progress
        As in `reproduce`.
    """
    settings = dict(SETTINGS[one_of("size", size, SIZES)])
    for name in methods:
        one_of("method", name, tuple(method_names()))
    for name in domains:
        one_of("domain", name, tuple(DOMAINS))
    settings["domains"] = list(domains or settings["domains"])
    out = Path(folder)
    claim_folder(out, "an arena", "arena")
    with Store(out / "jobs", fresh=fresh) as store:
        start = time.perf_counter()
        tell(f"{len(methods) or len(method_names())} methods, {len(settings['domains'])} domains")
        results = run_study(settings, partial(store.pmap, progress=progress), methods)
        seconds = time.perf_counter() - start + store.seconds_saved
    tell("writing the page")
    html = page(results, settings, seconds, origin(current().name)).encode()
    order = _order(results)
    (out / "data").mkdir(exist_ok=True)
    for name, text in {**tables(results), "ranking": to_csv(order)}.items():
        write_bytes(out / "data" / f"{name}.csv", text.encode())
    write_bytes(out / "index.html", html)
    return _report(results, order, size, seconds, out)


def _order(results: Results) -> list[dict[str, Any]]:
    """One row per measure and method: its place, mean rank and ratio to no options."""
    return [
        {
            "measure": m.name,
            "place": i,
            "method": name,
            "mean_rank": rank,
            "of_none": ratio if isfinite(ratio) else None,
        }
        for m in MEASURES
        for i, (name, rank, ratio) in enumerate(ranking(results, m), start=1)
    ]


def _report(results: Results, order: list[dict[str, Any]], size: str, seconds: float, out: Path) -> Report:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in order:
        found.setdefault(row["measure"], []).append({k: v for k, v in row.items() if k != "measure"})
    rows = [(name, *(str(f["method"]) for f in first[:3])) for name, first in found.items()]
    data = {
        "contest": CONTEST.name,
        "size": size,
        "methods": [m for m in results["methods"] if m != NONE],
        "domains": results["domains"],
        "ranking": found,
        "seconds": seconds,
    }
    return Report(("measure", "1st", "2nd", "3rd"), rows, data, [out / "index.html"])


CONTEST = Contest("methods", "every method of discovery on the same domains", run)
