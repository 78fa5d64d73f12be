"""`discover` on tables: eigenoptions, random goals, doorways, sources, errors.

Eigenoptions are the same as their steps; methods may be one's own.
"""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

import eigenoptions as eo
from eigenoptions._registry import discovery_methods
from eigenoptions.discovery import discover, sources
from eigenoptions.discovery.method import discovery_method, get_method
from eigenoptions.discovery.methods.bottleneck import find_rooms
from eigenoptions.discovery.sources import read_environment
from eigenoptions.mdp.mazes import perfect_map, rooms_map
from eigenoptions.options.solver import solve
from tests import reference
from tests.tables import agree

# Eigenoptions


@pytest.mark.parametrize("operator", ["normalized", "combinatorial", "random-walk"])
@pytest.mark.parametrize("n_options", [1, 2, 7, 8])
def test_discover_agrees_with_its_steps(domain, operator, n_options):
    options = discover(domain, n_options, operator=operator)
    spectrum = eo.spectrum(eo.graph(domain), 1 + (n_options + 1) // 2, operator)
    assert agree(options, eo.solve(domain, eo.eigenpurposes(spectrum)[:n_options]))
    entries = {
        "gamma": 0.9,
        "mdp": domain.name,
        "method": "eigen",
        "source": "table",
        "operator": operator,
    }
    assert options.provenance == entries


def test_discover_settings_of_eigen_choose_purposes(four_rooms):
    assert discover(four_rooms, 3, both_signs=False).labels == ("e2+", "e3+", "e4+")
    assert discover(four_rooms, 3, skip_zero=False).labels == ("e1+", "e1-", "e2+")
    assert len(discover(four_rooms)) == len(discover(four_rooms, 206)) == 206
    assert len(discover(four_rooms, skip_zero=False)) == 208
    assert len(discover(four_rooms, both_signs=False)) == 103
    weights = np.random.default_rng(0).random((104, 104))
    options = discover(four_rooms, 4, weights=weights, gamma=0.5)
    spectrum = eo.spectrum(eo.graph(four_rooms, weights), 3)
    assert agree(options, eo.solve(four_rooms, eo.eigenpurposes(spectrum), 0.5))
    assert "weights" not in options.provenance


def test_discover_four_rooms_leads_to_opposite_rooms(four_rooms):
    """Section 4.1: the options of the second eigenvector end in opposite rooms.

    One ends in the top right room, the other in the bottom left.
    """
    ends = [four_rooms.coords[row < 0] for row in discover(four_rooms, 2).policy]
    corners = {(bool((c[:, 0] < 6).all()), bool((c[:, 1] > 6).all())) for c in ends}
    assert corners == {(True, True), (False, False)}


def test_discover_several_components_stays_in_each_and_warns(caplog):
    caplog.set_level(logging.WARNING, "eigenoptions")
    mdp = eo.maze("...#..\n...#..\n.#####")
    options = discover(mdp, 8)
    assert any("2 components" in r.getMessage() for r in caplog.records)
    assert options.labels[0] == "e3+"
    component = connected_components(eo.graph(mdp))[1]
    for row in options.policy:
        for s in range(mdp.n_states):
            assert component[reference.walk(mdp.successors, row, s)[1]] == component[s]


def test_discover_eigenoptions_do_not_depend_on_the_seed():
    mdp = eo.maze(rooms_map(4, 4, 6, centred=True))
    a, b = (discover(mdp, 30, rng=seed) for seed in (0, 1))
    np.testing.assert_allclose(a.value, b.value, atol=1e-9)
    np.testing.assert_array_equal(a.policy, b.policy)


def test_discover_warns_of_options_that_end_where_the_eigenvector_is_negative(caplog):
    rooms = eo.maze("rooms:6x6")
    discover(rooms, 2)
    assert "e2+" in caplog.text
    assert "random-walk" in caplog.text
    caplog.clear()
    discover(rooms, 2, gamma=0.99)
    discover(rooms, 2, operator="random-walk")
    for source in (
        "four-rooms",
        "open-room",
        "i-maze",
        "FrozenLake-v1",
        "CliffWalking-v1",
    ):
        discover(source, 8)
    # Nothing leads back from a one-way corridor, so no setting changes where options
    # end.
    states = np.arange(18)
    left = np.where(states < 6, np.maximum(states - 1, 0), states)
    discover(
        eo.MDP.from_successors(np.stack([left, np.minimum(states + 1, 17)], axis=1)), 2
    )
    assert "negative" not in caplog.text


# Random goals


def check_shortest_paths(mdp, options):
    """Options take shortest paths; they stop at the goal, or where none leads there."""
    for goal, row in zip(options.goals, options.policy, strict=True):
        steps = reference.distances(mdp, goal)
        np.testing.assert_array_equal(row < 0, (steps == 0) | (steps == np.inf))
        acting = np.flatnonzero(row >= 0)
        np.testing.assert_array_equal(
            steps[mdp.successors[acting, row[acting]]], steps[acting] - 1
        )


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_random_options_are_shortest_paths(seed):
    rng = np.random.default_rng(seed)
    S = int(rng.integers(1, 40))
    A = int(rng.integers(1, 4))
    mdp = eo.MDP.from_successors(rng.integers(S, size=(S, A)))
    check_shortest_paths(mdp, discover(mdp, method="random", rng=seed))


def test_random_options_reach_over_a_long_corridor():
    winding = eo.maze(
        "\n".join(["." * 60, "#" * 59 + ".", "." * 60, "." + "#" * 59] * 5)
    )
    for mdp in (eo.maze("." * 600), winding):
        check_shortest_paths(mdp, discover(mdp, 8, "random"))


def test_random_goals_are_drawn_without_replacement(i_maze):
    options = discover(i_maze, method="random", rng=1)
    assert sorted(options.labels) == sorted(f"goal {s}" for s in range(19))
    assert agree(discover(i_maze, 5, "random", rng=1), options[:5])
    generator = np.random.default_rng(1)
    assert agree(discover(i_maze, 5, "random", rng=generator), options[:5])
    assert (
        discover(i_maze, 5, "random", rng=generator).labels != options[:5].labels
    )  # a generator goes on


# Doorways


def test_bottleneck_options_of_four_rooms_lead_to_the_closest_doorway(four_rooms):
    """Appendix C: one option per room, inside the room only."""
    room, doorways = find_rooms(four_rooms)
    assert four_rooms.coords[doorways].tolist() == [[3, 6], [6, 2], [7, 9], [10, 6]]
    assert np.bincount(room[room >= 0]).tolist() == [25, 30, 25, 20]
    assert (room[doorways] == -1).all()
    options = discover(four_rooms, method="bottleneck")
    assert options.labels == ("room 1", "room 2", "room 3", "room 4")
    distances = np.stack([reference.distances(four_rooms, d) for d in doorways])
    for i, row in enumerate(options.policy):
        np.testing.assert_array_equal(row >= 0, room == i)
        for s in np.flatnonzero(room == i):
            steps, end = reference.walk(four_rooms.successors, row, s)
            assert end in doorways
            assert steps == distances[:, s].min()
    assert agree(discover(four_rooms, 2, "bottleneck"), options[:2])
    row = eo.maze(rooms_map(1, 3, 5, centred=True))
    first, second = find_rooms(row)[1]
    goals = [
        p.goal
        for p in get_method("bottleneck").function(row, None, np.random.default_rng(0))
    ]
    assert goals == [first, None, second]  # only a room with one doorway has one goal


@pytest.mark.parametrize("centred", [True, False])
def test_find_rooms_of_a_tiling(centred):
    room, doorways = find_rooms(eo.maze(rooms_map(3, 4, 6, centred=centred, rng=1)))
    assert len(doorways) == 2 * 4 + 3 * 3
    assert np.bincount(room[room >= 0]).tolist() == [36] * 12


def test_find_rooms_of_a_corridor_has_its_middle_as_doorway(i_maze):
    mdp = eo.maze("...####...\n...####...\n..........\n...####...")
    assert mdp.coords[find_rooms(mdp)[1]].tolist() == [
        [2, 4]
    ]  # of two middle cells the first
    assert i_maze.coords[find_rooms(i_maze)[1]].tolist() == [[8, 2]]


@pytest.mark.parametrize(
    ("text", "room", "doorways"),
    [("..#..", [0, 0, 1, 1], []), (".", [0], []), ("...", [0, -1, 1], [1])],
)
def test_find_rooms_of_small_maps(text, room, doorways):
    found = find_rooms(eo.maze(text))
    assert found[0].tolist() == room
    assert found[1].tolist() == doorways


def test_find_rooms_of_a_maze_is_repeatable_and_consistent():
    mdp = eo.maze(perfect_map(16, 16, rng=0))
    room, doorways = find_rooms(mdp, rng=0)
    again = find_rooms(mdp, rng=0)
    np.testing.assert_array_equal(room, again[0])
    W = eo.graph(mdp)
    inside = room >= 0
    np.testing.assert_array_equal(
        connected_components(W[inside][:, inside])[1], room[inside]
    )
    assert W[doorways][:, doorways].nnz == 0  # no two doorways side by side


# Errors


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"n_options": 0}, "n_options"),
        ({"n_options": 2.5}, "n_options"),
        ({"n_options": 207}, r"1\.\.206"),
        ({"n_options": 209, "skip_zero": False}, r"1\.\.208"),
        ({"n_options": 104, "both_signs": False}, r"1\.\.103"),
        ({"n_options": 105, "method": "random"}, r"1\.\.104"),
        ({"n_options": 5, "method": "bottleneck"}, r"1\.\.4"),
        ({"method": "eigne"}, "did you mean 'eigen'"),
        ({"n_options": 2, "gamma": 1.0}, "gamma"),
        ({"n_options": 2, "operator": "x"}, "operator"),
        ({"n_options": 2, "weights": np.ones((2, 2))}, "weights"),
    ],
)
def test_discover_bad_arguments_raise(four_rooms, arguments, word):
    with pytest.raises(ValueError, match=word):
        discover(four_rooms, **arguments)


