"""Discovery methods, one file each (paper, Sections 3 to 5, Appendices C and D).

A method is a function with the decorator `discovery_method`. `discover`, the command line and error messages find it by
its name; nothing else has to be edited.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from eigenoptions._validation import check_choice
from eigenoptions.mdp import MDP


@dataclass(frozen=True)
class Method:
    """What `discovery_method` registers.

    ``function(mdp, n_options, rng, **settings)`` returns purposes for `solve`, or options if ``gamma`` is among its
    settings, which are its keyword-only parameters.
    """

    name: str
    function: Callable[..., Any]
    settings: dict[str, Any]
    # Default discount of the options' purposes, or a function of the MDP that gives it.
    gamma: float | Callable[[MDP], float] = 0.9
    # Default number of options of the command line; None for all there are.
    n_options: int | None = 8
    needs_rewards: bool = False


METHODS: dict[str, Method] = {}


def discovery_method(name: str, **fields: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: register a function as a discovery method; `fields` are those of `Method`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters = inspect.signature(function).parameters.values()
        settings = {
            p.name: p.default
            for p in parameters
            if p.kind is inspect.Parameter.KEYWORD_ONLY
        }
        METHODS[name] = Method(name, function, settings, **fields)
        return function

    return register


def methods() -> list[str]:
    """Names of the discovery methods, which `discover` accepts as `method`.

    >>> methods()[:5]
    ['betweenness', 'bottleneck', 'community', 'covering', 'covering-eigen']
    """
    return sorted(METHODS)


def get_method(name: str) -> Method:
    """The method with a name.

    >>> get_method("eigen").gamma, list(get_method("diffusion").settings)
    (0.9, ['t'])
    """
    return METHODS[check_choice("method", name, methods())]


def choose_goal_discount(mdp: MDP) -> float:
    """A discount so close to 1 that the farthest state still has a positive value; for options that lead to a goal."""
    return 1.0 - 0.5 / (mdp.n_states + 1)


for _module in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
