"""`Transitions.of`: one walk in every kind of container gives the same transitions.

And the same options.
"""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer

import eigenoptions as eo
from eigenoptions.envs import OptionsSpace
from eigenoptions.options.walks import walk

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
    assert mdp.fingerprint == numbered.fingerprint
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
@pytest.mark.parametrize("steps", [5, 30])
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
    options = eo.discover(buffer, n_options=2, features="fourier", iterations=2)
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
            env, n_options=2, steps=300, features="fourier", order=2, iterations=2
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