def test_discover_without_such_options_raises(open_room):
    with pytest.raises(ValueError, match="doorway"):
        discover(open_room, method="bottleneck")
    for n_options in (None, 1):
        with pytest.raises(ValueError, match="no options"):
            discover(eo.maze("."), n_options)
    with pytest.raises(TypeError, match="did you mean 'operator'"):
        discover(open_room, 3, oprator="normalized")
    with pytest.raises(TypeError, match="int"):
        discover(3)


# Sources


def test_discover_every_kind_of_source(tmp_path, four_rooms, caplog):
    """Exact where there is a table, sampled otherwise or where samples are asked for.

    The result says which.
    """
    caplog.set_level(logging.INFO, "eigenoptions")
    (tmp_path / "map.txt").write_text("S..\n.#.\n..G")
    exact = discover(four_rooms, 4)
    for source in (
        "four-rooms",
        "eigenoptions/FourRooms-v0",
        gym.make("eigenoptions/FourRooms-v0"),
    ):
        options = discover(source, 4)
        assert agree(options, exact)
        assert options.provenance["source"] == "table"
    assert "104 states" in caplog.text
    for source in ("S..\n.#.\n..G", tmp_path / "map.txt", str(tmp_path / "map.txt")):
        assert discover(source, 2).n_states == 8
    assert agree(
        discover("rooms:2x2", 4, rng=3), discover(eo.maze("rooms:2x2", rng=3), 4, rng=3)
    )
    lake = discover("FrozenLake-v1", 4)
    assert agree(lake, discover(eo.from_env("FrozenLake-v1"), 4))
    assert agree(lake, discover(lambda: gym.make("FrozenLake-v1"), 4))
    grid = discover("minigrid:MiniGrid-Empty-5x5-v0", 2)
    assert grid.n_states == 34
    assert grid.provenance["source"] == "explored"
    for source in ("four-rooms", four_rooms, "FrozenLake-v1"):
        provenance = discover(source, 2, steps=3000).provenance
        assert provenance["source"] == "samples"
        assert provenance["steps"] == 3000
    car = discover("MountainCar-v0", 2, steps=500)
    assert car.provenance["source"] == "samples"
    assert car.labels == ("e2+", "e2-")
    ring = eo.from_graph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    assert discover(ring, 2).mdp.states == ("a", "b", "c", "d")


