"""Run the benchmarks and print one table.

``python -m benchmarks [NAME ...] [--store]``; with ``--store`` the rows replace those
of the same benchmarks in ``benchmarks/ratios.csv``, which docs/benchmarks.md shows.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable, Iterator

import pandas as pd

from benchmarks import agents, core, deep, planner, reading, simple_options
from benchmarks.stored import read_table, store_table
from benchmarks.timing import Row

BENCHMARKS: dict[str, Callable[[], Iterator[Row]]] = {
    "first-call": core.time_first_call,
    "discovery": core.compare_discovery,
    "simpleoptions": simple_options.compare_discovery,
    "diffusion": core.compare_diffusion,
    "learning": core.compare_learning,
    "wrapper": agents.time_wrapper,
    "vector-wrapper": agents.time_vector_wrapper,
    "explore": agents.time_explore,
    "reading": reading.time_reading,
    "planner": planner.measure_hall,
    "turning": planner.measure_turning,
    "million": core.time_a_million_states,
    "deep": deep.compare_with_allo,
}


def main() -> None:
    """Print rows as they are measured."""
    all_names = ", ".join(BENCHMARKS)
    parser = argparse.ArgumentParser(
        description="Ratios against what a user would write instead."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {all_names}")
    parser.add_argument(
        "--store", action="store_true", help="write rows to benchmarks/ratios.csv"
    )
    arguments = parser.parse_args()
    names = arguments.names
    unknown = sorted(set(names) - BENCHMARKS.keys())
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {all_names}")
    if not names:
        # The comparison of trained networks takes minutes: it runs if it is named.
        names = [name for name in BENCHMARKS if name != "deep"]

    machine = platform.processor() or platform.machine()
    print(f"{machine}, {os.cpu_count()} cores, CPU seconds unless stated")
    print(f"{'':58}{'ours':>16}{'theirs':>12}{'ratio':>10}")
    for name in names:
        rows = []
        for row in BENCHMARKS[name]():
            print(row, flush=True)
            rows.append(row)
        if arguments.store:
            store_rows(name, rows)


def store_rows(benchmark: str, rows: list[Row]) -> None:
    """Store the rows of a benchmark, in place of those that it had before."""
    stored = read_table("ratios")
    if not stored.empty:
        stored = stored[stored.benchmark != benchmark]
    table = pd.DataFrame([row.to_dict() for row in rows])
    table.insert(0, "benchmark", benchmark)
    store_table("ratios", pd.concat([stored, table]))


if __name__ == "__main__":
    main()
