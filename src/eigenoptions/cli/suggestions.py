"""What to type next: another command with the same maze and the same flags."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

# Arguments that say how options are discovered.
DISCOVERY_FLAGS = ("n_options", "method", "operator", "gamma", "seed")

# A flag with its default value is left out.
_DEFAULTS = {"method": "eigen", "seed": 0, "stop_chance": 0.0}


def repeat_flags(
    command: str,
    arguments: Namespace,
    names: Sequence[str] = DISCOVERY_FLAGS,
) -> str:
    """Write a command with the same maze and those flags that were given.

    >>> repeat_flags("learn", Namespace(maze="i-maze", n_options=4, seed=0))
    'eigenoptions learn i-maze -n 4'
    """
    words = ["eigenoptions", command, quote(arguments.maze)]
    for name in names:
        value = getattr(arguments, name, None)
        if value is None or value == _DEFAULTS.get(name):
            continue
        if name == "n_options":
            flag = "-n"
        else:
            flag = "--" + name.replace("_", "-")
        words += [flag, quote(str(value))]
    return " ".join(words)


def suggest_files(arguments: Namespace, files: Sequence[Path]) -> str:
    """Suggest to look at the file of options, or to write one."""
    for file in files:
        if file.suffix == ".safetensors":
            return f"eigenoptions show {quote(str(file))}"

    names = (*DISCOVERY_FLAGS, "steps", "features")
    return repeat_flags("discover", arguments, names) + " --out out/"
