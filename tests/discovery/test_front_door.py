"""`discover` declares what it takes: defaults that are passed, and values not used."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.discovery import method as methods
from eigenoptions.discovery.request import Request
from eigenoptions.envs.mazes import MazeEnv
from eigenoptions.samples.sampling import has_vectors, read_samples

ROOMS = eo.maze("rooms:2x2")


class Drone(gym.Env[Any, Any]):
    """A point in a square that moves by fixed steps, from anywhere."""

    observation_space = gym.spaces.Box(0.0, 1.0, (2,), np.float64)
    action_space = gym.spaces.Discrete(4)
    moves = 0.07 * np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = self.np_random.random(2)
        return self.place, {}

    def step(self, action: int) -> Any:
        self.place = np.clip(self.place + self.moves[action], 0.0, 1.0)
        return self.place, 0.0, False, False, {}


def make_drone() -> gym.Env[Any, Any]:
    return gym.wrappers.TimeLimit(Drone(), 40)


def make_maze() -> gym.Env[Any, Any]:
    return MazeEnv(ROOMS)


@cache
def record_numbers() -> eo.Transitions:
    return eo.collect(eo.MDP(ROOMS.transition), 6_000, rng=0)


@cache
def record_vectors() -> eo.Transitions:
    return eo.collect(make_drone, 1_500, rng=0)


@cache
def explore_rooms() -> eo.Found:
    return eo.explore(make_maze(), 300, seed=0, rng=0)


# What is discovered from: a source, and the arguments that choose the way.
SOURCES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "maze": (lambda: "rooms:2x2", {}),
    "MDP": (lambda: ROOMS, {}),
    "graph": (nx.karate_club_graph, {}),
    "table": (lambda: "FrozenLake-v1", {}),
    "searched": (make_maze, {}),
    "key": (make_maze, {"key": "observation"}),
    "found": (explore_rooms, {}),
    "numbers": (record_numbers, {}),
    "sampled numbers": (lambda: "FrozenLake-v1", {"steps": 3_000}),
    "vectors": (record_vectors, {}),
    "sampled vectors": (lambda: make_drone, {"steps": 1_500}),
    "features": (record_vectors, {"features": "fourier"}),
}

# Values that None stands for, by what they are given to.
EFFECTIVE: dict[str, dict[str, Any]] = {
    "maze": {"gamma": 0.9, "operator": "normalized", "rng": 0},
    "MDP": {"gamma": 0.9, "operator": "normalized", "weights": "adjacency"},
    "graph": {"gamma": 0.9, "operator": "normalized"},
    "table": {"gamma": 0.9, "operator": "normalized", "seed": 0, "rng": 0},
    "searched": {"gamma": 0.9, "operator": "normalized", "seed": 0, "rng": 0},
    "key": {"gamma": 0.9, "steps": 20_000, "seed": 0, "rng": 0},
    "found": {"gamma": 0.9, "operator": "normalized", "rng": 0},
    "numbers": {
        "gamma": 0.9,
        "operator": "combinatorial",
        "weights": "incidence",
        "n_actions": 4,
        "space": gym.spaces.Discrete(ROOMS.n_states),
    },
    "sampled numbers": {"gamma": 0.9, "operator": "combinatorial", "rng": 0},
    "vectors": {
        "gamma": 0.97,
        "operator": "normalized",
        "n_actions": 4,
        "space": Drone.observation_space,
        "columns": [0, 1],
    },
    "sampled vectors": {"gamma": 0.97, "max_episode_steps": 40, "columns": (0, 1)},
    "features": {
        "gamma": 0.99,
        "n_actions": 4,
        "space": Drone.observation_space,
        "columns": [0, 1],
        "features": eo.Fitted("fourier", order=3, policy="learned"),
    },
}

# Values that are not used, where they are not.
UNUSED: dict[str, Any] = {
    "steps": 3_000,
    "max_episode_steps": 9,
    "n_actions": 4,
    "space": gym.spaces.Discrete(400),
    "columns": [0],
    "cell_size": 0.1,
    "length": True,
    "pos": {},
    "training_steps": 5,
}
USED = {
    "maze": ["steps"],
    "MDP": ["steps"],
    "graph": ["steps", "length", "pos"],
    "table": ["steps"],
    "searched": ["steps"],
    "key": ["steps"],
    "found": [],
    "numbers": ["n_actions", "space"],
    "sampled numbers": ["steps", "max_episode_steps"],
    "vectors": ["n_actions", "space", "columns", "cell_size"],
    "sampled vectors": ["steps", "max_episode_steps", "columns", "cell_size"],
    "features": ["n_actions", "space", "columns"],
}


def discover(kind: str, **settings: Any) -> Any:
    """Four options of a kind of source."""
    make_source, chosen = SOURCES[kind]
    return eo.discover(make_source(), 4, **{**chosen, **settings})


def list_actions(options: Any) -> list[Any]:
    """What options do, everywhere or where steps were recorded."""
    if isinstance(options, eo.OptionSet):
        return [options.labels, options.policy.tolist()]
    return [options.labels, options.actions(record_vectors().obs).tolist()]


@cache
def list_default_actions(kind: str) -> list[Any]:
    return list_actions(discover(kind))


def list_defaults() -> dict[str, Any]:
    """Parameters of `discover` and their defaults."""
    defaults = {}
    for parameter in inspect.signature(eo.discover).parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            defaults[parameter.name] = parameter.default
    return defaults


@pytest.mark.parametrize("kind", SOURCES)
def test_defaults_that_are_passed_change_nothing(kind: str) -> None:
    defaults = list_defaults()
    for name in SOURCES[kind][1]:
        del defaults[name]
    assert list_actions(discover(kind, **defaults)) == list_default_actions(kind)


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in EFFECTIVE for name in EFFECTIVE[kind]]
)
def test_what_none_stands_for_is_the_same_when_it_is_passed(
    kind: str, name: str
) -> None:
    options = discover(kind, **{name: EFFECTIVE[kind][name]})
    assert list_actions(options) == list_default_actions(kind)


def test_the_chosen_cell_size_is_the_same_when_it_is_passed() -> None:
    size = discover("vectors").features.size
    options = discover("vectors", cell_size=size)
    assert list_actions(options) == list_default_actions("vectors")


def test_the_number_of_all_options_is_the_same_when_it_is_passed() -> None:
    options = eo.discover("FrozenLake-v1")
    given = eo.discover("FrozenLake-v1", len(options))
    assert list_actions(given) == list_actions(options)


def test_steps_that_are_the_default_of_sampling_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """50,000 of them take a second, so only their number is looked at."""
    numbers = []

    def count_steps(*_: Any, steps: int, **__: Any) -> None:
        numbers.append(steps)
        raise InterruptedError

    monkeypatch.setattr("eigenoptions.samples.reading.sample_environment", count_steps)
    for settings in ({}, {"steps": 50_000}):
        with pytest.raises(InterruptedError):
            eo.discover(make_drone, 4, **settings)
    assert numbers == [50_000, 50_000]


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in USED for name in UNUSED if name not in USED[kind]],
)
def test_a_value_that_is_not_used_is_refused(kind: str, name: str) -> None:
    with pytest.raises(TypeError, match=f"^{name}= is for ") as caught:
        discover(kind, **{name: UNUSED[name]})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "bottleneck", "operator": "normalized"}, "method 'eigen'"),
        ({"method": "random", "skip_zero": False}, "method 'eigen'"),
        ({"t": 3}, "method 'diffusion'"),
        ({"order": 3}, r"Fitted\(..., order=\)"),
        ({"policy": "clusters"}, "Fitted"),
        ({"opertor": "normalized"}, "did you mean 'operator'"),
        ({"colums": [0]}, "did you mean 'columns'"),
    ],
)
def test_a_setting_of_something_else_says_where_it_belongs(
    settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(TypeError, match=words):
        eo.discover("four-rooms", 2, **settings)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (eo.Fitted("fourier", tiles=3), "tiles.*order"),
        (eo.Fitted(np.sin, order=3), "order="),
    ],
)
def test_settings_of_another_map_are_refused(features: eo.Fitted, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        discover("features", features=features)


def test_values_that_are_for_tables_are_refused_in_feature_spaces() -> None:
    for settings in ({"operator": "normalized"}, {"weights": "adjacency"}):
        with pytest.raises(TypeError, match="is for a table"):
            discover("features", **settings)
    with pytest.raises(TypeError, match=r"columns= .* function"):
        discover("features", features=np.sin, columns=[0])


def test_a_name_and_a_function_stand_for_records() -> None:
    waves = eo.Fitted(
        "fourier",
        order=3,
        iterations=1000,
        whiten=True,
        per_cell=4,
        policy="learned",
    )
    named = list_default_actions("features")
    assert list_actions(discover("features", features=waves)) == named
    ours = list_actions(discover("features", features=np.sin))
    assert list_actions(discover("features", features=eo.Fitted(np.sin))) == ours


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: eo.Fitted(3), "function"),
        (lambda: eo.Fitted("deep"), "Trained"),
        (lambda: eo.Fitted(policy="clusters"), "policy"),
        (lambda: eo.Fitted(order=0), "order"),
        (lambda: eo.Fitted(per_cell=0), "per_cell"),
        (lambda: eo.Fitted(policy="look-ahead", iterations=5), "iterations"),
        (lambda: eo.Trained(steps=0), "steps"),
        (lambda: eo.Trained(policy="magic"), "policy"),
    ],
)
def test_bad_records_raise(make: Callable[[], Any], word: str) -> None:
    with pytest.raises((TypeError, ValueError), match=word):
        make()


def test_two_numbers_of_training_steps_are_refused() -> None:
    with pytest.raises(ValueError, match="two numbers"):
        discover("vectors", features=eo.Trained(steps=5), training_steps=6)


def test_names_of_parameters_are_declared_once() -> None:
    """What methods cannot call their settings are the parameters of `discover`."""
    taken = {*methods._RESERVED, *methods._SHARED, *methods._GIVEN}
    parameters = inspect.signature(eo.discover).parameters
    assert taken == {*parameters} - {"of_method"}
    carried = {part.name for part in fields(Request)}
    assert carried >= {*parameters} - {"source", "training_steps"}


def test_sources_of_this_file_are_what_they_are_called() -> None:
    assert has_vectors(read_samples(record_vectors(), Drone.observation_space, 4))
    assert discover("numbers").provenance["source"] == "samples"
    assert discover("key").provenance["source"] == "explored"
