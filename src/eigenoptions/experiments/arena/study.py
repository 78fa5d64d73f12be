"""The contest of methods as data: settings, jobs, and tables of their results."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eigenoptions.discovery.methods import method as declared
from eigenoptions.discovery.methods import methods as method_names
from eigenoptions.experiments.arena.domains import DOMAINS, build
from eigenoptions.experiments.arena.jobs import NONE, cover, measure
from eigenoptions.experiments.experiment import Pmap, Results, Settings

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


def run(settings: Settings, pmap: Pmap, methods: Sequence[str] = ()) -> Results:
    """Tables of the measures of every method on every domain of the settings.

    ``rows``: one per number of options and seed; ``learning``: one per number of options, chance and seed; ``online``:
    one per walk; ``discovery``: one per method and domain. ``pictures`` are the first options of each.
    """
    names = [NONE, *(methods or method_names())]
    jobs = [_job(settings, domain, name, seed) for domain, name, seed in _pairs(settings, names)]
    walks = [
        {**settings["cover"], "domain": domain, "method": name, "code": _code(name)}
        for domain, name, seed in _pairs(settings, names)
        if seed == 0 and build(domain).n_states <= settings["cover"]["most_states"]
    ]
    # The longest jobs first, so that no worker is alone at the end.
    order = np.argsort([-build(job["domain"]).n_states for job in jobs], kind="stable").tolist()
    done = pmap(measure, [jobs[i] for i in order])
    results = _tables([jobs[i] for i in order], done)
    results["online"] = [
        {"domain": job["domain"], "method": job["method"], "seed": seed, "steps": steps}
        for job, found in zip(walks, pmap(cover, walks), strict=True)
        for seed, steps in zip(job["seeds"], found, strict=False)
    ]
    return results | {"methods": names, "domains": list(settings["domains"])}


def _pairs(settings: Settings, names: Sequence[str]) -> list[tuple[str, str, int]]:
    """Domain, method and seed of every job; large domains and the competitor without options have one seed."""
    return [
        (domain, name, seed)
        for domain in settings["domains"]
        for name in names
        for seed in settings["seeds"]
        if not seed or (name != NONE and build(domain).n_states <= settings["measure"]["exact_states"])
    ]


def _job(settings: Settings, domain: str, name: str, seed: int) -> dict[str, Any]:
    job = {**settings["measure"], "domain": domain, "method": name, "seed": seed, "code": _code(name)}
    if build(domain).n_states > job["exact_states"]:
        job |= settings["estimate"]
    return job


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
