"""Experience on which a feature map is trained, and the options it gives; see `eigenoptions.deep`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._checks import whole
from eigenoptions.discovery.experience import POLICIES, Linear
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
    gram
        The transitions; its length is their number.
    last
        The spectrum of the last training, with its certificate; None before. The next training continues with it.
    """

    # The network, too, can be trained on the policies.
    policies = (*POLICIES, "gradient")
    gamma = 0.9

    def __init__(self, n_actions: int, **settings: Any) -> None:
        from eigenoptions.deep.dataset import Collector

        self.n_actions, self.gram = int(n_actions), Collector()
        renamed = {"training_steps": "steps", "seed": "rng"}
        self.settings = {renamed.get(name, name): value for name, value in settings.items()}
        self.last: Any = None

    @property
    def features(self) -> Any:
        """The trained feature map; None before the first training."""
        return None if self.last is None else self.last.features

    @property
    def about(self) -> dict[str, Any]:
        """Entries of the provenance: the operator, and the certificate of the last training."""
        found = self.last.certificate
        return {
            "operator": "learned",
            "certificate": {"resolved": found.resolved.tolist(), "score": found.score},
        }

    @property
    def n_transitions(self) -> int:
        """Number of transitions added."""
        return len(self.gram)

    @property
    def n_seen(self) -> int:
        """Number of distinct observations."""
        return self.gram.n_distinct

    def add(self, batch: Transitions) -> None:
        """Add a batch of transitions."""
        checked_actions(batch, self.n_actions)
        self.gram.add(batch)

    def spectrum(self, k: int | None = None) -> Spectrum:
        """Train, and return the spectrum of the trained features; k None: 9, the constant included."""
        from eigenoptions.deep import learn

        settings = dict(self.settings)
        if self.last is not None:
            settings["encoder"] = self.last.features
        self.last = learn(self.gram.data(), DEFAULT_LEARNED if k is None else k, **settings)
        return self.last  # type: ignore[no-any-return]

    def purposes(
        self, n_options: int | None, both_signs: bool, skip_zero: bool, at_most: bool
    ) -> list[Purpose]:
        """Eigenpurposes of features that are trained now, as many as are wanted."""
        wanted = 2 * (DEFAULT_LEARNED - 1) if n_options is None else whole("n_options", n_options)
        found = self.spectrum(-(-wanted // (2 if both_signs else 1)) + (1 if skip_zero else 0))
        return eigenpurposes(found, both_signs=both_signs, skip_zero=skip_zero)[:wanted]

    def learned(self, policy: str, purposes: list[Purpose], **how: Any) -> LinearOptionSet:
        """Options learned by `fit`, or by gradient (`deep.heads`), which has no further setting."""
        from eigenoptions.deep import heads

        data = self.gram.data()
        if policy == "gradient":
            if fitting := how.keys() - {"n_actions", "gamma", "provenance"}:
                raise ValueError(f"policy='gradient' has no setting {', '.join(sorted(fitting))}: remove it")
            return heads(data, purposes, self.features, **how)
        fitted = fit_numbered(*data.sample(MAX_FIT_TRANSITIONS), purposes, self.features, **how)
        # Fitted values are never exact, and an option whose potential no longer rises could run for ever.
        return fitted.guarded(patience=PATIENCE)


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
        features, purposes = more, [replace(p, direction=np.pad(p.direction, added)) for p in purposes]
    tables = [None if phi is None else rows_of(phi, observations) for phi in (features, basis)]
    looked_up = [None if table is None else table.__getitem__ for table in tables]
    fitted = fit(batch, purposes, looked_up[0], basis=looked_up[1], **settings)  # type: ignore[arg-type]
    return replace(fitted, features=features, basis=basis)
