"""Atari: the emulator, memory as features, the protocol, slow directions, options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ale_py")

import gymnasium
from gymnasium.utils.env_checker import check_env

import eigenoptions as eo
from eigenoptions.atari import Emulator, Ram, ram_options, slow_directions
from eigenoptions.atari.emulator import find_game_name
from eigenoptions.atari.slow import find_lasting_bytes, play_randomly
from eigenoptions.options import TERMINATE
from eigenoptions.samples.features import features_from_dict, features_to_dict
from eigenoptions.samples.incidence import feature_spectrum
from reproduction.atari.protocol import collect_ram, published_starts

STARTS = [(0,) * 30, (0,) * 20 + (1,) * 60]


def make_freeway(
    *,
    obs_type: str = "ram",
    frameskip: int = 1,
    repeat_action_probability: float = 0.0,
    **settings: Any,
) -> Any:
    return gymnasium.make(
        "ALE/Freeway-v5",
        obs_type=obs_type,
        frameskip=frameskip,
        repeat_action_probability=repeat_action_probability,
        **settings,
    )


@pytest.fixture(scope="module")
def transitions() -> eo.Transitions:
    return collect_ram("Freeway", STARTS, 600, max_episode_frames=300)


@pytest.fixture(scope="module")
def spectrum(transitions: eo.Transitions) -> eo.Spectrum:
    return feature_spectrum(transitions, Ram(), whiten=False)


# The emulator


@pytest.mark.parametrize("game", ["Freeway", "MsPacman"])
def test_emulator_looking_ahead_leaves_no_trace(game: str) -> None:
    looking = Emulator(game)
    plain = Emulator(game)
    rng = np.random.default_rng(0)
    for action in rng.integers(looking.n_actions, size=300).tolist():
        here = looking.save()
        for _ in looking.try_actions(here):
            pass
        looking.restore(here)
        assert looking.act(action) == plain.act(action)
        assert np.array_equal(looking.ram(), plain.ram())
        assert np.array_equal(looking.screen(), plain.screen())
        assert looking.over == plain.over
        assert looking.lives == plain.lives
        assert looking.key(looking.save()) == plain.key(plain.save())


def test_emulator_screen_after_restore_shows_that_state() -> None:
    emulator = Emulator("Freeway")

    def find_chicken() -> np.ndarray:
        """Lines of the picture on which the chicken is seen."""
        is_yellow = (emulator.screen()[:, 42:52] == [252, 252, 84]).all(axis=2)
        return is_yellow.any(axis=1)

    emulator.replay([1] * 200)
    high = emulator.save()
    chicken = find_chicken()
    emulator.replay([0] * 5)
    emulator.restore(high)
    assert np.array_equal(find_chicken(), chicken)
    assert emulator.key(emulator.save()) == emulator.key(high)


def test_emulator_step_ends_with_a_life_or_goes_on() -> None:
    """Montezuma's Revenge: walking left from the ladder is a deadly fall."""
    emulator = Emulator("MontezumaRevenge")
    emulator.replay([0] * 60)
    here = emulator.save()
    left = emulator.actions.index("LEFT")
    once = emulator.step(left, 300, one_life=True)
    assert once.ended
    assert once.life_lost == len(once.rams) - 1
    emulator.restore(here)
    on = emulator.step(left, 300)
    assert not on.ended
    assert on.life_lost == once.life_lost
    assert len(on.rewards) == 300


@pytest.mark.parametrize(
    "spelling",
    ["montezuma_revenge", "ALE/MontezumaRevenge-v5", "MontezumaRevengeNoFrameskip-v4"],
)
def test_find_game_name_accepts_other_spellings(spelling: str) -> None:
    assert find_game_name(spelling) == "MontezumaRevenge"


def test_games_have_noop_first() -> None:
    assert Emulator("Backgammon").noop_added
    for game in ("Backgammon", "Pacman", "Pong"):
        assert Emulator(game).actions[0] == "NOOP"


def test_missing_ale_py_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['ale_py'] = None\n"
        "import eigenoptions.atari\n"
        "eigenoptions.atari.Emulator('Freeway')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "eigenoptions[atari]" in done.stderr.splitlines()[-1]


# Memory as features


@pytest.mark.parametrize(
    "features", [Ram(), Ram("bytes"), Ram(addresses=(3, 90)), Ram("bytes", (0, 127))]
)
def test_ram_features_are_bits_or_bytes_of_the_addresses(
    features: Ram, rng: np.random.Generator
) -> None:
    memory = rng.integers(0, 256, size=(20, 128), dtype=np.uint8)
    used = memory[:, list(features.addresses)] if features.addresses else memory
    if features.code == "bits":
        expected = [
            [byte >> j & 1 for byte in row for j in range(8)] for row in used.tolist()
        ]
    else:
        expected = (used / 256).tolist()
    assert features(memory).tolist() == expected
    assert features.n_features == len(expected[0])
    assert features_from_dict(features_to_dict(features)) == features


