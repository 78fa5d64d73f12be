"""Search in a learned model of one step, for `explore` where nothing repeats.

Points are in large steps, so that a cell has the side 1. Whatever is random comes from
a counter, and sums are written out, so that every machine computes the same.
"""

from __future__ import annotations

import numpy as np

from eigenoptions._kernels.compilation import compile_helper, compile_kernel
from eigenoptions._kernels.model_arrays import (
    OFFSET,
    Frame,
    Limits,
    Model,
    Novelty,
    SearchTree,
    Smooth,
    Space,
    Table,
    Walls,
)
from eigenoptions._kernels.random_numbers import draw, mix, pick_index
from eigenoptions._types import BoolArray, FloatArray, IntegerArray

# Corrections near by: means in cells of 4, 2 and 1 large steps.
N_LEVELS = 3
# How far the nearest failure may be, in large steps.
WALL_RADIUS = 2.0
EXPLAIN_BEST = 0.3
EXPLAIN_LEAST = 0.1
# How far distances to what was seen are measured, in cells of a map.
FAR_RADIUS = 16


@compile_helper
def find_cell(space: Space, point: FloatArray, fine: int, cell: IntegerArray) -> None:
    """Write the cell of a point."""
    for i in range(len(point)):
        number = int(np.floor(point[i] * fine + OFFSET))
        if space.turns[i] > 0:
            number = number % (space.turns[i] * fine)
        cell[i] = number


@compile_helper
def hash_cell(cell: IntegerArray, level: int, salt: int) -> np.uint64:
    """Return a key of a cell, wider by `level` doublings; never 0."""
    key = np.uint64(salt + 1)
    for i in range(len(cell)):
        key = mix(key + np.uint64(0x9E3779B97F4A7C15) * np.uint64(cell[i] >> level))
    return key | np.uint64(1)


@compile_helper
def find_slot(keys: IntegerArray, key: np.uint64) -> int:
    """Return where a key is, or the free place where it would be."""
    mask = len(keys) - 1
    slot = int(np.int64((key >> np.uint64(8)) & np.uint64(mask)))
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@compile_helper
def place_cell(frame: Frame, cell: IntegerArray, place: IntegerArray) -> None:
    """Write the place of a cell in the maps of pairs."""
    for i in range(len(cell)):
        row = (cell[i] - frame.low[i]) >> frame.shift[i]
        place[i] = min(max(row, 0), frame.width[i] - 1)


@compile_helper
def wrap_difference(difference: float, turn: float) -> float:
    """Return the difference of two angles, or of two numbers where turn is 0."""
    if turn > 0:
        return (difference + turn / 2) % turn - turn / 2
    return difference


@compile_helper
def clip(value: float, low: float, high: float) -> float:
    """Return the value within bounds."""
    return min(max(value, low), high)


@compile_helper
def make_inputs(space: Space, point: FloatArray, inputs: FloatArray) -> None:
    """Write what the smooth model reads: an angle as its cosine and sine."""
    position = 0
    for i in range(len(point)):
        if space.turns[i] > 0:
            angle = point[i] * space.radians[i]
            inputs[position] = np.cos(angle)
            inputs[position + 1] = np.sin(angle)
            position += 2
        else:
            inputs[position] = point[i]
            position += 1


@compile_helper
def expect_smoothly(
    space: Space,
    smooth: Smooth,
    point: FloatArray,
    action: int,
    inputs: FloatArray,
    bent: FloatArray,
    change: FloatArray,
) -> None:
    """Write the change that the smooth model expects."""
    make_inputs(space, point, inputs)
    n_inputs, n_hinges = smooth.directions.shape
    for h in range(n_hinges):
        bent[h] = -smooth.offsets[h]
    for i in range(len(change)):
        change[i] = smooth.base[action, i]
    for j in range(n_inputs):
        scaled = (inputs[j] - smooth.mean[j]) / smooth.spread[j]
        for h in range(n_hinges):
            bent[h] += scaled * smooth.directions[j, h]
        for i in range(len(change)):
            change[i] += scaled * smooth.slope[action, j, i]
    for h in range(n_hinges):
        if bent[h] > 0.0:
            for i in range(len(change)):
                change[i] += bent[h] * smooth.bends[h, i]


