"""Figure 3: the first options of the open room."""

from __future__ import annotations

from eigenoptions.experiments.experiment import Claim, Experiment, Results, verdict
from eigenoptions.experiments.paper import first_options as first

SETTINGS = first.settings("open-room", 4, 4, 4)


def claims(results: Results) -> list[Claim]:
    """Corners, and how often the fourth option stops."""
    labels = ("e2+", "e2-", "e3+", "e3-")
    found = {label: first.stops(results, label) for label in labels}
    ends = first.corners(results)
    away = [min(first.steps(cell, corner) for corner in ends) for cells in found.values() for cell in cells]
    plain = [
        min(first.steps(cell, corner) for corner in ends)
        for o in labels
        for cell in first.stops(results, o, "combinatorial")
    ]
    ratio = {}
    for operator in first.OPERATORS:
        e2, e4 = (first.option(results, label, operator) for label in ("e2+", "e4+"))
        ratio[operator] = e4["n_stops"] / e2["n_stops"], e2["mean_length"] / e4["mean_length"]
    stopping, length = ratio["normalized"]
    return [
        Claim(
            "We discover meaningful options, such as going to the corners of an open room.",
            "4.1",
            "; ".join(f"{label} stops at {first.names(cells)}" for label, cells in found.items()),
            verdict(max(away) == 0, max(away) <= 2),
            f"They end {_away(away)} with the normalized Laplacian, which the paper uses, and {_away(plain)} "
            "with the combinatorial one.",
        ),
        Claim(
            "The fourth eigenoption terminates, on expectation, twice as often as the second eigenoption.",
            "4.2",
            f"e4 stops in {stopping:.3g} times as many states as e2, and e2 runs {length:.3g} times as long "
            "as e4 on average",
            verdict(abs(stopping - 2) < 0.2, abs(length - 2) < 0.2),
            "Mean lengths are over the states where the option may start: "
            f"{_lengths(results, 'normalized')}. With the combinatorial Laplacian the two ratios are "
            f"{ratio['combinatorial'][0]:.3g} and {ratio['combinatorial'][1]:.3g} "
            f"({_lengths(results, 'combinatorial')}). Twice as many ends do not halve the way to the nearest "
            "one.",
        ),
    ]


def _away(moves: list[int]) -> str:
    return f"{max(moves)} steps from a corner" if max(moves) else "on a corner"


def _lengths(results: Results, operator: str) -> str:
    return " and ".join(
        f"{first.option(results, f'{name}+', operator)['mean_length']:.2f} steps for {name}"
        for name in ("e2", "e4")
    )


EXPERIMENT = Experiment(
    "figure3",
    "Figure 3: options of the open room",
    "4.1",
    "Options of the four smallest eigenvectors in the 10 x 10 grid; the first of them has eigenvalue zero.",
    SETTINGS,
    first.run,
    first.figure,
    claims,
    order=40,
)
