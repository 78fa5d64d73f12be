"""Ordinary input that version 0.1 answered with wrong numbers and no error (docs/reliability.md).

Run against version 0.1 all fail but those that guard what was right; the page has the table.
"""

from __future__ import annotations

import random

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import eigenoptions as eo
from eigenoptions.envs import Numbered, OptionsWrapper, from_env

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))


class Grid(gym.Env):
    """A 5 x 5 grid that observes the number of its cell and has no table; `slip` draws from a hidden generator."""

    def __init__(self, slip=0.0, source="own", start=12, low=0):
        self.observation_space, self.action_space = Discrete(25, start=low), Discrete(4)
        self.slip, self.source, self.first, self.low = slip, source, start, low
        self.rng = np.random.default_rng(3)
        self.cell = start

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = self.first
        return self.cell + self.low, {}

    def step(self, action):
        if self.slip:
            draw = {"own": self.rng.random, "numpy": np.random.random, "random": random.random}[self.source]
            action = int(draw() * 4) if draw() < self.slip else action
        row, col = np.clip(np.add(divmod(self.cell, 5), MOVES[action]), 0, 4)
        self.cell = int(5 * row + col)
        return self.cell + self.low, 0.0, False, False, {}


def truth(action_of=lambda a: a):
    """Successors of the grid in its own numbers."""
    cells = np.stack(np.divmod(np.arange(25), 5), axis=1)
    to = [np.clip(cells + MOVES[action_of(a)], 0, 4) for a in range(4)]
    return np.stack([5 * t[:, 0] + t[:, 1] for t in to], axis=1)


# Numbers of states


@pytest.mark.parametrize("low", [0, 7])
def test_a_discrete_environment_keeps_its_numbers(low):
    mdp = from_env(Grid(low=low))
    assert np.array_equal(mdp.successors, truth())
    assert mdp.start == 12


def test_options_of_an_explored_environment_act_in_it():
    """Version 0.1: the states were renumbered, and each option ran until it was cut after 10,000 steps."""
    options = eo.discover(from_env(Grid()), n_options=4)
    env = OptionsWrapper(Grid(), options)
    env.reset(seed=0)
    for i in range(4):
        env.reset()
        _, _, _, _, info = env.step(4 + i)
        assert "cut" not in info
        assert info["duration"] <= 8


def test_states_that_are_never_reached_stay_put_and_a_larger_space_is_numbered_by_discovery():
    class Corridor(Grid):
        def step(self, action):
            self.cell = min(self.cell + 1, 20)
            return self.cell, 0.0, False, False, {}

    mdp = from_env(Corridor(start=15))
    assert mdp.n_states == 25
    assert (mdp.successors[:15] == np.arange(15)[:, None]).all()
    assert (mdp.successors[15:20] == np.arange(16, 21)[:, None]).all()
    assert from_env(Corridor(start=15), max_states=10).n_states == 6


def test_the_wrapper_refuses_options_of_another_environment_of_the_same_size():
    class Turned(Grid):
        """The same size, other moves."""

        def step(self, action):
            return super().step((action + 1) % 4)

    options = eo.discover(Grid(), n_options=4)
    with pytest.raises(ValueError, match="another state space: action"):
        OptionsWrapper(Turned(), options)
    maze = eo.discover(eo.maze("\n".join(["....."] * 5)), n_options=4)
    assert OptionsWrapper(Grid(), maze).n_primitive == 4
    # Samples do not know all moves, and stochastic dynamics prove nothing by one.
    assert OptionsWrapper(Turned(), eo.discover(Grid(), 4, steps=500, rng=0)).n_primitive == 4


def test_the_check_of_the_wrapper_leaves_the_environment_and_the_global_generator_alone():
    env, options = Grid(), eo.discover(Grid(), n_options=2)
    env.reset(seed=5)
    env.step(1)
    np.random.seed(1)  # noqa: NPY002
    before = env.cell, env.np_random.bit_generator.state, np.random.get_state()[1].tolist()  # noqa: NPY002
    OptionsWrapper(env, options)
    assert (env.cell, env.np_random.bit_generator.state, np.random.get_state()[1].tolist()) == before  # noqa: NPY002


# Randomness outside np_random


