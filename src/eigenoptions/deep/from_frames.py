"""Options of trained features: of frames, and of whatever else cannot be listed.

Features are trained on the samples, and cut into clusters. The recorded transitions
between clusters are a table, and `solve` finds its options. So these options end and
settle like those of any table, and how often to use them is tuned on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions._types import (
    FeatureFunction,
    FeatureMatrix,
    FloatArray,
    IndexArray,
)
from eigenoptions.discovery.request import Request
from eigenoptions.mdp import MDP
from eigenoptions.options import Purpose, eigenpurposes
from eigenoptions.options.solver import solve
from eigenoptions.options.tuning import Exploration
from eigenoptions.samples import ColumnReport, Transitions
from eigenoptions.samples.features import compute_features
from eigenoptions.samples.linear import LinearOptionSet
from eigenoptions.samples.sampling import Samples
from eigenoptions.samples.tuning import tune_at_examples, tune_on_cells
from eigenoptions.vectors.from_vectors import act_on_cells

if TYPE_CHECKING:
    from eigenoptions.deep import Dataset, LearnedSpectrum
    from eigenoptions.deep.clusters import Clusters
    from eigenoptions.deep.encoder import Encoder


_ColumnMap = TypeVar("_ColumnMap", "Encoder", "Clusters")


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned of samples.

    Attributes
    ----------
    data : Dataset
        The transitions between numbered observations.
    spectrum : LearnedSpectrum
        The eigenfunctions.
    purposes : list of Purpose
        Those that were asked for: coefficients of the encoder's features.
    provenance : dict
        What the options record of it.
    report : ColumnReport, default=None
        The columns of vectors that the data and the spectrum have, if there are others.
    """

    data: Dataset
    spectrum: LearnedSpectrum
    purposes: list[Purpose]
    provenance: dict[str, Any]
    report: ColumnReport | None = None

    def read_columns(self, features: _ColumnMap) -> _ColumnMap:
        """The same features of whole observations."""
        if self.report is None:
            return features
        return features.read_columns(self.report.used, len(self.report.columns))

    @property
    def features(self) -> FeatureFunction:
        """The trained features, of whole observations."""
        trained: Any = self.spectrum.features
        features: FeatureFunction = self.read_columns(trained)
        return features

    def tabulate(self, n_transitions: int) -> tuple[FeatureMatrix, Transitions]:
        """Features of observations, and transitions between rows of them.

        Parameters
        ----------
        n_transitions : int
            Most transitions.
        """
        observations, numbered = self.data.thin_transitions(n_transitions)
        features: Any = self.spectrum.features
        return compute_features(features, observations), numbered

    def solve_clusters(
        self, n_actions: int, gamma: float, provenance: dict[str, Any]
    ) -> LinearOptionSet:
        """Find options on the table of clusters, as options that act on observations.

        Parameters
        ----------
        n_actions : int
            Number of actions.
        gamma : float
            Discount of the options' purposes.
        provenance : dict
            What the options record.
        """
        model = self._cut(n_actions)
        means = _average(model.functions, model.states, model.mdp.n_states)
        purposes = []
        for purpose in self.purposes:
            assert purpose.index is not None
            assert purpose.sign is not None
            potential = purpose.sign * means[:, purpose.index - 1]
            purposes.append(replace(purpose, potential=potential))

        about = {**provenance, **self.provenance, "learned": "table of clusters"}
        options = solve(model.mdp, purposes, gamma, provenance=about)
        exploration = tune_on_cells(options, model.visits)
        clusters = self.read_columns(model.clusters)
        return act_on_cells(options, clusters, gamma, exploration)

    def tune_on_clusters(self, options: LinearOptionSet, n_actions: int) -> Exploration:
        """How random decisions should use options that were fitted to trained features.

        They are looked at in the table of clusters: in each an option does what it does
        at one of the observations there.

        Parameters
        ----------
        options : LinearOptionSet
            The options, which act on whole observations.
        n_actions : int
            Number of actions.
        """
        # What was learned has only the columns that are used.
        trained: Any = self.spectrum.features
        options = replace(options, features=trained)
        return tune_at_examples(self._cut(n_actions), options)

    def _cut(self, n_actions: int) -> ClusterModel:
        """Clusters of what was learned, and their table."""
        from eigenoptions.deep.clusters import find_clusters

        clusters, functions, states, rows = find_clusters(self.data, self.spectrum)
        n_clusters = clusters.n_features
        return ClusterModel(
            clusters=clusters,
            functions=functions,
            states=states,
            mdp=_make_table(self.data, states, n_clusters, n_actions),
            visits=np.bincount(states[self.data.before], minlength=n_clusters),
            examples=self.data.observations[rows],
        )


