"""From arguments to the library: the MDP, the options and the chances they ask for."""

from __future__ import annotations

from argparse import Namespace
from typing import Any, TypedDict, overload

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
    **settings: Any,
) -> eo.OptionSet: ...
@overload
def discover_options(
    arguments: Namespace,
    source: str,
    n_options: int | None,
    progress: Progress,
    **settings: Any,
) -> eo.OptionSet | eo.LinearOptionSet: ...
def discover_options(
    arguments: Namespace,
    source: str | eo.MDP,
    n_options: int | None,
    progress: Progress,
    **settings: Any,
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
    **settings
        More settings of `eigenoptions.discover`. Those that are None are left out.
    """
    from eigenoptions.discovery.sources import NoLayoutError, is_environment_id

    settings = {"operator": arguments.operator, **settings}
    given = {name: value for name, value in settings.items() if value is not None}
    is_sampled = "steps" in given or "features" in given
    layout = None
    if isinstance(source, str) and is_environment_id(source) and not is_sampled:
        layout = arguments.seed

    def discover(layout: int | None) -> eo.OptionSet | eo.LinearOptionSet:
        return eo.discover(
            source,
            n_options,
            arguments.method,
            gamma=arguments.gamma,
            seed=layout,
            rng=arguments.seed,
            progress=progress,
            **given,
        )

    # Whether an environment is sampled turns out when it is read; its samples begin in
    # many layouts.
    try:
        return discover(layout)
    except NoLayoutError:
        return discover(layout=None)


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