# The protocol


def test_collect_ram_equals_a_set_of_differences(transitions: eo.Transitions) -> None:
    """The slow twin: play the same random episodes by hand, with a dictionary."""
    seen: dict[bytes, tuple[Any, Any]] = {}
    emulator = Emulator("Freeway")
    n_rounds = 0
    while len(seen) < 600:
        for i, start in enumerate(STARTS):
            emulator.reset()
            seed = np.random.SeedSequence(0, spawn_key=(n_rounds, i))
            random_actions = np.random.default_rng(seed).integers(3, size=300)
            last = emulator.ram()
            for action in (*start, *random_actions.tolist()):
                emulator.act(action)
                now = emulator.ram()
                difference = Ram()(now[None]).astype(int) - Ram()(last[None])
                if difference.any():
                    seen.setdefault(difference.tobytes(), (last, now))
                last = now
        n_rounds += 1

    chosen = np.sort(np.random.default_rng(0).choice(len(seen), 600, replace=False))
    before = np.stack([last for last, _ in seen.values()])
    after = np.stack([now for _, now in seen.values()])
    assert np.array_equal(transitions.obs, before[chosen])
    assert np.array_equal(transitions.next_obs, after[chosen])


def test_collect_ram_is_the_same_in_parallel_and_differs_by_seed(
    transitions: eo.Transitions,
) -> None:
    told: list[tuple[int, int]] = []

    def tell(n_seen: int, n_wanted: int) -> None:
        told.append((n_seen, n_wanted))

    with eo.parallel.using("processes", workers=2):
        again = collect_ram(
            "Freeway", STARTS, 600, max_episode_frames=300, progress=tell
        )
    assert np.array_equal(again.obs, transitions.obs)
    assert told[-1] == (600, 600)
    other = collect_ram("Freeway", STARTS, 600, max_episode_frames=300, rng=1)
    assert not np.array_equal(other.obs, transitions.obs)


def test_spectrum_of_memory_has_right_singular_vectors(
    transitions: eo.Transitions, spectrum: eo.Spectrum
) -> None:
    T = Ram()(transitions.next_obs).astype(float) - Ram()(transitions.obs)
    s = np.linalg.svd(T, compute_uv=False)
    rank = np.linalg.matrix_rank(T)
    # Largest first, without those in which no transition went.
    values = spectrum.values[spectrum.n_zero :][::-1]
    vectors = spectrum.vectors[:, spectrum.n_zero :][:, ::-1]
    assert len(values) == rank
    np.testing.assert_allclose(np.sqrt(2 * values), s[:rank])
    np.testing.assert_allclose(
        T.T @ (T @ vectors), vectors * s[:rank] ** 2, atol=1e-8 * s[0] ** 2
    )


@pytest.mark.parametrize(
    ("game", "points"), [("Freeway", 1), ("MontezumaRevenge", 100), ("MsPacman", 110)]
)
def test_published_starts_lead_where_their_authors_went(
    game: str, points: float
) -> None:
    """The last one has crossed the road, has the key, or has eaten."""
    starts = published_starts(game)
    assert len(starts) == 6
    assert Emulator(game).replay(starts[-1]) == points


# Slow directions


def test_lasting_bytes_separate_the_player_from_traffic_and_echoes() -> None:
    emulator = Emulator("Freeway")
    emulator.replay([1] * 40)
    states = [emulator.save()]
    at_once = find_lasting_bytes(emulator, states, rest_frames=0)
    later = find_lasting_bytes(emulator, states, rest_frames=16)
    assert {4, 14} <= set(at_once)
    assert len(at_once) < 64
    assert 14 in later
    assert 4 not in later  # the joystick


def test_slow_directions_have_variance_one_and_ascend() -> None:
    slow = slow_directions("Freeway", STARTS, n_decisions=300, rng=3)
    episodes, _ = play_randomly(
        Emulator("Freeway"), STARTS, 8, 300, np.random.default_rng(3)
    )
    potentials = slow.features(np.concatenate(episodes)).astype(float) @ slow.vectors
    np.testing.assert_allclose(potentials.var(axis=0, ddof=1), 1.0, rtol=1e-6)
    assert (np.diff(slow.values) >= 0).all()


# Options


def test_ram_options_come_in_the_order_of_the_paper(spectrum: eo.Spectrum) -> None:
    options = ram_options(spectrum, "ALE/Freeway-v5")
    assert len(options) == 2 * (len(spectrum.values) - spectrum.n_zero)
    assert options.labels[:4] == ("#0+", "#0-", "#1+", "#1-")
    assert (np.diff(options.eigenvalues) <= 0).all()
    ascending = ram_options(spectrum, "Freeway", smallest_first=True)
    assert (np.diff(ascending.eigenvalues) >= 0).all()
    assert options.provenance["game"] == "Freeway"
    assert options.features == Ram()


