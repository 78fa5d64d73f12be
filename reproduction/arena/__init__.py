"""Comparisons that are not part of the paper: discovery methods, and agents.

Methods are compared on the same domains, and agents on the same tasks.

``python -m reproduction arena methods`` and ``python -m reproduction arena agents``
write a page with tables beside it; an interrupted run continues.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from markupsafe import Markup

from eigenoptions._validation import check_choice
from reproduction.lab import open_lab
from reproduction.page import write_page


def main(arguments: Sequence[str]) -> None:
    """Compare discovery methods, or agents with options, and write an HTML page."""
    parser = argparse.ArgumentParser(
        "python -m reproduction arena", description=main.__doc__
    )
    parser.add_argument(
        "comparison", nargs="?", choices=("methods", "agents"), default="methods"
    )
    parser.add_argument(
        "--only",
        default="",
        metavar="NAME,...",
        help="methods or agents (default: all)",
    )
    parser.add_argument(
        "--domains",
        default="",
        metavar="NAME,...",
        help="domains or tasks (default: all)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a small run that checks that everything works",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="default: out/arena-methods or -agents"
    )
    options = parser.parse_args(arguments)
    comparison = import_module(f"reproduction.arena.{options.comparison}")
    folder = options.out or Path(f"out/arena-{options.comparison}")
    names, domains = (
        [name for name in text.split(",") if name]
        for text in (options.only, options.domains)
    )
    for name in names:
        check_choice("--only", name, list(comparison.NAMES))
    for name in domains:
        check_choice("--domains", name, list(comparison.DOMAINS))
    domains = domains or list(
        comparison.QUICK_DOMAINS if options.quick else comparison.DOMAINS
    )
    with open_lab(folder, quick=options.quick) as lab:
        data = comparison.run(lab, names or list(comparison.NAMES), domains)
        (folder / "data").mkdir(exist_ok=True)
        for name, table in data.items():
            table.to_csv(folder / "data" / f"{name}.csv", index=False)
        title, introduction, sections = comparison.describe(data, quick=options.quick)
        files = Markup(", ").join(
            Markup('<a href="data/{0}.csv">{0}.csv</a>').format(name) for name in data
        )
        facts = Markup(
            "<p>{}</p><p class='facts'>{:.1f} minutes of CPU time. Data: {}.</p>"
        )
        header = facts.format(introduction, lab.seconds / 60, files)
        write_page(folder / "index.html", title, sections, header=header)
    print(f"report: {folder / 'index.html'}")
