"""discover: the whole pipeline is its steps; eigenoptions, doorways, random goals; bad input."""

from __future__ import annotations

import logging
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

import eigenoptions as eo
from eigenoptions.discovery import discover, read_source
from eigenoptions.discovery import methods as registry
from eigenoptions.discovery.methods import methods
from eigenoptions.discovery.methods.bottleneck import MAX_START_STATES, rooms
from eigenoptions.mdp.maps import perfect_map, rooms_map
from tests import reference
from tests.tables import same
from tests.test_mdp import refused
from tests.test_planning import slippery as astray

# Eigenoptions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", ["normalized", "combinatorial", "random-walk"])
@pytest.mark.parametrize("n_options", [1, 2, 7, 8])
def test_discover_is_its_steps(domain, operator, n_options):
    found = discover(domain, n_options, operator=operator)
    k = 1 + (n_options + 1) // 2
    sp = eo.spectrum(eo.graph(domain), k, operator)
    by_hand = eo.solve(domain, eo.eigenpurposes(sp)[:n_options])
    assert same(found, by_hand)
    made = {"gamma": 0.9, "mdp": domain.name, "method": "eigen", "source": "table", "operator": operator}
    assert found.provenance == made


def test_settings_of_eigenoptions(four_rooms):
    assert discover(four_rooms, 3, both_signs=False).labels == ("e2+", "e3+", "e4+")
    assert discover(four_rooms, 3, skip_zero=False).labels == ("e1+", "e1-", "e2+")
    assert len(discover(four_rooms)) == 206
    assert len(discover(four_rooms, skip_zero=False)) == 208
    assert len(discover(four_rooms, 206)) == 206
    assert len(discover(four_rooms, both_signs=False)) == 103
    weights = np.random.default_rng(0).random((104, 104))
    found = discover(four_rooms, 4, weights=weights, gamma=0.5)
    sp = eo.spectrum(eo.graph(four_rooms, weights), 3)
    assert same(found, eo.solve(four_rooms, eo.eigenpurposes(sp), 0.5))
    assert "weights" not in found.provenance


def test_the_second_vector_of_four_rooms_leads_to_opposite_rooms(four_rooms):
    """Section 4.1: one of its options ends in the top right room, the other in the bottom left one."""
    options = discover(four_rooms, 2)
    ends = [four_rooms.coords[stops] for stops in options.stops]
    corners = {(bool((c[:, 0] < 6).all()), bool((c[:, 1] > 6).all())) for c in ends}
    assert corners == {(True, True), (False, False)}


def test_the_first_eigenoption_of_zero_is_the_top_of_the_degree(i_maze):
    """The combinatorial zero is flat: its option stops everywhere."""
    flat = discover(i_maze, 1, skip_zero=False, operator="combinatorial")
    assert (flat.policy == -1).all()


def test_pieces_keep_to_themselves_and_are_noted(caplog):
    """Two rooms without a door: a note, one zero each, and no option that leads across."""
    caplog.set_level(logging.WARNING, "eigenoptions")
    mdp = eo.maze("...#..\n...#..\n.#####")
    options = discover(mdp, 8)
    assert any("2 components" in r.getMessage() for r in caplog.records)
    assert options.labels[0] == "e3+"
    piece = connected_components(eo.graph(mdp))[1]
    for row in options.policy:
        for s in range(mdp.n_states):
            assert piece[reference.walk(mdp.successors, row, s)[1]] == piece[s]


def test_the_seed_does_not_matter_to_eigenoptions():
    mdp = eo.maze(rooms_map(4, 4, 6, centred=True))
    assert mdp.n_states > 512
    a, b = (discover(mdp, 30, rng=seed) for seed in (0, 1))
    assert same(a, discover(mdp, 30))
    np.testing.assert_allclose(a.value, b.value, atol=1e-9)
    np.testing.assert_array_equal(a.policy, b.policy)


def test_stochastic_dynamics_too(i_maze):
    mdp = astray(i_maze)
    options = discover(mdp, 6)
    assert options.termination.any(axis=1).all()
    assert np.isfinite(options.mean_length).all()


# Random goals -----------------------------------------------------------------------------------------------


