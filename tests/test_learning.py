"""Learning with options: closed forms, invariants, slow twins, determinism, bad input."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eigenoptions as eo
from eigenoptions.learning import (
    LearningRecord,
    intra_option_q_learning,
    q_learning,
    smdp_q_learning,
)
from tests import reference
from tests.tables import make_options

LEARNERS = [q_learning, smdp_q_learning, intra_option_q_learning]
TWO_ROOMS = "S..#...\n...#...\n.......\n...#..G"


def slippery(mdp, slip=0.2):
    """The same maze where a move goes astray, to one side or the other, with probability `slip`."""
    S, A = mdp.n_states, mdp.n_actions
    P = mdp.transition.toarray().reshape(S, A, S)
    astray = (np.roll(P, 1, axis=1) + np.roll(P, -1, axis=1)) / 2
    return eo.MDP((1 - slip) * P + slip * astray, start=mdp.start, goal=mdp.goal, coords=mdp.coords)


def random_task(seed):
    """A small random MDP, half of its moves certain, with random options that need not ever stop."""
    rng = np.random.default_rng(seed)
    S, A, n = int(rng.integers(3, 12)), int(rng.integers(1, 6)), int(rng.integers(0, 7))
    P = rng.random((S, A, S)) ** 4
    P[:, :, :-1] += np.eye(S)[:, None, 1:]  # never cut off: there is always a way on
    certain = rng.random((S, A)) < 0.5
    P[certain] = np.eye(S)[rng.integers(S, size=certain.sum())]
    P[np.arange(S), 0] = np.roll(np.eye(S), 1, axis=1)
    P /= P.sum(axis=2, keepdims=True)
    mdp = eo.MDP(P, start=0, goal=S - 1)
    return mdp, make_options(rng.integers(-1, A, size=(n, S)), A)


def distance(mdp):
    """Steps to the goal from every state of a deterministic maze."""
    steps = np.full(mdp.n_states, np.inf)
    steps[mdp.goal] = 0
    for _ in range(mdp.n_states):
        steps = np.minimum(steps, 1 + steps[mdp.successors].min(axis=1))
    return steps


def same(a, b):
    tables = ("returns", "learning_returns", "steps", "evaluation_steps", "q", "runs")
    return all(np.array_equal(getattr(a, k), getattr(b, k)) for k in tables)


# Closed forms -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("n_options", [0, 6])
def test_values_of_actions_are_gamma_to_the_distance(learner, n_options):
    mdp = eo.maze(TWO_ROOMS)
    options = eo.discover(mdp, n_options=n_options) if n_options else None
    record = learner(mdp, options, runs=2, episodes=3000, alpha=1.0, gamma=0.8)
    exact = 0.8 ** distance(mdp)[mdp.successors]
    exact[mdp.goal] = 0.0
    np.testing.assert_allclose(record.q[:, :, : mdp.n_actions], np.stack([exact] * 2), rtol=1e-12, atol=0)


@pytest.mark.parametrize("learner", [smdp_q_learning, intra_option_q_learning])
def test_values_of_options_are_what_they_lead_to(learner):
    """An option of k steps is worth gamma^k times where it ends, unless it meets the goal on its way."""
    mdp = eo.maze(TWO_ROOMS)
    options = eo.discover(mdp, n_options=8)
    record = learner(mdp, options, runs=1, episodes=4000, alpha=1.0)
    away = distance(mdp)
    for o, policy in enumerate(options.policy):
        for s in range(mdp.n_states):
            k, t = 0, s
            while policy[t] >= 0 and t != mdp.goal:
                k, t = k + 1, mdp.successors[t, policy[t]]
            exact = 0.0 if k == 0 else 0.9 ** (k + away[t] - 1)
            assert record.q[0, s, mdp.n_actions + o] == pytest.approx(exact, rel=1e-12), (o, s)


@pytest.mark.parametrize("learner", [smdp_q_learning, intra_option_q_learning])
@pytest.mark.parametrize("max_steps", [3, 100])
def test_values_are_the_exact_ones_even_when_episodes_cut_options(learner, max_steps):
    """Idle for two of three steps, and an option of two steps is cut: its target is then its own value."""
    mdp = eo.maze("......SG")
    right = np.array([1, 1, 1, 1, 1, 1, 1, -1])
    left = np.array([-1, -1, -1, -1, -1, 3, 3, 3])
    options = make_options(np.stack([right, left]), 4)
    record = learner(mdp, options, runs=1, episodes=20_000, max_steps=max_steps, alpha=0.2)
    exact = reference.choice_values(mdp, options.policy, 0.9)
    np.testing.assert_allclose(record.q[0, 5:7], exact[5:7], rtol=1e-9)


@pytest.mark.parametrize("learner", LEARNERS)
def test_small_steps_reach_the_exact_values_of_a_slippery_maze(learner):
    mdp = slippery(eo.maze("S..\n.#.\n..G"))
    options = eo.discover(mdp, n_options=4)
    record = learner(mdp, options, runs=8, episodes=80_000, alpha=0.01)
    exact = reference.choice_values(mdp, options.policy, 0.9)[:, : record.q.shape[2]]
    np.testing.assert_allclose(record.q.mean(axis=0), exact, atol=0.02)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("world", [lambda m: m, slippery])
@pytest.mark.parametrize(("n_options", "chance"), [(0, None), (6, None), (6, 0.3)])
def test_behaviour_reaches_the_goal_as_often_as_its_markov_chain(learner, world, n_options, chance):
    mdp = world(eo.maze(TWO_ROOMS))
    options = eo.discover(mdp, n_options=n_options) if n_options else None
    policy = options.policy if options is not None else np.empty((0, mdp.n_states), dtype=int)
    p = reference.arrival_probability(mdp, policy, 30, chance)
    record = learner(mdp, options, runs=1, episodes=40_000, max_steps=30, option_chance=chance)
    assert 0.01 < p < 0.99
    assert abs(record.learning_returns.mean() - p) < 4 * np.sqrt(p * (1 - p) / 40_000)


def test_evaluation_breaks_ties_and_explores_uniformly():
    """With epsilon 1 the evaluation is a uniform walk, and so it is while all values are 0."""
    mdp = eo.maze(TWO_ROOMS)
    p = reference.arrival_probability(mdp, np.empty((0, mdp.n_states), dtype=int), 30)
    bound = 4 * np.sqrt(p * (1 - p) / 40_000)
    blind = q_learning(mdp, runs=1, episodes=40_000, max_steps=30, epsilon=1.0)
    assert abs(blind.returns.mean() - p) < bound
    fresh = q_learning(mdp, runs=40_000, episodes=1, max_steps=30, epsilon=0.0, alpha=1e-300)
    untaught = fresh.learning_returns[:, 0] == 0
    n = untaught.sum()
    assert abs(fresh.returns[untaught].mean() - p) < 4 * np.sqrt(p * (1 - p) / n)


def test_evaluation_explores_with_probability_epsilon():
    """Learned corridor of 5 moves: all 5 greedy, or one of three idle or backward actions somewhere."""
    record = q_learning(eo.maze("S....G"), runs=1, episodes=50_000, epsilon=0.1)
    straight = (record.evaluation_steps[0, 1000:] == 5).mean()
    assert straight == pytest.approx((1 - 0.1 * 3 / 4) ** 5, abs=0.01)


# Invariants -------------------------------------------------------------------------------------------------


def test_without_options_the_three_learners_are_one():
    for mdp in (eo.maze("four-rooms"), slippery(eo.maze(TWO_ROOMS))):
        records = [learner(mdp, runs=3, episodes=60) for learner in LEARNERS]
        assert same(records[0], records[1])
        assert same(records[0], records[2])


def test_no_options_and_an_empty_set_are_the_same():
    mdp = eo.maze("four-rooms")
    assert same(
        q_learning(mdp, runs=2, episodes=20),
        q_learning(mdp, make_options(np.empty((0, 104), int), 4), runs=2, episodes=20),
    )


@pytest.mark.parametrize("learner", LEARNERS)
def test_returns_say_whether_the_goal_was_reached_in_time(learner):
    mdp = eo.maze("four-rooms")
    record = learner(mdp, eo.discover(mdp, n_options=8), runs=4, episodes=200)
    shortest = distance(mdp)[mdp.start]
    for returns, steps in (
        (record.returns, record.evaluation_steps),
        (record.learning_returns, record.steps),
    ):
        assert set(np.unique(returns)) == {0.0, 1.0}
        assert (steps[returns == 0] == 100).all()
        assert (steps[returns == 1] >= shortest).all()
        assert steps.max() <= 100
    assert record.returns[:, -50:].mean() > 0.95
    assert np.median(record.evaluation_steps[:, -50:]) == shortest
    assert record.n_steps == record.steps.sum() + record.evaluation_steps.sum()


def test_options_speed_up_learning_on_four_rooms():
    """Section 4.3: the agent with 64 options is far ahead, on the task and on its reverse."""
    mdp = eo.maze("four-rooms")
    options = eo.discover(mdp, n_options=64)
    for start, goal in ((mdp.start, mdp.goal), (mdp.goal, mdp.start)):
        alone = q_learning(mdp, runs=40, episodes=250, start=start, goal=goal)
        skilled = q_learning(mdp, options, runs=40, episodes=250, start=start, goal=goal)
        assert skilled.band()[0][-1] > alone.band()[1][-1]


def test_intra_option_learning_knows_options_that_were_never_chosen():
    """Single actions teach options that would have taken them; SMDP Q-learning must run an option."""
    mdp = eo.maze("S....G")
    jump = eo.solve(mdp, eo.Purpose(np.eye(6)[5], "goal 5"))
    taught = intra_option_q_learning(mdp, jump, runs=200, episodes=1).q[:, 4]
    run = smdp_q_learning(mdp, jump, runs=200, episodes=1).q[:, 4]
    np.testing.assert_array_equal(taught[:, 4] > 0, taught[:, 1] > 0)  # wherever the last move was made
    assert (run[:, 4] > 0).mean() < (taught[:, 4] > 0).mean()


def test_an_option_that_never_ends_is_worth_nothing():
    mdp = eo.maze("S....G")
    forever = make_options(np.array([[3] * 6]), 4)  # always left
    for learner in (smdp_q_learning, intra_option_q_learning):
        record = learner(mdp, forever, runs=1, episodes=3000, alpha=1.0, epsilon=0.0)
        assert record.returns[0, -100:].all()
        np.testing.assert_array_equal(record.q[0, :, 4], 0.0)


def test_greedy_exploration_follows_what_was_learned():
    mdp = eo.maze("four-rooms")
    options = eo.discover(mdp, n_options=8)
    blind = smdp_q_learning(mdp, options, runs=5, episodes=300)
    keen = smdp_q_learning(mdp, options, runs=5, episodes=300, explore=0.1)
    assert keen.steps[:, -50:].mean() < 0.6 * blind.steps[:, -50:].mean()


# Slow twins -------------------------------------------------------------------------------------------------


def assert_like_twin(learner, mdp, options, *, seed=0, runs=2, **rates):
    method = learner.__name__
    rates = {"episodes": 30, "max_steps": 20, "alpha": 0.3, "gamma": 0.9, "epsilon": 0.2} | rates
    explore = rates.pop("explore", 1.0)
    chance = rates.pop("option_chance", None)
    follow = rates.pop("follow", True)
    more = {"follow": follow} if method == "q_learning" else {"explore": explore}
    record = learner(mdp, options, runs=runs, rng=seed, option_chance=chance, **rates, **more)
    policy = np.empty((0, mdp.n_states), dtype=int) if options is None else options.policy
    children = np.random.SeedSequence(seed).spawn(runs)
    for i, child in enumerate(children):
        first = child.generate_state(1, np.uint64)[0]
        given = {"explore": explore, "chance": chance, "follow": follow, **rates}
        twin = reference.learn(mdp, policy, method, seed=first, **given)
        mine = (record.returns, record.learning_returns, record.steps, record.evaluation_steps, record.q)
        for a, b in zip(mine, twin, strict=True):
            np.testing.assert_array_equal(a[i], b)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("explore", [1.0, 0.2])
@pytest.mark.parametrize("world", [lambda m: m, slippery])
def test_kernel_is_its_twin_on_a_maze(learner, explore, world):
    mdp = world(eo.maze(TWO_ROOMS))
    assert_like_twin(learner, mdp, None, explore=explore)
    options = eo.discover(mdp, n_options=6)
    assert_like_twin(learner, mdp, options, explore=explore, epsilon=0.01)
    for chance in (0.0, 0.1, 1.0):
        assert_like_twin(learner, mdp, options, explore=explore, option_chance=chance)


@pytest.mark.parametrize("world", [lambda m: m, slippery])
def test_options_that_last_two_steps(world):
    """The learner of the program published with the paper: an option's first action twice, then a new choice."""
    mdp = world(eo.maze(TWO_ROOMS))
    options = eo.discover(mdp, n_options=6)
    for chance in (None, 0.5):
        assert_like_twin(q_learning, mdp, options, follow=False, option_chance=chance)
    record = q_learning(mdp, options, runs=2, episodes=5, follow=False)
    assert record.settings["follow"] is False
    assert (record.returns != q_learning(mdp, options, runs=2, episodes=5).returns).any()
    with pytest.raises(ValueError, match="follow must be True or False, got 1"):
        q_learning(mdp, options, runs=1, episodes=1, follow=1)
    with pytest.raises(TypeError, match="smdp_q_learning has no setting 'follow'"):
        smdp_q_learning(mdp, options, runs=1, episodes=1, follow=False)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32),
    learner=st.sampled_from(LEARNERS),
    explore=st.sampled_from([0.0, 0.3, 1.0]),
    alpha=st.sampled_from([0.1, 0.5, 1.0]),
    gamma=st.sampled_from([0.0, 0.7, 1.0]),
    max_steps=st.integers(1, 12),
)
def test_kernel_is_its_twin_on_random_tables(seed, learner, explore, alpha, gamma, max_steps):
    mdp, options = random_task(seed)
    logging.disable(logging.WARNING)  # short episodes that cannot arrive are wanted here
    try:
        assert_like_twin(
            learner, mdp, options, seed=seed, explore=explore, alpha=alpha, gamma=gamma, max_steps=max_steps
        )
    finally:
        logging.disable(logging.NOTSET)