def test_note_says_that_options_are_of_a_part(monkeypatch, caplog):
    caplog.set_level(logging.INFO, "eigenoptions")
    read_a_part = partial(read_environment, max_states=40)
    monkeypatch.setattr(sources, "read_environment", read_a_part)
    discover("minigrid:MiniGrid-Empty-6x6-v0", 2)
    assert "from the part that was found" in caplog.text


def test_options_of_an_environment_with_too_many_states_are_of_those_explored(
    caplog,
):
    made = lambda: gym.make("minigrid:MiniGrid-Empty-6x6-v0")  # noqa: E731
    mdp, kind = read_environment(made(), max_states=40)
    assert 15 <= mdp.n_states <= 41
    assert kind == "explored"
    assert "explore found in 40 steps" in caplog.text
    env = eo.OptionsWrapper(
        eo.envs.FixedSeed(made(), 0), discover(mdp, 4), option_chance=0.5
    )
    env.action_space.seed(0)
    _, info = env.reset(seed=0)
    masks = [info["action_mask"]]
    for _ in range(200):
        *_, terminated, truncated, info = env.step(env.action_space.sample())
        if terminated or truncated:
            _, info = env.reset()
        masks.append(info["action_mask"])
    started = np.array(masks)[:, mdp.n_actions :].any(axis=1)
    assert started.any()
    assert not started.all()  # where a state is not in the table, no option may start


