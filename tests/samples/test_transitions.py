"""`Transitions.of`: one walk in every kind of container gives the same transitions.

And the same options.
"""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer

import eigenoptions as eo
from eigenoptions.envs import OptionsSpace
from eigenoptions.samples.walking import walk

MAZE = eo.maze("four-rooms")
WALK = walk(MAZE, 4000, rng=0)
S = WALK.obs
A = WALK.action
N = WALK.next_obs
D = WALK.terminated
REWARD = D.astype(float)
HALVES = (slice(50), slice(50, None))


class Dataset:
    """A Minari data set, as far as it is read.

    An episode has one more observation than actions.
    """

    observation_space = Discrete(104)
    action_space = Discrete(4)

    def iterate_episodes(self) -> Any:
        first = 0
        for last in [*np.flatnonzero(D), len(S) - 1]:
            rows = slice(first, last + 1)
            first = last + 1
            seen = np.append(S[rows], N[rows][-1:])
            yield SimpleNamespace(
                observations=seen, actions=A[rows], terminations=D[rows]
            )


KINDS: dict[str, Any] = {
    "four arrays": (S, A, N, D),
    "five arrays": (S, A, REWARD, N, D),
    "lists": [S.tolist(), A.tolist(), N.tolist(), D.tolist()],
    "columns": (S[:, None], A[:, None], N[:, None], D[:, None]),
    "floats": (S.astype(float), A.astype(np.float32), N.astype(float), REWARD),
    "tensors": tuple(torch.tensor(x) for x in (S, A[:, None], N, D)),
    "D4RL": {
        "observations": S,
        "actions": A,
        "rewards": REWARD,
        "next_observations": N,
        "terminals": D,
    },
    "CleanRL": {"obs": S, "actions": A[:, None], "next_obs": N, "dones": D},
    "steps": list(zip(S, A, REWARD, N, D, strict=True)),
    "deque": deque(zip(S.tolist(), A.tolist(), N.tolist(), D.tolist(), strict=True)),
    "dicts": [
        {"obs": s, "action": a, "next_obs": n, "done": d}
        for s, a, n, d in zip(S, A, N, D, strict=True)
    ],
    "Minari": Dataset(),
    "batches": iter(
        [eo.Transitions(*(part[rows] for part in (S, A, N, D))) for rows in HALVES]
    ),
    "tuples of columns": (
        (S[rows], A[rows], REWARD[rows], N[rows], D[rows]) for rows in HALVES
    ),
    "dicts of columns": (
        {"obs": S[r], "action": A[r], "next_obs": N[r], "done": D[r]} for r in HALVES
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_of_every_kind_gives_the_same_transitions(kind: str) -> None:
    found = eo.Transitions.of(KINDS[kind])
    for name in ("obs", "action", "next_obs", "terminated"):
        part = getattr(found, name)
        np.testing.assert_array_equal(part, getattr(WALK, name))
        assert part.dtype.kind == ("b" if name == "terminated" else "i")


@pytest.mark.parametrize("kind", ["four arrays", "D4RL", "steps", "Minari", "tensors"])
def test_discover_of_recorded_data_is_that_of_transitions(kind: str) -> None:
    options = eo.discover(KINDS[kind], n_options=2)
    np.testing.assert_array_equal(options.policy, eo.discover(WALK, n_options=2).policy)


def test_names_of_states_become_states_of_the_table() -> None:
    names = np.array([f"cell {s:03d}" for s in range(104)])
    named = (names[S].tolist(), A, names[N])
    mdp = eo.MDP.from_transitions(named)
    numbered = eo.MDP.from_transitions(WALK)
    assert mdp.states == tuple(names.tolist())
    assert abs(mdp.transition - numbered.transition).max() == 0
    for method in ("eigen", "neo"):
        options, expected = (
            eo.discover(data, n_options=2, method=method) for data in (named, WALK)
        )
        np.testing.assert_array_equal(options.policy, expected.policy)
    assert options.mdp.states == mdp.states


def test_of_rows_without_next_observations_stays_within_episodes() -> None:
    data = {
        "observations": [0, 1, 2, 7, 8, 9],
        "actions": [1] * 6,
        "terminals": [0, 0, 1, 0, 0, 0],
    }
    found = eo.Transitions.of({**data, "timeouts": [0, 0, 0, 0, 1, 0]})
    assert found.obs.tolist() == [0, 1, 7]
    assert found.next_obs.tolist() == [1, 2, 8]


@pytest.mark.parametrize("lean", [False, True])
@pytest.mark.parametrize("steps", [5, 25, 30])
def test_of_a_replay_buffer_gives_the_steps_that_happened(
    lean: bool, steps: int
) -> None:
    """Two environments with episodes of four steps.

    Time limits are no ends, options are no transitions.
    """
    how: dict[str, Any] = {"handle_timeout_termination": False} if lean else {}
    space = OptionsSpace(4, 2)
    buffer = ReplayBuffer(
        24, Discrete(104), space, "cpu", n_envs=2, optimize_memory_usage=lean, **how
    )
    states = np.array([0, 50])
    expected: list[list[tuple[int, int, int, bool]]] = [[], []]
    for i in range(steps):
        action = i % 6
        done = i % 4 == 3
        timeout = i % 8 == 3
        ends = [{"TimeLimit.truncated": timeout}] * 2
        buffer.add(
            states,
            states + 1,
            np.full((2, 1), action),
            np.zeros(2),
            np.full(2, done),
            ends,
        )
        if (
            action < 4
            and not (lean and done)
            and i >= steps - 12 + (lean and steps > 12)
        ):
            for rows, state in zip(expected, states.tolist(), strict=True):
                rows.append((state, action, state + 1, done and not timeout))
        states = states + (10 if done else 1)
    batch = eo.Transitions.of(buffer)
    columns = (batch.obs, batch.action, batch.next_obs, batch.terminated)
    found = list(zip(*(column.tolist() for column in columns), strict=True))
    assert sorted(found) == sorted(expected[0] + expected[1])


def test_of_a_buffer_of_boxes_keeps_its_bounds() -> None:
    buffer = ReplayBuffer(
        300, Box(-1.0, 1.0, (2,)), Discrete(3), n_envs=2, device="cpu"
    )
    rng = np.random.default_rng(0)
    for _ in range(150):
        obs, after = rng.uniform(-1, 1, (2, 2, 2))
        buffer.add(
            obs, after, rng.integers(3, size=(2, 1)), np.zeros(2), np.zeros(2), [{}, {}]
        )
    assert eo.Transitions.of(buffer).obs.shape == (300, 2)
    options = eo.discover(buffer, n_options=2, features=eo.Fitted(iterations=2))
    assert options.features.low == (-1.0, -1.0)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ((S, np.linspace(0, 1, len(S)), N, D), "DiscretizeAction"),
        ((S, np.zeros((len(S), 2)), N, D), "DiscretizeAction"),
        ((S, A), "got 2"),
        ({"observations": S}, "no action"),
        ((S, A, N[:5], D), "one length"),
        ((S, A, N, np.zeros((len(S), 3))), "terminated"),
        (([[0], [1, 2]], [0, 1], [[0], [1]]), "different shapes"),
        (({"x": S}, A, {"x": N}), "dict"),
        ((["a"], ["x"], ["b"]), "numbers"),
        ((np.float64(1.0), A, N), "one row per step"),
        ([], "empty"),
    ],
)
def test_of_bad_data_raises(data: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        eo.Transitions.of(data)


def test_of_other_types_raises() -> None:
    rollouts = RolloutBuffer(5, Discrete(3), Discrete(2), "cpu")
    for data in (3, "walk", np.zeros((4, 3)), rollouts):
        with pytest.raises(TypeError, match=type(data).__name__):
            eo.Transitions.of(data)


def test_discover_continuous_actions_raises_and_names_the_wrapper() -> None:
    with pytest.raises(ValueError, match=r"DiscretizeAction\(env, bins=3\)"):
        eo.discover("MountainCarContinuous-v0", n_options=2, steps=100)
    env = gym.wrappers.DiscretizeAction(gym.make("Pendulum-v1"), bins=3)
    assert (
        eo.discover(
            env, n_options=2, steps=300, features=eo.Fitted(order=2, iterations=2)
        ).n_actions
        == 3
    )


def test_some_steps_of_a_batch_keep_all_columns() -> None:
    batch = eo.Transitions(S, A, N, D, REWARD, ~D)
    few = batch[10:13]
    assert len(few) == 3
    assert few.obs.tolist() == S[10:13].tolist()
    np.testing.assert_array_equal(few.truncated, ~D[10:13])
    np.testing.assert_array_equal(batch[D].reward, REWARD[D])
    assert WALK[:5].reward is None


# Vectors: one walk on a plane in every kind of container.

PLANE_RNG = np.random.default_rng(0)
V = PLANE_RNG.uniform(size=(40, 3))
VA = PLANE_RNG.integers(4, size=40)
VN = np.vstack([V[1:], PLANE_RNG.uniform(size=(1, 3))])
VR = PLANE_RNG.normal(size=40)
VD = np.arange(40) % 10 == 9
VT = np.zeros(40, dtype=bool)


def list_rows(*columns: Any) -> list[tuple[Any, ...]]:
    """Steps as tuples."""
    return list(zip(*columns, strict=True))


def cut_episodes(make: Any) -> list[Any]:
    """Four episodes of ten steps, each made of its rows."""
    return [make(slice(first, first + 10)) for first in range(0, 40, 10)]


def add_last(rows: slice) -> np.ndarray:
    """T + 1 observations of an episode."""
    return np.vstack([V[rows], VN[rows][-1:]])


FRAME = {
    "obs_x": V[:, 0],
    "obs_y": V[:, 1],
    "obs_z": V[:, 2],
    "action": VA,
    "reward": VR,
    "next_obs_x": VN[:, 0],
    "next_obs_y": VN[:, 1],
    "next_obs_z": VN[:, 2],
    "done": VD,
}
TWINS = {
    name.replace("obs_", ""): column
    for name, column in FRAME.items()
    if name not in ("reward",)
}


class PolarsLike:
    """A data frame of another library: columns by name, and an array of all."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns = list(columns)
        self.shape = (len(VA), len(columns))
        self._data = columns

    def __getitem__(self, name: str) -> Any:
        return self._data[name]

    def to_numpy(self) -> Any:
        return np.column_stack(list(self._data.values()))


VECTORS: dict[str, Any] = {
    "(s, a, s')": list_rows(V, VA, VN),
    "(s, a, s') of lists": list_rows(V.tolist(), VA.tolist(), VN.tolist()),
    "(s, a, s', done)": list_rows(V, VA, VN, VD),
    "(s, a, r, s', done)": list_rows(V, VA, VR, VN, VD),
    "actions (1,)": list_rows(V, VA[:, None], VN),
    "JSON": [list(row) for row in list_rows(V.tolist(), VA, VR, VN.tolist(), VD)],
    "Gymnasium": list_rows(V, VA, VN, VR, VD, VT, [{}] * 40),
    "step dicts": [
        {"obs": s, "action": a, "next_obs": n} for s, a, n in list_rows(V, VA, VN)
    ],
    "episodes of steps": cut_episodes(
        lambda rows: list_rows(V[rows], VA[rows], VR[rows], VN[rows], VD[rows])
    ),
    "episodes of arrays": cut_episodes(lambda rows: (V[rows], VA[rows], VN[rows])),
    "episodes of T + 1": cut_episodes(
        lambda rows: {"observations": add_last(rows), "actions": VA[rows]}
    ),
    "episodes of T + 1 with rewards": cut_episodes(
        lambda rows: {"obs": add_last(rows), "act": VA[rows], "rewards": VR[rows]}
    ),
    "episode objects": cut_episodes(
        lambda rows: SimpleNamespace(observations=add_last(rows), actions=VA[rows])
    ),
    "pandas": pd.DataFrame(FRAME),
    "pandas, twins": pd.DataFrame(TWINS),
    "pandas, arrays in rows": pd.DataFrame(
        {"obs": list(V), "action": VA, "next_obs": list(VN)}
    ),
    "frames in a dict": {
        "obs": pd.DataFrame(V),
        "action": pd.Series(VA),
        "next_obs": pd.DataFrame(VN),
    },
    "like polars": PolarsLike(FRAME),
}


@pytest.mark.parametrize("kind", VECTORS)
def test_of_every_kind_reads_vectors(kind: str) -> None:
    found = eo.Transitions.of(VECTORS[kind])
    np.testing.assert_array_equal(found.obs, V)
    np.testing.assert_array_equal(found.action, VA)
    np.testing.assert_array_equal(found.next_obs, VN)
    if found.reward is not None:
        np.testing.assert_array_equal(found.reward, VR)


def test_frames_keep_the_names_of_columns() -> None:
    found = eo.Transitions.of(VECTORS["pandas"])
    assert found.names == ("x", "y", "z")
    assert found[:5].names == ("x", "y", "z")
    assert eo.Transitions.of([found, found]).names == ("x", "y", "z")
    assert eo.check_columns(found, columns=["z", "x"]).used == (2, 0)


def test_rows_of_a_frame_without_next_observations_stay_within_episodes() -> None:
    frame = pd.DataFrame(
        {"obs_x": [0.0, 0.5, 1.5, 7.0, 7.5], "action": 0, "episode": [1, 1, 1, 2, 2]}
    )
    found = eo.Transitions.of(frame)
    assert found.obs.ravel().tolist() == [0.0, 0.5, 7.0]
    assert found.next_obs.ravel().tolist() == [0.5, 1.5, 7.5]
    assert found.truncated is not None
    assert found.truncated.tolist() == [False, True, True]


@pytest.mark.parametrize("make", [str, lambda s: (int(s) // 20, int(s) % 20)])
def test_names_and_tuples_are_states_in_lists_of_steps(make: Any) -> None:
    steps = [
        (make(s), int(a), make(n), bool(d)) for s, a, n, d in list_rows(S, A, N, D)
    ]
    found = eo.Transitions.of(steps)
    assert found.states is not None
    assert [found.states[s] for s in found.obs[:9]] == [make(s) for s in S[:9]]

    options = eo.discover(steps, n_options=2, n_actions=4)
    assert options.mdp.states == found.states
    first = found.states[int(found.obs[0])]
    path = options.follow(0, first)
    assert options.mdp.states[path[0]] == first
    assert options[0].act(first) == options[0].act(int(path[0]))

    # The same options as of numbers, state by state.
    numbered = eo.discover(WALK, n_options=2, n_actions=4)
    for number, state in enumerate(found.states):
        original = next(s for s in range(104) if make(s) == state)
        assert options.policy[:, number].tolist() in (
            numbered.policy[:, original].tolist(),
            numbered.policy[::-1, original].tolist(),
        )


@pytest.mark.parametrize("states", [list("abcba"), [(0, 0), (0, 1), (1, 1)], [0, 1, 2]])
def test_names_are_states_in_episodes_of_one_more(states: list[Any]) -> None:
    """T + 1 states and T actions; names with rewards on either side, too."""
    actions = [0, 1, 0, 1][: len(states) - 1]
    found = eo.Transitions.of([{"observations": states, "actions": actions}])
    named = found.states or (0, 1, 2)
    assert [named[s] for s in found.obs] == states[:-1]
    assert [named[s] for s in found.next_obs] == states[1:]


def test_reward_after_names_is_no_state() -> None:
    found = eo.Transitions.of([("hall", 0, 0.5, "room", False)])
    assert found.states == ("hall", "room")
    assert found.reward is not None
    assert found.reward.tolist() == [0.5]
    with pytest.raises(ValueError, match="dict with names"):
        eo.Transitions.of([("hall", 0, "room", 0.5, False)])


def test_pandas_columns_of_names_are_states() -> None:
    frame = pd.DataFrame(
        {"state": ["hall", "room"], "action": [0, 1], "next_state": ["room", "hall"]}
    )
    found = eo.Transitions.of(frame)
    assert found.states == ("hall", "room")
    assert found.next_obs.tolist() == [1, 0]


def test_batches_with_different_names_are_joined_by_name() -> None:
    first = eo.Transitions.of([("b", 0, "c")])
    second = eo.Transitions.of([("a", 0, "b")])
    both = eo.Transitions.of([first, second])
    assert both.states == ("a", "b", "c")
    assert both.obs.tolist() == [1, 0]
    assert both.next_obs.tolist() == [2, 1]


def put_object(row: int, value: object) -> np.ndarray:
    """The vectors as objects, one of which is something else."""
    mixed = V.astype(object)
    mixed[row, 0] = value
    return mixed


def put_nan(row: int) -> np.ndarray:
    """The vectors, with a value missing."""
    broken = V.copy()
    broken[row, 1] = np.nan
    return broken


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ((put_nan(7), VA, VN), "row 7"),
        ((V, np.where(VA == 2, np.nan, VA), VN), "action must be finite"),
        (pd.DataFrame({"x": VA, "battery": VR, "action": VA}), "x, battery"),
        (pd.DataFrame({"obs_x": list("ab"), "action": [0, 1]}), "obs_x.*'a'.* row 0"),
        (([{"x": 1}] * 3, [0] * 3, [{"x": 2}] * 3), "row 0"),
        ((["a", 0.5], [0, 1], ["b", "c"]), "row 1"),
        (([0, 1], ["up", "down"], [1, 2]), "'up' in row 0"),
        ((put_object(3, "far"), VA, VN), "'far' in row 3"),
        ((V, VA[:-3], VN), "one row per step"),
        ([(0, 1, 2), (0, 1)], "step 1"),
        ([{"obs": 0, "action": 1, "next_obs": 2}, {"obs": 0}], "step 1"),
        ([[0, 1, 2], [1, 0, 3], [3, 1, 0]], "3 steps, or the 3 parts"),
        ([(V, VA, VN), (V[:, :2], VA, VN[:, :2])], "entry 1"),
        ([(V, VA, VN), (put_nan(3), VA, VN)], "entry 1: obs must be finite"),
        ([("a", "b"), ("b", "c")], "from_graph"),
        ({"obs": [0, 1], "action": [0, 0], "done": [1, 1]}, "longer episodes"),
        ({"obs": V, "action": VA[:3]}, "action has 3 rows and obs 40"),
        ({"obs": V, "action": VA, "rewards": VR[:9]}, "reward has 9 rows"),
        ([{"observations": V[:5], "actions": VA[:2]}], "2 rows and obs 5"),
        ([SimpleNamespace(observations=V, actions=VA)], "41 observations"),
        ((V, VA, VN[:, :2]), "same columns"),
        ((V, VA - 1, VN), "numbered from 0, got -1 in row"),
    ],
)
def test_of_bad_vectors_raises_and_names_the_row(data: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as error:
        eo.Transitions.of(data)
    assert "\n" not in str(error.value)


# Seven states in a row of steps, and rewards that could be states.
PLACES = PLANE_RNG.integers(7, size=301)
NUMBERED = list(
    zip(
        PLACES[:-1].tolist(),
        PLANE_RNG.integers(2, size=300).tolist(),
        PLACES[1:].tolist(),
        strict=True,
    )
)
IN_NO_ORDER = [NUMBERED[i] for i in PLANE_RNG.permutation(300)]


@pytest.mark.parametrize(
    "steps",
    [
        [(s, a, int(n == 3), n, False) for s, a, n in NUMBERED],
        [(s, a, 2 * n % 5, n, False) for s, a, n in NUMBERED],
        [(s, a, 0, n, False) for s, a, n in IN_NO_ORDER],
        [(s, a, int(n == 3), n, False) for s, a, n in IN_NO_ORDER],
        [(s, a, n, False) for s, a, n in IN_NO_ORDER],
        [(s, a, n, 0) for s, a, n in NUMBERED],
        [(s, a, n, 0.5, False, False) for s, a, n in IN_NO_ORDER],
        [(s, a, n, 0, False, False, {}) for s, a, n in NUMBERED],
        tuple(np.array(part) for part in zip(*NUMBERED, strict=True)),
    ],
)
def test_parts_without_names_have_one_order(steps: Any) -> None:
    found = eo.Transitions.of(steps)
    order = NUMBERED
    if found.obs.tolist() != PLACES[:-1].tolist():
        order = IN_NO_ORDER
    assert found.obs.tolist() == [s for s, _, _ in order]
    assert found.action.tolist() == [a for _, a, _ in order]
    assert found.next_obs.tolist() == [n for _, _, n in order]
    assert not found.terminated.any()


@pytest.mark.parametrize(
    "data",
    [
        # The reward after the next observation.
        list_rows(V, VA, VN, VR, VD),
        [(s, a, n, 0.5, False) for s, a, n in IN_NO_ORDER],
        [(s, a, n, 0.0, False) for s, a, n in IN_NO_ORDER],
        [(s, a, n, int(n == 3), False) for s, a, n in NUMBERED],
        # A reward and no end.
        list_rows(V, VA, VR, VN),
        [(s, a, 0.5, n) for s, a, n in IN_NO_ORDER],
        [(s, a, 2 * n % 5, n) for s, a, n in NUMBERED],
        [(s, a, n, 2 * n % 5) for s, a, n in NUMBERED],
        [(s, a, n, int(n == 3)) for s, a, n in NUMBERED],
        (V[:-1], VA[:-1], V[1:], (VA[:-1] == 0) * 1.0),
        # What gymnasium.utils.play calls back with.
        list_rows(V, VN, VA, VR, VD, VT, [{}] * 40),
        [(s, n, a, 0, False, False, {}) for s, a, n in NUMBERED],
    ],
)
def test_another_order_is_refused_and_asks_for_names(data: Any) -> None:
    with pytest.raises(
        ValueError, match=r"are \(obs, action, .*dict with names"
    ) as error:
        eo.Transitions.of(data)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("data", "readings"),
    [
        (((0, 1, 2), (2, 0, 1), (1, 1, 0)), "3 steps, or the 3 parts"),
        ((V, VA[:-1], VR[:-1]), "an episode"),
        ({"obs": V, "action": VA, "next_obs": VN, "dones": VR}, "True or False"),
        ([[(V[0], 1), (V[1], 0)]] * 6, "episode"),
    ],
)
def test_what_could_be_read_in_two_ways_is_asked_back(data: Any, readings: str) -> None:
    with pytest.raises(ValueError, match=readings) as error:
        eo.Transitions.of(data)
    assert "\n" not in str(error.value)


def test_vectors_that_could_be_a_batch_are_asked_back() -> None:
    """Three numbers as state and three as action: one step, or three."""
    entries = [(row.tolist(), row.tolist(), row.tolist()) for row in V]
    with pytest.raises(ValueError, match="one step of vectors, or a batch of 3"):
        eo.Transitions.of(entries, continuous=True)
    with_reward = [(s, a, 0.0, n, False) for s, a, n in entries]
    found = eo.Transitions.of(with_reward, continuous=True)
    assert found.action.shape == (40, 3)


def test_a_column_of_numbers_with_a_fraction_is_no_column_of_states() -> None:
    for obs, next_obs in (([0.0, 1.0], [0.5, 2.0]), ([0.5, 2.0], [1.0, 3.0])):
        found = eo.Transitions.of((np.array(obs), [0, 1], np.array(next_obs)))
        assert found.obs.tolist() == [[x] for x in obs]
        assert found.next_obs.tolist() == [[x] for x in next_obs]


def test_one_episode_of_two_steps_is_read() -> None:
    found = eo.Transitions.of([{"observations": V[:3], "actions": VA[:2]}])
    assert len(found) == 2


def test_a_single_step_of_gymnasium_is_read() -> None:
    step = ([0.5, 1.0], 3, [0.7, 1.0], 0.25, True, False, {})
    found = eo.Transitions.of([step])
    assert found.action.tolist() == [3]
    assert found.next_obs.tolist() == [[0.7, 1.0]]
    assert found.terminated.tolist() == [True]


def test_a_table_of_vectors_raises_and_names_the_way() -> None:
    with pytest.raises(ValueError, match="Planner"):
        eo.MDP.from_transitions(([0.5], [0], [0.7]))
    with pytest.raises(TypeError, match="collect"):
        eo.Transitions.of(gym.make("CartPole-v1"))


def test_discover_warns_of_actions_that_never_vary(
    caplog: pytest.LogCaptureFixture,
) -> None:
    same = np.full(40, 2)
    eo.discover((V, same, VN), n_options=2, features=eo.Fitted(iterations=2))
    assert "the action is 2 in all 40 rows" in caplog.text


def test_a_planner_takes_names_of_states() -> None:
    planner = eo.Planner([("hall", 0, "room"), ("room", 1, "hall"), ("room", 0, "bed")])
    assert planner.act("hall", "bed") == planner.act(1, 0)
    with pytest.raises(IndexError, match="roof"):
        planner.act("roof", "bed")


def test_transitions_with_vectors_as_actions_are_for_planners() -> None:
    log = eo.collect("Pendulum-v1", 300)
    assert eo.Transitions.of(log, continuous=True).action.shape == (300, 1)
    with pytest.raises(ValueError, match="Planner"):
        eo.discover(log)
