"""`OptionsVectorWrapper` decides as single wrappers do, its slow twins."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import MultiDiscrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

import eigenoptions as eo
from eigenoptions.envs import (
    FixedSeed,
    MazeEnv,
    OptionsVectorSpace,
    OptionsVectorWrapper,
    OptionsWrapper,
)
from eigenoptions.samples.features import Raw
from eigenoptions.samples.linear import LinearOptionSet
from tests.tables import make_options

N_ENVS = 5
MAZE = "S.......\n.#######\n........\n.......G"


class StateReward(gym.Wrapper[Any, Any, Any, Any]):
    """A reward that depends on state and step."""

    def reset(self, **settings: Any) -> Any:
        self.steps = 0
        return self.env.reset(**settings)

    def step(self, action: Any) -> Any:
        self.steps += 1
        obs, _, terminated, truncated, info = self.env.step(action)
        return obs, (int(obs) % 3) * 0.5 + self.steps % 2, terminated, truncated, info


@pytest.fixture(scope="module")
def options() -> eo.OptionSet:
    return eo.discover(eo.maze(MAZE), n_options=6)


def make_one() -> gym.Env[Any, Any]:
    # Without a start in the map, every episode begins in a random state.
    return TimeLimit(StateReward(MazeEnv(MAZE.replace("S", "."))), 37)


def wrap(env: Any, options: Any, *args: Any, **settings: Any) -> OptionsVectorWrapper:
    """With a fixed option chance, since the automatic one simulates."""
    return OptionsVectorWrapper(
        env, options, *args, **{"option_chance": 0.05, **settings}
    )


def make_envs(
    n: int = N_ENVS, maze: str = MAZE, mode: AutoresetMode = AutoresetMode.NEXT_STEP
) -> SyncVectorEnv:
    return SyncVectorEnv([lambda: MazeEnv(maze)] * n, autoreset_mode=mode)


class Outcome(NamedTuple):
    """What came of a decision."""

    before: int
    choice: int
    after: int
    option: int
    duration: int
    terminated: bool
    truncated: bool
    # Reward, discount and return without discount, which are computed in floats.
    returns: tuple[float, float, float]


def decide_singly(options: Any, seed: int, n_decisions: int) -> list[list[Outcome]]:
    """What each of the single wrappers returns for random available decisions."""
    outcomes: list[list[Outcome]] = [[] for _ in range(N_ENVS)]
    for i in range(N_ENVS):
        env = OptionsWrapper(make_one(), options, gamma=0.9, option_chance=0.05)
        rng = np.random.default_rng((seed, i))
        obs, info = env.reset(seed=seed + i)
        for _ in range(n_decisions):
            before = obs
            action = rng.choice(np.flatnonzero(info["action_mask"]))
            obs, reward, terminated, truncated, info = env.step(action)
            outcome = Outcome(
                before,
                action,
                obs,
                info["option"],
                info["duration"],
                terminated,
                truncated,
                (reward, info["discount"], info["primitive_return"]),
            )
            outcomes[i].append(outcome)
            if terminated or truncated:
                obs, info = env.reset()
    return outcomes


def decide_together(
    envs: OptionsVectorWrapper, options: eo.OptionSet, seed: int, n_steps: int
) -> list[list[Outcome]]:
    """What the vector wrapper returns for the decisions of `decide_singly`."""
    outcomes: list[list[Outcome]] = [[] for _ in range(N_ENVS)]
    rngs = [np.random.default_rng((seed, i)) for i in range(N_ENVS)]
    actions = np.zeros(N_ENVS, dtype=int)
    decides = np.ones(N_ENVS, dtype=bool)
    resets = np.zeros(N_ENVS, dtype=bool)
    obs, infos = envs.reset(seed=seed)
    for _ in range(n_steps):
        is_available = options.policy.T[obs] >= 0
        for i, mask in enumerate(infos["action_mask"]):
            if decides[i]:
                assert mask.tolist() == [1, 1, 1, 1, *is_available[i]]
                actions[i] = rngs[i].choice(np.flatnonzero(mask))
            elif not resets[i]:
                # A running option leaves no choice.
                assert np.flatnonzero(mask).tolist() == [actions[i]]

        # A running option ignores the action.
        given = np.where(decides, actions, np.arange(N_ENVS))
        obs, reward, terminated, truncated, infos = envs.step(given)
        is_last = terminated | truncated
        for i in np.flatnonzero(infos["complete"]):
            after = obs[i]
            if envs.autoreset == AutoresetMode.SAME_STEP and is_last[i]:
                after = infos["final_obs"][i]
            outcome = Outcome(
                infos["begin_obs"][i],
                infos["choice"][i],
                after,
                infos["option"][i],
                infos["duration"][i],
                terminated[i],
                truncated[i],
                (reward[i], infos["discount"][i], infos["primitive_return"][i]),
            )
            outcomes[i].append(outcome)
        assert (reward[~infos["complete"]] == 0).all()

        decides = infos["complete"] | (infos["duration"] == 0)
        if envs.autoreset == AutoresetMode.NEXT_STEP:
            # The next step of these environments is a reset, which ignores the action.
            resets = is_last
            decides &= ~resets
        elif envs.autoreset == AutoresetMode.DISABLED and is_last.any():
            obs, reset_infos = envs.reset(options={"reset_mask": is_last})
            infos["action_mask"] = reset_infos["action_mask"]
    return outcomes


@pytest.mark.parametrize("kind", ["table", "objects"])
@pytest.mark.parametrize("autoreset", list(AutoresetMode))
def test_decisions_equal_those_of_single_wrappers(
    options: eo.OptionSet, autoreset: AutoresetMode, kind: str
) -> None:
    n_decisions = 60
    expected = decide_singly(options, seed=7, n_decisions=n_decisions)
    inner = SyncVectorEnv([make_one] * N_ENVS, autoreset_mode=autoreset)
    envs = wrap(inner, options if kind == "table" else list(options), gamma=0.9)
    outcomes = decide_together(envs, options, seed=7, n_steps=600)
    for ours, theirs in zip(outcomes, expected, strict=True):
        for our, their in zip(ours[:n_decisions], theirs, strict=True):
            assert our[:-1] == their[:-1]
            np.testing.assert_allclose(our.returns, their.returns, rtol=1e-12)


def test_a_step_that_is_only_a_reset_runs_no_option() -> None:
    to_the_goal = eo.OptionSet(eo.maze("S.G"), [[1, 1, -1]])
    envs = wrap(make_envs(1, "S.G"), to_the_goal)
    envs.reset(seed=0)
    choice = np.array([envs.n_primitive])
    infos = []
    terminated = []
    for _ in range(3):
        *_, ended, _, info = envs.step(choice)
        infos.append(info)
        terminated.append(bool(ended[0]))
    assert terminated == [False, True, False]
    assert [info["duration"].tolist() for info in infos] == [[1], [2], [0]]
    assert [info["option"].tolist() for info in infos] == [[0], [0], [-1]]


def test_unavailable_option_takes_one_random_action_by_the_seed(
    options: eo.OptionSet,
) -> None:
    successors = eo.maze(MAZE).successors

    def walk(seed: int) -> np.ndarray:
        envs = wrap(make_envs(8), options)
        obs, infos = envs.reset(seed=seed)
        path = []
        for i in range(120):
            before = obs
            mask = infos["action_mask"]
            actions = np.full(8, 4 + i % 6)
            obs, _, _, _, infos = envs.step(actions)

            is_step = infos["duration"] > 0
            begins = is_step & (mask.sum(axis=1) > 1)
            is_unavailable = mask[np.arange(8), actions] == 0
            np.testing.assert_array_equal(
                infos["unavailable"][begins], is_unavailable[begins]
            )
            moved = successors[before, infos["primitive_action"]]
            np.testing.assert_array_equal(moved[is_step], obs[is_step])
            path.append(obs)
        return np.array(path)

    assert (walk(1) == walk(1)).all()
    assert (walk(1) != walk(2)).any()


class Right:
    """Right until the wall, with patience."""

    stop_chance = 0.0

    def __init__(self, patience: int | None = None) -> None:
        self.patience = patience

    def act(self, obs: Any) -> int:
        return 1

    def potential(self, obs: Any) -> float:
        return float(min(obs, 4))


def test_patience_ends_options_as_in_single_wrappers() -> None:
    def compare(options: Any, actions: tuple[int, ...], single: Any, batch: Any):
        """`single` and `batch` are the `state` of the two wrappers."""
        maze = "S" + "." * 20
        settings: dict[str, Any] = {"max_duration": 9, "option_chance": 0.05}
        env = OptionsWrapper(MazeEnv(maze), options, state=single, **settings)
        envs = wrap(make_envs(2, maze), options, state=batch, **settings)
        env.reset(seed=0)
        envs.reset(seed=0)
        for action in actions:
            *_, info = env.step(action)
            steps = 0
            is_complete = False
            while not is_complete:
                *_, infos = envs.step(np.array([action, 0]))
                steps += 1
                is_complete = infos["complete"][0]
            assert steps == info["duration"] == infos["duration"][0]

    compare([Right(3), Right()], (1, 4, 4), None, None)

    weights = [[[0.0], [1.0], [0.0], [0.0]]]
    learned = LinearOptionSet([eo.Purpose([1.0])], Raw(), 4, weights=weights)
    compare(
        learned.with_termination(patience=3),
        (1, 1, 4),
        single=lambda state: np.minimum([float(state)], 4.0),
        batch=lambda states: np.minimum(states, 4.0)[:, None],
    )


def test_stop_chance_ends_options_alike() -> None:
    endless = make_options(np.ones((1, 3), dtype=int), 4)
    settings = {"option_chance": 1.0, "stop_chance": 0.25, "max_duration": 50}
    envs = wrap(make_envs(20, "S.."), endless, **settings)
    for is_sampled in (True, False):
        envs.reset(seed=0)
        durations = []
        for _ in range(200):
            actions = envs.action_space.sample() if is_sampled else np.full(20, 4)
            *_, infos = envs.step(actions)
            durations += infos["duration"][infos["complete"]].tolist()
        share = np.mean(np.array(durations) == 1)
        assert abs(share - 0.25) < 5 * np.sqrt(0.25 * 0.75 / len(durations))


def test_poses_are_reckoned_in_each_environment() -> None:
    def make() -> gym.Env[Any, Any]:
        return FixedSeed(gym.make("minigrid:MiniGrid-Empty-5x5-v0"), 0)

    found = eo.explore(make(), 2000, key="pose", seed=0, rng=0)
    options = eo.discover(found, n_options=2)
    paths = np.random.default_rng(0).integers(3, size=(2, 60))
    envs = wrap(SyncVectorEnv([make] * 2), options)
    singles = [OptionsWrapper(make(), options, option_chance=0.05) for _ in range(2)]
    _, infos = envs.reset(seed=0)
    single_infos = [env.reset(seed=0)[1] for env in singles]
    for actions in paths.T:
        masks = [info["action_mask"] for info in single_infos]
        np.testing.assert_array_equal(infos["action_mask"], masks)
        *_, infos = envs.step(actions)
        for i, env in enumerate(singles):
            if infos["duration"][i] == 0:
                # The step after an end was a reset.
                _, single_infos[i] = env.reset()
            else:
                *_, single_infos[i] = env.step(int(actions[i]))


def test_reset_mask_ends_the_options_of_some_environments(
    options: eo.OptionSet,
) -> None:
    envs = wrap(make_envs(6, mode=AutoresetMode.DISABLED), options)
    with pytest.raises(gym.error.ResetNeeded):
        envs.reset(options={"reset_mask": np.arange(6) == 0})
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    n_continued = 0
    for i in range(200):
        _, _, terminated, _, infos = envs.step(rng.integers(10, size=6))
        mask = infos["action_mask"]
        reset_mask = (np.arange(6) == i % 6) | terminated
        *_, reset_infos = envs.reset(options={"reset_mask": reset_mask.copy()})
        assert (reset_infos["action_mask"][reset_mask, :4] == 1).all()
        continues = ~reset_mask & (mask.sum(axis=1) == 1)
        assert (reset_infos["action_mask"][continues] == mask[continues]).all()
        n_continued += int(continues.sum())
    assert n_continued > 10


def test_samples_are_available_options_with_option_chance(
    options: eo.OptionSet,
) -> None:
    envs = wrap(make_envs(400), options, option_chance=0.25)
    space = envs.action_space
    assert space == MultiDiscrete([10] * 400)
    _, infos = envs.reset(seed=0)
    space.seed(0)
    for _ in range(20):
        actions = space.sample()
        assert space.contains(actions)
        assert infos["action_mask"][np.arange(400), actions].all()
        *_, infos = envs.step(actions)
    envs.reset(seed=0)
    share = np.mean([(space.sample() >= 4).mean() for _ in range(50)])
    assert abs(share - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 20_000)

    # A copy knows no masks.
    alone = pickle.loads(pickle.dumps(space))
    assert alone.sample().max() == 9


def test_space_sample_takes_a_mask() -> None:
    space = OptionsVectorSpace(4, 6, 3)
    only_seven = np.zeros((3, 10), dtype=np.int8)
    only_seven[:, 7] = 1
    assert space.sample(mask=only_seven).tolist() == [7, 7, 7]
    with pytest.raises(ValueError, match="mask"):
        space.sample(mask=np.ones(3, dtype=np.int8))


def test_mask_of_the_environment_is_kept() -> None:
    options = make_options(np.zeros((2, 500), dtype=int), 6)
    envs = wrap(gym.make_vec("Taxi-v4", 3), options)
    bare = gym.make_vec("Taxi-v4", 3)
    _, infos = envs.reset(seed=0)
    _, bare_infos = bare.reset(seed=0)
    np.testing.assert_array_equal(
        infos["action_mask"][:, :6], bare_infos["action_mask"]
    )
    *_, infos = envs.step(np.array([0, 1, 6]))
    *_, bare_infos = bare.step(np.array([0, 1, 0]))
    np.testing.assert_array_equal(
        infos["action_mask"][:2, :6], bare_infos["action_mask"][:2]
    )
    assert infos["action_mask"][2].tolist() == [0] * 6 + [1, 0]
    assert envs.action_masks().dtype == np.bool_


class Unmarked(gym.vector.VectorWrapper):
    """Does not say for which environments the mask is."""

    def reset(self, **settings: Any) -> Any:
        obs, infos = self.env.reset(**settings)
        del infos["_action_mask"]
        return obs, infos


def test_mask_without_a_mark_is_that_of_all_environments() -> None:
    options = make_options(np.zeros((2, 500), dtype=int), 6)
    envs = wrap(Unmarked(gym.make_vec("Taxi-v4", 3)), options)
    _, infos = envs.reset(seed=0)
    _, bare_infos = gym.make_vec("Taxi-v4", 3).reset(seed=0)
    assert not bare_infos["action_mask"].all()
    np.testing.assert_array_equal(
        infos["action_mask"][:, :6], bare_infos["action_mask"]
    )


class Faulty(gym.vector.VectorWrapper):
    """Replaces one part of what a step returns."""

    part = 1
    value: Any = 0.0

    def step(self, actions: Any) -> Any:
        outcome = list(self.env.step(actions))
        outcome[self.part] = self.value
        return tuple(outcome)


@pytest.mark.parametrize(
    ("part", "value", "word"),
    [
        (0, np.full(3, -1), "observations"),
        (0, np.zeros((3, 1), dtype=int), "observations"),
        (0, np.full(3, 25), "observations"),
        (1, np.zeros(13), "rewards"),
        (1, np.zeros(1), "rewards"),
        (1, np.zeros((3, 1)), "rewards"),
        (2, np.zeros(2, dtype=bool), "terminated"),
        (3, np.zeros(4, dtype=bool), "truncated"),
    ],
)
def test_step_checks_what_the_environment_returns(
    options: eo.OptionSet, part: int, value: Any, word: str
) -> None:
    inner = Faulty(make_envs(3))
    envs = wrap(inner, options)
    envs.reset(seed=0)
    inner.part = part
    inner.value = value
    with pytest.raises(ValueError, match=word):
        envs.step(np.array([0, 1, 4]))


def test_wrong_argument_raises(options: eo.OptionSet) -> None:
    mazes = make_envs(3)
    envs = wrap(mazes, options)
    with pytest.raises(gym.error.ResetNeeded):
        envs.step(np.zeros(3, dtype=int))
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=r"0\.\.9"):
        envs.step(np.array([0, 1, 10]))
    for actions in ([0, 1, 10], [0, -1, 0], [0.0, 1.0, 2.0], [0, 1]):
        with pytest.raises(ValueError, match="actions"):
            envs.step(np.array(actions))
    with pytest.raises(ValueError, match="states"):
        wrap(make_envs(2, "S.."), options)
    with pytest.raises(ValueError, match="state="):
        wrap(mazes, options, state=lambda s: s * 0 + 25).reset(seed=0)
    with pytest.raises(TypeError, match="VectorEnv"):
        wrap(MazeEnv(MAZE), options)


class Silent(SyncVectorEnv):
    """A vector that resets itself, and does not say how."""

    def __init__(self, mode: AutoresetMode | None, names_last_obs: bool = True) -> None:
        super().__init__(
            [lambda: MazeEnv("S.G")] * 2, autoreset_mode=AutoresetMode.SAME_STEP
        )
        self.metadata = {"autoreset_mode": mode}
        self.names_last_obs = names_last_obs

    def step(self, actions: Any) -> Any:
        *row, infos = super().step(actions)
        if not self.names_last_obs:
            infos.pop("final_obs", None)
        return *row, infos


def wrap_options(envs: gym.vector.VectorEnv[Any, Any, Any]) -> Any:
    return OptionsVectorWrapper(envs, eo.discover(eo.maze("S.G"), 1))


def collect_some(envs: gym.vector.VectorEnv[Any, Any, Any]) -> Any:
    return eo.collect(envs, 40)


@pytest.mark.parametrize("reader", [eo.ExploringVector, wrap_options, collect_some])
@pytest.mark.parametrize("mode", [None, "SameStep"])
def test_vectors_that_do_not_say_how_they_reset_are_refused(
    reader: Any, mode: Any
) -> None:
    with pytest.raises(ValueError, match=r"metadata.*AutoresetMode"):
        reader(Silent(mode))
    # The remedy of the message.
    envs = Silent(mode)
    envs.metadata["autoreset_mode"] = AutoresetMode.SAME_STEP
    reader(envs)


@pytest.mark.parametrize("reader", [eo.ExploringVector, collect_some])
def test_vectors_that_never_reset_themselves_are_refused(reader: Any) -> None:
    with pytest.raises(ValueError, match="NEXT_STEP"):
        reader(Silent(AutoresetMode.DISABLED))


def test_the_last_observation_of_an_episode_is_asked_for_in_one_line() -> None:
    envs = Silent(AutoresetMode.SAME_STEP, names_last_obs=False)
    with pytest.raises(ValueError, match="final_obs"):
        collect_some(envs)
    exploring = eo.ExploringVector(envs)
    exploring.reset(seed=0)
    exploring.step(np.array([1, 1]))
    with pytest.raises(ValueError, match="final_obs"):
        exploring.step(np.array([1, 1]))


class Shows(gym.Env[Any, Any]):
    """A line of five cells whose number is shown in several ways."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, space: gym.Space[Any], show: Any) -> None:
        self.observation_space = space
        self.show = show

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cell = 0
        return self.show(self.cell), {}

    def step(self, action: int) -> Any:
        self.cell = max(0, self.cell + 2 * int(action) - 1)
        return self.show(self.cell), 0.0, self.cell == 4, False, {}


CELL = gym.spaces.Discrete(5)
SHOWN = {
    "tuple": (gym.spaces.Tuple([CELL, CELL]), lambda cell: (cell, 0)),
    "dict": (
        gym.spaces.Dict({"at": gym.spaces.Tuple([CELL, CELL])}),
        lambda cell: {"at": (0, cell)},
    ),
    "sequence": (gym.spaces.Sequence(CELL), lambda cell: (1,) * cell),
    "text": (gym.spaces.Text(5, charset="x"), lambda cell: "x" * (cell + 1)),
}


@pytest.mark.parametrize("kind", SHOWN)
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_every_kind_of_observation_is_explored_in_a_vector(
    kind: str, mode: AutoresetMode
) -> None:
    envs = SyncVectorEnv([lambda: Shows(*SHOWN[kind])] * 3, autoreset_mode=mode)
    exploring = eo.ExploringVector(envs)
    exploring.reset(seed=0)
    for _ in range(60):
        exploring.step(exploring.action_space.sample())
    alone = eo.explore(Shows(*SHOWN[kind]), 60)
    assert set(exploring.found.states) == set(alone.states)
    assert len(alone.states) == 5
