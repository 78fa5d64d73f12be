"""Comparisons that are not part of the paper: discovery methods, and agents.

Methods are compared on the same domains, and agents on the same tasks.

``python -m studies arena tabular`` runs tabular agents, and stores what
``docs/arena.md`` shows beside this file; ``... arena page`` writes the tables and the
picture of that page, ``... arena tuning`` chooses settings, ``... arena deep`` runs
deep agents, and ``... arena outside`` looks for rewards in other environments.
``python -m studies arena methods`` writes a page with tables beside it. An interrupted
run continues.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from markupsafe import Markup

from eigenoptions._validation import check_choice
from reproduction.lab import open_lab
from reproduction.page import write_page


def main(arguments: Sequence[str]) -> None:
    """Run one of the comparisons."""
    studies = {
        "tabular": run_tabular,
        "tuning": run_tuning,
        "page": run_page,
        "deep": run_deep,
        "outside": run_outside,
    }
    if arguments and arguments[0] in studies:
        studies[arguments[0]](arguments[1:])
    else:
        compare(arguments)


def run_tabular(arguments: Sequence[str]) -> None:
    """Run tabular agents, and store the tables that docs/arena.md is made of."""
    from studies.arena import ablation, rounds, tabular, views
    from studies.arena.tabular_page import FOLDER, store, summarize_coverage

    parser = _make_study_parser("tabular", run_tabular)
    parser.add_argument(
        "--tasks",
        default="",
        metavar="NAME,...",
        help="only runs on these tasks, whose results are then stored in DIR",
    )
    options = parser.parse_args(arguments)
    tasks = [name for name in options.tasks.split(",") if name]
    for name in tasks:
        check_choice("--tasks", name, list(tabular.ALL_TASKS))
    with open_lab(options.out, quick=options.quick) as lab:
        runs = tabular.run(lab, tasks or tabular.ALL_TASKS)
        columns = ["task", "way", "seed", "mean_goal", "first_goal", "learned"]
        tables = {
            "tabular": runs[columns].round(2),
            "coverage": summarize_coverage(runs).round(4),
        }
        if not tasks:
            tables["views"] = views.run(lab)
            tables["ablation"] = ablation.run(lab).round(1)
            tables["doors"] = rounds.run(lab).round(1)
    # Only a full run replaces what the page shows.
    is_full = not options.quick and not tasks
    folder = FOLDER if is_full else options.out
    store(tables, folder)
    print(f"stored: {', '.join(str(folder / f'{name}.csv') for name in tables)}")


def run_tuning(arguments: Sequence[str]) -> None:
    """Choose the settings of tabular agents, on other maps and seeds."""
    from studies.arena.tuning import GRIDS, tune

    options = _make_study_parser("tuning", run_tuning).parse_args(arguments)
    ways = ["plain"] if options.quick else list(GRIDS)
    with open_lab(options.out, quick=options.quick) as lab:
        scores, best = tune(lab, ways)
    print(scores.sort_values(["way", "score"]).to_string(index=False))
    for way, settings in best.items():
        print(f"{way}: {settings}")


def run_deep(arguments: Sequence[str]) -> None:
    """Run deep agents, and store what docs/arena.md shows of them."""
    from studies.arena import deep

    deep.main(arguments)


def run_outside(arguments: Sequence[str]) -> None:
    """Look for the first reward in environments outside of the arena, and store it."""
    from studies.arena import outside

    options = _make_study_parser("outside", run_outside).parse_args(arguments)
    with open_lab(options.out, quick=options.quick) as lab:
        runs = outside.run(lab)
    stored = options.out / "outside.csv" if options.quick else outside.STORED
    runs.to_csv(stored, index=False)
    print(f"stored: {stored}")


def run_page(arguments: Sequence[str]) -> None:
    """Write the tables and the picture of docs/arena.md from what is stored."""
    from studies.arena.page import PAGE, write_page

    argparse.ArgumentParser(
        "python -m studies arena page", description=run_page.__doc__
    ).parse_args(arguments)
    write_page()
    print(f"page: {PAGE}")


def _make_study_parser(
    name: str, study: Callable[[Sequence[str]], None]
) -> argparse.ArgumentParser:
    """Return the parser of a study."""
    parser = argparse.ArgumentParser(
        f"python -m studies arena {name}", description=study.__doc__
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a small run that checks that everything works",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(f"out/arena-{name}"),
        metavar="DIR",
        help=f"where results of jobs are kept (default: out/arena-{name})",
    )
    return parser


def compare(arguments: Sequence[str]) -> None:
    """Compare discovery methods, and write an HTML page."""
    parser = argparse.ArgumentParser(
        "python -m studies arena", description=compare.__doc__
    )
    parser.add_argument(
        "comparison", nargs="?", choices=("methods",), default="methods"
    )
    parser.add_argument(
        "--only",
        default="",
        metavar="NAME,...",
        help="methods (default: all)",
    )
    parser.add_argument(
        "--domains",
        default="",
        metavar="NAME,...",
        help="domains (default: all)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a small run that checks that everything works",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="default: out/arena-methods"
    )
    options = parser.parse_args(arguments)
    comparison = import_module(f"studies.arena.{options.comparison}")
    folder = options.out or Path(f"out/arena-{options.comparison}")

    every_domain = comparison.DOMAINS
    if options.quick:
        every_domain = comparison.QUICK_DOMAINS
    names = _split_names(options.only) or list(comparison.NAMES)
    domains = _split_names(options.domains) or list(every_domain)
    for name in names:
        check_choice("--only", name, list(comparison.NAMES))
    for name in domains:
        check_choice("--domains", name, list(comparison.DOMAINS))

    with open_lab(folder, quick=options.quick) as lab:
        data = comparison.run(lab, names, domains)
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


def _split_names(text: str) -> list[str]:
    """Return names that are separated by commas."""
    return [name for name in text.split(",") if name]
