"""Figure 9: Montezuma's Revenge.

Options with the intent of reaching staircases, ropes and doors, similar to those made
by hand elsewhere.
"""

from collections.abc import Iterator

import pandas as pd
from matplotlib.figure import Figure

from reproduction.atari.claims import (
    count_options,
    describe_rollouts,
    has_enough,
    is_seen,
    judge_intent,
    judge_places,
    list_numbers,
    list_variant_claims,
    select_main,
    select_readings,
)
from reproduction.atari.pictures import draw_highlights
from reproduction.atari.stored import load_results
from reproduction.atari.study import run_small_study
from reproduction.claims import Claim, Finding, claim
from reproduction.experiment import Block
from reproduction.lab import Data, Job, Jobs, Lab, Results, get_tables

SECTION = "5.2"
ORDER = 180
CAPTION = (
    "Stored results of python -m reproduction atari MontezumaRevenge --full, unless "
    "run anew by --atari."
)

# Goals of Kulkarni et al. (2016). "Very similar": options settle at this share of them.
GOALS = (
    "central ladder",
    "left ladder",
    "right ladder",
    "rope",
    "left door",
    "right door",
    "key",
)
SIMILAR_SHARE = 0.8


def list_jobs(*, game: str = "MontezumaRevenge") -> Jobs:
    """Read the stored results."""
    return {"tables": [Job(load_results, {"game": game})]}


def tabulate_results(results: Results) -> Data:
    """The stored tables."""
    return get_tables(results["tables"])


def play_game(lab: Lab) -> Data:
    """The tables of a new, small study."""
    return run_small_study(lab, "MontezumaRevenge")


def draw_figure(data: Data) -> Figure:
    """Where highlighted options end, and some of them."""
    return draw_highlights(data, game="MontezumaRevenge")


def write_notes(data: Data) -> Iterator[Block]:
    """How much was rolled out, the means of all kinds, and goals by frames."""
    yield from describe_rollouts(data)
    if "curves" in data:
        yield (
            "Goals of Kulkarni et al. that options have arrived at after so many "
            "frames, by collection:",
            _tabulate_goals(data["curves"]),
        )


def _tabulate_goals(curves: pd.DataFrame) -> pd.DataFrame:
    """How many goals are reached after how many frames, from all starts together."""
    curves = curves[curves.kind.isin(["singular", "random"])]
    rows = []
    groups = curves.groupby(["variant", "frames"], sort=False)
    for (variant, frames), part in groups:
        row = {"variant": variant, "frames": frames}
        for kind, table in part.groupby("kind", sort=False):
            reached = table.regions.str.split(";").groupby(table.collection)
            n_goals = [len(set().union(*lists) & set(GOALS)) for _, lists in reached]
            row[f"{kind} directions"] = list_numbers(n_goals)
        rows.append(row)
    return pd.DataFrame(rows).fillna("")


@claim(
    "montezuma-places",
    "In Montezuma's Revenge the agent has the clear intent of reaching particular "
    "positions on the screen, such as staircases, ropes and doors.",
)
def reach_particular_positions(data: Data) -> Finding:
    return judge_places(
        data, {"staircases": "ladder", "ropes": "rope", "doors": "door"}
    )


@claim(
    "montezuma-kulkarni",
    "The options we discover are very similar to those handcrafted by Kulkarni et al. "
    "(2016).",
)
def resemble_handcrafted_options(data: Data) -> Finding:
    main = select_main(data)
    goals = _list_goals(main)
    n_goals = goals.map(len)
    names = sorted(set().union(*goals["singular"]))
    return Finding(
        tests=_test_goals(main),
        readings={
            name: _test_goals(table) for name, table in select_readings(data).items()
        },
        measured=f"singular options arrive at {list_numbers(n_goals['singular'])} of "
        f"their {len(GOALS)} goals by collection ({', '.join(names) or 'none'})",
        evidence=f"Goals: {', '.join(GOALS)}. Two tests: {SIMILAR_SHARE:.0%} of them "
        "in every collection, half of them in some. Random directions "
        f"({count_options(main, 'random')} options instead of "
        f"{count_options(main, 'singular')}) arrive at "
        f"{list_numbers(n_goals['random'])}.",
    )


def _list_goals(rollouts: pd.DataFrame) -> pd.Series:
    """The goals at which options arrive, by kind and collection."""
    is_goal = (rollouts.arrives > 0) & rollouts.region.isin(GOALS)
    reached = rollouts.region.where(is_goal)
    goals: pd.Series = reached.groupby([rollouts.kind, rollouts.collection]).agg(
        lambda regions: set(regions.dropna())
    )
    return goals


def _test_goals(rollouts: pd.DataFrame) -> list[bool | None]:
    """Whether enough goals are reached in every collection, and half in some."""
    enough = has_enough(rollouts)
    shares = _list_goals(rollouts).map(len)["singular"] / len(GOALS)
    return [
        is_seen(bool(shares.min() >= SIMILAR_SHARE), enough),
        is_seen(bool(shares.max() >= 0.5), enough),
    ]


@claim(
    "montezuma-intent",
    "Even with such a myopic action selection mechanism we were able to obtain options "
    "that clearly demonstrate intent (Montezuma's Revenge).",
)
def demonstrate_intent(data: Data) -> Finding:
    return judge_intent(data)


def list_further_claims(data: Data) -> Iterator[Claim]:
    """Our claims: singular directions against random ones."""
    return list_variant_claims(data, "Montezuma's Revenge", "montezuma")
