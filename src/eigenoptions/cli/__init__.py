"""The command line: each command reads its arguments, calls one public function, and shows the result.

Results go to standard output, notes and progress to standard error. An error is one line, with exit code 2. Heavy
modules are imported inside the commands, so that ``--help`` is fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Union

from tyro import cli
from tyro.conf import subcommand

from eigenoptions.cli.discover import Discover, Mazes, Show
from eigenoptions.cli.measure import Diffusion, Learn
from eigenoptions.cli.paper import Atari, Reproduce
from eigenoptions.cli.studio import Studio
from eigenoptions.cli.terminal import print_error, print_stop, print_warnings

COMMANDS = (Discover, Show, Mazes, Diffusion, Learn, Atari, Reproduce, Studio)
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
    # Before NumPy is loaded: for matrices of these sizes one thread is faster.
    for variable in THREAD_VARIABLES:
        os.environ.setdefault(variable, "1")
    print_warnings()
    try:
        commands = tuple(Annotated[c, subcommand(c.__name__.lower(), prefix_name=False)] for c in COMMANDS)
        any_of: Any = Union[commands]  # noqa: UP007
        command: Any = cli(
            any_of,
            prog="eigenoptions",
            description="Options discovered without a reward: eigenoptions (Machado et al., ICML 2017).",
            args=given or ["--help"],
        )
        command()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of a pipe has closed it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt as stop:
        print_stop(getattr(stop, "__notes__", []))
        return 130
    except (ValueError, OSError, ArithmeticError, MemoryError, ImportError) as error:
        print_error(str(error) or type(error).__name__, getattr(error, "__notes__", []))
        return 2
    return 0
