"""The command line: each command reads its arguments, calls the library and prints the result.

Results go to standard output, notes and progress to standard error. An error is one line with exit code 2. The parser
loads nothing heavy, so ``--help`` is fast.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from eigenoptions import __version__

COMMANDS = {
    "demo": "start here: an eigenvector and an option of four rooms, in a second",
    "discover": "discover options of a maze or an environment: show, draw and save them",
    "show": "show the options of a file that discover wrote",
    "mazes": "list the built-in mazes",
    "diffusion": "measure the diffusion time of a maze as options are added",
    "learn": "run Q-learning in a maze, with primitive actions alone and with options",
    "studio": "draw a maze in the browser and see its options at once",
}
DESCRIPTION = (
    "Discover options without a reward: eigenoptions (Machado et al., ICML 2017).\n\n"
    + "\n".join(f"  {name:9}  {summary}" for name, summary in COMMANDS.items())
)
EXAMPLES = {
    "discover": "discover four-rooms -n 8\n  eigenoptions discover maze.txt -n 8 --out out/",
    "show": "show out/options.safetensors",
    "diffusion": "diffusion four-rooms -n 16",
    "learn": "learn four-rooms -n 8 --option-chance auto",
    "studio": "studio\n  eigenoptions studio maze.txt",
}
MAZE_HELP = (
    "built-in maze (see: eigenoptions mazes), text file with a map, map by rule (rooms:3x3, perfect:20x20, "
    "open:10x10) or id of a Gymnasium environment"
)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are exceptions, so that `main` prints all errors in the same way."""

    def error(self, message: str) -> Any:
        """Raise ValueError instead of ending the process."""
        raise ValueError(f"{message} (see: {self.prog} --help)")


def main(args: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0, 2 for wrong input, 130 after Ctrl-C."""
    words = list(sys.argv[1:] if args is None else args) or ["--help"]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal without Unicode gets question marks instead of an error.
            stream.reconfigure(errors="replace")
    try:
        parsed = make_parser(words).parse_args(words)
        from eigenoptions.cli.terminal import print_log

        print_log()
        getattr(import_module("eigenoptions.cli.commands"), parsed.command)(parsed)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of a pipe has closed it; nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except (
        ValueError,
        TypeError,
        LookupError,
        OSError,
        ArithmeticError,
        MemoryError,
        ImportError,
    ) as error:
        from eigenoptions.cli.terminal import get_error_console, print_line

        # The text of a KeyError is quoted.
        text = (
            str(error.args[0])
            if isinstance(error, KeyError) and error.args
            else str(error)
        )
        line = " ".join(f"error: {text or type(error).__name__}".split())
        print_line(line, "red", get_error_console())
        return 2
    return 0


def make_parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Parser of all commands. Methods, which take time to load, are listed only if `words` ask for a command's help."""
    style: Any = {
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }
    parser = Parser(
        prog="eigenoptions",
        usage="eigenoptions COMMAND ...",
        description=DESCRIPTION,
        **style,
    )
    parser.add_argument(
        "--version", action="version", version=f"eigenoptions {__version__}"
    )
    names: Any = {"prog": "eigenoptions", "dest": "command", "metavar": "COMMAND"}
    commands = parser.add_subparsers(required=True, help=argparse.SUPPRESS, **names)
    method_names = ""
    if len(words) > 1 and {"-h", "--help"} & set(words):
        from eigenoptions.discovery.method import methods

        method_names = ", ".join(methods())
    for command, summary in COMMANDS.items():
        description = f"{summary[0].upper()}{summary[1:]}."
        epilog = f"examples:\n  eigenoptions {EXAMPLES.get(command, command)}"
        subparser = commands.add_parser(
            command, description=description, epilog=epilog, **style
        )
        _add_arguments(subparser, command, method_names)
    return parser


def _add_arguments(
    parser: argparse.ArgumentParser, command: str, method_names: str
) -> None:
    """Add the arguments of a command."""
    add = parser.add_argument
    if command == "show":
        add("file", type=Path, metavar="FILE", help="file with options (.safetensors)")
    if command == "studio":
        add(
            "maze",
            nargs="?",
            default="four-rooms",
            metavar="MAZE",
            help="maze that the page opens with",
        )
        add(
            "--out",
            type=Path,
            metavar="DIR",
            help="write the page into this folder, for any web host",
        )
        add(
            "--port",
            type=int,
            default=8017,
            metavar="N",
            help="port on this machine (default: 8017)",
        )
        add("--no-browser", action="store_true", help="print the address only")
        return
    if command in ("discover", "diffusion", "learn"):
        add("maze", metavar="MAZE", help=MAZE_HELP)
        many = (
            "numbers of options to compare, as in 4,16"
            if command == "learn"
            else "number of options"
        )
        count = (
            f"{many}; both signs count (default: {16 if command == 'diffusion' else 8})"
        )
        kind = _read_counts if command == "learn" else int
        add("-n", "--n-options", type=kind, metavar="N", help=count)
        add(
            "--method",
            default="eigen",
            metavar="NAME",
            help=f"one of {method_names} (default: eigen)",
        )
        add(
            "--operator",
            metavar="NAME",
            help="normalized (default), combinatorial, random-walk, successor",
        )
        add(
            "--gamma",
            type=float,
            metavar="G",
            help="discount of the options (default: 0.9)",
        )
        add(
            "--seed",
            type=int,
            default=0,
            metavar="N",
            help="seed of all randomness (default: 0)",
        )
        add("--out", type=Path, metavar="DIR", help="folder for results and figures")
    if command == "discover":
        add(
            "--steps",
            type=int,
            metavar="N",
            help="transitions to sample (default: only if necessary)",
        )
        add(
            "--features",
            metavar="NAME",
            help="sample, with these features of observations (fourier, tiles)",
        )
    if command in ("diffusion", "learn"):
        chance = (
            "probability that a decision is for an option; auto: by a short simulation "
        )
        chance += f"(default: the paper's uniform choice{' and auto' * (command == 'diffusion')})"
        add("--option-chance", type=_read_chance, metavar="P", help=chance)
        stop = "probability that an option also terminates after each step (default: 0)"
        add("--stop-chance", type=float, default=0.0, metavar="P", help=stop)
    if command == "learn":
        add(
            "--runs",
            type=int,
            default=100,
            metavar="N",
            help="independent runs per agent (default: 100)",
        )
        add(
            "--episodes",
            type=int,
            default=250,
            metavar="N",
            help="episodes per run (default: 250)",
        )
        add(
            "--max-steps",
            type=int,
            default=100,
            metavar="N",
            help="steps per episode (default: 100)",
        )
        add("--start", metavar="ROW,COL", help="start cell (default: S of the map)")
        add("--goal", metavar="ROW,COL", help="goal cell (default: G of the map)")
    add(
        "--json",
        action="store_true",
        dest="as_json",
        help="print one JSON object and nothing else",
    )


def _read_chance(text: str) -> float | str:
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be a probability or auto, got {text!r}"
        ) from None


def _read_counts(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isdecimal() for word in words):
        raise argparse.ArgumentTypeError(f"must be integers, got {text!r}")
    return [int(word) for word in words]
