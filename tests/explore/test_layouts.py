"""Layouts never seen: rules, motions, maps, skills, and what is refused."""

from __future__ import annotations

import copy
import logging
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.envs.families.windows import Task
from eigenoptions.explore.layouts import planning
from eigenoptions.explore.layouts.changes import Change, apply_change, describe_change
from eigenoptions.explore.layouts.counts import Counts, join_features
from eigenoptions.explore.layouts.motions import Motion, Motions
from eigenoptions.explore.layouts.rules import Scene
from tests.crates import STEPS, Crates, view_crates

MINIGRID_MOTIONS = [Motion(3, (0, 0)), Motion(1, (0, 0)), Motion(0, (-1, 0))]
MINIGRID_MOTIONS += [Motion(0, (0, 0))] * 4


def make_minigrid(name: str, rules: eo.Rules | None = None) -> eo.OptionsWrapper:
    env = eo.MapWrapper(gym.make(f"minigrid:MiniGrid-{name}-v0"), rules=rules)
    return eo.OptionsWrapper(env, env.skills(32), primitives=False)


def make_crates(n_skills: int = 48) -> eo.OptionsWrapper:
    env = eo.MapWrapper(Crates(), view_crates, at=(3, 3), reach=2)
    return eo.OptionsWrapper(env, env.skills(n_skills), primitives=False)


def act_at_random(env: eo.OptionsWrapper, n_steps: int, seed: int = 0) -> list[float]:
    """Choose uniformly among available skills; return the rewards of the episodes."""
    env.action_space.seed(seed)
    env.reset(seed=seed)
    rewards = []
    while n_steps > 0:
        _, _, terminated, truncated, info = env.step(env.action_space.sample())
        n_steps -= info["duration"]
        if terminated or truncated:
            rewards.append(info["primitive_return"])
            env.reset()
    return rewards


@pytest.fixture(scope="module")
def door_key() -> eo.OptionsWrapper:
    env = make_minigrid("DoorKey-5x5")
    env.rewards = act_at_random(env, 2000)  # type: ignore[attr-defined]
    return env


def rules_of(env: eo.OptionsWrapper) -> eo.Rules:
    rules: eo.Rules = env.get_wrapper_attr("rules")
    return rules


# Changes and counts.


@pytest.mark.parametrize(
    ("new", "old", "other"),
    [
        ((4, 2, 0), (4, 2, 1), (1, 0, 0)),
        ((1, 0, 0), (5, 3, 0), (1, 0, 0)),
        ((7,), (3,), (0,)),
        ((2, 5, 0), (2, 5, 0), (1, 0, 0)),
    ],
)
def test_every_description_of_a_change_leads_to_it(
    new: Any, old: Any, other: Any
) -> None:
    for change in describe_change(new, old, other):
        assert apply_change(change, old, other) == new


def count_outcome(counts: Counts, cell: Any, hand: Any, opens: bool) -> None:
    """Count what toggling a door did: colour, state (1 closed, 2 locked)."""
    after = (*cell[:-1], 0) if opens else cell
    parts = [[Change("stayed")], describe_change(after, cell, hand), [Change("same")]]
    counts.count(0, make_context(cell, hand), parts, episode=0)


def make_context(cell: Any, hand: Any) -> Any:
    return join_features([cell, hand], (int(cell[1] == hand[1]),))


def test_colour_is_found_not_to_matter_at_closed_doors() -> None:
    counts = Counts()
    for colour in range(4):
        count_outcome(counts, (4, colour, 1), (1, 9, 0), opens=True)
    prediction = counts.predict(0, make_context((4, 7, 1), (1, 9, 0)))
    assert not prediction.is_untried
    assert prediction.changes is not None
    assert prediction.changes[1] == Change("set", (0,), (2,))


