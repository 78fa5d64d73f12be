"""Discovery methods, one file each (paper, Sections 3 to 5, Appendices C and D).

A method is a function with the decorator `discovery_method`. `discover`, the command line and error messages find it by
its name; nothing else has to be edited.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from eigenoptions._registry import discovery_methods
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


def discovery_method(name: str, **fields: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: register a function as a discovery method; `fields` are those of `Method`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters = inspect.signature(function).parameters.values()
        settings = {
            p.name: p.default
            for p in parameters
            if p.kind is inspect.Parameter.KEYWORD_ONLY
        }
        discovery_methods.add(name, Method(name, function, settings, **fields))
        return function

    return register


def methods() -> list[str]:
    """Names of the discovery methods, which `discover` accepts as `method`.

    >>> methods()[:5]
    ['betweenness', 'bottleneck', 'community', 'covering', 'covering-eigen']
    """
    return discovery_methods.names()


def get_method(name: str) -> Method:
    """The method with a name.

    >>> get_method("eigen").gamma, list(get_method("diffusion").settings)
    (0.9, ['t'])
    """
    method: Method = discovery_methods.find(name)
    return method


def choose_goal_discount(mdp: MDP) -> float:
    """A discount so close to 1 that the farthest state still has a positive value; for options that lead to a goal."""
    return 1.0 - 0.5 / (mdp.n_states + 1)


class TooFewOptionsError(ValueError):
    """A method has fewer options than were asked for; `available` is how many there are."""

    def __init__(self, message: str, available: int) -> None:
        super().__init__(message)
        self.available = available


def take_first(
    n_options: int | None,
    candidates: list[Any],
    what: str,
    remedy: str = "ask for fewer",
) -> list[Any]:
    """The first `n_options` candidates, None for all; TooFewOptionsError where there are fewer."""
    if n_options is not None and n_options > len(candidates):
        limit = f"1..{len(candidates)}, the number of {what}"
        raise TooFewOptionsError(
            f"n_options must be in {limit}, got {n_options}; {remedy}", len(candidates)
        )
    return candidates[:n_options]


def find_connected_states(mdp: MDP, W: csr_array, method: str) -> NDArray[np.intp]:
    """The states of the graph that have a neighbour; TooFewOptionsError unless they are connected.

    >>> import eigenoptions as eo
    >>> mdp = eo.maze("...#.")
    >>> find_connected_states(mdp, eo.graph(mdp), "covering").tolist()
    [0, 1, 2]
    """
    component = connected_components(W, directed=False)[1]
    size = np.bincount(component)
    n_components = int((size > 1).sum())
    if n_components != 1:
        raise TooFewOptionsError(
            f"method {method!r} needs a connected graph, but {mdp!r} has {n_components} components of several "
            'states: discover options on each component, or use method="eigen"',
            0,
        )
    return np.flatnonzero(size[component] > 1)
