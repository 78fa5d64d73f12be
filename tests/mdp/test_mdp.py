"""MDPs and their graphs: maps, tables, weights, graphs of others, paths."""

from __future__ import annotations

import os

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array, csr_matrix

import eigenoptions as eo
from eigenoptions._validation import readonly
from eigenoptions.mdp import distance, reachable
from eigenoptions.mdp.chains import uniform_walk
from eigenoptions.mdp.graphs import Relay
from eigenoptions.mdp.mazes import perfect_map, rooms_map

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
TABLE = np.array([[0.0, 1.0], [1.0, 0.0]])


# Maps


def test_four_rooms_is_the_classic_map(four_rooms):
    assert four_rooms.fingerprint == eo.maze(FOUR_ROOMS).fingerprint
    assert four_rooms.n_states == 104
    assert four_rooms.n_actions == 4
    assert four_rooms.name == "four-rooms"
    assert four_rooms.coords[four_rooms.start].tolist() == [11, 1]
    assert four_rooms.coords[four_rooms.goal].tolist() == [1, 11]


def test_open_room_and_i_maze_have_the_sizes_of_the_paper(open_room, i_maze):
    assert np.ptp(open_room.coords, axis=0).tolist() == [9, 9]
    assert open_room.coords[[open_room.start, open_room.goal]].tolist() == [
        [10, 1],
        [1, 10],
    ]
    assert np.bincount(i_maze.coords[:, 0])[1:].tolist() == [3, *[1] * 13, 3]
    assert i_maze.start == 16
    assert i_maze.goal == 2


@given(st.lists(st.text("#X. ", min_size=0, max_size=7), min_size=1, max_size=7))
def test_maze_of_any_text_has_its_cells_and_moves(lines):
    text = "\n".join(lines) + "\n"
    while lines and not lines[0]:
        lines.pop(0)  # empty lines before the map do not count
    cells = [
        (y, x) for y, line in enumerate(lines) for x, c in enumerate(line) if c in ". "
    ]
    if not cells:
        with pytest.raises(ValueError, match=r"the map"):
            eo.maze(text)
        return
    mdp = eo.maze(text)
    assert [tuple(c) for c in mdp.coords.tolist()] == cells
    number = {c: s for s, c in enumerate(cells)}
    for s, (y, x) in enumerate(cells):
        neighbours = [(y - 1, x), (y, x + 1), (y + 1, x), (y, x - 1)]
        assert mdp.successors[s].tolist() == [number.get(c, s) for c in neighbours]


def test_maze_accepts_headers_ragged_lines_and_files(tmp_path):
    plain = "S.#\n..G"
    mdp = eo.maze(plain)
    (tmp_path / "little.txt").write_bytes(plain.replace("\n", "\r\n").encode())
    (tmp_path / "mark.txt").write_text("\ufeff" + plain, encoding="utf-8")
    others = [
        "2,3\nS.#\n..G",
        " 2 , 3 \r\nS.#\r\n..G\r\n",
        "S.\n..G",
        "S.X\n  G",
        "\n\nS.#\n..G\n\n",
        "5,9\nS.#\n..G",
        "S.#\n..E",
    ]
    for source in [
        *others,
        str(tmp_path / "little.txt"),
        tmp_path / "little.txt",
        tmp_path / "mark.txt",
    ]:
        other = eo.maze(source)
        assert other.fingerprint == mdp.fingerprint
        assert other.start == 0
        assert other.goal == 4
    assert eo.maze(tmp_path / "little.txt").name == "little"
    assert eo.maze("...").n_states == 3


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("four-room", "did you mean 'four-rooms'"),
        ("zzzzqqqq", "built in are"),
        ("", "empty"),
        ("3,3\n", "empty"),
        ("##\nXX", "no free cell"),
        ("2,2\nS.\n.\t", r"line 3 column 2"),
        ("\n..s", "line 2 column 3"),
        ("2,2\nG.\n.G", "line 2 column 1 and line 3 column 2"),
        ("1,2\n...", "1 rows and 3 columns"),
        ("m" * 5000, "no maze called"),
        ("nul\0", "nul"),
        ("rooms:6", "rooms:20x30"),
        ("open:-1x6", "open:20x30"),
        ("perfect:0x5", "has 0"),
        ("open:10000x10000", "20,000,000"),
        ("halls:3x3", "no maze called"),
    ],
)
def test_maze_bad_text_raises(source, word):
    with pytest.raises(ValueError, match=word):
        eo.maze(source)


