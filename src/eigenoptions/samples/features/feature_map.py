"""Feature maps that have a name, under which options files find them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from eigenoptions._registry import feature_maps
from eigenoptions._types import (
    FeatureFunction,
    FeatureMatrix,
)


class FeatureMap:
    """Base class of the feature maps that have a name: frozen dataclasses.

    Attributes
    ----------
    name : str
        Under this name `discover` and options files find the class.
    """

    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            feature_maps.add(cls.name, cls)

    @classmethod
    def for_space(
        cls, space: Any = None, obs: ArrayLike | None = None, **settings: Any
    ) -> Self:
        """Make the map for observations of a Gymnasium space, or for those like `obs`.

        Parameters
        ----------
        space : gymnasium.Space, optional
            The space of the observations.
        obs : array (N, ...), optional
            Some observations, which show what the space does not tell.
        **settings
            Fields of the class.
        """
        return cls(**settings)

    @classmethod
    def list_settings(cls) -> list[str]:
        """Names of the settings that `for_space` does not find in the space."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        of_space = ("low", "high", "columns", "n_states")
        return [name for name in names if name not in of_space]

    @classmethod
    def has_columns(cls) -> bool:
        """Whether `for_space` takes the columns of vectors that are used."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        return "columns" in names

    def __call__(self, obs: Any) -> FeatureMatrix:
        """Map observations ``(N, ...)`` to features ``(N, d)``."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The map as plain JSON values."""
        return {"map": self.name, **asdict(self)}  # type: ignore[call-overload]


def get_feature_map(name: str) -> type[FeatureMap]:
    """The class of feature maps with a name."""
    found: type[FeatureMap] = feature_maps.find(name)
    return found


def make_features(
    name: str, space: Any = None, obs: ArrayLike | None = None, **settings: Any
) -> FeatureFunction:
    """Make a feature map by name.

    Parameters
    ----------
    name : str
        Name of the map.
    space : gymnasium.Space, optional
        The space of the observations.
    obs : array (N, ...), optional
        Some observations: they give the bounds that the space does not have.
    **settings
        Settings of the map.
    """
    return get_feature_map(name).for_space(space, obs, **settings)


def features_to_dict(features: FeatureFunction | None) -> dict[str, Any] | None:
    """A feature map as plain JSON values; of a function only the name."""
    if features is None:
        return None
    if isinstance(features, FeatureMap):
        return features.to_dict()

    # Other callable objects are known by their class.
    function = features if hasattr(features, "__qualname__") else type(features)
    return {"function": f"{function.__module__}.{function.__qualname__}"}


def features_from_dict(
    record: Mapping[str, Any] | None, features: FeatureFunction | None = None
) -> FeatureFunction | None:
    """The feature map that `features_to_dict` described.

    Parameters
    ----------
    record : mapping, optional
        What `features_to_dict` returned.
    features : callable, optional
        The map itself, which is returned. It must be given if the record has only the
        name of a function.
    """
    if record is None or features is not None:
        return features
    if "function" in record:
        raise ValueError(
            f"the file has no features, which are {record['function']}: pass features="
        )

    settings = {}
    for name, value in record.items():
        if name != "map":
            # JSON has no tuples.
            settings[name] = tuple(value) if isinstance(value, list) else value
    try:
        return get_feature_map(record["map"])(**settings)
    except (KeyError, TypeError):
        raise ValueError(f"unknown feature map {dict(record)}") from None
