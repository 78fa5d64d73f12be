"""Run the paper's experiments and write a report: ``python -m reproduction [--only figure7] [--quick] [--atari]``.

``python -m reproduction atari GAME`` studies one Atari game, ``python -m reproduction arena`` compares methods,
``python -m reproduction ogbench`` plans to goals in logged data, ``python -m reproduction shaping`` compares dense
rewards, ``python -m reproduction exploration`` measures the automatic setting of exploration.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from reproduction import atari
from reproduction.experiments import find_experiments
from reproduction.lab import Experiment, Lab, MissingJobsError, open_lab
from reproduction.report import Outcome, paper_settings, print_claims, write_report


def main(arguments: Sequence[str]) -> None:
    """Run the experiments that have no results yet, and write a page about all that have."""
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
    options = parser.parse_args(arguments)
    experiments = [*find_experiments(), *atari.EXPERIMENTS]
    names = [e.name for e in experiments]
    chosen = [name for name in options.only.split(",") if name] or names
    for name in chosen:
        if name not in names:
            raise ValueError(
                f"no experiment called {name!r}: choose from {', '.join(names)}"
            )
    outcomes, missing = [], []
    with open_lab(options.out, quick=options.quick, atari=options.atari) as lab:
        for experiment in experiments:
            lab.describe(experiment.title)
            lab.compute = experiment.name in chosen
            try:
                outcomes.append(run_experiment(lab, experiment))
            except MissingJobsError:
                missing.append(experiment.title)
        page = write_report(options.out, outcomes, lab, missing)
    print_claims([claim for outcome in outcomes for claim in outcome.claims])
    print(f"report: {page}")


def run_experiment(lab: Lab, experiment: Experiment) -> Outcome:
    """Run an experiment and judge its claims."""
    lab.seconds = 0.0
    settings = paper_settings(experiment, lab.quick)
    data = experiment.run(lab, **settings)
    return Outcome(experiment, data, settings, lab.seconds, experiment.judge(data))


if __name__ == "__main__":
    try:
        if sys.argv[1:2] in (
            ["atari"],
            ["arena"],
            ["ogbench"],
            ["shaping"],
            ["exploration"],
        ):
            import_module(f"reproduction.{sys.argv[1]}").main(sys.argv[2:])
        else:
            main(sys.argv[1:])
    except KeyboardInterrupt:
        print(
            "interrupted: the same command continues where this run stopped",
            file=sys.stderr,
        )
        sys.exit(130)
    except (ValueError, OSError, ImportError) as error:
        sys.exit(" ".join([f"error: {error}", *getattr(error, "__notes__", [])]))
