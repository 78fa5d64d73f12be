"""The command line: `program` runs it, and `commands` has one file per command."""

from eigenoptions.cli.program import main as main
