"""`Found.save` and `load_found`: nothing changes, and nothing wrong is believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import eigenoptions as eo
from eigenoptions.options.files import Arrays, read_arrays, write_arrays


class Shows(gym.Env[Any, Any]):
    """A line of four cells that are shown as a function says."""

    observation_space: Any = Discrete(4)
    action_space = Discrete(2)

    def __init__(self, show: Callable[[int], Any]) -> None:
        self.show = show

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cell = 0
        return self.show(0), {}

    def step(self, action: int) -> Any:
        self.cell = int(np.clip(self.cell + 2 * action - 1, 0, 3))
        return self.show(self.cell), float(self.cell == 3), self.cell == 3, False, {}


SHOWN: dict[str, Callable[[int], Any]] = {
    "a slash": lambda i: {"a/b": np.array([i, 1])},
    "a slash and a part": lambda i: {"a": {"b": i}, "a/b": 0},
    "a colon": lambda i: {"a:json": i, "a": "text"},
    "tuples of arrays": lambda i: (np.array([i, i], np.int8), {"x": (np.zeros(2), i)}),
    "text of NumPy": lambda i: np.str_("x" * (i + 1)),
    "numbers of NumPy": lambda i: np.int8(i),
    "sequences": lambda i: (1,) * i,
    "sequences of arrays": lambda i: tuple(np.full((k, 2), k) for k in range(i)),
    "images": lambda i: np.full((3, 3, 3), i, np.uint8),
    "large integers": lambda i: 2**70 + i,
    "several types": lambda i: i if i % 2 else float(i),
    "dicts of several names": lambda i: {f"cell {i}": i},
    "nothing": lambda i: None if i == 0 else i,
}


def check_equal(first: Any, second: Any) -> None:
    """Equal, of equal types, and no part is lost."""
    assert type(first) is type(second) or isinstance(first, str)
    if isinstance(first, dict):
        assert list(first) == list(second)
        first, second = tuple(first.values()), tuple(second.values())
    if isinstance(first, tuple):
        for part, other in zip(first, second, strict=True):
            check_equal(part, other)
    else:
        assert np.array_equal(first, second)
        assert getattr(first, "dtype", None) == getattr(second, "dtype", None) or (
            isinstance(first, str)
        )


def explore_line(show: Callable[[int], Any]) -> eo.Found:
    def look(env: Any, obs: Any) -> Any:
        return (np.int64(env.cell), "cell")

    return eo.explore(Shows(show), 60, key=look)


@pytest.mark.parametrize("kind", SHOWN)
def test_observations_come_back_as_they_were(kind: str, tmp_path: Path) -> None:
    found = explore_line(SHOWN[kind])
    found.save(tmp_path / "found")
    loaded = eo.load_found(tmp_path / "found", key=lambda env, obs: (env.cell, "cell"))
    assert loaded.states == found.states
    assert len(loaded.observations) == 4
    for before, after in zip(found.observations, loaded.observations, strict=True):
        check_equal(before, after)


@pytest.mark.parametrize(
    ("show", "key", "word"),
    [
        (lambda i: {frozenset([i]): 1}, lambda env, obs: env.cell, "observations"),
        (lambda i: i, lambda env, obs: frozenset([obs]), "keys"),
        (lambda i: i, lambda env, obs: (1, frozenset([obs])), "keys"),
    ],
)
def test_what_a_file_cannot_hold_is_refused(
    show: Any, key: Any, word: str, tmp_path: Path
) -> None:
    found = eo.explore(Shows(show), 30, key=key)
    with pytest.raises(ValueError, match=word):
        found.save(tmp_path / "found")
    assert list(tmp_path.iterdir()) == []


def test_steps_of_several_environments_are_read(tmp_path: Path) -> None:
    envs = gym.make_vec("eigenoptions/FourRooms-v0", num_envs=3, max_episode_steps=20)
    vector = eo.ExploringVector(envs)
    vector.reset(seed=0)
    for _ in range(100):
        vector.step(vector.action_space.sample())
    vector.found.save(tmp_path / "found")
    assert repr(eo.load_found(tmp_path / "found")) == repr(vector.found)


def forge_entry(name: str, value: Any, row: int = 5) -> Callable[[Any, Arrays], None]:
    def forge(header: Any, arrays: Arrays) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name][row] = value

    return forge


def forge_header(name: str, value: Any) -> Callable[[Any, Arrays], None]:
    def forge(header: Any, arrays: Arrays) -> None:
        header[name] = value

    return forge


def forge_text(name: str, text: str) -> Callable[[Any, Arrays], None]:
    def forge(header: Any, arrays: Arrays) -> None:
        arrays[name] = np.frombuffer(text.encode(), dtype=np.uint8)

    return forge


def leave_out(name: str) -> Callable[[Any, Arrays], None]:
    def forge(header: Any, arrays: Arrays) -> None:
        arrays.pop(name, None)
        header.pop(name, None)

    return forge


def cut_states(header: Any, arrays: Arrays) -> None:
    """No states at all, so that an array of any width is empty."""
    header["n_actions"] = 10**9
    arrays["given_up"] = np.zeros((0, 10**9), dtype=np.uint8)
    arrays["keys"] = np.frombuffer(b"[]", dtype=np.uint8)
    arrays["first_visit"] = arrays["first_visit"][:0]
    for name in ("state", "action", "next_state", "reward"):
        arrays[name] = arrays[name][:0]
    for name in ("terminated", "truncated", "is_first"):
        arrays[name] = arrays[name][:0]


FORGED = {
    "action 99": forge_entry("action", 99),
    "next state of a million": forge_entry("next_state", 10**6),
    "state below 0": forge_entry("state", -5),
    "a broken chain": forge_entry("state", 0, row=2),
    "an episode without a first step": forge_entry("is_first", False, row=0),
    "reward nan": forge_entry("reward", np.nan),
    "a visit after the last step": forge_entry("first_visit", 10**6),
    "a billion actions": forge_header("n_actions", 10**9),
    "a billion actions of no state": cut_states,
    "a trillion numbers": forge_header("numbers", [0, 10**12]),
    "other numbers": forge_header("numbers", [50, 104]),
    "numbers that are text": forge_header("numbers", "0,104"),
    "an unknown family": forge_header("by", "nobody"),
    "no seed": forge_header("seed", None),
    "a name that is none": forge_header("name", 3),
    "deep keys": forge_text("keys", "[" * 100_000 + "]" * 100_000),
    "keys twice": forge_text("keys", json.dumps([0] * 104)),
    "no keys": leave_out("keys"),
    "no form": leave_out("observations"),
    "no column": leave_out("terminated"),
    "observations that are no form": forge_header("observations", [1, 2]),
}


@pytest.mark.parametrize("kind", FORGED)
def test_forged_content_is_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "found"
    eo.explore(eo.maze("four-rooms"), 2000, until="known").save(path)
    header, arrays = read_arrays(path)
    FORGED[kind](header, arrays)
    write_arrays(path, "found", header, arrays)
    with pytest.raises(ValueError, match="found") as caught:
        eo.load_found(path)
    assert "\n" not in str(caught.value)
