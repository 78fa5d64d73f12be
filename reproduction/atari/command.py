"""The command that studies one game: ``python -m reproduction atari GAME``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from markupsafe import Markup

from reproduction.atari.claims import follows_paper
from reproduction.atari.games import get_game
from reproduction.atari.measures import OPTION
from reproduction.atari.pictures import save_clips
from reproduction.atari.repeat import repeat_part
from reproduction.atari.settings import make_variants
from reproduction.atari.study import run_study
from reproduction.experiment import load_experiment
from reproduction.lab import open_lab
from reproduction.page import Section, write_page
from reproduction.report import Outcome, make_section, print_claims

SIZES = {
    "paper": "the paper's protocol in a small run",
    "full": "the paper's protocol with all options and all variants, which judges its "
    "claims; hours",
    "quick": "a run of seconds, to check that everything works",
}


def main(arguments: Sequence[str]) -> None:
    """Study one game; write its tables, clips and a page. It can be interrupted."""
    options = make_parser().parse_args(arguments)
    game = get_game(options.game).name
    if options.repeat is not None:
        repeat(game, options)
        return
    size = options.size or "default"
    variants = make_variants(game, size)
    if options.seeds:
        seeds = tuple(options.seeds)
        variants = [replace(variant, collections=seeds) for variant in variants]

    # The caption speaks of stored results.
    experiment = replace(load_experiment(game.lower()), caption="")
    folder = options.out / game.lower()
    with open_lab(folder, quick=size == "quick") as lab:
        data = run_study(lab, game, variants)
        claims = list(experiment.list_further_claims(data))
        if follows_paper(data):
            claims = experiment.judge(data)
        outcome = Outcome(experiment, data, {"size": size}, lab.seconds, claims)
        write_game(folder, game, outcome)

    print_claims(outcome.claims)
    print(f"report: {folder / 'index.html'}")


def repeat(game: str, options: argparse.Namespace) -> None:
    """Print whether a part of the stored tables comes out again; exit with 1 if not."""
    collection, *_ = options.seeds or [1]
    n_compared, differences = repeat_part(
        game, options.repeat, collection, options.start, options.options
    )
    if differences.empty:
        print(f"all {n_compared} roll-outs are as stored")
        return
    print(differences.to_string(index=False))
    n_differ = len(differences[OPTION].drop_duplicates())
    raise SystemExit(f"{n_differ} of {n_compared} roll-outs are not as stored")


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command."""
    parser = argparse.ArgumentParser(
        "python -m reproduction atari", description=main.__doc__
    )
    parser.add_argument("game", help="Freeway, MontezumaRevenge or MsPacman")
    sizes = parser.add_mutually_exclusive_group()
    for size, words in SIZES.items():
        sizes.add_argument(
            f"--{size}", dest="size", action="store_const", const=size, help=words
        )
    parser.add_argument(
        "--seeds", type=int, nargs="+", help="one per collection of transitions"
    )
    sizes.add_argument(
        "--repeat",
        nargs="?",
        const="paper",
        metavar="VARIANT",
        help="repeat a part of the stored tables and compare (default: paper)",
    )
    parser.add_argument(
        "--start", type=int, default=0, help="the start to repeat (default: 0)"
    )
    parser.add_argument(
        "--options",
        type=int,
        default=12,
        metavar="N",
        help="options of each kind to repeat (default: 12)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("out/atari"),
        metavar="DIR",
        help="default: out/atari",
    )
    return parser


def write_game(folder: Path, game: str, outcome: Outcome) -> None:
    """Write the tables (as ``results`` has them), the clips and the page of a game."""
    tables = folder / "data"
    tables.mkdir(exist_ok=True)
    for name, table in outcome.data.items():
        path = tables / f"{outcome.experiment.name}-{name}.csv"
        table.to_csv(path, index=False, float_format="%.6g")

    card = Markup(
        '<figure class="card" style="max-width:15rem"><img src="{0}" alt="{1}">'
        "<figcaption><b>{1}</b> {2}</figcaption></figure>"
    )
    clips = save_clips(outcome.data, game, folder)
    cards = Markup("").join(card.format(*clip) for clip in clips)
    highlights = Section(
        name="clips",
        title="Highlighted options",
        text="Options that settle away from their start and from each other, chosen by "
        "a rule; and a random walk.",
        shown=[Markup('<div class="cards">{}</div>').format(cards)],
    )
    write_page(
        folder / "index.html",
        f"Eigenoptions of {game}",
        [highlights, make_section(outcome)],
    )
