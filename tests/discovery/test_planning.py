"""One solver: slow twins, Theorem 3.1 as a property, symmetries, ties, bad input."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eigenoptions as eo
from eigenoptions.discovery.method import choose_goal_discount
from eigenoptions.mdp.chains import compute_lengths
from eigenoptions.mdp.mazes import rooms_map
from eigenoptions.options.solver import MAX_GAMMA
from tests import reference
from tests.tables import make_slippery


def random_mdp(seed, most=15, actions=(1, 2, 3, 5)):
    """Certain moves, mixed ones, loops, absorbing states and pieces: whatever comes."""
    rng = np.random.default_rng(seed)
    S = int(rng.integers(1, most))
    A = int(rng.choice(actions))
    P = np.eye(S)[rng.integers(S, size=(S, A))]
    if rng.random() < 0.6:
        mixed = rng.random((S, A)) < rng.random()
        P[mixed] = rng.dirichlet(np.full(S, 0.2), size=int(mixed.sum()))
    return eo.MDP(P), rng


def random_potential(rng, S):
    kind = rng.integers(4)
    if kind == 0:
        return rng.standard_normal(S)
    if kind == 1:
        return np.round(rng.standard_normal(S))  # many ties
    if kind == 2:
        return 1e-7 * rng.standard_normal(S) - 3e-7
    return np.eye(S)[rng.integers(S)]


def agrees(mdp, potential, gamma, row, value):
    """Whether values and policy are those of value iteration.

    Values to 1e-9, the policy wherever no two choices are close.
    """
    q, v = reference.value_iteration(mdp, potential, gamma)
    scale = max(np.abs(potential).max(), 1e-300)
    np.testing.assert_allclose(value, v, rtol=0, atol=1e-9 * scale)

    # The best action is clear if it is neither close to the next nor to stopping.
    best = q.max(axis=1)
    runner_up = np.full(len(q), -np.inf)
    if q.shape[1] > 1:
        runner_up = np.sort(q, axis=1)[:, -2]
    is_clear = np.abs(best) > 1e-10 * scale
    is_clear &= best - runner_up > 1e-10 * scale
    expected = np.where(best > 0, q.argmax(axis=1), -1)
    np.testing.assert_array_equal(row[is_clear], expected[is_clear])

    # Where choices are close, the one taken is one of the best.
    acting = np.flatnonzero(row >= 0)
    assert (q[acting, row[acting]] >= best[acting] - 1e-10 * scale).all()
    assert (best[row < 0] < 1e-10 * scale).all()


# Against slow twins


@settings(max_examples=150)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.5, 0.9, 0.99]))
def test_solve_agrees_with_value_iteration(seed, gamma):
    mdp, rng = random_mdp(seed)
    potentials = [random_potential(rng, mdp.n_states) for _ in range(3)]
    options = eo.solve(mdp, [eo.Purpose(f, exact=True) for f in potentials], gamma)
    for f, row, value in zip(potentials, options.policy, options.value, strict=True):
        agrees(mdp, f, gamma, row, value)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9, 0.99, 0.999])
def test_solve_of_eigenpurposes_agrees_with_value_iteration(gamma):
    for mdp in (
        eo.maze("i-maze"),
        make_slippery(eo.maze("i-maze")),
        make_slippery(eo.maze("S..#\n..G.\n.#.."), 0.4),
    ):
        sp = eo.spectrum(eo.graph(mdp), k=6)
        options = eo.solve(mdp, eo.eigenpurposes(sp), gamma)
        for purpose, row, value in zip(
            eo.eigenpurposes(sp), options.policy, options.value, strict=True
        ):
            agrees(mdp, purpose.potential, gamma, row, value)


@pytest.mark.parametrize(
    ("n_actions", "dtype"),
    [(1, np.int8), (5, np.int8), (127, np.int8), (130, np.int16)],
)
def test_solve_takes_any_number_of_actions(n_actions, dtype, rng):
    """Only the last action of each state goes up; the others stay."""
    S = 9
    P = np.tile(np.eye(S)[:, None], (1, n_actions, 1))
    P[:, -1] = np.eye(S)[np.minimum(np.arange(S) + 1, S - 1)]
    f = np.sort(rng.random(S))
    for mdp in (eo.MDP(P), eo.MDP(0.9 * P + 0.1 * np.eye(S)[:, None])):
        options = eo.solve(mdp, eo.Purpose(f))
        assert options.policy.dtype == dtype
        assert options.policy.tolist() == [[n_actions - 1] * (S - 1) + [-1]]
        assert options.n_actions == n_actions
        agrees(mdp, f, 0.9, options.policy[0], options.value[0])


# Closed forms


def test_solve_with_gamma_zero_goes_to_the_best_neighbour(four_rooms, rng):
    f = rng.standard_normal(104)
    near = f[four_rooms.successors]
    expected = np.where(near.max(axis=1) > f, near.argmax(axis=1), -1)
    options = eo.solve(four_rooms, eo.Purpose(f), gamma=0)
    np.testing.assert_array_equal(options.policy[0], expected)
    np.testing.assert_allclose(
        options.value[0], np.maximum(near.max(axis=1) - f, 0), atol=1e-15
    )


def test_a_goal_is_reached_by_a_shortest_path_worth_gamma_to_the_distance(four_rooms):
    for gamma in (0.5, 0.9, 0.99):
        options = eo.solve(four_rooms, eo.Purpose(np.eye(104)[9]), gamma)
        steps = reference.distances(four_rooms, 9)
        assert np.flatnonzero(options[0].termination).tolist() == [9]
        expected = np.where(steps > 0, gamma ** (steps - 1), 0.0)
        np.testing.assert_allclose(options.value[0], expected, rtol=1e-12)
        walked = [
            reference.walk(four_rooms.successors, options.policy[0], s)
            for s in range(104)
        ]
        assert walked == [(int(d), 9) for d in steps]
        assert options.mean_length[0] == pytest.approx(steps.sum() / 103)


def test_solve_crosses_a_valley_if_gamma_is_large():
    """Down 1, then up 3: worth it if gamma is over a third."""
    mdp = eo.maze("...")
    f = np.array([0.0, -1.0, 2.0])
    for gamma, expected in (
        (0.3, [-1, 1, -1]),
        (1 / 3, [-1, 1, -1]),
        (0.34, [1, 1, -1]),
    ):
        assert eo.solve(mdp, eo.Purpose(f), gamma).policy[0].tolist() == expected


def test_solve_takes_the_first_of_equal_actions(open_room):
    # In the middle: two ways are equally short from everywhere off its row and column.
    goal = 44
    row = eo.solve(open_room, eo.Purpose(np.eye(100)[goal])).policy[0].reshape(10, 10)
    assert (row[5:, :4] == 0).all()  # up before right
    assert (row[5:, 5:] == 0).all()  # up before left
    assert (row[:4, :4] == 1).all()  # right before down
    assert (row[:4, 5:] == 2).all()  # down before left


def test_solve_ties_go_to_terminate_and_near_ties_to_the_first():
    mdp = eo.maze("...")

    def row(*potential, **fields):
        return eo.solve(mdp, eo.Purpose(potential, **fields)).policy[0].tolist()

    assert row(0.0, 0.5, 1.0) == [1, 1, -1]

    # The middle is higher by less than the tolerance, then by more.
    assert row(1.0, 1.0 + 5e-13, 1.0, exact=True) == [-1, -1, -1]
    assert row(1.0, 1.0 + 5e-10, 1.0) == [-1, -1, -1]
    assert row(1.0, 1.0 + 1e-11, 1.0, exact=True) == [1, -1, 3]
    assert row(1.0, 1.0 + 1e-8, 1.0) == [1, -1, 3]

    # Left is better by less than the tolerance, so right, which comes first, is taken.
    assert row(1.0 + 5e-13, 0.0, 1.0, exact=True) == [-1, 1, -1]
    assert row(1.0 + 1e-10, 0.0, 1.0) == [-1, 1, -1]

    # Left is better by more.
    assert row(1.0 + 1e-10, 0.0, 1.0, exact=True) == [-1, 3, -1]
    assert row(1.0 + 1e-8, 0.0, 1.0) == [-1, 3, -1]


@pytest.mark.parametrize("gamma", [0.0, 0.9, 0.999, 0.99999])
def test_solve_of_a_constant_potential_terminates_everywhere(four_rooms, gamma, rng):
    for mdp in (four_rooms, make_slippery(four_rooms)):
        flat = [0.0, 1.0, 0.1, -1 / 3, 1e-8, 7.7e8]
        purposes = [eo.Purpose(np.full(104, c)) for c in flat]
        purposes += [
            eo.Purpose(c * (1 + 1e-15 * rng.standard_normal(104))) for c in flat
        ]
        options = eo.solve(mdp, purposes, gamma)
        assert (options.policy == -1).all()
        assert (options.mean_length == 0).all()
        assert (options.value <= 1e-12 * np.abs([p.potential for p in purposes])).all()


# Theorem 3.1


@settings(max_examples=150)
@given(st.integers(0, 10**6), st.floats(0.0, 0.9999))
def test_every_option_terminates_with_probability_one(seed, gamma):
    mdp, rng = random_mdp(seed)
    potentials = [random_potential(rng, mdp.n_states) for _ in range(4)]
    options = eo.solve(mdp, [eo.Purpose(f, exact=True) for f in potentials], gamma)
    assert (options.policy == -1).any(axis=1).all()
    assert np.isfinite(options.mean_length).all()
    for row in options.policy:
        steps = compute_lengths(mdp, row)
        assert np.isfinite(steps).all()
        assert ((steps == 0) == (row < 0)).all()

    # It stops at every top of its potential.
    for option, value in zip(options, options.value, strict=True):
        assert (value[option.termination] <= 1e-9).all()


def test_options_terminate_at_local_maxima_of_their_potential(four_rooms):
    purposes = eo.eigenpurposes(eo.spectrum(eo.graph(four_rooms), k=20))
    options = eo.solve(four_rooms, purposes)
    for purpose, option in zip(purposes, options, strict=True):
        f = purpose.potential
        stops = np.flatnonzero(option.termination)
        assert (f[four_rooms.successors[stops]].max(axis=1) <= f[stops] + 1e-12).all()
        assert int(f.argmax()) in stops


# Symmetries


def test_negated_purpose_mirrors_the_option_in_the_i_maze(i_maze):
    """Upside down the I is itself, and its odd vectors change sign.

    Up and down change places, and so do left and right.
    """
    sp = eo.spectrum(eo.graph(i_maze), k=10)
    options = eo.solve(i_maze, eo.eigenpurposes(sp))
    turn = np.array([2, 3, 0, 1, -1])
    odd = 0
    for i in range(1, 10):
        plus = options[2 * (i - 1)]
        minus = options[2 * (i - 1) + 1]
        v = sp.vectors[:, i]
        if np.allclose(v[::-1], -v, atol=1e-9):
            odd += 1
            np.testing.assert_array_equal(minus.policy, turn[plus.policy[::-1]])
            np.testing.assert_allclose(minus.value, plus.value[::-1], atol=1e-12)
            assert minus.mean_length == pytest.approx(plus.mean_length)
    assert odd >= 4


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.9, 0.99]))
def test_permuted_states_permute_the_options(seed, gamma):
    mdp, rng = random_mdp(seed, actions=(1, 2, 4))
    S = mdp.n_states
    A = mdp.n_actions
    order = rng.permutation(S)
    P = mdp.transition.toarray().reshape(S, A, S)
    other = eo.MDP(P[order][:, :, order])
    f = rng.standard_normal(S)
    options = eo.solve(mdp, eo.Purpose(f), gamma)
    permuted = eo.solve(other, eo.Purpose(f[order]), gamma)
    np.testing.assert_array_equal(permuted.policy[0], options.policy[0][order])
    np.testing.assert_allclose(permuted.value, options.value[:, order], atol=1e-12)
    np.testing.assert_allclose(permuted.mean_length, options.mean_length, rtol=1e-9)


@given(st.integers(0, 10**6))
def test_scale_and_offset_of_the_potential_do_not_matter(seed):
    mdp, rng = random_mdp(seed)
    f = rng.standard_normal(mdp.n_states)
    plain = eo.solve(mdp, eo.Purpose(f))
    for scale in (2.0**-40, 2.0**40):
        scaled = eo.solve(mdp, eo.Purpose(scale * f))
        np.testing.assert_array_equal(scaled.policy, plain.policy)
        np.testing.assert_allclose(
            scaled.value, scale * plain.value, rtol=1e-12, atol=1e-14 * scale
        )
    lifted = eo.solve(mdp, eo.Purpose(f + 0.25))
    np.testing.assert_allclose(lifted.value, plain.value, atol=1e-12)


# Batches and orders


@pytest.mark.parametrize("many", [1, 7, 8, 9, 17])
@pytest.mark.parametrize("stochastic", [False, True])
def test_batch_gives_the_same_rows_as_single_purposes(i_maze, many, stochastic, rng):
    mdp = make_slippery(i_maze) if stochastic else i_maze
    purposes = [
        eo.Purpose(rng.standard_normal(19) * 10.0 ** rng.integers(-3, 3), f"p{i}")
        for i in range(many)
    ]
    together = eo.solve(mdp, purposes)
    assert len(together) == many
    for i, p in enumerate(purposes):
        alone = eo.solve(mdp, p)
        assert together.labels[i] == alone.labels[0] == f"p{i}"
        np.testing.assert_array_equal(together.policy[i], alone.policy[0])
        np.testing.assert_allclose(
            together.value[i],
            alone.value[0],
            rtol=0,
            atol=1e-12 * np.abs(p.potential).max(),
        )


def winding(high, wide):
    """One long corridor, folded: far in steps where it is near in numbers."""
    wall = "#" * (wide - 1)
    rows = ["." * wide]
    for turn in range(high - 1):
        opening_right = turn % 2 == 0
        if opening_right:
            rows.append(wall + ".")
        else:
            rows.append("." + wall)
        rows.append("." * wide)
    return "\n".join(rows)


@pytest.mark.parametrize(
    "text",
    [
        winding(20, 40),
        "." * 700,
        rooms_map(5, 5, 5),
        ".#" * 300 + "\n" + "." * 600,
        "\n".join("." * 700),
    ],
)
def test_values_equal_sweeps_state_by_state(text, rng):
    """Large corridors are solved in another numbering, the twin in reading order."""
    mdp = eo.maze(text)
    assert mdp.n_states > 512
    f = rng.standard_normal(mdp.n_states)
    smooth = np.cumsum(rng.standard_normal(mdp.n_states))
    for potential in (f, smooth):
        options = eo.solve(mdp, eo.Purpose(potential), gamma=0.99)
        x = reference.climbed(mdp.successors, potential, 0.99)
        q = x[mdp.successors] - potential[:, None]
        best = q.max(axis=1)
        np.testing.assert_allclose(
            options.value[0], np.maximum(best, 0.0), rtol=0, atol=1e-12
        )
        expected = np.where(best > 1e-11, q.argmax(axis=1), -1)
        np.testing.assert_array_equal(options.policy[0], expected)


def test_large_batch_gives_the_same_options_as_small_ones(rng):
    """Above 200,000 entries the sweeps are compiled."""
    mdp = eo.maze("rooms:5x5")
    potentials = np.cumsum(rng.standard_normal((80, mdp.n_states)), axis=1)
    assert potentials.size > 200_000
    purposes = [eo.Purpose(f) for f in potentials]
    together = eo.solve(mdp, purposes, 0.99)
    for low in range(0, 80, 40):
        part = eo.solve(mdp, purposes[low : low + 40], 0.99)
        np.testing.assert_array_equal(part.policy, together.policy[low : low + 40])
        np.testing.assert_allclose(
            part.value, together.value[low : low + 40], rtol=0, atol=1e-12
        )


def test_solve_reports_progress(four_rooms):
    calls = []
    purposes = [eo.Purpose(np.eye(104)[i]) for i in range(3)]
    eo.solve(four_rooms, purposes, progress=lambda *numbers: calls.append(numbers))
    assert calls[-1] == (3, 3)


# Odd shapes


def test_solve_of_no_purpose_is_an_empty_set(four_rooms, slippery):
    for mdp in (four_rooms, slippery):
        options = eo.solve(mdp, [])
        assert len(options) == 0
        assert options.n_states == mdp.n_states
        options.check(mdp)


def test_solve_takes_an_iterator_of_integer_potentials(corridor):
    options = eo.solve(corridor, (eo.Purpose([0, 0, 0, 1, 0, 0, i]) for i in range(2)))
    assert options.labels == ("option 1", "option 2")
    assert options.policy[0].tolist() == [1, 1, 1, -1, 3, 3, 3]


def test_initiation_mask_restricts_the_option(corridor):
    inside = [False, True, True, True, True, False, True]
    options = eo.solve(corridor, eo.Purpose(np.eye(7)[6], "end", initiation=inside))
    assert options.policy[0].tolist() == [-1, 1, 1, 1, 1, -1, -1]
    assert options.value[0][[0, 5]].tolist() == [0.0, 0.0]
    assert options.mean_length[0] == pytest.approx((4 + 3 + 2 + 1) / 4)


def test_solve_handles_one_way_moves():
    """0 <-> 1 -> 2, and 2 holds what comes; the best is behind the trap's door."""
    P = np.eye(3)[[[1, 0], [0, 2], [2, 2]]]
    options = eo.solve(
        eo.MDP(P), [eo.Purpose([1.0, 0.0, 0.5]), eo.Purpose([0.0, 0.1, 1.0])]
    )
    assert options.policy.tolist() == [[-1, 0, -1], [0, 1, -1]]


