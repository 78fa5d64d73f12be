"""Dynamics and their graph: the contracts of a map to the letter, stochastic tables, weights, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array, csr_matrix

import eigenoptions as eo
from eigenoptions.mdp import distance, maps, reachable
from eigenoptions.options.walks import walk

FOUR_ROOMS = """\
#############
#.....#....G#
#.....#.....#
#...........#
#.....#.....#
#.....#.....#
##.####.....#
#.....###.###
#.....#.....#
#.....#.....#
#...........#
#S....#.....#
#############
"""


def refused(kind, call, *words):
    """Check that a call fails with one line that has all these words; the line."""
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message
    return message


def same_dynamics(a, b):
    return a.fingerprint == b.fingerprint and np.array_equal(a.coords, b.coords)


def free_cells(text):
    """Coordinates of the free cells of a map, from its text."""
    lines = text.split("\n")
    return [(y, x) for y, line in enumerate(lines) for x, c in enumerate(line) if c in ". SG"]


# Maps -------------------------------------------------------------------------------------------------------


def test_four_rooms_is_the_classic_map(four_rooms):
    assert same_dynamics(four_rooms, eo.maze(FOUR_ROOMS))
    assert (four_rooms.n_states, four_rooms.n_actions, four_rooms.name) == (104, 4, "four-rooms")
    assert four_rooms.coords[four_rooms.start].tolist() == [11, 1]
    assert four_rooms.coords[four_rooms.goal].tolist() == [1, 11]
    doors = {(3, 6), (6, 2), (7, 9), (10, 6)}
    assert doors <= set(map(tuple, four_rooms.coords.tolist()))


def test_open_room_and_i_maze(open_room, i_maze):
    assert open_room.n_states == 100
    assert np.ptp(open_room.coords, axis=0).tolist() == [9, 9]
    assert open_room.coords[open_room.start].tolist() == [10, 1]
    assert open_room.coords[open_room.goal].tolist() == [1, 10]
    assert i_maze.n_states == 19
    ys, counts = np.unique(i_maze.coords[:, 0], return_counts=True)
    assert len(ys) == 15
    assert counts.tolist() == [3, *[1] * 13, 3]
    assert i_maze.start == 16
    assert i_maze.goal == 2


def test_actions_are_up_right_down_left():
    cross = eo.maze(" . \n...\n . ".replace(" ", "#"))
    assert cross.coords.tolist() == [[0, 1], [1, 0], [1, 1], [1, 2], [2, 1]]
    assert cross.successors[2].tolist() == [0, 3, 4, 1]
    assert cross.successors[0].tolist() == [0, 0, 2, 0]  # walls and the edge of the map leave the state


@given(st.lists(st.text("#X. ", min_size=0, max_size=7), min_size=1, max_size=7))
def test_moves_follow_the_map(lines):
    """Against the text itself: states row by row, blocked moves stay, what is missing is wall."""
    text = "\n".join(lines)
    while lines and not lines[0]:
        lines.pop(0)  # empty lines before the map do not count
    cells = free_cells("\n".join(lines))
    if not cells:
        with pytest.raises(ValueError, match=r"the map (is empty|has no free cell)"):
            eo.maze(text + "\n")
        return
    mdp = eo.maze(text + "\n")
    assert [tuple(c) for c in mdp.coords.tolist()] == cells
    number = {c: s for s, c in enumerate(cells)}
    for s, (y, x) in enumerate(cells):
        beside = [(y - 1, x), (y, x + 1), (y + 1, x), (y, x - 1)]
        assert mdp.successors[s].tolist() == [number.get(c, s) for c in beside]


def test_many_ways_to_write_one_map(tmp_path):
    plain = "S.#\n..G"
    mdp = eo.maze(plain)
    (tmp_path / "little.txt").write_text(plain)
    (tmp_path / "dos.txt").write_bytes(plain.replace("\n", "\r\n").encode())
    (tmp_path / "mark.txt").write_text("\ufeff" + plain, encoding="utf-8")
    others = [
        "2,3\nS.#\n..G",  # the authors' header
        " 2 , 3 \r\nS.#\r\n..G\r\n",
        "S.\n..G",  # ragged: what is missing is wall
        "S.X\n  G",
        "\n\nS.#\n..G\n\n",
        "5,9\nS.#\n..G",  # a header may say more than is there
        str(tmp_path / "little.txt"),
        tmp_path / "little.txt",
        tmp_path / "dos.txt",
        tmp_path / "mark.txt",
    ]
    for source in others:
        other = eo.maze(source)
        assert same_dynamics(mdp, other), source
        assert (other.start, other.goal) == (0, 4)
    assert eo.maze(tmp_path / "little.txt").name == "little"
    assert mdp.name == ""


def test_a_map_may_be_one_line_and_have_no_ends():
    assert eo.maze("...").n_states == 3
    assert (eo.maze("   ").start, eo.maze(".").goal) == (None, None)
    assert eo.maze("SG").successors.tolist() == [[0, 1, 0, 0], [1, 1, 1, 0]]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("four-room", ["no maze called 'four-room'", "did you mean 'four-rooms'?"]),
        ("Open Room", ["no maze called 'Open Room'", "did you mean 'open-room'?"]),
        ("zzzzqqqq", ["no maze called 'zzzzqqqq'", "built in are four-rooms, i-maze, open-room"]),
        ("", ["the map is empty", "give at least one line"]),
        ("\n\n", ["the map is empty"]),
        ("3,3\n", ["the map is empty"]),
        ("##\nXX", ["no free cell", "write . or a space"]),
        ("#", ["no free cell"]),
        ("S.\n.?", ["unknown character '?' at line 2 column 2", "use # or X for walls"]),
        ("2,2\nS.\n.\t", ["unknown character '\\t' at line 3 column 2"]),
        ("\n..s", ["unknown character 's' at line 2 column 3"]),
        ("S.\n.S", ["the map has 2 starts (S), at line 1 column 1 and line 2 column 2: keep one"]),
        ("2,2\nG.\n.G", ["the map has 2 goals (G), at line 2 column 1 and line 3 column 2: keep one"]),
        ("\n\n.SSS", ["the map has 3 starts (S), at line 3 column 2 and line 3 column 3"]),
        ("1,2\n...", ["the first line says 1,2 but the map has 1 rows and 3 columns"]),
        ("1,9\n..\n..", ["the first line says 1,9 but the map has 2 rows and 2 columns"]),
        ("m" * 5000, ["cannot read the maze 'mmm", "File name too long"]),
        ("nul\0", ["nul"]),
    ],
)
def test_maps_that_are_refused(source, words):
    message = refused(ValueError, lambda: eo.maze(source), *words)
    assert len(message) < 250


def test_files_that_are_no_maps(tmp_path):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
    refused(ValueError, lambda: eo.maze(tmp_path / "picture.png"), "picture.png is not a text file")
    (tmp_path / "empty.txt").write_text("")
    refused(ValueError, lambda: eo.maze(tmp_path / "empty.txt"), "the map is empty")
    refused(ValueError, lambda: eo.maze(tmp_path), "cannot read the maze", "it is a folder")
    refused(ValueError, lambda: eo.maze(tmp_path / "nowhere.txt"), "no maze called", "no such file")


# Tables -----------------------------------------------------------------------------------------------------


def test_a_table_may_come_in_many_forms():
    dense = np.array([[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.25, 0.75]]])
    flat = dense.reshape(4, 2)
    forms = [
        dense,
        flat,
        flat.tolist(),
        csr_array(flat),
        csr_matrix(flat),
        coo_array(flat),
        csr_array(flat).tocsc(),
    ]
    made = [eo.MDP(form) for form in forms]
    for mdp in made:
        assert (mdp.n_states, mdp.n_actions) == (2, 2)
        assert isinstance(mdp.transition, csr_array)
        assert mdp.successors is None
        np.testing.assert_array_equal(mdp.transition.toarray(), flat)
    assert len({mdp.fingerprint for mdp in made}) == 1


def test_a_table_is_copied_and_made_canonical():
    given = coo_array(([0.5, 0.5, 0.0, 1.0], ([0, 0, 0, 1], [1, 1, 0, 0])), shape=(2, 2)).tocsr()
    mdp = eo.MDP(given)  # doubled entries add up, stored zeros go
    assert mdp.successors.tolist() == [[1], [0]]
    assert mdp.fingerprint == eo.MDP(np.array([[0.0, 1.0], [1.0, 0.0]])).fingerprint
    before = mdp.transition.toarray()
    given.data[:] = 7.0
    np.testing.assert_array_equal(mdp.transition.toarray(), before)
    with pytest.raises(ValueError, match="read-only"):
        mdp.transition.data[0] = 0.5


def test_fingerprint_tells_dynamics_apart_not_tasks(four_rooms):
    other = four_rooms.task(start=3, goal=4)
    assert other.fingerprint == four_rooms.fingerprint
    assert (other.start, other.goal, other.name) == (3, 4, "four-rooms")
    assert four_rooms.task(goal=0).start == four_rooms.start
    table = four_rooms.transition.copy()
    table.data.setflags(write=True)
    moved = table.toarray()
    moved[0] = moved[4]
    assert eo.MDP(moved).fingerprint != four_rooms.fingerprint
    # the same rows split otherwise into states and actions are other dynamics
    a, b = np.array([[0.0, 1], [0, 1]]), np.array([[0.0, 1], [0, 1], [0, 1], [0, 1]])
    assert eo.MDP(a).fingerprint != eo.MDP(b).fingerprint


def test_one_state_and_many_actions():
    alone = eo.MDP(np.ones((3, 1)))
    assert (alone.n_states, alone.n_actions) == (1, 3)
    assert repr(alone) == "MDP(1 state, 3 actions, deterministic)"
    assert eo.graph(alone).nnz == 0


TABLE = np.array([[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"transition": [[0.5, 0.4], [1.0, 0.0]]},
            ["rows must sum to 1", "row 0 (state 0, action 0)", "0.9"],
        ),
        ({"transition": [[1, 0], [1, 0], [0, 1], [0, 0]]}, ["row 3 (state 1, action 1)", "sums to 0"]),
        ({"transition": [[1.5, -0.5], [1.0, 0.0]]}, ["must be finite and not negative", "-0.5"]),
        ({"transition": [[np.nan, 1.0], [1.0, 0.0]]}, ["must be finite", "nan"]),
        ({"transition": [[np.inf, 1.0], [1.0, 0.0]]}, ["must be finite", "inf"]),
        ({"transition": np.ones((3, 2)) / 2}, ["shape (S*A, S)", "(3, 2)"]),
        ({"transition": np.ones((2, 3)) / 3}, ["shape (S*A, S)", "(2, 3)"]),
        ({"transition": np.ones((2, 2, 3)) / 3}, ["shape (S*A, S) or (S, A, S)", "(2, 2, 3)"]),
        ({"transition": np.ones(2)}, ["shape (S*A, S) or (S, A, S)", "(2,)"]),
        ({"transition": np.zeros((0, 0))}, ["at least one state and action", "(0, 0)"]),
        ({"transition": np.zeros((0, 2))}, ["at least one state and action", "(0, 2)"]),
        ({"transition": coo_array(np.ones(2))}, ["(2,)"]),
        ({"n_states": 3}, ["n_states is 2 by the shape", "got 3"]),
        ({"n_actions": 2}, ["n_actions is 1 by the shape", "got 2"]),
        ({"coords": np.zeros((3, 2), int)}, ["coords", "(2, 2)", "(3, 2)"]),
        ({"coords": np.zeros((2, 2))}, ["coords must be whole numbers", "float64"]),
        ({"start": 2}, ["start must be a state in 0..1, got 2"]),
        ({"goal": -1}, ["goal must be a state in 0..1, got -1"]),
        ({"goal": 0.5}, ["goal must be a state in 0..1, got 0.5"]),
        ({"start": True}, ["start must be a state in 0..1, got True"]),
    ],
)
def test_tables_that_are_refused(given, words):
    refused(ValueError, lambda: eo.MDP(**{"transition": TABLE, **given}), *words)


def test_a_bad_task_is_refused(four_rooms):
    refused(ValueError, lambda: four_rooms.task(goal=104), "goal must be a state in 0..103, got 104")


def test_transitions_have_one_length():
    refused(
        ValueError,
        lambda: eo.Transitions(np.zeros(2), np.zeros(3), np.zeros(2), np.zeros(2)),
        "one length",
        "'action': 3",
    )


# Graphs -----------------------------------------------------------------------------------------------------


def test_graph_of_a_maze_joins_neighbours(domain):
    W = eo.graph(domain)
    assert isinstance(W, csr_array)
    apart = np.abs(domain.coords[:, None] - domain.coords[None]).sum(axis=2)
    np.testing.assert_array_equal(W.toarray(), apart == 1)
    assert W.has_sorted_indices


@given(st.integers(0, 10**6))
def test_graph_is_symmetric_without_loops_and_has_the_edges_of_the_table(seed):
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(1, 8)), int(rng.integers(1, 4))
    P = np.eye(S)[rng.integers(S, size=(S, A))]
    mixed = rng.random((S, A)) < 0.3
    P[mixed] = rng.dirichlet(np.ones(S), size=mixed.sum())
    mdp = eo.MDP(P)
    W = eo.graph(mdp).toarray()
    for s in range(S):
        for t in range(S):
            either = any(P[s, a, t] > 0 or P[t, a, s] > 0 for a in range(A))
            assert W[s, t] == (1.0 if either and s != t else 0.0)
    walk = P.mean(axis=1)
    np.fill_diagonal(walk, 0.0)
    np.testing.assert_allclose(eo.graph(mdp, "random-walk").toarray(), (walk + walk.T) / 2, atol=1e-16)


def test_directed_absorbing_and_isolated_states():
    """0 -> 1 -> 2 one way, 2 absorbs, 3 stands alone."""
    P = np.eye(4)[[1, 2, 2, 3]][:, None]
    mdp = eo.MDP(P)
    W = eo.graph(mdp)
    assert W.toarray().tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert W.nnz == 4


def test_given_weights_are_symmetrised_and_lose_their_loops(corridor):
    n = corridor.n_states
    rng = np.random.default_rng(0)
    given_weights = rng.random((n, n)) * (rng.random((n, n)) < 0.4)
    expected = (given_weights + given_weights.T) / 2
    np.fill_diagonal(expected, 0.0)
    for form in (given_weights, given_weights.tolist(), csr_array(given_weights), csr_matrix(given_weights)):
        W = eo.graph(corridor, form)
        np.testing.assert_allclose(W.toarray(), expected, atol=1e-16)
        assert (W.data > 0).all()
        assert abs(W - W.T).nnz == 0
    whole = eo.graph(corridor, np.ones((n, n), dtype=int))  # whole numbers are halved as numbers
    assert set(whole.data.tolist()) == {1.0}
    kept = csr_array(given_weights)
    before = kept.toarray()
    eo.graph(corridor, kept)
    np.testing.assert_array_equal(kept.toarray(), before)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ("distance", ['weights must be "adjacency", "random-walk" or an (S, S) array', "'distance'"]),
        (np.ones((3, 3)), ["weights must have shape (7, 7) for 7 states, got (3, 3)"]),
        (np.ones(7), ["weights must have shape (7, 7) for 7 states, got (1, 7)"]),
        (-np.eye(7), ["weights must be finite and not negative, got -1.0"]),
        (np.full((7, 7), np.nan), ["weights must be finite and not negative, got nan"]),
        (csr_array(np.diag([np.inf] * 7)), ["weights must be finite and not negative, got inf"]),
    ],
)
def test_weights_that_are_refused(corridor, weights, words):
    refused(ValueError, lambda: eo.graph(corridor, weights), *words)


# Showing itself ---------------------------------------------------------------------------------------------


def test_an_mdp_shows_itself(i_maze):
    assert repr(i_maze) == "MDP(i-maze: 19 states, 4 actions, deterministic, start 16, goal 2)"
    lines = str(i_maze).split("\n")
    assert lines[1] == "█  G█"
    assert lines[15] == "█S  █"
    assert lines[-1] == repr(i_maze)
    page = i_maze._repr_html_()
    assert page.count("<svg") == page.count("</svg>") == 1
    assert page.count('fill="#fff"') == 19
    assert ">S</text>" in page
    assert ">G</text>" in page


def test_an_mdp_without_coordinates_shows_itself(slippery):
    assert str(slippery) == repr(slippery) == "MDP(3 states, 2 actions, stochastic)"
    assert "<svg" not in slippery._repr_html_()


def test_a_name_is_no_markup():
    page = eo.MDP(TABLE, name="<img src=x onerror=alert(1)>")._repr_html_()
    assert "<img" not in page
    assert "&lt;img" in page


def test_reachable_agrees_with_powers_of_the_table(slippery):
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 12):
        moves = rng.random((n, n)) < 1.5 / n
        closure = np.eye(n, dtype=bool)
        for _ in range(n):
            closure |= closure @ moves
        for backward, paths in ((False, closure), (True, closure.T)):
            for states in ([], [0], [n - 1, 0]):
                expected = paths[states].any(axis=0)
                assert np.array_equal(reachable(csr_array(moves), states, backward=backward), expected)
                mask = np.isin(np.arange(n), states)
                assert np.array_equal(reachable(csr_array(moves), mask, backward=backward), expected)
    # A table with several actions per state: a move by any of them counts.
    assert reachable(slippery.transition, [0]).all()


def test_distance_counts_moves(four_rooms, i_maze):
    assert distance(i_maze, 0, 0) == 0
    assert distance(four_rooms, four_rooms.start, four_rooms.goal) == 20
    assert distance(eo.maze("S#G"), 0, 1) is None


def test_maps_by_rule():
    mdp = eo.maze("rooms:3x2", rng=5)
    assert mdp.name == "rooms:3x2"
    assert mdp.fingerprint == eo.maze(maps.rooms_map(3, 2, rng=5)).fingerprint
    assert mdp.fingerprint != eo.maze("rooms:3x2").fingerprint
    assert eo.maze("perfect:4x4").fingerprint == eo.maze(maps.perfect_map(4, 4)).fingerprint
    assert eo.maze("open:4x5").n_states == 20


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rooms:6", "a map made by rule has rows and columns, like rooms:20x30, got 'rooms:6'"),
        ("rooms:6x6x6", "rows and columns"),
        ("open:-1x6", "rows and columns"),
        ("perfect:0x5", "a map has 1 to 50,000,000 cells, perfect:0x5 has 0"),
        ("open:10000x10000", "give other numbers"),
        ("halls:3x3", "no maze called 'halls:3x3'"),
    ],
)
def test_rules_that_are_refused(name, words):
    with pytest.raises(ValueError, match=words):
        eo.maze(name)


def test_a_walk_records_the_option_behind_each_step(four_rooms):
    options = eo.discover(four_rooms, 4)
    steps, by = walk(four_rooms, 500, options, rng=2, record_options=True)
    assert set(by.tolist()) == {-1, 0, 1, 2, 3}
    led = by >= 0
    assert np.array_equal(options.policy[by[led], steps.obs[led]], steps.action[led])


@pytest.mark.parametrize(
    "reward", [[1.0] * 3, [1.0] * 17, [[1.0] * 4] * 3, [0.0, 1.0, np.nan, 0.0], [np.inf] * 16]
)
def test_rewards_are_finite_numbers_of_states_or_of_states_and_actions(reward):
    table = eo.maze("S..G").transition
    with pytest.raises(
        ValueError, match="reward must be 4 finite numbers, one per state, or 16, one per state"
    ):
        eo.MDP(table, reward=reward)
    for right in ([1.0] * 4, [[1.0] * 4] * 4):
        assert eo.MDP(table, reward=right).reward.shape == (np.size(right),)


def test_weights_of_the_random_walk_are_its_mean_probabilities_both_ways():
    """Two actions: one stays with 1/4 and goes on with 3/4, the other goes to state 0."""
    P = np.zeros((6, 3))
    for s in range(3):
        P[2 * s, s], P[2 * s, (s + 1) % 3] = 0.25, 0.75
        P[2 * s + 1, 0] = 1.0
    mdp = eo.MDP(csr_array(P))
    walk = P.reshape(3, 2, 3).mean(axis=1)
    expected = (walk + walk.T) / 2
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(eo.graph(mdp, "random-walk").toarray(), expected)
    np.testing.assert_array_equal(eo.graph(mdp).toarray(), expected > 0)