def test_keys_are_tried_at_locked_doors_though_they_open_no_closed_ones() -> None:
    # Closed doors open with any hand: the hand does not matter there.
    counts = Counts()
    for colour in range(6):
        count_outcome(counts, (4, colour, 1), (1, 9, 0), opens=True)
        count_outcome(counts, (4, colour, 1), (5, 8, 0), opens=True)
    count_outcome(counts, (4, 0, 2), (1, 9, 0), opens=False)
    assert counts.predict(0, make_context((4, 0, 2), (5, 0, 0))).is_untried


def test_nothing_swapped_with_nothing_does_not_hide_that_things_are_swapped() -> None:
    counts = Counts()
    empty = (1, 0, 0)

    def drop(hand: Any) -> None:
        parts = [[Change("stayed")], describe_change(hand, empty, hand)]
        parts.append(describe_change(empty, hand, empty))
        counts.count(4, make_context(empty, hand), parts, episode=0)

    drop(empty)
    for colour in range(1, 5):
        drop((5, colour, 0))
    prediction = counts.predict(4, make_context(empty, (5, 0, 0)))
    assert prediction.changes is not None
    assert prediction.changes[1] == Change("swap")


# Motions.


def test_motions_of_minigrid_are_learned(door_key: eo.OptionsWrapper) -> None:
    assert rules_of(door_key).motions.motions == MINIGRID_MOTIONS


def test_motions_without_turns_are_learned() -> None:
    env = make_crates()
    act_at_random(env, 300)
    assert rules_of(env).motions.motions == [Motion(0, step) for step in STEPS]


class Noise(gym.Env[Any, Any]):
    """Windows that have nothing to do with each other."""

    def __init__(self) -> None:
        self.action_space = gym.spaces.Discrete(3)
        self.observation_space = gym.spaces.Box(0, 9, (5, 5), np.int64)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self.np_random.integers(0, 9, (5, 5)), {}

    def step(self, action: int) -> Any:
        return self.np_random.integers(0, 9, (5, 5)), 0.0, False, False, {}


def test_windows_without_clear_motions_are_refused() -> None:
    env = eo.MapWrapper(Noise(), lambda obs: (obs, 0), at=(2, 2))
    env.reset(seed=0)

    def act() -> None:
        for step in range(2000):
            env.step(step % 3)

    with pytest.raises(ValueError, match="motion"):
        act()


def test_a_motion_that_proves_wrong_is_fitted_again() -> None:
    # An action that was blocked at first, and moves later.
    motions = Motions(2)
    rng = np.random.default_rng(0)
    world = rng.integers(0, 5, (60, 9, 1))
    window = world[:5, 2:7]
    for _ in range(10):
        motions.compare(window, 0, window, (2, 2))
    for row in range(20):
        before, after = world[row : row + 5, 2:7], world[row + 1 : row + 6, 2:7]
        motions.compare(before, 1, after, (2, 2))
    assert motions.motions == [Motion(0, (0, 0)), Motion(0, (1, 0))]
    changes = [
        motions.compare(
            world[row : row + 5, 2:7], 0, world[row + 1 : row + 6, 2:7], (2, 2)
        )
        for row in range(20)
    ]
    assert sum(changes) == 1
    assert motions.motions[0] == Motion(0, (1, 0))


# Rules and skills.


def test_rules_read_like_a_manual(door_key: eo.OptionsWrapper) -> None:
    text = str(rules_of(door_key))
    assert "toggle, door, locked, hand key: state becomes open" in text
    assert "forward, goal: pays" in text


def test_events_are_found_without_their_names(door_key: eo.OptionsWrapper) -> None:
    labels = [skill.label for skill in door_key.options if skill.label]
    assert labels[0] == "to the unknown"
    assert "forward, door: moves" in labels
    assert (
        "pick up, key: takes what was in hand, hand takes what was in front" in labels
    )
    assert len(labels) < 20


def test_random_choice_among_skills_wins(door_key: eo.OptionsWrapper) -> None:
    rewards = door_key.rewards  # type: ignore[attr-defined]
    assert np.mean(np.array(rewards[5:]) > 0) > 0.8


