"""The program: it reads the words of the command line and runs the command they name.

Results go to standard output, notes and progress to standard error. An error is one
line and the exit code 2.

``eigenoptions --help`` has to be fast. So nothing here, and nothing at the top of a
command's file, imports the library's own modules or rich: ``import eigenoptions as eo``
loads what is used when it is used, and `terminal` and `maps` import rich inside their
functions.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import NoReturn

from eigenoptions import __version__
from eigenoptions.cli import commands
from eigenoptions.cli.terminal import print_error, show_library_warnings

# What a user can do something about. Others are bugs and show their traceback.
_EXPECTED_ERRORS = (
    ValueError,
    TypeError,
    LookupError,
    OSError,
    ArithmeticError,
    MemoryError,
    ImportError,
)


def main(words: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    words : sequence of str, default=None
        The words after ``eigenoptions``; by default those of the command line.

    Returns
    -------
    int
        The exit code: 0, or 2 for wrong input, 130 after Ctrl-C, 1 if the reader of a
        pipe is gone.

    Examples
    --------
    >>> main(["mazes", "--no-such-flag"])
    2
    """
    if words is None:
        words = sys.argv[1:]
    if not words:
        words = ["--help"]

    _replace_unprintable_characters()
    try:
        arguments = make_parser(words).parse_args(words)
        show_library_warnings()
        load_commands()[arguments.command].run(arguments)
        sys.stdout.flush()

    except BrokenPipeError:
        # Nothing more can be written, not even what Python flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1

    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130

    except _EXPECTED_ERRORS as error:
        print_error(error)
        return 2

    return 0


def load_commands() -> dict[str, ModuleType]:
    """Import the files of the folder `commands`, by name, in the order of the help.

    >>> list(load_commands())[:2]
    ['demo', 'discover']
    """
    names = [module.name for module in iter_modules(commands.__path__)]
    modules = {name: import_module(f"{commands.__name__}.{name}") for name in names}
    names.sort(key=lambda name: modules[name].POSITION)
    return {name: modules[name] for name in names}


def make_parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Make the parser of all commands, and add the arguments of the one in `words`.

    Only that one, because help about a method lists the names of all methods, which
    take time to load.
    """
    all_commands = load_commands()
    summaries = [
        f"  {name:9}  {command.SUMMARY}" for name, command in all_commands.items()
    ]
    parser = _Parser(
        prog="eigenoptions",
        usage="eigenoptions COMMAND ...",
        description=(
            "Discover options without a reward: "
            "eigenoptions (Machado et al., ICML 2017).\n\n" + "\n".join(summaries)
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"eigenoptions {__version__}",
    )

    subparsers = parser.add_subparsers(
        prog="eigenoptions",
        dest="command",
        metavar="COMMAND",
        required=True,
        help=argparse.SUPPRESS,
    )
    for name, command in all_commands.items():
        examples = [f"  eigenoptions {example}" for example in command.EXAMPLES]
        subparser = subparsers.add_parser(
            name,
            description=f"{command.SUMMARY[0].upper()}{command.SUMMARY[1:]}.",
            epilog="\n".join(["examples:", *examples]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        if name in words:
            command.add_arguments(subparser)
    return parser


class _Parser(argparse.ArgumentParser):
    """A parser that raises its errors, so that `main` prints all errors alike."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see: {self.prog} --help)")


def _replace_unprintable_characters() -> None:
    """Let a terminal without Unicode show question marks instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
