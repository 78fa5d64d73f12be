"""Online, with an incomplete graph: explore, derive options, explore further."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose

import eigenoptions as eo
from eigenoptions.discovery import discover
from eigenoptions.discovery.cycle import Snapshot, cycle
from eigenoptions.mdp.mazes import rooms_map
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.options.walks import walk


def run(*args: Any, **settings: Any) -> list[Snapshot]:
    return list(cycle(*args, **settings))


def test_cycle_arrives_at_the_options_of_the_whole_graph(four_rooms: eo.MDP) -> None:
    snapshots = run(replace(four_rooms, goal=None), steps=2000, rounds=8, n_options=8)
    assert [s.steps for s in snapshots] == list(range(2000, 16_001, 2000))
    seen = [s.seen for s in snapshots]
    assert seen == sorted(seen)
    assert seen[-1] == 104
    exact = eo.discover(four_rooms, n_options=8, operator="combinatorial")
    assert np.array_equal(snapshots[-1].options.policy, exact.policy)
    assert not np.array_equal(snapshots[0].options.policy, exact.policy)


def test_cycle_in_a_table_continues_where_it_was(four_rooms: eo.MDP) -> None:
    first, second, third = run(replace(four_rooms, goal=None), steps=300, rounds=3)
    assert first.transitions.obs[0] == 94
    assert second.transitions.obs[0] == first.transitions.next_obs[-1]
    assert third.transitions.obs[0] == second.transitions.next_obs[-1]


def test_cycle_in_a_table_starts_anew_after_an_end() -> None:
    corridor = eo.MDP.from_successors(np.array([[1], [2], [2]]), start=0, goal=2)
    first, second = cycle(corridor, steps=2, rounds=2, rng=0)
    assert first.transitions.terminated.tolist() == [False, True]
    assert second.transitions.obs.tolist() == [0, 1]


def test_cycle_takes_options_from_the_second_round_on(four_rooms: eo.MDP) -> None:
    always, never = (
        run(four_rooms, steps=500, rounds=2, n_options=4, option_chance=p)
        for p in (1.0, 0.0)
    )
    assert np.array_equal(always[0].transitions.obs, never[0].transitions.obs)
    policy = always[0].options.policy
    walked = always[1].transitions
    follows = (policy[:, walked.obs] == walked.action).any(axis=0)
    available = (policy[:, walked.obs] >= 0).any(axis=0)
    assert (
        follows[available].mean() > 0.95
    )  # what is left is the first step of a new episode
    assert not np.array_equal(always[1].transitions.obs, never[1].transitions.obs)


def test_cycle_with_the_same_seed_is_the_same(four_rooms: eo.MDP) -> None:
    a, b = (list(islice(cycle(four_rooms, steps=200, rng=7), 4)) for _ in range(2))
    for one, other in zip(a, b, strict=True):
        assert one.transitions.obs.tobytes() == other.transitions.obs.tobytes()
        assert one.options.policy.tobytes() == other.options.policy.tobytes()


@pytest.mark.parametrize("make", ["id", "function", "object"])
def test_cycle_of_any_environment_of_numbered_states(make: str) -> None:
    name = "eigenoptions/FourRooms-v0"
    env = {"id": name, "function": lambda: gym.make(name), "object": gym.make(name)}[
        make
    ]
    snapshots = run(env, steps=400, rounds=3, n_options=4, max_episode_steps=100)
    assert snapshots[-1].options.n_states == 104
    assert snapshots[-1].seen > 20


def test_cycle_of_a_car_leaves_the_valley_without_a_reward() -> None:
    """Random actions hardly move it; options of what was seen take it out.

    They lead to where more can be seen.
    """
    how = {
        "features": "fourier",
        "order": 3,
        "n_options": 8,
        "steps": 3000,
        "rounds": 3,
        "n_envs": 4,
    }
    with_options, without = (
        run("MountainCar-v0", option_chance=p, **how) for p in (0.05, 0.0)
    )
    assert isinstance(with_options[-1].options, LinearOptionSet)
    assert with_options[-1].seen > 2 * without[-1].seen
    assert max(s.transitions.next_obs[:, 0].max() for s in with_options) > 0.0
    assert max(s.transitions.next_obs[:, 0].max() for s in without) < -0.1


@pytest.mark.parametrize("method", ["eigen", "covering", "bottleneck", "random"])
def test_cycle_has_fewer_options_where_there_are_not_enough(method: str) -> None:
    still = eo.MDP.from_successors([[0, 0], [1, 1]])
    assert run(still, steps=10, rounds=1, method=method)[0].options is None
    small = run(eo.maze("S..."), steps=50, rounds=1, method=method)[0]
    assert small.options is None or 0 < len(small.options) < 16


def test_cycle_sees_more_where_options_are_taken_seldom() -> None:
    mdp = replace(eo.maze(rooms_map(4, 4, size=5)), start=0)
    seen = {
        chance: np.mean(
            [
                run(mdp, steps=1000, rounds=6, option_chance=chance, rng=s)[-1].seen
                for s in range(6)
            ]
        )
        for chance in (0.0, 0.05, None)
    }
    assert seen[None] < seen[0.0] < seen[0.05]


@pytest.mark.parametrize(
    ("env", "settings", "word"),
    [
        ("four-rooms", {"rounds": 0}, "rounds"),
        ("four-rooms", {"n_options": 0}, "n_options"),
        ("four-rooms", {"steps": 0}, "steps"),
        ("four-rooms", {"option_chance": 1.5}, "option_chance"),
        ("four-rooms", {"gamma": 1.5}, "gamma"),
        ("Pendulum-v1", {}, "Discrete"),
        ("Blackjack-v1", {}, "features="),
    ],
)
def test_cycle_bad_arguments_raise(
    env: str, settings: dict[str, Any], word: str
) -> None:
    source = eo.maze(env) if env == "four-rooms" else env
    with pytest.raises(ValueError, match=word):
        run(source, **{"rounds": 1, **settings})


# The cycle of covering eigenoptions


def test_covering_eigenoptions_see_all_states_sooner_than_a_random_walk(
    four_rooms: eo.MDP,
) -> None:
    """Machado et al. (2023), Figure 6; medians of three seeds.

    Without a number, rounds end with the last state.
    """
    needed = []
    alone = []
    for seed in range(3):
        calls: list[tuple[int, int]] = []
        options = discover(
            four_rooms,
            None,
            "covering-eigen",
            rng=seed,
            progress=lambda *done, calls=calls: calls.append(done),
        )
        assert calls[-1] == (104, 104) != calls[-2]
        needed.append(100 * len(options))
        walked = walk(
            replace(four_rooms, goal=None), 100_000, rng=seed, max_episode_steps=100
        )
        alone.append(max(np.unique(walked.next_obs, return_index=True)[1]))
    assert np.median(needed) < np.median(alone)


def test_covering_eigenoption_of_the_first_round_agrees_with_a_slow_twin(
    four_rooms: eo.MDP,
) -> None:
    """One walk, temporal differences one by one, and the largest eigenvalue's vector.

    The vector points away from visits.
    """
    options = discover(four_rooms, 3, "covering-eigen", rng=3)
    batch = walk(replace(four_rooms, goal=None), 100, rng=np.random.default_rng(3))
    psi = np.zeros((104, 104))
    for _ in range(10):
        for s, t in zip(batch.obs, batch.next_obs, strict=True):
            psi[s] += 0.1 * ((np.arange(104) == s) + 0.99 * psi[t] - psi[s])
    e = np.linalg.eigh((psi + psi.T) / 2)[1][:, -1]
    e = -np.sign(e.sum()) * e
    sampled = eo.MDP.from_transitions(batch, 104, 4)
    assert_allclose(
        options.value[:1], eo.solve(sampled, eo.Purpose(e), 0.99).value, atol=1e-8
    )
    seen = np.isin(np.arange(104), np.concatenate([batch.obs, batch.next_obs]))
    assert (options.policy[0][~seen] == -1).all()
    assert options.labels == ("round 1", "round 2", "round 3")