@compile_helper
def expect_step(
    model: Model,
    point: FloatArray,
    action: int,
    inputs: FloatArray,
    bent: FloatArray,
    change: FloatArray,
    error: FloatArray,
    cell: IntegerArray,
    place: IntegerArray,
    after: FloatArray,
) -> None:
    """Write where an action is expected to lead; the arrays before are scratch."""
    space, smooth, table, walls = model.space, model.smooth, model.errors, model.walls
    d = len(point)
    expect_smoothly(space, smooth, point, action, inputs, bent, change)

    # Walls are known by where a step aims without them.
    for i in range(d):
        after[i] = clip(point[i] + change[i], smooth.low[i], smooth.high[i])
    find_cell(space, after, walls.frame.fine, cell)
    place_cell(walls.frame, cell, place)

    # From wide to narrow cells; the mean of the wider one counts as one more step.
    for i in range(d):
        error[i] = 0.0
    find_cell(space, point, 1, cell)
    for level in range(N_LEVELS - 1, -1, -1):
        slot = find_slot(table.keys, hash_cell(cell, level, action * N_LEVELS + level))
        count = table.counts[slot]
        if count > 0:
            for i in range(d):
                error[i] = (table.sums[slot, i] + error[i]) / (count + 1.0)
    for i in range(d):
        moved = clip(change[i] + error[i], smooth.least[i], smooth.most[i])
        after[i] = clip(point[i] + moved, smooth.low[i], smooth.high[i])

    for i in range(d):
        pair = find_wall(space, walls, i, place)
        if pair >= 0:
            row, column = place[space.pairs[pair, 0]], place[space.pairs[pair, 1]]
            after[i] = walls.outcome[i, pair, row, column]


@compile_helper
def is_blocked(space: Space, walls: Walls, i: int, p: int, place: IntegerArray) -> bool:
    """Whether a pair foresees that coordinate i fails where a step aims."""
    row, column = place[space.pairs[p, 0]], place[space.pairs[p, 1]]
    return bool(walls.failed[i, p, row, column] < walls.held[p, row, column])


@compile_helper
def find_wall(space: Space, walls: Walls, i: int, place: IntegerArray) -> int:
    """Return the pair by which coordinate i is blocked where a step aims; -1: none.

    All pairs that explain failures must agree.
    """
    found = -1
    for p in range(len(space.pairs)):
        if walls.explains[i, p]:
            if not is_blocked(space, walls, i, p, place):
                return -1
            if found < 0 or walls.hits[i, p] > walls.hits[i, found]:
                found = p
    return found


@compile_helper
def note_walls(
    space: Space,
    walls: Walls,
    place: IntegerArray,
    has_failed: BoolArray,
    outcome: FloatArray,
) -> None:
    """Note which coordinates of a step failed, by where it aimed."""
    n_pairs = len(space.pairs)
    for i in range(len(has_failed)):
        if has_failed[i]:
            walls.failures[i] = 0.98 * walls.failures[i] + 1.0
        best = 0.0
        for p in range(n_pairs):
            foreseen = is_blocked(space, walls, i, p, place)
            if has_failed[i]:
                walls.hits[i, p] *= 0.98
            if foreseen:
                walls.hits[i, p] += 1.0 if has_failed[i] else -1.0
            best = max(best, walls.hits[i, p])
        for p in range(n_pairs):
            least = max(EXPLAIN_BEST * best, EXPLAIN_LEAST * walls.failures[i])
            walls.explains[i, p] = (
                walls.failures[i] >= 2.0 and walls.hits[i, p] >= least
            )

    for p in range(n_pairs):
        row, column = place[space.pairs[p, 0]], place[space.pairs[p, 1]]
        if not has_failed.any() and walls.held[p, row, column] > 0.0:
            spread_out(space, walls, p, row, column, -1, 0.0)
        for i in range(len(has_failed)):
            if has_failed[i]:
                spread_out(space, walls, p, row, column, i, outcome[i])


