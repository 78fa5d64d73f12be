"""The registry of discovery methods: one file per method in this folder, found by its name (paper, Section 3 to 5).

A file declares ``METHOD = Method("covering", purposes=...)``. `discover`, the command line, the studio and error
messages read the declaration; nothing else has to be edited. Its keyword-only parameters are the method's settings.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import suggest_name
from eigenoptions.mdp import MDP

Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class Method:
    """How options are discovered on an MDP.

    Attributes
    ----------
    name, summary
        What `discover` calls it, and one line for help texts.
    purposes, options
        ``purposes(mdp, n_options, rng, **settings)`` chooses a list of `Purpose`, which `solve` turns into options; or
        ``options(mdp, n_options, rng, gamma=gamma, **settings)`` returns the `OptionSet` itself, for methods that
        solve options on the way. Exactly one of the two is given.
    gamma, n_options
        Default discount of the options' purposes, a number or a function of the MDP; and how many options the command
        line and the studio ask for by default (None: all there are).
    needs_rewards
        Whether it works on an MDP with rewards only.
    max_states
        Most states for which it is practical, if it holds dense arrays of states by states; the arena tries no more.
    explore
        For methods that explore on their own: ``explore(mdp, rng)`` yields the states entered, one array per round.

    Notes
    -----
    A function with a parameter ``progress`` reports its progress: it calls ``progress(done, total)``.

    Examples
    --------
    >>> method("bottleneck").settings, method("eigen").settings
    ((), ('operator', 'both_signs', 'skip_zero', 'weights'))
    """

    name: str
    purposes: Callable[..., Any] | None = None
    options: Callable[..., Any] | None = None
    gamma: float | Callable[[MDP], float] = 0.9
    n_options: int | None = 8
    needs_rewards: bool = False
    max_states: int | None = None
    explore: Callable[..., Iterator[NDArray[np.int64]]] | None = None
    summary: str = ""

    def __post_init__(self) -> None:
        if (self.purposes is None) == (self.options is None):
            raise ValueError(f"method {self.name!r} must declare either purposes or options")

    @property
    def function(self) -> Callable[..., Any]:
        """`purposes` or `options`, whichever is declared."""
        function = self.purposes or self.options
        assert function is not None
        return function

    @property
    def samples(self) -> bool:
        """Whether `discover` also accepts samples: what they show is an MDP, on which purposes can be chosen."""
        return self.purposes is not None

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of the settings that `discover` accepts with this method."""
        return tuple(self.defaults)

    @property
    def defaults(self) -> dict[str, Any]:
        """The settings and their defaults; None where an array is expected."""
        return {name: value for name, value in self._keywords.items() if name not in ("progress", "gamma")}

    @property
    def reports_progress(self) -> bool:
        """Whether the function calls ``progress(done, total)``."""
        return "progress" in self._keywords

    def default_gamma(self, mdp: MDP) -> float:
        """The discount where none is given."""
        return self.gamma(mdp) if callable(self.gamma) else self.gamma

    @property
    def _keywords(self) -> dict[str, Any]:
        found = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in found if p.kind is inspect.Parameter.KEYWORD_ONLY}


def far_sighted(mdp: MDP) -> float:
    """A discount so close to 1 that the farthest state still has a positive value; for options that lead to a goal."""
    return 1.0 - 0.5 / (mdp.n_states + 1)


def n_eigenvectors(mdp: MDP, n_options: int | None, first: int, both_signs: bool) -> int:
    """How many eigenvectors `n_options` eigenoptions need, those before number `first` unused; None: all there are.

    >>> import eigenoptions as eo
    >>> n_eigenvectors(eo.maze("S..G"), 3, first=1, both_signs=True)
    3
    """
    signs = 2 if both_signs else 1
    most = signs * (mdp.n_states - first)
    if most == 0:
        raise ValueError(f"no action leads from one state of {mdp!r} to another: it has no eigenoptions")
    if n_options is not None and n_options > most:
        raise ValueError(f"n_options must be in 1..{most} for {mdp.n_states} states, got {n_options}")
    return mdp.n_states if n_options is None else first - (-n_options // signs)


def methods() -> list[str]:
    """Names of the discovery methods, which `discover` accepts as `method`.

    >>> methods()[:5]
    ['betweenness', 'bottleneck', 'community', 'covering', 'covering-eigen']
    """
    return sorted(_load(file).name for file in _files())


def method(name: str) -> Method:
    """The declaration of a method.

    >>> method("eigen").gamma
    0.9
    """
    # Most methods have a file of their name, so that one is tried before all others.
    file = str(name).replace("-", "_")
    found = _files()
    for candidate in sorted(found, key=lambda other: other != file):
        declared = _load(candidate)
        if declared.name == name:
            return declared
    hint = suggest_name(name, methods())
    raise ValueError(f"method must be one of {', '.join(methods())}, got {name!r}{hint}")


def from_samples_only(chosen: Method) -> Method:
    """The method itself; ValueError where it does not work from samples.

    >>> from_samples_only(method("covering")).name
    'covering'
    """
    if not chosen.samples:
        names = ", ".join(name for name in methods() if method(name).samples)
        raise ValueError(
            f"method {chosen.name!r} does not work from samples: make an MDP first, or choose one of {names}"
        )
    return chosen


def _files() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(__path__)]


def _load(file: str) -> Method:
    declared = getattr(import_module(f"{__name__}.{file}"), "METHOD", None)
    if not isinstance(declared, Method):
        raise TypeError(f"{__name__}.{file} must declare METHOD = Method(...), got {type(declared).__name__}")
    return declared