def test_rules_travel_through_a_file(
    door_key: eo.OptionsWrapper, tmp_path: Path
) -> None:
    rules = rules_of(door_key)
    rules.save(tmp_path / "rules.safetensors")
    loaded = eo.load_rules(tmp_path / "rules.safetensors")
    assert loaded.events == rules.events
    assert loaded.motions.motions == rules.motions.motions

    # Both choose the same from then on.
    def run(rules: eo.Rules) -> list[float]:
        return act_at_random(make_minigrid("DoorKey-6x6", rules), 400, seed=3)

    assert run(copy.deepcopy(rules)) == run(loaded)


def test_skills_mask_what_the_rules_call_impossible(
    door_key: eo.OptionsWrapper,
) -> None:
    rules = copy.deepcopy(rules_of(door_key))
    env = make_minigrid("Empty-6x6", rules)
    env.reset(seed=0)
    labels = [skill.label for skill in env.options]
    available = {labels[i] for i in np.flatnonzero(env.action_masks())}
    # There is a goal, which this mission has not paid for yet, and no door.
    assert "try forward where it was never tried" in available
    assert not any("door" in label for label in available)


def test_every_available_skill_begins_and_others_do_not() -> None:
    env = make_minigrid("KeyCorridorS3R3")
    act_at_random(env, 1000)
    mask = env.action_masks()
    for number, skill in enumerate(env.options):
        assert (skill.begin(None).act(None) >= 0) == mask[number]


def test_observations_are_inside_of_their_space() -> None:
    env = make_minigrid("DoorKey-5x5")
    obs, info = env.reset(seed=0)
    assert env.observation_space.contains(obs)
    assert info["action_mask"].shape == (32,)
    assert env.action_space.n == 32
    for _ in range(100):
        obs, _, terminated, truncated, _ = env.step(env.action_space.sample())
        assert env.observation_space.contains(obs)
        if terminated or truncated:
            env.reset()


def test_the_same_seed_gives_the_same_steps() -> None:
    first = act_at_random(make_minigrid("KeyCorridorS3R3"), 600, seed=5)
    assert first == act_at_random(make_minigrid("KeyCorridorS3R3"), 600, seed=5)


def test_a_world_of_ones_own_needs_a_view_and_a_cell() -> None:
    env = make_crates()
    rewards = act_at_random(env, 2500)
    labels = [skill.label for skill in env.options]
    assert sum(reward > 0 for reward in rewards) >= 2
    assert any("hand kind grows by 1" in label for label in labels)
    assert any("behind takes what was in front" in label for label in labels)


def test_beliefs_are_tried_again() -> None:
    rules = eo.Rules(n_actions=1)
    scene = Scene((7,), (0,))
    rules.learn_effect(
        0, scene, [[Change("stayed")], [Change("same")], [Change("same")]]
    )
    assert not rules.is_due(Task(), 0, scene)
    rules.episode += 100
    assert rules.is_due(Task(), 0, scene)


def test_more_events_than_room_warn_once(caplog: pytest.LogCaptureFixture) -> None:
    env = make_crates(n_skills=8)
    with caplog.at_level(logging.WARNING, logger="eigenoptions"):
        act_at_random(env, 800)
    assert sum("skills" in record.message for record in caplog.records) == 1


def test_moving_things_are_told(caplog: pytest.LogCaptureFixture) -> None:
    env = make_minigrid("Dynamic-Obstacles-8x8")
    with caplog.at_level(logging.WARNING, logger="eigenoptions"):
        act_at_random(env, 1500)
    assert rules_of(env).unexplained.changes > 0.05
    assert sum("move by themselves" in r.message for r in caplog.records) == 1


def test_quiet_worlds_are_explained(door_key: eo.OptionsWrapper) -> None:
    unexplained = rules_of(door_key).unexplained
    assert unexplained.effects < 0.01
    assert unexplained.changes < 0.01


# Agents.


def test_drawing_until_won_counts_steps_and_gives_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    env = make_minigrid("Empty-5x5")
    env.reset(seed=0)
    assert eo.draw_until_won(env, wins=2) > 0
    with caplog.at_level(logging.WARNING, logger="eigenoptions"):
        eo.draw_until_won(make_minigrid("DoorKey-8x8"), wins=3, max_steps=50)
    assert any("max_steps" in record.message for record in caplog.records)


