"""The stored run: verdicts that the pages speak of, and the versions that gave them.

``python -m reproduction.stored_run [report]`` stores a full run. It writes

* ``verdicts.csv``: the verdict of each claim under each reading that applies to it;
* ``requirements.lock``: the versions of all packages that the reproduction needs.

Every later full run is compared with it, and says what differs.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import pandas as pd

from reproduction.readings import MAIN

HERE = Path(__file__).parent
VERDICTS = HERE / "verdicts.csv"
LOCK = HERE / "requirements.lock"


def store_run(results: Mapping[str, Any]) -> None:
    """Store the verdicts of ``results.json``, and the versions that are installed."""
    if results["quick"]:
        raise ValueError("a quick run has no verdicts: run without --quick")
    tabulate_verdicts(results).to_csv(VERDICTS, index=False)
    lines = [f"{name}=={number}\n" for name, number in list_installed().items()]
    LOCK.write_text("".join(lines), encoding="utf-8")


def tabulate_verdicts(results: Mapping[str, Any]) -> pd.DataFrame:
    """A row for each claim and reading, as in ``results.json``."""
    rows = [
        {
            "claim": name,
            "section": claim["section"],
            "game": claim["game"],
            "reading": reading,
            "verdict": verdict,
        }
        for name, claim in sorted(results["claims"].items())
        for reading, verdict in claim["readings"].items()
    ]
    return pd.DataFrame(rows)


def read_verdicts() -> pd.DataFrame:
    """The stored verdicts: a row for each claim and reading."""
    return pd.read_csv(VERDICTS)


def describe_changes(results: Mapping[str, Any]) -> str:
    """How the verdicts and versions of a run differ from the stored ones, in words."""
    index = ["claim", "reading"]
    now = tabulate_verdicts(results).set_index(index).verdict
    stored = read_verdicts().set_index(index).verdict
    verdicts = pd.DataFrame({"now": now, "stored": stored}).fillna("none")
    changed = verdicts[verdicts.now != verdicts.stored]
    if changed.empty:
        return "verdicts: all as in the stored run"

    lines = ["verdicts that differ from the stored run:"]
    for row in changed.reset_index().itertuples():
        place = row.claim if row.reading == MAIN else f"{row.claim} ({row.reading})"
        lines.append(f"  {place}: {row.now}, stored {row.stored}")
    versions = list_other_versions()
    if versions:
        lines.append(f"versions that differ: {', '.join(versions)}")
    return "\n".join(lines)


def list_other_versions() -> list[str]:
    """Packages whose version is not that of the stored run."""
    installed = list_installed()
    stored = read_lock()
    return [
        f"{name} {installed.get(name, 'not installed')} (stored {number})"
        for name, number in stored.items()
        if installed.get(name) != number
    ]


def read_lock() -> dict[str, str]:
    """The stored versions, by name of the package."""
    versions = {}
    for line in LOCK.read_text(encoding="utf-8").splitlines():
        name, number = line.split("==")
        versions[name] = number
    return versions


def list_installed() -> dict[str, str]:
    """Versions of the packages that the reproduction needs, and of those they need."""
    wanted = (HERE / "requirements.txt").read_text(encoding="utf-8").splitlines()
    versions: dict[str, str] = {}
    waiting = [*_list_names(requires("eigenoptions") or []), *_list_names(wanted)]
    while waiting:
        name = waiting.pop()
        if name in versions:
            continue
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            # Needed on other systems only.
            continue
        waiting += _list_names(requires(name) or [])
    return dict(sorted(versions.items()))


def _list_names(requirements: Iterable[str]) -> Iterator[str]:
    """Names of requirements that are no extras, such as numpy of ``NumPy>=1.24``."""
    for requirement in requirements:
        if "extra ==" in requirement:
            continue
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        yield re.sub(r"[-_.]+", "-", name).lower()


def main(arguments: list[str]) -> None:
    """Store the run whose report is in a folder."""
    folder = Path(*arguments or ["report"])
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    store_run(results)
    print(f"stored {VERDICTS.name} and {LOCK.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