@compile_helper
def spread_out(
    space: Space,
    walls: Walls,
    p: int,
    row: int,
    column: int,
    i: int,
    outcome: float,
) -> None:
    """Note how far places are from a step that failed in i, or that held (-1)."""
    frame = walls.frame
    first, second = space.pairs[p, 0], space.pairs[p, 1]
    height, width = frame.width[first], frame.width[second]
    row_size = 2.0 ** frame.shift[first] / frame.fine
    column_size = 2.0 ** frame.shift[second] / frame.fine
    rows = max(int(WALL_RADIUS / row_size), 1)
    columns = max(int(WALL_RADIUS / column_size), 1)
    for dy in range(-rows, rows + 1):
        y = row + dy
        if space.turns[first] > 0:
            y = y % height
        if y < 0 or y >= height:
            continue
        for dx in range(-columns, columns + 1):
            x = column + dx
            if space.turns[second] > 0:
                x = x % width
            if x < 0 or x >= width:
                continue
            far = (dy * row_size) ** 2 + (dx * column_size) ** 2
            if i < 0:
                walls.held[p, y, x] = min(walls.held[p, y, x], far)
            elif far < walls.failed[i, p, y, x]:
                walls.failed[i, p, y, x] = far
                walls.outcome[i, p, y, x] = outcome


@compile_kernel
def learn_steps(
    model: Model,
    points: FloatArray,
    actions: IntegerArray,
    changes: FloatArray,
    learns_walls: bool,
    learns_errors: bool,
) -> None:
    """Learn from steps: where they failed, and the mean error near by."""
    space, smooth, table, walls = model.space, model.smooth, model.errors, model.walls
    n, d = points.shape
    inputs = np.empty(len(smooth.mean))
    bent = np.empty(len(smooth.offsets))
    change, aim, outcome = np.empty(d), np.empty(d), np.empty(d)
    has_failed = np.empty(d, np.bool_)
    cell, place = np.empty(d, np.int64), np.empty(d, np.int64)
    for t in range(n):
        point, action = points[t], actions[t]
        expect_smoothly(space, smooth, point, action, inputs, bent, change)
        for i in range(d):
            aim[i] = clip(point[i] + change[i], smooth.low[i], smooth.high[i])
            change[i] = aim[i] - point[i]
        find_cell(space, aim, walls.frame.fine, cell)
        place_cell(walls.frame, cell, place)
        find_cell(space, point, 1, cell)
        for i in range(d):
            error = changes[t, i] - change[i]
            has_failed[i] = abs(error) > walls.limit[i]
            outcome[i] = point[i] + changes[t, i]
            change[i] = clip(error, -4.0, 4.0)
        if learns_walls:
            note_walls(space, walls, place, has_failed, outcome)
        # What a wall explains says nothing about free places near by.
        for i in range(d):
            if has_failed[i] and find_wall(space, walls, i, place) >= 0:
                change[i] = 0.0
        if learns_errors:
            for level in range(N_LEVELS):
                key = hash_cell(cell, level, action * N_LEVELS + level)
                slot = find_slot(table.keys, key)
                table.keys[slot] = key
                table.counts[slot] += 1.0
                for i in range(d):
                    table.sums[slot, i] += change[i]


@compile_kernel
def expect_points(
    model: Model, points: FloatArray, actions: IntegerArray
) -> FloatArray:
    """Return where actions are expected to lead."""
    n, d = points.shape
    inputs = np.empty(len(model.smooth.mean))
    bent = np.empty(len(model.smooth.offsets))
    change, error = np.empty(d), np.empty(d)
    cell, place = np.empty(d, np.int64), np.empty(d, np.int64)
    after = np.empty((n, d))
    for t in range(n):
        expect_step(
            model, points[t], actions[t],
            inputs, bent, change, error, cell, place, after[t],
        )  # fmt: skip
    return after


@compile_kernel
def see_points(
    space: Space,
    novelty: Novelty,
    seen: IntegerArray,
    points: FloatArray,
    cells: IntegerArray,
    is_new: BoolArray,
) -> None:
    """Note points as seen; write their cells, and which of these are new."""
    n, d = points.shape
    place = np.empty(d, np.int64)
    for t in range(n):
        cell = cells[t]
        find_cell(space, points[t], 1, cell)
        key = hash_cell(cell, 0, 0)
        slot = find_slot(seen, key)
        is_new[t] = seen[slot] == 0
        if is_new[t]:
            seen[slot] = key
            place_cell(novelty.frame, cell, place)
            for p in range(len(space.pairs)):
                first, second = space.pairs[p, 0], space.pairs[p, 1]
                know_place(space, novelty, p, place[first], place[second])