def check_goals(mdp, options):
    """Each option stops at its goal only (or where it cannot be reached from), by a shortest path."""
    for goal, row, stops in zip(options.goals, options.policy, options.stops, strict=True):
        steps = reference.distances(mdp, goal)
        assert stops.tolist() == np.flatnonzero((steps == 0) | (steps == np.inf)).tolist()
        acting = np.flatnonzero(row >= 0)
        landed = mdp.successors[acting, row[acting]]
        np.testing.assert_array_equal(steps[landed], steps[acting] - 1)


def test_random_options_are_shortest_paths(domain):
    options = discover(domain, 10, "random", rng=5)
    check_goals(domain, options)
    assert options.provenance["method"] == "random"


def test_random_options_reach_over_a_long_corridor():
    mdp = eo.maze("." * 600)
    check_goals(mdp, discover(mdp, 12, "random"))
    winding = eo.maze("\n".join(["." * 60, "#" * 59 + ".", "." * 60, "." + "#" * 59] * 5))
    check_goals(winding, discover(winding, 8, "random"))


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_random_options_on_random_moves(seed):
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(1, 40)), int(rng.integers(1, 4))
    mdp = eo.MDP(np.eye(S)[rng.integers(S, size=(S, A))])
    check_goals(mdp, discover(mdp, method="random", rng=seed))


def test_random_goals_are_drawn_once_each(i_maze):
    options = discover(i_maze, method="random", rng=1)
    assert sorted(options.labels) == sorted(f"goal {s}" for s in range(19))
    first = discover(i_maze, 5, "random", rng=1)
    assert same(first, options[:5])
    assert first.labels != discover(i_maze, 5, "random", rng=2).labels
    generator = np.random.default_rng(1)
    assert same(discover(i_maze, 5, "random", rng=generator), first)
    assert discover(i_maze, 5, "random", rng=generator).labels != first.labels  # a generator goes on


# Doorways ---------------------------------------------------------------------------------------------------


def test_the_four_bottleneck_options_of_four_rooms(four_rooms):
    """Appendix C: one option a room, to its closest doorway, inside the room only."""
    room, doorways = rooms(four_rooms)
    assert four_rooms.coords[doorways].tolist() == [[3, 6], [6, 2], [7, 9], [10, 6]]
    assert np.bincount(room[room >= 0]).tolist() == [25, 30, 25, 20]
    assert (room[doorways] == -1).all()
    options = discover(four_rooms, method="bottleneck")
    assert options.labels == ("room 1", "room 2", "room 3", "room 4")
    ways = np.stack([reference.distances(four_rooms, d) for d in doorways])
    for i, row in enumerate(options.policy):
        np.testing.assert_array_equal(row >= 0, room == i)
        for s in np.flatnonzero(room == i):
            steps, end = reference.walk(four_rooms.successors, row, s)
            assert end in doorways
            assert steps == ways[:, s].min()
    assert same(discover(four_rooms, 2, "bottleneck"), options[:2])


@pytest.mark.parametrize("centred", [True, False])
def test_rooms_of_a_tiling(centred):
    mdp = eo.maze(rooms_map(3, 4, 6, centred=centred, rng=1))
    room, doorways = rooms(mdp)
    assert room.max() + 1 == 12
    assert len(doorways) == 2 * 4 + 3 * 3
    assert np.bincount(room[room >= 0]).tolist() == [36] * 12
    assert len(discover(mdp, method="bottleneck")) == 12


def test_a_corridor_has_one_doorway_in_its_middle(i_maze):
    mdp = eo.maze("...####...\n...####...\n..........\n...####...")
    room, doorways = rooms(mdp)
    assert mdp.coords[doorways].tolist() == [[2, 4]]  # of four equal cells one of the middle two, the first
    assert room.max() == 1
    _, doorways = rooms(i_maze)
    assert i_maze.coords[doorways].tolist() == [[8, 2]]


def test_rooms_of_pieces_and_small_things():
    room, doorways = rooms(eo.maze("..#.."))
    assert (room.tolist(), doorways.tolist()) == ([0, 0, 1, 1], [])
    room, doorways = rooms(eo.maze("."))
    assert (room.tolist(), doorways.tolist()) == ([0], [])
    room, doorways = rooms(eo.maze("..."))
    assert (room.tolist(), doorways.tolist()) == ([0, -1, 1], [1])
    room, doorways = rooms(eo.maze("...\n...\n...#...\n####...\n..##..."))
    assert (room.max(), len(doorways)) == (2, 0)


