"""Run the paper's experiments and write a report.

``python -m reproduction [--only figure7] [--quick] [--atari]`` runs the experiments.
``python -m reproduction atari GAME`` studies one Atari game, and
``python -m reproduction authors FOLDER`` runs the authors' bottleneck options.
What goes beyond the paper is in ``python -m studies``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from reproduction.experiment import (
    Experiment,
    list_experiments,
    load_experiment,
    read_title,
)
from reproduction.lab import Lab, open_lab
from reproduction.report import (
    Outcome,
    print_claims,
    read_chapters,
    write_chapter,
    write_report,
)
from reproduction.stored_run import describe_changes

STUDIES = ("atari", "authors")


def main(arguments: Sequence[str]) -> None:
    """Run experiments, and write a page about these and all that were run before."""
    options = make_parser().parse_args(arguments)
    names = list_experiments()
    chosen = [name for name in options.only.split(",") if name] or names
    for name in chosen:
        if name not in names:
            raise ValueError(
                f"no experiment called {name!r}: choose from {', '.join(names)}"
            )

    experiments = [load_experiment(name) for name in chosen]
    experiments.sort(key=lambda experiment: experiment.order)
    with open_lab(options.out, quick=options.quick, atari=options.atari) as lab:
        for experiment in experiments:
            lab.describe(experiment.title)
            write_chapter(options.out, run_experiment(lab, experiment), lab)

        chapters = read_chapters(lab, names)
        known = {chapter.name for chapter in chapters}
        missing = sorted(read_title(name) for name in names if name not in known)
        page = write_report(options.out, chapters, lab, missing)

    print_claims([claim for chapter in chapters for claim in chapter.section.claims])
    if not (missing or options.quick or options.atari):
        print(describe_changes(json.loads((options.out / "results.json").read_text())))
    print(f"report: {page}")


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command."""
    parser = argparse.ArgumentParser("python -m reproduction", description=__doc__)
    parser.add_argument(
        "--only",
        default="",
        metavar="NAME,...",
        help="experiments to run (default: all)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small runs that check that everything works",
    )
    parser.add_argument(
        "--atari",
        action="store_true",
        help="run the games instead of using stored results",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("report"),
        metavar="DIR",
        help="default: report",
    )
    return parser


def run_experiment(lab: Lab, experiment: Experiment) -> Outcome:
    """Run an experiment and judge its claims."""
    seconds_before = lab.seconds
    settings = experiment.choose_settings(lab.quick)
    data = experiment.run(lab, settings)
    return Outcome(
        experiment=experiment,
        data=data,
        settings=settings,
        seconds=lab.seconds - seconds_before,
        claims=experiment.judge(data),
    )


if __name__ == "__main__":
    try:
        if len(sys.argv) > 1 and sys.argv[1] in STUDIES:
            study = import_module(f"reproduction.{sys.argv[1]}")
            study.main(sys.argv[2:])
        else:
            main(sys.argv[1:])
    except KeyboardInterrupt:
        print(
            "interrupted: the same command continues where this run stopped",
            file=sys.stderr,
        )
        sys.exit(130)
    except (ValueError, OSError, ImportError) as error:
        notes = getattr(error, "__notes__", [])
        sys.exit(" ".join([f"error: {error}", *notes]))
