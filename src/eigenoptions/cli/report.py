"""The command that makes the paper again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from rich.console import Console
from tyro.conf import arg

from eigenoptions.cli.terminal import Flag, Json, Names, Workers, bar, verdicts


@dataclass(frozen=True)
class Reproduce:
    """Run the paper's experiments and write a report. Finished jobs are kept: it goes on where it was interrupted.

    Attributes
    ----------
    only
        Experiments to run (figure1, ...), all by default; those with results stay in the report.
    out
        Folder of the report, index.html; made if it is not there.
    settings
        The paper's own settings, or quick ones to see that all works.
    fresh
        Also run again what has results.
    engine
        Who does the work: one process a core, this process alone, or a Ray cluster (that of RAY_ADDRESS, or one
        made here). The results are the same.
    workers
        How many processes or Ray tasks at a time, by default one a core.
    as_json
        Print one JSON object and nothing else.
    """

    only: Names = None
    out: Annotated[Path, arg(metavar="DIR")] = Path("report")
    settings: Literal["paper", "quick"] = "paper"
    fresh: Flag = False
    engine: Literal["processes", "serial", "ray"] = "processes"
    workers: Workers = None
    as_json: Json = False

    def __call__(self) -> None:
        """Run the command."""
        with bar("reading the paper") as status:
            from eigenoptions.experiments.report import reproduce

            outcomes = reproduce(
                self.out,
                self.settings,
                [name.strip() for name in self.only.split(",")] if self.only is not None else [],
                fresh=self.fresh,
                engine=self.engine,
                workers=self.workers,
                tell=status.say,
                progress=status.step,
            )
            claims = [
                (o.experiment.name, claim) for o in outcomes for claim in o.experiment.claims(o.results)
            ]
        page = self.out / "index.html"
        if self.as_json:
            rows = [{"experiment": name, **vars(claim)} for name, claim in claims]
            seconds = {o.experiment.name: o.seconds for o in outcomes}
            found = {"settings": self.settings, "claims": rows, "seconds": seconds, "files": [str(page)]}
            print(json.dumps(found))
            return
        console = Console(highlight=False)
        verdicts(console, claims, f"{sum(o.seconds for o in outcomes):.0f} s of experiments")
        console.print(f"report: {page}", soft_wrap=True, markup=False)
