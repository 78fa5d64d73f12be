"""What a discovery method is, and how `discover` finds it.

A method is a function with the decorator `discovery_method`, in a file of the folder
`methods` or in a program of yours. `discover`, the command line and error messages know
it by its name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from eigenoptions._registry import discovery_methods
from eigenoptions._types import IndexArray
from eigenoptions._validation import check_type
from eigenoptions.mdp import MDP
from eigenoptions.options.solver import MAX_GAMMA

# Settings that `discover` gives to every method that asks for them.
_GIVEN = ("gamma", "progress")

# Settings that are parameters of `discover` itself, with the defaults they have there.
# None leaves a setting to the method.
_SHARED = {"operator": None, "both_signs": True, "skip_zero": True}

# The other parameters of `discover`, which no setting of a method can be called.
_RESERVED = (
    "source",
    "n_options",
    "method",
    "key",
    "seed",
    "rng",
    "steps",
    "max_episode_steps",
    "n_actions",
    "space",
    "columns",
    "cell_size",
    "features",
    "training_steps",
    "length",
    "pos",
)


@dataclass(frozen=True)
class Method:
    """What `discovery_method` registers.

    Attributes
    ----------
    name : str
        The name, which `discover` accepts as `method`.
    function : callable
        ``function(mdp, n_options, rng, **settings)`` returns at most `n_options`
        purposes for `solve` (all there are for None), or an `OptionSet` if ``gamma`` is
        among its settings.
    settings : dict
        Its settings, which are its keyword-only parameters, and their defaults.
    gamma : float or callable, default=0.9
        Discount of the options' purposes, or a function of the MDP that gives it.
    n_options : int, default=8
        Number of options on the command line; None for all there are.
    needs_rewards : bool, default=False
        Whether it needs an MDP with rewards.
    candidates : str, default="options"
        What it chooses from, for the error if somebody asks for more than there are.
    remedy : str, default="ask for fewer"
        What to do then.
    count_purposes : callable, default=None
        ``count_purposes(mdp, **settings)`` is the number of purposes, if it is known
        before the work.
    settings_of_samples : callable, default=None
        Settings that follow from samples, as a function of ``(S,)`` how often each
        state was visited.
    has_features : bool, default=False
        Whether it is defined on features, too, where states cannot be listed.
    alternative : dict, default=None
        Settings for an environment whose options would terminate at the end that they
        should leave; None if that is not checked.
    """

    name: str
    function: Callable[..., Any]
    settings: dict[str, Any]
    gamma: float | Callable[[MDP], float] = 0.9
    n_options: int | None = 8
    needs_rewards: bool = False
    candidates: str = "options"
    remedy: str = "ask for fewer"
    count_purposes: Callable[..., int] | None = None
    settings_of_samples: Callable[[IndexArray], dict[str, Any]] | None = None
    has_features: bool = False
    alternative: dict[str, Any] | None = None

    def list_settings(self) -> list[str]:
        """Names of the settings that callers of `discover` may give."""
        return [name for name in self.settings if name not in _GIVEN]

    def choose_gamma(self, mdp: MDP) -> float:
        """The discount that the method takes for an MDP."""
        if callable(self.gamma):
            return self.gamma(mdp)
        return self.gamma


class NoOptionsError(ValueError):
    """A method finds no option at all, in a graph without bottlenecks, say."""


def discovery_method(name: str, **fields: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: register a function as a discovery method.

    The function takes ``(mdp, n_options, rng)`` and returns a list of `Purpose`, one
    potential each, or an `OptionSet`. Its keyword-only parameters are settings of
    `discover`.

    Parameters
    ----------
    name : str
        Its name.
    **fields
        Further fields of `Method`.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> @discovery_method("first-states")
    ... def choose_first_states(mdp, n_options, rng, *, skip=0):
    ...     rows = np.eye(mdp.n_states)[skip : skip + n_options]
    ...     return [eo.Purpose(row, f"to {skip + i}") for i, row in enumerate(rows)]
    >>> eo.discover("four-rooms", 2, "first-states", skip=5)
    OptionSet(2 options on 104 states: to 5, to 6)
    """
    check_type("name", name, str, 'write @discovery_method("name")')

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        settings = _read_settings(name, function)
        discovery_methods.add(name, Method(name, function, settings, **fields))
        return function

    return register


def _read_settings(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    """Return the settings of a method and their defaults; check its signature."""
    parameters = inspect.signature(function).parameters.values()
    positional = []
    settings = {}
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            settings[parameter.name] = parameter.default
        elif parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            positional.append(parameter)

    if len(positional) != 3:
        raise TypeError(
            f"method {name!r} must be a function (mdp, n_options, rng, *, settings), "
            f"got {inspect.signature(function)}"
        )
    for setting, default in settings.items():
        if setting in _RESERVED:
            raise TypeError(
                f"{setting}= is a parameter of discover: call the setting of method "
                f"{name!r} something else"
            )
        if default is inspect.Parameter.empty and setting not in _GIVEN:
            raise TypeError(
                f"method {name!r} must have a default for its setting {setting!r}"
            )
        # Else leaving the parameter out would mean another value than its default.
        shared_default = _SHARED.get(setting)
        if shared_default is not None and default != shared_default:
            raise TypeError(
                f"setting {setting!r} of method {name!r} must have the default of "
                f"discover, {shared_default}, got {default!r}"
            )
    return settings


def methods() -> list[str]:
    """Names of the discovery methods, which `discover` accepts as `method`.

    Examples
    --------
    >>> methods()[:5]
    ['betweenness', 'bottleneck', 'community', 'covering', 'diffusion']
    """
    return discovery_methods.names()


def get_method(name: str) -> Method:
    """The method with a name.

    Examples
    --------
    >>> get_method("eigen").gamma, list(get_method("diffusion").settings)
    (0.9, ['t', 'progress'])
    """
    method: Method = discovery_methods.find(name)
    return method


def count_states(mdp: MDP, **settings: Any) -> int:
    """The number of states, each of which can be a goal."""
    return mdp.n_states


def choose_goal_discount(mdp: MDP) -> float:
    """A discount for options that lead to a goal.

    It is so close to 1 that the farthest state still has a positive value.
    """
    return min(1.0 - 0.5 / (mdp.n_states + 1), MAX_GAMMA)


def find_connected_states(mdp: MDP, W: csr_array, method: str) -> IndexArray:
    """The states of the graph with a neighbour; NoOptionsError unless connected.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("...#.")
    >>> find_connected_states(mdp, eo.graph(mdp), "covering").tolist()
    [0, 1, 2]
    """
    component = connected_components(W, directed=False)[1]
    size = np.bincount(component)
    n_components = int((size > 1).sum())
    if n_components != 1:
        raise NoOptionsError(
            f"method {method!r} needs a connected graph, but {mdp!r} has "
            f"{n_components} components of several states: discover options on each "
            'component, or use method="eigen"'
        )
    return np.flatnonzero(size[component] > 1)
