"""The command that runs a contest of the arena: methods of discovery, or another one by its name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

from tyro.conf import Positional, arg

from eigenoptions.cli.paper import Experiments
from eigenoptions.cli.terminal import Flag, bar, named, print_json, print_line, print_table, resumable


def _contests() -> Iterable[str]:
    from eigenoptions.experiments.arena import contests

    return contests()


def _names(given: str | None) -> list[str]:
    return [] if given is None else [name.strip() for name in given.split(",")]


@dataclass(frozen=True)
class Arena(Experiments):
    """Compare methods on the same domains, and write a page about it. Finished jobs are stored, so a run can go on.

    Attributes
    ----------
    contest
        What is compared.
    methods
        Methods that take part.
    domains
        Domains they are measured on.
    out
        Folder of the page, index.html; it is created if it does not exist.
    quick
        A run of a minute, to check that everything works; the default takes up to 20 minutes on two cores.
    """

    contest: Annotated[Positional[str], named(_contests)] = "methods"
    methods: Annotated[Optional[str], arg(metavar="NAME,...", help_behavior_hint="(default: all)")] = None  # noqa: UP045
    domains: Annotated[Optional[str], arg(metavar="NAME,...", help_behavior_hint="(default: all)")] = None  # noqa: UP045
    out: Annotated[
        Optional[Path],  # noqa: UP045
        arg(metavar="DIR", help_behavior_hint="(default: arena, or arena-CONTEST)"),
    ] = None
    quick: Flag = False

    def __call__(self) -> None:
        """Run the command."""
        usual = "arena" if self.contest == "methods" else f"arena-{self.contest}"
        out = Path(usual) if self.out is None else self.out
        with resumable(out / "jobs"), bar("loading the arena") as status:
            from eigenoptions.experiments.arena import contest

            report = contest(self.contest).run(
                out,
                "quick" if self.quick else "default",
                _names(self.methods),
                _names(self.domains),
                fresh=self.fresh,
                engine=self.engine,
                workers=self.workers,
                tell=status.begin,
                progress=status.step,
            )
        if self.as_json:
            print_json(report.data, report.files)
            return
        print_table(report.heads, report.rows)
        for path in report.files:
            print_line(f"page: {path}")
