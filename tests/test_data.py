"""`Transitions.of`: one walk, recorded in every kind of container, gives the same transitions and options."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from stable_baselines3.common.buffers import ReplayBuffer

import eigenoptions as eo
from eigenoptions.envs import OptionsSpace
from eigenoptions.options.walks import walk

MAZE = eo.maze("four-rooms")
WALK = walk(MAZE, 4000, rng=0)
S, A, N, D = WALK.obs, WALK.action, WALK.next_obs, WALK.terminated
REWARD = D.astype(float)


class Dataset:
    """A Minari data set, as far as it is read: episodes with one more observation than actions."""

    observation_space, action_space = Discrete(104), Discrete(4)

    def iterate_episodes(self) -> Any:
        first = 0
        for last in [*np.flatnonzero(D), len(S) - 1]:
            rows = slice(first, last + 1)
            first = last + 1
            seen = np.append(S[rows], N[rows][-1:])
            yield SimpleNamespace(observations=seen, actions=A[rows], terminations=D[rows])


KINDS: dict[str, Any] = {
    "four arrays": (S, A, N, D),
    "five arrays": (S, A, REWARD, N, D),
    "lists": [S.tolist(), A.tolist(), N.tolist(), D.tolist()],
    "columns": (S[:, None], A[:, None], N[:, None], D[:, None]),
    "floats": (S.astype(float), A.astype(np.float32), N.astype(float), REWARD),
    "tensors": tuple(torch.tensor(x) for x in (S, A[:, None], N, D)),
    "D4RL": {"observations": S, "actions": A, "rewards": REWARD, "next_observations": N, "terminals": D},
    "CleanRL": {"obs": S, "actions": A[:, None], "next_obs": N, "dones": D},
    "steps": list(zip(S, A, REWARD, N, D, strict=True)),
    "deque": deque(zip(S.tolist(), A.tolist(), N.tolist(), D.tolist(), strict=True)),
    "dicts": [
        {"obs": s, "action": a, "next_obs": n, "done": d} for s, a, n, d in zip(S, A, N, D, strict=True)
    ],
    "Minari": Dataset(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_same_transitions(kind: str) -> None:
    found = eo.Transitions.of(KINDS[kind])
    for name in ("obs", "action", "next_obs", "terminated"):
        part = getattr(found, name)
        np.testing.assert_array_equal(part, getattr(WALK, name))
        assert part.dtype.kind == ("b" if name == "terminated" else "i")


@pytest.mark.parametrize("kind", ["four arrays", "D4RL", "steps", "Minari", "tensors"])
def test_discover_takes_them_directly(kind: str) -> None:
    options = eo.discover(KINDS[kind], n_options=2)
    np.testing.assert_array_equal(options.policy, eo.discover(WALK, n_options=2).policy)


def test_without_next_observations_rows_follow_each_other_within_episodes() -> None:
    data = {"observations": [0, 1, 2, 7, 8, 9], "actions": [1] * 6, "terminals": [0, 0, 1, 0, 0, 0]}
    found = eo.Transitions.of({**data, "timeouts": [0, 0, 0, 0, 1, 0]})
    assert found.obs.tolist() == [0, 1, 7]
    assert found.next_obs.tolist() == [1, 2, 8]


@pytest.mark.parametrize("lean", [False, True])
@pytest.mark.parametrize("steps", [5, 30])
def test_replay_buffers(lean: bool, steps: int) -> None:
    """Rows in order, also of a buffer that has wrapped around; time limits are no ends; options are left out."""
    given: dict[str, Any] = {"n_envs": 1, "device": "cpu", "optimize_memory_usage": lean}
    if lean:
        given["handle_timeout_termination"] = False
    buffer = ReplayBuffer(12, Discrete(104), OptionsSpace(4, 2), **given)
    for i in range(steps):
        action, done = np.array([[i % 6]]), np.array([i % 4 == 3])
        info = {"TimeLimit.truncated": i % 8 == 3}
        buffer.add(np.array([[i]]), np.array([[i + 1]]), action, np.zeros(1), done, [info])
    found = eo.Transitions.of(buffer)
    oldest = max(0, steps - 12 + (lean and steps > 12))
    kept = [i for i in range(oldest, steps) if i % 6 < 4]
    assert found.obs.tolist() == kept
    assert found.next_obs.tolist() == [i + 1 for i in kept]
    assert found.action.tolist() == [i % 6 for i in kept]
    assert found.terminated.tolist() == [i % 4 == 3 and (lean or i % 8 != 3) for i in kept]
    assert eo.discover(buffer, n_options=2).n_states == 104


def test_a_buffer_of_continuous_observations() -> None:
    buffer = ReplayBuffer(300, Box(-1.0, 1.0, (2,)), Discrete(3), n_envs=2, device="cpu")
    rng = np.random.default_rng(0)
    for _ in range(150):
        obs, after = rng.uniform(-1, 1, (2, 2, 2))
        buffer.add(obs, after, rng.integers(3, size=(2, 1)), np.zeros(2), np.zeros(2), [{}, {}])
    assert eo.Transitions.of(buffer).obs.shape == (300, 2)
    options = eo.discover(buffer, n_options=2, features="fourier", iterations=2)
    assert options.features.low == (-1.0, -1.0)


CONTINUOUS = "gymnasium.wrappers.DiscretizeAction"


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ((S, np.linspace(0, 1, len(S)), N, D), rf"actions must be whole numbers, got .*{CONTINUOUS}"),
        ((S, np.zeros((len(S), 2)), N, D), rf"shape \(4000, 2\).*{CONTINUOUS}"),
        ((S, A), "a tuple of arrays is .* got 2 parts"),
        (
            {"observations": S},
            r"the dict has no action \(one of action, actions, act\); its keys are observations",
        ),
        ((S, A, N[:5], D), "all parts of Transitions must have one length"),
        ((S, A, N, np.zeros((len(S), 3))), r"terminated must have shape \(N,\) or \(N, 1\), got \(4000, 3\)"),
        (([[0], [1, 2]], [0, 1], [[0], [1]]), "the rows of obs have different shapes"),
        (({"x": S}, A, {"x": N}), "obs is a dict: flatten its parts"),
        ((["a"], [0], ["b"]), "obs must hold numbers"),
        ((np.float64(1.0), A, N), "obs must have one row per step"),
        ([], "there are no transitions: the sequence is empty"),
    ],
)
def test_what_is_refused(data: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        eo.Transitions.of(data)


def test_other_kinds_are_refused() -> None:
    with pytest.raises(TypeError, match=r"transitions are a tuple or dict of arrays.*got int"):
        eo.Transitions.of(3)


def test_continuous_actions() -> None:
    """The error names the wrapper, and the wrapper is the remedy."""
    with pytest.raises(ValueError, match=r"DiscretizeAction\(env, bins=3\)"):
        eo.discover("MountainCarContinuous-v0", n_options=2, steps=100)
    env = gym.wrappers.DiscretizeAction(gym.make("Pendulum-v1"), bins=3)
    assert eo.discover(env, n_options=2, steps=300, features="fourier", order=2, iterations=2).n_actions == 3
