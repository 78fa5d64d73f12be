"""How often to choose an option: tables without ends, simulated settings."""

from __future__ import annotations

import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.envs import MazeEnv
from eigenoptions.mdp.chains import continue_after_end, find_recurrent_states
from eigenoptions.options import OptionSet, Purpose, tuning
from eigenoptions.options.tuning import (
    Exploration,
    Setting,
    measure_first_visits,
    resolve_exploration,
    tune_exploration,
    walk_for_some_time,
    walk_one_by_one,
    walk_together,
)
from eigenoptions.options.walks import make_tables, visit_states
from eigenoptions.samples.features import Raw
from studies.exploration import measure_map


@pytest.fixture(scope="module")
def rooms() -> eo.MDP:
    return eo.maze("rooms:2x2")


def test_continue_after_end_leads_from_the_goal_to_the_start():
    mdp = eo.maze("S..G")
    endless = continue_after_end(mdp)
    assert endless.successors[3].tolist() == [0] * 4
    np.testing.assert_array_equal(endless.successors[:3], mdp.successors[:3])


def test_continue_after_end_without_a_start_leads_to_few_or_all_other_states():
    mdp = eo.MDP(eo.maze("S......G").transition, goal=7)
    for max_restarts, states in ((None, [0, 1, 2, 3, 4, 5, 6]), (3, [0, 3, 6])):
        endless = continue_after_end(mdp, max_restarts=max_restarts)
        row = endless.transition[[7 * 4]].toarray()[0]
        assert np.flatnonzero(row).tolist() == states
        assert row.sum() == pytest.approx(1.0)


def test_continue_after_end_without_ends_changes_nothing(slippery):
    assert continue_after_end(slippery).fingerprint == slippery.fingerprint


def test_tune_exploration_helps_in_rooms_and_is_deterministic(rooms):
    options = eo.discover(rooms, 8)
    first, second = (tune_exploration(rooms, options) for _ in range(2))
    assert first == second
    assert first.option_chance > 0
    assert first.ratio < 0.9


def test_walks_of_both_simulations_agree_with_the_exact_diffusion_time():
    """A walk from a random state visits the others after their hitting times.

    Their mean is the diffusion time.
    """
    mdp = eo.MDP(eo.maze("four-rooms").transition)
    options = eo.discover(mdp, 8)
    everywhere = np.ones(104, dtype=bool)
    settings = [Setting(0.0, 0.0), Setting(0.1, 0.1)]
    together = walk_together(
        mdp, options.policy, settings, everywhere, half=50, max_steps=10**9, seed=0
    )
    for setting, times in zip(settings, together, strict=True):
        exact = eo.diffusion_time(mdp, options, **setting._asdict())
        tables = make_tables(mdp, options.policy, *setting)
        one_by_one = [
            measure_first_visits(tables, everywhere, 10**9, [0, i])[0]
            for i in range(100)
        ]
        for walks in (times, one_by_one):
            assert abs(np.mean(walks) - exact) < 4 * np.std(walks) / 10


def test_tuning_takes_no_more_steps_than_it_may(monkeypatch):
    mdp = eo.maze("perfect:12x12")
    taken = []

    def count_steps(tables, start, seed, touched, max_steps):
        total, steps = visit_states(tables, start, seed, touched, max_steps)
        taken.append(steps)
        return total, steps

    monkeypatch.setattr(tuning, "visit_states", count_steps)
    options = eo.discover(mdp, 16)
    found = tune_exploration(mdp, options, max_steps=200_000)
    # The second half of the walks is for primitive actions and for the best only.
    assert len(taken) == 4 + 7 * 2 + 2
    assert sum(taken) <= 200_000
    assert found == tune_exploration(mdp, options, max_steps=200_000)

    # Walks this short do not tell.
    assert tune_exploration(mdp, options, max_steps=2000).option_chance == 0


def test_short_walks_are_as_many_as_the_steps_allow():
    mdp = eo.maze("perfect:12x12")
    options = eo.discover(mdp, 2)
    settings = [Setting(0.0, 0.0), Setting(0.1, 0.0), Setting(0.3, 0.0)]
    targets = np.ones(mdp.n_states, dtype=np.bool_)
    moves, uniform = make_tables(mdp, options.policy)
    tables = moves, uniform._replace(option_chance=0.0, stop_chance=0.0)

    # The first two walks show how long a walk is. There are five halves of walks: one
    # for each setting, and the second ones of primitive actions and of the best.
    lengths = [
        measure_first_visits(tables, targets, 10**6, [3, number])[1]
        for number in range(2)
    ]
    max_steps = 6 * 5 * max(lengths)
    times = walk_one_by_one(
        mdp, options.policy, settings, targets, 50, max_steps, seed=3
    )
    assert times.shape == (3, 12)

    more = walk_one_by_one(mdp, options.policy, settings, targets, 4, max_steps, seed=3)
    assert more.shape == (3, 8)


