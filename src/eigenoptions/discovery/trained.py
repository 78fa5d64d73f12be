"""Experience on which a feature map is trained, and the options it gives; see `eigenoptions.deep`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import check_int
from eigenoptions.deep import learn
from eigenoptions.deep.dataset import Collector
from eigenoptions.discovery.experience import Linear
from eigenoptions.features import Map, rows_of
from eigenoptions.mdp import Transitions
from eigenoptions.options import Purpose, eigenpurposes
from eigenoptions.options.fitted import checked_actions, fit
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.spectra import Spectrum

# Steps without a rise of its potential after which an option ends.
PATIENCE = 8
# The feature map that is trained on the transitions.
TRAINED = "deep"
# Default number of eigenfunctions of trained features, with the constant, and most transitions for fitted options.
DEFAULT_LEARNED, MAX_FIT_TRANSITIONS = 9, 20_000


class TrainedExperience(Linear):
    """Transitions on which a feature map is trained (see `deep.learn`); each distinct observation is kept once.

    Parameters
    ----------
    n_actions
        Number of actions.
    settings
        Settings of `deep.learn`; `training_steps` and `seed` are its `steps` and `rng`.

    Attributes
    ----------
    gram, n_transitions, n_seen
        The transitions, their number, and the number of distinct observations.
    last, features, about
        Of the last training: the spectrum, the feature map, with which the next one continues, and entries of the
        provenance.
    """

    gamma = 0.9

    def __init__(self, n_actions: int, **settings: Any) -> None:
        self.n_actions, self.gram = int(n_actions), Collector()
        renamed = {"training_steps": "steps", "seed": "rng"}
        self.settings = {renamed.get(name, name): value for name, value in settings.items()}
        self.last: Any = None
        self.features: Any = None
        self.about: dict[str, Any] = {}
        self.n_transitions = self.n_seen = 0

    def add(self, batch: Transitions) -> None:
        """Add a batch of transitions."""
        checked_actions(batch, self.n_actions)
        self.gram.add(batch)
        self.n_transitions, self.n_seen = len(self.gram), self.gram.n_distinct

    def spectrum(self, k: int | None = None) -> Spectrum:
        """Train, and return the spectrum of the trained features; k None: 9, the constant included."""
        settings = dict(self.settings)
        if self.features is not None:
            settings["encoder"] = self.features
        self.last = found = learn(self.gram.data(), DEFAULT_LEARNED if k is None else k, **settings)
        self.features, rated = found.features, found.certificate
        assert rated is not None
        certificate = {"resolved": rated.resolved.tolist(), "score": rated.score}
        self.about = {"operator": "learned", "certificate": certificate}
        return found

    def purposes(
        self, n_options: int | None, both_signs: bool, skip_zero: bool, at_most: bool
    ) -> list[Purpose]:
        """Eigenpurposes of features that are trained now, as many as are wanted."""
        wanted = 2 * (DEFAULT_LEARNED - 1) if n_options is None else check_int("n_options", n_options)
        found = self.spectrum(-(-wanted // (2 if both_signs else 1)) + (1 if skip_zero else 0))
        return eigenpurposes(found, both_signs=both_signs, skip_zero=skip_zero)[:wanted]

    def learned(self, policy: str, purposes: list[Purpose], **how: Any) -> LinearOptionSet:
        """Options learned by `fit`, or by gradient (`deep.heads`), which has no further setting."""
        data = self.gram.data()
        fitted = fit_numbered(*data.sample(MAX_FIT_TRANSITIONS), purposes, self.features, **how)
        # Fitted values are never exact, and an option whose potential no longer rises could run for ever.
        return fitted.with_termination(patience=PATIENCE)


def fit_numbered(
    observations: NDArray[Any],
    batch: Transitions,
    purposes: Sequence[Purpose],
    features: Any,
    *,
    basis: Map | None = None,
    **settings: Any,
) -> LinearOptionSet:
    """As `fitted.fit` for a trained encoder, from transitions between rows of `observations`, each encoded once.

    Without a basis, action values are linear in all layers of the encoder.
    """
    if basis is None:
        more = features.with_all_layers()
        added = (0, more.n_features - features.n_features)
        features, purposes = more, [replace(p, potential=np.pad(p.potential, added)) for p in purposes]
    tables = [None if phi is None else rows_of(phi, observations) for phi in (features, basis)]
    looked_up = [None if table is None else table.__getitem__ for table in tables]
    fitted = fit(batch, purposes, looked_up[0], basis=looked_up[1], **settings)  # type: ignore[arg-type]
    return replace(fitted, features=features, basis=basis)