def test_doorways_of_large_mazes_by_a_sample():
    mdp = eo.maze(perfect_map(60, 60, rng=0))
    assert mdp.n_states > MAX_START_STATES
    a, b = rooms(mdp, rng=0), rooms(mdp, rng=0)
    np.testing.assert_array_equal(a[0], b[0])
    np.testing.assert_array_equal(a[1], b[1])
    W = eo.graph(mdp)
    rest = a[0] >= 0
    count, part = connected_components(W[rest][:, rest], directed=False)
    assert count == a[0].max() + 1
    np.testing.assert_array_equal(part, a[0][rest])
    assert W[a[1]][:, a[1]].nnz == 0  # no two doorways side by side


# Determinism and bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [name for name in methods() if not registry.method(name).needs_rewards])
def test_the_same_bytes_twice(four_rooms, method):
    assert same(discover(four_rooms, 4, method, rng=7), discover(four_rooms, 4, method, rng=7))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n_options": 0}, ["n_options must be a whole number from 1, got 0"]),
        ({"n_options": -3}, ["n_options must be a whole number from 1, got -3"]),
        ({"n_options": 2.5}, ["n_options must be a whole number from 1, got 2.5"]),
        ({"n_options": "8"}, ["n_options must be a whole number from 1, got '8'"]),
        ({"n_options": 207}, ["n_options must be in 1..206 for 104 states, got 207"]),
        ({"n_options": 209, "skip_zero": False}, ["n_options must be in 1..208 for 104 states, got 209"]),
        ({"n_options": 104, "both_signs": False}, ["n_options must be in 1..103 for 104 states, got 104"]),
        ({"n_options": 105, "method": "random"}, ["n_options must be in 1..104 for 104 states, got 105"]),
        (
            {"n_options": 5, "method": "bottleneck"},
            ["n_options must be in 1..4, the number of rooms found, got 5"],
        ),
        (
            {"method": "eigne"},
            [f"method must be one of {', '.join(methods())}, got 'eigne': did you mean 'eigen'?"],
        ),
        ({"n_options": 2, "gamma": 1.0}, ["gamma must be in [0, 1), got 1.0"]),
        ({"n_options": 2, "operator": "x"}, ["operator must be one of", "'x'"]),
        ({"n_options": 2, "weights": np.ones((2, 2))}, ["weights must have shape (104, 104)", "(2, 2)"]),
    ],
)
def test_what_is_refused(four_rooms, given, words):
    refused(ValueError, lambda: discover(four_rooms, **given), *words)


def test_state_spaces_without_such_options(open_room):
    refused(
        ValueError, lambda: discover(open_room, method="bottleneck"), "no doorway was found", "no bottleneck"
    )
    for n_options in (None, 1):
        alone = lambda n_options=n_options: discover(eo.maze("."), n_options)  # noqa: E731
        refused(ValueError, alone, "no action leads from one state of MDP(1 state", "no eigenoptions")
    with pytest.raises(TypeError, match="method 'eigen' has no setting 'speed': it has operator"):
        discover(open_room, 3, speed=9)
    with pytest.raises(TypeError, match="has no setting 'oprator': did you mean 'operator'"):
        discover(open_room, 3, oprator="normalized")


# Sources ----------------------------------------------------------------------------------------------------


