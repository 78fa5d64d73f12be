"""``eigenoptions discover``: options of a maze or an environment, shown and saved."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

import eigenoptions as eo
from eigenoptions.cli.arguments import (
    add_discovery_arguments,
    add_json_argument,
    add_maze_argument,
    add_n_options_argument,
)
from eigenoptions.cli.files import check_writable
from eigenoptions.cli.listing import describe_options, get_settings, print_options
from eigenoptions.cli.sources import choose_number, discover_options
from eigenoptions.cli.suggestions import repeat_flags, suggest_files
from eigenoptions.cli.terminal import (
    print_files,
    print_json,
    print_next,
    show_progress,
)

POSITION = 2
SUMMARY = "discover options of a maze or an environment: show, draw and save them"
EXAMPLES = (
    "discover four-rooms -n 8",
    "discover maze.txt -n 8 --out out/",
)

# On larger maps, the walks that estimate diffusion times take minutes.
_MAX_STATES_OF_WALKS = 20_000

# The figures show the first options and eigenvectors.
_MAX_DRAWN_OPTIONS = 64
_MAX_DRAWN_EIGENVECTORS = 9


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_maze_argument(parser)
    add_n_options_argument(parser, default=8)
    add_discovery_arguments(parser)
    parser.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="sample N transitions (default: only what has no table is sampled)",
    )
    parser.add_argument(
        "--features",
        metavar="NAME",
        help="features of observations (fourier, tiles); implies sampling",
    )
    add_json_argument(parser)


def run(arguments: Namespace) -> None:
    """Discover options of a maze or an environment; show, draw and save them."""
    check_writable(arguments.out)

    with show_progress(f"discovering options of {arguments.maze}") as bar:
        options = discover_options(
            arguments,
            arguments.maze,
            choose_number(arguments, default=8),
            bar.update,
            steps=arguments.steps,
            features=arguments.features,
        )
        files = []
        if arguments.out is not None:
            files = _save_options(arguments, options)

    settings = get_settings(options, arguments.seed)
    if arguments.as_json:
        print_json(describe_options(options, settings, arguments.maze), files)
        return

    print_options(options, settings)
    print_files(files)
    if arguments.steps is None and _has_diffusion_time(options):
        print_next(repeat_flags("diffusion", arguments))
    else:
        print_next(suggest_files(arguments, files))


def _has_diffusion_time(options: eo.OptionSet | eo.LinearOptionSet) -> bool:
    """Whether ``eigenoptions diffusion`` gives a number for this maze, and soon."""
    from eigenoptions.mdp.chains import find_recurrent_states

    if not isinstance(options, eo.OptionSet):
        return False
    if options.n_states > _MAX_STATES_OF_WALKS:
        return False

    # The time is infinite unless every state can be reached from every other.
    return bool(find_recurrent_states(options.mdp).all())


def _save_options(
    arguments: Namespace,
    options: eo.OptionSet | eo.LinearOptionSet,
) -> list[Path]:
    """Write options and figures of them and of their eigenvectors; return the paths."""
    from eigenoptions.plots import plot_eigenvectors, plot_options, save_figure

    folder = arguments.out
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "options.safetensors"]
    options.save(files[0])
    if not isinstance(options, eo.OptionSet) or options.mdp.coords is None:
        return files

    files.append(folder / "options.svg")
    save_figure(plot_options(options[:_MAX_DRAWN_OPTIONS]), files[-1])

    # The exact eigenvectors belong to these options only if those were not sampled.
    numbers = [index for index in options.indices if index is not None]
    is_sampled = arguments.steps is not None or arguments.features is not None
    if arguments.method == "eigen" and numbers and not is_sampled:
        eigenvectors = eo.spectrum(
            eo.graph(options.mdp),
            min(max(numbers), _MAX_DRAWN_EIGENVECTORS),
            arguments.operator or "normalized",
        )
        files.append(folder / "eigenvectors.svg")
        save_figure(plot_eigenvectors(options.mdp, eigenvectors), files[-1])
    return files
