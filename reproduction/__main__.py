"""Run the reproduction: ``python -m reproduction [atari|arena] ...``."""

from __future__ import annotations

import sys

import tyro

from reproduction.commands import Arena, Atari, Reproduce

if __name__ == "__main__":
    commands = {"atari": Atari, "arena": Arena}
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    tyro.cli(commands.get(name, Reproduce), args=sys.argv[1 + (name in commands) :])()
