"""Atari games (Section 5.2 and Appendix E): Freeway, Montezuma's Revenge and Ms. Pac-Man.

The report judges stored results of full runs (``results/``), unless it is asked to run the games anew.
``python -m reproduction atari GAME`` studies one game; its sizes are in `settings`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from reproduction.atari.claims import describe, judge_game
from reproduction.atari.games import get_game
from reproduction.atari.pictures import draw_highlights, save_clips
from reproduction.atari.settings import make_variants
from reproduction.atari.study import run_study
from reproduction.lab import Data, Experiment, Lab, open_lab
from reproduction.report import Outcome, Section, make_section, print_claims, write_page

RESULTS = Path(__file__).parent / "results"


def run(lab: Lab, *, game: str) -> Data:
    """Stored results of a full run; with ``lab.atari`` those of a new, small one."""
    if lab.atari:
        return run_study(
            lab, game, make_variants(game, "quick" if lab.quick else "paper")
        )
    return lab.pmap(load_results, [{"game": game}])[0]


def load_results(game: str) -> Data:
    """The stored tables of a game."""
    paths = sorted(RESULTS.glob(f"{game.lower()}-*.csv.gz"))
    data = {
        path.name.partition(".")[0].partition("-")[2]: pd.read_csv(path)
        for path in paths
    }
    for table in data.values():
        if "region" in table:
            table["region"] = table.region.fillna("")
    return data


EXPERIMENTS = tuple(
    Experiment(
        game.lower(),
        title,
        section,
        shows,
        run=partial(run, game=game),
        figure=partial(draw_highlights, game=game),
        claims=partial(judge_game, game=game),
        notes=describe,
        caption=f"Stored results of python -m reproduction atari {game} --full, unless run anew by --atari.",
        atari=True,
    )
    for game, title, section, shows in (
        (
            "Freeway",
            "Figure 8: Freeway",
            "5.2",
            "Where the chicken tends to be under highlighted options, and histograms of its height; option #445 scores "
            "28 points.",
        ),
        (
            "MontezumaRevenge",
            "Figure 9: Montezuma's Revenge",
            "5.2",
            "Options with the intent of reaching staircases, ropes and doors, similar to those made by hand elsewhere.",
        ),
        (
            "MsPacman",
            "Appendix E: Ms. Pac-Man",
            "Appendix E",
            "Options to corners and intersections.",
        ),
    )
)


def main(arguments: Sequence[str]) -> None:
    """Study one game and write its tables, clips and a page into a folder; an interrupted run continues."""
    parser = argparse.ArgumentParser(
        "python -m reproduction atari", description=main.__doc__
    )
    parser.add_argument("game", help="Freeway, MontezumaRevenge or MsPacman")
    sizes = parser.add_mutually_exclusive_group()
    for size, words in {
        "paper": "the paper's protocol in a small run",
        "full": "the paper's protocol and all variants, which judges its claims; up to an hour",
        "quick": "a run of seconds, to check that everything works",
    }.items():
        sizes.add_argument(
            f"--{size}", dest="size", action="store_const", const=size, help=words
        )
    parser.add_argument(
        "--seeds", type=int, nargs="+", help="one per collection of transitions"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("out/atari"),
        metavar="DIR",
        help="default: out/atari",
    )
    options = parser.parse_args(arguments)
    game, size = get_game(options.game).name, options.size or "default"
    variants = make_variants(game, size)
    if options.seeds:
        variants = [
            replace(variant, collections=tuple(options.seeds)) for variant in variants
        ]
    (experiment,) = (
        replace(e, caption="") for e in EXPERIMENTS if e.name == game.lower()
    )
    folder = options.out / game.lower()
    with open_lab(folder, quick=size == "quick") as lab:
        data = run_study(lab, game, variants)
        outcome = Outcome(
            experiment, data, {"size": size}, lab.seconds, experiment.judge(data)
        )
        write_game(folder, game, outcome)
    print_claims(outcome.claims)
    print(f"report: {folder / 'index.html'}")


def write_game(folder: Path, game: str, outcome: Outcome) -> None:
    """Write the tables (in the format of ``results``) and clips of a game, and a page about them."""
    (folder / "data").mkdir(exist_ok=True)
    for name, table in outcome.data.items():
        path = folder / "data" / f"{outcome.experiment.name}-{name}.csv"
        table.to_csv(path, index=False, float_format="%.6g")
    card = Markup(
        '<figure class="card" style="max-width:15rem"><img src="{0}" alt="{1}">'
        "<figcaption><b>{1}</b> {2}</figcaption></figure>"
    )
    clips = [card.format(*clip) for clip in save_clips(outcome.data, game, folder)]
    text = "Options that settle away from their start and from each other, chosen by a rule; and a random walk."
    cards = Markup('<div class="cards">{}</div>').format(Markup("").join(clips))
    sections = [
        Section("clips", "Highlighted options", text, [cards]),
        make_section(outcome),
    ]
    write_page(folder / "index.html", f"Eigenoptions of {game}", sections)
