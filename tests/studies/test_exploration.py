"""Options found on the way, in rounds: of features, and those of the reproduction."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.samples.linear import LinearOptionSet
from eigenoptions.samples.walking import walk
from studies.arena.rounds import (
    find_covering_purpose,
    walk_in_rounds,
    walk_with_covering_options,
)


def walk_rounds(mdp: eo.MDP, n_rounds: int, **settings: Any) -> list[eo.Transitions]:
    rounds = walk_in_rounds(
        mdp, "eigen", **{"n_options": 4, "round_steps": 300, "rng": 0} | settings
    )
    return list(islice(rounds, n_rounds))


def test_rounds_continue_where_they_were(four_rooms: eo.MDP) -> None:
    first, second, third = walk_rounds(replace(four_rooms, goal=None), 3)
    assert first.obs[0] == 94
    assert second.obs[0] == first.next_obs[-1]
    assert third.obs[0] == second.next_obs[-1]


def test_rounds_start_anew_after_an_end() -> None:
    corridor = eo.MDP.from_successors(np.array([[1], [2], [2]]), start=0, goal=2)
    first, second = walk_rounds(corridor, 2, round_steps=2)
    assert first.terminated.tolist() == [False, True]
    assert second.obs.tolist() == [0, 1]


def test_rounds_take_options_from_the_second_on(four_rooms: eo.MDP) -> None:
    always = walk_rounds(four_rooms, 2, option_chance=1.0)
    never = walk_rounds(four_rooms, 2, option_chance=0.0)
    assert np.array_equal(always[0].obs, never[0].obs)
    assert not np.array_equal(always[1].obs, never[1].obs)


def test_rounds_with_the_same_seed_are_the_same(four_rooms: eo.MDP) -> None:
    for one, other in zip(
        walk_rounds(four_rooms, 3), walk_rounds(four_rooms, 3), strict=True
    ):
        assert one.obs.tobytes() == other.obs.tobytes()


def test_car_leaves_the_valley_without_a_reward() -> None:
    """Random actions hardly move it; options of what was seen take it out.

    They lead to where more can be seen.
    """
    alone = eo.collect("MountainCar-v0", 9000, n_envs=4, rng=0)
    assert alone.next_obs[:, 0].max() < -0.1

    space = gym.make("MountainCar-v0").observation_space
    rounds = [eo.collect("MountainCar-v0", 3000, n_envs=4, rng=0)]
    for number in (1, 2):
        seen = eo.Transitions.of(rounds)
        options = eo.discover(
            seen, 8, features=eo.Fitted("fourier", order=3), space=space, n_actions=3
        )
        assert isinstance(options, LinearOptionSet)
        steps = eo.collect(
            "MountainCar-v0",
            3000,
            policy=options,
            n_envs=4,
            option_chance=0.05,
            rng=number,
        )
        rounds.append(steps)
    assert max(steps.next_obs[:, 0].max() for steps in rounds) > 0.0


def test_covering_eigenoptions_see_all_states_sooner_than_a_random_walk(
    four_rooms: eo.MDP,
) -> None:
    """Machado et al. (2023), Figure 6; medians of three seeds."""
    free = replace(four_rooms, goal=None)
    needed = []
    alone = []
    for seed in range(3):
        seen: set[int] = set()
        n_rounds = 0
        for batch in walk_with_covering_options(free, rng=seed):
            seen.update(batch.obs.tolist(), batch.next_obs.tolist())
            n_rounds += 1
            if len(seen) == 104:
                break
        needed.append(100 * n_rounds)
        walked = walk(free, 100_000, rng=seed, max_episode_steps=100)
        alone.append(max(np.unique(walked.next_obs, return_index=True)[1]))
    assert np.median(needed) < np.median(alone)


def test_covering_purpose_agrees_with_a_slow_twin(four_rooms: eo.MDP) -> None:
    """Temporal differences one by one, and the largest eigenvalue's vector.

    The vector points away from visits.
    """
    batch = walk(replace(four_rooms, goal=None), 100, rng=3)
    psi = np.zeros((104, 104))
    for _ in range(10):
        for s, t in zip(batch.obs, batch.next_obs, strict=True):
            psi[s] += 0.1 * ((np.arange(104) == s) + 0.99 * psi[t] - psi[s])
    e = np.linalg.eigh((psi + psi.T) / 2)[1][:, -1]
    e = -np.sign(e.sum()) * e
    purpose = find_covering_purpose(psi, 1)
    assert purpose.label == "round 1"
    assert purpose.potential == pytest.approx(e, abs=1e-8)
