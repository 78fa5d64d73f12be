"""Figure 4: options of the I-Maze.

Options of the four smallest eigenvectors in the I-Maze; the first of them has eigenvalue zero.
"""

from collections.abc import Iterator

from reproduction.figures.first_options import draw_options, find_options, find_row, find_stops, name_cells
from reproduction.lab import Claim, Data, Lab

SECTION, ORDER = "4.1", 50
CAPTION = "Red: the option stops."


def run(lab: Lab, *, maze: str = "i-maze", eigenvectors: int = 4, gamma: float = 0.9) -> Data:
    """Options of the first eigenvectors."""
    return find_options(maze, eigenvectors, gamma)


def claims(data: Data) -> Iterator[Claim]:
    ends = [
        find_stops(data, label, operator)
        for operator in ("normalized", "combinatorial")
        for label in ("e2+", "e2-")
    ]
    rows = [{row for row, _ in cells} for cells in ends[:2]]
    bars = {data["rooms"].row.min(), data["rooms"].row.max()}
    cells = [name_cells(stops) for stops in ends]
    lengths = [find_row(data, label).mean_length for label in ("e2+", "e2-")]
    yield Claim(
        "corridor",
        "We discover meaningful options, such as walking down a corridor.",
        tests=[len(rows[0]) == len(rows[1]) == 1 and rows[0] | rows[1] == bars],
        measured=f"e2+ stops at {cells[0]} and e2- at {cells[1]}, after {lengths[0]:.2f} and {lengths[1]:.2f} "
        "steps on average",
        evidence="The corridor runs from the upper to the lower bar: each sign must end in one of them, and "
        f"only there. With the combinatorial Laplacian e2+ ends at {cells[2]}, e2- at {cells[3]}.",
    )


figure = draw_options
