"""Options in vector environments: every decision equals that of a single wrapper, its slow twin."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import MultiDiscrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

import eigenoptions as eo
from eigenoptions.envs import MazeEnv, MazeVectorEnv, OptionsVectorWrapper, OptionsWrapper
from eigenoptions.features import Raw
from eigenoptions.options.linear import LinearOptionSet
from tests.tables import make_options

B = 5
NAMES = ("option", "duration", "discount", "primitive_return")
CLIFF = "S.......\n.#######\n........\n.......G"


class Toll(gym.Wrapper[Any, Any, Any, Any]):
    """A reward that depends on state and step, and an info."""

    def reset(self, **given: Any) -> Any:
        self.steps = 0
        return self.env.reset(**given)

    def step(self, action: Any) -> Any:
        self.steps += 1
        obs, _, terminated, truncated, info = self.env.step(action)
        return (
            obs,
            (int(obs) % 3) * 0.5 + self.steps % 2,
            terminated,
            truncated,
            {**info, "steps": self.steps},
        )


@pytest.fixture(scope="module")
def skills() -> eo.OptionSet:
    return eo.discover(eo.maze(CLIFF), n_options=6)


def one_env(limit: int = 37) -> gym.Env[Any, Any]:
    # Without a start in the map, every episode begins in a random state.
    return TimeLimit(Toll(MazeEnv(CLIFF.replace("S", "."))), limit)


def copies(autoreset: AutoresetMode, **given: Any) -> SyncVectorEnv:
    return SyncVectorEnv([lambda: one_env(**given)] * B, autoreset_mode=autoreset)


def decisions_of_singles(options: Any, seed: int, count: int, **given: Any) -> list[list[tuple[Any, ...]]]:
    """What each of B single wrappers returns for random allowed decisions."""
    found = []
    for b in range(B):
        env, rng = OptionsWrapper(one_env(), options, **given), np.random.default_rng((seed, b))
        obs, info = env.reset(seed=seed + b)
        rows = []
        for _ in range(count):
            action = rng.choice(np.flatnonzero(info["action_mask"]))
            before, (obs, reward, terminated, truncated, info) = obs, env.step(action)
            rows.append(result(before, action, obs, reward, terminated, truncated, info))
            if terminated or truncated:
                obs, info = env.reset()
        found.append(rows)
    return found


def result(
    before: Any, action: Any, obs: Any, reward: Any, terminated: Any, truncated: Any, info: Any
) -> tuple[Any, ...]:
    numbers = (before, action, obs, reward, *(info[name] for name in NAMES))
    return (*map(float, numbers), bool(terminated), bool(truncated))


@pytest.mark.parametrize("autoreset", list(AutoresetMode))
def test_decisions_are_those_of_single_wrappers(skills: eo.OptionSet, autoreset: AutoresetMode) -> None:
    """Rewards, durations, discounts, ends and masks, for random decisions, under every autoreset mode."""
    expected = decisions_of_singles(skills, 7, 60, gamma=0.9)
    envs = OptionsVectorWrapper(copies(autoreset), skills, gamma=0.9)
    rngs = [np.random.default_rng((7, b)) for b in range(B)]
    obs, infos = envs.reset(seed=7)
    found: list[list[tuple[Any, ...]]] = [[] for _ in range(B)]
    actions, decides, resets = np.zeros(B, dtype=int), np.ones(B, dtype=bool), np.zeros(B, dtype=bool)
    for _ in range(600):
        table = np.column_stack([np.ones((B, 4)), skills.policy.T[obs] >= 0])
        for b in range(B):
            mask = infos["action_mask"][b]
            if decides[b]:
                np.testing.assert_array_equal(mask, table[b])
                actions[b] = rngs[b].choice(np.flatnonzero(mask))
            elif not resets[b]:
                # A running option leaves no choice, and ignores what is given.
                assert np.flatnonzero(mask).tolist() == [actions[b]]
        given = np.where(decides, actions, np.arange(B))
        obs, reward, terminated, truncated, infos = envs.step(given)
        ended = terminated | truncated
        for b in np.flatnonzero(infos["complete"]):
            same_step = autoreset == AutoresetMode.SAME_STEP and ended[b]
            last = infos["final_obs"][b] if same_step else obs[b]
            parts = (infos["begin_obs"][b], infos["choice"][b], last, reward[b], terminated[b], truncated[b])
            found[b].append(result(*parts, {name: infos[name][b] for name in NAMES}))
        assert (reward[~infos["complete"]] == 0).all()
        decides = infos["complete"] | (infos["duration"] == 0)
        if autoreset == AutoresetMode.NEXT_STEP:
            # The next row of these copies is a reset, which ignores the action.
            resets = ended
            decides &= ~resets
        elif autoreset == AutoresetMode.DISABLED and ended.any():
            obs, fresh = envs.reset(options={"reset_mask": ended})
            infos["action_mask"] = fresh["action_mask"]
    for mine, theirs in zip(found, expected, strict=True):
        count = min(len(mine), len(theirs))
        assert count == 60
        assert mine[:count] == theirs[:count]


def test_mode_step_is_a_vector_of_single_wrappers(skills: eo.OptionSet) -> None:
    def wrapped() -> gym.Env[Any, Any]:
        return OptionsWrapper(one_env(), skills, mode="step", max_duration=4)

    theirs = SyncVectorEnv([wrapped] * B)
    ours = OptionsVectorWrapper(copies(AutoresetMode.NEXT_STEP), skills, mode="step", max_duration=4)
    assert ours.observation_space == theirs.observation_space
    assert ours.single_action_space == theirs.single_action_space
    rng = np.random.default_rng(0)
    (obs, infos), (seen, notes) = ours.reset(seed=3), theirs.reset(seed=3)
    for _ in range(300):
        for name in ("observation", "option"):
            np.testing.assert_array_equal(obs[name], seen[name])
        np.testing.assert_array_equal(infos["action_mask"], notes["action_mask"])
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in infos["action_mask"]])
        obs, *mine, infos = ours.step(actions)
        seen, *other, notes = theirs.step(actions)
        assert obs in ours.observation_space
        for a, b in zip(mine, other, strict=True):
            np.testing.assert_array_equal(a, b)
        real = infos["duration"] > 0
        for name in NAMES:
            np.testing.assert_array_equal(infos[name][real], np.asarray(notes[name])[real])
        np.testing.assert_array_equal(infos["cut"], notes.get("cut", np.zeros(B, dtype=bool)))


def slippery(start: int | None = 0) -> eo.MDP:
    """The table of CLIFF, where an action goes astray in three of ten steps."""
    mdp = eo.maze(CLIFF)
    table = mdp.transition.toarray().reshape(mdp.n_states, 4, mdp.n_states)
    return eo.MDP(0.7 * table + 0.3 * table.mean(axis=1, keepdims=True), start=start, goal=mdp.goal)


class General(MazeVectorEnv):
    """Mazes with a `step` of their own: the options go the way of any vector environment."""

    def step(self, actions: Any) -> Any:
        return super().step(actions)


@pytest.mark.parametrize("mode", ["call-and-return", "step"])
@pytest.mark.parametrize("limit", [None, 11])
@pytest.mark.parametrize("maze", ["start", "no start", "slippery"])
def test_mazes_in_one_call_go_the_general_way(
    skills: eo.OptionSet, maze: str, limit: int | None, mode: str
) -> None:
    """Everything that is returned, for any actions, also options that may not start; nothing is overwritten later."""
    mdp = {"start": CLIFF, "no start": CLIFF.replace("S", "."), "slippery": slippery(None)}[maze]
    options = make_options(skills.policy, 4)
    ours, general = (
        OptionsVectorWrapper(kind(mdp, 6, max_episode_steps=limit), options, 0.9, mode, max_duration=5)
        for kind in (MazeVectorEnv, General)
    )
    assert ours._maze is not None
    assert general._maze is None
    rng, (obs, infos) = np.random.default_rng(3), ours.reset(seed=4)
    assert_equal((obs, infos), general.reset(seed=4))
    kept, seen = [], set()
    for _ in range(400):
        actions = rng.integers(10, size=6)
        mine = ours.step(actions)
        assert_equal(mine, general.step(actions))
        assert_equal(ours.env.copies, general.env.copies)
        assert (ours.action_masks() == general.action_masks()).all()
        kept.append((mine, copy.deepcopy(mine)))
        infos = mine[-1]
        seen |= {name for name in ("cut", "unavailable", "complete") if infos[name].any()}
        seen |= {"goal"} if mine[2].any() else set()
    assert seen == {"cut", "unavailable", "complete", "goal"}
    for mine, before in kept:
        assert_equal(mine, before)


def assert_equal(a: Any, b: Any) -> None:
    """Equal values and types, also inside tuples and dicts."""
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for name in a:
            assert_equal(a[name], b[name])
    elif isinstance(a, tuple):
        for x, y in zip(a, b, strict=True):
            assert_equal(x, y)
    else:
        assert (a.dtype, a.shape, a.tolist()) == (b.dtype, b.shape, b.tolist())


@pytest.mark.parametrize("limit", [None, 23])
def test_mazes_in_one_call_are_single_wrappers(skills: eo.OptionSet, limit: int | None) -> None:
    """The slow twin: one `OptionsWrapper` per copy, one decision after the other."""
    envs = OptionsVectorWrapper(MazeVectorEnv(CLIFF, B, max_episode_steps=limit), skills, gamma=0.9)
    singles = []
    for _ in range(B):
        maze = MazeEnv(CLIFF)
        singles.append(OptionsWrapper(maze if limit is None else TimeLimit(maze, limit), skills, gamma=0.9))
    rng, decided = np.random.default_rng(0), 0
    _, infos = envs.reset(seed=0)
    for env in singles:
        env.reset(seed=0)
    for _ in range(500):
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in infos["action_mask"]])
        obs, reward, terminated, truncated, infos = envs.step(actions)
        for b in np.flatnonzero(infos["complete"]):
            choice = infos["choice"][b]
            (*theirs, info), place = singles[b].step(int(choice)), singles[b].unwrapped
            assert theirs == [obs[b], reward[b], terminated[b], truncated[b]]
            assert [info[name] for name in NAMES] == [infos[name][b] for name in NAMES]
            assert info["action_mask"].tolist() == infos["action_mask"][b].tolist()
            assert place.state == obs[b]
            decided += 1
            if terminated[b] or truncated[b]:
                singles[b].reset()
    assert decided > 500


@pytest.mark.parametrize("limit", [None, 14])
def test_a_vector_of_mazes_is_single_mazes(limit: int | None) -> None:
    """The slow twin of the kernel; the step after an end is a reset."""
    envs = MazeVectorEnv(CLIFF, B, max_episode_steps=limit)
    singles = [MazeEnv(CLIFF) if limit is None else TimeLimit(MazeEnv(CLIFF), limit) for _ in range(B)]
    rng, over = np.random.default_rng(0), np.zeros(B, dtype=bool)
    assert envs.reset(seed=0)[0].tolist() == [env.reset(seed=0)[0] for env in singles]
    ends = 0
    for _ in range(1500):
        actions = rng.choice([1, 2, 3], size=B, p=[0.4, 0.4, 0.2])
        found = envs.step(actions)
        for b, env in enumerate(singles):
            new = (env.reset()[0], 0.0, False, False) if over[b] else env.step(int(actions[b]))[:4]
            assert tuple(part[b] for part in found[:4]) == new
        over = found[2] | found[3]
        ends += found[2].sum()
    assert ends > 3


def test_some_copies_are_reset() -> None:
    """As Gymnasium resets those of a mask: the others go on, and a copy that had ended does not begin twice."""
    ours = MazeVectorEnv(CLIFF, B, max_episode_steps=14)
    theirs = SyncVectorEnv([lambda: TimeLimit(MazeEnv(CLIFF), 14)] * B)
    rng, ended, moved = np.random.default_rng(0), 0, 0
    assert ours.reset(seed=0)[0].tolist() == theirs.reset(seed=0)[0].tolist()
    for _ in range(300):
        actions = rng.integers(1, 4, size=B)
        mine, other = ours.step(actions), theirs.step(actions)
        assert_equal(mine[:4], other[:4])
        mask = rng.random(B) < 0.1
        if mask.any():
            ended += int((mine[2] | mine[3])[mask].sum())
            obs = ours.reset(options={"reset_mask": mask})[0]
            assert_equal(obs, theirs.reset(options={"reset_mask": mask})[0])
            moved += int((obs[~mask] != obs[mask][0]).any())
    assert min(ended, moved) > 3
    for bad, complaint in (
        (np.zeros(B, dtype=bool), "mark at least one copy"),
        (np.ones(B + 1, dtype=bool), "must have shape"),
        (np.ones(B), "array of bool"),
        ([True] * B, "array of bool"),
    ):
        with pytest.raises((TypeError, ValueError), match=complaint):
            ours.reset(options={"reset_mask": bad})


def test_options_of_some_copies_end_by_a_reset(skills: eo.OptionSet) -> None:
    """One call for mazes and the general way: a copy that is reset chooses anew, the options of the others go on."""
    ours, general = (
        OptionsVectorWrapper(kind(CLIFF, 6, max_episode_steps=30), skills)
        for kind in (MazeVectorEnv, General)
    )
    rng = np.random.default_rng(0)
    assert_equal(ours.reset(seed=0), general.reset(seed=0))
    running = 0
    for i in range(200):
        actions = rng.integers(10, size=6)
        mine = ours.step(actions)
        assert_equal(mine, general.step(actions))
        if i % 7 == 0:
            masks, fresh = mine[-1]["action_mask"], np.arange(6) == i % 6
            again = ours.reset(options={"reset_mask": fresh})
            assert_equal(again, general.reset(options={"reset_mask": fresh}))
            assert (again[1]["action_mask"][fresh, :4] == 1).all()
            goes_on = ~fresh & (masks.sum(axis=1) == 1)
            assert (again[1]["action_mask"][goes_on] == masks[goes_on]).all()
            running += int(goes_on.sum())
    assert running > 10


def test_uncertain_moves_land_by_their_chances() -> None:
    """Of single mazes and of a vector of them: the share of each end, within five standard deviations."""
    mdp, n = slippery(), 20_000
    chance = mdp.transition.toarray()[3 * 4 + 1]
    env, envs = MazeEnv(mdp, start=3), MazeVectorEnv(mdp, n, start=3)
    env.reset(seed=0)
    envs.reset(seed=0)
    alone = np.zeros(mdp.n_states)
    for _ in range(n // 4):
        env.state = 3
        alone[env.step(1)[0]] += 1
    together = np.bincount(envs.step(np.ones(n, dtype=int))[0], minlength=mdp.n_states)
    for count in (alone, together):
        expected = chance * count.sum()
        assert (np.abs(count - expected) <= 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.int32, bool])
def test_whole_numbers_of_any_kind_are_actions(kind: Any) -> None:
    envs, own = MazeVectorEnv(CLIFF, 2), MazeVectorEnv(CLIFF, 2)
    envs.reset(seed=0)
    own.reset(seed=0)
    assert envs.step(np.array([1, 0], dtype=kind))[0].tolist() == own.step(np.array([1, 0]))[0].tolist()
    for bad in ([0.0, 1.0], [0, 4], [-1, 0], [0]):
        with pytest.raises(ValueError, match=r"actions must be 2 numbers in 0\.\.3, got"):
            envs.step(np.array(bad))
    assert envs.copies.tolist() == own.copies.tolist()


def test_copies_of_a_vector_of_mazes_go_on_alike(skills: eo.OptionSet) -> None:
    envs = OptionsVectorWrapper(MazeVectorEnv(CLIFF.replace("S", "."), 4, max_episode_steps=20), skills)
    envs.reset(seed=0)
    envs.step(np.array([4, 5, 6, 7]))
    twins = copy.deepcopy(envs), pickle.loads(pickle.dumps(envs))
    rng = np.random.default_rng(0)
    for actions in rng.integers(10, size=(60, 4)):
        mine = envs.step(actions)
        for twin in twins:
            assert_equal(mine, twin.step(actions))
            # The action space of a copy knows the masks of the copy.
            assert twin.action_space.source() is twin._mask
    assert twins[0]._mask is not envs._mask


def test_native_mazes_and_unavailable_options(skills: eo.OptionSet) -> None:
    """A native vector maze; an option that may not start is one random step, decided by the seed."""

    def walk(seed: int) -> np.ndarray:
        envs = OptionsVectorWrapper(MazeVectorEnv(CLIFF, 8, max_episode_steps=50), skills)
        obs, infos = envs.reset(seed=seed)
        path = []
        for i in range(120):
            may = infos["action_mask"]
            actions = np.full(8, 4 + i % 6)
            runs = may.sum(axis=1) == 1
            before, (obs, _, _, _, infos) = obs, envs.step(actions)
            real = infos["duration"] > 0
            expected = ~runs & ~may[np.arange(8), actions].astype(bool)
            np.testing.assert_array_equal(infos["unavailable"][real & ~runs], expected[real & ~runs])
            successors = eo.maze(CLIFF).successors[before]
            assert (successors == obs[:, None]).any(axis=1)[real].all()
            path.append(obs)
        return np.array(path)

    assert (walk(1) == walk(1)).all()
    assert (walk(1) != walk(2)).any()


class Right:
    """Right until the wall."""

    patience = None
    stop_chance = 0.0

    def __init__(self, patience: int | None = None) -> None:
        self.patience = patience

    def act(self, obs: Any) -> int:
        return 1

    def potential(self, obs: Any) -> float:
        return float(min(obs, 4))


def test_objects_and_guards() -> None:
    """Options as objects, with patience of their own; learned options with patience in a batch."""
    ends = []
    for options in (
        [Right(3), Right(None)],
        LinearOptionSet([eo.Purpose([1.0])], Raw(), 4, weights=[[[0.0], [1.0], [0.0], [0.0]]]).with_termination(patience=3),
    ):
        vector = isinstance(options, list)
        state = None if vector else lambda s: np.minimum(np.asarray(s, dtype=float)[:, None], 4.0)
        single = None if vector else lambda s: np.minimum([float(s)], 4.0)
        envs = OptionsVectorWrapper(MazeVectorEnv("S" + "." * 20, 2), options, state=state, max_duration=9)
        env = OptionsWrapper(MazeEnv("S" + "." * 20), options, state=single, max_duration=9)
        env.reset(seed=0)
        envs.reset(seed=0)
        first = 1 if not vector else 4
        for action in (1, first, 4):
            *_, info = env.step(action)
            steps, complete = 0, np.zeros(2, dtype=bool)
            while not complete[0]:
                obs, _, _, _, infos = envs.step(np.array([action, 0]))
                steps, complete = steps + 1, infos["complete"]
            assert steps == info["duration"] == infos["duration"][0]
        ends.append(int(obs[0]))
    assert ends[0] > 4


def test_observations_are_mapped_once_per_step() -> None:
    """`state` may be costly: one call per step, whatever asks for its result."""
    calls = []

    def state(obs: Any) -> Any:
        calls.append(obs)
        return np.asarray(obs, dtype=float)[:, None]

    options = LinearOptionSet([eo.Purpose([1.0])], Raw(), 4, weights=[[[0.0], [1.0], [0.0], [0.0]]]).with_termination(patience=3)
    envs = OptionsVectorWrapper(MazeVectorEnv("S" + "." * 20, 2), options, state=state)
    envs.reset(seed=0)
    for action in (1, 4, 4, 0, 4):
        before = len(calls)
        envs.step(np.array([action, 4]))
        assert len(calls) == before + 1


def test_samples_of_a_batch(skills: eo.OptionSet) -> None:
    envs = OptionsVectorWrapper(MazeVectorEnv(CLIFF, 500), skills, option_chance=0.25)
    space = envs.action_space
    assert space == MultiDiscrete([10] * 500)
    _, infos = envs.reset(seed=0)
    space.seed(0)
    for _ in range(20):
        actions = space.sample()
        assert space.contains(actions)
        assert infos["action_mask"][np.arange(500), actions].all()
        _, _, _, _, infos = envs.step(actions)
    envs.reset(seed=0)
    share = np.mean([(space.sample() >= 4).mean() for _ in range(40)])
    assert abs(share - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 20_000)
    alone = copy.deepcopy(space)
    assert alone.source is None
    assert alone.sample().max() == 9
    none = np.zeros((500, 10), dtype=np.int8)
    none[:, 7] = 1
    assert (space.sample(mask=none) == 7).all()
    with pytest.raises(ValueError, match=r"masks must have shape \(500, 10\), got \(3,\)"):
        space.sample(mask=np.ones(3, dtype=np.int8))


def test_the_environments_own_mask_is_kept() -> None:
    options = make_options(np.zeros((2, 500), dtype=int), 6)
    envs = OptionsVectorWrapper(gym.make_vec("Taxi-v4", 3), options)
    own = gym.make_vec("Taxi-v4", 3)
    masks = envs.reset(seed=0)[1]["action_mask"], own.reset(seed=0)[1]["action_mask"]
    np.testing.assert_array_equal(masks[0][:, :6], masks[1])
    *_, infos = envs.step(np.array([0, 1, 6]))
    *_, notes = own.step(np.array([0, 1, 0]))
    np.testing.assert_array_equal(infos["action_mask"][:2, :6], notes["action_mask"][:2])
    assert infos["action_mask"][2].tolist() == [0] * 6 + [1, 0]
    assert envs.action_masks().dtype == np.bool_


def test_wrong_input(skills: eo.OptionSet) -> None:
    mazes = MazeVectorEnv(CLIFF, 3)
    envs = OptionsVectorWrapper(mazes, skills)
    with pytest.raises(gym.error.ResetNeeded):
        envs.step(np.zeros(3, dtype=int))
    envs.reset(seed=0)
    for bad, complaint in (
        ([0, 1, 10], r"actions must be in 0\.\.9, got 10 for copy 2"),
        ([0, -1, 0], r"actions must be in 0\.\.9, got -1 for copy 1"),
        ([0.0, 1.0, 2.0], "actions must be 3 whole numbers, got float64"),
        ([0, 1], r"actions must be 3 whole numbers, got int64 of shape \(2,\)"),
    ):
        with pytest.raises(ValueError, match=complaint):
            envs.step(np.array(bad))
    with pytest.raises(ValueError, match="they have 25 states, this one has 104"):
        OptionsVectorWrapper(MazeVectorEnv("four-rooms", 2), skills)
    with pytest.raises(ValueError, match="same size, but other dynamics"):
        OptionsVectorWrapper(MazeVectorEnv("." * 25, 2), skills)
    with pytest.raises(ValueError, match=r"state= must give 3 numbers in 0\.\.24, got \(3,\) in 25\.\.25"):
        OptionsVectorWrapper(mazes, skills, state=lambda s: s * 0 + 25).reset(seed=0)
    with pytest.raises(TypeError, match="VectorEnv"):
        OptionsVectorWrapper(MazeEnv(CLIFF), skills)
