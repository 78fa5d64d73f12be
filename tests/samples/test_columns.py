"""`check_columns`: what it finds, and that ordinary data raise no alarm."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.samples.drift import pair_angles
from eigenoptions.samples.features import make_features
from eigenoptions.samples.trajectories import find_trajectories


def log_maze(name: str) -> eo.Transitions:
    """A random walk through a maze, whose cells are known by their coordinates."""
    maze = eo.maze(name)
    walk = eo.collect(eo.MDP(maze.transition, start=0), 8_000)
    cells = maze.coords.astype(float)
    return eo.Transitions(
        cells[walk.obs], walk.action, cells[walk.next_obs], walk.terminated
    )


def log_env(name: str, n_bins: int | None = None, **how: Any) -> eo.Transitions:
    """Random actions in an environment."""
    if how:
        return eo.collect(name, 8_000, **how)
    env = gym.make(name)
    if n_bins is not None:
        env = gym.wrappers.DiscretizeAction(env, bins=n_bins)
    return eo.collect(env, 8_000)


def log_points(one_axis: bool) -> eo.Transitions:
    """A point that moves by vectors through a hall with a wall, as in PointMaze."""
    rng = np.random.default_rng(0)
    obs = np.empty((8_001, 2))
    obs[0] = 5.0
    action = rng.uniform(-1, 1, (8_000, 2))
    if one_axis:
        action[np.arange(8_000), rng.integers(2, size=8_000)] = 0.0
    for t in range(8_000):
        after = np.clip(obs[t] + 0.4 * action[t], 0, 10)
        is_blocked = (obs[t, 0] < 6) != (after[0] < 6) and not 3 < after[1] < 6
        obs[t + 1] = obs[t] if is_blocked else after
    return eo.Transitions(obs[:-1], action, obs[1:], np.zeros(8_000, dtype=bool))


def log_robot(battery: bool = False, n_steps: int = 9_000) -> eo.Transitions:
    """A robot that drives and turns: x, y, sine and cosine of its heading, battery."""
    rng = np.random.default_rng(0)
    rows = []
    actions = rng.integers(4, size=n_steps)
    for t, action in enumerate(actions):
        if t % 300 == 0:
            place = rng.uniform(0, 10, 2)
            heading = rng.uniform(0, 2 * np.pi)
            charge = 1.0
        before = [*place, np.sin(heading), np.cos(heading), charge]
        if action < 2:
            ahead = np.array([np.cos(heading), np.sin(heading)])
            place = np.clip(place + (0.3, -0.15)[action] * ahead, 0, 10)
        else:
            heading += (0.4, -0.4)[action - 2]
        charge -= 0.002 + 0.001 * (action < 2)
        after = [*place, np.sin(heading), np.cos(heading), charge]
        rows.append((before, after))
    obs, next_obs = np.array(rows)[:, :, : 5 if battery else 4].swapaxes(0, 1)
    is_cut = np.arange(n_steps) % 300 == 299
    no_end = np.zeros(n_steps, dtype=bool)
    return eo.Transitions(obs, actions, next_obs, no_end, truncated=is_cut)


def log_key() -> eo.Transitions:
    """A grid with a key that is picked up in one corner."""
    rng = np.random.default_rng(0)
    moves = np.array([(0, 1), (1, 0), (0, -1), (-1, 0), (0, 0)])
    actions = rng.integers(5, size=8_000)
    rows = []
    for t, action in enumerate(actions):
        if t % 200 == 0:
            cell = rng.integers(8, size=2)
            has_key = 0
        before = [*cell, has_key]
        if action == 4 and cell.min() > 5:
            has_key = 1
        cell = np.clip(cell + moves[action], 0, 7)
        rows.append((before, [*cell, has_key]))
    obs, next_obs = np.array(rows, dtype=float).swapaxes(0, 1)
    return eo.Transitions(obs, actions, next_obs, np.arange(8_000) % 200 == 199)


def log_noise() -> eo.Transitions:
    """Actions move all columns, and noise moves them as much."""
    rng = np.random.default_rng(0)
    action = rng.integers(3, size=8_000)
    obs = np.zeros((8_001, 3))
    push = np.array([1.0, -0.5, 0.3])
    for t in range(8_000):
        noise = rng.normal(0, 0.5, 3)
        obs[t + 1] = 0.95 * obs[t] + push * (action[t] - 1) + noise
    return eo.Transitions(obs[:-1], action, obs[1:], np.zeros(8_000, dtype=bool))


ORDINARY: dict[str, Callable[[], eo.Transitions]] = {
    "CartPole": lambda: log_env("CartPole-v1"),
    "CartPole, eight at once": lambda: log_env("CartPole-v1", n_envs=8),
    "MountainCar": lambda: log_env("MountainCar-v0"),
    "Acrobot": lambda: log_env("Acrobot-v1"),
    "Pendulum": lambda: log_env("Pendulum-v1", 5),
    "hall": lambda: log_points(False),
    "hall, one axis at a time": lambda: log_points(True),
    "four rooms": lambda: log_maze("four-rooms"),
    "rooms": lambda: log_maze("rooms:20x20"),
    "robot": log_robot,
    "key": log_key,
    "noise": log_noise,
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_data_raise_no_alarm(name: str) -> None:
    data = ORDINARY[name]()
    report = eo.check_columns(data)
    assert not report.suspects, report
    assert report.used == tuple(range(data.obs.shape[1]))

    # The same of rows whose order is lost, as in a batch of a replay buffer.
    order = np.random.default_rng(0).permutation(len(data))
    assert not eo.check_columns(data[order]).suspects


def add_column(data: eo.Transitions, column: np.ndarray) -> eo.Transitions:
    """A further column ``(N + 1,)``: its value before and after each step."""
    return eo.Transitions(
        np.column_stack([data.obs, column[:-1]]),
        data.action,
        np.column_stack([data.next_obs, column[1:]]),
        data.terminated,
        truncated=data.truncated,
    )


def wander(n: int, pull: float) -> np.ndarray:
    """A value that wanders by itself."""
    rng = np.random.default_rng(5)
    values = np.zeros(n)
    for t in range(1, n):
        values[t] = (1 - pull) * values[t - 1] + rng.normal()
    return values


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (lambda n: np.arange(n) * 0.01, "drifting"),
        (lambda n: -np.arange(n) + np.random.default_rng(1).normal(size=n), "drifting"),
        (lambda n: np.arange(n) % 700 / 700, "drifting"),
        (lambda n: np.full(n, 3.0), "constant"),
        (lambda n: np.random.default_rng(2).normal(size=n), "exogenous"),
        (lambda n: wander(n, 0.05), "exogenous"),
        (lambda n: np.sin(np.arange(n) / 40), "exogenous"),
    ],
    ids=["clock", "noisy battery", "charged", "stuck", "noise", "weather", "day"],
)
@pytest.mark.parametrize("name", ["hall", "four rooms", "noise"])
def test_a_column_that_no_action_moves_is_found(
    name: str, column: Callable[[int], np.ndarray], kind: str
) -> None:
    data = ORDINARY[name]()
    report = eo.check_columns(add_column(data, column(len(data) + 1)))
    assert [c.kind for c in report.columns][-1] == kind
    assert not any(c.is_suspect for c in report.columns[:-1])


@pytest.mark.parametrize("radius", [0.01, 1.0, 10.0])
def test_an_angle_is_found_on_a_circle_of_any_size(radius: float) -> None:
    angle = np.linspace(0.0, 20.0, 500)
    obs = radius * np.stack([np.cos(angle), angle, np.sin(angle)], axis=1)
    assert pair_angles(obs, np.zeros(3, dtype=np.bool_)) == {0: 2, 2: 0}


def test_the_table_of_a_robot_names_its_battery_and_its_heading() -> None:
    data = log_robot(battery=True)
    report = eo.check_columns(data)
    kinds = [column.kind for column in report.columns]
    assert kinds == ["", "", "angle", "angle", "drifting"]
    assert report.columns[2].partner == 3
    assert report.low[2:4].tolist() == report.low[[3, 2]].tolist()
    assert "columns=[0, 1, 2, 3]" in repr(report)
    assert "drifting" in repr(report)


def test_the_warning_names_column_share_and_remedy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    data = log_robot(battery=True)
    report = eo.check_columns(data)
    battery = data.obs[:, 4]
    values = np.column_stack([battery**3, data.obs[:, 0]])
    shares = report.explain(data.obs, values, ["e2", "e3"])
    assert shares[4].endswith("of e2")
    assert int(shares[4].split("%")[0]) > 95

    with caplog.at_level(logging.WARNING, logger="eigenoptions"):
        report.warn(shares)
        eo.check_columns(data, columns=[0, 1, 4]).warn(shares)
    (record,) = caplog.records
    message = record.getMessage()
    assert "column 4 is drifting" in message
    assert shares[4] in message
    assert "columns=[0, 1, 2, 3]" in message


def test_constant_columns_are_left_out_and_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    data = add_column(log_points(False), np.full(8_001, 2.0))
    report = eo.check_columns(data)
    assert report.used == (0, 1)
    assert report.select(data.obs).shape == (8_000, 2)
    assert report.select(data.obs[0]).shape == (2,)
    with caplog.at_level(logging.WARNING, logger="eigenoptions"):
        report.warn()
    assert "column 2 is left out" in caplog.text

    asked = eo.check_columns(data, columns=[2, 0])
    assert asked.used == (2, 0)
    assert (asked.high > asked.low).all()


def test_scales_that_differ_are_noted() -> None:
    data = log_points(False)
    scaled = eo.Transitions(
        data.obs * [1, 1e4], data.action, data.next_obs * [1, 1e4], data.terminated
    )
    report = eo.check_columns(scaled)
    assert report.scale_ratio > 1e3
    assert "scales are set" in repr(report)


def test_a_report_is_the_same_again() -> None:
    data = log_robot(battery=True)
    assert repr(eo.check_columns(data)) == repr(eo.check_columns(data))


def test_too_few_steps_or_one_action_show_nothing_exogenous() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(3_001, 2))
    action = rng.integers(2, size=3_000)
    few = (noise[:200], action[:200], noise[1:201])
    same = (noise[:-1], np.zeros(3_000, dtype=int), noise[1:])
    assert not eo.check_columns(few).suspects
    assert not eo.check_columns(same).suspects
    assert len(eo.check_columns((noise[:-1], action, noise[1:])).suspects) == 2


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ([5], "in 0..1"),
        ([], "different"),
        ([0, 0], "different"),
        (["x"], "no column 'x'"),
        ("x", "list"),
    ],
)
def test_bad_columns_raise(columns: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        eo.check_columns(log_points(False)[:50], columns=columns)


def test_data_without_columns_or_changes_raise() -> None:
    with pytest.raises(ValueError, match="vectors"):
        eo.check_columns(([0, 1], [0, 0], [1, 2]))
    same = np.ones((9, 2))
    with pytest.raises(ValueError, match="constant"):
        eo.check_columns((same, np.zeros(9, dtype=int), same))


def test_trajectories_of_interleaved_environments_are_told_apart() -> None:
    first = np.arange(5.0)
    second = np.arange(5.0) + 100
    obs = np.stack([first, second], axis=1).ravel()[:, None]
    ends = np.zeros(10, dtype=bool)
    ends[4] = True  # the third step of the first
    found = find_trajectories(obs, obs + 1, ends)
    assert found.order.tolist() == [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]
    assert found.n_steps.tolist() == [3, 2, 5]


@pytest.mark.parametrize("name", ["fourier", "tiles", "raw"])
def test_a_map_of_some_columns_is_the_map_of_those_columns(name: str) -> None:
    obs = np.random.default_rng(0).uniform(-1, 3, (20, 4))
    some = make_features(name, None, obs, columns=(3, 1))
    alone = make_features(name, None, obs[:, [3, 1]])
    first, second = some(obs), alone(obs[:, [3, 1]])
    assert abs(first - second).max() == 0
    with pytest.raises(ValueError, match="columns"):
        some(obs[:, :2])


def test_training_warns_of_a_battery(caplog: pytest.LogCaptureFixture) -> None:
    data = log_robot(battery=True, n_steps=3_000)
    with caplog.at_level(logging.WARNING, logger="eigenoptions"):
        eo.deep.learn(data, 3, steps=2)
    (message,) = [text for text in caplog.messages if "drifting" in text]
    assert "column 4" in message
    assert "columns=[0, 1, 2, 3]" in message


def test_options_of_features_warn_of_a_battery_and_leave_it_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    data = log_robot(battery=True, n_steps=3_000)
    settings: dict[str, Any] = {"features": "fourier", "n_actions": 4}
    with caplog.at_level(logging.WARNING):
        eo.discover(data, 2, **settings)
    (message,) = [text for text in caplog.messages if "drifting" in text]
    assert "of e2+" in message
    assert "columns=[0, 1, 2, 3]" in message

    # The battery has no part in the options: any other charge gives the same actions.
    options = eo.discover(data, 2, columns=[0, 1, 2, 3], **settings)
    other = data.obs.copy()
    other[:, 4] = 0.123
    np.testing.assert_array_equal(options.actions(data.obs), options.actions(other))
    assert options.features.columns == (0, 1, 2, 3)


def test_what_never_changes_within_a_trajectory_is_exogenous() -> None:
    rng = np.random.default_rng(0)
    action = rng.integers(2, size=(20, 100))
    place = np.cumsum(2.0 * action - 1.0, axis=1)
    before = np.concatenate([np.zeros((20, 1)), place[:, :-1]], axis=1)
    layout = np.repeat(rng.normal(size=(20, 1)), 100, axis=1)
    is_last = np.zeros((20, 100), dtype=bool)
    is_last[:, -1] = True
    data = {
        "obs": np.stack([before, layout], axis=-1).reshape(-1, 2),
        "action": action.ravel(),
        "next_obs": np.stack([place, layout], axis=-1).reshape(-1, 2),
        "terminated": is_last.ravel(),
    }
    _, column = eo.check_columns(data).columns
    assert column.kind == "exogenous"
    assert "never changes" in column.reason


def test_more_columns_than_are_looked_at_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rng = np.random.default_rng(0)
    obs = np.cumsum(np.ones((101, 5)), axis=0)
    report = eo.check_columns(
        (obs[:-1], rng.integers(2, size=100), obs[1:]), max_columns=4
    )
    assert not report.suspects
    assert "max_columns=5" in caplog.text


@pytest.mark.parametrize(("n_changes", "is_told"), [(19, False), (20, True)])
def test_a_column_that_changes_a_few_times_is_not_called_exogenous(
    n_changes: int, is_told: bool
) -> None:
    rng = np.random.default_rng(0)
    action = rng.integers(2, size=2_000)
    place = np.append(0.0, np.cumsum(2 * action - 1))
    is_switched = np.isin(np.arange(2_001), 90 * np.arange(1, n_changes + 1))
    # A switch that alternates, so that it does not drift.
    switch = np.cumsum(is_switched) % 2
    obs = np.stack([place, switch], axis=1)
    report = eo.check_columns((obs[:-1], action, obs[1:]))
    assert (report.columns[1].kind == "exogenous") == is_told


def test_trajectories_of_environments_that_look_alike_are_told_apart() -> None:
    """Most views are equal, so that most steps seem to follow those beside them."""
    steps = np.arange(240)
    views = np.where(steps % 5 == 0, 1 + steps, 0)
    obs = np.stack([views[:-1], np.roll(views, 7)[:-1]], axis=1).reshape(-1, 1)
    next_obs = np.stack([views[1:], np.roll(views, 7)[1:]], axis=1).reshape(-1, 1)
    found = find_trajectories(obs, next_obs, np.zeros(len(obs), dtype=np.bool_))
    assert found.n_steps.tolist() == [239, 239]