def test_solve_records_its_settings(four_rooms):
    options = eo.solve(
        four_rooms,
        eo.Purpose(np.eye(104)[3], "here", eigenvalue=0.5),
        0.7,
        provenance={"method": "mine"},
    )
    assert options.provenance == {"gamma": 0.7, "mdp": "four-rooms", "method": "mine"}
    assert options.eigenvalues.tolist() == [0.5]
    assert options.mdp is four_rooms


# Lengths


@given(st.integers(0, 10**6))
def test_lengths_in_deterministic_dynamics_count_steps(seed):
    rng = np.random.default_rng(seed)
    S = int(rng.integers(1, 60))
    A = int(rng.choice([1, 2, 4, 9]))
    successors = rng.integers(S, size=(S, A))
    row = np.where(rng.random(S) < 0.2, -1, rng.integers(A, size=S))
    expected = []
    for state in range(S):
        walk = reference.walk(successors, row, state)
        expected.append(np.inf if walk is None else walk[0])
    mdp = eo.MDP.from_successors(successors)
    assert compute_lengths(mdp, row).tolist() == expected


def test_lengths_in_stochastic_dynamics_are_expectations():
    """A step that succeeds with chance p takes 1 / p tries."""
    for p in (0.5, 0.1, 1e-3):
        P = np.zeros((4, 1, 4))
        for s in range(3):
            P[s, 0, s] = 1 - p
            P[s, 0, s + 1] = p
        P[3, 0, 3] = 1.0
        expected = np.array([3, 2, 1, 0]) / p
        np.testing.assert_allclose(
            compute_lengths(eo.MDP(P), np.array([0, 0, 0, -1])), expected, rtol=1e-9
        )


