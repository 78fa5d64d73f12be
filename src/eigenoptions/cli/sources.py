"""From arguments to the library: the MDP, the options and the chances they ask for."""

from __future__ import annotations

from argparse import Namespace
from typing import TypedDict, overload

import eigenoptions as eo
from eigenoptions._types import Progress


class Chances(TypedDict):
    """How often options are chosen and stopped; keyword arguments of the library."""

    option_chance: float | None
    stop_chance: float


def read_maze(arguments: Namespace) -> eo.MDP:
    """Read the MDP of a maze or of a finite environment."""
    from eigenoptions.discovery.sources import is_environment_id

    if is_environment_id(arguments.maze):
        return eo.from_env(arguments.maze, seed=arguments.seed)
    return eo.maze(arguments.maze, rng=arguments.seed)


@overload
def discover_options(
    arguments: Namespace,
    source: eo.MDP,
    n_options: int | None,
    progress: Progress,
) -> eo.OptionSet: ...
@overload
def discover_options(
    arguments: Namespace,
    source: str,
    n_options: int | None,
    progress: Progress,
    *,
    steps: int | None = ...,
    features: str | None = ...,
) -> eo.OptionSet | eo.LinearOptionSet: ...
def discover_options(
    arguments: Namespace,
    source: str | eo.MDP,
    n_options: int | None,
    progress: Progress,
    *,
    steps: int | None = None,
    features: str | None = None,
) -> eo.OptionSet | eo.LinearOptionSet:
    """Discover options by the method and with the settings of the arguments.

    Parameters
    ----------
    arguments : Namespace
        With what `add_discovery_arguments` adds.
    source : str or MDP
        A maze, or the id of an environment.
    n_options : int or None
        Number of options.
    progress : callable
        Called as ``progress(done, total)``.
    steps, features : default=None
        As in `eigenoptions.discover`.
    """
    from eigenoptions.discovery.discover import discover_request
    from eigenoptions.discovery.method import get_method
    from eigenoptions.discovery.request import Request, read_features
    from eigenoptions.discovery.sources import is_environment_id

    layout = None
    if isinstance(source, str) and is_environment_id(source):
        layout = arguments.seed
    request = Request(
        method=get_method(arguments.method),
        n_options=n_options,
        gamma=arguments.gamma,
        seed=layout,
        rng=arguments.seed,
        progress=progress,
        steps=steps,
        features=read_features(features),
        operator=arguments.operator,
        # The seed draws everything: samples, which begin in many layouts, too.
        needs_layout=False,
    )
    return discover_request(source, request)


def choose_number(arguments: Namespace, default: int) -> int | None:
    """Choose the number of options: the one that was given, or a default.

    It is None where the method finds out how many options there are.
    """
    from eigenoptions.discovery.method import get_method

    if arguments.n_options is not None:
        return int(arguments.n_options)
    if get_method(arguments.method).n_options is None:
        return None
    return default


def choose_chances(
    options: eo.OptionSet | None,
    option_chance: float | str | None,
    stop_chance: float,
) -> Chances:
    """Choose the probabilities to start an option and to stop it early.

    Parameters
    ----------
    options : OptionSet or None
        Without options, both probabilities are 0.
    option_chance : float, "auto" or None
        As in `eigenoptions.diffusion_time`.
    stop_chance : float
        Probability that an option also terminates after each step.
    """
    from eigenoptions.options.tuning import resolve_exploration

    if options is None or len(options) == 0:
        return Chances(option_chance=0.0, stop_chance=0.0)
    chosen = resolve_exploration(options, option_chance, stop_chance)
    return Chances(
        option_chance=chosen.option_chance,
        stop_chance=chosen.stop_chance,
    )