def test_maze_bad_file_raises(tmp_path):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
    os.mkfifo(tmp_path / "pipe")
    for path in (
        tmp_path / "picture.png",
        tmp_path,
        tmp_path / "nowhere.txt",
        tmp_path / "pipe",
    ):
        with pytest.raises(ValueError, match=path.name):
            eo.maze(path)
    for wrong in (3, np.zeros((2, 2))):
        with pytest.raises(TypeError, match="maze"):
            eo.maze(wrong)


def test_generated_mazes_are_their_maps():
    mdp = eo.maze("rooms:3x2", rng=5)
    assert mdp.name == "rooms:3x2"
    assert mdp.fingerprint == eo.maze(rooms_map(3, 2, rng=5)).fingerprint
    assert mdp.fingerprint != eo.maze("rooms:3x2").fingerprint
    assert eo.maze("perfect:4x4").fingerprint == eo.maze(perfect_map(4, 4)).fingerprint
    assert eo.maze("open:4x5").n_states == 20


def test_perfect_map_is_a_tree():
    W = eo.graph(eo.maze("perfect:9x7"))
    assert W.nnz // 2 == W.shape[0] - 1
    assert reachable(W, [0]).all()


# Tables


def test_mdp_accepts_every_form_of_a_table():
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
    for mdp in map(eo.MDP, forms):
        assert mdp.n_states == 2
        assert mdp.n_actions == 2
        assert mdp.successors is None
        np.testing.assert_array_equal(mdp.transition.toarray(), flat)
        assert mdp.fingerprint == eo.MDP(dense).fingerprint


def test_mdp_copies_its_table_and_makes_it_canonical():
    table = coo_array(
        ([0.5, 0.5, 0.0, 1.0], ([0, 0, 0, 1], [1, 1, 0, 0])), shape=(2, 2)
    ).tocsr()
    mdp = eo.MDP(table)
    assert mdp.successors.tolist() == [[1], [0]]
    assert mdp.fingerprint == eo.MDP(TABLE).fingerprint
    table.data[:] = 7.0
    np.testing.assert_array_equal(mdp.transition.toarray(), TABLE)
    with pytest.raises(ValueError, match="read-only"):
        mdp.transition.data[0] = 0.5


def test_arrays_whose_memory_is_not_theirs_are_copied(tmp_path):
    """What looks read-only may be written to by its owner.

    A window, a tensor, a buffer, a file.
    """
    x = np.arange(8)
    buffer = bytearray(np.arange(4).tobytes())
    np.save(tmp_path / "x.npy", x)
    torch = pytest.importorskip("torch")
    tensor = torch.arange(4).numpy()
    tensor.setflags(write=False)
    reopened = x.copy()
    reopened.setflags(write=False)
    disguised = [
        reopened,
        np.lib.stride_tricks.sliding_window_view(x, 4)[0],
        tensor,
        np.frombuffer(memoryview(buffer).toreadonly(), dtype=int),
        np.load(tmp_path / "x.npy", mmap_mode="r")[:4],
    ]
    for array in disguised:
        assert not array.flags.writeable
        assert not np.shares_memory(readonly(array), array)
    owned = readonly(x)
    assert readonly(owned) is owned
    assert not readonly(owned[2:]).flags.owndata
    with pytest.raises(ValueError, match="WRITEABLE"):
        owned.setflags(write=True)