@compile_kernel
def note_times(
    space: Space, table: Table, points: FloatArray, times: FloatArray
) -> None:
    """Note the least time of each cell."""
    cell = np.empty(points.shape[1], np.int64)
    for t in range(len(points)):
        find_cell(space, points[t], 1, cell)
        key = hash_cell(cell, 0, 0)
        slot = find_slot(table.keys, key)
        if table.counts[slot] == 0 or times[t] < table.sums[slot, 0]:
            table.sums[slot, 0] = times[t]
        table.keys[slot] = key
        table.counts[slot] += 1.0


@compile_kernel
def know_points(
    space: Space, novelty: Novelty, points: FloatArray, pairs: IntegerArray
) -> None:
    """Note places as known, each in one pair."""
    d = points.shape[1]
    cell, place = np.empty(d, np.int64), np.empty(d, np.int64)
    for t in range(len(points)):
        find_cell(space, points[t], 1, cell)
        place_cell(novelty.frame, cell, place)
        p = pairs[t]
        row, column = place[space.pairs[p, 0]], place[space.pairs[p, 1]]
        know_place(space, novelty, p, row, column)


@compile_helper
def know_place(space: Space, novelty: Novelty, p: int, row: int, column: int) -> None:
    """Note a place of one pair as known, and how far others are from it."""
    if novelty.is_known[p, row, column]:
        return
    novelty.is_known[p, row, column] = True
    frame = novelty.frame
    first, second = space.pairs[p, 0], space.pairs[p, 1]
    height, width = frame.width[first], frame.width[second]
    row_size, column_size = 2.0 ** frame.shift[first], 2.0 ** frame.shift[second]
    for dy in range(-FAR_RADIUS, FAR_RADIUS + 1):
        y = row + dy
        if space.turns[first] > 0:
            y = y % height
        if y < 0 or y >= height:
            continue
        for dx in range(-FAR_RADIUS, FAR_RADIUS + 1):
            x = column + dx
            if space.turns[second] > 0:
                x = x % width
            if x < 0 or x >= width:
                continue
            far = np.sqrt((dy * row_size) ** 2 + (dx * column_size) ** 2)
            if far < novelty.distance[p, y, x]:
                novelty.distance[p, y, x] = far


@compile_helper
def measure_novelty(
    space: Space, novelty: Novelty, place: IntegerArray
) -> tuple[float, int]:
    """Return the largest distance to what was seen, and its pair."""
    largest, pair = -1.0, 0
    for p in range(len(space.pairs)):
        row, column = place[space.pairs[p, 0]], place[space.pairs[p, 1]]
        far = novelty.distance[p, row, column]
        if far > largest:
            largest, pair = far, p
    return largest, pair


@compile_kernel
def measure_points(
    space: Space, novelty: Novelty, points: FloatArray
) -> tuple[FloatArray, IntegerArray]:
    """Return the novelty of points, and the pair in which it is largest."""
    n, d = points.shape
    cell, place = np.empty(d, np.int64), np.empty(d, np.int64)
    far, pair = np.empty(n), np.empty(n, np.int64)
    for t in range(n):
        find_cell(space, points[t], 1, cell)
        place_cell(novelty.frame, cell, place)
        far[t], pair[t] = measure_novelty(space, novelty, place)
    return far, pair


