"""Appendix E: Ms. Pac-Man.

Options to corners and intersections.
"""

from collections.abc import Iterator

from matplotlib.figure import Figure

from reproduction.atari.claims import (
    describe_rollouts,
    judge_intent,
    judge_places,
    list_variant_claims,
)
from reproduction.atari.pictures import draw_highlights
from reproduction.atari.stored import load_results
from reproduction.atari.study import run_small_study
from reproduction.claims import Claim, Finding, claim
from reproduction.experiment import Block
from reproduction.lab import Data, Job, Jobs, Lab, Results, get_tables

SECTION = "Appendix E"
ORDER = 190
CAPTION = (
    "Stored results of python -m reproduction atari MsPacman --full, unless run anew "
    "by --atari."
)


def list_jobs(*, game: str = "MsPacman") -> Jobs:
    """Read the stored results."""
    return {"tables": [Job(load_results, {"game": game})]}


def tabulate_results(results: Results) -> Data:
    """The stored tables."""
    return get_tables(results["tables"])


def play_game(lab: Lab) -> Data:
    """The tables of a new, small study."""
    return run_small_study(lab, "MsPacman")


def draw_figure(data: Data) -> Figure:
    """Where highlighted options end, and some of them."""
    return draw_highlights(data, game="MsPacman")


def write_notes(data: Data) -> Iterator[Block]:
    """How much was rolled out, and the means of all kinds."""
    return describe_rollouts(data)


@claim(
    "pacman-places",
    "In Ms. Pac-Man the agent has the clear intent of reaching particular positions in "
    "the screen, such as corners and intersections.",
)
def reach_particular_positions(data: Data) -> Finding:
    return judge_places(data, {"corners": "corner", "intersections": "junction"})


@claim(
    "pacman-intent",
    "Even with such a myopic action selection mechanism we were able to obtain options "
    "that clearly demonstrate intent (Ms. Pac-Man).",
    section="5.2",
)
def demonstrate_intent(data: Data) -> Finding:
    return judge_intent(data)


def list_further_claims(data: Data) -> Iterator[Claim]:
    """Our claims: singular directions against random ones."""
    return list_variant_claims(data, "Ms. Pac-Man", "pacman")