@dataclass(frozen=True, eq=False)
class ClusterModel:
    """The table of clusters of recorded observations: a `StateModel`.

    Attributes
    ----------
    clusters : Clusters
        The map from observations to clusters.
    functions : array (n, k)
        Eigenfunctions of the distinct observations of the data.
    states : array (n,)
        The cluster of each of them.
    mdp : MDP
        One state per cluster.
    visits : array of int (m,)
        How many steps began in each cluster.
    examples : array (m, ...)
        The observation in the centre of each cluster.
    """

    clusters: Clusters
    functions: FloatArray
    states: IndexArray
    mdp: MDP
    visits: IndexArray
    examples: NDArray[Any]

    def find_states(self, obs: ArrayLike) -> IndexArray:
        """The cluster ``(N,)`` of each observation."""
        return self.clusters.find_states(obs)


def learn_purposes(
    samples: Samples,
    request: Request,
    training_steps: int | None = None,
    report: ColumnReport | None = None,
    n_functions: int = 9,
) -> Learned:
    """Train features on samples, and take the purposes of their eigenfunctions.

    Parameters
    ----------
    samples : Samples
        The samples.
    request : Request
        What the caller of `discover` asks for.
    training_steps : int, default=None
        The `steps` of `deep.learn`.
    report : ColumnReport, default=None
        Which columns of vectors are used. One that drifts is named in a warning.
    n_functions : int, default=9
        Fewest eigenfunctions that are learned: clusters need some, also where few
        options are asked for.
    """
    # Imported here: torch is optional, and takes a second.
    from eigenoptions.deep import Dataset, learn
    from eigenoptions.deep.training import (
        explain_functions,
        select_columns,
        warn_unresolved,
    )

    n_vectors = 8
    if request.n_options is not None:
        n_signs = 2 if request.both_signs else 1
        n_vectors = -(-request.n_options // n_signs)
    k = n_vectors + 1 if request.skip_zero else n_vectors

    transitions = samples.transitions
    if report is not None:
        transitions = select_columns(transitions, report)
    data = Dataset.of(transitions)
    # Few distinct observations have few functions.
    n_learned = max(k, min(n_functions, len(data.observations) // 2))
    learned = learn(
        data,
        n_learned,
        steps=training_steps,
        rng=request.rng,
        progress=request.progress,
        warn=False,
    )
    warn_unresolved(learned, k)
    purposes = eigenpurposes(
        learned, both_signs=request.both_signs, skip_zero=request.skip_zero
    )
    purposes = purposes[: request.n_options]

    assert learned.certificate is not None
    certificate = {
        "resolved": learned.certificate.resolved[:k].tolist(),
        "score": learned.certificate.score,
    }
    provenance = {"operator": "learned", "certificate": certificate}
    found = Learned(data, learned, purposes, provenance, report)
    if report is not None and report.suspects:
        trained: Any = learned.features
        whole = replace(learned, features=found.read_columns(trained))
        report.warn(explain_functions(report, samples.transitions.obs, whole))
    elif report is not None:
        report.warn()
    return found


def _make_table(
    data: Dataset, states: IndexArray, n_clusters: int, n_actions: int
) -> MDP:
    """The recorded transitions as a table of clusters."""
    log = (states[data.before], data.action, states[data.after], data.terminated)
    return MDP.from_transitions(log, n_clusters, n_actions)


def _average(functions: FloatArray, states: IndexArray, n_states: int) -> FloatArray:
    """Means ``(n_states, k)`` of functions over the members of each cluster."""
    sums = np.zeros((n_states, functions.shape[1]))
    np.add.at(sums, states, functions)
    sizes = np.bincount(states, minlength=n_states)
    means: FloatArray = sums / np.maximum(sizes, 1)[:, None]
    return means