def test_lengths_are_infinite_where_an_option_may_never_terminate(corridor):
    inf = np.inf
    lengths = compute_lengths(corridor, np.array([1, 3, 1, 1, -1, 1, 1]))
    assert lengths.tolist() == [inf, inf, 2, 1, 0, inf, inf]
    assert (compute_lengths(corridor, np.zeros(7, dtype=int)) == inf).all()

    # From 1 a coin decides between the stop and a trap; from 2 the stop is sure, in the
    # end.
    P = np.zeros((4, 1, 4))
    P[0, 0, 0] = 1.0
    P[1, 0, [0, 3]] = 0.5
    P[2, 0, [2, 3]] = 0.5
    P[3, 0, 3] = 1.0
    lengths = compute_lengths(eo.MDP(P), np.array([0, 0, 0, -1]))
    assert lengths.tolist() == [inf, inf, 2.0, 0.0]


# Wrong calls


@pytest.mark.parametrize("gamma", [1, -0.1, np.nan, "0.9", None])
def test_solve_with_a_wrong_gamma_is_refused(corridor, gamma):
    with pytest.raises(ValueError, match="gamma"):
        eo.solve(corridor, eo.Purpose(np.zeros(7)), gamma)


@pytest.mark.parametrize(
    "purpose",
    [
        eo.Purpose(np.zeros(8), "e2+"),
        eo.Purpose(np.zeros((7, 1)), "e2+"),
        eo.Purpose(np.full(7, np.nan), "e2+"),
        eo.Purpose([0, 0, 0, 1.7e308, 0, 0, -1.7e308], "e2+"),
        eo.Purpose(np.zeros(7), "e2+", initiation=np.ones(6, bool)),
        eo.Purpose(None, "e2+"),
    ],
)
def test_solve_with_a_wrong_potential_names_the_purpose(corridor, purpose):
    with pytest.raises(ValueError, match=r"e2\+"):
        eo.solve(corridor, [eo.Purpose(np.zeros(7)), purpose])


