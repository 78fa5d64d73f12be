"""Figures 2 to 5: options of the first eigenvectors.

The second PVF of the 4-room domain, a hill in one room and a valley in the opposite one
(Figure 2), and the options of the four smallest eigenvectors in each domain. The first
eigenvector, e1, has eigenvalue zero.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import eigenoptions as eo
from eigenoptions._types import FloatArray, IntegerArray
from eigenoptions.discovery.methods.bottleneck import find_rooms
from eigenoptions.plots import draw_policy, draw_values
from reproduction.claims import Finding, Tests, claim, list_items, list_rows
from reproduction.drawing import make_maps
from reproduction.lab import Data, Job, Jobs, Results, stack_tables
from reproduction.readings import (
    COMBINATORIAL,
    HIGH_DISCOUNT,
    LAXER,
    LOW_DISCOUNT,
    MAIN,
    STRICTER,
    TOLERANCE,
    WITHOUT_E1,
)
from reproduction.runs.options import (
    ANGLES,
    BASIS_READINGS,
    CHANGED_MAZES,
    MAZES,
    OPTION_READINGS,
    describe_options,
    make_eigenoptions,
)
from reproduction.thresholds import FEW

SECTION = "4.1"
ORDER = 20

# Readings that change where the first options stop.
READINGS = (COMBINATORIAL, LOW_DISCOUNT, HIGH_DISCOUNT, TOLERANCE, *BASIS_READINGS)
QUICK = {"eigenvectors": 8, "readings": (COMBINATORIAL, *BASIS_READINGS)}
CAPTION = "Red: the option stops."

# Row and column.
Cell = tuple[int, int]

# The room of a cell that is a doorway.
DOORWAY = -1


def list_jobs(
    *,
    mazes: Sequence[str] = MAZES,
    eigenvectors: int = 16,
    readings: Sequence[str] = READINGS,
) -> Jobs:
    """Options of both signs of the first eigenvectors, also under other readings."""
    options = []
    for reading in (MAIN, *readings):
        # An eigenvector gives two options, one per sign.
        arguments = {"n": 2 * eigenvectors, **OPTION_READINGS.get(reading, {})}
        for maze in mazes:
            if maze in CHANGED_MAZES.get(reading, MAZES):
                columns = {"domain": maze, "reading": reading}
                job = Job(find_stops, {"maze": maze, "options": arguments}, columns)
                options.append(job)

    return {
        "options": options,
        "cells": [Job(list_cells, {"maze": maze}) for maze in mazes],
        "rooms": [
            Job(tell_rooms_apart, {"operator": operator}, {"reading": reading})
            for reading, operator in (
                (MAIN, "normalized"),
                (COMBINATORIAL, "combinatorial"),
            )
        ],
        "symmetries": [Job(find_symmetries, {"maze": maze}) for maze in mazes],
        "turned": [Job(compare_lengths, {"angle": angle}) for angle in ANGLES],
    }


def find_stops(*, maze: str, options: Mapping[str, Any]) -> Data:
    """Describe the first options of a maze, and list the cells where they stop."""
    found = make_eigenoptions(eo.maze(maze), **options)
    cells = list_cells(maze=maze)
    stops = [cells[option.termination].assign(option=option.label) for option in found]
    return {"options": describe_options(found), "stops": pd.concat(stops)}


def list_cells(*, maze: str) -> pd.DataFrame:
    """One row per state of a maze: its cell, and the room that it is in."""
    mdp = eo.maze(maze)
    room, _ = find_rooms(mdp)
    cells = pd.DataFrame(np.asarray(mdp.coords), columns=["row", "column"])
    return cells.assign(domain=maze, room=room)


def tell_rooms_apart(*, operator: str) -> dict[str, float]:
    """How well eigenvectors tell the rooms of the 4-room domain apart."""
    mdp = eo.maze("four-rooms")
    room, _ = find_rooms(mdp)
    vectors = eo.spectrum(eo.graph(mdp), k=4, operator=operator).vectors
    return {
        "e2": classify_rooms(vectors[:, 1:2], room),
        "e2_to_e4": classify_rooms(vectors[:, 1:], room),
    }


def classify_rooms(vectors: FloatArray, room: IntegerArray) -> float:
    """Share of the states, doorways left out, whose room has the nearest mean."""
    is_inside = room != DOORWAY
    n_rooms = room.max() + 1
    means = np.stack([vectors[room == i].mean(axis=0) for i in range(n_rooms)])
    distances = np.linalg.norm(vectors[is_inside][:, None] - means, axis=2)
    is_right = distances.argmin(axis=1) == room[is_inside]
    return float(is_right.mean())


def find_symmetries(*, maze: str) -> pd.DataFrame:
    """One row per symmetry of the map: the first eigenvector that changes under it.

    A symmetry maps the maze onto itself. An eigenvector that has the same values in
    states that it maps onto each other does not show it.
    """
    mdp = eo.maze(maze)
    cells = np.asarray(mdp.coords)
    cells = cells - cells.min(axis=0)
    numbers = {tuple(cell): state for state, cell in enumerate(cells.tolist())}
    vectors = eo.spectrum(eo.graph(mdp), k=16).vectors

    rows = []
    for name, image in _map_cells(cells).items():
        places = [tuple(cell) for cell in image.tolist()]
        if all(place in numbers for place in places):
            images = [numbers[place] for place in places]
            is_changed = np.abs(vectors[images] - vectors).max(axis=0) > 1e-6
            first = int(is_changed.argmax()) + 1 if is_changed.any() else 0
            rows.append({"domain": maze, "symmetry": name, "shown_by": first})
    return pd.DataFrame(rows, columns=["domain", "symmetry", "shown_by"])


def _map_cells(cells: IntegerArray) -> dict[str, IntegerArray]:
    """The cells under the mirrors and turns of a square."""
    rows, columns = cells.T
    last_row, last_column = cells.max(axis=0)
    images = {
        "left and right": (rows, last_column - columns),
        "top and bottom": (last_row - rows, columns),
        "one diagonal": (columns, rows),
        "the other diagonal": (last_column - columns, last_row - rows),
        "a turn by 90 degrees": (columns, last_row - rows),
        "a turn by 180 degrees": (last_row - rows, last_column - columns),
        "a turn by 270 degrees": (last_column - columns, rows),
    }
    return {name: np.stack(image, axis=1) for name, image in images.items()}


def compare_lengths(*, angle: float) -> dict[str, float]:
    """How much longer e2 runs than e4 in another basis of the open room."""
    options = make_eigenoptions(eo.maze("open-room"), 8, angle=angle)
    ratio = options["e2+"].mean_length / options["e4+"].mean_length
    return {"angle": angle, "length_ratio": ratio}


def tabulate_results(results: Results) -> Data:
    """Options and their stops, cells of the mazes, and what eigenvectors tell."""
    tables = {}
    for name in ("options", "stops"):
        parts = [value[name].assign(**names) for names, value in results["options"]]
        tables[name] = pd.concat(parts)
    return {
        **tables,
        "cells": stack_tables(results["cells"]),
        "symmetries": stack_tables(results["symmetries"]),
        "pvf": pd.DataFrame([{**names, **row} for names, row in results["rooms"]]),
        "bases": pd.DataFrame([row for _, row in results["turned"]]),
    }


def draw_figure(data: Data) -> Figure:
    """The second eigenvector of each domain, and its first four options."""
    domains = data["cells"].domain.unique()
    figure, axes = make_maps(5 * len(domains), width=8.4, columns=5)
    for row, domain in enumerate(domains):
        mdp = eo.maze(domain)
        first, *others = axes[5 * row : 5 * row + 5]
        draw_values(first, mdp, eo.spectrum(eo.graph(mdp), k=4).vectors[:, 1])
        first.set_title(f"{domain}: second PVF")

        positive_signs = make_eigenoptions(mdp, 8)[::2]
        for ax, option in zip(others, positive_signs, strict=True):
            draw_policy(ax, mdp, option.policy)
            ax.set_title(f"{option.label}  λ = {option.eigenvalue:.3g}")
    return figure


# The second PVF of the 4-room domain


@claim(
    "pvf-rooms",
    "We should be able to automatically distinguish between the different rooms in the "
    "environment. This is exactly what PVFs do.",
    section="3",
)
def distinguish_rooms(data: Data) -> Finding:
    shares = data["pvf"].set_index("reading")
    share = shares.loc[MAIN]
    return Finding(
        tests=[share.e2_to_e4 == 1],
        readings={
            STRICTER: [share.e2 == 1],
            COMBINATORIAL: [shares.e2_to_e4[COMBINATORIAL] == 1],
        },
        measured=f"nearest room by the value of e2 alone: right for {share.e2:.0%} of "
        f"the states; by e2 to e4: {share.e2_to_e4:.0%}",
        evidence="A state belongs to the room whose mean is nearest. All must be right "
        "by the first three PVFs together; the stricter reading is that the second "
        "one, which Figure 2 shows, tells all rooms apart alone.",
    )


@claim(
    "symmetries",
    "PVFs capture the large-scale geometry of the environment, such as symmetries.",
    section="3",
)
def capture_symmetries(data: Data) -> Finding:
    symmetries = data["symmetries"]

    def judge(last: int) -> Tests:
        is_shown = symmetries.shown_by.between(1, last)
        return list(is_shown.groupby(symmetries.domain, sort=False).all())

    is_late = ~symmetries.shown_by.between(1, FEW // 2)
    late = symmetries[is_late]
    return Finding(
        tests=judge(FEW // 2),
        readings={STRICTER: judge(2), LAXER: judge(FEW)},
        measured=f"{len(symmetries) - len(late)} of {len(symmetries)} symmetries of "
        f"the maps are shown by the first {FEW // 2} eigenvectors; later: "
        + (list_rows("{symmetry} in {domain} (e{shown_by})", late) or "none"),
        evidence="Mirrors and turns that map a maze onto itself; a test per domain. An "
        "eigenvector shows one if it differs in states that are mapped onto each "
        "other. The stricter limit is the first two eigenvectors, the laxer one the "
        f"first {FEW}. The 4-room domain has no exact symmetry.",
    )


@claim(
    "opposite-room",
    "A PVF is a desire to reach the highest point of the plot or, with the other sign, "
    "the lowest point, corresponding to the opposite room.",
    section="3",
)
def reach_opposite_room(data: Data) -> Finding:
    rooms = _find_rooms(data, "four-rooms")

    def judge(reading: str) -> Tests:
        high, low = _find_second_stops(data, reading).values()
        stops = high + low
        reached = {rooms[cell] for cell in stops} - {DOORWAY}
        is_opposite = not _share_doorway(rooms, reached)
        return [len(stops) == 2 and len(reached) == 2 and is_opposite]

    (up, high), (down, low) = _find_second_stops(data).items()
    (is_opposite,) = judge(MAIN)
    words = "that share no doorway" if is_opposite else "next to each other"
    return Finding(
        tests=[is_opposite],
        readings=_judge_readings(data, "four-rooms", judge),
        measured=f"{up} stops at {name_cells(high)} and {down} at {name_cells(low)}, "
        f"in rooms {words}",
        evidence="Opposite rooms share no doorway.",
    )


@claim(
    "peak-centre",
    "The highest point of the plot corresponds to the centre of the room.",
    section="3",
)
def peak_at_centre(data: Data) -> Finding:
    rooms = _find_rooms(data, "four-rooms")
    _, corner, *_ = _find_corners(data, "four-rooms")
    own_room = [cell for cell, room in rooms.items() if room == rooms[corner]]
    centre = np.mean(own_room, axis=0)

    def measure(reading: str) -> float:
        high, _ = _find_second_stops(data, reading).values()
        return max(float(np.abs(np.asarray(cell) - centre).sum()) for cell in high)

    def judge(reading: str) -> Tests:
        farthest = measure(reading)
        return [farthest <= 1, farthest <= 3]

    (up, high), _ = _find_second_stops(data).items()
    farthest = measure(MAIN)
    return Finding(
        tests=judge(MAIN),
        readings=_judge_readings(data, "four-rooms", judge),
        measured=f"{up} stops at {name_cells(high)}, {farthest:g} steps from the "
        "centre of its room",
        evidence=f"The centre is the mean of the room's cells, ({centre[0]:g}, "
        f"{centre[1]:g}). Two tests: at most one step from it, at most three. The "
        "caption of Figure 2 says corner instead.",
    )


@claim(
    "peak-corner",
    "Second PVF and its option in the 4-room domain: terminate is in the top right "
    "corner.",
    section="3",
)
def terminate_in_corner(data: Data) -> Finding:
    rooms = _find_rooms(data, "four-rooms")
    _, corner, *_ = _find_corners(data, "four-rooms")

    def judge(reading: str) -> Tests:
        high, _ = _find_second_stops(data, reading).values()
        farthest = max(_measure_distance(cell, corner) for cell in high)
        is_in_room = len(high) == 1 and rooms[high[0]] == rooms[corner]
        return [farthest == 0, is_in_room and farthest <= 2]

    (up, high), _ = _find_second_stops(data).items()
    farthest = max(_measure_distance(cell, corner) for cell in high)
    nearest, *_ = next(iter(_find_second_stops(data, COMBINATORIAL).values()))
    return Finding(
        tests=judge(MAIN),
        readings=_judge_readings(data, "four-rooms", judge),
        measured=f"{up} stops at {name_cells(high)}, {farthest} steps from the corner "
        f"{corner}",
        evidence="The caption of Figure 2. The normalized Laplacian weighs states by "
        "the root of their degree, so its peak lies away from the walls. With the "
        f"combinatorial one the option ends at {nearest}.",
    )


# The open room


@claim(
    "corners",
    "We discover meaningful options, such as going to the corners of an open room.",
)
def go_to_corners(data: Data) -> Finding:
    labels = ("e2+", "e2-", "e3+", "e3-")
    corners = _find_corners(data, "open-room")

    def measure(reading: str) -> int:
        distances = []
        for label in labels:
            for cell in _find_stops(data, "open-room", label, reading):
                nearest = min(_measure_distance(cell, corner) for corner in corners)
                distances.append(nearest)
        return max(distances)

    def judge(reading: str) -> Tests:
        farthest = measure(reading)
        return [farthest == 0, farthest <= 2]

    stops = {label: _find_stops(data, "open-room", label) for label in labels}
    return Finding(
        tests=judge(MAIN),
        readings=_judge_readings(data, "open-room", judge),
        measured=list_items(
            "{} stops at {}", {label: name_cells(stops[label]) for label in labels}
        ),
        evidence=f"They end at most {measure(MAIN)} steps from a corner with "
        "the normalized Laplacian, which the paper uses, and "
        f"{measure(COMBINATORIAL)} with the combinatorial one. Two tests: they end in "
        "corners, or at most two steps from one. The grid is square, "
        "so e2 and e3 have the same eigenvalue, and any basis of their plane is "
        "right. In another one they end in the middle of a wall.",
    )


@claim(
    "twice-as-often",
    "The fourth eigenoption terminates, on expectation, twice as often as the second "
    "eigenoption.",
    section="4.2",
)
def terminate_twice_as_often(data: Data) -> Finding:
    def judge(reading: str) -> Tests:
        ratios = _compare_second_with_fourth(data, reading)
        return [abs(ratio - 2) < 0.2 for ratio in ratios]

    stops, length = _compare_second_with_fourth(data, MAIN)
    other_stops, other_length = _compare_second_with_fourth(data, COMBINATORIAL)
    turned = list_rows("{length_ratio:.3g} (turned by {angle} degrees)", data["bases"])
    return Finding(
        tests=judge(MAIN),
        readings=_judge_readings(data, "open-room", judge),
        measured=f"e4 stops in {stops:.3g} times as many states as e2, and e2 runs "
        f"{length:.3g} times as long as e4 on average",
        evidence="Lengths are means over the states where an option may start. With "
        f"the combinatorial Laplacian the ratios are {other_stops:.3g} and "
        f"{other_length:.3g}; in other bases of the repeated eigenvalue the lengths "
        f"have the ratio {turned.replace(', ', ' and ')}. Twice as many ends do not "
        "halve the way to the nearest one.",
    )


# The I-Maze


@claim(
    "corridor",
    "We discover meaningful options, such as walking down a corridor.",
)
def walk_down_corridor(data: Data) -> Finding:
    maze_rows = data["cells"][data["cells"].domain == "i-maze"].row
    bars = {maze_rows.min(), maze_rows.max()}

    def judge(reading: str) -> Tests:
        up, down = (
            {row for row, _ in _find_stops(data, "i-maze", label, reading)}
            for label in ("e2+", "e2-")
        )
        ends_in_one_bar = len(up) == 1 and len(down) == 1
        return [ends_in_one_bar and up | down == bars]

    stops = {label: _find_stops(data, "i-maze", label) for label in ("e2+", "e2-")}
    lengths = _select(data["options"], "i-maze").mean_length
    return Finding(
        tests=judge(MAIN),
        readings=_judge_readings(data, "i-maze", judge),
        measured=f"e2+ stops at {name_cells(stops['e2+'])} and e2- at "
        f"{name_cells(stops['e2-'])}, after {lengths['e2+']:.2f} and "
        f"{lengths['e2-']:.2f} steps on average",
        evidence="The corridor of the I-Maze runs from the upper to the lower bar: "
        "each sign must end in one of them only.",
    )


# The 4-room domain


@claim(
    "fifth-is-first-doorway",
    "Doorways are not the first options we discover in the 4-room domain (the fifth "
    "eigenoption is the first to terminate at the entrance of a doorway).",
)
def discover_doorway_fifth(data: Data) -> Finding:
    def judge(reading: str) -> Tests:
        number, _ = _find_first_entrance(data, reading)
        return [number == 5]

    _, first = _find_first_entrance(data, MAIN)
    number, with_direction = _find_first_entrance(data, MAIN, skip_zero=True)
    doorways = _list_doorways(_find_rooms(data, "four-rooms"))
    return Finding(
        tests=judge(MAIN),
        readings={
            **_judge_readings(data, "four-rooms", judge),
            WITHOUT_E1: [number == 5],
        },
        measured=f"the first is {first}; eigenvalue zero aside, {with_direction}",
        evidence=f"The doorways are {name_cells(doorways)}; an entrance is a doorway "
        "or a cell beside one, and either sign counts. The paper counts e1, the "
        "eigenvector of eigenvalue zero: e5 is the fifth only with it. It follows the "
        "degree of the states, so that one of its signs stops at all doorways, and the "
        "other in all cells with four neighbours, some of them beside doorways.",
        lesson="The fifth eigenoption is not the first to end at a doorway: one sign "
        "of e1 does already. It is the first if e1, which has no direction, is left "
        "out.",
    )


@claim(
    "first-to-rooms",
    "The first eigenoptions lead agents to individual rooms.",
    section="4.2",
)
def lead_to_rooms(data: Data) -> Finding:
    rooms = _find_rooms(data, "four-rooms")
    words = {room: f"room {room + 1}" for room in rooms.values()}
    words[DOORWAY] = "a doorway"
    labels = ("e2+", "e2-", "e3+", "e3-", "e4+", "e4-")

    def find_reached(label: str, reading: str = MAIN) -> set[int]:
        stops = _find_stops(data, "four-rooms", label, reading)
        return {rooms[cell] for cell in stops}

    def judge(reading: str) -> Tests:
        return [DOORWAY not in find_reached(label, reading) for label in labels]

    names = {}
    for label in labels:
        reached = sorted(find_reached(label))
        names[label] = " and ".join(words[room] for room in reached)
    return Finding(
        tests=judge(MAIN),
        readings=_judge_readings(data, "four-rooms", judge),
        measured=list_items("{} stops in {}", names),
        evidence="Every run must end inside a room, none in a doorway; an option may "
        "have an end in each of two rooms.",
    )


# What the tables say about options and cells


def _judge_readings(
    data: Data, domain: str, judge: Callable[[str], Tests]
) -> dict[str, Tests]:
    """The tests under each other reading that changes the options of a domain."""
    options = data["options"]
    readings = options[options.domain == domain].reading.unique()
    return {reading: judge(reading) for reading in readings if reading != MAIN}


def _select(table: pd.DataFrame, domain: str, reading: str = MAIN) -> pd.DataFrame:
    """Rows of a domain and a reading, by option."""
    is_chosen = (table.domain == domain) & (table.reading == reading)
    return table[is_chosen].set_index("option")


def _find_stops(
    data: Data, domain: str, option: str, reading: str = MAIN
) -> list[Cell]:
    """Cells where an option terminates."""
    stops = _select(data["stops"], domain, reading)
    cells = stops[stops.index == option][["row", "column"]]
    return list(cells.itertuples(index=False, name=None))


def _find_second_stops(data: Data, reading: str = MAIN) -> dict[str, list[Cell]]:
    """Where e2+ and e2- stop in the 4-room domain.

    The sign that stops nearer to the top right corner, of which the paper speaks, comes
    first: the sign of an eigenvector is a matter of choice.
    """
    _, corner, *_ = _find_corners(data, "four-rooms")
    stops = {
        label: _find_stops(data, "four-rooms", label, reading)
        for label in ("e2+", "e2-")
    }

    def measure_way(label: str) -> int:
        return min(_measure_distance(cell, corner) for cell in stops[label])

    return {label: stops[label] for label in sorted(stops, key=measure_way)}


def _compare_second_with_fourth(data: Data, reading: str) -> tuple[float, float]:
    """How many more states e4 stops in than e2, and how much longer e2 runs."""
    options = _select(data["options"], "open-room", reading)
    e2 = options.loc["e2+"]
    e4 = options.loc["e4+"]
    return e4.n_stops / e2.n_stops, e2.mean_length / e4.mean_length


def _find_first_entrance(
    data: Data, reading: str, *, skip_zero: bool = False
) -> tuple[int, str]:
    """The first eigenvector with an option that stops at a doorway or beside one.

    The result is its number, 0 if there is none, and its options as text.
    """
    doorways = _list_doorways(_find_rooms(data, "four-rooms"))
    labels = _select(data["options"], "four-rooms", reading).index
    entrances: dict[int, dict[str, list[Cell]]] = {}
    for i, label in enumerate(labels):
        number = i // 2 + 1
        for cell in _find_stops(data, "four-rooms", label, reading):
            distance = min(_measure_distance(cell, door) for door in doorways)
            if distance <= 1 and not (skip_zero and number == 1):
                of_label = entrances.setdefault(number, {})
                of_label.setdefault(label, []).append(cell)

    if not entrances:
        return 0, "none examined"
    number = min(entrances)
    words = []
    for label, cells in entrances[number].items():
        place = str(cells[0])
        if len(cells) > 1:
            place = f"{len(cells)} cells"
        words.append(f"{label} at {place}")
    return number, ", ".join(words)


def _find_rooms(data: Data, domain: str) -> dict[Cell, int]:
    """The room of each cell, or `DOORWAY`."""
    cells = data["cells"][data["cells"].domain == domain]
    rooms: dict[Cell, int] = cells.set_index(["row", "column"]).room.to_dict()
    return rooms


def _list_doorways(rooms: Mapping[Cell, int]) -> list[Cell]:
    """The cells that are doorways."""
    return [cell for cell, room in rooms.items() if room == DOORWAY]


def _share_doorway(rooms: Mapping[Cell, int], pair: set[int]) -> bool:
    """Whether both rooms of a pair are beside the same doorway."""
    for door in _list_doorways(rooms):
        beside = {
            room for cell, room in rooms.items() if _measure_distance(cell, door) == 1
        }
        if pair <= beside:
            return True
    return False


def _find_corners(data: Data, domain: str) -> list[Cell]:
    """Free cells nearest to the top left, top right, bottom left and bottom right."""
    cells = _find_rooms(data, domain)
    return [
        min(cells, key=lambda cell: down * cell[0] + right * cell[1])
        for down in (1, -1)
        for right in (1, -1)
    ]


def _measure_distance(cell: Cell, other: Cell) -> int:
    """Number of moves between two cells if there are no walls."""
    return abs(cell[0] - other[0]) + abs(cell[1] - other[1])


def name_cells(cells: Sequence[Any]) -> str:
    """Cells as text.

    >>> name_cells([(1, 2), (3, 4)])
    '(1, 2) and (3, 4)'
    """
    if not cells:
        return "no cell"
    *others, last = [str(cell) for cell in cells]
    if not others:
        return last
    return f"{', '.join(others)} and {last}"