def test_with_task_shares_the_table(four_rooms):
    other = four_rooms.with_task(start=3, goal=4)
    assert other.transition is four_rooms.transition
    assert other.start == 3
    assert other.goal == 4
    assert other.fingerprint == four_rooms.fingerprint
    assert four_rooms.with_task(goal=0).start == four_rooms.start == 94
    with pytest.raises(ValueError, match="goal"):
        four_rooms.with_task(goal=104)


def test_fingerprint_tells_dynamics_apart():
    # the same rows split otherwise into states and actions are other dynamics
    a = np.array([[0.0, 1], [0, 1]])
    b = np.array([[0.0, 1], [0, 1], [0, 1], [0, 1]])
    assert len({eo.MDP(x).fingerprint for x in (a, b, TABLE)}) == 3


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"transition": [[0.5, 0.4], [1.0, 0.0]]}, r"row 0 \(state 0, action 0\)"),
        (
            {"transition": [[1, 0], [1, 0], [0, 1], [0, 0]]},
            r"row 3 \(state 1, action 1\)",
        ),
        ({"transition": [[1.5, -0.5], [1.0, 0.0]]}, "not negative"),
        ({"transition": [[np.nan, 1.0], [1.0, 0.0]]}, "finite"),
        ({"transition": np.ones((3, 2)) / 2}, "shape"),
        ({"transition": np.ones((2, 2, 3)) / 3}, "shape"),
        ({"transition": np.ones((3, 2, 2)) / 2}, "transpose"),
        ({"transition": np.ones(2)}, "shape"),
        ({"transition": np.zeros((0, 0))}, "at least one state"),
        ({"transition": coo_array(np.ones(2))}, "shape"),
        (
            {"transition": csr_array((np.ones(2), [0, 7], [0, 1, 2]), shape=(2, 2))},
            "valid sparse array",
        ),
        ({"coords": np.zeros((3, 2), int)}, "coords"),
        ({"coords": np.zeros((2, 2))}, "coords"),
        ({"start": 2}, "start"),
        ({"goal": 0.5}, "goal"),
        ({"reward": [1.0, np.nan]}, "reward"),
        ({"reward": [1.0] * 3}, "reward"),
        ({"states": ["a"]}, "states"),
    ],
)
def test_mdp_bad_fields_raise(fields, word):
    with pytest.raises(ValueError, match=word):
        eo.MDP(**{"transition": TABLE, **fields})


def test_from_successors_is_the_table_of_ones(four_rooms):
    mdp = eo.MDP.from_successors(four_rooms.successors, start=3)
    assert mdp.fingerprint == four_rooms.fingerprint
    assert mdp.start == 3
    for wrong in ([[0], [2]], [[-1]], [0, 1], [[0.0]]):
        with pytest.raises(ValueError, match="successors"):
            eo.MDP.from_successors(wrong)


def test_most_likely_successor_of_a_tie_is_near_the_mean_displacement():
    """Slippery moves in an open room of 3 x 3 cells.

    Left, right and ahead are equally likely.
    """
    room = eo.maze("...\n...\n...")
    P = np.eye(9)[room.successors]
    slippery = eo.MDP(
        (P + np.roll(P, 1, axis=1) + np.roll(P, -1, axis=1)) / 3, coords=room.coords
    )
    assert slippery.most_likely_successors[4].tolist() == room.successors[4].tolist()
    assert room.most_likely_successors is room.successors


