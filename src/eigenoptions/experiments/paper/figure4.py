"""Figure 4: the first options of the I-Maze."""

from __future__ import annotations

from eigenoptions.experiments import Claim, Experiment, Results, verdict
from eigenoptions.experiments.paper.first_options import figure, names, option, run, settings, stops

SETTINGS = settings("i-maze", 4, 4, 4)


def claims(results: Results) -> list[Claim]:
    """Whether the option of the second PVF walks down the corridor, and up with the other sign."""
    one, other = stops(results, "e2+"), stops(results, "e2-")
    long, back = (option(results, label)["mean_length"] for label in ("e2+", "e2-"))
    rows = results["coords"][:, 0]
    bars = {int(rows.min()), int(rows.max())}
    ends = [{row for row, _ in cells} for cells in (one, other)]
    return [
        Claim(
            "We discover meaningful options, such as walking down a corridor.",
            "4.1",
            f"e2+ stops at {names(one)} and e2- at {names(other)}, after {long:.2f} and {back:.2f} steps on "
            "average",
            verdict(len(ends[0]) == len(ends[1]) == 1 and ends[0] | ends[1] == bars),
            "The corridor runs from the upper to the lower bar: each sign must end in one of them, and only "
            "there. With the combinatorial Laplacian e2+ ends at "
            f"{names(stops(results, 'e2+', 'combinatorial'))}, e2- at "
            f"{names(stops(results, 'e2-', 'combinatorial'))}.",
            "corridor",
        )
    ]


EXPERIMENT = Experiment(
    "figure4",
    "Figure 4: options of the I-Maze",
    "4.1",
    "Options of the four smallest eigenvectors in the I-Maze; the first of them has eigenvalue zero.",
    SETTINGS,
    run,
    figure,
    claims,
    order=50,
)
