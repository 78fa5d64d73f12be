"""Guards that end options which would never stop: patience and a chance to stop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.envs import MazeEnv, OptionsWrapper, run_options
from eigenoptions.features import OneHot
from eigenoptions.options import TERMINATE, Purpose
from eigenoptions.options.linear import LinearOptionSet

LENGTH = 7


def stubborn(**guards: object) -> LinearOptionSet:
    """One learned option that believes in going right for ever, also at the wall of a corridor."""
    weights = np.zeros((1, 4, LENGTH))
    weights[0, 1] = 1.0
    potential = np.arange(LENGTH, dtype=float)[None]
    return LinearOptionSet([Purpose(e) for e in potential], OneHot(LENGTH), 4, weights=weights).guarded(
        **guards
    )


def corridor(options: LinearOptionSet, **given: object) -> OptionsWrapper:
    return OptionsWrapper(MazeEnv("S......"), options, max_duration=100, **given)


def test_without_a_guard_it_is_cut() -> None:
    env = corridor(stubborn())
    env.reset(seed=0)
    *_, info = env.step(4)
    assert (info["duration"], info["cut"]) == (100, True)


@pytest.mark.parametrize("patience", [1, 3, 8])
def test_patience_counts_the_steps_without_a_rise(patience: int) -> None:
    env = corridor(stubborn(patience=patience))
    for _ in range(2):
        env.reset(seed=0)
        obs, *_, info = env.step(4)
        assert (obs, info["duration"], "cut" in info) == (LENGTH - 1, LENGTH - 1 + patience, False)
        # A new execution has its patience again.
        *_, info = env.step(4)
        assert info["duration"] == patience


def test_one_step_at_a_time_is_the_same() -> None:
    env = corridor(stubborn(patience=3), mode="step")
    env.reset(seed=0)
    steps = [env.step(4)[0]["option"] for _ in range(LENGTH - 1 + 3)]
    assert steps == [1] * (LENGTH - 1 + 2) + [0]


def test_a_chance_to_stop_makes_lengths_geometric() -> None:
    env = corridor(stubborn(stop_chance=0.25))
    lengths = []
    env.reset(seed=0)
    for _ in range(1000):
        lengths.append(env.step(4)[4]["duration"])
    counts = np.bincount(lengths, minlength=5)[1:5]
    expected = 1000 * 0.25 * 0.75 ** np.arange(4)
    assert (np.abs(counts - expected) < 2.5 * np.sqrt(expected)).all()


def test_paths_and_collections_end_too() -> None:
    options = stubborn(patience=2)
    ((path,),) = run_options(MazeEnv("S......"), options, runs=1, warm_up=0)
    assert path.tolist() == [*range(LENGTH), LENGTH - 1, LENGTH - 1]
    plain = stubborn()
    ((path,),) = run_options(MazeEnv("S......"), plain, runs=1, warm_up=0, max_steps=40)
    assert len(path) == 41
    # With a chance of 1 the walk takes the option again and again; with one of 0.5 the guard lets it go elsewhere.
    stuck = eo.collect(lambda: MazeEnv("S......"), 400, policy=plain, option_chance=0.5)
    free = eo.collect(lambda: MazeEnv("S......"), 400, policy=options, option_chance=0.5)
    assert (stuck.action[50:] == 1).all()
    assert set(free.action[50:].tolist()) == {0, 1, 2, 3}
    always = eo.collect(lambda: MazeEnv("S......"), 30, policy=options, option_chance=1.0)
    assert (always.action == 1).all()


def test_guards_are_kept_in_files_and_selections(tmp_path: Path) -> None:
    options = stubborn(patience=5, stop_chance=0.125)
    options.save(tmp_path / "skills.safetensors")
    again = eo.load_options(tmp_path / "skills.safetensors")
    for these in (again, options[:1], options + options):
        assert (these.patience, these.stop_chance) == (5, 0.125)
    assert (again[0].patience, again[0].stop_chance) == (5, 0.125)
    with pytest.raises(ValueError, match="cannot be joined"):
        _ = options + stubborn()
    assert options[0].act(LENGTH - 1) == 1 != TERMINATE  # act itself has no memory


def test_look_ahead_options_have_them_as_well() -> None:
    env = MazeEnv("S......")
    looking = stubborn(patience=4).look_ahead(env)
    assert looking.patience == 4
    ((path,),) = run_options(env, looking, runs=1, warm_up=0)
    assert path.tolist() == list(range(LENGTH))


@pytest.mark.parametrize(
    ("guard", "complaint"),
    [
        ({"patience": 0}, "patience must be a whole number from 1"),
        ({"stop_chance": 1.0}, r"must be in \[0, 1\)"),
    ],
)
def test_bad_guards(guard: dict[str, float], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        stubborn(**guard)
