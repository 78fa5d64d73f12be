"""Former names of `options.linear`, until no caller is left."""

from dataclasses import dataclass

from eigenoptions.options.linear import check_actions as checked_actions
from eigenoptions.options.linear import fit

__all__ = ["FitSettings", "checked_actions", "fit"]


@dataclass(frozen=True)
class FitSettings:
    """Settings of `fit`."""

    iterations: int = 200
    ridge: float = 1e-5
    stop: float = 0.02
    parts: int = 2
