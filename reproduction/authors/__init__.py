"""Runs with the authors' data: their bottleneck options and their eigenvectors.

``python -m reproduction authors FOLDER`` reads the files of the published program,
``4rooms_split_1.mdp`` to ``4rooms_split_4.mdp``, and writes the results of all runs
with them as CSV beside this file. The experiments show these results beside those of
our own options. The files are not part of this repository.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import eigenoptions as eo
from eigenoptions._types import FloatArray
from reproduction.experiments import bottlenecks, multiple_tasks, random_walks
from reproduction.lab import Data, Result, stack_tables
from reproduction.runs.diffusion import diffuse
from reproduction.runs.options import (
    AUTHORS,
    find_clusters,
    find_edges_from_walls,
    list_walls,
)
from reproduction.statistics import summarize_runs

# Repeated eigenvalues of the 4-room domain and of the I-Maze are 1, and there the
# published program has no eigenvectors of free cells: see `options.add_walls`.
BASIS_MAZE = "open-room"


def main(arguments: Sequence[str]) -> None:
    """Run everything that uses the authors' data, and write the results."""
    parser = argparse.ArgumentParser(
        "python -m reproduction authors",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="folder of the four .mdp files")
    parser.add_argument(
        "--out", type=Path, default=AUTHORS, help="default: %(default)s"
    )
    settings = parser.parse_args(arguments)

    settings.out.mkdir(parents=True, exist_ok=True)
    tables = {"basis": find_basis(), **run_bottlenecks(str(settings.folder))}
    for name, table in tables.items():
        path = settings.out / f"{name}.csv"
        table.to_csv(path, index=False, float_format="%.7g")
        print(f"{path}: {len(table)} rows")


def run_bottlenecks(folder: str) -> Data:
    """What the experiments measure of bottleneck options, for the authors' own.

    The settings and seeds are those of our options.
    """
    options = {"method": "files", "folder": folder}
    measured = bottlenecks.measure_options(maze="four-rooms", options=options)

    walks = random_walks.list_jobs(mazes=["four-rooms"], options=[], readings=[])
    (job,) = walks["walks"]
    walked = job.function(**{**job.arguments, "options": options})

    learned = []
    for job in multiple_tasks.list_jobs(readings=[])["learning"]:
        if job.columns["agent"] == multiple_tasks.BOTTLENECK:
            returns = job.function(**{**job.arguments, "options": options})
            learned.append(Result(job.columns, summarize_runs(returns)))
    return {
        "diffusion": diffuse(maze="four-rooms", options=options),
        "starts": measured["starts"].replace({"option": "room"}, "file", regex=True),
        "planning": measured["planning"],
        "sets": walked["sets"].assign(**walks["walks"][0].columns),
        "walks": walked["walks"].assign(**walks["walks"][0].columns),
        "learning": stack_tables(learned),
    }


def find_basis() -> pd.DataFrame:
    """Eigenvectors of repeated eigenvalues as the published program finds them.

    A row has the coefficients of one of them in our basis: ``first`` is the number of
    the first of two eigenvectors, ``own`` and ``next`` belong to the two, and
    ``number`` is that of the program's eigenvector. Eigenvalue 1, which has more than
    two, is left out.
    """
    mdp = eo.maze(BASIS_MAZE)
    spectrum = eo.spectrum(eo.graph(mdp))
    values, theirs = solve_as_published(mdp)

    rows = []
    for cluster in find_clusters(spectrum):
        value = spectrum.values[cluster.start]
        if np.isclose(value, 1.0):
            continue
        ours = spectrum.vectors[:, cluster]
        coefficients = theirs[:, np.isclose(values, value, atol=1e-8)].T @ ours
        for i, (own, following) in enumerate(coefficients):
            first = cluster.start + 1
            row = {"first": first, "number": first + i, "own": own, "next": following}
            rows.append(row)
    return pd.DataFrame(rows)


def solve_as_published(mdp: eo.MDP) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues in ascending order, and the entries of free cells of eigenvectors.

    Walls are states with one-way edges to the free cells beside them, so the matrix is
    not symmetric, and its eigenvectors are what NumPy's general solver returns.
    """
    edges = find_edges_from_walls(mdp)
    n_states = mdp.n_states
    size = n_states + len(edges)
    W = np.zeros((size, size))
    W[:n_states, :n_states] = eo.graph(mdp).toarray()
    W[n_states:, :n_states] = edges

    # The program numbers cells in reading order, walls among them.
    cells = np.concatenate([np.asarray(mdp.coords), list_walls(mdp)])
    order = np.lexsort((cells[:, 1], cells[:, 0]))
    W = W[np.ix_(order, order)]
    degree = W.sum(axis=1)
    degree[degree == 0] = 1.0
    scale = np.diag(degree**-0.5)
    L = scale @ (np.diag(degree) - W) @ scale

    values, vectors = np.linalg.eig(L)
    ascending = values.argsort()[::-1][::-1]
    is_free = order < n_states
    return values[ascending].real, vectors[is_free][:, ascending].real
