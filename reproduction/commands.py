"""Commands that run experiments: the reproduction of the paper, the study of an Atari game, and the arena."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Optional

from rich.text import Text
from tyro.conf import Positional, arg

from eigenoptions.cli.flags import Experiments, Flag, Names, named, split_names
from eigenoptions.cli.terminal import bar, print_json, print_line, print_table, print_verdicts, resumable
from eigenoptions.parallel import using


@dataclass(frozen=True)
class Reproduce(Experiments):
    """Run the paper's experiments and write a report. Finished jobs are stored, so an interrupted run can go on.

    Attributes
    ----------
    only
        Experiments to run (figure1, ...); others that have results stay in the report.
    out
        Folder of the report, index.html; it is created if it does not exist.
    settings
        Settings of the paper, or quick ones to check that everything works.
    """

    only: Names = None
    out: Annotated[Path, arg(metavar="DIR")] = Path("report")
    settings: Literal["paper", "quick"] = "paper"

    def __call__(self) -> None:
        """Run the command."""
        with (
            resumable(self.out / "jobs"),
            bar("loading the experiments") as status,
            using(self.engine, self.workers),
        ):
            from reproduction.old_report import reproduce

            only = split_names(self.only)
            outcomes = reproduce(self.out, self.settings, only, **self.run_settings(status))
            claims = [
                (o.experiment.name, claim) for o in outcomes for claim in o.experiment.claims(o.results)
            ]
        page = self.out / "index.html"
        if self.as_json:
            rows = [{"experiment": name, **vars(claim)} for name, claim in claims]
            seconds = {o.experiment.name: o.seconds for o in outcomes}
            print_json({"settings": self.settings, "claims": rows, "seconds": seconds}, [page])
            return
        print_verdicts(claims, f"{sum(o.seconds for o in outcomes):.0f} s of experiments")
        print_line(f"report: {page}")


@dataclass(frozen=True)
class Atari(Experiments):
    """Discover eigenoptions in an Atari game from its memory, and show and judge them. An interrupted run can go on.

    Without --paper, in the way that works best of those tried: actions are held for 8 frames, directions are slow
    features, and options are planned on a chart of the game; three collections are compared with random directions.

    Attributes
    ----------
    game
        Name of a game of ale-py: Freeway, MontezumaRevenge, MsPacman, Breakout, ...
    out
        Folder of results, with one folder per game.
    paper
        The paper's protocol: 1,024 bits, one frame of look-ahead; one collection and some of its directions.
    full
        Both ways and others, with three collections, all six starts and ten random bases; this takes up to an hour.
    quick
        A run of a few seconds, to check that everything works.
    """

    game: Annotated[Positional[str], arg(metavar="GAME")]
    out: Annotated[Path, arg(metavar="DIR")] = Path("out/atari")
    paper: Flag = False
    full: Flag = False
    quick: Flag = False

    def __call__(self) -> None:
        """Run the command."""
        sizes = [size for size in ("paper", "full", "quick") if getattr(self, size)]
        if len(sizes) > 1:
            raise ValueError(f"give --{' or --'.join(sizes)}, not both")
        with (
            resumable(self.out / self.game.lower() / "jobs"),
            bar("loading the game", lines=True) as status,
            using(self.engine, self.workers),
        ):
            from reproduction.atari.run import run_game

            found = run_game(
                self.game,
                self.out,
                *(sizes or ["default"]),
                speed=lambda frames: status.rename(f"roll-outs, {frames:,.0f} frames/s"),
                **self.run_settings(status),
            )
        if self.as_json:
            print_json({"game": found.game, "claims": [vars(claim) for claim in found.claims]}, found.files)
            return
        heads = ("option", "from", "why it is shown", "score")
        rows = [
            (row["label"], f"start {row['start']}", Text(row["reason"]), f"{row['score']:g}")
            for row in found.highlights
        ]
        print_table(heads, rows)
        print()
        cost = f"{found.frames:,} frames of roll-outs in {found.seconds:.0f} s"
        print_verdicts([(found.game, claim) for claim in found.claims], cost)
        for path in found.files:
            print_line(str(path))


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

    contest: Annotated[Positional[str], named("experiments.arena.contests")] = "methods"
    methods: Names = None
    domains: Names = None
    out: Annotated[
        Optional[Path],  # noqa: UP045
        arg(metavar="DIR", help_behavior_hint="(default: arena, or arena-CONTEST)"),
    ] = None
    quick: Flag = False

    def __call__(self) -> None:
        """Run the command."""
        out = self.out or Path("arena" if self.contest == "methods" else f"arena-{self.contest}")
        with resumable(out / "jobs"), bar("loading the arena") as status, using(self.engine, self.workers):
            from reproduction.arena import contest

            report = contest(self.contest).run(
                out,
                "quick" if self.quick else "default",
                split_names(self.methods),
                split_names(self.domains),
                **self.run_settings(status),
            )
        if self.as_json:
            print_json(report.data, report.files)
            return
        print_table(report.heads, report.rows)
        for path in report.files:
            print_line(f"page: {path}")