# What is refused.


def make_rgb() -> gym.Env[Any, Any]:
    from minigrid.wrappers import RGBImgPartialObsWrapper

    return RGBImgPartialObsWrapper(gym.make("minigrid:MiniGrid-Empty-5x5-v0"))


@pytest.mark.parametrize(
    "env", [lambda: gym.make("CartPole-v1"), make_rgb, lambda: eo.envs.MazeEnv("S..G")]
)
def test_what_is_no_window_is_refused(env: Any) -> None:
    with pytest.raises(ValueError, match="window"):
        eo.MapWrapper(env())


def test_positions_are_refused() -> None:
    env = gym.make("CartPole-v1")
    with pytest.raises(TypeError, match="integer"):
        eo.MapWrapper(env, lambda obs: (obs.reshape(2, 2), 0), at=(0, 0))


def test_a_view_needs_the_cell_of_the_agent() -> None:
    with pytest.raises(ValueError, match="at="):
        eo.MapWrapper(Crates(), view_crates)
    with pytest.raises(ValueError, match="window"):
        eo.MapWrapper(Crates(), view_crates, at=(7, 0))


def test_rules_of_other_actions_are_refused() -> None:
    with pytest.raises(ValueError, match="actions"):
        eo.MapWrapper(Crates(), view_crates, eo.Rules(n_actions=7), at=(3, 3))


def test_actions_that_are_vectors_are_refused() -> None:
    env = gym.make("Pendulum-v1")
    with pytest.raises(ValueError, match="actions"):
        eo.MapWrapper(env, lambda obs: (np.zeros((3, 3), int), 0), at=(1, 1))


def test_skills_belong_to_one_environment() -> None:
    env = eo.MapWrapper(Crates(), view_crates, at=(3, 3), reach=2)
    skills = env.skills(32)
    envs = gym.vector.SyncVectorEnv([Crates] * 2)
    with pytest.raises(ValueError, match="one environment"):
        eo.OptionsVectorWrapper(envs, skills)


# What is known of a layout, and the way on.


def make_known(rules: eo.Rules, seed: int = 7) -> eo.MapWrapper:
    """A layout never seen, in which the agent has looked around."""
    env = eo.MapWrapper(gym.make("minigrid:MiniGrid-DoorKey-6x6-v0"), rules=rules)
    env.reset(seed=seed)
    for action in (0, 0, 0, 0):
        env.step(action)
    return env


def test_options_are_discovered_in_what_is_known(door_key: eo.OptionsWrapper) -> None:
    env = make_known(copy.deepcopy(rules_of(door_key)))
    found = env.found
    options = eo.discover(found, n_options=2)
    assert options.mdp.n_states == found.mdp.n_states > 4

    # They run in the layout that they were discovered in.
    agent = eo.OptionsWrapper(env, options[:1], option_chance=None)
    agent.reset(seed=7)
    n_options_taken = 0
    for _ in range(20):
        _, _, terminated, truncated, info = agent.step(agent.action_space.sample())
        n_options_taken += info["option"] >= 0 and not info.get("unavailable", False)
        if terminated or truncated:
            break
    # Poses of another episode are other states, even of the same seed.
    assert n_options_taken == 0


def test_the_table_of_a_layout_is_that_of_its_moves(
    door_key: eo.OptionsWrapper,
) -> None:
    env = make_known(copy.deepcopy(rules_of(door_key)))
    mdp = env.found.mdp
    states = list(mdp.states or ())
    for action in (1, 2, 2, 0, 2):
        before = states.index(env._identify_state(None, None))
        env.step(action)
        after = states.index(env._identify_state(None, None))
        assert mdp.successors[before, action] == after


