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
from eigenoptions.discovery.methods.covering_eigen import rod_cycle
from eigenoptions.discovery.online import Snapshot, cycle
from eigenoptions.mdp import Transitions
from eigenoptions.mdp.maps import rooms_map
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.options.walks import walk
from eigenoptions.spectra.representations import (
    learned_default,
)
from tests.test_mdp import refused


def rounds(*args: Any, **settings: Any) -> list[Snapshot]:
    return list(cycle(*args, **settings))


def test_the_cycle_arrives_at_the_options_of_the_whole_graph(four_rooms: eo.MDP) -> None:
    unbounded = eo.MDP(four_rooms.transition, coords=four_rooms.coords, start=94)
    found = rounds(unbounded, steps=2000, rounds=8, n_options=8)
    assert [s.round for s in found] == list(range(1, 9))
    assert [s.steps for s in found] == list(range(2000, 16_001, 2000))
    seen, rows = [s.seen for s in found], [s.differences for s in found]
    assert seen == sorted(seen)
    assert rows == sorted(rows)
    assert (seen[-1], rows[-1]) == (104, 336)
    exact = eo.discover(four_rooms, n_options=8, operator="combinatorial")
    assert np.array_equal(found[-1].options.policy, exact.policy)
    assert not np.array_equal(found[0].options.policy, exact.policy)
    assert isinstance(found[0].transitions, Transitions)


def test_in_a_table_the_walk_goes_on_where_it_was(four_rooms: eo.MDP) -> None:
    unbounded = eo.MDP(four_rooms.transition, start=94)
    first, second, third = rounds(unbounded, steps=300, rounds=3)
    assert first.transitions.obs[0] == 94
    assert second.transitions.obs[0] == first.transitions.next_obs[-1]
    assert third.transitions.obs[0] == second.transitions.next_obs[-1]


def test_options_are_used_from_the_second_round_on(four_rooms: eo.MDP) -> None:
    always = rounds(four_rooms, steps=500, rounds=2, n_options=4, option_chance=1.0)
    never = rounds(four_rooms, steps=500, rounds=2, n_options=4, option_chance=0.0)
    assert np.array_equal(always[0].transitions.obs, never[0].transitions.obs)
    policy, walked = always[0].options.policy, always[1].transitions
    follows = (policy[:, walked.obs] == walked.action).any(axis=0)
    may = (policy[:, walked.obs] >= 0).any(axis=0)
    assert follows[may].mean() > 0.95  # what is left is the first step of a new episode
    assert not np.array_equal(always[1].transitions.obs, never[1].transitions.obs)


def test_same_seed_same_bytes_and_an_endless_generator(four_rooms: eo.MDP) -> None:
    a, b = (list(islice(cycle(four_rooms, steps=200, rng=7), 4)) for _ in range(2))
    for one, other in zip(a, b, strict=True):
        assert one.transitions.obs.tobytes() == other.transitions.obs.tobytes()
        assert one.options.policy.tobytes() == other.options.policy.tobytes()
    assert str(a[0]) == f"Snapshot(round 1: 200 steps, {a[0].seen} seen, {a[0].differences} differences)"
    with pytest.raises(AttributeError):
        a[0].seen = 3  # type: ignore[misc]


@pytest.mark.parametrize("make", ["id", "function", "object"])
def test_any_environment_of_numbered_states(make: str) -> None:
    name = "eigenoptions/FourRooms-v0"
    env = {"id": name, "function": lambda: gym.make(name), "object": gym.make(name)}[make]
    found = rounds(env, steps=400, rounds=3, n_options=4, max_episode_steps=100)
    assert isinstance(found[-1].options, eo.OptionSet)
    assert found[-1].options.n_states == 104
    assert found[-1].seen > 20
    if make == "id":
        assert rounds(env, steps=400, rounds=1, n_envs=2)[0].steps == 400


def test_without_a_reward_the_car_leaves_the_valley() -> None:
    """Random actions hardly move it; options of what was seen take it out, and to where more can be seen."""
    how = {"features": "fourier", "order": 3, "n_options": 8, "steps": 3000, "rounds": 4, "n_envs": 4}
    with_options, without = (
        rounds("MountainCar-v0", **how),
        rounds("MountainCar-v0", option_chance=0.0, **how),
    )
    assert isinstance(with_options[-1].options, LinearOptionSet)
    assert with_options[-1].seen > 2 * without[-1].seen
    assert max(s.transitions.next_obs[:, 0].max() for s in with_options) > 0.0
    assert max(s.transitions.next_obs[:, 0].max() for s in without) < -0.1


def test_an_environment_where_nothing_moves_yet() -> None:
    still = eo.MDP(np.stack([np.eye(2), np.eye(2)], axis=1))
    (only,) = rounds(still, steps=10, rounds=1)
    assert only.options is None
    assert only.differences == 0


def test_options_find_more_where_they_are_chosen_seldom() -> None:
    maze = eo.maze(rooms_map(4, 4, size=5))
    mdp = eo.MDP(maze.transition, start=0)
    seen = {
        chance: np.mean(
            [rounds(mdp, steps=1000, rounds=6, option_chance=chance, rng=s)[-1].seen for s in range(6)]
        )
        for chance in (0.0, 0.05, None)
    }
    assert seen[0.05] > seen[0.0]
    assert seen[None] < seen[0.0], "a choice among many options keeps the agent where it has been"


