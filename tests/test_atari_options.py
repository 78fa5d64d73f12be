"""Atari: options of a game, in files and in a Gymnasium environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ale_py")

import gymnasium
from gymnasium.utils.env_checker import check_env

import eigenoptions as eo
from eigenoptions.atari import (
    Emulator,
    Start,
    atari_options,
    bind,
    collect,
    complete,
    directions,
    random_directions,
    rank,
)
from eigenoptions.atari.ram import Ram
from eigenoptions.options import TERMINATE
from reproduction.atari.published import rows_of_v

RAM = {"obs_type": "ram", "frameskip": 1, "repeat_action_probability": 0.0}
STARTS = [
    Start("Freeway", (0,) * 30, (14,), (6,)),
    Start("Freeway", (0,) * 20 + (1,) * 60, (14,), (66,)),
]


def freeway(**settings: Any) -> Any:
    return gymnasium.make("ALE/Freeway-v5", **{**RAM, **settings})


@pytest.fixture(scope="module")
def spectrum() -> eo.Spectrum:
    return directions(collect("Freeway", STARTS, n=600, longest=300), sample=600)


@pytest.fixture(scope="module")
def options(spectrum: eo.Spectrum) -> eo.LinearOptionSet:
    return atari_options(spectrum, "ALE/Freeway-v5")


def test_options_come_in_the_order_of_the_paper(spectrum: eo.Spectrum, options: eo.LinearOptionSet) -> None:
    assert len(options) == 2 * rank(spectrum)
    assert options.labels[:4] == ("#0+", "#0-", "#1+", "#1-")
    assert options.eigenvalues[0] == spectrum.values[-1]
    assert (np.diff(options.eigenvalues) <= 0).all()
    assert (options.eigenvalues > 0).all()
    assert np.array_equal(options.direction[0], spectrum.vectors[:, -1])
    assert np.array_equal(options.direction[1], -options.direction[0])
    assert options.provenance["game"] == "Freeway"
    assert options.n_actions == 3


def test_the_paper_has_1024_options(spectrum: eo.Spectrum) -> None:
    every = atari_options(spectrum, "Freeway", both_signs=False, null=True)
    assert len(every) == 1024
    assert np.array_equal(every.direction, complete(spectrum).T)
    assert (every.eigenvalues == 0).sum() == 1024 - rank(spectrum)


def test_any_directions_will_do(spectrum: eo.Spectrum) -> None:
    assert len(atari_options(rows_of_v(spectrum), "Freeway", both_signs=False)) == 1024
    assert len(atari_options(random_directions(spectrum), "Freeway")) == 2 * rank(spectrum)
    with pytest.raises(ValueError, match="directions have 7 entries, but the coding makes 1024 features"):
        atari_options(np.ones((1, 7)), "Freeway")
    with pytest.raises(ValueError, match="shape"):
        atari_options(np.ones(1024), "Freeway")


def test_the_same_seed_makes_the_same_file(tmp_path: Path, options: eo.LinearOptionSet) -> None:
    again = atari_options(directions(collect("Freeway", STARTS, n=600, longest=300), sample=600), "freeway")
    options.save(tmp_path / "one")
    again.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("coding", [Ram(), Ram("thermometer", addresses=(14, 16), steps=16)])
def test_a_file_knows_its_game_and_its_coding(tmp_path: Path, coding: Ram) -> None:
    found = directions(collect("Freeway", STARTS, n=5, longest=300, coding=coding), sample=None)
    made = atari_options(found, "Freeway")
    made.save(tmp_path / "skills.safetensors")
    read = eo.load_linear_options(tmp_path / "skills.safetensors")
    assert read.features == coding
    assert read.provenance == made.provenance
    assert np.array_equal(read.direction, made.direction)
    env = freeway()
    obs, _ = env.reset(seed=0)
    assert bind(read, env).choices(obs).tolist() == bind(made, env).choices(obs).tolist()


def test_an_option_takes_the_best_action(options: eo.LinearOptionSet) -> None:
    """The slow twin: try every action in an emulator of our own, in plain Python."""
    options, env = options[::8], freeway()
    obs, _ = env.reset(seed=0)
    bound = bind(options, env)
    base = env.unwrapped
    for _ in range(25):
        here = base.clone_state()
        gains = []
        for action in range(3):
            after = base.step(action)[0].copy()
            base.restore_state(here)
            change = np.unpackbits(after, bitorder="little").astype(float)
            gains.append(options.direction @ (change - np.unpackbits(obs, bitorder="little")))
        for i, (option, row) in enumerate(zip(bound, np.array(gains).T, strict=True)):
            tie = 1e-9 * np.abs(options.direction[i]).max()
            best = next(a for a in range(3) if row[a] >= row.max() - tie)
            assert option.act(obs) == (best if row.max() > tie else TERMINATE)
        obs = env.step(int(bound[0].act(obs)) % 3)[0]


def test_looking_ahead_leaves_the_environment_as_it_was(options: eo.LinearOptionSet) -> None:
    looking, plain = freeway(), freeway()
    obs, _ = looking.reset(seed=3)
    plain.reset(seed=3)
    bound = bind(options[:6], looking)
    for action in np.random.default_rng(0).integers(3, size=100).tolist():
        bound.choices(obs)
        obs, reward, *_ = looking.step(action)
        other, same, *_ = plain.step(action)
        assert reward == same
        assert np.array_equal(obs, other)
        assert looking.unwrapped.clone_state().serialize() == plain.unwrapped.clone_state().serialize()


def test_an_agent_chooses_skills(options: eo.LinearOptionSet) -> None:
    env = freeway(max_num_frames_per_episode=2000)
    wrapped = eo.OptionsWrapper(env, bind(options[:8], env), max_duration=20)
    assert wrapped.action_space.n == 3 + 8
    obs, info = wrapped.reset(seed=0)
    rng = np.random.default_rng(0)
    durations = []
    for _ in range(30):
        legal = np.flatnonzero(info["action_mask"])
        obs, _, terminated, truncated, info = wrapped.step(int(rng.choice(legal)))
        assert obs.shape == (128,)
        assert (terminated, truncated) == (False, False)
        durations.append(info["duration"])
    assert max(durations) > 1
    assert sum(durations) == env.unwrapped.ale.getEpisodeFrameNumber()


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_gymnasium_finds_nothing_wrong(options: eo.LinearOptionSet) -> None:
    env = freeway()
    check_env(eo.OptionsWrapper(env, bind(options[:2], env), max_duration=5), skip_render_check=True)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"obs_type": "rgb"}, r"observations are rgb, not memory \(ram\)"),
        ({"frameskip": 4}, "frame skip is 4, not 1"),
        ({"repeat_action_probability": 0.25}, r"actions are sticky \(0.25\)"),
        ({"difficulty": 1}, "difficulty is 1"),
        ({"full_action_space": True}, "not the game's minimal set"),
    ],
)
def test_another_way_of_playing_is_refused(
    options: eo.LinearOptionSet, settings: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint + r".*Make it with gymnasium.make\("):
        bind(options, freeway(**settings))


def test_options_that_hold_actions_need_that_frame_skip() -> None:
    up = np.zeros((1, 128))
    # The chicken's height.
    up[0, 14] = 1.0
    held = atari_options(up, "Freeway", False, coding=Ram("bytes"), provenance={"hold": 8})
    env = freeway(frameskip=8)
    obs, _ = env.reset(seed=0)
    assert bind(held, env)[0].act(obs) == 1
    with pytest.raises(ValueError, match=r"frame skip is 1, not 8.*frameskip=8"):
        bind(held, freeway())


def test_another_game_is_refused(options: eo.LinearOptionSet) -> None:
    with pytest.raises(
        ValueError, match="options of Freeway do not fit ALE/Pong-v5: it is another game, Pong"
    ):
        bind(options, gymnasium.make("ALE/Pong-v5", **RAM))
    with pytest.raises(ValueError, match=r"need an Atari environment, .* got CartPole-v1"):
        bind(options, gymnasium.make("CartPole-v1"))
    nameless = eo.LinearOptionSet(np.ones((1, 1024)), Ram(), 3)
    with pytest.raises(ValueError, match="have no game in their provenance"):
        bind(nameless, freeway())


def test_starts_of_these_tests_are_true() -> None:
    emulator = Emulator("Freeway")
    for start in STARTS:
        start.reach(emulator)


def test_options_take_the_coding_of_their_spectrum_unless_another_is_given() -> None:
    coding = Ram("bytes", addresses=(14, 16))
    spectrum = eo.Spectrum(np.ones(2), np.eye(2), "incidence", 0, coding)
    assert atari_options(spectrum, "Freeway").features == coding
    other = Ram("bytes", addresses=(1, 2))
    assert atari_options(spectrum, "Freeway", coding=other).features == other
