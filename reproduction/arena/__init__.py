"""Comparisons that are not part of the paper: discovery methods on the same domains, and agents on the same tasks.

``python -m reproduction arena methods`` and ``python -m reproduction arena agents`` write a page with tables beside it;
an interrupted run continues.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from reproduction.lab import open_lab


def main(arguments: Sequence[str]) -> None:
    """Compare discovery methods, or agents with and without options, and write an HTML page."""
    parser = argparse.ArgumentParser("python -m reproduction arena", description=main.__doc__)
    parser.add_argument("comparison", nargs="?", choices=("methods", "agents"), default="methods")
    parser.add_argument("--only", default="", metavar="NAME,...", help="methods or agents (default: all)")
    parser.add_argument("--domains", default="", metavar="NAME,...", help="domains or tasks (default: all)")
    parser.add_argument("--quick", action="store_true", help="a small run that checks that everything works")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="default: out/arena-methods, out/arena-agents"
    )
    options = parser.parse_args(arguments)
    comparison = import_module(f"reproduction.arena.{options.comparison}")
    folder = options.out or Path(f"out/arena-{options.comparison}")
    names, domains = ([name for name in text.split(",") if name] for text in (options.only, options.domains))
    with open_lab(folder, quick=options.quick) as lab:
        data = comparison.run(lab, names, domains)
        (folder / "data").mkdir(exist_ok=True)
        for name, table in data.items():
            table.to_csv(folder / "data" / f"{name}.csv", index=False)
        comparison.write(folder / "index.html", data, quick=options.quick, seconds=lab.seconds)
    print(f"report: {folder / 'index.html'}")