@pytest.mark.parametrize("slip", [0.3, 0.05, 0.002])
@pytest.mark.parametrize("source", ["own", "numpy", "random"])
def test_hidden_random_numbers_are_found(source, slip):
    """Version 0.1: a deterministic MDP of 15 states, where there are 25 and every move may slip."""
    for seed in range(3):
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        with pytest.raises(ValueError, match=r"(random|repeat itself).*sample this one"):
            from_env(Grid(slip, source))


def test_memory_that_the_observation_leaves_out_is_found():
    class Counts(Grid):
        """Every seventh step goes elsewhere."""

        steps = 0

        def step(self, action):
            self.steps += 1
            return super().step(action if self.steps % 7 else 0)

    with pytest.raises(ValueError, match="remembers what its observation"):
        from_env(Counts())


def test_ends_that_depend_on_the_past_are_found():
    class Visits(Grid):
        """The corner ends the episode if the opposite one was seen before."""

        seen = False

        def reset(self, *, seed=None, options=None):
            self.seen = False
            return super().reset(seed=seed)

        def step(self, action):
            obs, *_ = super().step(action)
            self.seen = self.seen or obs == 24
            return obs, 0.0, bool(obs == 0 and self.seen), False, {}

    with pytest.raises(ValueError, match=r"ended the episode|did not end"):
        from_env(Visits())


# Wrappers


class Mirrored(gym.ActionWrapper):
    def action(self, action):
        return 3 - action


class Renamed(gym.ObservationWrapper):
    """Numbers in reverse order."""

    def observation(self, obs):
        return self.observation_space.n - 1 - obs


@pytest.mark.parametrize("slippery", [False, True])
def test_a_table_is_read_through_wrappers_that_change_actions(slippery):
    """Version 0.1: the rows of the environment inside, 38 of 64 wrong."""
    lake = gym.make("FrozenLake-v1", is_slippery=slippery)
    plain, mirrored = from_env(lake), from_env(Mirrored(lake))
    rows = (4 * np.arange(16)[:, None] + [3, 2, 1, 0]).ravel()
    assert (mirrored.transition != plain.transition[rows]).nnz == 0
    assert np.array_equal(mirrored.reward, plain.reward[rows])
    assert (mirrored.start, mirrored.goal) == (plain.start, plain.goal)
    # Twice is not at all; observers, limits and rewards change nothing.
    same = gym.wrappers.TransformReward(Mirrored(gym.wrappers.TimeLimit(Mirrored(lake), 5)), lambda r: 2 * r)
    assert from_env(same).fingerprint == plain.fingerprint


def test_a_table_is_read_through_wrappers_that_rename_states_or_leave_out_actions():
    lake = gym.make("FrozenLake-v1", is_slippery=False)
    plain, renamed = from_env(lake), from_env(Renamed(lake))
    assert np.array_equal(renamed.successors, 15 - plain.successors[::-1])
    assert (renamed.start, renamed.goal) == (15, 0)
    assert np.array_equal(renamed.coords, plain.coords[::-1])
    two = from_env(gym.wrappers.TransformAction(lake, lambda a: 2 * a, Discrete(2)))
    assert np.array_equal(two.successors, plain.successors[:, [0, 2]])
    maze = gym.make("eigenoptions/FourRooms-v0")
    assert np.array_equal(from_env(Mirrored(maze)).successors, from_env(maze).successors[:, ::-1])


def test_wrappers_that_no_table_can_describe_are_refused():
    class Blurred(gym.ObservationWrapper):
        def observation(self, obs):
            return obs // 2

    class Double(gym.Wrapper):
        def step(self, action):
            self.env.step(action)
            return self.env.step(action)

    lake = gym.make("FrozenLake-v1")
    lake.reset(seed=0)
    with pytest.raises(ValueError, match=r"at random or by what went before.*sample it"):
        from_env(gym.wrappers.StickyAction(lake, 0.25))
    with pytest.raises(ValueError, match="observes 8 numbers in 16 states"):
        from_env(Blurred(lake))
    with pytest.raises(ValueError, match="takes 2 steps for one"):
        from_env(Double(lake))