def test_more_than_127_actions():
    """Policies then need more than a byte."""
    S, A = 4, 130
    P = np.zeros((S, A, S))
    P[np.arange(S), :, np.arange(S)] = 1.0
    P[:, A - 1] = np.roll(np.eye(S), 1, axis=1)
    mdp = eo.MDP(P, start=0, goal=3)
    options = make_options(np.array([[A - 1, A - 1, A - 1, -1]]), A)
    assert_like_twin(q_learning, mdp, options)
    assert_like_twin(intra_option_q_learning, mdp, options)


# Determinism and records ------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", LEARNERS)
def test_same_seed_same_bytes_and_blocks_make_up_the_whole(learner):
    mdp = eo.maze(TWO_ROOMS)
    options = eo.discover(mdp, n_options=8)
    whole = learner(mdp, options, runs=7, episodes=20, rng=5)
    assert same(whole, learner(mdp, options, runs=7, episodes=20, rng=5))
    blocks = [
        learner(mdp, options, runs=part, episodes=20, rng=5) for part in (range(3), range(3, 4), range(4, 7))
    ]
    assert same(whole, blocks[0] + blocks[1] + blocks[2])
    assert not np.array_equal(whole.steps, learner(mdp, options, runs=7, episodes=20, rng=6).steps)
    assert len({row.tobytes() for row in whole.steps}) == 7