def test_the_best_setting_is_found_by_the_first_half_of_its_walks():
    """The second half then says, without a bias, how good it is."""
    times = np.array([[9.0, 9, 9, 9], [3, 3, 0, 0], [2, 2, 9, 9]])
    assert tuning._find_best(times) == 2


def test_find_recurrent_states_leaves_out_what_cannot_be_visited_again():
    one_way = eo.MDP.from_successors([[1, 1], [2, 1], [1, 2], [3, 0]])
    assert find_recurrent_states(one_way).tolist() == [False, True, True, False]


def test_tune_exploration_refuses_useless_options(rooms):
    """Options that push against a wall seem to help by accident only.

    Those that start nowhere never do.
    """
    nowhere = OptionSet(rooms, np.full((2, rooms.n_states), -1))
    assert tune_exploration(rooms, nowhere) == Exploration(0.0, 0.0, 1.0)
    blocked = rooms.successors == np.arange(rooms.n_states)[:, None]
    walls = OptionSet(rooms, np.where(blocked, np.arange(4), -1).max(axis=1)[None])
    found = [tune_exploration(rooms, walls, rng=seed) for seed in range(10)]
    assert sum(exploration.option_chance > 0 for exploration in found) <= 2


def test_tune_exploration_where_nothing_can_be_explored():
    stuck = eo.MDP.from_successors([[0, 0], [1, 0], [2, 1]])
    for mdp in (stuck, eo.MDP.from_successors([[0], [1]])):
        options = OptionSet(mdp, np.zeros((1, mdp.n_states), dtype=int))
        assert tune_exploration(mdp, options) == Exploration(0.0, 0.0, 1.0)


def test_resolve_exploration_keeps_what_is_given_and_needs_no_table(rooms):
    linear = eo.LinearOptionSet([Purpose([1.0])], Raw(), 2)
    assert resolve_exploration(linear, "auto", 0.0).option_chance == 0.01
    for chance in (0.3, None):
        assert resolve_exploration(linear, chance, 0.1).option_chance == chance
    with pytest.raises(ValueError, match="option_chance"):
        resolve_exploration(linear, "best", 0.0)


def test_the_reproduction_measures_what_it_compares():
    rows = measure_map("open 12x12", n_walks=3)
    assert [row["options"] for row in rows] == [8, 16, 32, 64]
    assert all(0 < row["ratio"] < 1 and 0 < row["exact"] < 1 for row in rows)


def test_options_of_an_environment_do_not_stop_at_the_end_that_they_should_leave():
    """Negative parts of random-walk eigenvectors have no local maximum."""
    mdp = eo.maze("perfect:14x14")
    paper = eo.discover(mdp, 8)
    agent = eo.discover(MazeEnv(mdp), 8)
    assert paper.provenance["operator"] == "normalized"
    assert agent.provenance["operator"] == "random-walk"
    np.testing.assert_array_equal(
        eo.discover(MazeEnv(mdp), 8, operator="normalized").policy, paper.policy
    )
    W = eo.graph(mdp)
    for option in agent:
        f = np.asarray(option.purpose.potential)
        neighbours = np.where(W.toarray() > 0, f, -np.inf).max(axis=1)
        assert (f[neighbours < f - 1e-12] > 0).all()


def test_first_visits_of_walks_of_one_length_count_by_weight():
    mdp = eo.MDP(eo.maze("four-rooms").transition)
    options = eo.discover(mdp, 8)
    settings = [Setting(0.1, 0.1)]
    tables = make_tables(mdp, options.policy, 0.1, 0.1)
    targets = np.arange(104) >= 10
    found = walk_for_some_time(
        mdp, options.policy, settings, targets.astype(float), 4, 300, seed=5
    )
    for number in range(8):
        same_walk = measure_first_visits(tables, targets, 300, [5, number])[0]
        assert found[0, number] == pytest.approx(same_walk, abs=1e-5)

    # Only one state counts: its first visit, or the penalty.
    weights = np.where(targets, 1e-9, 0.0)
    weights[60] = 1.0
    found = walk_for_some_time(mdp, options.policy, settings, weights, 4, 300, seed=5)
    is_step = np.abs(found - np.round(found)) < 1e-3
    assert is_step.all()
    assert set(found[found > 301].round()) <= {900.0}


def test_states_that_a_log_hardly_knows_count_for_more():
    """Options that lead to one end only help where all but this end is known."""
    corridor = eo.MDP(eo.maze("." * 40).transition)
    policy = np.full((1, 40), 1)
    policy[0, 39] = eo.TERMINATE
    options = OptionSet(corridor, policy)
    ends = np.arange(40) >= 35
    ratios = []
    for visits in (np.where(ends, 1, 1_000), np.where(ends, 1_000, 1)):
        tuned = tune_exploration(
            corridor, options, [Setting(0.1, 0.1)], horizon=300, visits=visits
        )
        ratios.append(tuned.ratio)
    known_start, known_end = ratios
    assert known_start < 0.8
    assert known_end == 1.0