def test_every_kind_of_source(tmp_path, four_rooms, caplog):
    """Exact where there is a table, sampled otherwise or where samples are asked for; and the result says which."""
    caplog.set_level(logging.INFO, "eigenoptions")
    (tmp_path / "map.txt").write_text("S..\n.#.\n..G")
    exact = discover(four_rooms, 4)
    for source in ("four-rooms", "eigenoptions/FourRooms-v0", gym.make("eigenoptions/FourRooms-v0")):
        found = discover(source, 4)
        assert same(found, exact)
        assert found.provenance["source"] == "table"
    assert "computed from its table of 104 states" in caplog.text
    for source in ("S..\n.#.\n..G", tmp_path / "map.txt", str(tmp_path / "map.txt")):
        assert discover(source, 2).n_states == 8
    assert same(discover("rooms:2x2", 4, rng=3), discover(eo.maze("rooms:2x2", rng=3), 4, rng=3))
    lake = discover("FrozenLake-v1", 4)
    assert same(lake, discover(eo.from_env("FrozenLake-v1"), 4))
    assert same(lake, discover(lambda: gym.make("FrozenLake-v1"), 4))
    grid = discover("minigrid:MiniGrid-Empty-5x5-v0", 2)
    assert (grid.n_states, grid.provenance["source"]) == (34, "explored")
    assert "give steps= or features= to sample it instead" in caplog.text
    for source in ("four-rooms", four_rooms, "FrozenLake-v1"):
        sampled = discover(source, 2, steps=3000)
        assert sampled.provenance["source"] == "samples"
        assert sampled.provenance["steps"] == 3000
    car = discover("MountainCar-v0", 2, steps=500)
    assert (car.provenance["source"], car.labels) == ("samples", ("e2+", "e2-"))


def test_an_environment_is_created_once_to_be_sampled():
    made = []

    def car():
        made.append(1)
        return gym.make("MountainCar-v0")

    discover(car, 2, steps=200, n_envs=2)
    assert len(made) == 2


def test_what_is_read_is_what_is_discovered():
    found = read_source("FrozenLake-v1")
    assert (found.kind, found.mdp.n_states) == ("table", 16)
    assert same(discover(found, 4), discover("FrozenLake-v1", 4))
    assert read_source("FrozenLake-v1", sample=True).mdp is None


# The registry -----------------------------------------------------------------------------------------------


PLANTED = """
import numpy as np
from eigenoptions.discovery.methods import Method
from eigenoptions.options import Purpose
from eigenoptions.options.solver import solve


def far(mdp, n_options, rng, *, reach=1, progress=None):
    progress(1, 1)
    return [Purpose(np.arange(mdp.n_states) * float(reach), "far")]


def solved(mdp, n_options, rng, *, gamma):
    return solve(mdp, far(mdp, n_options, rng, progress=print), gamma)


METHOD = Method("KIND", purposes=far, gamma=lambda mdp: 0.5) if "KIND" == "far-away" else Method("KIND", options=solved)
"""


@pytest.fixture
def planted(tmp_path, monkeypatch):
    for kind in ("far-away", "solved"):
        (tmp_path / f"{kind.replace('-', '_')}.py").write_text(PLANTED.replace("KIND", kind))
    monkeypatch.setattr(registry, "__path__", [*registry.__path__, str(tmp_path)])
    yield
    for kind in ("far_away", "solved"):
        sys.modules.pop(f"{registry.__name__}.{kind}", None)


def test_a_method_is_one_file(planted, i_maze):
    assert {"bottleneck", "eigen", "far-away", "random", "solved"} < set(eo.methods())
    calls = []
    found = discover(i_maze, 1, "far-away", reach=2, progress=lambda *done: calls.append(done))
    assert (found.labels, found.provenance["gamma"], found.provenance["reach"]) == (("far",), 0.5, 2)
    assert calls[-1] == (100, 100)
    assert registry.method("far-away").reports_progress
    same_policy = discover(i_maze, 1, "solved", gamma=0.5)
    assert same_policy.policy.tolist() == found.policy.tolist()
    assert same_policy.provenance["method"] == "solved"
    with pytest.raises(TypeError, match="method 'far-away' has no setting 'reahc': did you mean 'reach'"):
        discover(i_maze, 1, "far-away", reahc=2)


def test_a_method_declares_one_function():
    for functions in ({}, {"purposes": len, "options": len}):
        with pytest.raises(ValueError, match="must declare either purposes or options"):
            registry.Method("x", **functions)


# The package ------------------------------------------------------------------------------------------------


def test_parts_of_the_package_are_attributes():
    work = (
        "import sys, eigenoptions as eo; assert not {'numpy', 'scipy', 'gymnasium'} & set(sys.modules);"
        "eo.plots.save_figure, eo.atari.collect_ram, eo.features.Fourier, eo.parallel.run_jobs, eo.envs.collect;"
        "assert {'plots', 'discover', 'methods'} <= set(dir(eo)); assert not {'Any', 'annotations'} & set(dir(eo))"
    )
    done = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