def test_discover_creates_the_environments_to_be_sampled_once():
    created = []

    def make_car():
        created.append(1)
        return gym.make("MountainCar-v0")

    discover(make_car, 2, steps=200)
    assert len(created) == 8


# Methods of one's own


def test_discovery_method_is_known_by_name_and_settings(i_maze, monkeypatch):
    for name in ("far-away", "solved"):
        monkeypatch.setitem(
            discovery_methods._entries, name, None
        )  # removed again in the end

    @discovery_method("far-away", gamma=lambda mdp: 0.5)
    def choose_purposes(mdp, n_options, rng, *, reach=1, progress=None):
        progress(1, 1)
        return [eo.Purpose(np.arange(mdp.n_states) * float(reach), "far")]

    @discovery_method("solved")
    def discover_options(mdp, n_options, rng, *, gamma):
        return solve(
            mdp, choose_purposes(mdp, n_options, rng, progress=lambda *_: None), gamma
        )

    assert {"far-away", "solved"} < set(eo.methods())
    calls = []
    options = discover(
        i_maze, 1, "far-away", reach=2, progress=lambda *done: calls.append(done)
    )
    assert options.labels == ("far",)
    assert options.provenance["gamma"] == 0.5
    assert options.provenance["reach"] == 2
    assert calls[0] == (1, 1)
    solved = discover(i_maze, 1, "solved", gamma=0.5)
    assert solved.policy.tolist() == options.policy.tolist()
    assert solved.provenance["method"] == "solved"
    with pytest.raises(TypeError, match="did you mean 'reach'"):
        discover(i_maze, 1, "far-away", reahc=2)


def test_every_file_of_methods_registers_one():
    folder = Path(eo.discovery.methods.__file__).parent
    files = [file for file in folder.glob("*.py") if file.stem != "__init__"]
    # Examples and pages that ran before in this process add methods of their own.
    functions = [get_method(name).function for name in eo.methods()]
    own = [f for f in functions if f.__module__.startswith("eigenoptions.")]
    assert len(own) == len(files)


def test_seed_of_discover_is_that_of_the_layout():
    name = "minigrid:MiniGrid-FourRooms-v0"
    options = discover(name, 2, seed=3)
    searched = eo.from_env(name, seed=3)
    assert options.mdp.recognition.seed == 3
    assert options.mdp.states == searched.states
    assert options.mdp.states != discover(name, 2).mdp.states

    by_place = discover(name, 2, key="pose", seed=3, steps=200)
    assert by_place.provenance["source"] == "explored"


@pytest.mark.parametrize("source", ["four-rooms", "CartPole-v1", [(0, 1, 1)]])
def test_seed_is_refused_where_no_layout_depends_on_it(source):
    with pytest.raises(ValueError, match="rng="):
        discover(source, 2, seed=3)