@pytest.mark.parametrize("wrong", [np.arange(3.0), "e2+", [np.arange(3.0)]])
def test_solve_of_what_is_no_purpose_is_refused(wrong):
    with pytest.raises(TypeError, match="purpose"):
        eo.solve(eo.maze("S.G"), wrong)


# The limit of gamma


@pytest.mark.parametrize("name", ["four-rooms", "open-room"])
def test_at_the_limit_of_gamma_options_end_and_rounding_chooses_nothing(name, rng):
    """Errors as another BLAS makes them leave every action as it is."""
    mdp = eo.maze(name)
    gamma = 1 - 1e-7
    purposes = eo.eigenpurposes(eo.spectrum(eo.graph(mdp)))
    options = eo.solve(mdp, purposes, gamma)
    assert np.isfinite(options.mean_length).all()

    noisy = []
    for purpose in purposes:
        noise = 1e-13 * rng.standard_normal(mdp.n_states)
        noisy.append(eo.Purpose(purpose.potential + noise, purpose.label))
    np.testing.assert_array_equal(eo.solve(mdp, noisy, gamma).policy, options.policy)


def test_gamma_above_the_limit_is_refused():
    for gamma in (1 - 1e-8, 1 - 1e-13, 1 - 1e-16):
        with pytest.raises(ValueError, match="1e-7"):
            eo.discover("i-maze", 2, gamma=gamma)


def test_discount_of_goals_stays_within_the_limit():
    huge = SimpleNamespace(n_states=10**9)
    assert choose_goal_discount(huge) <= MAX_GAMMA
