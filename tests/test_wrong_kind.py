"""What is not the kind of thing that a function takes is refused in one line that says what it takes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import eigenoptions as eo

MDP = eo.maze("i-maze")
W = eo.graph(MDP)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (
            lambda: eo.discover(W, 2),
            "discover takes an MDP, a maze, Transitions or an environment, got an array",
        ),
        (lambda: eo.discover("four-romos", 2), "no maze called 'four-romos'.*did you mean 'four-rooms'"),
        (lambda: eo.spectrum(np.ones(3)), r"the graph must be an \(S, S\) array of weights"),
        (lambda: eo.graph(W), "graph takes an MDP, got csr_array"),
        (lambda: eo.solve("four-rooms", []), "solve takes an MDP, got str"),
        (lambda: eo.eigenpurposes(W), "eigenpurposes takes a Spectrum, got csr_array"),
        (lambda: eo.q_learning(W), "learning takes an MDP, got csr_array"),
        (lambda: eo.maze(None), "a maze is a name, the text of a map or a path, got NoneType"),
        (lambda: eo.maze(Path.cwd()), "it is a folder"),
        (
            lambda: eo.OptionsWrapper(gym.make("eigenoptions/IMaze-v0"), eo.discover(MDP, 2)[0]),
            "options must be an OptionSet or a list of options, got Option",
        ),
    ],
)
def test_the_wrong_kind_is_told(call, complaint):
    with pytest.raises((TypeError, ValueError), match=complaint) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_options_of_another_environment_are_refused() -> None:
    car = eo.discover("MountainCar-v0", 2, steps=2000)
    with pytest.raises(
        ValueError, match="options of another environment: they choose among 3 actions, this one has 2"
    ):
        eo.OptionsWrapper(gym.make("CartPole-v1"), car)
    with pytest.raises(ValueError, match=r"options of another environment: .* dimensions"):
        eo.OptionsWrapper(gym.make("Acrobot-v1"), car)


def test_a_file_is_read_by_its_kind(tmp_path: Path) -> None:
    eo.discover("MountainCar-v0", 2, steps=2000).save(tmp_path / "car.safetensors")
    assert isinstance(eo.load_options(tmp_path / "car.safetensors"), eo.LinearOptionSet)
    with pytest.raises(ValueError, match="holds options of a feature space, not of an MDP: leave out mdp"):
        eo.load_options(tmp_path / "car.safetensors", MDP)
    eo.discover(MDP, 2).save(tmp_path / "maze.safetensors")
    with pytest.raises(ValueError, match="holds 'options', not 'linear options'"):
        eo.load_options(tmp_path / "maze.safetensors")


def test_odd_numbers() -> None:
    path = eo.maze("...")
    assert eo.solve(path, eo.Purpose(np.arange(3.0)), gamma=np.int64(0)).policy.tolist() == [[1, 1, -1]]
    with pytest.raises(IndexError, match=r"a state is a number in 0\.\.18, got -1"):
        eo.discover(MDP, 2)[0].act(-1)


def test_no_folder_for_compiled_code_is_no_obstacle(tmp_path: Path) -> None:
    source = Path(eo.__file__).parent
    shutil.copytree(source, tmp_path / "eigenoptions", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "eigenoptions" / "_kernels" / "__pycache__").write_text("in the way")
    env = {k: v for k, v in os.environ.items() if k not in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")}
    env |= {"HOME": "/proc/nowhere", "PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path)}
    work = "import eigenoptions as eo; print(eo.__file__, eo.collect(eo.maze('i-maze'), 9, rng=0))"
    done = subprocess.run([sys.executable, "-B", "-c", work], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path))
