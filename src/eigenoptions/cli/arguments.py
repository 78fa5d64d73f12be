"""Arguments that several commands share."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

import eigenoptions as eo


def add_maze_argument(parser: ArgumentParser) -> None:
    """Add the maze or environment that a command works on."""
    parser.add_argument(
        "maze",
        metavar="MAZE",
        help=(
            "built-in maze (see: eigenoptions mazes), text file with a map, "
            "map by rule (rooms:3x3, perfect:20x20, open:10x10) "
            "or id of a Gymnasium environment"
        ),
    )


def add_n_options_argument(parser: ArgumentParser, default: int) -> None:
    """Add the number of options, which is None where it is not given."""
    parser.add_argument(
        "-n",
        "--n-options",
        type=int,
        metavar="N",
        help=f"number of options; both signs count (default: {default})",
    )


def add_discovery_arguments(parser: ArgumentParser) -> None:
    """Add how options are discovered, and the folder for results."""
    # Loads SciPy, which commands with other arguments of this file start without.
    from eigenoptions.spectra.laplacian import OPERATORS

    method_names = ", ".join(eo.methods())
    parser.add_argument(
        "--method",
        default="eigen",
        metavar="NAME",
        help=f"one of {method_names} (default: eigen)",
    )
    operator_names = ", ".join(OPERATORS)
    parser.add_argument(
        "--operator",
        metavar="NAME",
        help=f"one of {operator_names} (default: normalized)",
    )
    parser.add_argument(
        "--gamma",
        type=float,
        metavar="G",
        help="discount of the options (default: 0.9)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="seed of all randomness, also of an environment's layout (default: 0)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for results and figures",
    )


def add_chance_arguments(parser: ArgumentParser, default: str) -> None:
    """Add how often options are chosen and stopped; `default` says it in words."""
    parser.add_argument(
        "--option-chance",
        type=_parse_chance,
        metavar="P",
        help=(
            "probability that a decision is for an option; "
            f"auto: by a short simulation (default: {default})"
        ),
    )
    parser.add_argument(
        "--stop-chance",
        type=_parse_probability,
        default=0.0,
        metavar="P",
        help="probability that an option also terminates after each step (default: 0)",
    )


def add_json_argument(parser: ArgumentParser) -> None:
    """Add the choice to print JSON."""
    parser.add_argument(
        "--json",
        action="store_true",
        dest="as_json",
        help="print one JSON object and nothing else",
    )


def _parse_chance(text: str) -> float | str:
    """A probability, or ``"auto"`` as it is."""
    if text == "auto":
        return text
    return _parse_probability(text, "a probability in 0..1 or auto")


def _parse_probability(text: str, expected: str = "a probability in 0..1") -> float:
    """A number in 0..1; argparse shows the error with the name of the argument."""
    error = ArgumentTypeError(f"must be {expected}, got {text!r}")
    try:
        number = float(text)
    except ValueError:
        raise error from None

    # False for nan, too.
    is_probability = 0 <= number <= 1
    if not is_probability:
        raise error
    return number