def test_from_transitions_estimates_relative_frequencies(slippery):
    rng = np.random.default_rng(0)
    obs = rng.integers(3, size=20_000)
    action = rng.integers(2, size=20_000)
    P = slippery.transition.toarray().reshape(3, 2, 3)
    next_obs = (rng.random(20_000)[:, None] > P[obs, action].cumsum(axis=1)).sum(axis=1)
    sampled = eo.MDP.from_transitions((obs, action, next_obs), n_states=4)
    table = sampled.transition.toarray().reshape(4, 2, 4)
    np.testing.assert_allclose(table[:3, :, :3], P, atol=0.02)
    assert (table[3, :, 3] == 1).all()  # a state that was never seen stays
    for wrong, word in (
        ({"n_states": 2}, "states"),
        ({"n_actions": 1}, "actions"),
        ({"n_actions": 10**9}, "rows"),
    ):
        with pytest.raises(ValueError, match=word):
            eo.MDP.from_transitions((obs, action, next_obs), **wrong)


# Graphs


def test_graph_of_a_maze_joins_neighbours(domain):
    W = eo.graph(domain)
    steps_apart = np.abs(domain.coords[:, None] - domain.coords[None]).sum(axis=2)
    np.testing.assert_array_equal(W.toarray(), steps_apart == 1)
    assert isinstance(W, csr_array)
    assert W.has_sorted_indices


@given(st.integers(0, 10**6))
def test_graph_weights_follow_their_definitions(seed):
    rng = np.random.default_rng(seed)
    S = int(rng.integers(1, 8))
    A = int(rng.integers(1, 4))
    P = np.eye(S)[rng.integers(S, size=(S, A))]
    mixed = rng.random((S, A)) < 0.3
    P[mixed] = rng.dirichlet(np.ones(S), size=mixed.sum())
    mdp = eo.MDP(P)
    moves = (P.sum(axis=1) > 0) & ~np.eye(S, dtype=bool)
    np.testing.assert_array_equal(eo.graph(mdp).toarray(), moves | moves.T)
    walk = np.where(moves, P.mean(axis=1), 0.0)
    np.testing.assert_allclose(
        eo.graph(mdp, "transition").toarray(), (walk + walk.T) / 2, atol=1e-16
    )
    # Theorem 5.1: the combinatorial Laplacian is T'T / 2.
    W = eo.graph(mdp, "incidence").toarray()
    T = np.array([np.eye(S)[t] - np.eye(S)[s] for s, t in np.argwhere(moves)]).reshape(
        -1, S
    )
    np.testing.assert_array_equal(np.diag(W.sum(axis=1)) - W, T.T @ T / 2)


def test_graph_of_own_weights_is_symmetric_without_loops(corridor):
    n = corridor.n_states
    rng = np.random.default_rng(0)
    weights = rng.random((n, n)) * (rng.random((n, n)) < 0.4)
    expected = (weights + weights.T) / 2
    np.fill_diagonal(expected, 0.0)
    for form in (weights, weights.tolist(), csr_array(weights), csr_matrix(weights)):
        np.testing.assert_allclose(
            eo.graph(corridor, form).toarray(), expected, atol=1e-16
        )
    assert set(eo.graph(corridor, np.ones((n, n), dtype=int)).data.tolist()) == {1.0}


@pytest.mark.parametrize(
    "weights",
    [
        "distance",
        "random-walk",
        np.ones((3, 3)),
        np.ones(7),
        -np.eye(7),
        np.full((7, 7), np.nan),
        np.eye(7) * 1j,
    ],
)
def test_graph_bad_weights_raise(corridor, weights):
    with pytest.raises(ValueError, match="weights"):
        eo.graph(corridor, weights)


def test_from_graph_agrees_for_every_form_of_a_graph():
    ring = nx.cycle_graph(5)
    matrix = nx.to_scipy_sparse_array(ring)
    mdps = [
        eo.from_graph(form)
        for form in (ring, ring.to_directed(), matrix, list(ring.edges), ring.edges)
    ]
    for mdp in mdps:
        assert mdp.n_actions == 2
        assert mdp.states is None
        assert mdp.weights is None
        assert mdp.fingerprint == mdps[0].fingerprint
        np.testing.assert_array_equal(eo.graph(mdp).toarray(), matrix.toarray())