def test_generators_and_seed_sequences():
    mdp = eo.maze("S..G")
    by_seed = q_learning(mdp, runs=3, episodes=9, rng=4)
    assert same(by_seed, q_learning(mdp, runs=3, episodes=9, rng=np.random.SeedSequence(4)))
    first = q_learning(mdp, runs=3, episodes=9, rng=np.random.default_rng(4))
    assert same(first, q_learning(mdp, runs=3, episodes=9, rng=np.random.default_rng(4)))
    entropy = np.random.default_rng(4).integers(2**32, size=4).tolist()
    assert same(first, q_learning(mdp, runs=3, episodes=9, rng=np.random.SeedSequence(entropy)))
    rng = np.random.default_rng(4)
    assert same(first, q_learning(mdp, runs=3, episodes=9, rng=rng))
    assert not same(first, q_learning(mdp, runs=3, episodes=9, rng=rng))
    parent = np.random.SeedSequence(4)
    child = parent.spawn(2)[1]
    assert not same(by_seed, q_learning(mdp, runs=3, episodes=9, rng=child))
    assert child.n_children_spawned == 0


def test_bands_hold_what_they_promise():
    """About 95% of the bands over 20 runs hold the true chance to arrive, known from the Markov chain."""
    mdp = eo.maze(TWO_ROOMS)
    p = reference.arrival_probability(mdp, np.empty((0, mdp.n_states), dtype=int), 30)
    record = q_learning(mdp, runs=20, episodes=2000, max_steps=30)
    low, high = record.band("learning_returns")
    assert 0.92 < ((low <= p) & (p <= high)).mean() < 0.98
    low, high = record.band("steps")
    wide = record.band("steps", level=0.999)
    assert (wide[0] <= low).all()
    assert (low <= record.mean("steps")).all()
    assert (record.mean("steps") <= high).all()
    assert (high <= wide[1]).all()


