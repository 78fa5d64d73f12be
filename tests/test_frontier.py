"""Exploration toward what is unknown: the eigenvector against dense twins, and what the explorer reaches."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions._kernels.frontier import around, update
from eigenoptions.discovery.frontier import Cells, Explorer
from eigenoptions.discovery.online import cycle
from eigenoptions.mdp.maps import rooms_map


def unending(maze: eo.MDP) -> eo.MDP:
    return eo.MDP(maze.transition, start=maze.start or 0)


def counted(path: eo.Transitions, n: int, n_actions: int) -> np.ndarray:
    """``(S, A, S)`` outcomes of transitions."""
    counts = np.zeros((n, n_actions, n))
    np.add.at(counts, (path.obs, path.action, path.next_obs), 1)
    return counts


def eigenvector(explorer: Explorer) -> np.ndarray:
    """``(S,)`` z, solved exactly from the lists of outcomes: nearness of the unknown; 0 in states not seen."""
    known, S, A = explorer._known, explorer.n_states, explorer.n_actions
    tries = known.tries.reshape(S, A)
    P = np.zeros((S, S))
    for row in np.flatnonzero(known.head >= 0):
        entry = known.head[row]
        while entry >= 0:
            P[row // A, known.after[entry]] += known.times[entry] / (tries.flat[row] + known.prior) / A
            entry = known.link[entry]
    leave = np.where(tries > 0, known.prior / np.maximum(tries + known.prior, 1e-300), 1.0).mean(axis=1)
    z = np.linalg.solve(np.eye(S) - known.gamma * P, known.gamma * leave)
    return np.where(known.seen, z, 0.0)


@pytest.mark.parametrize("name", ["four-rooms", "slippery", "coin"])
@pytest.mark.parametrize("prior", [0.0, 0.01, 1.0])
def test_it_is_the_first_eigenvector_of_the_walk_with_an_unknown(name: str, prior: float) -> None:
    from reproduction.arena.domains import build

    # Of a coin the very first action has two outcomes.
    mdp, gamma = eo.MDP(np.full((2, 2), 0.5), start=0) if name == "coin" else build(name), 0.9
    explorer = Explorer(mdp.n_states, mdp.n_actions, gamma=gamma, prior=prior, rng=3)
    path = explorer.walk(mdp, 150)
    counts = counted(path, mdp.n_states, mdp.n_actions)
    tries = counts.sum(axis=2)
    assert np.array_equal(tries, explorer.tries)
    share = np.divide(
        counts, tries[:, :, None] + prior, where=tries[:, :, None] > 0, out=np.zeros_like(counts)
    )
    leave = np.where(tries > 0, prior / np.maximum(tries + prior, 1e-300), 1.0)
    M = np.eye(mdp.n_states + 1)
    M[:-1, :-1], M[:-1, -1] = gamma * share.mean(axis=1), gamma * leave.mean(axis=1)
    values, vectors = np.linalg.eig(M)
    order = np.argsort(-np.abs(values))
    first = (vectors[:, order[0]] / vectors[-1, order[0]]).real
    assert values[order[0]] == pytest.approx(1.0)
    assert abs(values[order[1]]) <= gamma + 1e-12
    seen = np.zeros(mdp.n_states, dtype=bool)
    seen[path.obs] = seen[path.next_obs] = True
    assert explorer.n_seen == seen.sum()
    z = eigenvector(explorer)
    assert z[seen] == pytest.approx(first[:-1][seen], abs=1e-12)
    assert (z[~seen] == 0).all()


def test_the_updates_of_the_walk_converge_to_it(four_rooms: eo.MDP) -> None:
    explorer = Explorer(104, 4, rng=1)
    path = explorer.walk(unending(four_rooms), 3000)
    assert (explorer.tries > 0).all()
    for _ in range(30):
        update(explorer._known, path.next_obs[-1])
    assert explorer._known.nearness == pytest.approx(eigenvector(explorer), rel=1e-9)


def test_uphill_is_an_untried_action(four_rooms: eo.MDP) -> None:
    """In a table with certain moves z grows by 1 / gamma per step, so the way is at most log z / log gamma long."""
    gamma, table = 0.95, four_rooms.successors
    assert table is not None
    explorer = Explorer(104, 4, gamma=gamma, prior=0.0, rng=0)
    path = explorer.walk(unending(four_rooms), 330)
    z, tries = eigenvector(explorer), explorer.tries
    for first in np.unique(path.obs).tolist():
        s, steps = first, 0
        while tries[s].min() > 0:
            s, steps = int(table[s, z[table[s]].argmax()]), steps + 1
            assert steps <= np.log(z[first]) / np.log(gamma)


@pytest.mark.parametrize("rng", [0, 1, 2])
def test_everything_is_seen_after_little_more_than_one_try_of_each_action(rng: int) -> None:
    mdp = unending(eo.maze(rooms_map(4, 4, size=5)))
    found = next(cycle(mdp, n_options=2, steps=6 * mdp.n_states, explore="frontier", rng=rng))
    assert found.seen == mdp.n_states
    by_options = next(cycle(mdp, n_options=2, steps=6 * mdp.n_states, rng=rng))
    assert by_options.seen < 0.8 * mdp.n_states


def test_the_end_of_an_episode_is_not_unknown() -> None:
    mdp = eo.maze(".....S.G")
    explorer = Explorer(8, 4)
    path = explorer.walk(mdp, 70)
    assert explorer.n_seen == 8
    # The four actions of the goal count as tried at the first end; later ends are those that cannot be avoided.
    assert (explorer.tries > 0).all()
    assert 1 <= path.terminated.sum() <= 6
    assert (path.obs != 7).all()


def test_same_seed_same_walk_in_one_piece_or_two(four_rooms: eo.MDP) -> None:
    a, b = Explorer(104, 4, rng=5), Explorer(104, 4, rng=5)
    assert a.walk(four_rooms, 200).obs.tobytes() == b.walk(four_rooms, 200).obs.tobytes()
    again = [s.transitions.obs.tobytes() for s in cycle(four_rooms, steps=100, rounds=3, explore="frontier")]
    once = [s.transitions.obs.tobytes() for s in cycle(four_rooms, steps=100, rounds=3, explore="frontier")]
    assert again == once


@pytest.mark.parametrize("n_envs", [1, 3])
def test_environments_of_numbered_states(n_envs: int) -> None:
    how: dict[str, Any] = {
        "steps": 900,
        "rounds": 1,
        "n_options": 2,
        "n_envs": n_envs,
        "max_episode_steps": 450,
    }
    (found,) = cycle("eigenoptions/FourRooms-v0", explore="frontier", **how)
    (by_options,) = cycle("eigenoptions/FourRooms-v0", **how)
    assert found.seen == 104 > by_options.seen
    assert isinstance(found.options, eo.OptionSet)


def test_observations_in_cells() -> None:
    """Random actions leave the valley of the car seldom; toward unknown cells it is left by swinging."""
    space = gym.make("MountainCar-v0").observation_space
    cells = Cells(space.low, space.high)
    assert cells.cells == 20
    assert Cells(np.zeros(6), np.ones(6)).count <= 200_000
    explorer = Explorer(cells.count, 3, gamma=0.99, state=cells)
    found = eo.collect("MountainCar-v0", 3000, policy=explorer, n_envs=2)
    chance = eo.collect("MountainCar-v0", 3000, n_envs=2)
    assert len(np.unique(cells(found.next_obs))) > 2 * len(np.unique(cells(chance.next_obs)))
    assert explorer.n_seen >= len(np.unique(cells(found.next_obs)))


def test_bad_input_is_refused(four_rooms: eo.MDP) -> None:
    for call, complaint in (
        (
            lambda: next(cycle(four_rooms, explore="nearest")),
            "explore must be one of options, frontier, got 'nearest'",
        ),
        (lambda: next(cycle("CartPole-v1", explore="frontier")), "needs states .* finite bounds"),
        (
            lambda: Cells(np.zeros(18), np.ones(18)),
            "observations of 18 dimensions give more than 200,000 cells",
        ),
        (lambda: Cells([0.0], [1.0], cells=0), r"cells must be a whole number in 1\.\.200000, got 0"),
        (lambda: Cells([0.0], [1.0])([[np.nan]]), "observations must be finite, got nan"),
        (lambda: Explorer(3, 0), "n_actions must be a whole number from 1, got 0"),
        (lambda: Explorer(3, 2, gamma=1.0), r"gamma must be in \(0, 1\)"),
        (lambda: Explorer(3, 2, prior=-1.0), r"prior must be in \[0, inf\)"),
        (lambda: Explorer(3, 2).walk(four_rooms, 5), "made for 104 states and 4 actions, got 3 and 2"),
        (lambda: Explorer(104, 4).walk(four_rooms, 5, begin=104), r"begin must be a state in 0..103"),
        (lambda: Explorer(3, 2)([3]), "states must be in 0..2"),
        (lambda: Explorer(3, 2)(np.zeros((2, 2))), "states must be whole numbers"),
    ):
        with pytest.raises(ValueError, match=complaint):
            call()


def test_updates_reach_twice_as_far_as_the_nearest_untried_action() -> None:
    """On a line, from its end: the first untried action is two steps away, so states within six steps count."""
    n = 12
    explorer = Explorer(n, 2, rng=0)
    explorer._reserve(2 * n)
    known = explorer._known
    for row in range(2 * n):
        s, right = divmod(row, 2)
        known.tries[row], known.head[row], known.link[row] = 1, row, -1
        known.after[row] = min(s + 1, n - 1) if right else max(s - 1, 0)
    assert around(known, 0) == n
    known.tries[2 * 2] = 0
    assert around(known, 0) == 7
    assert known.queue[:7].tolist() == list(range(7))