def test_from_graph_keeps_labels_weights_and_coordinates():
    star = eo.from_graph([("hub", "a", 2.0), ("hub", "b", 0.5)])
    assert star.states == ("hub", "a", "b")
    assert star.successors.tolist() == [[1, 2], [0, 1], [0, 2]]  # missing actions stay
    assert eo.graph(star).toarray().tolist() == [[0, 2, 0.5], [2, 0, 0], [0.5, 0, 0]]
    grid = eo.from_graph(nx.grid_2d_graph(3, 4))
    assert eo.graph(grid).nnz == eo.graph(eo.maze("open:3x4")).nnz
    assert grid.coords.tolist() == eo.maze("open:3x4").coords.tolist()


def test_lengths_of_edges_are_distances():
    roads = nx.Graph()
    roads.add_edge("home", "shop", km=1.0)
    roads.add_edge("shop", "work", km=2.0)
    roads.add_edge("work", "home", km=8.0)
    mdp = eo.from_graph(roads, length="km")
    W = eo.graph(mdp)
    number = mdp.find_state
    assert W[number("home"), number("shop")] == pytest.approx(2.0)
    assert W[number("work"), number("home")] == pytest.approx(0.25)

    listed = [(u, v, km) for u, v, km in roads.edges(data="km")]
    assert abs(eo.graph(eo.from_graph(listed, length=True)) - W).max() < 1e-12

    roads.add_edge("home", "lake")
    with pytest.raises(ValueError, match="lake"):
        eo.from_graph(roads, length="km")
    with pytest.raises(ValueError, match="> 0"):
        eo.from_graph([("a", "b", 0.0)], length=True)
    with pytest.raises(ValueError, match="length=True"):
        eo.from_graph(csr_array(TABLE), length="km")


def test_discover_takes_graphs_and_names_of_nodes():
    rooms = nx.relabel_nodes(nx.barbell_graph(5, 3), "room {}".format)
    options = eo.discover(rooms, n_options=2)
    mdp = options.mdp
    path = options.follow("e2+", "room 12")
    assert mdp.states[path[0]] == "room 12"
    assert options["e2+"].act("room 12") == options.policy[0, path[0]]
    assert options.choices("room 12").tolist() == options.policy[:, path[0]].tolist()

    task = mdp.with_task(start="room 0", goal="room 12")
    assert (task.start, task.goal) == (mdp.find_state("room 0"), path[0])
    with pytest.raises(IndexError, match="did you mean 'room 1'"):
        mdp.with_task(goal="room_1")

    weights = nx.to_scipy_sparse_array(rooms, format="csr")
    assert eo.discover(weights, n_options=2).policy.shape == options.policy.shape


def test_discover_passes_lengths_and_places_of_a_graph_on():
    roads = nx.Graph()
    roads.add_edge("home", "shop", km=1.0)
    roads.add_edge("shop", "work", km=4.0)
    pos = {"home": (0, 0), "shop": (1, 0), "work": (5, 0)}
    options = eo.discover(roads, 2, length="km", pos=pos)
    mdp = eo.from_graph(roads, length="km", pos=pos)
    np.testing.assert_array_equal(options.mdp.positions, mdp.positions)
    np.testing.assert_allclose(options.mdp.weights.toarray(), mdp.weights.toarray())


def test_an_integer_that_is_name_and_number_is_asked_back():
    path = eo.from_graph([(1, 2), (2, 3)])
    with pytest.raises(ValueError, match="name of state number 0, and the number of"):
        path.with_task(goal=1)
    assert path.find_state(3) == 2
    assert eo.from_graph([(0, 1), (1, 2)]).find_state(1) == 1


