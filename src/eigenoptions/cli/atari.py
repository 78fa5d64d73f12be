"""The command that discovers eigenoptions in an Atari game."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text
from tyro.conf import Positional, arg

from eigenoptions.cli.terminal import Flag, Json, Workers, bar, verdicts


@dataclass(frozen=True)
class Atari:
    """Discover eigenoptions in an Atari game from its memory, show and judge them. Goes on where it was interrupted.

    Attributes
    ----------
    game
        Any game of ale-py: Freeway, MontezumaRevenge, MsPacman, Breakout, ...
    out
        Folder of results; a folder for each game is made in it.
    full
        Three collections, all six starts and ten random bases, for an hour or so; else a few minutes.
    quick
        A few seconds, to see that all works.
    fresh
        Start over, also where the folder holds results of other settings.
    engine
        Who does the work: this process, one process a core, or a Ray cluster. The results are the same.
    workers
        How many at a time; one a core by default.
    as_json
        Print one JSON object and nothing else.
    """

    game: Annotated[Positional[str], arg(metavar="GAME")]
    out: Annotated[Path, arg(metavar="DIR")] = Path("out/atari")
    full: Flag = False
    quick: Flag = False
    fresh: Flag = False
    engine: Literal["processes", "serial", "ray"] = "processes"
    workers: Workers = None
    as_json: Json = False

    def __call__(self) -> None:
        """Run the command."""
        if self.full and self.quick:
            raise ValueError("give --full or --quick, not both")
        with bar("loading the game") as status:
            from eigenoptions.experiments.atari.run import run_game

            found = run_game(
                self.game,
                self.out,
                "full" if self.full else "quick" if self.quick else "paper",
                fresh=self.fresh,
                engine=self.engine,
                workers=self.workers,
                tell=status.say,
                progress=status.step,
                speed=lambda frames: status.name(f"roll-outs, {frames:,.0f} frames/s"),
            )
        if self.as_json:
            rows = [vars(claim) for claim in found.claims]
            print(json.dumps({"game": found.game, "claims": rows, "files": [str(f) for f in found.files]}))
            return
        console = Console(highlight=False)
        table = Table("option", "from", "why it is shown", "score", box=None, pad_edge=False)
        for row in found.highlights:
            table.add_row(row["label"], f"start {row['start']}", Text(row["reason"]), f"{row['score']:g}")
        console.print(table)
        console.print()
        cost = f"{found.frames:,} frames of roll-outs in {found.seconds:.0f} s"
        verdicts(console, [(found.game, claim) for claim in found.claims], cost)
        for path in found.files:
            console.print(str(path), soft_wrap=True, markup=False)
