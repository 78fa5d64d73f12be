"""From samples to options: walks, experience of tables and features, and how close samples come to the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from scipy.linalg import subspace_angles

import eigenoptions as eo
from eigenoptions.discovery.experience import FeatureExperience, TableExperience
from eigenoptions.discovery.samples import begin, from_samples, from_transitions
from eigenoptions.envs import CollectionStopped, collect
from eigenoptions.features import Fourier, OneHot, Tiles
from eigenoptions.mdp import Transitions
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.options.walks import walk
from tests import reference

PARTS = ("obs", "action", "next_obs", "terminated")


def every_transition(mdp: eo.MDP) -> Transitions:
    table = mdp.transition.tocoo()
    action = table.row % mdp.n_actions
    return Transitions(table.row // mdp.n_actions, action, table.col, np.zeros(table.nnz, dtype=bool))


def everywhere(mdp: eo.MDP) -> eo.MDP:
    """The same table without start and goal: walks begin anywhere and never end."""
    return eo.MDP(mdp.transition, coords=mdp.coords)


def test_every_transition_once_gives_the_exact_options(domain: eo.MDP) -> None:
    """Theorem 5.1, end to end: the options, and not only the eigenvectors."""
    sampled = eo.discover(every_transition(domain), n_options=16)
    exact = eo.discover(domain, n_options=16, operator="combinatorial")
    assert sampled.labels == exact.labels
    assert np.array_equal(sampled.policy, exact.policy)
    np.testing.assert_array_equal(sampled.value, exact.value)
    assert sampled.provenance["operator"] == "incidence"
    assert sampled.provenance["dynamics"] == "estimated", (
        "what was seen may not be all, so the file does not insist"
    )


def test_samples_come_close_and_arrive(four_rooms: eo.MDP) -> None:
    """Principal angles to the exact eigenspace fall, and the options of a long walk are the exact ones."""
    table = eo.MDP(four_rooms.transition, start=four_rooms.start)
    exact = eo.discover(table, 8, operator="combinatorial")
    vectors = eo.spectrum(eo.graph(table), 5, "combinatorial").vectors[:, 1:]
    for seed in range(3):
        past, angles, low = TableExperience(104, 4), [], 0
        path = walk(table, 20_000, rng=seed)
        for high in (300, 3000, 20_000):
            past.add(Transitions(*(getattr(path, part)[low:high] for part in PARTS)))
            low = high
            angles.append(subspace_angles(past.spectrum(5).vectors[:, 1:], vectors)[0])
        assert angles[0] > angles[1] > angles[2]
        assert angles[2] < 1e-7
        assert len(past.gram) == 336
        assert np.array_equal(past.options(8).policy, exact.policy)


@pytest.mark.parametrize("chance", [None, 0.0, 0.3, 1.0])
@pytest.mark.parametrize("maze", ["four-rooms", "slippery"])
def test_the_walk_is_its_slow_twin(maze: str, chance: float | None, slippery: eo.MDP) -> None:
    mdp = slippery.with_task(goal=2) if maze == "slippery" else eo.maze(maze)
    options = eo.discover(mdp, n_options=4)
    walked = walk(mdp, 2000, options, option_chance=chance, rng=5, max_episode_steps=150)
    seed = int(np.random.default_rng(5).integers(2**64, dtype=np.uint64))
    starts = [mdp.start] if mdp.start is not None else [s for s in range(mdp.n_states) if s != mdp.goal]
    how = {"steps": 2000, "starts": starts, "goal": mdp.goal, "limit": 150, "seed": seed, "chance": chance}
    slow = reference.wander(mdp, options.policy, **how)
    assert np.array_equal(np.stack([walked.obs, walked.action, walked.next_obs], axis=1), slow)
    assert np.array_equal(walked.terminated, walked.next_obs == mdp.goal)
    on = reference.wander(mdp, options.policy, begin=1, **how)
    assert np.array_equal(
        walk(mdp, 2000, options, option_chance=chance, begin=1, rng=5, max_episode_steps=150).obs, on[:, 0]
    )


def test_a_walk_chooses_uniformly_over_actions_and_options(four_rooms: eo.MDP) -> None:
    """By the definition of diffusion time: the mean steps of the walk are those of the exact computation."""
    goal, start = 9, 94
    options = eo.discover(four_rooms, n_options=64)
    task = four_rooms.with_task(start=start, goal=goal)
    walked = walk(task, 400_000, options, rng=3)
    ends = np.flatnonzero(walked.terminated)
    lengths = np.diff(ends)
    exact = eo.hitting_times(four_rooms, options)[start, goal]
    assert abs(lengths.mean() - exact) < 4 * lengths.std() / np.sqrt(len(lengths))


def test_the_sampled_mdp_is_shares_of_what_followed(slippery: eo.MDP) -> None:
    past = TableExperience(3, 2)
    batch = walk(everywhere(slippery), 60_000, rng=0)
    past.add(batch)
    np.testing.assert_allclose(past.mdp().transition.toarray(), slippery.transition.toarray(), atol=0.02)
    assert past.n_seen == 3
    fresh = TableExperience(3, 2)
    for low in range(0, 60_000, 7001):
        fresh.add(Transitions(*(getattr(batch, part)[low : low + 7001] for part in PARTS)))
    assert np.array_equal(fresh.counts.toarray(), past.counts.toarray())
    assert fresh.options(2).policy.tobytes() == past.options(2).policy.tobytes()


def test_what_was_not_tried_stays_put() -> None:
    past = TableExperience(5, 2)
    past.add(Transitions(np.array([0, 1]), np.array([1, 1]), np.array([1, 2]), np.zeros(2, dtype=bool)))
    assert past.mdp().successors.tolist() == [[0, 1], [1, 2], [2, 2], [3, 3], [4, 4]]
    options = past.options()
    assert (options.policy[:, 3:] == -1).all(), "a state never seen has no option"


def test_batches_are_as_good_as_one(four_rooms: eo.MDP, tmp_path: Path) -> None:
    whole = collect("eigenoptions/FourRooms-v0", 5000, chunk=1000)
    record = collect("eigenoptions/FourRooms-v0", 5000, chunk=1000, out=tmp_path)
    space = gym.spaces.Discrete(104)
    one = eo.discover(whole, n_options=8, space=space)
    many = eo.discover(record, n_options=8, space=space)
    assert one.policy.tobytes() == many.policy.tobytes()
    assert one.n_states == 104


def test_environments_are_sampled(four_rooms: eo.MDP) -> None:
    table = from_samples("eigenoptions/FourRooms-v0", 4, steps=4000)
    assert isinstance(table, eo.OptionSet)
    assert table.provenance["environment"] == "eigenoptions/FourRooms-v0"
    assert np.array_equal(table.coords, four_rooms.coords)
    eo.OptionsWrapper(gym.make("eigenoptions/FourRooms-v0"), table).reset(seed=0)
    lake = from_samples("FrozenLake-v1", 2, steps=2000)
    assert (lake.n_states, lake.n_actions) == (16, 4)
    same = from_samples(four_rooms, 4, steps=4000)
    assert (same.n_states, same.provenance["environment"]) == (104, "four-rooms")
    car = from_samples(lambda: gym.make("MountainCar-v0"), 2, steps=500, features="tiles", tiles=4)
    assert isinstance(car, LinearOptionSet)
    assert car.features == Tiles((-1.2, -0.07), (0.6, 0.07), tiles=4)
    vector = gym.make_vec("CartPole-v1", num_envs=2)
    assert len(from_samples(vector, 2, steps=500)) == 2
    raw = from_samples("Acrobot-v1", 2, steps=500, features="raw")
    assert raw.directions.shape == (2, 6)


def test_whitened_functions_have_variance_one_and_vary_on_the_data() -> None:
    batch = collect("MountainCar-v0", 4000, n_envs=4)
    phi = Fourier((-1.2, -0.07), (0.6, 0.07), order=3)
    spread = {}
    for whiten in (True, False):
        past = FeatureExperience(phi, 3, whiten=whiten)
        past.add(batch)
        f = phi(past.kept.obs) @ past.spectrum(3).vectors
        spread[whiten] = f.std(axis=0)
        assert past.spectrum(3).n_zero == 0
    np.testing.assert_allclose(spread[True], 1.0, atol=1e-6)
    assert spread[False].max() < 0.01, (
        "without it the smallest eigenvalues belong to functions that are flat there"
    )


def test_whitening_does_not_depend_on_the_scale_of_features() -> None:
    batch = collect("MountainCar-v0", 2000, n_envs=4)
    phi = Fourier((-1.2, -0.07), (0.6, 0.07), order=2)
    scale = np.linspace(0.5, 1.5, 9)
    curves = []
    for features in (phi, lambda obs: phi(obs) * scale):
        past = FeatureExperience(features, 3, cells=40, each=None)
        past.add(batch)
        curves.append(np.abs(features(batch.obs) @ past.spectrum(1).vectors[:, 0]).std())
    assert curves[0] == pytest.approx(curves[1], rel=0.05)


def test_crowded_places_do_not_outweigh_the_others() -> None:
    past = FeatureExperience(Fourier((0.0,), (1.0,)), 2, cells=10, each=3)
    x = np.full((1000, 1), 0.55)
    past.add(Transitions(x, np.tile([0, 1], 500), x + 0.01, np.zeros(1000, dtype=bool)))
    past.add(Transitions(x, np.tile([0, 1], 500), x + 0.01, np.zeros(1000, dtype=bool)))
    past.add(Transitions(np.array([[0.2]]), np.array([0]), np.array([[0.3]]), np.zeros(1, dtype=bool)))
    assert len(past.kept) == 3 + 3 + 1
    assert (past.n_seen, past.n_transitions) == (3, 2001)
    rng = np.random.default_rng(0)
    whole, parts = (FeatureExperience(Fourier((0.0,), (1.0,)), 2, cells=10, each=3) for _ in range(2))
    obs, action = rng.random((500, 1)), rng.integers(2, size=500)
    batch = Transitions(obs, action, rng.random((500, 1)), np.zeros(500, dtype=bool))
    whole.add(batch)
    for low in range(0, 500, 77):
        parts.add(Transitions(*(getattr(batch, part)[low : low + 77] for part in PARTS)))
    assert np.array_equal(whole.kept.obs, parts.kept.obs)


def test_the_kind_of_experience_is_told_by_the_space() -> None:
    numbers = Transitions(np.array([0, 3]), np.array([0, 1]), np.array([3, 1]), np.zeros(2, dtype=bool))

    def kind(space: Any, features: Any = None) -> type:
        return type(begin(numbers, space, 2, features, {})[0])

    assert kind(None) is TableExperience
    assert kind(gym.spaces.Discrete(4)) is TableExperience
    assert kind(None, OneHot(7)) is TableExperience
    assert kind(gym.spaces.MultiBinary(4), "raw") is FeatureExperience
    with pytest.raises(ValueError, match="need Box observations, these are MultiBinary"):
        kind(gym.spaces.MultiBinary(4))


def test_an_environment_that_fails_is_reported() -> None:
    class Broken(gym.Wrapper[Any, Any, Any, Any]):
        steps = 0

        def step(self, action: Any) -> Any:
            self.steps += 1
            if self.steps > 700:
                raise OSError("the cable fell out")
            return super().step(action)

    message = r"stopped after 700 of 2000 transitions: OSError: the cable fell out"
    with pytest.raises(CollectionStopped, match=message):
        eo.discover(Broken(gym.make("eigenoptions/FourRooms-v0")), n_options=4, steps=2000)


def test_bad_input_is_refused(four_rooms: eo.MDP) -> None:
    batch = walk(four_rooms, 50)
    nan = Transitions(
        np.full((3, 2), np.nan), np.zeros(3, dtype=int), np.zeros((3, 2)), np.zeros(3, dtype=bool)
    )
    words = Transitions(np.array([{"a": 1}]), np.array([0]), np.array([{"a": 1}]), np.zeros(1, dtype=bool))
    nothing = Transitions(np.zeros((0, 2)), np.zeros(0, dtype=int), np.zeros((0, 2)), np.zeros(0, dtype=bool))
    options = eo.discover(four_rooms, n_options=2)
    cases: list[tuple[Any, str]] = [
        (
            lambda: from_transitions(batch, 9999),
            r"n_options must be in 1..\d+ for these transitions, got 9999",
        ),
        (lambda: from_transitions(iter([1, 2])), "give Transitions, batches of them or what .* got int"),
        (lambda: from_transitions([]), "there are no transitions: the sequence is empty"),
        (lambda: from_transitions(nothing), "there are no transitions"),
        (lambda: from_transitions(nan), "observation 0 has nan in dimension 0"),
        (
            lambda: from_transitions(words),
            "observations must be arrays of numbers, got object: pass features=",
        ),
        (lambda: from_transitions(batch, space=gym.spaces.Discrete(3)), "states must be in 0..2"),
        (lambda: from_transitions(batch, n_actions=1), "actions must be in 0..0"),
        (
            lambda: eo.discover(batch, 2, "covering-eigen"),
            "method 'covering-eigen' does not work from samples: make an MDP first, or choose one of .*eigen",
        ),
        (
            lambda: eo.discover("Pendulum-v1", 2),
            r"Pendulum-v1 has actions Box.*: only Discrete\(n\) is supported",
        ),
        (lambda: eo.discover("Blackjack-v1", 2), "only a deterministic environment can be explored"),
        (
            lambda: eo.discover("Blackjack-v1", 2, steps=50),
            r"observations of Blackjack-v1 are Tuple.*pass features=",
        ),
        (lambda: eo.discover("NoSuchEnv-v0", 2), "no environment 'NoSuchEnv-v0'"),
        (lambda: eo.discover("MountainCar-v0", 2, steps=0), "steps must be a whole number from 1, got 0"),
        (
            lambda: eo.discover("MountainCar-v0", 2, steps=99, policy="magic"),
            "policy must be one of learned, look-ahead, got 'magic'",
        ),
        (lambda: eo.discover("MountainCar-v0", 2, steps=99, features="wavelets"), "features must be one of"),
        (
            lambda: FeatureExperience(Fourier((0.0,), (1.0,)), 2, cells=0),
            "cells must be a whole number from 1, got 0",
        ),
        (lambda: walk(four_rooms, 0), "steps must be a whole number from 1, got 0"),
        (lambda: walk(four_rooms, 5, begin=104), "begin must be a state in 0..103, got 104"),
        (lambda: walk(four_rooms, 5, options, option_chance=2), r"option_chance must be in \[0, 1\]"),
        (lambda: walk(eo.maze("i-maze"), 5, options), "options of another state space"),
        (
            lambda: collect("FrozenLake-v1", 5, policy=options, option_chance=-1),
            r"option_chance must be in \[0, 1\]",
        ),
    ]
    for call, complaint in cases:
        with pytest.raises(ValueError, match=complaint):
            call()
    with pytest.raises(
        TypeError, match="discover takes an MDP, a maze, Transitions or an environment, got int"
    ):
        eo.discover(3)


def test_a_function_of_bare_numbers_or_of_words_can_be_the_features() -> None:
    """Batches that are no arrays (N, ...) of numbers have no cells to thin them by: all transitions count."""
    rng = np.random.default_rng(0)
    x, action = rng.random(400), rng.integers(2, size=400)
    after = np.clip(x + 0.1 * (2 * action - 1), 0, 1)

    def waves(obs: Any) -> np.ndarray:
        return np.cos(np.pi * np.outer(np.asarray(obs).astype(float), np.arange(1, 4)))

    plain = Transitions(x, action, after, np.zeros(400, dtype=bool))
    words = Transitions(x.astype(str), action, after.astype(str), np.zeros(400, dtype=bool))
    found = [eo.discover(data, 2, features=waves, n_actions=2) for data in (plain, words)]
    assert isinstance(found[0], LinearOptionSet)
    np.testing.assert_allclose(found[0].directions, found[1].directions, atol=1e-9)