def test_positions_of_nodes_are_kept_and_drawn(tmp_path):
    places = nx.random_geometric_graph(12, 0.5, seed=3)
    options = eo.discover(places, n_options=2)
    expected = [places.nodes[node]["pos"] for node in places]
    np.testing.assert_allclose(options.mdp.positions, expected)
    options.save(tmp_path / "o.safetensors")
    loaded = eo.load_options(tmp_path / "o.safetensors")
    np.testing.assert_array_equal(loaded.mdp.positions, options.mdp.positions)
    assert len(eo.plots.plot_options(loaded).axes) == 2
    spectrum = eo.spectrum(eo.graph(loaded.mdp), k=3)
    assert eo.plots.plot_eigenvectors(loaded.mdp, spectrum).axes

    ring = nx.cycle_graph(6)
    layout = nx.circular_layout(ring)
    assert eo.from_graph(ring, pos=layout).positions.shape == (6, 2)
    with pytest.raises(ValueError, match="5 is missing"):
        eo.from_graph(ring, pos={i: layout[i] for i in range(5)})
    with pytest.raises(ValueError, match="positions"):
        eo.MDP(TABLE, positions=np.zeros((3, 2)))


@pytest.mark.parametrize("directed", [False, True])
def test_hubs_choose_through_relays(directed, caplog):
    """Relays that are merged with their hub give the graph itself."""
    web = nx.barabasi_albert_graph(60, 2, seed=1)
    if directed:
        web = nx.DiGraph(web)
        web.remove_edges_from(list(web.edges)[::5])
    web = nx.relabel_nodes(web, str)
    mdp = eo.from_graph(web, max_actions=5)
    assert mdp.n_actions <= 5
    assert "max_actions" in caplog.text

    relays = [state for state in mdp.states if isinstance(state, Relay)]
    assert relays
    hub = [mdp.find_state(getattr(state, "hub", state)) for state in mdp.states]
    moves = {
        (hub[state], hub[after])
        for state, row in enumerate(mdp.successors.tolist())
        for after in row
    }
    number = mdp.find_state
    edges = {(number(u), number(v)) for u, v in web.edges}
    if not directed:
        edges |= {(v, u) for u, v in edges}
    assert {(u, v) for u, v in moves if u != v} == edges


def test_a_hub_of_20_000_neighbours_needs_little_memory():
    mdp = eo.from_graph(nx.star_graph(20_000))
    assert mdp.n_states * mdp.n_actions < 2e6
    assert distance(mdp, 1, 20_000) <= 8


def test_from_graph_directed_edges_lead_one_way():
    path = nx.DiGraph([(0, 1), (1, 2)])
    for mdp in (eo.from_graph(path), eo.from_graph([(0, 1), (1, 2)], directed=True)):
        assert mdp.successors.tolist() == [[1], [2], [2]]
    assert eo.from_graph(path, directed=False).successors.tolist() == [
        [1, 0],
        [0, 2],
        [1, 2],
    ]


@pytest.mark.parametrize(
    "graph", [[], [(0, 1, 2, 3)], [(0, 1, -1.0)], csr_array((2, 3)), nx.Graph()]
)
def test_from_graph_bad_graph_raises(graph):
    with pytest.raises(ValueError, match=r"graph|edges|weights"):
        eo.from_graph(graph)


# Paths and text


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
                for form in (states, np.isin(np.arange(n), states)):
                    assert np.array_equal(
                        reachable(csr_array(moves), form, backward=backward), expected
                    )
    assert reachable(slippery.transition, [0]).all()


def test_uniform_walk_adds_actions_that_lead_to_the_same_state():
    """Two entries of one place make SciPy's search of components run for ever."""
    walk = uniform_walk(eo.maze("S.G"))
    assert walk.nnz == 7
    np.testing.assert_array_equal(walk.sum(axis=1), 1.0)


def test_distance_counts_moves(four_rooms, i_maze):
    assert distance(i_maze, 0, 0) == 0
    assert distance(four_rooms, four_rooms.start, four_rooms.goal) == 20
    assert distance(eo.maze("S#G"), 0, 1) is None
    with pytest.raises(IndexError, match="state"):
        distance(i_maze, 0, 10**6)


