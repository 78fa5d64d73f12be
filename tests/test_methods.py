"""Each discovery method against a slow twin that follows its paper, from tables and from samples; bad input."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Discrete
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from tests import reference
from tests.test_mdp import refused
from tests.test_options import same
from tests.test_planning import slippery

import eigenoptions as eo
from eigenoptions.discovery import discover
from eigenoptions.discovery.experience import TableExperience
from eigenoptions.discovery.goals import local_maxima
from eigenoptions.discovery.hierarchy import second_level, spanned
from eigenoptions.discovery.methods import method
from eigenoptions.discovery.methods.community import communities
from eigenoptions.discovery.methods.covering_eigen import rod_cycle
from eigenoptions.discovery.methods.diffusion import slowness
from eigenoptions.discovery.methods.neo import expected_visits
from eigenoptions.discovery.methods.successor_goals import landmarks
from eigenoptions.options.walks import walk
from eigenoptions.spectra.representations import (
    learned_default,
    learned_successor,
    successor_representation,
    uniform_walk,
)

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
        assert_allclose(psi @ p.direction, p.eigenvalue * p.direction, atol=1e-8)
    values = np.sort(np.linalg.eigvalsh(psi))[::-1]
    assert_allclose([p.eigenvalue for p in chosen[::2]], values[1:4])
    same_potentials = discover(domain, 6, operator="combinatorial")
    np.testing.assert_array_equal(discover(domain, 6, "successor").policy, same_potentials.policy)


def test_successor_options_of_dynamics_that_are_not_symmetric():
    mdp = slippery(one_way())
    psi = np.linalg.inv(np.eye(mdp.n_states) - 0.99 * uniform_walk(mdp).toarray())
    chosen = method("successor").purposes(mdp, 4, np.random.default_rng(0))
    for p in chosen:
        assert_allclose((psi + psi.T) / 2 @ p.direction, p.eigenvalue * p.direction, atol=1e-8)
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
        assert_allclose(p.direction, np.abs(near) / np.abs(near).max(), atol=1e-8)
    assert chosen[0].eigenvalue <= values.real.min() + 1e-9
    assert chosen[0].direction.argmax() in np.flatnonzero(visits == 0)


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
        assert_allclose(p.direction, np.log(Z[:, p.goal]), atol=1e-9)
    e = np.exp(chosen[0].direction)
    assert_allclose(Z @ e / e, (Z @ e / e)[0])


def test_rewards_of_actions_are_averaged(four_rooms):
    per_action = -np.random.default_rng(0).random(104 * 4) - 1.0
    a = discover(replace(four_rooms, reward=per_action), 4, "reward-aware")
    b = discover(four_rooms, 4, "reward-aware", rewards=per_action.reshape(104, 4).mean(axis=1))
    np.testing.assert_array_equal(a.policy, b.policy)
    assert a.state_space == four_rooms.fingerprint


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


# The cycle --------------------------------------------------------------------------------------------------


def test_the_cycle_adds_one_option_per_round_and_sees_more_than_a_random_walk(four_rooms):
    """Machado et al. (2023), Figure 6: covering eigenoptions see all states sooner; medians of ten seeds."""
    needed, alone = [], []
    for seed in range(10):
        for found in rod_cycle(four_rooms, rng=seed):
            if found.seen.all():
                break
        needed.append(found.steps)
        assert len(found.options) == found.steps // 100
        walked = walk(replace(four_rooms, goal=None), 100_000, rng=seed, max_episode_steps=100)
        alone.append(max(np.unique(walked.next_obs, return_index=True)[1]))
    assert np.median(needed) < np.median(alone)


def test_a_round_of_the_cycle_by_hand(four_rooms):
    """One walk, temporal differences one by one, and the eigenvector of the largest eigenvalue, away from visits."""
    first = next(rod_cycle(four_rooms, rng=3))
    batch = walk(replace(four_rooms, goal=None), 100, rng=np.random.default_rng(3))
    np.testing.assert_array_equal(first.entered, batch.next_obs)
    psi = np.zeros((104, 104))
    for _ in range(10):
        for s, t in zip(batch.obs, batch.next_obs, strict=True):
            psi[s] += 0.1 * ((np.arange(104) == s) + 0.99 * psi[t] - psi[s])
    e = np.linalg.eigh((psi + psi.T) / 2)[1][:, -1]
    e = -np.sign(e.sum()) * e
    nxt = np.tile(np.arange(104)[:, None], (1, 4))
    nxt[batch.obs, batch.action] = batch.next_obs
    known = eo.MDP(np.eye(104)[nxt])
    assert_allclose(first.options.value, eo.solve(known, eo.Purpose(e), 0.99).value, atol=1e-8)


def test_a_round_of_the_reward_aware_cycle_by_hand():
    """Temporal differences one by one, the first eigenvector by inverse iteration, and its logarithm as purpose."""
    corridor = replace(eo.maze("S...."), goal=None, reward=np.array([-1.0, -1.0, -2.0, -1.0, -1.0]))
    first = next(rod_cycle(corridor, representation="default", td=(0.2, 2), round_steps=30, rng=1))
    batch = walk(corridor, 30, rng=np.random.default_rng(1))
    Z = np.eye(5)
    pairs = list(zip(batch.obs, batch.next_obs, strict=True))
    for s, t in pairs[::-1] + pairs:
        weight = np.exp(corridor.reward[s] / 1.3)
        Z[s] += 0.2 * (weight * ((np.arange(5) == s) + Z[t]) - Z[s])
    assert_allclose(
        learned_default(batch.obs, batch.next_obs, corridor.reward, alpha=0.2, sweeps=2), Z, rtol=1e-12
    )
    left = np.unique(batch.obs)
    e = np.abs(np.linalg.eigh((Z + Z.T)[np.ix_(left, left)])[1][:, -1])
    potential = np.zeros(5)
    potential[left] = np.log(e)
    purpose = eo.Purpose(potential / np.linalg.norm(potential))
    nxt = np.tile(np.arange(5)[:, None], (1, 4))
    nxt[batch.obs, batch.action] = batch.next_obs
    expected = eo.solve(eo.MDP(np.eye(5)[nxt]), purpose, 0.99)
    assert_allclose(first.options.value, expected.value, atol=1e-9)
    kept = [found.options.labels for found in islice(rod_cycle(corridor, keep=2, round_steps=10), 3)][-1]
    assert kept == ("round 2", "round 3")


def test_the_reward_aware_cycle_needs_rewards_per_state(four_rooms):
    refused(
        ValueError,
        lambda: next(rod_cycle(four_rooms, representation="default")),
        "one negative number per state",
    )
    refused(ValueError, lambda: next(rod_cycle(four_rooms, representation="laplacian")), "successor, default")
    refused(ValueError, lambda: next(rod_cycle(four_rooms, keep=0)), "keep")
    refused(ValueError, lambda: learned_default([0], [9], [-1.0, -1.0]), "0..1")


def test_options_of_the_cycle_stay_within_what_was_seen(four_rooms):
    first = next(rod_cycle(four_rooms, rng=3))
    row = first.options.policy[0]
    assert (row[~first.seen] == -1).all()
    found = discover(four_rooms, 3, "covering-eigen", rng=3)
    np.testing.assert_array_equal(found.policy[0], row)
    assert found.labels == ("round 1", "round 2", "round 3")
    assert np.isfinite(found.mean_length).all()
    whole = discover(eo.maze("S...."), method="covering-eigen")
    assert len(whole) >= 1


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


# Options over options ---------------------------------------------------------------------------------------


def test_the_spanned_mdp_jumps_to_the_ends_of_options(four_rooms):
    options = discover(four_rooms, 6)
    wide = spanned(four_rooms, options)
    assert (wide.n_states, wide.n_actions) == (104, 10)
    np.testing.assert_array_equal(wide.successors[:, :4], four_rooms.successors)
    for i, row in enumerate(options.policy):
        ends = [reference.walk(four_rooms.successors, row, s)[1] for s in range(104)]
        assert wide.successors[:, 4 + i].tolist() == ends


def test_the_spanned_mdp_of_stochastic_moves(i_maze):
    mdp = slippery(i_maze)
    options = discover(mdp, 2)
    wide = spanned(mdp, options).transition.toarray().reshape(19, 6, 19)
    for i, row in enumerate(options.policy):
        moves = mdp.transition.toarray().reshape(19, 4, 19)[np.arange(19), np.maximum(row, 0)]
        moves[row < 0] = np.eye(19)[row < 0]
        assert_allclose(wide[:, 4 + i], np.linalg.matrix_power(moves, 5000), atol=1e-9)


def test_the_second_level_has_the_purposes_of_the_spanned_graph(four_rooms):
    first = discover(four_rooms, 8)
    found = second_level(four_rooms, first, 4)
    wide = eo.spectrum(eo.graph(spanned(four_rooms, first)), 3)
    by_hand = eo.solve(four_rooms, eo.eigenpurposes(wide))
    np.testing.assert_array_equal(found.policy, by_hand.policy)
    assert found.provenance["level"] == 2
    assert len(first + found) == 12
    nested = discover(spanned(four_rooms, first), 2)
    assert (nested.policy >= 4).any()  # it calls options
    assert len(second_level(four_rooms, first, method="betweenness")) >= 1
    refused(
        ValueError, lambda: second_level(four_rooms, first, 2, "covering-eigen"), "no purposes of its own"
    )
    with pytest.raises(TypeError, match="method 'eigen' has no setting 'speed'"):
        second_level(four_rooms, first, 2, speed=1)


def test_rewards_of_environments_are_read():
    """CliffWalking costs 1 per step and 100 at the cliff; reward-aware options walk along the other side."""
    mdp = eo.from_env("CliffWalking-v1")
    table = mdp.reward.reshape(mdp.n_states, 4)
    assert set(np.unique(table)) == {-100.0, -1.0, 0.0}
    edge = (table == -100.0).any(axis=1) & (np.arange(48) != mdp.start)
    found = discover("CliffWalking-v1", 4, "reward-aware")
    for label in ("goal 11", "goal 47"):
        row = found[label].policy
        for s in np.flatnonzero(~edge & (row >= 0)):
            while row[s] >= 0:
                s = mdp.successors[s, row[s]]
                assert not edge[s]
    refused(ValueError, lambda: discover("FrozenLake-v1", 2, "reward-aware"), "must be negative", "subtract")


def test_visits_of_sampled_states_are_counted_for_methods_that_ask(i_maze):
    given = []

    def purposes(mdp, n_options, rng, *, visits=None):
        given.append(visits)
        return method("neo").purposes(mdp, n_options, rng, visits=visits)

    batch = walk(i_maze, 400, rng=0)
    past = TableExperience(i_maze.n_states, 4)
    past.add(batch)
    past.options(2, method=replace(method("neo"), purposes=purposes))
    seen = np.flatnonzero(past.seen)
    assert given[0].tolist() == np.bincount(batch.obs, minlength=i_maze.n_states)[seen].tolist()