def test_bad_input_is_refused(four_rooms: eo.MDP) -> None:
    for call, complaint in (
        (lambda: rounds(four_rooms, rounds=0), "rounds must be a whole number from 1, got 0"),
        (lambda: rounds(four_rooms, rounds=1, n_options=0), "n_options must be a whole number from 1, got 0"),
        (lambda: rounds(four_rooms, rounds=1, steps=0), "steps must be a whole number from 1, got 0"),
        (lambda: rounds(four_rooms, rounds=1, option_chance=1.5), r"option_chance must be in \[0, 1\]"),
        (lambda: rounds("Pendulum-v1", rounds=1), "only Discrete"),
        (lambda: rounds("Blackjack-v1", rounds=1), "pass features="),
    ):
        with pytest.raises(ValueError, match=complaint):
            call()


def test_the_cycle_adds_one_option_per_round_and_sees_more_than_a_random_walk(four_rooms):
    """Machado et al. (2023), Figure 6: covering eigenoptions see all states sooner; medians of ten seeds."""
    needed, alone = [], []
    for seed in range(10):
        for found in rod_cycle(four_rooms, rng=seed):
            if found.seen.all():
                break
        needed.append(found.steps)
        assert len(found.options) == found.steps // 100
        walked = walk(replace(four_rooms, goal=None), 100_000, rng=seed, max_episode_steps=100)
        alone.append(max(np.unique(walked.next_obs, return_index=True)[1]))
    assert np.median(needed) < np.median(alone)


def test_a_round_of_the_cycle_by_hand(four_rooms):
    """One walk, temporal differences one by one, and the eigenvector of the largest eigenvalue, away from visits."""
    first = next(rod_cycle(four_rooms, rng=3))
    batch = walk(replace(four_rooms, goal=None), 100, rng=np.random.default_rng(3))
    np.testing.assert_array_equal(first.entered, batch.next_obs)
    psi = np.zeros((104, 104))
    for _ in range(10):
        for s, t in zip(batch.obs, batch.next_obs, strict=True):
            psi[s] += 0.1 * ((np.arange(104) == s) + 0.99 * psi[t] - psi[s])
    e = np.linalg.eigh((psi + psi.T) / 2)[1][:, -1]
    e = -np.sign(e.sum()) * e
    nxt = np.tile(np.arange(104)[:, None], (1, 4))
    nxt[batch.obs, batch.action] = batch.next_obs
    known = eo.MDP(np.eye(104)[nxt])
    assert_allclose(first.options.value, eo.solve(known, eo.Purpose(e), 0.99).value, atol=1e-8)


def test_a_round_of_the_reward_aware_cycle_by_hand():
    """Temporal differences one by one, the first eigenvector by inverse iteration, and its logarithm as purpose."""
    corridor = replace(eo.maze("S...."), goal=None, reward=np.array([-1.0, -1.0, -2.0, -1.0, -1.0]))
    first = next(rod_cycle(corridor, representation="default", td=(0.2, 2), round_steps=30, rng=1))
    batch = walk(corridor, 30, rng=np.random.default_rng(1))
    Z = np.eye(5)
    pairs = list(zip(batch.obs, batch.next_obs, strict=True))
    for s, t in pairs[::-1] + pairs:
        weight = np.exp(corridor.reward[s] / 1.3)
        Z[s] += 0.2 * (weight * ((np.arange(5) == s) + Z[t]) - Z[s])
    assert_allclose(
        learned_default(batch.obs, batch.next_obs, corridor.reward, alpha=0.2, sweeps=2), Z, rtol=1e-12
    )
    left = np.unique(batch.obs)
    e = np.abs(np.linalg.eigh((Z + Z.T)[np.ix_(left, left)])[1][:, -1])
    potential = np.zeros(5)
    potential[left] = np.log(e)
    purpose = eo.Purpose(potential / np.linalg.norm(potential))
    nxt = np.tile(np.arange(5)[:, None], (1, 4))
    nxt[batch.obs, batch.action] = batch.next_obs
    expected = eo.solve(eo.MDP(np.eye(5)[nxt]), purpose, 0.99)
    assert_allclose(first.options.value, expected.value, atol=1e-9)
    kept = [found.options.labels for found in islice(rod_cycle(corridor, keep=2, round_steps=10), 3)][-1]
    assert kept == ("round 2", "round 3")


def test_the_reward_aware_cycle_needs_rewards_per_state(four_rooms):
    refused(
        ValueError,
        lambda: next(rod_cycle(four_rooms, representation="default")),
        "one negative number per state",
    )
    refused(ValueError, lambda: next(rod_cycle(four_rooms, representation="laplacian")), "successor, default")
    refused(ValueError, lambda: next(rod_cycle(four_rooms, keep=0)), "keep")
    refused(ValueError, lambda: learned_default([0], [9], [-1.0, -1.0]), "0..1")


def test_options_of_the_cycle_stay_within_what_was_seen(four_rooms):
    first = next(rod_cycle(four_rooms, rng=3))
    row = first.options.policy[0]
    assert (row[~first.seen] == -1).all()
    found = discover(four_rooms, 3, "covering-eigen", rng=3)
    np.testing.assert_array_equal(found.policy[0], row)
    assert found.labels == ("round 1", "round 2", "round 3")
    assert np.isfinite(found.mean_length).all()
    whole = discover(eo.maze("S...."), method="covering-eigen")
    assert len(whole) >= 1