def test_the_wrapper_checks_the_table_as_other_wrappers_show_it():
    lake = gym.make("FrozenLake-v1")
    plain, mirrored = eo.discover(lake, 2), eo.discover(Mirrored(lake), 2)
    OptionsWrapper(lake, plain)
    OptionsWrapper(Mirrored(lake), mirrored)
    for env, options in ((lake, mirrored), (Mirrored(lake), plain)):
        with pytest.raises(ValueError, match="other dynamics"):
            OptionsWrapper(env, options)


def test_exploration_steps_what_was_given():
    assert np.array_equal(from_env(Mirrored(Grid())).successors, truth(lambda a: 3 - a))
    assert np.array_equal(from_env(Renamed(Grid())).successors, 24 - truth()[::-1])
    two = from_env(gym.wrappers.TransformAction(Grid(), lambda a: 2 * a, Discrete(2)))
    # Up and down: the column of the start is all that is reached.
    assert np.array_equal(two.successors[2::5], truth()[2::5, [0, 2]])

    class Alternating(gym.Wrapper):
        """Every second action is another one: a wrapper with a state of its own, which is saved and restored."""

        odd = False

        def reset(self, **settings):
            self.odd = False
            return super().reset(**settings)

        def step(self, action):
            self.odd = not self.odd
            return super().step(action if self.odd else 3 - action)

    with pytest.raises(ValueError, match="remembers"):
        from_env(Alternating(Grid()))


def test_exploration_of_minigrid_steps_wrappers_that_change_actions():
    pytest.importorskip("minigrid")

    class Swapped(gym.ActionWrapper):
        def action(self, action):
            return {0: 1, 1: 0}.get(int(action), action)

    env = gym.make("minigrid:MiniGrid-Empty-5x5-v0")
    plain, swapped = Numbered(env), Numbered(Swapped(env))
    assert swapped.mdp.n_states == plain.mdp.n_states
    assert "turn left" in plain.mdp.legend
    assert swapped.mdp.legend == ""
    for numbered, left in ((plain, 0), (swapped, 1)):
        assert numbered.reset()[0] == 0
        assert numbered.step(left)[0] == numbered.mdp.successors[0, left]
        # Facing right, a turn to the left faces up, which is below on the right.
        assert (numbered.mdp.coords[numbered.mdp.successors[0, left]] > 3).all()


# Memory


@pytest.mark.parametrize("name", ["BabyAI-OpenTwoDoors-v0", "BabyAI-OpenRedBlueDoors-v0"])
def test_what_an_instruction_remembers_is_part_of_the_state(name):
    """Version 0.1: no state ends the episode, because the order of the doors was not part of the key."""
    pytest.importorskip("minigrid")
    env = Numbered(gym.make(f"minigrid:{name}"), seed=1)
    mdp = env.mdp
    ends = np.flatnonzero((mdp.successors == np.arange(mdp.n_states)[:, None]).all(axis=1))
    assert len(ends) > 0
    # A walk to one of them ends the episode there and not before.
    options = eo.solve(mdp, [eo.Purpose(np.eye(mdp.n_states)[goal], goal=int(goal)) for goal in ends[:2]])
    for option in options:
        state, _ = env.reset()
        assert option.policy[state] >= 0
        terminated = False
        while not terminated:
            state, _, terminated, _, _ = env.step(option.act(state))
        assert state == option.goal


def test_ends_by_some_moves_only_are_reported(caplog):
    class Door(Grid):
        """Entering the corner from the left ends the episode, from above it does not."""

        def step(self, action):
            before = self.cell
            obs, *_ = super().step(action)
            return obs, 0.0, bool(obs == 24 and before == 23), False, {}

    mdp = from_env(Door())
    assert np.array_equal(mdp.successors, truth())
    assert "1 actions end the episode in a state where it goes on" in caplog.text


def test_a_wrapper_that_fails_is_reported_and_not_passed_on():
    class Broken(gym.Wrapper):
        def step(self, action):
            raise OSError("the cable fell out")

    lake = gym.make("FrozenLake-v1")
    with pytest.raises(ValueError, match=r"cannot be tried \(OSError: the cable fell out\)"):
        from_env(Broken(lake))
    assert OptionsWrapper(Broken(lake), eo.discover(lake, 2)).n_primitive == 4