@compile_kernel
def search(
    model: Model,
    novelty: Novelty,
    seen: IntegerArray,
    times: Table,
    start: FloatArray,
    limits: Limits,
    seed: int,
) -> SearchTree:
    """Look for the way with the most novelty, or with the least time to go.

    The table of times has a sum for each cell from which a way to the goal is known:
    the steps that it takes.

    All actions go on from each node at once, until they have led to different cells.
    Those that lead to a new place in some pair are nodes themselves.
    """
    space = model.space
    k, d = len(model.smooth.base), len(start)
    n_pairs = len(space.pairs)
    capacity = limits.budget + 256
    counter = np.uint64(seed)

    # Nodes.
    places = np.empty((capacity, d))
    parent = np.full(capacity, -1, np.int64)
    by_action = np.full(capacity, -1, np.int64)
    steps = np.zeros(capacity, np.int64)
    begun = np.zeros(capacity, np.int64)
    places[0] = start
    n_nodes = 1

    # Where actions are now that were held since a node, whose number is that of the
    # group.
    points = np.empty((capacity, k, d))
    unseen = np.zeros((capacity, k), np.int64)
    keys = np.empty(k, np.uint64)
    active = np.empty(capacity, np.int64)
    active[0] = 0
    n_active = 1
    points[0, :] = start

    inputs = np.empty(len(model.smooth.mean))
    bent = np.empty(len(model.smooth.offsets))
    change, error, after = np.empty(d), np.empty(d), np.empty(d)
    cell, place = np.empty(d, np.int64), np.empty(d, np.int64)
    shape = novelty.distance.shape
    is_reached = np.zeros((n_pairs, shape[1], shape[2]), np.bool_)
    done = np.empty(capacity * k, np.int64)

    find_cell(space, start, 1, cell)
    place_cell(novelty.frame, cell, place)
    reach_place(space, is_reached, place, limits.level)

    best, best_node = 0.0, -1
    n_predicted = 0
    for t in range(1, limits.horizon + 1):
        n_done, n_going = 0, 0
        n_predicted += n_active * k
        for g in range(n_active):
            node = active[g]
            for a in range(k):
                expect_step(
                    model, points[node, a], a,
                    inputs, bent, change, error, cell, place, after,
                )  # fmt: skip
                points[node, a] = after
                find_cell(space, after, 1, cell)
                keys[a] = hash_cell(cell, limits.level, 0)
                key = keys[a] if limits.level == 0 else hash_cell(cell, 0, 0)
                if seen[find_slot(seen, key)] == 0:
                    unseen[node, a] += 1
            is_over = t - begun[node] >= limits.hold << limits.level
            if is_over or are_different(keys):
                for a in range(k):
                    done[n_done] = node * k + a
                    n_done += 1
            else:
                active[n_going] = node
                n_going += 1

        # In random order, so that no action is always the first in a place.
        for i in range(n_done - 1, 0, -1):
            counter, number = draw(counter)
            j = pick_index(number, i + 1)
            done[i], done[j] = done[j], done[i]
        for i in range(n_done):
            node, a = done[i] // k, done[i] % k
            find_cell(space, points[node, a], 1, cell)
            place_cell(novelty.frame, cell, place)
            if not reach_place(space, is_reached, place, limits.level):
                continue
            if n_nodes == capacity:
                break
            places[n_nodes] = points[node, a]
            parent[n_nodes] = node
            by_action[n_nodes] = a
            steps[n_nodes] = t - begun[node]
            begun[n_nodes] = t
            points[n_nodes, :] = points[node, a]
            unseen[n_nodes, :] = unseen[node, a]
            active[n_going] = n_nodes
            n_going += 1

            if limits.power > 0.0:
                # A step leads no farther than one large step into what is new.
                far, _ = measure_novelty(space, novelty, place)
                far = min(max(far, 0.5), float(unseen[node, a]))
                trust = limits.trust ** unseen[node, a]
                worth = far**limits.power * trust / (t + 1.0)
            else:
                slot = find_slot(times.keys, hash_cell(cell, 0, 0))
                worth = 0.0
                if times.counts[slot] > 0:
                    worth = 1.0 / (t + times.sums[slot, 0] + 1.0)
            # Nearly equal is equal: rounding must not decide.
            if worth > best * (1.0 + 1e-9):
                best, best_node = worth, n_nodes
            n_nodes += 1
        n_active = n_going
        if n_active == 0 or n_nodes > limits.budget or n_predicted > limits.effort:
            break
    return SearchTree(
        places[:n_nodes],
        parent[:n_nodes],
        by_action[:n_nodes],
        steps[:n_nodes],
        best_node,
        n_predicted,
    )


@compile_helper
def are_different(keys: IntegerArray) -> bool:
    """Whether no two keys are equal."""
    for a in range(len(keys)):
        for b in range(a):
            if keys[a] == keys[b]:
                return False
    return True


@compile_helper
def reach_place(
    space: Space, is_reached: BoolArray, place: IntegerArray, level: int
) -> bool:
    """Note that a search reached a place; return whether one of its pairs is new."""
    is_new = False
    for p in range(len(space.pairs)):
        row = place[space.pairs[p, 0]] >> level
        column = place[space.pairs[p, 1]] >> level
        if not is_reached[p, row, column]:
            is_reached[p, row, column] = True
            is_new = True
    return is_new
