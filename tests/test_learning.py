"""Learning with options: closed forms, invariants, the slow twin, bad input."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eigenoptions as eo
from eigenoptions.learning import (
    UPDATES,
    LearningRecord,
    _make_seed_sequence,
    q_learning,
)
from eigenoptions.options.tuning import tune_exploration
from tests import reference
from tests.tables import make_options, make_slippery

TWO_ROOMS = "S..#...\n...#...\n.......\n...#..G"
TABLES = ("returns", "learning_returns", "steps", "evaluation_steps", "q")
option_values = pytest.mark.parametrize("update", UPDATES[1:])
every_update = pytest.mark.parametrize("update", UPDATES)


def test_the_defaults_are_the_settings_of_the_paper():
    """Section 4.3, in four rooms. The paper does not name an epsilon."""
    parameters = inspect.signature(q_learning).parameters
    settings_of_paper = {
        "runs": 100,
        "episodes": 500,
        "max_steps": 100,
        "update": "action",
        "alpha": 0.1,
        "gamma": 0.9,
    }
    for name, value in settings_of_paper.items():
        assert parameters[name].default == value


def make_task(seed):
    """A small random MDP with random options, which need not ever terminate."""
    rng = np.random.default_rng(seed)
    S = int(rng.integers(3, 12))
    A = int(rng.integers(1, 6))
    n = int(rng.integers(0, 7))

    # Half of the actions are deterministic, and action 0 leads through all states.
    P = rng.random((S, A, S)) ** 4
    deterministic = rng.random((S, A)) < 0.5
    P[deterministic] = np.eye(S)[rng.integers(S, size=deterministic.sum())]
    P[:, 0] = np.roll(np.eye(S), 1, axis=1)
    P /= P.sum(axis=2, keepdims=True)

    options = make_options(rng.integers(-1, A, size=(n, S)), A)
    return eo.MDP(P, start=0, goal=S - 1), options


def stack_policies(mdp, options):
    if options is None:
        return np.empty((0, mdp.n_states), dtype=int)
    return options.policy


def check_proportion(outcomes, p):
    """The mean of outcomes 0 and 1 is p, up to four standard errors."""
    assert abs(outcomes.mean() - p) < 4 * np.sqrt(p * (1 - p) / outcomes.size)


def is_same(first, second):
    return all(
        np.array_equal(getattr(first, name), getattr(second, name)) for name in TABLES
    )


# Closed forms


@every_update
@pytest.mark.parametrize(("n_options", "stop_chance"), [(0, 0.0), (6, 0.0), (6, 0.3)])
def test_values_of_actions_are_gamma_to_the_distance(update, n_options, stop_chance):
    mdp = eo.maze(TWO_ROOMS)
    options = eo.discover(mdp, n_options=n_options) if n_options else None
    record = q_learning(
        mdp,
        options,
        update=update,
        runs=2,
        episodes=3000,
        alpha=1.0,
        gamma=0.8,
        stop_chance=stop_chance,
    )

    exact = 0.8 ** reference.distances(mdp, mdp.goal)[mdp.successors]
    exact[mdp.goal] = 0.0
    for q in record.q[:, :, : mdp.n_actions]:
        np.testing.assert_allclose(q, exact, rtol=1e-12, atol=0)


@option_values
@pytest.mark.parametrize("stop_chance", [0.0, 0.3])
def test_values_of_options_are_those_of_running_to_the_end(update, stop_chance):
    """An option of k steps is worth gamma^k times the state where it ends.

    It also ends where it meets the goal on its way.
    """
    mdp = eo.maze(TWO_ROOMS)
    options = eo.discover(mdp, n_options=8)
    record = q_learning(
        mdp,
        options,
        update=update,
        runs=1,
        episodes=6000,
        alpha=1.0,
        stop_chance=stop_chance,
    )
    distances = reference.distances(mdp, mdp.goal)
    for o, policy in enumerate(options.policy):
        for s in range(mdp.n_states):
            k = 0
            end = s
            while policy[end] >= 0 and end != mdp.goal:
                k += 1
                end = mdp.successors[end, policy[end]]

            exact = 0.0 if k == 0 else 0.9 ** (k + distances[end] - 1)
            value = record.q[0, s, mdp.n_actions + o]
            assert value == pytest.approx(exact, rel=1e-12), (o, s)


@option_values
@pytest.mark.parametrize("max_steps", [3, 100])
def test_values_are_exact_where_episodes_cut_options(update, max_steps):
    mdp = eo.maze("......SG")
    right = [1, 1, 1, 1, 1, 1, 1, -1]
    left = [-1, -1, -1, -1, -1, 3, 3, 3]
    options = make_options(np.array([right, left]), 4)
    record = q_learning(
        mdp,
        options,
        update=update,
        runs=1,
        episodes=20_000,
        max_steps=max_steps,
        alpha=0.2,
    )
    exact = reference.choice_values(mdp, options.policy, 0.9)
    np.testing.assert_allclose(record.q[0, 5:7], exact[5:7], rtol=1e-9)


@every_update
def test_small_step_sizes_reach_the_exact_values_of_a_slippery_maze(update):
    mdp = make_slippery(eo.maze("S..\n.#.\n..G"))
    options = eo.discover(mdp, n_options=4)
    record = q_learning(
        mdp, options, update=update, runs=8, episodes=80_000, alpha=0.01
    )
    exact = reference.choice_values(mdp, options.policy, 0.9)[:, : record.q.shape[2]]
    np.testing.assert_allclose(record.q.mean(axis=0), exact, atol=0.02)


@every_update
@pytest.mark.parametrize("change", [lambda mdp: mdp, make_slippery])
@pytest.mark.parametrize(
    ("n_options", "option_chance", "stop_chance"),
    [(0, None, 0), (6, None, 0), (6, 0.3, 0), (6, None, 0.4)],
)
def test_behaviour_reaches_the_goal_as_often_as_its_markov_chain(
    update, change, n_options, option_chance, stop_chance
):
    mdp = change(eo.maze(TWO_ROOMS))
    options = eo.discover(mdp, n_options=n_options) if n_options else None
    policies = stack_policies(mdp, options)
    p = reference.arrival_probability(mdp, policies, 30, option_chance, stop_chance)
    assert 0.01 < p < 0.99

    record = q_learning(
        mdp,
        options,
        runs=1,
        episodes=40_000,
        max_steps=30,
        update=update,
        option_chance=option_chance,
        stop_chance=stop_chance,
    )
    check_proportion(record.learning_returns, p)


def test_evaluation_breaks_ties_and_explores_uniformly():
    """With epsilon 1, or while all values are 0, the evaluation is a uniform walk."""
    mdp = eo.maze(TWO_ROOMS)
    p = reference.arrival_probability(mdp, stack_policies(mdp, None), 30)
    blind = q_learning(mdp, runs=1, episodes=40_000, max_steps=30, epsilon=1.0)
    check_proportion(blind.returns, p)

    fresh = q_learning(
        mdp, runs=20_000, episodes=1, max_steps=30, epsilon=0.0, alpha=1e-300
    )
    learned_nothing = fresh.learning_returns[:, 0] == 0
    check_proportion(fresh.returns[learned_nothing], p)


def test_evaluation_explores_with_probability_epsilon():
    """A learned corridor of 5 moves takes 5 steps unless one of them goes wrong.

    A random action is one of four, and three of them idle or go back.
    """
    record = q_learning(eo.maze("S....G"), runs=1, episodes=50_000, epsilon=0.1)
    straight = (record.evaluation_steps[0, 1000:] == 5).mean()
    assert straight == pytest.approx((1 - 0.1 * 3 / 4) ** 5, abs=0.01)


# Invariants


def test_without_options_all_updates_are_the_same():
    for mdp in (eo.maze("four-rooms"), make_slippery(eo.maze(TWO_ROOMS))):
        empty = make_options(np.empty((0, mdp.n_states), int), 4)
        records = [
            q_learning(mdp, update=update, runs=3, episodes=60) for update in UPDATES
        ]
        records += [q_learning(mdp, empty, runs=3, episodes=60, stop_chance=0.5)]
        for record in records[1:]:
            for name in TABLES:
                np.testing.assert_allclose(
                    getattr(record, name), getattr(records[0], name), rtol=1e-9
                )


@every_update
def test_returns_say_whether_the_goal_was_reached_in_time(update, four_rooms):
    record = q_learning(
        four_rooms,
        eo.discover(four_rooms, n_options=8),
        update=update,
        runs=4,
        episodes=200,
    )
    shortest = reference.distances(four_rooms, four_rooms.goal)[four_rooms.start]
    tables = (
        (record.returns, record.evaluation_steps),
        (record.learning_returns, record.steps),
    )
    for returns, steps in tables:
        assert set(np.unique(returns)) == {0.0, 1.0}
        assert (steps[returns == 0] == 100).all()
        assert (steps[returns == 1] >= shortest).all()
    assert record.returns[:, -50:].mean() > 0.95
    assert np.median(record.evaluation_steps[:, -50:]) == shortest


def test_options_speed_up_learning_in_four_rooms(four_rooms):
    """Section 4.3: with 64 options the agent is far ahead, on both tasks.

    They are the task and its reverse.
    """
    options = eo.discover(four_rooms, n_options=64)
    for start, goal in (
        (four_rooms.start, four_rooms.goal),
        (four_rooms.goal, four_rooms.start),
    ):
        task = {"runs": 40, "episodes": 250, "start": start, "goal": goal}
        _, alone_high = q_learning(four_rooms, **task).band()
        skilled_low, _ = q_learning(four_rooms, options, **task).band()
        assert skilled_low[-1] > alone_high[-1]


def test_intra_option_learning_updates_options_that_were_never_chosen():
    mdp = eo.maze("S....G")
    jump = eo.solve(mdp, eo.Purpose(np.eye(6)[5], "goal 5"))
    intra = q_learning(mdp, jump, update="intra-option", runs=200, episodes=1)
    smdp = q_learning(mdp, jump, update="smdp", runs=200, episodes=1)

    # In state 4, action 1 and the option, choice 4, take the same step to the goal.
    np.testing.assert_array_equal(intra.q[:, 4, 4] > 0, intra.q[:, 4, 1] > 0)
    assert (smdp.q[:, 4, 4] > 0).mean() < (intra.q[:, 4, 4] > 0).mean()


@option_values
def test_ties_go_to_actions_so_that_a_new_agent_does_not_run_options(update):
    """Until the goal is found, a greedy agent walks as if there were no options.

    All values are 0.
    """
    mdp = eo.maze("rooms:3x3").with_task(0, 400)
    options = eo.discover(mdp, n_options=8)
    run = partial(q_learning, mdp, update=update, runs=20, episodes=1, max_steps=50_000)

    greedy = run(options, explore=0.0)
    greedy_alone = run(explore=0.0)
    np.testing.assert_array_equal(greedy.steps, greedy_alone.steps)

    curious = run(options, explore=0.1, option_chance=0.05)
    curious_alone = run(explore=0.1)
    assert curious.steps.mean() < 2 * curious_alone.steps.mean()

    # What ties would do if they went to options as well.
    uniform = run(options, explore=1.0)
    uniform_alone = run()
    assert uniform.steps.mean() > 5 * uniform_alone.steps.mean()


@option_values
def test_option_that_never_ends_is_worth_nothing(update):
    forever = make_options(np.array([[3] * 6]), 4)
    record = q_learning(
        eo.maze("S....G"),
        forever,
        update=update,
        runs=1,
        episodes=3000,
        alpha=1.0,
        epsilon=0.0,
    )
    assert record.returns[0, -100:].all()
    np.testing.assert_array_equal(record.q[0, :, 4], 0.0)


@every_update
def test_greedy_exploration_follows_what_was_learned(update, four_rooms):
    options = eo.discover(four_rooms, n_options=8)
    run = partial(q_learning, four_rooms, options, update=update, runs=5, episodes=300)
    assert run(explore=0.1).steps[:, -50:].mean() < 0.6 * run().steps[:, -50:].mean()


# The slow twin


def check_twin(mdp, options, *, update, seed=0, runs=2, **how):
    how = {
        "episodes": 30,
        "max_steps": 20,
        "alpha": 0.3,
        "gamma": 0.9,
        "epsilon": 0.2,
        "explore": 1.0,
    } | how
    record = q_learning(mdp, options, update=update, runs=runs, rng=seed, **how)
    policies = stack_policies(mdp, options)
    for i, child in enumerate(np.random.SeedSequence(seed).spawn(runs)):
        counter = child.generate_state(1, np.uint64)[0]
        slow = reference.learn(mdp, policies, update, seed=counter, **how)
        for name, table in zip(TABLES, slow, strict=True):
            fast = getattr(record, name)[i]
            np.testing.assert_allclose(fast, table, rtol=1e-9, err_msg=name)


@every_update
@pytest.mark.parametrize("explore", [1.0, 0.2])
@pytest.mark.parametrize("change", [lambda mdp: mdp, make_slippery])
def test_kernel_equals_its_twin_on_a_maze(update, explore, change):
    mdp = change(eo.maze(TWO_ROOMS))
    check = partial(check_twin, mdp, update=update, explore=explore)
    check(None)
    options = eo.discover(mdp, n_options=6)
    check(options, epsilon=0.01)
    for option_chance in (0.0, 0.1, 1.0):
        check(options, option_chance=option_chance)
    check(options, stop_chance=0.3)
    check(options, stop_chance=1.0, option_chance=0.5)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32),
    update=st.sampled_from(UPDATES),
    explore=st.sampled_from([0.0, 0.3, 1.0]),
    alpha=st.sampled_from([0.1, 0.5, 1.0]),
    gamma=st.sampled_from([0.0, 0.7, 1.0]),
    stop_chance=st.sampled_from([0.0, 0.0, 0.3]),
    max_steps=st.integers(1, 12),
)
def test_kernel_equals_its_twin_on_random_tables(seed, **how):
    check_twin(*make_task(seed), seed=seed, **how)


def test_more_than_127_actions_are_learned():
    """Policies then need more than a byte."""
    S = 4
    A = 130
    P = np.zeros((S, A, S))
    P[np.arange(S), :, np.arange(S)] = 1.0
    P[:, A - 1] = np.roll(np.eye(S), 1, axis=1)
    options = make_options(np.array([[A - 1, A - 1, A - 1, -1]]), A)
    for update in ("action", "intra-option"):
        check_twin(eo.MDP(P, start=0, goal=3), options, update=update)


# Determinism and records


@every_update
def test_same_seed_gives_the_same_bytes_and_runs_do_not_depend_on_their_number(update):
    mdp = eo.maze(TWO_ROOMS)
    run = partial(
        q_learning, mdp, eo.discover(mdp, n_options=8), update=update, episodes=20
    )
    whole = run(runs=7, rng=5)
    assert is_same(whole, run(runs=7, rng=5))
    np.testing.assert_array_equal(run(runs=3, rng=5).q, whole.q[:3])
    assert not np.array_equal(whole.steps, run(runs=7, rng=6).steps)
    assert len({row.tobytes() for row in whole.steps}) == 7


@every_update
def test_records_do_not_depend_on_the_pieces_of_a_run(update):
    """From 2e7 steps per episode on, each episode is a call of its own."""
    mdp = eo.maze(TWO_ROOMS)
    run = partial(
        q_learning,
        mdp,
        eo.discover(mdp, n_options=4),
        update=update,
        runs=2,
        episodes=9,
    )
    assert is_same(run(max_steps=10**5), run(max_steps=10**8))


def test_rng_may_be_a_generator_or_a_seed_sequence():
    run = partial(q_learning, eo.maze("S..G"), runs=3, episodes=9)
    assert is_same(run(rng=4), run(rng=np.random.SeedSequence(4)))
    generator = np.random.default_rng(4)
    first = run(rng=generator)
    assert is_same(first, run(rng=np.random.default_rng(4)))
    assert not is_same(first, run(rng=generator))
    child = np.random.SeedSequence(4).spawn(2)[1]
    assert not is_same(run(rng=4), run(rng=child))
    assert child.n_children_spawned == 0


@pytest.mark.parametrize(("confidence", "z"), [(0.5, 0.6744898), (0.95, 1.9599640)])
def test_band_is_the_interval_of_wilson(confidence, z):
    """Its ends are z standard deviations of their own from the mean."""
    returns = np.tril(np.ones((7, 8)))
    record = LearningRecord(returns, returns, returns, returns, np.zeros((7, 2, 1)))
    low, high = record.band(confidence=confidence)

    # From success in all runs to success in none.
    mean = np.arange(7, -1, -1) / 7
    np.testing.assert_allclose(record.mean(), mean)
    for end in (low, high):
        deviation = np.sqrt(end * (1 - end) / 7)
        is_inside = (end > 0) & (end < 1)
        distance = np.abs(end - mean)
        expected = z * deviation[is_inside]
        np.testing.assert_allclose(distance[is_inside], expected, rtol=1e-6)
    assert (low <= mean).all()
    assert (mean <= high).all()
    assert low[-1] == 0
    assert high[0] == 1


def test_record_is_read_only_and_remembers_its_settings(four_rooms):
    record = q_learning(four_rooms, runs=1, episodes=2, stop_chance=0.1)
    assert not any(getattr(record, name).flags.writeable for name in TABLES)
    assert record.settings["stop_chance"] == 0.1
    assert repr(record).startswith(
        "LearningRecord(update='action', 1 run of 2 episodes"
    )


def test_progress_counts_runs():
    seen = []
    q_learning(
        eo.maze("S..G"),
        runs=3,
        episodes=2,
        progress=lambda *counts: seen.append(counts),
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]


# Bad input


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({name: value}, name)
        for name in ("runs", "episodes", "max_steps")
        for value in (0, True, 2.0, 2**31)
    ]
    + [
        ({name: value}, name)
        for name in ("alpha", "gamma", "epsilon", "explore")
        for value in (-0.1, 1.5, "x")
    ]
    + [
        ({"alpha": 0}, "alpha"),
        ({"gamma": float("nan")}, "gamma"),
        ({"update": "sarsa"}, "update"),
    ]
    + [
        ({"option_chance": 2}, "option_chance"),
        ({"stop_chance": -1}, "stop_chance"),
        ({"rng": -1}, "rng"),
    ]
    + [
        ({"goal": 94}, "both"),
        ({"goal": 104}, "goal"),
        ({"start": -1}, "start"),
        ({"runs": 10**7}, "GB"),
    ],
)
def test_bad_setting_is_named(wrong, word, four_rooms):
    with pytest.raises(ValueError, match=word):
        q_learning(four_rooms, **wrong)


def test_bad_task_or_options_are_named(four_rooms, i_maze):
    one_way = eo.MDP(
        np.array([[[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0]]])
    )
    record = q_learning(one_way, start=0, goal=2, runs=1, episodes=1)
    assert record.returns.item() == 1.0

    for error, word, call in (
        (ValueError, "no start", lambda: q_learning(eo.maze("..G"))),
        (ValueError, "no goal", lambda: q_learning(eo.maze("S.."))),
        (ValueError, "cannot be reached", lambda: q_learning(eo.maze("S.#G"))),
        (ValueError, "cannot be reached", lambda: q_learning(one_way, start=2, goal=0)),
        (
            ValueError,
            "another state space",
            lambda: q_learning(four_rooms, eo.discover(i_maze, 2)),
        ),
        (TypeError, "OptionSet", lambda: q_learning(four_rooms, [1, 2])),
        (TypeError, "MDP", lambda: q_learning(np.eye(3))),
        (
            ValueError,
            "table",
            lambda: q_learning(four_rooms, runs=1, episodes=1).band("steps"),
        ),
    ):
        with pytest.raises(error, match=word):
            call()


def test_episodes_too_short_to_arrive_are_logged(caplog):
    record = q_learning(eo.maze("S....G"), runs=1, episodes=2, max_steps=4)
    assert record.returns.sum() == 0
    assert "5 steps away" in caplog.text


def test_auto_is_the_tuned_setting(caplog: pytest.LogCaptureFixture) -> None:
    mdp = eo.maze("four-rooms")
    options = eo.discover(mdp, 8)
    tuned = tune_exploration(mdp, options)
    assert tuned.option_chance > 0
    settings: dict[str, Any] = {"runs": 2, "episodes": 3}
    auto = eo.q_learning(mdp, options, option_chance="auto", **settings)
    given = eo.q_learning(
        mdp,
        options,
        option_chance=tuned.option_chance,
        stop_chance=tuned.stop_chance,
        **settings,
    )
    np.testing.assert_array_equal(auto.steps, given.steps)
    assert auto.settings["option_chance"] == tuned.option_chance

    # Without options there is nothing to tune.
    alone = eo.q_learning(mdp, option_chance="auto", **settings)
    np.testing.assert_array_equal(alone.steps, eo.q_learning(mdp, **settings).steps)
    assert caplog.messages == []
    for set_of_options in (options, None):
        with pytest.raises(ValueError, match="option_chance"):
            eo.q_learning(mdp, set_of_options, option_chance="often", **settings)


def test_auto_that_takes_no_options_warns(caplog: pytest.LogCaptureFixture) -> None:
    """A single option that walks away from most of a corridor."""
    mdp = eo.maze("S.........G")
    policy = np.full((1, 11), 3)
    policy[0, 0] = eo.TERMINATE
    options = make_options(policy, 4)
    record = eo.q_learning(
        mdp, options, option_chance="auto", runs=1, episodes=1, max_steps=50
    )
    assert record.settings["option_chance"] == 0
    assert "option_chance" in caplog.text


# What is counted and drawn before a run


def test_values_of_all_runs_are_counted_before_they_are_allocated():
    """6,000 tables of 100,000 states and two actions: 9.6 GB, two episodes aside."""
    state = np.arange(100_000)
    successors = np.stack([np.maximum(state - 1, 0), np.minimum(state + 1, 99_999)], 1)
    line = eo.MDP.from_successors(successors, start=0)
    with pytest.raises(ValueError, match="GB"):
        eo.q_learning(line, goal=9, runs=6_000, episodes=2, max_steps=1)


def test_a_generator_gives_seeds_of_all_sizes():
    entropy = _make_seed_sequence(np.random.default_rng(0)).entropy
    assert len(entropy) == 4
    assert 2**28 < max(entropy) < 2**32
