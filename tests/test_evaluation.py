"""Diffusion time: closed forms, invariants, slow and exact twins, huge values, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.sparse import diags_array

import eigenoptions as eo
from eigenoptions.evaluation import (
    diffusion_curve,
    diffusion_estimate,
    diffusion_time,
    hitting_times,
)
from eigenoptions.evaluation.exact import Walk
from eigenoptions.options.walks import endless, tables
from tests import reference
from tests.tables import make_options

PAPER = {"four-rooms": 620.769, "open-room": 271.965, "i-maze": 246.222}


def mean_off_diagonal(times):
    return times.sum() / (len(times) * (len(times) - 1))


def toward(mdp, state):
    """One option: the shortest way to a state."""
    return eo.solve(mdp, eo.Purpose(np.eye(mdp.n_states)[state], f"to {state}"), gamma=0.999)


def slip(mdp, chance=0.2):
    """The same moves, but a random one instead with the given chance."""
    P = mdp.transition.toarray().reshape(mdp.n_states, mdp.n_actions, -1)
    return eo.MDP((1 - chance) * P + chance * P.mean(axis=1, keepdims=True))


def ending(mdp, policy):
    """The options made to end: where one cannot, it stops at once in a state of the trap."""
    policy = policy.copy()
    for row in policy:
        while len(lost := endless(mdp, row)):
            row[lost[0]] = -1
    return policy


def random_walk(seed, *, chance=0.0):
    """A small random maze, one part of it, and a few random options that end."""
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(2, 6, size=2)
    free = rng.random((rows, cols)) < 0.7
    free[0, :2] = True
    stack, part = [(0, 0)], {(0, 0)}
    while stack:
        y, x = stack.pop()
        for cell in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
            if 0 <= cell[0] < rows and 0 <= cell[1] < cols and free[cell] and cell not in part:
                part.add(cell)
                stack.append(cell)
    text = "\n".join("".join(".#"[(y, x) not in part] for x in range(cols)) for y in range(rows))
    mdp = eo.maze(text + "\n")
    if chance:
        mdp = slip(mdp, chance)
    policy = rng.integers(0, 4, size=(rng.integers(0, 6), mdp.n_states))
    policy[rng.random(policy.shape) < 0.3] = -1
    return mdp, make_options(ending(mdp, policy.astype(np.int32)), 4)


# Closed forms -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(PAPER))
def test_the_paper_s_domains_without_options(name):
    assert diffusion_time(eo.maze(name)) == pytest.approx(PAPER[name], abs=5e-4)


def test_path_graph(corridor):
    # Two of four actions stay, also at the walls: from k to k + 1 takes 4 (k + 1) steps.
    i, j = np.meshgrid(np.arange(7), np.arange(7), indexing="ij")
    right = 2 * (j * (j + 1) - i * (i + 1))
    left = 2 * ((6 - j) * (7 - j) - (6 - i) * (7 - i))
    np.testing.assert_allclose(hitting_times(corridor), np.where(i < j, right, left), rtol=1e-12)


def test_cycle():
    n = 9
    P = np.stack([np.roll(np.eye(n), 1, axis=1), np.roll(np.eye(n), -1, axis=1)], axis=1)
    d = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    np.testing.assert_allclose(hitting_times(eo.MDP(P)), d * (n - d), rtol=1e-12)
    np.testing.assert_allclose(hitting_times(slip(eo.MDP(P), 0.5)), d * (n - d), rtol=1e-12)


def test_complete_graph():
    n = 6
    anywhere = eo.MDP(np.broadcast_to(np.eye(n), (n, n, n)))
    assert diffusion_time(anywhere) == pytest.approx(n, rel=1e-12)
    # A one-step option to state 0 is one more arrow to it from the n - 1 other states.
    options = make_options(np.where(np.arange(n) == 0, -1, 0)[None], n)
    times = hitting_times(anywhere, options)
    np.testing.assert_allclose(times[1:, 0], (n + 1) / 2, rtol=1e-12)


def test_no_options_is_a_sum_over_the_spectrum(domain):
    # n / (n - 1) * A * sum 1 / lambda_i(D - W): blocked moves are self-loops, so every state has A arrows.
    W = eo.graph(domain)
    values = np.linalg.eigvalsh((diags_array(W.sum(axis=1)) - W).toarray())[1:]
    n = domain.n_states
    assert diffusion_time(domain) == pytest.approx(n / (n - 1) * 4 * (1 / values).sum(), rel=1e-11)


def test_an_option_is_cut_where_it_touches_the_goal():
    # Three cells, option: right to the end. From 0 to 1: one of four moves and the option get there in one step.
    mdp = eo.maze("S.G")
    times = hitting_times(mdp, toward(mdp, 2))
    assert times[0, 1] == pytest.approx(5 / 2, rel=1e-12)
    # To 2: x0 = (4 + 2 x0 + x0 + x1 + 2) / 5, x1 = (4 + 2 x1 + x0 + 1) / 5 (up, down stay; left, right; option).
    x = np.linalg.solve([[2, -1], [-1, 3]], [6, 5])
    np.testing.assert_allclose(times[:2, 2], x, rtol=1e-12)


# Invariants -------------------------------------------------------------------------------------------------


def test_curve_adds_options_in_order(four_rooms):
    options = eo.discover(four_rooms, n_options=6)
    curve = diffusion_curve(four_rooms, options)
    assert curve.shape == (7,)
    for m in range(7):
        assert curve[m] == pytest.approx(diffusion_time(four_rooms, options[:m]), rel=1e-12)
        assert curve[m] == pytest.approx(mean_off_diagonal(hitting_times(four_rooms, options[:m])), rel=1e-9)


def test_relabelling_the_states_permutes_everything(rng):
    mdp, options = random_walk(5)
    n = mdp.n_states
    old = rng.permutation(n)  # state i of the new MDP was old[i]
    P = mdp.transition.toarray().reshape(n, 4, n)
    other = eo.MDP(P[old][:, :, old])
    policy = make_options(options.policy[:, old], 4)
    np.testing.assert_allclose(
        hitting_times(other, policy), hitting_times(mdp, options)[np.ix_(old, old)], rtol=1e-9
    )
    assert diffusion_time(other, policy) == pytest.approx(diffusion_time(mdp, options), rel=1e-9)


def test_options_that_start_nowhere_change_nothing(i_maze):
    nothing = make_options(np.full((3, 19), -1), 4)
    np.testing.assert_allclose(diffusion_curve(i_maze, nothing), PAPER["i-maze"], atol=5e-4)
    np.testing.assert_allclose(diffusion_curve(slip(i_maze), nothing), PAPER["i-maze"], atol=5e-4)


def test_one_step_options_are_actions(four_rooms):
    """An option that is over after one step is one more copy of its action."""
    inside = np.array([0] * 104)
    inside[four_rooms.successors[:, 0] == np.arange(104)] = -1  # nothing to do at the upper wall
    for s in np.flatnonzero(inside == 0):
        if inside[four_rooms.successors[s, 0]] == 0:
            inside[s] = -1  # every second row, so that it stops one cell up
    P = four_rooms.transition.toarray().reshape(104, 4, 104)
    doubled = np.concatenate([P, P[:, :1]], axis=1)
    doubled[inside < 0, 4] = P[inside < 0].mean(axis=1)
    times = hitting_times(four_rooms, make_options(inside[None], 4))
    np.testing.assert_allclose(times, reference.hitting_times(eo.MDP(doubled), []), rtol=1e-9)


def test_all_slip_forgets_the_action(i_maze):
    assert diffusion_time(slip(i_maze, 1.0)) == pytest.approx(diffusion_time(i_maze), rel=1e-12)


def test_same_answer_twice(four_rooms):
    options = eo.discover(four_rooms, n_options=5)
    assert diffusion_curve(four_rooms, options).tobytes() == diffusion_curve(four_rooms, options).tobytes()


# Slow twin against kernels ----------------------------------------------------------------------------------


CHANCES = st.sampled_from([None, None, 0.0, 0.05, 0.5, 0.9])


def digits(slow):
    """Relative tolerance for a twin by LU in double precision, whose error grows with the longest time."""
    return max(1e-8, 1e-15 * slow.max())


@given(st.integers(0, 10**6), CHANCES)
@settings(max_examples=80)
def test_twin_on_random_mazes_and_options(seed, option_chance):
    mdp, options = random_walk(seed)
    how = {"option_chance": option_chance}
    slow = reference.hitting_times(mdp, options.policy, option_chance)
    np.testing.assert_allclose(hitting_times(mdp, options, **how), slow, rtol=digits(slow))
    assert diffusion_time(mdp, options, **how) == pytest.approx(mean_off_diagonal(slow), rel=digits(slow))


@example(373, 0.05, None)  # 4e11 steps
@given(st.integers(0, 10**6), st.sampled_from([0.05, 0.3, 1.0]), CHANCES)
@settings(max_examples=50)
def test_twin_on_stochastic_mazes(seed, chance, option_chance):
    mdp, options = random_walk(seed, chance=chance)
    assert mdp.successors is None
    how = {"option_chance": option_chance}
    slow = reference.hitting_times(mdp, options.policy, option_chance)
    np.testing.assert_allclose(hitting_times(mdp, options, **how), slow, rtol=digits(slow))
    assert diffusion_time(mdp, options, **how) == pytest.approx(mean_off_diagonal(slow), rel=digits(slow))


@given(st.integers(0, 10**6), st.sampled_from([1, 100, 30_000_000]), st.sampled_from([1, 3, 512]))
@settings(max_examples=30)
def test_elimination_alone_and_in_small_groups(seed, room, group):
    mdp, options = random_walk(seed)
    slow = reference.hitting_times(mdp, options.policy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "eigenoptions.evaluation.exact.MAX_ERROR", -1.0
        )  # nothing is proved: every goal by elimination
        patch.setattr("eigenoptions.evaluation.exact.ELIMINATION_NUMBERS", room)
        patch.setattr("eigenoptions.evaluation.exact.GOALS_PER_JOB", group)
        np.testing.assert_allclose(hitting_times(mdp, options), slow, rtol=digits(slow))
        assert diffusion_time(mdp, options) == pytest.approx(mean_off_diagonal(slow), rel=digits(slow))


@given(st.integers(0, 10**6), st.sampled_from([1e-3, 1e-7, 1e-11]))
@settings(max_examples=30)
def test_the_bound_holds(seed, noise):
    """Whatever is wrong with an answer, its residual says at least so much."""
    from eigenoptions._kernels.diffusion import residuals

    mdp, options = random_walk(seed)
    walk = Walk(mdp, options)
    truth, unproved = walk._linear(mdp.successors, len(options))
    assert not len(unproved)
    wrong = truth * (1 + noise * np.random.default_rng(seed).uniform(-1, 1, truth.shape))
    bound, goals = np.empty(len(truth)), np.arange(len(truth))
    _, K, weights = walk.equations(mdp.successors, len(options))
    equations = mdp.successors, walk.ways, weights, goals, K
    residuals(*equations, wrong, np.empty_like(wrong), bound)
    np.fill_diagonal(truth, 1.0)
    np.fill_diagonal(wrong, 1.0)
    assert (np.abs(wrong / truth - 1) <= bound * 1.01 + 1e-11).all()
    wrong[0, 1] = np.nan
    residuals(*equations, wrong, np.empty_like(wrong), bound)
    assert bound[1] == np.inf


def solved_at_once(walk, m, room):
    """Steps by the linear solver alone: refinement and elimination, which could hide a mistake, are not needed."""
    from eigenoptions._kernels import diffusion

    passes = []

    def counted(*given):
        passes.append(residuals(*given))

    M, K, shares = walk.equations(walk.mdp.successors, m)
    residuals = diffusion.residuals
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diffusion, "residuals", counted)
        H, unproved = diffusion.hitting(walk.mdp.successors, walk.ways, shares, M, K, 1e-9, room)
    assert (len(unproved), len(passes)) == (0, 1)
    return H


@given(st.integers(0, 10**6), CHANCES, st.sampled_from([1, 20, 30_000_000]))
@settings(max_examples=40)
def test_the_fast_path_is_right_at_once(seed, option_chance, room):
    mdp, options = random_walk(seed)
    slow = reference.hitting_times(mdp, options.policy, option_chance)
    # Above 100,000 steps the first solution cannot be proved to nine digits, and refinement is right.
    assume(slow.max() < 1e5)
    fast = solved_at_once(Walk(mdp, options, option_chance), len(options), room)
    np.testing.assert_allclose(fast, slow, rtol=1e-8)


@pytest.mark.parametrize("room", [2_000, 30_000_000])
def test_the_fast_path_serves_the_paper_s_domains(domain, room):
    options = eo.discover(domain, min(64, 2 * domain.n_states - 2))
    fast = solved_at_once(Walk(domain, options), len(options), room)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eigenoptions.evaluation.exact.MAX_ERROR", -1.0)
        np.testing.assert_allclose(fast, hitting_times(domain, options), rtol=1e-9)


@pytest.mark.parametrize("n", range(1, 8))
def test_small_systems_are_solved(n, rng):
    """Odd and even sizes: rows are taken two at a time."""
    from eigenoptions._kernels.diffusion import _solve

    G, b = np.eye(n) + rng.random((n, n)) / n, rng.random(n)
    exact = np.linalg.solve(G.T, b)
    _solve(G, b)
    np.testing.assert_allclose(b, exact, rtol=1e-12)


@pytest.mark.parametrize("option_chance", [None, 0.0, 0.4])
@pytest.mark.parametrize("chance", [0.0, 0.3])
def test_walk_that_covers_everything(chance, option_chance):
    from eigenoptions._kernels.walking import cover

    mdp, options = random_walk(11, chance=chance)
    n = mdp.n_states
    place, count = np.array([2, -1, 0, n - 1]), np.array([99], dtype=np.uint64)
    touched = np.zeros(n, dtype=np.uint8)
    touched[2] = 1
    total = 0.0
    # In small pieces: each call continues where the last one stopped.
    while place[3]:
        total += cover(*tables(mdp, options.policy, option_chance), place, count, touched, 7)
    first = reference.cover(mdp, options.policy, 2, 99, option_chance)
    assert (total, place[2]) == (sum(first), max(first))


# Right when huge --------------------------------------------------------------------------------------------


def test_linear_solver_fails_and_ours_does_not():
    """A corridor and an option back to its start: steps grow like 2.6 to the length. Against exact fractions."""
    mdp = eo.maze("." * 48)
    options = toward(mdp, 0)
    exact = reference.exact_hitting_times(mdp, options.policy, 47)
    assert exact[0] == 147502012759828622736
    rows, sides = reference.walk_equations(mdp, options.policy, 47)
    M = np.zeros((len(rows), len(rows)))
    place = {q: i for i, q in enumerate(sorted(rows))}
    for q, row in rows.items():
        for r, x in row.items():
            M[place[q], place[r]] = x
    naive = np.linalg.solve(M, [float(sides[q]) for q in sorted(rows)])[0]
    assert abs(naive / float(exact[0]) - 1) > 0.01  # no digit left
    times = hitting_times(mdp, options)
    np.testing.assert_allclose(times[:, 47], [float(x) for x in exact], rtol=1e-12)
    assert (times >= 0).all()
    everything = [reference.exact_hitting_times(mdp, options.policy, g) for g in (0, 20, 40)]
    np.testing.assert_allclose(times[:, [0, 20, 40]].T, np.array(everything, dtype=float), rtol=1e-9)
    assert diffusion_time(mdp, options) == pytest.approx(mean_off_diagonal(times), rel=1e-12)


@pytest.mark.parametrize(("chance", "option_chance"), [(0.0, None), (0.1, None), (0.0, 0.75)])
@pytest.mark.parametrize("seed", range(4))
def test_exact_fractions_on_long_thin_mazes(seed, chance, option_chance):
    """Random options on a comb: whatever the size of the answer, it has its digits."""
    rng = np.random.default_rng(seed)
    mdp = eo.maze("." * 16 + "\n" + "#." * 8)
    mdp = slip(mdp, chance) if chance else mdp
    n = mdp.n_states
    policy = np.where(rng.random((3, n)) < 0.15, -1, rng.choice([1, 3, 3, 3], size=(3, n))).astype(np.int32)
    options = make_options(ending(mdp, policy), 4)
    times = hitting_times(mdp, options, option_chance=option_chance)
    for goal in (0, n // 2, 15):
        slow = reference.exact_hitting_times(mdp, options.policy, goal, option_chance)
        exact = [float(x) for x in slow]
        np.testing.assert_allclose(times[:, goal], exact, rtol=1e-9)


def test_larger_maze_where_few_options_are_exponential():
    """Three rooms in a row; with one option the mean is beyond what LU resolves, and never negative."""
    room = "." * 8
    mdp = eo.maze("\n".join([f"{room}#{room}#{room}"] * 5 + [f"{room}.{room}.{room}"]))
    curve = diffusion_curve(mdp, eo.discover(mdp, n_options=4))
    assert (curve > 0).all()
    assert curve[1] > 1e9


def test_beyond_double_precision_is_said():
    mdp = eo.maze("." * 900)
    with pytest.raises(OverflowError, match="beyond 1e290"):
        diffusion_time(mdp, toward(mdp, 0))


# Progress and bad input -------------------------------------------------------------------------------------


def test_progress_is_reported(i_maze, monkeypatch):
    monkeypatch.setattr("eigenoptions.evaluation.exact.GOALS_PER_JOB", 5)
    options = eo.discover(i_maze, n_options=3)
    for call, total in (
        (lambda p: diffusion_curve(i_maze, options, progress=p), 4),
        (lambda p: diffusion_time(slip(i_maze), progress=p), 19),
        (lambda p: hitting_times(slip(i_maze), progress=p), 19),
        (lambda p: diffusion_estimate(i_maze, walks=3, progress=p), 3),
    ):
        seen = []
        call(lambda done, of, seen=seen: seen.append((done, of)))
        assert seen[-1] == (total, total)
        assert [done for done, _ in seen] == sorted({done for done, _ in seen})


@pytest.mark.parametrize("function", [diffusion_time, diffusion_curve, hitting_times, diffusion_estimate])
class TestBadInput:
    def test_options_of_another_mdp(self, function, four_rooms, i_maze):
        with pytest.raises(ValueError, match="options of another state space"):
            function(i_maze, eo.discover(four_rooms, n_options=2))

    def test_states_that_cannot_be_reached(self, function):
        islands = eo.maze("...#..\n...#..")
        options = make_options(np.full((1, 10), -1), 4)
        with pytest.raises(ValueError, match=r"4 states \(3, 4, 8, 9\) cannot be reached from state 0"):
            function(islands, options)

    def test_one_way(self, function):
        trap = eo.MDP(np.array([[[0, 1.0]], [[0, 1.0]]]))
        with pytest.raises(ValueError, match="infinite: state 1 cannot reach state 0"):
            function(trap, make_options(np.full((1, 2), -1), 1))

    def test_option_that_never_ends(self, function, corridor):
        back_and_forth = np.array([[1, 3, -1, 1, 1, 1, -1]])
        with pytest.raises(ValueError, match=r"option 'option 1' never ends from 2 states \(0, 1\)"):
            function(corridor, make_options(back_and_forth, 4))
        with pytest.raises(ValueError, match="'option 1' never ends from 7 states"):
            function(slip(corridor), make_options(np.full((1, 7), 1), 4))

    def test_single_state(self, function):
        with pytest.raises(ValueError, match="this MDP has 1 state"):
            function(eo.maze("."), make_options(np.full((1, 1), -1), 4))

    def test_wrong_things(self, function, i_maze):
        with pytest.raises(TypeError, match="is that of an MDP, got ndarray"):
            function(np.eye(3), None)
        with pytest.raises(TypeError, match="options must be an OptionSet or None, got list"):
            function(i_maze, [1, 2])


@pytest.mark.parametrize("function", [diffusion_time, hitting_times])
def test_too_many_states_names_the_limit_and_the_way_out(function):
    with pytest.raises(ValueError, match="at most 4,000 states, got 4,200: use diffusion_estimate"):
        function(eo.maze("\n".join(["." * 60] * 70)))


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ({"walks": 1}, "walks must be a whole number from 2, got 1"),
        ({"walks": True}, "walks must be a whole number from 2, got True"),
        ({"max_steps": 0}, "max_steps must be a whole number from 1, got 0"),
        ({"confidence": 1.0}, r"confidence must be in \(0, 1\), got 1.0"),
    ],
)
def test_bad_settings_of_the_estimate(i_maze, setting, complaint):
    with pytest.raises(ValueError, match=complaint):
        diffusion_estimate(i_maze, **setting)


def test_walks_around_a_cycle_touch_each_state_in_its_turn():
    """One action: the states are touched after 1, 2, ..., n - 1 steps, in every walk."""
    n = 6
    cycle = eo.MDP(np.roll(np.eye(n), 1, axis=1))
    found = diffusion_estimate(cycle, walks=4)
    assert (found.low, found.mean, found.high) == (n / 2, n / 2, n / 2)
    # After three steps the mean is at least that of 1, 2, 3, 3 and 3.
    with pytest.raises(ValueError, match=r"walk 1 of 4 had not touched .* makes 2\.4 or more"):
        diffusion_estimate(cycle, walks=4, max_steps=3)
