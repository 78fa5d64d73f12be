"""Figure 4: the first options of the I-Maze."""

from __future__ import annotations

from eigenoptions.experiments import Claim, Results
from eigenoptions.experiments.claims import experiment, judge
from eigenoptions.experiments.paper.first_options import figure, names, option, run, settings, stops

SETTINGS = settings("i-maze", 4, 4, 4)


def claims(results: Results) -> list[Claim]:
    """Whether the option of the second PVF walks down the corridor, and up with the other sign."""
    signs = ("e2+", "e2-")
    ends = [stops(results, sign, operator) for operator in ("normalized", "combinatorial") for sign in signs]
    rows = results["coords"][:, 0]
    one, other = ({row for row, _ in cells} for cells in ends[:2])
    reached = len(one) == len(other) == 1 and one | other == {int(rows.min()), int(rows.max())}
    length = [option(results, sign)["mean_length"] for sign in signs]
    return [judge("corridor", reached, ends=[*map(names, ends)], length=length)]


EXPERIMENT = experiment("figure4", SETTINGS, run=run, figure=figure, claims=claims)
