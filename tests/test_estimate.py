"""Diffusion times by sampling: they agree with the exact ones, and the intervals hold what they promise."""

from __future__ import annotations

import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.evaluation import (
    Estimate,
    diffusion_estimate,
    diffusion_time,
    hitting_times,
)
from tests.test_evaluation import slip, toward


def test_monte_carlo_agrees(four_rooms):
    """A walk that stops at its goal, simulated plainly, with a fixed seed."""
    options = eo.discover(four_rooms, n_options=8)
    generator = np.random.default_rng(3)
    nxt, policy = four_rooms.successors, options.policy
    start, goal, samples = 93, 4, []
    for _ in range(400):
        s, steps = start, 0
        while s != goal:
            menu = [-1, -1, -1, -1, *np.flatnonzero(policy[:, s] >= 0)]
            i = generator.integers(len(menu))
            o = menu[i]
            s = nxt[s, i if o < 0 else policy[o, s]]
            steps += 1
            while o >= 0 and s != goal and policy[o, s] >= 0:
                s = nxt[s, policy[o, s]]
                steps += 1
        samples.append(steps)
    truth = hitting_times(four_rooms, options)[start, goal]
    assert abs(np.mean(samples) - truth) < 3 * np.std(samples) / np.sqrt(len(samples))


@pytest.mark.parametrize("chance", [0.0, 0.2])
def test_intervals_hold_what_they_promise(i_maze, chance):
    mdp = slip(i_maze, chance) if chance else i_maze
    options = eo.discover(mdp, n_options=12)
    truth = diffusion_time(mdp, options)
    estimates = [diffusion_estimate(mdp, options, walks=40, confidence=0.9, rng=seed) for seed in range(200)]
    held = np.mean([e.low <= truth <= e.high for e in estimates])
    assert 0.84 <= held <= 0.96
    assert np.mean([e.mean for e in estimates]) == pytest.approx(truth, rel=0.02)


def test_estimate_is_reproducible(four_rooms):
    one, two = (diffusion_estimate(four_rooms, walks=5, rng=7) for _ in range(2))
    assert one == two
    assert one != diffusion_estimate(four_rooms, walks=5, rng=8)
    assert isinstance(one, Estimate)
    assert one.low < one.mean < one.high


def test_estimate_is_refused_where_it_would_be_a_lie():
    mdp = eo.maze("." * 40)
    with pytest.raises(ValueError, match=r"walk 1 of 100 had not touched \d+ states .* there is no interval"):
        diffusion_estimate(mdp, toward(mdp, 0), max_steps=100_000)
