"""The paper's own numbers, where the reproduction takes them from: settings, protocol, limits of the claims."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.atari import protocol
from reproduction import atari, limits
from reproduction.claims import rules
from reproduction.paper import (
    every_goal,
    figure6,
    figure7,
    first_options,
    random_options,
    readings,
    tasks,
)

EPISODES = {"open-room": 250, "i-maze": 250, "four-rooms": 500}
COUNTS = [0, 2, 4, 8, 16, 32, 64, 128, 256]


def paper(module):
    return module.SETTINGS["paper"]


def test_learning_is_that_of_section_4_3():
    """100 trials; 100 steps; 250 episodes, in four rooms 500; up to all options; alpha 0.1, gamma 0.9."""
    for module in (figure7, readings):
        chosen = paper(module)
        assert (chosen["runs"], chosen["max_steps"], chosen["episodes"]) == (100, 100, EPISODES)
        assert chosen["options"] == COUNTS
    assert figure7.BEST == 64
    default = eo.q_learning(eo.maze("S..G"), runs=2, episodes=30, rng=0)
    written = eo.q_learning(eo.maze("S..G"), runs=2, episodes=30, rng=0, alpha=0.1, gamma=0.9, epsilon=0.01)
    np.testing.assert_array_equal(default.q, written.q)


def test_other_tasks_and_random_options_are_those_of_the_appendix():
    """64 options, 100 trials; 24 sequences of random options, 500 episodes; other tasks are learned for 250."""
    chosen = paper(random_options)
    assert [chosen[key] for key in ("options", "runs", "sets", "episodes", "max_steps")] == [
        64,
        100,
        24,
        500,
        100,
    ]
    chosen = paper(tasks)
    assert [chosen[key] for key in ("options", "runs", "episodes", "max_steps")] == [64, 100, 250, 100]
    assert paper(every_goal)["many"] == 64


@pytest.mark.parametrize(
    ("experiment", "shown"), [*zip(first_options.EXPERIMENTS, (2, 4, 4, 4), strict=True)]
)
def test_figures_of_eigenoptions_show_as_many_as_the_paper(experiment, shown):
    given = experiment.settings["paper"]
    assert (given["shown"], given["gamma"]) == (shown, 0.9)


def test_figure_6_adds_every_option():
    assert (paper(figure6)["n"], paper(figure6)["gamma"]) == (None, 0.9)


def test_experience_of_games_is_that_of_appendix_e():
    """25,000 new transitions from six start states, and a matrix of 25,000 rows; the memory has 128 bytes."""
    assert protocol.ROWS == 25_000
    assert inspect.signature(protocol.collect).parameters["n"].default == 25_000
    assert inspect.signature(protocol.directions).parameters["sample"].default == 25_000
    assert (protocol.MAX_EPISODE_FRAMES, protocol.MAX_ROUNDS, protocol.MAX_IDLE_ROUNDS) == (10_000, 100, 3)
    assert eo.atari.Ram()(np.zeros((1, 128), dtype=np.uint8)).shape == (1, 1024)
    for size in ("paper", "full"):
        for game in ("Freeway", "MontezumaRevenge", "MsPacman"):
            chosen = atari.settings(game, size)
            assert (chosen["starts"], chosen["transitions"], chosen["longest"]) == (6, 25_000, 10_000)
    assert atari.settings("Freeway", "full")["seeds"] == [1, 2, 3]


def test_limits_of_claims_are_those_written_down_before_the_experiments():
    """A claim is judged by these; `claims.rules` states them in the report."""
    written = {
        "a few options": "at most 8",
        # Changed on 2026-11-16, see claims.rules; it was 2 and 4.
        "the first options": "1 to 3",
        "greatly improved": "at most 0.5 of the diffusion time without options",
        "several orders of magnitude": "at least 1,000 times",
        "almost fully connected": "at least 90% of all options",
        "in almost all settings": "at least 90% of them",
        "fairly robust": "at least 80% of the best mean return, with more than a few options",
        "a major impact": "a factor of at least 2",
        "often defined in the whole state space": "the median option starts in 90% of the states",
        "near a doorway": "at most 1 step from it",
        # Written down on 2026-11-16, when results of the claims above were known.
        "no effect": "a difference of the mean return below 0.05, with its whole interval",
        "very unlikely": "in at most 5% of the cases",
        "a dense reward": "not zero for at least 90% of the moves that change the state",
        "implies": "a rank correlation of at least 0.8",
    }
    assert written == rules()["words"]
    assert (limits.CONFIDENCE, limits.LAST) == (0.95, 0.1)


def learning_results(counts):
    """Results of figure 7 in which the return is the number of options over 1,000."""
    runs = [
        {"domain": "four-rooms", "options": n, "run": run, "mean_return": n / 1000}
        for n in counts
        for run in (0, 1)
    ]
    curves = [
        {"domain": "four-rooms", "options": n, "episode": episode, "mean": n / 1000, "low": 0.0, "high": 1.0}
        for n in counts
        for episode in (5, 10)
    ]
    return {"runs": runs, "curves": curves, "bases": []}


def test_figure_7_shows_primitive_actions_few_options_the_best_number_and_all():
    counts = [0, 2, 4, 8, 16, 32, 64, 128, 208]
    (above,) = figure7.figure(learning_results(counts)).axes
    (below,) = figure7.closer(learning_results(counts)).axes
    height = {
        line.get_label(): line.get_ydata()[0] for line in above.lines if not line.get_label().startswith("_")
    }
    shown = {"primitive actions": 0, "2 options": 2, "4 options": 4, "8 options": 8, "64 options": 64}
    assert height == {name: n / 1000 for name, n in {**shown, "208 options": 208}.items()}
    means = next(line for line in below.lines if len(line.get_ydata()) == len(counts))
    np.testing.assert_allclose(means.get_ydata(), np.array(counts) / 1000)
    assert [label.get_text() for label in below.get_xticklabels()] == [str(n) for n in counts]