def test_bands_of_unanimous_runs_are_not_empty():
    ones = np.ones((10, 1))
    steps = np.full((10, 1), 7, dtype=np.int32)
    record = LearningRecord(ones, 0 * ones, steps, steps, np.zeros((10, 2, 1)), np.arange(10))
    low, high = record.band()
    assert 0.7 < low[0] < 0.73 < high[0] == 1.0  # Wilson, 10 of 10: 0.722
    low, high = record.band("learning_returns")
    assert low[0] == 0.0 < 0.27 < high[0] < 0.3


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_bands_of_returns_are_the_intervals_of_wilson(level):
    from scipy.stats import binomtest

    returns = np.tril(np.ones((7, 7)))[:, ::-1][:, :6]
    steps = np.ones((7, 6), dtype=np.int32)
    record = LearningRecord(returns, returns, steps, steps, np.zeros((7, 2, 1)), np.arange(7))
    expected = [
        binomtest(int(k), 7).proportion_ci(level, method="wilson") for k in returns.sum(axis=0).tolist()
    ]
    np.testing.assert_allclose(
        np.array(record.band(level=level)).T, [(x.low, x.high) for x in expected], rtol=1e-9
    )


# Bad input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"runs": 0}, "runs must be a whole number in 1..2147483647, got 0"),
        ({"runs": True}, "runs must be a whole number in 1..2147483647, got True"),
        ({"runs": 2.0}, "runs must be a whole number in 1..2147483647, got 2.0"),
        (
            {"runs": range(0)},
            "runs must be at least 1, or a range of runs like range(50, 100), got range(0, 0)",
        ),
        (
            {"runs": range(-2, 3)},
            "runs must be at least 1, or a range of runs like range(50, 100), got range(-2, 3)",
        ),
        (
            {"runs": range(0, 9, 2)},
            "runs must be at least 1, or a range of runs like range(50, 100), got range(0, 9, 2)",
        ),
        ({"episodes": 0}, "episodes must be a whole number in 1..2147483647, got 0"),
        ({"episodes": -3}, "episodes must be a whole number in 1..2147483647, got -3"),
        ({"max_steps": 0}, "max_steps must be a whole number in 1..2147483647, got 0"),
        ({"max_steps": 2**31}, "max_steps must be a whole number in 1..2147483647, got 2147483648"),
        ({"alpha": 0}, "alpha must be in (0, 1], got 0"),
        ({"alpha": 1.5}, "alpha must be in (0, 1], got 1.5"),
        ({"alpha": "fast"}, "alpha must be in (0, 1], got 'fast'"),
        ({"gamma": -0.1}, "gamma must be in [0, 1], got -0.1"),
        ({"gamma": float("nan")}, "gamma must be in [0, 1], got nan"),
        ({"epsilon": 2}, "epsilon must be in [0, 1], got 2"),
        ({"rng": -1}, "rng must be a seed of at least 0, a SeedSequence or a Generator, got -1"),
        ({"rng": None}, "rng must be a seed of at least 0, a SeedSequence or a Generator, got None"),
        ({"goal": 94}, "start and goal are both state 94: choose two, mdp.with_task(start=, goal=)"),
        ({"goal": 104}, "goal must be a state in 0..103, got 104"),
        ({"start": -1}, "start must be a state in 0..103, got -1"),
        ({"options": [1, 2]}, "options must be an OptionSet or None, got list"),
    ],
)
@pytest.mark.parametrize("learner", LEARNERS)
def test_bad_settings(learner, wrong, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        learner(eo.maze("four-rooms"), **wrong)
    assert str(error.value) == message


def test_bad_explore():
    with pytest.raises(ValueError, match=r"explore must be in \[0, 1\], got 1.1"):
        smdp_q_learning(eo.maze("S.G"), explore=1.1)


@pytest.mark.parametrize("learner", LEARNERS)
def test_options_of_another_mdp(learner):
    options = eo.discover(eo.maze("open-room"), n_options=2)
    with pytest.raises(ValueError, match="another state space"):
        learner(eo.maze("four-rooms"), options)
    mdp = eo.maze("....\n....")
    with pytest.raises(ValueError, match="same size, but other dynamics"):
        learner(eo.maze("S..G\n\n....").with_task(goal=1), eo.discover(mdp, n_options=2))


def test_no_task_and_unreachable_goals():
    with pytest.raises(ValueError, match=r"the MDP has no start: give start=, or a task: mdp.task\("):
        q_learning(eo.maze("..G"))
    with pytest.raises(ValueError, match=r"the MDP has no goal: give goal=, or a task: mdp.task\("):
        q_learning(eo.maze("S.."))
    with pytest.raises(ValueError, match=r"goal 2 cannot be reached from start 0: choose another pair"):
        q_learning(eo.maze("S.#G"))
    one_way = np.array([[[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0]]])
    assert q_learning(eo.MDP(one_way), start=0, goal=2, runs=1, episodes=1).returns.item() == 1.0
    with pytest.raises(ValueError, match="goal 0 cannot be reached from start 2"):
        q_learning(eo.MDP(one_way), start=2, goal=0)


def test_episodes_too_short_to_arrive_are_told(caplog):
    record = q_learning(eo.maze("S....G"), runs=1, episodes=2, max_steps=4)
    assert record.returns.sum() == 0
    assert "the goal is 5 steps away: no episode of 4 steps can reach it" in caplog.text


def test_bad_joins_and_bands():
    mdp = eo.maze("S..G")
    one = q_learning(mdp, runs=1, episodes=3)
    with pytest.raises(ValueError, match="both records have run 0: join blocks of different runs"):
        one + one
    other = q_learning(mdp, runs=range(1, 2), episodes=3, alpha=0.2, rng=1)
    with pytest.raises(
        ValueError, match="records of different experiments cannot be joined: alpha, rng differ"
    ):
        one + other
    with pytest.raises(
        ValueError, match="no table 'reward' in a learning record: there are returns, learning_"
    ):
        one.mean("reward")
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\), got 95"):
        one.band(level=95)
    with pytest.raises(ValueError, match="a confidence band over steps needs at least 2 runs, got 1"):
        one.band("steps")


