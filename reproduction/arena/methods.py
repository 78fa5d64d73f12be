"""The contest of methods: every registered method of discovery on the same domains, and one page about it."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import isfinite
from pathlib import Path
from typing import Any

from eigenoptions._validation import check_choice
from eigenoptions.discovery.methods import get_method as declared
from eigenoptions.discovery.methods import methods as method_names
from eigenoptions.parallel import current_engine
from reproduction.arena import Contest, Report
from reproduction.arena.domains import DOMAINS, build
from reproduction.arena.jobs import NONE, cover, measure
from reproduction.arena.page import page
from reproduction.arena.ranking import MEASURES, ranking
from reproduction.experiment import Pmap, Results, Settings
from reproduction.page import origin
from reproduction.store import Store
from reproduction.tables import Row, groups, to_csv

# Chances of an option that are tried where diffusion times are estimated.
CHANCES = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3]
SETTINGS: Mapping[str, Settings] = {
    "default": {
        "domains": list(DOMAINS),
        "seeds": [0, 1, 2],
        "measure": {
            "counts": [2, 4, 8, 16, 32, 64, 128],
            "learn": [8, 32],
            "exact_states": 500,
            "goals": 24,
            "runs": 5,
            "episodes": 150,
        },
        "estimate": {"counts": [8, 32, 128], "walks": 5, "walk_steps": 20_000_000, "chances": CHANCES},
        "cover": {"seeds": list(range(6)), "online": 8, "chance": 0.05, "longest": 150, "most_states": 300},
    },
    "quick": {
        "domains": ["four-rooms", "i-maze", "one-way", "costly"],
        "seeds": [0, 1],
        "measure": {
            "counts": [2, 8, 32],
            "learn": [8],
            "exact_states": 500,
            "goals": 6,
            "runs": 3,
            "episodes": 50,
        },
        "estimate": {"counts": [8], "walks": 2, "walk_steps": 1_000_000, "chances": [0.01]},
        "cover": {"seeds": [0, 1, 2], "online": 8, "chance": 0.05, "longest": 100, "most_states": 300},
    },
}


def chosen(size: str, methods: Sequence[str] = (), domains: Sequence[str] = ()) -> Settings:
    """Settings of a size, for some methods and domains.

    >>> chosen("quick", ["eigen"])["domains"]
    ['four-rooms', 'i-maze', 'one-way', 'costly']
    """
    given = SETTINGS[check_choice("size", size, tuple(SETTINGS))]
    for what, names, known in (("method", methods, method_names()), ("domain", domains, DOMAINS)):
        for name in names:
            check_choice(what, name, tuple(known))
    return {
        **given,
        "size": size,
        "methods": list(methods or method_names()),
        "domains": list(domains or given["domains"]),
    }


def study(settings: Settings, store: Store, pmap: Pmap, tell: Callable[[str], object]) -> Results:
    """Tables of the measures of every method on every domain of the settings.

    ``rows``: one per number of options and seed; ``learning``: one per number of options, chance and seed; ``online``:
    one per walk; ``discovery``: one per method and domain. ``pictures`` are the first options of each.
    """
    tell(f"{len(settings['methods'])} methods, {len(settings['domains'])} domains")
    names, states = [NONE, *settings["methods"]], {name: build(name).n_states for name in settings["domains"]}
    exact = settings["measure"]["exact_states"]
    jobs, walks = [], []
    # Large domains and the competitor without options have one seed.
    for domain, name, seed in product(states, names, settings["seeds"]):
        competitor = {"domain": domain, "method": name, "seed": seed, "code": _code(name)}
        if not seed or (name != NONE and states[domain] <= exact):
            how = settings["measure"] | (settings["estimate"] if states[domain] > exact else {})
            jobs.append({**how, **competitor})
        if not seed and states[domain] <= settings["cover"]["most_states"]:
            del competitor["seed"]
            walks.append({**settings["cover"], **competitor})
    # The longest jobs first, so that no worker is alone at the end.
    jobs.sort(key=lambda job: -states[job["domain"]])
    results = _tables(jobs, pmap(measure, jobs))
    results["online"] = [
        {"domain": job["domain"], "method": job["method"], "seed": seed, "steps": steps}
        for job, found in zip(walks, pmap(cover, walks), strict=True)
        for seed, steps in zip(job["seeds"], found, strict=False)
    ]
    return results | {"methods": names, "domains": list(settings["domains"])}


def _code(name: str) -> str:
    """Hash of the file of a method, which may be outside of the library."""
    if name == NONE:
        return ""
    file = Path(inspect.getfile(declared(name).function))
    return hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest()


def _tables(jobs: Sequence[Mapping[str, Any]], done: Sequence[dict[str, Any]]) -> Results:
    tables: Results = {"rows": [], "learning": [], "discovery": [], "pictures": {}}
    for job, found in zip(jobs, done, strict=True):
        key = {"domain": job["domain"], "method": job["method"], "seed": job["seed"]}
        if found["same"]:
            continue
        tables["rows"] += [{**key, **row} for row in found["rows"]]
        tables["learning"] += [
            {**key, "n": row["n"], "how": row["how"], "run": run, "mean_return": float(x)}
            for row in found["learning"]
            for run, x in enumerate(row["returns"])
        ]
        if not job["seed"]:
            row = {"refused": found["refused"], "seconds": found["seconds"]}
            tables["discovery"].append({**key, **row, "states": build(job["domain"]).n_states})
            if found["policy"] is not None:
                drawn = {part: found[part] for part in ("policy", "labels")}
                tables["pictures"].setdefault(job["method"], {})[job["domain"]] = drawn
    return tables


def order(results: Results) -> list[Row]:
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


def report(results: Results, settings: Settings, seconds: float) -> Report:
    """The first three methods by measure, and the page."""
    rows = order(results)
    found = {
        name: [{k: v for k, v in row.items() if k != "measure"} for row in of]
        for name, of in groups(rows, "measure").items()
    }
    data = {
        "contest": CONTEST.name,
        "size": settings["size"],
        "methods": settings["methods"],
        "domains": results["domains"],
        "ranking": found,
        "seconds": seconds,
    }
    first = [(name, *(str(row["method"]) for row in of[:3])) for name, of in found.items()]
    html = page(results, settings, seconds, origin(current_engine()[0]))
    texts = {"data/ranking.csv": to_csv(rows), "index.html": html}
    return Report(("measure", "1st", "2nd", "3rd"), first, data, texts)


CONTEST = Contest("methods", "every method of discovery on the same domains", chosen, study, report)
