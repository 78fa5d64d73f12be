"""Each discovery method against a slow twin that follows its paper, from tables and from samples; bad input."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Discrete
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions.discovery import discover
from eigenoptions.discovery.goals import local_maxima
from eigenoptions.discovery.methods import method
from eigenoptions.discovery.methods.community import communities
from eigenoptions.discovery.methods.diffusion import slowness
from eigenoptions.discovery.methods.neo import expected_visits
from eigenoptions.discovery.methods.successor_goals import landmarks
from eigenoptions.options.walks import walk
from eigenoptions.spectra.representations import (
    learned_successor,
    successor_representation,
    uniform_walk,
)
from tests import reference
from tests.tables import same
from tests.test_mdp import refused
from tests.test_planning import slippery

# Two rooms; the door at the top leads right only, the one at the bottom left only.
ONE_WAY = "S..#...\n.......\n...#...\n.......\n...#..G"


def one_way():
    mdp = eo.maze(ONE_WAY)
    successors = np.array(mdp.successors)
    for row, blocked in ((1, 3), (3, 1)):
        door = int(np.flatnonzero((mdp.coords == (row, 3)).all(axis=1))[0])
        successors[door, blocked] = door
    return eo.MDP(np.eye(mdp.n_states)[successors], coords=mdp.coords, start=mdp.start)


# Covering ---------------------------------------------------------------------------------------------------


def test_covering_options_connect_the_ends_of_the_fiedler_vector(four_rooms):
    W = eo.graph(four_rooms).toarray()
    goals = []
    for _ in range(6):
        values, vectors = np.linalg.eigh(np.diag(W.sum(axis=1)) - W)
        assert values[2] - values[1] > 1e-6
        ends = int(vectors[:, 1].argmax()), int(vectors[:, 1].argmin())
        W[ends], W[ends[::-1]] = 1.0, 1.0
        goals.append(set(ends))
    found = discover(four_rooms, 6, "covering")
    unique = []
    for pair in goals:
        unique += sorted(pair - {g for group in unique for g in group}) and [pair - set().union(*unique)]
    flat = [g for group in unique for g in group]
    assert set(found.goals) <= set(flat)
    assert set(found.goals[:2]) == goals[0]
    for goal, stops in zip(found.goals, found.stops, strict=True):
        assert stops.tolist() == [goal]


def test_covering_raises_the_connectivity(four_rooms):
    """Jinnai et al., Theorem 2: each edge raises the second eigenvalue, so the bound on the cover time falls."""
    W = eo.graph(four_rooms)
    before = eo.spectrum(W, 2, "combinatorial").values[1]
    a, b = discover(four_rooms, 2, "covering").goals
    edge = csr_array(([1.0, 1.0], ([a, b], [b, a])), shape=W.shape)
    assert eo.spectrum(csr_array(W + edge), 2, "combinatorial").values[1] > 1.1 * before


def test_covering_ends_where_everything_is_connected():
    triangle = eo.MDP(np.eye(3)[[[1, 2], [0, 2], [0, 1]]])
    refused(ValueError, lambda: discover(triangle, 2, "covering"), "n_options must be in 1..0", "got 2")


# Diffusion and betweenness ----------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [1, 4, 9])
def test_the_score_of_diffusion_options_is_the_papers_sum(four_rooms, t):
    W = eo.graph(four_rooms).toarray()
    degree = W.sum(axis=1)
    values, U = np.linalg.eigh(np.eye(104) - W / np.sqrt(np.outer(degree, degree)))
    right, left = U / np.sqrt(degree)[:, None], U * np.sqrt(degree)[:, None]
    w = (1.0 - values / 2.0) ** t
    score = [sum(w[k] * right[s, k] * left[:, k] for k in range(1, 104)) for s in range(104)]
    assert_allclose(slowness(eo.graph(four_rooms), t), (np.array(score) ** 2).sum(axis=1), atol=1e-10)


def test_diffusion_options_lead_to_the_maxima(four_rooms):
    W, score = eo.graph(four_rooms), slowness(eo.graph(four_rooms), 4)
    found = discover(four_rooms, method="diffusion")
    expected = [
        s
        for s in range(104)
        if all(score[s] > score[v] + 1e-12 for v in W.indices[W.indptr[s] : W.indptr[s + 1]])
    ]
    assert set(expected) <= set(found.goals)
    assert (np.diff(score[list(found.goals)]) <= 1e-12).all()
    refused(
        ValueError,
        lambda: discover(four_rooms, 30, "diffusion"),
        "in 1..20",
        "at t = 4",
        "smaller t has more",
    )
    assert len(discover(four_rooms, method="diffusion", t=16)) < len(found)


def test_betweenness_options_lead_to_the_doorways(i_maze, four_rooms):
    W = eo.graph(i_maze)
    score = np.array(reference.betweenness(W, range(19)))
    assert discover(i_maze, method="betweenness").goals == tuple(local_maxima(W, score).tolist())
    found = discover(four_rooms, method="betweenness")
    states = {tuple(c): s for s, c in enumerate(four_rooms.coords.tolist())}
    beside = {(3, 6): (3, 5), (6, 2): (5, 2), (7, 9): (8, 9), (10, 6): (10, 5)}
    for door, other in beside.items():
        # The path to a doorway is the same as that to the state before it, which has more paths of its own.
        assert {states[door], states[other]} & set(found.goals)
    refused(
        ValueError, lambda: discover(four_rooms, 60, "betweenness"), "local maxima of betweenness", "got 60"
    )


# Successor representation -----------------------------------------------------------------------------------


def test_successor_options_are_eigenvectors_of_the_representation(domain):
    psi = np.linalg.inv(np.eye(domain.n_states) - 0.95 * uniform_walk(domain).toarray())
    chosen = method("successor").purposes(domain, 6, np.random.default_rng(0), discount=0.95)
    for p in chosen:
        assert_allclose(psi @ p.potential, p.eigenvalue * p.potential, atol=1e-8)
    values = np.sort(np.linalg.eigvalsh(psi))[::-1]
    assert_allclose([p.eigenvalue for p in chosen[::2]], values[1:4])
    same_potentials = discover(domain, 6, operator="combinatorial")
    np.testing.assert_array_equal(discover(domain, 6, "successor").policy, same_potentials.policy)


def test_successor_options_of_dynamics_that_are_not_symmetric():
    mdp = slippery(one_way())
    psi = np.linalg.inv(np.eye(mdp.n_states) - 0.99 * uniform_walk(mdp).toarray())
    chosen = method("successor").purposes(mdp, 4, np.random.default_rng(0))
    for p in chosen:
        assert_allclose((psi + psi.T) / 2 @ p.potential, p.eigenvalue * p.potential, atol=1e-8)
    assert [p.label for p in chosen] == ["e1+", "e1-", "e2+", "e2-"]


def test_successor_options_of_a_learned_representation(i_maze):
    """A representation learned by temporal differences from a walk gives the options of the exact one."""
    steps = walk(replace(i_maze, start=None, goal=None), 200_000, rng=0)
    psi = learned_successor(steps.obs, steps.next_obs, 19, gamma=0.9, alpha=0.01)
    exact = successor_representation(uniform_walk(i_maze), 0.9)
    assert np.abs(psi - exact).max() < 0.5
    learned = discover(i_maze, 4, "successor", representation=psi)
    assert learned.labels[2:] == ("e2+", "e2-")
    ends = {tuple(sorted(stops.tolist())) for stops in learned.stops[2:]}
    assert len(ends) == 2
    wrong = lambda: discover(i_maze, 4, "successor", representation=np.eye(3))  # noqa: E731
    refused(ValueError, wrong, "representation must hold finite numbers of shape (19, 19), got shape (3, 3)")


def test_landmarks_are_centres(four_rooms):
    psi = successor_representation(uniform_walk(four_rooms), 0.99)
    chosen = landmarks(psi, 4)
    nearest = np.array([np.linalg.norm(psi - psi[m], axis=1) for m in chosen]).argmin(axis=0)
    corner = [(four_rooms.coords[m] > 6).tolist() for m in chosen]
    assert len({tuple(c) for c in corner}) == 4  # one landmark per room
    assert np.bincount(nearest).min() > 10
    found = discover(four_rooms, 4, "successor-goals")
    assert found.goals == tuple(chosen)
    assert [stops.tolist() for stops in found.stops] == [[m] for m in chosen]
    everything = discover(four_rooms, 104, "successor-goals")
    assert sorted(everything.goals) == list(range(104))


# Communities ------------------------------------------------------------------------------------------------


def modularity(W, label, resolution):
    W = W.toarray()
    degree = W.sum(axis=1)
    inside = label[:, None] == label
    return ((W - resolution * np.outer(degree, degree) / degree.sum()) * inside).sum()


@pytest.mark.parametrize("resolution", [0.2, 1.0])
def test_communities_cannot_be_improved_by_moving_one(four_rooms, resolution):
    W = eo.graph(four_rooms)
    levels = communities(W, resolution)
    scores = [modularity(W, label, resolution) for label in levels]
    assert scores == sorted(scores)
    first = levels[0]
    for s in range(104):
        for c in {first[v] for v in W.indices[W.indptr[s] : W.indptr[s + 1]]}:
            other = first.copy()
            other[s] = c
            assert modularity(W, other, resolution) <= scores[0] + 1e-6
    for fine, coarse in pairwise(levels):
        assert len(np.unique(np.stack([fine, coarse], axis=1), axis=0)) == fine.max() + 1  # nested


def test_community_options_lead_from_room_to_room(four_rooms):
    label = communities(eo.graph(four_rooms), 0.2)[-1]
    assert label.max() == 3
    options = discover(four_rooms, 8, "community")
    for row in options.policy:
        starts = np.flatnonzero(row >= 0)
        assert len(np.unique(label[starts])) == 1
        ends = {reference.walk(four_rooms.successors, row, s)[1] for s in starts}
        assert len({label[s] for s in ends}) == 1
        assert label[starts[0]] not in {label[s] for s in ends}
    one = eo.maze("..")
    refused(
        ValueError, lambda: discover(one, 2, "community", resolution=0.001), "are one community", "resolution"
    )


def test_community_options_follow_one_way_moves():
    mdp = one_way()
    options = discover(mdp, method="community")
    assert (options.mean_length < np.inf).all()
    assert (options.initiation.sum(axis=1) > 0).all()


# NEO --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: eo.maze("four-rooms"), one_way])
def test_novel_directions_are_eigenvectors_of_the_drained_laplacian(make):
    mdp = make()
    n = mdp.n_states
    visits = np.random.default_rng(0).integers(0, 50, n)
    visits[:5] = 0
    moves = (uniform_walk(mdp).toarray() > 0) & ~np.eye(n, dtype=bool)
    L = np.eye(n) - moves / np.maximum(moves.sum(axis=1), 1)[:, None]
    L += 0.5 * np.diag((visits / visits.max()) ** (1 / 64))
    values, vectors = np.linalg.eig(L)
    chosen = method("neo").purposes(mdp, 5, np.random.default_rng(0), visits=visits)
    for p in chosen:
        near = vectors[:, np.abs(values - p.eigenvalue).argmin()].real
        assert_allclose(p.potential, np.abs(near) / np.abs(near).max(), atol=1e-8)
    assert chosen[0].eigenvalue <= values.real.min() + 1e-9
    assert chosen[0].potential.argmax() in np.flatnonzero(visits == 0)


def test_novelty_is_away_from_the_start(four_rooms):
    visits = expected_visits(four_rooms)
    assert visits.argmax() == four_rooms.start
    assert_allclose(visits.sum(), 100.0)
    stop = discover(four_rooms, 1, "neo").stops[0]
    assert visits[stop].max() < np.median(visits)
    for wrong in ([1.0], np.zeros(104), np.full(104, -1.0)):
        refused(
            ValueError, lambda w=wrong: discover(four_rooms, 1, "neo", visits=w), "visits must be 104 numbers"
        )
    refused(
        ValueError, lambda: discover(four_rooms, 105, "neo"), "real eigenvectors of 104 states", "got 105"
    )


# Rewards ----------------------------------------------------------------------------------------------------


def costly():
    """Two ways from left to right: a short one through costly states, a long one around them."""
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
    P, step = uniform_walk(mdp).toarray(), np.exp(mdp.reward / 2.0)
    Z, power = np.zeros_like(P), np.diag(step)
    for _ in range(400):
        Z, power = Z + power, step[:, None] * (P @ power)
    chosen = method("reward-aware").purposes(mdp, 5, np.random.default_rng(0), temperature=2.0)
    for p in chosen[1:]:
        assert_allclose(p.potential, np.log(Z[:, p.goal]), atol=1e-9)
    e = np.exp(chosen[0].potential)
    assert_allclose(Z @ e / e, (Z @ e / e)[0])


def test_rewards_of_actions_are_averaged(four_rooms):
    per_action = -np.random.default_rng(0).random(104 * 4) - 1.0
    a = discover(replace(four_rooms, reward=per_action), 4, "reward-aware")
    b = discover(four_rooms, 4, "reward-aware", rewards=per_action.reshape(104, 4).mean(axis=1))
    np.testing.assert_array_equal(a.policy, b.policy)
    assert a.mdp.fingerprint == four_rooms.fingerprint


def test_rewards_that_are_refused(four_rooms):
    refused(
        ValueError, lambda: discover(four_rooms, 2, "reward-aware"), "needs rewards", "has none", "rewards="
    )
    zero = lambda: discover(four_rooms, 2, "reward-aware", rewards=np.zeros(104))  # noqa: E731
    refused(ValueError, zero, "rewards must be negative", "subtract a constant")
    small = lambda: discover(four_rooms, 2, "reward-aware", rewards=np.full(104, -1.0), temperature=0.01)  # noqa: E731
    refused(ValueError, small, "too small for double precision", "higher temperature")
    for wrong in (np.zeros(3), np.full(104, np.nan)):
        refused(
            ValueError,
            lambda w=wrong: replace(four_rooms, reward=w),
            "reward must be 104 finite numbers",
            "416",
        )


# All of them ------------------------------------------------------------------------------------------------


ALL = [name for name in eo.methods() if not method(name).needs_rewards]
SAMPLED = [name for name in eo.methods() if method(name).samples and name != "eigen"]


@pytest.mark.parametrize("name", ALL)
def test_options_of_every_method_end(four_rooms, name):
    options = discover(four_rooms, 4, name)
    assert len(options) == 4
    assert np.isfinite(options.mean_length).all()
    assert (options.initiation.sum(axis=1) > 0).all()
    assert options.provenance["method"] == name
    options.check(four_rooms)


@pytest.mark.parametrize("name", SAMPLED)
def test_methods_from_samples(four_rooms, name):
    """A long walk sees every move, so its options are those of the table; a short one knows fewer states."""
    free = replace(four_rooms, goal=None)
    how = {"rewards": np.full(104, -1.0)} if name == "reward-aware" else {}
    if name == "neo":
        how["visits"] = np.arange(104)
    long = discover(walk(free, 100_000, rng=0), 4, name, **how)
    exact = discover(free, 4, name, **how)
    np.testing.assert_array_equal(long.policy, exact.policy)
    assert long.goals == exact.goals
    assert long.labels == exact.labels
    assert (long.provenance["source"], long.provenance["method"]) == ("samples", name)
    short = walk(free, 300, rng=0)
    seen = np.isin(np.arange(104), np.concatenate([short.obs, short.next_obs]))
    few = discover(short, 2, name, n_actions=4, space=Discrete(104), **how)
    assert (few.policy[:, ~seen] == -1).all()
    assert (few.policy >= 0).any()


def test_samples_that_are_refused(four_rooms):
    refused(
        ValueError,
        lambda: discover("MountainCar-v0", 2, "covering", steps=200),
        "method 'covering' needs states that are numbered",
        'method="eigen"',
    )
    refused(
        ValueError,
        lambda: discover(walk(four_rooms, 99), 2, "covering-eigen"),
        "method 'covering-eigen' does not work from samples",
        "make an MDP first, or choose one of betweenness",
    )
    refused(ValueError, lambda: discover(walk(eo.maze("open-room"), 20_000), 1, "bottleneck"), "no doorway")
    with pytest.raises(TypeError, match="method 'diffusion' has no setting 'speed'"):
        discover(walk(four_rooms, 99), 2, "diffusion", speed=3)


@pytest.mark.parametrize("name", ["covering", "successor-goals", "reward-aware"])
def test_graphs_in_pieces_are_refused(name):
    mdp = replace(eo.maze("..#.."), reward=np.full(4, -1.0))
    refused(
        ValueError, lambda: discover(mdp, 2, name), f"method {name!r} needs a connected graph", "2 components"
    )
    alone = replace(eo.maze("."), reward=np.array([-1.0]))
    refused(ValueError, lambda: discover(alone, 1, name), "no action leads from one state", name)


@pytest.mark.parametrize("name", ["diffusion", "betweenness", "successor", "neo", "community"])
def test_graphs_in_pieces_are_accepted(name):
    mdp = eo.maze("...#...\n...#...\n...#...")
    found = discover(mdp, 2, name)
    piece = mdp.coords[:, 1] > 3
    for row in found.policy:
        for s in range(mdp.n_states):
            assert piece[reference.walk(mdp.successors, row, s)[1]] == piece[s]


@pytest.mark.parametrize("name", ALL)
def test_more_than_there_are(name):
    tiny = eo.maze("S...")
    if name == "covering-eigen":
        assert len(discover(tiny, 9, name)) == 9
        return
    refused(ValueError, lambda: discover(tiny, 99, name), "99")


@pytest.mark.parametrize("name", ALL)
def test_directed_and_stochastic_dynamics(name):
    for mdp in (one_way(), slippery(one_way())):
        if name == "bottleneck":
            continue
        options = discover(mdp, 2, name)
        assert same(options, discover(mdp, 2, name))
        assert np.isfinite(options.mean_length).all() or name == "covering-eigen"


def test_every_method_has_a_section_with_a_picture():
    docs = Path(__file__).parents[1] / "docs"
    text = (docs / "methods.md").read_text(encoding="utf-8")
    arena = (docs / "arena.html").read_text(encoding="utf-8")
    assert len(arena) < 1_500_000
    for name in eo.methods():
        assert f'<article id="{name}">' in arena
        assert f"({name})=\n## `{name}`" in text
        assert f"images/methods/{name}.svg" in text
        assert (docs / "images" / "methods" / f"{name}.svg").read_text(encoding="utf-8").count("<svg") == 5
