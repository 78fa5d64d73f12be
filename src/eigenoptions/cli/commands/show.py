"""``eigenoptions show``: the options of a file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

import eigenoptions as eo
from eigenoptions.cli.arguments import add_json_argument
from eigenoptions.cli.listing import describe_options, get_settings, print_options
from eigenoptions.cli.terminal import print_json, print_line

POSITION = 3
SUMMARY = "show the options of a file that discover wrote"
EXAMPLES = ("show out/options.safetensors",)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="file with options (.safetensors)",
    )
    add_json_argument(parser)


def run(arguments: Namespace) -> None:
    """Show the options of a file."""
    options = eo.load_options(arguments.file)
    settings = get_settings(options)
    if arguments.as_json:
        print_json(describe_options(options, settings))
        return

    print_options(options, settings)
    file_name = str(arguments.file)
    print_line(f"in Python: options = eigenoptions.load_options({file_name!r})")
