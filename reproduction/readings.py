"""Readings of the paper: each claim is judged under all of them that apply to it.

The first is the main one, which the verdict of a claim is: see `WHY_MAIN`. Where
another reading gives another verdict, the claim is on the edge. That is computed (see
`claims.Finding.edge`) and never written by hand.
"""

from __future__ import annotations

import pandas as pd

MAIN = "main"

# Learning.
FINAL = "final performance"
NO_MARGIN = "no margin"
PUBLISHED_LEARNER = "published learner"

# Options and the steps that they cost.
EXTRA_STEP = "k + 1 steps"
WITHOUT_E1 = "e1 left out"
COMBINATORIAL = "combinatorial"
LOW_DISCOUNT = "discount 0.5"
HIGH_DISCOUNT = "discount 0.99"
TOLERANCE = "0.001 tolerance"
ONE_SIGN = "one sign"
TURNED_BASIS = "our basis turned"
AUTHORS_BASIS = "authors' basis"
RANDOM_BASES = ("random basis 1", "random basis 2", "random basis 3")
WALLS = "walls as states"
TIES = "other tie orders"
BOTTLENECKS = "other bottlenecks"

# Limits of ours for the paper's words of degree.
TWO_OPTIONS = "two options"
FEW_EXCEPTED = "a few excepted"
STRICTER = "stricter limit"
LAXER = "laxer limit"

# Games.
ARGMAX = "literal argmax"
AUTHORS_STARTS = "authors' starts"
PUBLISHED_PROGRAM = "published program"

# Which reading is the main one, and why; the report says it above its table.
WHY_MAIN = (
    "On tables the main reading is the one closest to the paper's words: an option of "
    "k moves costs k steps, e1 counts, the Laplacian is the normalized one, and "
    "options run until they terminate. In two things it is not the literal one: "
    "learning is judged by the whole curve, for the reason given at the top, and in "
    "games an option waits where no action raises the feature, as in the published "
    "program; the formula's argmax has one start per collection in the stored runs "
    "instead of six, and is a reading."
)
WHY_LEARNING = (
    "Learning is judged by the whole curve, which favours the paper, and not by the "
    '"final performance" that it names. It names it "after learning for a given number '
    'of episodes", of plots over that number, and concludes that agents accumulate '
    "reward faster; by the last episodes alone, primitive actions have caught up in "
    "two of three domains."
)

# What each reading means, in the order of the report's table.
READINGS = {
    MAIN: "the reading closest to the paper's words; in games, options wait where no "
    "action raises the feature",
    FINAL: "learning is judged by the last tenth of the episodes instead of all",
    NO_MARGIN: "any difference beyond noise counts, instead of one that matters (0.05)",
    PUBLISHED_LEARNER: "the learner of the published program, whose options last two "
    "steps, with its labels",
    EXTRA_STEP: "an option of k moves costs k + 1 steps of the diffusion time, as in "
    "the published program",
    WITHOUT_E1: "the options of eigenvalue zero do not count",
    COMBINATORIAL: "the combinatorial Laplacian instead of the normalized one",
    LOW_DISCOUNT: "options are solved with the discount 0.5 instead of 0.9",
    HIGH_DISCOUNT: "options are solved with the discount 0.99 instead of 0.9",
    TOLERANCE: "values up to 0.001 count as zero, as in the published program",
    ONE_SIGN: "one sign of each eigenvector instead of both",
    TURNED_BASIS: "the basis of repeated eigenvalues turned by 45 degrees",
    AUTHORS_BASIS: "the basis of repeated eigenvalues that the published program finds",
    **dict.fromkeys(RANDOM_BASES, "a random basis of repeated eigenvalues"),
    WALLS: "the Laplacian of the published program: walls are states, with one-way "
    "edges to free cells",
    TIES: "ties between actions broken in another order, and minus before plus: the "
    "claim must hold in all 48 cases",
    BOTTLENECKS: "the authors' files of bottleneck options instead of ours, or ours "
    "instead of theirs",
    TWO_OPTIONS: "'a few options' are two instead of up to eight",
    FEW_EXCEPTED: "numbers of up to eight options do not count",
    STRICTER: "a stricter limit of ours for a word of degree",
    LAXER: "a laxer limit of ours for a word of degree",
    ARGMAX: "games: the best of all actions, also where none raises the feature",
    AUTHORS_STARTS: "games: the authors' start states instead of ours",
    PUBLISHED_PROGRAM: "games: rows of V, as the published program follows them",
}

# Discounts of our own: the paper gives none for tables, the published program 0.9.
DISCOUNTS = (LOW_DISCOUNT, HIGH_DISCOUNT)

# Readings that vary a limit or a setting of ours. All others are choices that the paper
# leaves open.
OURS = (
    NO_MARGIN,
    COMBINATORIAL,
    *DISCOUNTS,
    ONE_SIGN,
    TWO_OPTIONS,
    FEW_EXCEPTED,
    STRICTER,
    LAXER,
)


def complete_readings(
    main: pd.DataFrame, others: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """A table per reading: its own rows, and the main rows that it does not change.

    Parameters
    ----------
    main : DataFrame
        Rows of the main reading, with columns ``domain`` and ``n_options``.
    others : DataFrame
        Rows of other readings, with a column ``reading``. Of a domain that it changes,
        a reading has all rows but those without options.

    Examples
    --------
    >>> domains = ["maze", "maze", "room"]
    >>> main = pd.DataFrame({"domain": domains, "n_options": [0, 2, 2]})
    >>> others = main[1:2].assign(reading="e1 left out", time=5)
    >>> complete_readings(main, others)["e1 left out"].time.tolist()
    [nan, 5.0, nan]
    """
    tables = {}
    for reading, changed in others.groupby("reading", sort=False):
        parts = []
        for domain, rows in main.groupby("domain", sort=False):
            own = changed[changed.domain == domain]
            if len(own):
                # No reading changes the agent without options.
                rows = rows[rows.n_options == 0]
            parts += [rows, own]
        tables[str(reading)] = pd.concat(parts)
    return tables
