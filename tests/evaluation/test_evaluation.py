"""Diffusion time: closed forms, invariants, slow twins, estimates, bad input."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import diags_array

import eigenoptions as eo
from eigenoptions.evaluation import (
    best_option_chance,
    diffusion,
    diffusion_curve,
    diffusion_estimate,
    diffusion_time,
    hitting,
    hitting_times,
)
from eigenoptions.evaluation.behaviour import prepare_behaviour
from eigenoptions.evaluation.hitting import HittingSystem
from eigenoptions.evaluation.intervals import mean_interval
from eigenoptions.mdp import reachable
from eigenoptions.mdp.chains import find_ends
from eigenoptions.options import OptionSet
from eigenoptions.options.tuning import tune_exploration
from eigenoptions.options.walks import make_tables, visit_states

PAPER = {"four-rooms": 620.769, "open-room": 271.965, "i-maze": 246.222}


def average_pairs(times):
    return times.sum() / (len(times) * (len(times) - 1))


def lead_to(mdp, state):
    """One option: the shortest path to a state."""
    return eo.solve(
        mdp, eo.Purpose(np.eye(mdp.n_states)[state], f"to {state}"), gamma=0.999
    )


def slip(mdp, probability=0.2):
    """The same actions, but a random one instead with some probability."""
    P = mdp.transition.toarray().reshape(mdp.n_states, mdp.n_actions, -1)
    return eo.MDP((1 - probability) * P + probability * P.mean(axis=1, keepdims=True))


def make_case(seed, slip_probability=0.0, terminating=True):
    """A small random maze, and a few random options."""
    rng = np.random.default_rng(seed)
    is_free = rng.random(tuple(rng.integers(2, 6, size=2))) < 0.7
    is_free[0, :2] = True

    # Keep the cells that can be reached from the first one.
    whole = eo.maze(draw_map(is_free))
    kept = whole.coords[reachable(whole.transition, [0])]
    is_free[:] = False
    is_free[tuple(kept.T)] = True
    mdp = eo.maze(draw_map(is_free))
    if slip_probability:
        mdp = slip(mdp, slip_probability)

    policy = rng.integers(0, 4, size=(rng.integers(0, 6), mdp.n_states))
    policy[rng.random(policy.shape) < 0.3] = -1
    if terminating:
        for row in policy:
            let_terminate(mdp, row)
    return mdp, OptionSet(mdp, policy)


def draw_map(is_free):
    rows = [["." if free else "#" for free in row] for row in is_free]
    return "".join("".join(row) + "\n" for row in rows)


def let_terminate(mdp, policy):
    """Change a policy, state by state, until it can terminate from everywhere."""
    while True:
        rows = np.arange(mdp.n_states) * mdp.n_actions + np.maximum(policy, 0)
        can_terminate = reachable(mdp.transition[rows], policy < 0, backward=True)
        if can_terminate.all():
            return
        policy[can_terminate.argmin()] = -1


def slow_hitting_times(
    mdp, policy, goal, option_chance=None, stop_chance=0.0, number=float
):
    """Expected steps to a goal, with numbers of any kind, also exact fractions.

    The places of a chain are the decisions in s and the running options (o, s).
    """
    probabilities, cost = make_chain(
        mdp, policy, goal, option_chance, number(stop_chance), number
    )
    # Running options first, then decisions, so that few entries fill in.
    order = sorted(probabilities, key=lambda place: isinstance(place, int))
    for i, place in enumerate(order):
        row = probabilities[place]
        scale = number(1) / (1 - row.pop(place, 0))
        for other in row:
            row[other] *= scale
        cost[place] *= scale
        for other in order[i + 1 :]:
            weight = probabilities[other].pop(place, 0)
            if weight:
                cost[other] += weight * cost[place]
                for after, p in row.items():
                    probabilities[other][after] = (
                        probabilities[other].get(after, 0) + weight * p
                    )
    for place in reversed(order):
        row = probabilities[place]
        cost[place] += sum(p * cost[after] for after, p in row.items())
    return [float(cost.get(s, 0)) for s in range(mdp.n_states)]


def make_chain(mdp, policy, goal, option_chance, stop_chance, number):
    """Probabilities from each place to the next ones, and the cost of a step there.

    The goal is no place: a step that touches it ends the walk.
    """
    n_states = int(mdp.n_states)
    n_actions = int(mdp.n_actions)
    P = mdp.transition.toarray().reshape(n_states, n_actions, n_states)
    probabilities = {}
    cost = {}

    def add_step(row, weight, s, action, option=None):
        total = sum(number(p) for p in P[s, action])
        for t in np.flatnonzero(P[s, action]).tolist():
            if t == goal:
                continue
            p = weight * number(P[s, action, t]) / total
            if option is not None and policy[option][t] >= 0:
                add_entry(row, (option, t), p * (1 - stop_chance))
                add_entry(row, t, p * stop_chance)
            else:
                add_entry(row, t, p)

    def add_entry(row, place, p):
        if p:
            row[place] = row.get(place, 0) + p

    for s in range(n_states):
        if s == goal:
            continue
        available = [o for o in range(len(policy)) if policy[o][s] >= 0]
        if option_chance is None:
            action_weight = option_weight = number(1) / (n_actions + len(available))
        else:
            chance = number(option_chance) if available else number(0)
            action_weight = (1 - chance) / n_actions
            option_weight = chance / max(len(available), 1)

        probabilities[s] = {}
        cost[s] = number(1)
        for action in range(n_actions):
            add_step(probabilities[s], action_weight, s, action)
        for option in available:
            action = int(policy[option][s])
            add_step(probabilities[s], option_weight, s, action, option)
            probabilities[option, s] = {}
            cost[option, s] = number(1)
            add_step(probabilities[option, s], number(1), s, action, option)
    return probabilities, cost


# Closed forms


@pytest.mark.parametrize("name", sorted(PAPER))
def test_diffusion_time_without_options_is_that_of_the_paper(name):
    assert diffusion_time(eo.maze(name)) == pytest.approx(PAPER[name], abs=5e-4)


def test_hitting_times_path_graph_closed_form(corridor):
    # Two of four actions stay, also at the walls: from k to k + 1 takes 4 (k + 1)
    # steps.
    i, j = np.meshgrid(np.arange(7), np.arange(7), indexing="ij")
    right = 2 * (j * (j + 1) - i * (i + 1))
    left = 2 * ((6 - j) * (7 - j) - (6 - i) * (7 - i))
    np.testing.assert_allclose(
        hitting_times(corridor), np.where(i < j, right, left), rtol=1e-12
    )


def test_hitting_times_cycle_closed_form():
    n = 9
    P = np.stack(
        [np.roll(np.eye(n), 1, axis=1), np.roll(np.eye(n), -1, axis=1)], axis=1
    )
    d = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    np.testing.assert_allclose(hitting_times(eo.MDP(P)), d * (n - d), rtol=1e-12)
    np.testing.assert_allclose(
        hitting_times(slip(eo.MDP(P), 0.5)), d * (n - d), rtol=1e-12
    )


def test_hitting_times_complete_graph_closed_form():
    n = 6
    anywhere = eo.MDP(np.broadcast_to(np.eye(n), (n, n, n)))
    assert diffusion_time(anywhere) == pytest.approx(n, rel=1e-12)
    # A one-step option to state 0 is one more action that leads there from the n - 1
    # other states.
    options = OptionSet(anywhere, np.where(np.arange(n) == 0, -1, 0)[None])
    np.testing.assert_allclose(
        hitting_times(anywhere, options)[1:, 0], (n + 1) / 2, rtol=1e-12
    )


def test_diffusion_time_without_options_is_a_sum_over_the_spectrum(domain):
    # n / (n - 1) * A * sum 1 / lambda_i(D - W): blocked moves are self-loops, so every
    # state has A edges.
    W = eo.graph(domain)
    values = np.linalg.eigvalsh((diags_array(W.sum(axis=1)) - W).toarray())[1:]
    n = domain.n_states
    assert diffusion_time(domain) == pytest.approx(
        n / (n - 1) * 4 * (1 / values).sum(), rel=1e-11
    )


def test_hitting_times_walk_stops_at_the_goal_inside_an_option():
    # Three cells, option: right to the end. From 0 to 1: one of four actions and the
    # option get there in one step.
    mdp = eo.maze("S.G")
    times = hitting_times(mdp, lead_to(mdp, 2))
    assert times[0, 1] == pytest.approx(5 / 2, rel=1e-12)
    # To 2: x0 = (4 + 2 x0 + x0 + x1 + 2) / 5, x1 = (4 + 2 x1 + x0 + 1) / 5 (up, down
    # stay; left, right; option).
    np.testing.assert_allclose(
        times[:2, 2], np.linalg.solve([[2, -1], [-1, 3]], [6, 5]), rtol=1e-12
    )


def test_option_chance_closed_form():
    # Two states, action 0 stays, action 1 and the option of one step change the state:
    # 2 / (1 + c) steps.
    swap = eo.MDP(np.stack([np.eye(2), np.eye(2)[::-1]], axis=1))
    options = OptionSet(swap, np.array([[1, -1], [-1, 1]]))
    assert diffusion_time(swap, options, option_chance=0.6) == pytest.approx(
        2 / 1.6, rel=1e-12
    )
    best = best_option_chance(swap, options)
    assert best.chance > 0.98
    assert best.diffusion_time == pytest.approx(2 / (1 + best.chance), rel=1e-12)


def test_stop_chance_one_makes_every_option_a_single_action(four_rooms):
    """With stop chance 1, an option is a copy of the action that it takes first."""
    options = eo.discover(four_rooms, 3)
    S = four_rooms.n_states
    P = four_rooms.transition.toarray().reshape(S, 4, S)
    weight = 1.0 / (4 + (options.policy >= 0).sum(axis=0))
    walk = P.sum(axis=1)
    for row in options.policy:
        walk += np.where((row >= 0)[:, None], P[np.arange(S), np.maximum(row, 0)], 0.0)
    same = eo.MDP((walk * weight[:, None])[:, None])
    np.testing.assert_allclose(
        hitting_times(four_rooms, options, stop_chance=1.0),
        hitting_times(same),
        rtol=1e-9,
    )


# Invariants


@pytest.mark.parametrize("how", [{}, {"option_chance": 0.05}, {"stop_chance": 0.1}])
def test_diffusion_curve_adds_options_in_order(four_rooms, how):
    options = eo.discover(four_rooms, n_options=6)
    curve = diffusion_curve(four_rooms, options, **how)
    times = [diffusion_time(four_rooms, options[:n], **how) for n in range(7)]
    np.testing.assert_allclose(curve, times, rtol=1e-12)
    assert times[-1] == pytest.approx(
        average_pairs(hitting_times(four_rooms, options, **how)), rel=1e-12
    )


def test_options_that_start_nowhere_change_nothing(i_maze):
    for mdp in (i_maze, slip(i_maze)):
        nothing = OptionSet(mdp, np.full((3, 19), -1))
        np.testing.assert_allclose(
            diffusion_curve(mdp, nothing), PAPER["i-maze"], atol=5e-4
        )


def test_small_option_chance_or_stop_chance_helps_where_the_uniform_choice_hurts(
    four_rooms,
):
    options = eo.discover(four_rooms, n_options=4)
    plain = diffusion_time(four_rooms)
    uniform = diffusion_time(four_rooms, options)
    assert uniform == pytest.approx(13525.0, abs=0.05)
    assert diffusion_time(four_rooms, options, option_chance=0.05) == pytest.approx(
        267.7, abs=0.05
    )
    assert (
        diffusion_time(four_rooms, options, stop_chance=0.1)
        < 0.7 * plain
        < 0.04 * uniform
    )


# Slow twins

CHANCES = st.sampled_from([None, 0.0, 0.05, 0.5, 0.9])
STOPS = st.sampled_from([0.0, 0.0, 0.1, 0.7, 1.0])


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.05, 0.3]), CHANCES, STOPS)
@settings(max_examples=60, deadline=None)
def test_hitting_times_equal_the_slow_twin(
    seed, slip_probability, option_chance, stop_chance
):
    mdp, options = make_case(seed, slip_probability, terminating=stop_chance == 0)
    try:
        times = hitting_times(
            mdp, options, option_chance=option_chance, stop_chance=stop_chance
        )
    except OverflowError:  # a random option may run for 1e10 steps
        assume(False)
    # No error is proved to be negative, so that each goal is solved by elimination.
    behaviour = prepare_behaviour(mdp, options, option_chance, stop_chance)
    eliminated = HittingSystem(behaviour, max_error=-1.0).solve(option_chance)
    for goal in range(0, mdp.n_states, 3):
        slow = slow_hitting_times(mdp, options.policy, goal, option_chance, stop_chance)
        np.testing.assert_allclose(
            times[:, goal], slow, rtol=max(1e-8, 1e-14 * max(slow))
        )
        np.testing.assert_allclose(
            eliminated[:, goal], slow, rtol=max(1e-8, 1e-14 * max(slow))
        )


@pytest.mark.parametrize("size", [1, 2_000])
def test_hitting_times_do_not_depend_on_the_size_of_blocks(
    four_rooms, monkeypatch, size
):
    options = eo.discover(four_rooms, n_options=8)
    times = hitting_times(four_rooms, options)
    best = best_option_chance(four_rooms, options)
    in_blocks = partial(HittingSystem, block_entries=size * 104)
    monkeypatch.setattr(hitting, "HittingSystem", in_blocks)
    monkeypatch.setattr(diffusion, "HittingSystem", in_blocks)
    np.testing.assert_allclose(hitting_times(four_rooms, options), times, rtol=1e-9)
    best_in_blocks = best_option_chance(four_rooms, options)
    assert best_in_blocks.chance == pytest.approx(best.chance, rel=1e-6)


# Huge values


def test_hitting_times_are_exact_where_a_linear_solver_fails():
    """A corridor and an option back to its start, against exact fractions.

    Steps grow like 2.6 to the length.
    """
    mdp = eo.maze("." * 48)
    options = lead_to(mdp, 0)
    times = hitting_times(mdp, options)
    exact = slow_hitting_times(mdp, options.policy, 47, number=Fraction)
    assert exact[0] > 1e20
    np.testing.assert_allclose(times[:, 47], exact, rtol=1e-12)
    assert diffusion_time(mdp, options) == pytest.approx(
        average_pairs(times), rel=1e-12
    )


@pytest.mark.parametrize(
    ("slip_probability", "option_chance"), [(0.0, None), (0.1, None), (0.0, 0.75)]
)
def test_hitting_times_of_thin_mazes_equal_exact_fractions(
    slip_probability, option_chance
):
    mdp = eo.maze("." * 12 + "\n" + "#." * 6)
    mdp = slip(mdp, slip_probability) if slip_probability else mdp
    policy = np.tile(np.where(np.arange(mdp.n_states) < 12, 3, 0), (2, 1))
    policy[:, [0, 13]] = policy[1, [5, 15]] = -1
    options = OptionSet(mdp, policy)
    times = hitting_times(mdp, options, option_chance=option_chance)
    for goal in (0, 11):
        exact = slow_hitting_times(mdp, policy, goal, option_chance, number=Fraction)
        np.testing.assert_allclose(times[:, goal], exact, rtol=1e-9)


def test_options_that_trap_the_walk_are_named():
    large = eo.maze("." * 600)
    with pytest.raises(OverflowError, match="more than 1e12 steps"):
        diffusion_time(large, lead_to(large, 0))
    curve = diffusion_curve(large, lead_to(large, 0))
    assert curve.tolist() == [pytest.approx(diffusion_time(large)), np.inf]
    best = best_option_chance(large, lead_to(large, 0))
    assert best.uniform_diffusion_time == np.inf
    assert best.diffusion_time <= best.primitive_diffusion_time


# The best chance


def test_best_option_chance_is_the_smallest_of_all(four_rooms):
    options = eo.discover(four_rooms, n_options=8)
    best = best_option_chance(four_rooms, options)
    times = [
        diffusion_time(four_rooms, options, option_chance=c)
        for c in (best.chance, None, 0.0)
    ]
    fields = [
        best.diffusion_time,
        best.uniform_diffusion_time,
        best.primitive_diffusion_time,
    ]
    assert fields == pytest.approx(times, rel=1e-9)
    chances = [*np.linspace(0, 0.95, 39), best.chance - 0.002, best.chance + 0.002]
    assert (
        min(diffusion_time(four_rooms, options, option_chance=c) for c in chances)
        > best.diffusion_time
    )


def test_best_option_chance_of_a_single_option_is_small():
    mdp = eo.maze("." * 24)
    best = best_option_chance(mdp, lead_to(mdp, 0))
    assert best.chance == pytest.approx(0.0012, abs=5e-5)
    assert (
        best.diffusion_time
        < 0.91 * best.primitive_diffusion_time
        < 1e-5 * best.uniform_diffusion_time
    )


def test_best_option_chance_with_a_stop_chance_is_larger(four_rooms):
    options = eo.discover(four_rooms, n_options=4)
    stopped = best_option_chance(four_rooms, options, stop_chance=0.2)
    time = diffusion_time(
        four_rooms, options, option_chance=stopped.chance, stop_chance=0.2
    )
    assert stopped.diffusion_time == pytest.approx(time, rel=1e-9)
    assert stopped.chance > best_option_chance(four_rooms, options).chance


# Estimates


@pytest.mark.parametrize(
    ("slip_probability", "stop_chance"), [(0.0, 0.0), (0.2, 0.0), (0.0, 0.3)]
)
def test_diffusion_estimate_intervals_hold_the_exact_value(
    i_maze, slip_probability, stop_chance
):
    mdp = slip(i_maze, slip_probability) if slip_probability else i_maze
    options = eo.discover(mdp, n_options=8)
    how = {"option_chance": 0.3, "stop_chance": stop_chance}
    exact = diffusion_time(mdp, options, **how)
    estimates = [
        diffusion_estimate(mdp, options, walks=40, confidence=0.9, rng=i, **how)
        for i in range(100)
    ]
    assert 0.8 <= np.mean([e.low <= exact <= e.high for e in estimates]) <= 0.98
    assert np.mean([e.mean for e in estimates]) == pytest.approx(exact, rel=0.02)


def test_diffusion_estimate_is_reproducible(four_rooms):
    one = diffusion_estimate(four_rooms, walks=5, rng=7)
    two = diffusion_estimate(four_rooms, walks=5, rng=7)
    assert one == two != diffusion_estimate(four_rooms, walks=5, rng=8)
    assert one.low < one.mean < one.high


def test_diffusion_estimate_of_a_cycle_has_no_spread():
    """With one action, every walk touches the states after 1, 2, ..., n - 1 steps."""
    cycle = eo.MDP(np.roll(np.eye(6), 1, axis=1))
    estimate = diffusion_estimate(cycle, walks=4)
    assert estimate.low == 3
    assert estimate.mean == 3
    assert estimate.high == 3
    assert estimate.steps == 20
    for max_steps in (3, 4):
        with pytest.raises(ValueError, match="max_steps"):
            diffusion_estimate(cycle, walks=4, max_steps=max_steps)


def test_walk_in_pieces_takes_no_more_than_max_steps():
    cycle = eo.MDP(np.roll(np.eye(7), 1, axis=1))
    tables = make_tables(cycle, np.empty((0, 7), dtype=np.int32))
    for piece in (1, 2, 4, 100):
        for max_steps in (5, 6, 7):
            touched = np.zeros(7, dtype=np.uint8)
            found = visit_states(tables, 0, 1, touched, max_steps, piece)
            steps = min(max_steps, 6)
            assert found == (sum(range(1, steps + 1)), steps)
            assert touched.sum() == steps + 1


def test_diffusion_estimate_of_walks_that_agree_by_chance_promises_nothing():
    estimates = [diffusion_estimate(eo.maze(".."), walks=2, rng=i) for i in range(20)]
    agree = [e for e in estimates if e.high == np.inf]
    assert agree
    assert all(e.low == 1.0 for e in agree)


def test_mean_interval_is_student(rng):
    samples = rng.normal(size=(10, 3))
    low, high = mean_interval(samples, 0.9)
    half = 1.8331129 * samples.std(axis=0, ddof=1) / np.sqrt(10)
    np.testing.assert_allclose(
        [low, high],
        [samples.mean(axis=0) - half, samples.mean(axis=0) + half],
        rtol=1e-6,
    )
    assert mean_interval([2.0]) == (2.0, 2.0)


# Where episodes end


def test_hitting_times_continue_at_the_start_after_an_end():
    """One action to the right; with the step from end to start it is a cycle."""
    mdp = eo.MDP(np.eye(5)[[1, 2, 3, 4, 4]], start=0)
    i, j = np.meshgrid(np.arange(5), np.arange(5), indexing="ij")
    np.testing.assert_allclose(hitting_times(mdp), (j - i) % 5, rtol=1e-12)
    assert diffusion_estimate(mdp, walks=3).mean == pytest.approx(2.5)
    # An option ends with the episode, also where it would go on.
    options = OptionSet(mdp, [[0, 0, 0, 0, 0]])
    np.testing.assert_allclose(hitting_times(mdp, options), (j - i) % 5, rtol=1e-12)


def test_a_state_that_is_hardly_ever_left_is_no_end():
    leave = 1e-10
    table = np.zeros((3, 1, 3))
    table[0, 0, 1:] = 0.5
    table[1, 0, [0, 1]] = leave, 1 - leave
    table[2, 0, 0] = 1.0
    times = eo.hitting_times(eo.MDP(table, start=0))
    assert times[1, 0] == pytest.approx(1 / leave, rel=1e-6)
    assert times[0, 1] == pytest.approx(3.0)


def test_a_row_that_sums_to_almost_one_is_still_an_end():
    # The sum may differ from 1 by 1e-9; whether a state is left does not depend on it.
    table = np.array([[0.0, 1.0], [0.0, 1 - 5e-10]])
    assert find_ends(eo.MDP(table)).tolist() == [False, True]


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_chances_of_any_float_type_are_computed_in_double_precision(kind, i_maze):
    options = eo.discover(i_maze, 4)
    for setting, number in (("stop_chance", kind(0.1)), ("option_chance", kind(0.3))):
        expected = eo.diffusion_time(i_maze, options, **{setting: float(number)})
        time = eo.diffusion_time(i_maze, options, **{setting: number})
        assert time == pytest.approx(expected, rel=1e-12)


def test_ends_without_a_start_continue_anywhere():
    mdp = eo.MDP(np.eye(3)[[1, 2, 2]])
    # From the end, each of the two other states has probability 1/2.
    np.testing.assert_allclose(hitting_times(mdp)[2], [3.0, 1.5, 0.0], rtol=1e-12)


def test_states_out_of_reach_are_left_out_and_logged(caplog):
    mdp = eo.maze("S..#.")
    times = hitting_times(mdp)
    np.testing.assert_allclose(times[:3, :3], hitting_times(eo.maze("S..")), rtol=1e-12)
    assert np.isnan(times[3]).all()
    assert np.isnan(times[:, 3]).all()
    assert diffusion_time(mdp) == pytest.approx(diffusion_time(eo.maze("...")))
    assert "state 3" in caplog.text


def test_diffusion_time_of_taxi_is_finite():
    assert 1_000 < diffusion_time(eo.from_env("Taxi-v4")) < 10_000


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking-v1"])
def test_diffusion_times_of_tasks_that_end_are_finite(name):
    mdp = eo.from_env(name)
    options = eo.discover(mdp, n_options=4)
    best = best_option_chance(mdp, options)
    assert 0 < best.diffusion_time <= best.primitive_diffusion_time < np.inf
    time = diffusion_time(mdp, options, option_chance=0.05)
    estimate = diffusion_estimate(
        mdp, options, option_chance=0.05, walks=100, confidence=0.999
    )
    assert estimate.low < time < estimate.high


def test_option_chance_auto_is_what_agents_use(four_rooms):
    options = eo.discover(four_rooms, n_options=8)
    chosen = tune_exploration(four_rooms, options)
    how = {"option_chance": chosen.option_chance, "stop_chance": chosen.stop_chance}
    automatic = diffusion_time(four_rooms, options, option_chance="auto")
    assert (
        automatic
        == diffusion_time(four_rooms, options, **how)
        < diffusion_time(four_rooms)
    )
    assert diffusion_time(four_rooms, option_chance="auto") == pytest.approx(
        620.769, abs=5e-4
    )
    assert diffusion_curve(four_rooms, options, option_chance="auto")[
        -1
    ] == pytest.approx(automatic)


# Progress and bad input


@pytest.mark.parametrize(
    "function",
    [
        hitting_times,
        diffusion_time,
        diffusion_curve,
        best_option_chance,
        diffusion_estimate,
    ],
)
def test_progress_counts_to_the_end(function, i_maze):
    seen = []
    function(
        i_maze,
        eo.discover(i_maze, n_options=2),
        progress=lambda *counts: seen.append(counts),
    )
    assert seen == sorted(set(seen))
    assert seen[-1][0] == seen[-1][1]


@pytest.mark.parametrize(
    "function", [diffusion_time, diffusion_curve, hitting_times, diffusion_estimate]
)
def test_bad_input_is_named(function, four_rooms, i_maze, corridor):
    islands = eo.maze("...#..\n...#..")
    trap = eo.MDP(np.eye(3)[[1, 2, 1]])
    endless = OptionSet(corridor, np.array([[1, 3, -1, 1, 1, 1, -1]]))
    slippery = slip(corridor)
    options = eo.discover(i_maze, n_options=2)
    for error, word, arguments, how in (
        (
            ValueError,
            "options of another",
            (i_maze, eo.discover(four_rooms, n_options=2)),
            {},
        ),
        (
            ValueError,
            "3, 4, 8, 9",
            (islands, OptionSet(islands, np.full((1, 10), -1))),
            {},
        ),
        (ValueError, "infinite", (trap, OptionSet(trap, np.full((1, 3), -1))), {}),
        (ValueError, "never terminates", (corridor, endless), {}),
        (
            ValueError,
            "never terminates",
            (slippery, OptionSet(slippery, np.full((1, 7), 1))),
            {},
        ),
        (ValueError, "1 state", (eo.maze("."), None), {}),
        (TypeError, "MDP", (np.eye(3), None), {}),
        (TypeError, "OptionSet", (i_maze, [1, 2]), {}),
        (ValueError, "option_chance", (i_maze, options), {"option_chance": 1.0}),
        (ValueError, "option_chance", (i_maze, options), {"option_chance": "best"}),
        (ValueError, "stop_chance", (i_maze, options), {"stop_chance": 1.1}),
    ):
        with pytest.raises(error, match=word):
            function(*arguments, **how)
    assert function(corridor, endless, stop_chance=0.1) is not None


def test_too_many_states_names_the_limit_and_the_remedy():
    with pytest.raises(ValueError, match=r"4,000.*diffusion_estimate"):
        diffusion_time(eo.maze("\n".join(["." * 60] * 70)))


@pytest.mark.parametrize(
    "setting", [{"walks": 1}, {"walks": 2**40}, {"max_steps": 0}, {"confidence": 1.0}]
)
def test_diffusion_estimate_bad_setting_is_named(i_maze, setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        diffusion_estimate(i_maze, **setting)


def test_best_option_chance_without_options_is_refused(i_maze):
    with pytest.raises(ValueError, match="no options"):
        best_option_chance(i_maze, None)


def test_search_of_the_chance_tells_a_progress_that_is_about_right(i_maze):
    calls = []
    options = eo.discover(i_maze, 4)
    best_option_chance(
        i_maze, options, progress=lambda done, total: calls.append((done, total))
    )
    # It ends early where the curve is simple, but not before a quarter of the work.
    last, total = calls[-2]
    assert total / 4 < last < total
    assert calls[-1] == (total, total)