def test_str_of_an_mdp_is_its_map(i_maze, slippery):
    assert (
        repr(i_maze)
        == "MDP(i-maze: 19 states, 4 actions, deterministic, start 16, goal 2)"
    )
    lines = str(i_maze).split("\n")
    assert lines[1] == "█  G█"
    assert lines[15] == "█S  █"
    assert lines[-1] == repr(i_maze)
    assert str(slippery) == repr(slippery) == "MDP(3 states, 2 actions, stochastic)"
    assert "\x1b" not in str(eo.MDP(TABLE, name="\x1b[31m"))


def test_a_part_has_the_entries_of_its_states():
    """Two rings and an end: the part of one ring has what belonged to it."""
    steps = [[1, 0], [0, 4], [3, 4], [2, 3], [4, 4]]
    mdp = eo.MDP.from_successors(
        steps,
        n_additional=1,
        states=list("abcd"),
        coords=[[0, 0], [0, 1], [3, 0], [3, 1]],
        headings=[0, 1, 2, 3],
        positions=[[0, 0], [0, 1], [3, 0], [3, 1]],
        reward=np.arange(10.0),
        start=3,
        goal=0,
        name="rings",
    )
    part = mdp.restrict([3, 2])
    assert part.successors.tolist() == [[1, 0], [0, 2], [2, 2]]
    assert part.n_additional == 1
    assert (part.start, part.goal, part.name) == (0, None, "rings")
    assert part.states == ["d", "c"]
    assert part.reward.tolist() == [6, 7, 4, 5, 8, 9]
    for name in ("coords", "headings", "positions"):
        whole = getattr(mdp, name)
        np.testing.assert_array_equal(getattr(part, name), whole[[3, 2, 4]])


def test_a_part_of_a_graph_has_its_weights():
    graph = nx.Graph()
    graph.add_edge("a", "b", weight=2.0)
    graph.add_edge("c", "d", weight=5.0)
    mdp = eo.from_graph(graph)
    part = mdp.restrict([mdp.find_state("c"), mdp.find_state("d")])
    assert eo.graph(part).toarray().tolist() == [[0.0, 5.0], [5.0, 0.0]]


@given(st.permutations(range(5)))
def test_options_of_a_reordered_part_are_those_of_the_whole(order: list[int]):
    """`extend` takes back what `restrict` did, also with an additional state."""
    steps = [[1, 0], [2, 0], [3, 1], [4, 2], [5, 3], [5, 5]]
    mdp = eo.MDP.from_successors(steps, n_additional=1)
    potential = np.array([0.0, 1.0, 4.0, 2.0, 3.0])
    whole = eo.solve(mdp, eo.Purpose(np.append(potential, 0.0), "x", exact=True))

    states = np.array(order)
    purpose = eo.Purpose(np.append(potential[states], 0.0), "x", exact=True)
    part = eo.solve(mdp.restrict(states), purpose)
    extended = part.extend(mdp, states)
    np.testing.assert_array_equal(extended.policy, whole.policy)
    np.testing.assert_allclose(extended.value, whole.value)


def test_no_option_starts_outside_of_its_part():
    mdp = eo.MDP.from_successors([[0], [2], [1], [0]])
    part = eo.solve(mdp.restrict([1, 2]), eo.Purpose([0.0, 1.0], goal=1))
    options = part.extend(mdp, np.array([1, 2]))
    assert options.policy.tolist() == [[-1, 0, -1, -1]]
    assert options.goals == (2,)
    assert options.labels == ("goal 2",)


@pytest.mark.parametrize(
    ("states", "word"),
    [([0], "leave"), ([0, 0], "different"), ([2], "0..1"), ([], "integers")],
)
def test_a_part_must_be_closed(states: list[int], word: str):
    mdp = eo.MDP.from_successors([[1], [0]])
    with pytest.raises(ValueError, match=word):
        mdp.restrict(states)