def test_a_misspelt_setting_is_refused_by_name(four_rooms):
    with pytest.raises(TypeError, match="q_learning has no setting 'epsilom': did you mean 'epsilon'"):
        eo.q_learning(four_rooms, runs=1, episodes=1, epsilom=0.1)
    with pytest.raises(TypeError, match="q_learning has no setting 'explore': it has alpha, gamma"):
        eo.q_learning(four_rooms, runs=1, episodes=1, explore=0.1)


def test_memory_is_that_of_the_values_of_actions_or_of_actions_and_options(monkeypatch):
    mdp = eo.maze("S..G")
    options = eo.discover(mdp, 3)
    monkeypatch.setattr("eigenoptions.learning.MAX_RECORD_BYTES", 2 * (24 * 5 + 8 * 4 * 4) - 1)
    with pytest.raises(ValueError, match="2 runs of 5 episodes with 16 values"):
        eo.q_learning(mdp, options, runs=2, episodes=5)
    for learner in (eo.smdp_q_learning, eo.intra_option_q_learning):
        with pytest.raises(ValueError, match="2 runs of 5 episodes with 28 values"):
            learner(mdp, options, runs=2, episodes=5)
    monkeypatch.setattr("eigenoptions.learning.MAX_RECORD_BYTES", 2 * (24 * 5 + 8 * 4 * 4))
    assert eo.q_learning(mdp, options, runs=2, episodes=5).q.shape == (2, 4, 4)


@pytest.mark.parametrize("learner", [eo.q_learning, eo.smdp_q_learning, eo.intra_option_q_learning])
def test_progress_counts_runs(learner):
    seen = []
    learner(eo.maze("S..G"), runs=range(4, 7), episodes=2, progress=lambda *at: seen.append(at))
    assert seen == [(1, 3), (2, 3), (3, 3)]
