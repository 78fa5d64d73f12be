"""The command line: each command reads its arguments, calls one public function, and shows what came out.

Results go to standard output, notes and progress to standard error. What is wrong with the input is said in
one line, with exit code 2. Heavy modules are imported inside the commands: ``--help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Union

from tyro import cli
from tyro.conf import subcommand

from eigenoptions.cli.atari import Atari
from eigenoptions.cli.measures import Diffusion, Learn
from eigenoptions.cli.report import Reproduce
from eigenoptions.cli.skills import Discover, Mazes, Show
from eigenoptions.cli.studio import Studio
from eigenoptions.cli.terminal import complain, hear_notes

COMMANDS = (Discover, Show, Mazes, Diffusion, Learn, Atari, Reproduce, Studio)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main(args: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0, 2 for bad input, 130 after Ctrl-C.

    >>> main(["mazes", "--json"])  # doctest: +ELLIPSIS
    {"mazes": [{"name": "four-rooms", "states": 104, "rows": 11, "columns": 11, "map": "#############...
    0
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without Unicode gets question marks, not an error
            stream.reconfigure(errors="replace")
    given = list(sys.argv[1:] if args is None else args)
    if given == ["--version"]:
        from eigenoptions import __version__

        print(f"eigenoptions {__version__}")
        return 0
    for (
        variable
    ) in THREADS:  # before NumPy is loaded: one thread is faster here, and gives the same bits everywhere
        os.environ.setdefault(variable, "1")
    hear_notes()
    try:
        commands = tuple(Annotated[c, subcommand(c.__name__.lower(), prefix_name=False)] for c in COMMANDS)
        any_of: Any = Union[commands]  # noqa: UP007
        command: Any = cli(
            any_of,
            prog="eigenoptions",
            description="Skills that no reward taught: eigenoptions from mazes (Machado et al., ICML 2017).",
            args=given or ["--help"],
        )
        command()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        complain("stopped", [])
        return 130
    except (ValueError, OSError, ArithmeticError, MemoryError, ImportError) as error:
        complain(str(error) or type(error).__name__, getattr(error, "__notes__", []))
        return 2
    return 0
