"""How options are found in a feature space: what `features` of `discover` may be."""

from __future__ import annotations

from dataclasses import dataclass

from eigenoptions._types import FeatureFunction
from eigenoptions._validation import check_choice, check_int


@dataclass(frozen=True)
class Fitted:
    """Features that are given, and options whose values are fitted to samples.

    It is what a name or a function stands for as `features` of `discover`, and has the
    settings of this way (Section 5.2).

    Parameters
    ----------
    features : str or callable, default=None
        The map phi: a function from a batch of observations to ``(N, d)``, or the name
        of one in `samples.features`. None: ``"fourier"``, and ``"bits"`` for bytes, as
        the paper's of Atari's memory.
    order : int, default=None
        Highest frequency of ``"fourier"``. None: 3, and less for many columns.
    tiles, tilings : int, default=None
        Tiles along each column and number of grids of ``"tiles"``. None: 8.
    iterations : int, default=1000
        Most iterations of the fit.
    whiten : bool, default=True
        Functions ``e . phi`` have variance 1. False: vectors e have length 1, as in the
        paper.
    per_cell : int, default=4
        Number of transitions of one action that are kept in each cell of the
        observations; None for all. A random walk visits some places very often. So that
        they do not outweigh the others, observations are sorted into cells, 40 along
        each dimension, and of each cell and action only the first few transitions are
        kept, as a table counts no transition twice.
    policy : {"learned", "look-ahead"}, default=None
        ``"learned"``: action values are fitted to the samples. ``"look-ahead"``: every
        action is tried in a copy of the environment; bind the options with
        ``options.look_ahead(env)``. None: ``"learned"``.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> low_waves = eo.Fitted("fourier", order=2)
    >>> eo.discover("MountainCar-v0", 2, steps=2000, features=low_waves)
    LinearOptionSet(2 learned options on 9 features: e2+, e2-)
    """

    features: str | FeatureFunction | None = None
    order: int | None = None
    tiles: int | None = None
    tilings: int | None = None
    iterations: int = 1000
    whiten: bool = True
    per_cell: int | None = 4
    policy: str | None = None

    def __post_init__(self) -> None:
        features = self.features
        if not (features is None or isinstance(features, str) or callable(features)):
            raise TypeError(
                "features must be a name or a function from a batch of observations to "
                f"an array, got {type(features).__name__}"
            )
        if features == "deep":
            raise ValueError('features="deep" are trained: give Trained()')
        for name, value in self.list_map_settings().items():
            check_int(name, value)
        check_int("iterations", self.iterations)
        if self.per_cell is not None:
            check_int("per_cell", self.per_cell)
        if self.policy is not None:
            check_choice("policy", self.policy, ["learned", "look-ahead"])
        if self.looks_ahead and self.iterations != Fitted.iterations:
            raise ValueError(
                'iterations= is for policy="learned": with policy="look-ahead" nothing '
                "is fitted"
            )

    @property
    def looks_ahead(self) -> bool:
        """Whether every action is tried in a copy of the environment."""
        return self.policy == "look-ahead"

    def list_map_settings(self) -> dict[str, int]:
        """Return the settings of the map that are given, by name."""
        settings = {"order": self.order, "tiles": self.tiles, "tilings": self.tilings}
        return {name: value for name, value in settings.items() if value is not None}


@dataclass(frozen=True)
class Trained:
    """Features that are trained on the samples by `deep.learn`.

    It is what ``"deep"`` stands for as `features` of `discover`.

    Parameters
    ----------
    steps : int, default=None
        Number of training steps, which is `training_steps` of `discover`. None: so many
        as take some 15 seconds.
    policy : {"clusters", "learned", "look-ahead"}, default=None
        ``"clusters"``: options are those of a table of clusters of the features. The
        others are those of `Fitted`. None: ``"clusters"``.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> short = eo.Trained(steps=20)
    >>> eo.discover("MountainCar-v0", 2, steps=2000, features=short).labels
    ('e2+', 'e2-')
    """

    steps: int | None = None
    policy: str | None = None

    def __post_init__(self) -> None:
        if self.steps is not None:
            check_int("steps", self.steps)
        if self.policy is not None:
            choices = ["clusters", "learned", "look-ahead"]
            check_choice("policy", self.policy, choices)

    @property
    def has_clusters(self) -> bool:
        """Whether options are those of a table of clusters."""
        return self.policy in (None, "clusters")

    @property
    def looks_ahead(self) -> bool:
        """Whether every action is tried in a copy of the environment."""
        return self.policy == "look-ahead"
