"""Options of a table of cells: for recorded vectors without a feature map.

Vectors are sorted into the cells of a grid. Each cell is a state of a table, so options
are those of a table, computed and not fitted. They act on observations: the cell is a
feature of them (`vectors.Cells`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from eigenoptions.discovery.method import NoOptionsError
from eigenoptions.discovery.request import Request
from eigenoptions.discovery.tables import discover_table
from eigenoptions.mdp import graph
from eigenoptions.options import OptionSet
from eigenoptions.options.solver import compute_outcomes
from eigenoptions.options.tuning import Exploration
from eigenoptions.samples import Transitions, check_columns
from eigenoptions.samples.columns import ColumnReport
from eigenoptions.samples.features.states import StateMap
from eigenoptions.samples.linear import LinearOptionSet
from eigenoptions.samples.sampling import Samples
from eigenoptions.samples.tuning import tune_at_examples, tune_on_cells
from eigenoptions.vectors.cells import Cells
from eigenoptions.vectors.model import VectorModel, warn_of_few_steps


def discover_cells(samples: Samples, request: Request) -> LinearOptionSet:
    """Options of recorded vectors, on a table of their cells.

    The discount of the options' purposes is 0.97 by default. It counts for a step, and
    it takes three steps or so to cross a cell, so this is some 0.9 for each cell.
    """
    columns = request.columns
    cell_size = request.cell_size
    gamma = 0.97 if request.gamma is None else request.gamma
    request = replace(request, columns=None, cell_size=None, gamma=gamma)
    request.check_use("recorded vectors")

    report = check_columns(samples.transitions, columns, progress=request.progress)
    warn_of_few_steps(len(samples.transitions))
    model = cut_samples(samples, report, cell_size)
    provenance = {"source": "samples", **samples.provenance}
    options = discover_table(model.mdp, request, provenance, is_environment=True)
    _warn_of_columns(report, samples.transitions, model.cells, options)
    exploration = tune_on_cells(options, model.visits)
    return act_on_cells(options, model.cells, gamma, exploration)


def tune_fitted(
    options: LinearOptionSet, samples: Samples, report: ColumnReport | None = None
) -> Exploration:
    """How random decisions should use options that were fitted to features.

    They are looked at in a table of cells: in each cell an option does what it does at
    the example there.

    Parameters
    ----------
    options : LinearOptionSet
        The options.
    samples : Samples
        The samples, whose observations are vectors.
    report : ColumnReport, optional
        Which columns are used. By default all that vary.
    """
    if report is None:
        report = check_columns(samples.transitions, progress=False)
    return tune_at_examples(cut_samples(samples, report), options)


def _warn_of_columns(
    report: ColumnReport, steps: Transitions, cells: Cells, options: OptionSet
) -> None:
    """Name columns that drift, with their share of the first potentials."""
    rows = slice(None, None, max(1, len(steps) // 5_000))
    states = cells.find_states(steps.obs[rows])
    firsts = options.purposes[:6:2]
    potentials = np.stack([np.asarray(p.potential)[states] for p in firsts], axis=1)
    labels = [purpose.label for purpose in firsts]
    report.warn(report.explain(steps.obs[rows], potentials, labels))


def act_on_cells(
    options: OptionSet, cells: StateMap, gamma: float, exploration: Exploration
) -> LinearOptionSet:
    """Options of a table of cells as options that act on observations.

    Parameters
    ----------
    options : OptionSet
        Options of the table.
    cells : Cells or Clusters
        The map from observations to its states.
    gamma : float
        Discount of the options' values.
    exploration : Exploration
        How random decisions use them.
    """
    mdp = options.mdp
    potentials = np.stack([np.asarray(p.potential) for p in options.purposes])
    # q(s, a) = E[f(s') - f(s) + gamma v(s')], one table for each option.
    arrival = potentials + gamma * options.value
    outcomes = compute_outcomes(mdp, arrival.T, potentials.T)
    q = np.moveaxis(outcomes, 2, 0) - potentials[:, :, None]
    # No observation belongs to an additional state.
    q = q[:, : mdp.n_listed]
    states = np.arange(mdp.n_listed)
    purposes = [p.extend(states, mdp.n_listed) for p in options.purposes]
    return LinearOptionSet(
        purposes,
        cells,
        mdp.n_actions,
        weights=np.moveaxis(q, 1, 2),
        provenance=options.provenance,
        gamma=gamma,
        exploration=exploration,
    )


def cut_samples(
    samples: Samples, report: ColumnReport, cell_size: ArrayLike | None = None
) -> VectorModel:
    """The cells that recorded vectors connect.

    Parameters
    ----------
    samples : Samples
        Recorded steps.
    report : ColumnReport
        Which columns are used.
    cell_size : float or array, default=None
        Sides of the cells; see `VectorModel.of`.
    """
    model = VectorModel.from_steps(
        samples.transitions, report, cell_size, n_actions=samples.n_actions
    )

    # What the data do not connect with the rest has no part in the eigenvectors.
    component = connected_components(graph(model.mdp), directed=False)[1]
    kept = np.flatnonzero(component == np.bincount(component).argmax())
    if len(kept) < 2:
        raise NoOptionsError(
            "no step leads from one cell to another: record more steps, or give a "
            "smaller cell_size"
        )
    return model.restrict(kept)
