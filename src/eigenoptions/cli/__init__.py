"""The command line: each command reads its arguments, calls one public function, and shows the result.

Results go to standard output, notes and progress to standard error. An error is one line, with exit code 2. The module
of a command is loaded when it is called, and heavy modules inside it, so that ``--help`` is fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from eigenoptions._validation import suggest_name

# Name of each command, the module of this folder that holds the class of that name, and one line about it.
COMMANDS = {
    "demo": ("demo", "start here: an eigenvector and an option of four rooms, in seconds"),
    "discover": ("discover", "options of a maze or an environment: show, draw and save them"),
    "show": ("discover", "options of a file that discover wrote"),
    "mazes": ("discover", "the built-in mazes, each with a small picture"),
    "diffusion": ("measure", "the diffusion time of a maze as options are added one by one"),
    "learn": ("measure", "Q-learning in a maze, with primitive actions alone and with options"),
    "studio": ("studio", "draw a maze in the browser and see its options at once"),
}
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main(args: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0, 2 for bad input, 130 after Ctrl-C.

    >>> main(["mazes", "--json"])  # doctest: +ELLIPSIS
    {"mazes": [{"name": "four-rooms", "states": 104, "rows": 11, "columns": 11, "map": "#############...
    0
    """
    for stream in (sys.stdout, sys.stderr):
        # A terminal without Unicode gets question marks instead of an error.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    given = list(sys.argv[1:] if args is None else args)
    if given == ["--version"]:
        from eigenoptions import __version__

        print(f"eigenoptions {__version__}")
        return 0
    if not given or given[0] in ("-h", "--help"):
        print(_help())
        return 0
    # Before NumPy is loaded: for matrices of these sizes one thread is faster.
    for variable in THREAD_VARIABLES:
        os.environ.setdefault(variable, "1")
    from eigenoptions.cli.terminal import print_error, print_line, print_warnings

    print_warnings()
    try:
        _run(given[0], given[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of a pipe has closed it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt as stop:
        print_line(": ".join(["stopped", *getattr(stop, "__notes__", [])[:1]]), error=True)
        return 130
    except (ValueError, OSError, ArithmeticError, MemoryError, ImportError) as error:
        print_error(str(error) or type(error).__name__, getattr(error, "__notes__", []))
        return 2
    return 0


def _run(name: str, args: list[str]) -> None:
    """Read the arguments of a command and call it."""
    if name not in COMMANDS:
        raise ValueError(f"no command {name!r}{suggest_name(name, COMMANDS) or "."} There are {', '.join(COMMANDS)}")
    from tyro import cli

    module, _ = COMMANDS[name]
    command = getattr(import_module(f"eigenoptions.cli.{module}"), name.capitalize())
    cli(command, prog=f"eigenoptions {name}", args=args)()


def _help() -> str:
    """The list of commands, written without the argument parser, which takes longer to load than to use."""
    width = max(map(len, COMMANDS))
    return "\n".join(
        [
            "usage: eigenoptions COMMAND [...]",
            "",
            "Options discovered without a reward: eigenoptions (Machado et al., ICML 2017).",
            "",
            "commands:",
            *(f"  {name:{width}}  {summary}" for name, (_, summary) in COMMANDS.items()),
            "",
            "options:",
            f"  {'--help':{width}}  show this list; after a command, its arguments",
            f"  {'--version':{width}}  show the version",
        ]
    )
