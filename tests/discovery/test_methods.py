"""Each discovery method against a slow twin that follows its paper; bad input.

From tables and from samples.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from gymnasium.spaces import Discrete
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions._registry import discovery_methods
from eigenoptions.discovery import discover
from eigenoptions.discovery.method import discovery_method, get_method
from eigenoptions.discovery.methods import successor_goals
from eigenoptions.discovery.methods.bottleneck import find_passages
from eigenoptions.discovery.methods.community import find_communities
from eigenoptions.discovery.methods.diffusion import compute_diffusion_distances
from eigenoptions.discovery.methods.successor_goals import choose_landmarks
from eigenoptions.mdp.betweenness import compute_betweenness
from eigenoptions.mdp.chains import uniform_walk
from eigenoptions.options.purposes import find_local_maxima
from eigenoptions.samples.walking import walk
from eigenoptions.spectra.representations import (
    learn_representation,
    successor_representation,
)
from tests import reference
from tests.graphs import complete, cycle, path, product, random_maze, star, together
from tests.tables import make_slippery, same

# Two rooms; the door at the top leads right only, the one at the bottom left only.
ONE_WAY = "S..#...\n.......\n...#...\n.......\n...#..G"


def one_way():
    mdp = eo.maze(ONE_WAY)
    successors = np.array(mdp.successors)
    for row, blocked in ((1, 3), (3, 1)):
        door = int(np.flatnonzero((mdp.coords == (row, 3)).all(axis=1))[0])
        successors[door, blocked] = door
    return eo.MDP(np.eye(mdp.n_states)[successors], coords=mdp.coords, start=mdp.start)


# Covering


def test_covering_options_connect_the_ends_of_the_fiedler_vector(four_rooms):
    W = eo.graph(four_rooms).toarray()
    goals: dict[int, None] = {}
    for _ in range(6):
        values, vectors = np.linalg.eigh(np.diag(W.sum(axis=1)) - W)
        assert values[2] - values[1] > 1e-6
        ends = int(vectors[:, 1].argmax()), int(vectors[:, 1].argmin())
        W[ends] = 1.0
        W[ends[::-1]] = 1.0
        goals |= dict.fromkeys(sorted(ends))
    options = discover(four_rooms, 6, "covering")
    assert set(options.goals) <= set(goals)
    assert set(options.goals[:2]) == set(list(goals)[:2])
    for goal, row in zip(options.goals, options.policy, strict=True):
        assert np.flatnonzero(row < 0).tolist() == [goal]


def test_covering_of_a_complete_graph_raises():
    triangle = eo.MDP(np.eye(3)[[[1, 2], [0, 2], [0, 1]]])
    with pytest.raises(ValueError, match="no options"):
        discover(triangle, 2, "covering")


# Diffusion and betweenness


@pytest.mark.parametrize("t", [1, 4, 9])
def test_diffusion_distances_agree_with_the_papers_sum(four_rooms, t):
    W = eo.graph(four_rooms).toarray()
    degree = W.sum(axis=1)
    values, U = np.linalg.eigh(np.eye(104) - W / np.sqrt(np.outer(degree, degree)))
    right = U / np.sqrt(degree)[:, None]
    left = U * np.sqrt(degree)[:, None]
    w = (1.0 - values / 2.0) ** t
    differences = np.zeros((104, 104))
    for k in range(1, 104):
        differences += w[k] * np.outer(right[:, k], left[:, k])
    expected = (differences**2).sum(axis=1)
    found = compute_diffusion_distances(eo.graph(four_rooms), t)
    assert_allclose(found, expected, atol=1e-10)


def test_diffusion_options_lead_to_local_maxima(four_rooms):
    W = eo.graph(four_rooms)
    score = compute_diffusion_distances(W, 4)
    found = discover(four_rooms, method="diffusion")
    for state in range(104):
        neighbours = W.indices[W.indptr[state] : W.indptr[state + 1]]
        if (score[state] > score[neighbours] + 1e-12).all():
            assert state in found.goals
    assert (np.diff(score[list(found.goals)]) <= 1e-12).all()
    assert len(discover(four_rooms, method="diffusion", t=16)) < len(found)


def test_more_diffusion_options_than_there_are_name_another_method(i_maze):
    with pytest.raises(ValueError, match="random walk spreads slowest"):
        discover(i_maze, 9, method="diffusion")


def test_betweenness_options_lead_to_the_doorways(i_maze, four_rooms):
    W = eo.graph(i_maze)
    score = reference.betweenness(W)
    assert discover(i_maze, method="betweenness").goals == tuple(
        find_local_maxima(W, score).tolist()
    )
    found = discover(four_rooms, method="betweenness")
    states = {tuple(c): s for s, c in enumerate(four_rooms.coords.tolist())}
    beside = {(3, 6): (3, 5), (6, 2): (5, 2), (7, 9): (8, 9), (10, 6): (10, 5)}
    for door, other in beside.items():
        # The path to a doorway is the same as that to the state before it, which has
        # more paths of its own.
        assert {states[door], states[other]} & set(found.goals)


GRAPHS = [
    path(1),
    path(2),
    path(9),
    cycle(5),
    cycle(16),
    cycle(17),
    cycle(18),
    star(6),
    complete(5),
]
GRAPHS += [product(path(4), path(3)), together(cycle(4), path(3), csr_array((1, 1)))]
GRAPHS += [random_maze(seed, 6, 7, 0.3) for seed in range(6)]


@pytest.mark.parametrize("W", GRAPHS)
def test_find_passages_and_betweenness_agree_with_slow_twins(W):
    for max_steps in (1, 2, 3, 8):
        np.testing.assert_array_equal(
            find_passages(W, max_steps), reference.passages(W, max_steps)
        )
    assert_allclose(
        compute_betweenness(W), reference.betweenness(W), rtol=1e-12, atol=1e-12
    )


def test_compute_betweenness_of_a_path_agrees_with_the_closed_form():
    """State i lies between i states on one side and n - 1 - i on the other.

    Both ways; also if computed in several blocks.
    """
    i = np.arange(300)
    assert_allclose(compute_betweenness(path(300)), 2.0 * i * (299 - i), rtol=1e-12)


# Successor representation


def test_successor_purposes_are_eigenvectors_of_the_representation(domain):
    psi = np.linalg.inv(np.eye(domain.n_states) - 0.95 * uniform_walk(domain).toarray())
    chosen = get_method("successor").function(
        domain, 6, np.random.default_rng(0), discount=0.95
    )
    for p in chosen:
        assert_allclose(psi @ p.potential, p.eigenvalue * p.potential, atol=1e-8)
    values = np.sort(np.linalg.eigvalsh(psi))[::-1]
    assert_allclose([p.eigenvalue for p in chosen[::2]], values[1:4])
    same_potentials = discover(domain, 6, operator="combinatorial")
    np.testing.assert_array_equal(
        discover(domain, 6, "successor").policy, same_potentials.policy
    )


def test_successor_of_asymmetric_dynamics_uses_the_symmetric_part():
    mdp = make_slippery(one_way())
    psi = np.linalg.inv(np.eye(mdp.n_states) - 0.99 * uniform_walk(mdp).toarray())
    chosen = get_method("successor").function(mdp, 4, np.random.default_rng(0))
    for p in chosen:
        assert_allclose(
            (psi + psi.T) / 2 @ p.potential, p.eigenvalue * p.potential, atol=1e-8
        )
    assert [p.label for p in chosen] == ["e1+", "e1-", "e2+", "e2-"]


def test_successor_of_a_learned_representation_has_its_ends(i_maze):
    """A representation learned from a walk gives the options of the exact one.

    It is learned by temporal differences.
    """
    steps = walk(replace(i_maze, start=None, goal=None), 200_000, rng=0)
    psi = learn_representation(steps.obs, steps.next_obs, 19, gamma=0.9, alpha=0.01)
    exact = successor_representation(uniform_walk(i_maze), 0.9)
    assert np.abs(psi - exact).max() < 0.5
    learned = discover(i_maze, 4, "successor", representation=psi)
    assert learned.labels[2:] == ("e2+", "e2-")
    ends = {tuple(np.flatnonzero(row).tolist()) for row in learned.termination[2:]}
    assert len(ends) == 2
    assert len(discover(i_maze, method="successor", representation=exact)) == 2 * 19
    with pytest.raises(ValueError, match="representation"):
        discover(i_maze, 4, "successor", representation=np.eye(3))


def test_choose_landmarks_gives_one_per_room(four_rooms):
    psi = successor_representation(uniform_walk(four_rooms), 0.99)
    chosen = choose_landmarks(psi, 4)
    distances = [np.linalg.norm(psi - psi[landmark], axis=1) for landmark in chosen]
    nearest = np.argmin(distances, axis=0)
    rooms = four_rooms.coords[chosen] > 6
    assert len(np.unique(rooms, axis=0)) == 4
    assert np.bincount(nearest).min() > 10
    found = discover(four_rooms, 4, "successor-goals")
    assert found.goals == tuple(chosen)
    assert [np.flatnonzero(row).tolist() for row in found.termination] == [
        [m] for m in chosen
    ]
    everything = discover(four_rooms, 104, "successor-goals")
    assert sorted(everything.goals) == list(range(104))


@pytest.mark.parametrize("discount", [0.99, 0.9999, 1 - 1e-6])
@pytest.mark.parametrize("side", [5, 9, 15])
def test_successor_goals_takes_the_first_of_equal_actions(discount, side):
    """Around the middle of a square, eight states are worth the same.

    For a discount near 1 the linear system is nearly singular, and its rounding errors
    must not choose between them.
    """
    mdp = eo.maze(f"open:{side}x{side}")
    middle = side**2 // 2
    found = discover(mdp, 1, "successor-goals", discount=discount)
    assert found.goals == (middle,)

    # The same value, to the last bit, for states that a symmetry maps to each other.
    away = np.sort(np.abs(mdp.coords - mdp.coords[middle]), axis=1)
    potential = found.purposes[0].potential
    _, first, orbit = np.unique(away, axis=0, return_index=True, return_inverse=True)
    symmetric = eo.Purpose(potential[first][orbit.ravel()], exact=True)
    expected = eo.solve(mdp, symmetric, found.provenance["gamma"])
    np.testing.assert_array_equal(found.policy, expected.policy)


@pytest.mark.parametrize(
    ("discount", "is_exact"), [(0.99, True), (0.9999, False), (1 - 1e-6, False)]
)
def test_successor_goals_does_not_depend_on_rounding(
    discount, is_exact, monkeypatch, rng
):
    """Errors as another machine makes them leave every action as it is."""
    mdp = eo.maze("open:9x9")
    expected = discover(mdp, 2, "successor-goals", discount=discount)
    # Close to 1 the system is nearly singular: its values count as computed ones.
    assert [purpose.exact for purpose in expected.purposes] == [is_exact] * 2

    def represent(P, gamma):
        psi = successor_representation(P, gamma)
        return psi + 1e-14 * psi.max() * rng.standard_normal(psi.shape)

    monkeypatch.setattr(successor_goals, "successor_representation", represent)
    for _ in range(5):
        found = discover(mdp, 2, "successor-goals", discount=discount)
        assert found.goals == expected.goals
        np.testing.assert_array_equal(found.policy, expected.policy)


def test_successor_goals_refuses_a_discount_at_which_rounding_decides(four_rooms):
    with pytest.raises(ValueError, match="discount"):
        discover(four_rooms, 1, "successor-goals", discount=1 - 1e-8)


# Communities


def modularity(W, label, resolution):
    W = W.toarray()
    degree = W.sum(axis=1)
    expected = np.outer(degree, degree) / degree.sum()
    is_inside = label[:, None] == label
    return ((W - resolution * expected) * is_inside).sum()


@pytest.mark.parametrize("resolution", [0.2, 1.0])
def test_find_communities_cannot_be_improved_by_one_move(four_rooms, resolution):
    W = eo.graph(four_rooms)
    levels = find_communities(W, resolution)
    scores = [modularity(W, label, resolution) for label in levels]
    assert scores == sorted(scores)
    first = levels[0]
    for state in range(104):
        neighbours = W.indices[W.indptr[state] : W.indptr[state + 1]]
        for community in np.unique(first[neighbours]):
            other = first.copy()
            other[state] = community
            assert modularity(W, other, resolution) <= scores[0] + 1e-6

    # Nested: each fine community lies in one coarse community.
    for fine, coarse in pairwise(levels):
        pairs = np.unique(np.stack([fine, coarse], axis=1), axis=0)
        assert len(pairs) == fine.max() + 1


def test_community_options_lead_from_room_to_room(four_rooms):
    label = find_communities(eo.graph(four_rooms), 0.2)[-1]
    assert label.max() == 3
    options = discover(four_rooms, 8, "community")
    for row in options.policy:
        starts = np.flatnonzero(row >= 0)
        assert len(np.unique(label[starts])) == 1
        ends = {reference.walk(four_rooms.successors, row, s)[1] for s in starts}
        assert len({label[s] for s in ends}) == 1
        assert label[starts[0]] not in {label[s] for s in ends}
    with pytest.raises(ValueError, match="resolution"):
        discover(eo.maze(".."), 2, "community", resolution=0.001)


# NEO


@pytest.mark.parametrize("make", [lambda: eo.maze("four-rooms"), one_way])
def test_neo_purposes_are_eigenvectors_of_the_drained_laplacian(make):
    mdp = make()
    n = mdp.n_states
    visits = np.random.default_rng(0).integers(0, 50, n)
    visits[:5] = 0
    moves = (uniform_walk(mdp).toarray() > 0) & ~np.eye(n, dtype=bool)
    L = np.eye(n) - moves / np.maximum(moves.sum(axis=1), 1)[:, None]
    L += 0.5 * np.diag((visits / visits.max()) ** (1 / 64))
    values, vectors = np.linalg.eig(L)
    chosen = get_method("neo").function(mdp, 5, np.random.default_rng(0), visits=visits)
    for p in chosen:
        near = vectors[:, np.abs(values - p.eigenvalue).argmin()].real
        assert_allclose(p.potential, np.abs(near) / np.abs(near).max(), atol=1e-8)
    assert chosen[0].eigenvalue <= values.real.min() + 1e-9
    assert chosen[0].potential.argmax() in np.flatnonzero(visits == 0)


def test_neo_takes_real_eigenvectors_by_their_number():
    # A ring that is walked in one direction, with a place that was visited often.
    ring = eo.MDP.from_successors([[1], [2], [3], [4], [0]])
    visits = np.array([50, 1, 1, 1, 0])
    L = np.eye(5) - np.roll(np.eye(5), 1, axis=1)
    L += 0.5 * np.diag((visits / visits.max()) ** (1 / 64))
    values = np.linalg.eigvals(L)
    real = np.sort(values.real[np.abs(values.imag) < 1e-10])
    assert len(real) < 5
    neo = get_method("neo").function
    found = neo(ring, None, np.random.default_rng(0), visits=visits)
    assert_allclose([p.eigenvalue for p in found], real, atol=1e-9)
    numbers = list(range(1, len(real) + 1))
    assert [p.index for p in found] == numbers
    assert [p.label for p in found] == [f"novel {i}" for i in numbers]


@pytest.mark.parametrize("kind", ["tree", "ladder"])
def test_neo_of_equal_eigenvalues_does_not_depend_on_rounding(kind, rng):
    """One-way moves: the matrix is not symmetric, and its eigenvalues repeat."""
    if kind == "tree":
        children = [[2 * i + 1, 2 * i + 2] for i in range(31)]
        successors = np.where(np.array(children) < 31, children, 0)
    else:
        left = [[(i + 1) % 10, 10 + i] for i in range(10)]
        right = [[10 + (i - 1) % 10, i] for i in range(10)]
        successors = np.array(left + right)
    mdp = eo.MDP.from_successors(successors, start=0)
    visits = successor_representation(uniform_walk(mdp), 0.99)[0]
    policy = discover(mdp, 8, "neo", visits=visits).policy
    for _ in range(5):
        noisy = visits * (1 + 1e-12 * rng.standard_normal(mdp.n_states))
        again = discover(mdp, 8, "neo", visits=noisy).policy
        np.testing.assert_array_equal(again, policy)


def test_neo_leads_away_from_the_start(four_rooms):
    visits = successor_representation(uniform_walk(four_rooms), 0.99)[four_rooms.start]
    stop = np.flatnonzero(discover(four_rooms, 1, "neo")[0].termination)
    assert visits[stop].max() < np.median(visits)
    for wrong in ([1.0], np.zeros(104), np.full(104, -1.0)):
        with pytest.raises(ValueError, match="visits"):
            discover(four_rooms, 1, "neo", visits=wrong)


# Rewards


def costly():
    """Two ways from left to right: short through costly states, long around them."""
    mdp = eo.maze("S......G\n.######.\n.######.\n........")
    cost = (mdp.coords[:, 0] == 0) & (mdp.coords[:, 1] > 0) & (mdp.coords[:, 1] < 7)
    return replace(mdp, reward=np.where(cost, -20.0, -1.0)), cost


def test_reward_aware_options_go_around_costly_states():
    mdp, cost = costly()
    found = discover(mdp, 4, "reward-aware")
    assert found.labels[0] == "cheap"
    visited = {True: 0, False: 0}
    for goal, row in zip(found.goals, found.policy, strict=True):
        if goal is None or cost[goal]:
            continue
        steps = eo.solve(mdp, eo.Purpose(np.eye(mdp.n_states)[goal]), 0.99).policy[0]
        for policy, aware in ((row, True), (steps, False)):
            for s in np.flatnonzero(~cost):
                while policy[s] >= 0:
                    s = mdp.successors[s, policy[s]]
                    visited[aware] += int(cost[s])
    assert visited[True] == 0
    assert visited[False] > 0


def test_reward_aware_purposes_are_logarithms_of_the_series():
    """Z is the sum over paths of their probability times exp(reward / temperature)."""
    mdp, _ = costly()
    P = uniform_walk(mdp).toarray()
    step = np.exp(mdp.reward / 2.0)
    Z = np.zeros_like(P)
    power = np.diag(step)
    for _ in range(400):
        Z = Z + power
        power = step[:, None] * (P @ power)
    chosen = get_method("reward-aware").function(
        mdp, 5, np.random.default_rng(0), temperature=2.0
    )
    for p in chosen[1:]:
        assert_allclose(p.potential, np.log(Z[:, p.goal]), atol=1e-9)
    e = np.exp(chosen[0].potential)
    assert_allclose(Z @ e / e, (Z @ e / e)[0])


def test_reward_aware_averages_rewards_of_actions(four_rooms):
    per_action = -np.random.default_rng(0).random(104 * 4) - 1.0
    a = discover(replace(four_rooms, reward=per_action), 4, "reward-aware")
    b = discover(
        four_rooms, 4, "reward-aware", rewards=per_action.reshape(104, 4).mean(axis=1)
    )
    np.testing.assert_array_equal(a.policy, b.policy)
    assert a.mdp.fingerprint == four_rooms.fingerprint


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({}, "rewards="),
        ({"rewards": np.zeros(104)}, "negative"),
        ({"rewards": np.full(104, -1.0), "temperature": 0.01}, "temperature"),
    ],
)
def test_reward_aware_bad_rewards_raise(four_rooms, settings, word):
    with pytest.raises(ValueError, match=word):
        discover(four_rooms, 2, "reward-aware", **settings)


def test_reward_aware_options_of_an_environment_avoid_the_cliff():
    """CliffWalking costs 1 per step and 100 at the cliff."""
    mdp = eo.from_env("CliffWalking-v1")
    table = mdp.reward.reshape(mdp.n_states, 4)
    edge = (table == -100.0).any(axis=1) & (np.arange(48) != mdp.start)
    options = discover("CliffWalking-v1", 4, "reward-aware")
    for label in ("goal 11", "goal 47"):
        row = options[label].policy
        for s in np.flatnonzero(~edge & (row >= 0)):
            assert not edge[options.follow(label, int(s))[1:]].any()


# All of them

METHODS = [name for name in eo.methods() if not get_method(name).needs_rewards]


@pytest.mark.parametrize("name", METHODS)
def test_options_of_every_method_end_and_are_repeatable(four_rooms, name):
    options = discover(four_rooms, 4, name, rng=7)
    assert len(options) == 4
    assert np.isfinite(options.mean_length).all()
    assert (options.initiation.sum(axis=1) > 0).all()
    assert options.provenance["method"] == name
    options.check(four_rooms)
    assert same(options, discover(four_rooms, 4, name, rng=7))


@pytest.mark.parametrize("name", [name for name in eo.methods() if name != "eigen"])
def test_every_method_from_samples_agrees_with_the_table(four_rooms, name):
    """A long walk sees every move, so its options are those of the table.

    A short one knows fewer states.
    """
    free = replace(four_rooms, goal=None)
    how = {"rewards": np.full(104, -1.0)} if name == "reward-aware" else {}
    if name == "neo":
        how["visits"] = np.arange(104)
    sampled = discover(walk(free, 100_000, rng=0), 4, name, **how)
    exact = discover(free, 4, name, **how)
    np.testing.assert_array_equal(sampled.policy, exact.policy)
    assert sampled.goals == exact.goals
    assert sampled.labels == exact.labels
    assert sampled.provenance["source"] == "samples"
    assert sampled.provenance["method"] == name
    short = walk(free, 300, rng=0)
    seen = np.isin(np.arange(104), np.concatenate([short.obs, short.next_obs]))
    few = discover(short, 2, name, n_actions=4, space=Discrete(104), **how)
    assert (few.policy[:, ~seen] == -1).all()
    assert (few.policy >= 0).any()
    assert all(seen[goal] for goal in few.goals if goal is not None)


@pytest.mark.parametrize("name", ["covering", "successor-goals", "reward-aware"])
def test_methods_of_connected_graphs_raise_on_several_components(name):
    for text in ("..#..", "."):
        mdp = eo.maze(text)
        with pytest.raises(ValueError, match="components"):
            discover(replace(mdp, reward=np.full(mdp.n_states, -1.0)), 1, name)


@pytest.mark.parametrize(
    "name", ["diffusion", "betweenness", "successor", "neo", "community"]
)
def test_other_methods_stay_within_components(name):
    mdp = eo.maze("...#...\n...#...\n...#...")
    side = mdp.coords[:, 1] > 3
    for row in discover(mdp, 2, name).policy:
        for s in range(mdp.n_states):
            assert side[reference.walk(mdp.successors, row, s)[1]] == side[s]


@pytest.mark.parametrize("name", METHODS)
def test_more_options_than_there_are_raise(name):
    with pytest.raises(ValueError, match="99"):
        discover(eo.maze("S..."), 99, name)


@pytest.mark.parametrize("name", [name for name in METHODS if name != "bottleneck"])
def test_directed_and_stochastic_dynamics_give_options_that_end(name):
    for mdp in (one_way(), make_slippery(one_way())):
        options = discover(mdp, 2, name)
        assert np.isfinite(options.mean_length).all()
        assert (options.initiation.sum(axis=1) > 0).all()


# Methods of one's own


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda mdp: [], r"'mine'.*\(mdp, n_options, rng.*got \(mdp\)"),
        (lambda mdp, n_options, rng, steps: [], r"got .*steps"),
        (lambda *, mdp, n_options, rng: [], r"got"),
        (lambda mdp, n_options, rng, *, reach: [], r"'mine'.*default.*'reach'"),
        (lambda mdp, n_options, rng, *, steps=1: [], r"steps= .* of discover"),
        (lambda mdp, n_options, rng, *, skip_zero=False: [], r"default of discover"),
    ],
)
def test_wrong_signature_is_named(function, words):
    with pytest.raises(TypeError, match=words):
        discovery_method("mine")(function)
    assert "mine" not in eo.methods()


def test_decorator_without_a_name_is_named():
    with pytest.raises(TypeError, match="discovery_method"):

        @discovery_method
        def choose_nothing(mdp, n_options, rng):
            return []


@pytest.mark.parametrize("returned", [None, [1], "e2+"])
def test_method_that_returns_something_else_is_named(returned, monkeypatch):
    monkeypatch.setitem(discovery_methods._entries, "mine", None)
    discovery_method("mine")(lambda mdp, n_options, rng: returned)
    with pytest.raises(TypeError, match=r"'mine'.*Purpose"):
        discover("four-rooms", 2, "mine")