def test_ram_options_equal_trying_every_action(spectrum: eo.Spectrum) -> None:
    """The slow twin: every action in plain Python.

    A second environment, which never looks ahead, stays the same.
    """
    env = make_freeway()
    plain = make_freeway()
    obs, _ = env.reset(seed=0)
    plain.reset(seed=0)
    options = ram_options(spectrum, env)[::16]
    directions = np.stack([option.purpose.potential for option in options])
    for action in np.random.default_rng(0).integers(3, size=20).tolist():
        here = env.unwrapped.clone_state()
        bits = np.unpackbits(obs, bitorder="little").astype(float)
        gains = []
        for tried in range(3):
            after = env.unwrapped.step(tried)[0].copy()
            env.unwrapped.restore_state(here)
            bits_after = np.unpackbits(after, bitorder="little").astype(float)
            gains.append(directions @ (bits_after - bits))

        for option, gain in zip(options, np.array(gains).T, strict=True):
            tie = 1e-9 * np.abs(option.purpose.potential).max()
            expected = TERMINATE
            if gain.max() > tie:
                expected = int(np.flatnonzero(gain >= gain.max() - tie)[0])
            assert option.act(obs) == expected

        obs, *_ = env.step(action)
        assert np.array_equal(obs, plain.step(action)[0])


def test_ram_options_from_a_file_act_alike(
    tmp_path: Path, spectrum: eo.Spectrum
) -> None:
    env = make_freeway()
    options = ram_options(spectrum, env)[:8]
    options.save(tmp_path / "skills.safetensors")
    loaded = ram_options(eo.load_options(tmp_path / "skills.safetensors"), env)
    obs, _ = env.reset(seed=0)
    assert loaded.choices(obs).tolist() == options.choices(obs).tolist()


def test_ram_options_with_a_frame_skip_need_it_in_the_environment() -> None:
    slow = slow_directions("Freeway", STARTS, n_decisions=200)
    env = make_freeway(frameskip=8)
    obs, _ = env.reset(seed=0)
    assert ram_options(slow, env, frame_skip=8)[0].act(obs) in (-1, 0, 1, 2)
    with pytest.raises(ValueError, match="frameskip"):
        ram_options(slow, make_freeway(), frame_skip=8)


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_ram_options_are_actions_of_a_wrapped_environment(
    spectrum: eo.Spectrum,
) -> None:
    env = make_freeway(max_num_frames_per_episode=2000)
    wrapped = eo.OptionsWrapper(env, ram_options(spectrum, env)[:8], max_duration=20)
    _, info = wrapped.reset(seed=0)
    rng = np.random.default_rng(0)
    durations = []
    for _ in range(30):
        available = np.flatnonzero(info["action_mask"])
        *_, info = wrapped.step(int(rng.choice(available)))
        durations.append(info["duration"])
    assert max(durations) > 1
    assert sum(durations) == env.unwrapped.ale.getEpisodeFrameNumber()
    check_env(wrapped, skip_render_check=True)


# Errors


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: Emulator("Freway"), "freeway"),
        (lambda: Emulator("joust"), "joust"),
        (lambda: Emulator("Freeway").act(3), "action"),
        (lambda: Ram("gray"), "code"),
        (lambda: Ram(addresses=(3, 3)), "addresses"),
        (lambda: Ram(addresses=(128,)), "address"),
        (lambda: Ram()(np.zeros((2, 128))), "uint8"),
        (lambda: collect_ram("Freeway", []), "starts"),
        (
            lambda: collect_ram(
                "Freeway", [()], 900, max_episode_frames=10, max_rounds=1
            ),
            "max_rounds",
        ),
        (lambda: published_starts("Pong"), "Pong"),
        (lambda: slow_directions("Freeway", []), "starts"),
        (lambda: ram_options(np.ones((1, 7)), "Freeway"), "1024"),
        (
            lambda: ram_options(np.ones((1, 1024)), make_freeway(obs_type="rgb")),
            "obs_type",
        ),
        (
            lambda: ram_options(np.ones((1, 1024)), make_freeway(frameskip=4)),
            "frameskip",
        ),
        (
            lambda: ram_options(
                np.ones((1, 1024)), make_freeway(repeat_action_probability=0.25)
            ),
            "repeat",
        ),
        (
            lambda: ram_options(
                np.ones((1, 1024)), make_freeway(full_action_space=True)
            ),
            "full_action_space",
        ),
        (
            lambda: ram_options(
                ram_options(np.ones((1, 1024)), "Pong"), make_freeway()
            ),
            "Pong",
        ),
    ],
)
def test_wrong_input_names_what_is_wrong(call: Any, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        call()