def follow(env: eo.MapWrapper, n_episodes: int, seed: int) -> list[float]:
    rewards = []
    for episode in range(n_episodes):
        env.reset(seed=seed + episode)
        is_over = False
        while not is_over:
            way = env.found.option() if env.rules.motions.is_ready else None
            action = env.action_space.sample() if way is None else way.act(None)
            _, reward, terminated, truncated, _ = env.step(action)
            is_over = terminated or truncated
        rewards.append(float(reward))
    return rewards


def test_the_way_on_wins_without_an_agent(door_key: eo.OptionsWrapper) -> None:
    rules = copy.deepcopy(rules_of(door_key))
    env = eo.MapWrapper(gym.make("minigrid:MiniGrid-DoorKey-6x6-v0"), rules=rules)
    assert min(follow(env, 10, seed=50)) > 0.9


def test_the_way_on_learns_from_nothing() -> None:
    env = eo.MapWrapper(gym.make("minigrid:MiniGrid-DoorKey-5x5-v0"))
    env.action_space.seed(0)
    assert np.mean(np.array(follow(env, 12, seed=0)[-6:]) > 0.8) > 0.8


def test_plans_end_at_their_bound_and_count(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(planning, "_MAX_SITUATIONS", 30)
    env = eo.MapWrapper(Crates(max_steps=100), view_crates, at=(3, 3), reach=2)
    env.action_space.seed(0)
    with caplog.at_level(logging.WARNING, logger="eigenoptions"):
        follow(env, 4, seed=0)
    assert env.found.option().gave_up > 0
    assert sum("gave_up" in record.message for record in caplog.records) == 1


def test_a_potential_rises_towards_what_pays_in_every_layout(
    door_key: eo.OptionsWrapper,
) -> None:
    rules = copy.deepcopy(rules_of(door_key))
    env = eo.MapWrapper(gym.make("minigrid:MiniGrid-DoorKey-6x6-v0"), rules=rules)
    env.reset(seed=0)
    shaped = eo.ShapedReward(env, env.found.potential(), gamma=1.0)
    for seed in (3, 4):
        shaped.reset(seed=seed)
        rewards = []
        is_over = False
        while not is_over:
            action = env.found.option().act(None)
            _, reward, terminated, truncated, info = shaped.step(action)
            rewards.append(float(reward) - float(info["unshaped_reward"]))
            is_over = terminated or truncated
        # It rises to 0.99 before the last step, and what it gave is taken back there.
        assert rewards[-1] == pytest.approx(-0.99)
        assert sum(rewards) == pytest.approx(0.0)


@pytest.mark.filterwarnings("ignore")
def test_options_dqn_takes_skills_by_their_masks() -> None:
    agents = pytest.importorskip("eigenoptions.agents.sb3")
    env = make_minigrid("DoorKey-5x5")
    agent = agents.OptionsDQN("MlpPolicy", env, learning_starts=50, seed=0)
    agent.learn(400, primitive_steps=True)
    assert agent.num_timesteps >= 400
    obs, _ = env.reset(seed=1)
    masks = env.action_masks()
    choice, _ = agent.predict(obs, deterministic=True, action_masks=masks)
    assert masks[choice]


def test_there_is_no_map_before_motions_are_known() -> None:
    env = eo.MapWrapper(Crates(), view_crates, at=(3, 3), reach=2)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="no map yet"):
        _ = env.found


def test_a_mission_is_a_task_that_names_a_thing() -> None:
    env = eo.MapWrapper(gym.make("minigrid:BabyAI-GoToLocal-v0"))
    skills = eo.OptionsWrapper(env, env.skills(32), primitives=False)
    act_at_random(skills, 1500)
    text = str(env.rules)
    assert "arrive at ball, the named one: pays" in text
    assert "arrive at key, another than the named one: goes on" in text
    assert np.mean(np.array(follow(env, 10, seed=900)) > 0) > 0.9


def test_what_always_ended_an_episode_is_rarely_offered() -> None:
    rewards = act_at_random(make_minigrid("LavaCrossingS9N1"), 1500)
    assert np.mean(np.array(rewards[-15:]) > 0) > 0.6
