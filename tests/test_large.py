"""Large problems: workers change nothing, memory stays bounded, and one sees how far things are."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from matplotlib.image import imread

import eigenoptions as eo
from eigenoptions import parallel, plots
from eigenoptions.envs import CollectionStopped, MazeEnv, collect, load_transitions, stream
from eigenoptions.mdp import maps
from eigenoptions.spectra import laplacian


def on_workers(function: Any, *args: Any, **settings: Any) -> Any:
    """The result of a call on two worker processes."""
    with parallel.using("processes", workers=2):
        return function(*args, **settings)


def told() -> tuple[list[tuple[int, int]], Any]:
    """What a progress callback was called with, and the callback."""
    calls: list[tuple[int, int]] = []
    return calls, lambda done, total: calls.append((done, total))


def bytes_of(options: eo.OptionSet) -> tuple[bytes, ...]:
    return options.policy.tobytes(), options.value.tobytes(), options.mean_length.tobytes()


class Fragile(MazeEnv):
    """A maze that breaks after so many steps."""

    def __init__(self, most: int = 700) -> None:
        super().__init__("four-rooms")
        self.left = most

    def step(self, action: int) -> Any:
        self.left -= 1
        if not self.left:
            raise OSError("the robot fell over")
        return super().step(action)


# A maze of a hundred thousand states, from map to picture


def test_a_large_maze_goes_all_the_way(tmp_path: Path) -> None:
    mdp = eo.maze(maps.perfect_map(224, 224))
    assert mdp.n_states > 100_000
    calls, progress = told()
    options = eo.discover(mdp, n_options=12, progress=progress)
    assert calls[-1] == (12, 12)
    assert np.isfinite(options.mean_length).all()
    options.save(tmp_path / "skills.safetensors")
    assert bytes_of(eo.load_options(tmp_path / "skills.safetensors", mdp)) == bytes_of(options)
    plots.save_figure(plots.plot_options(options[:4]), tmp_path / "options.png")
    picture = imread(tmp_path / "options.png")
    red, green = picture[..., 0], picture[..., 1]
    assert ((red > 0.7) & (green < 0.4)).mean() > 0.05
    W = eo.graph(mdp)
    sp = eo.spectrum(W, 7)
    residual = laplacian(W) @ sp.vectors - sp.vectors * sp.values
    assert np.abs(residual).max() < 1e-14


def test_the_spectrum_says_how_far_it_is() -> None:
    for side, least in ((5, 1), (20, 20)):  # dense, and sparse
        calls, progress = told()
        W = eo.graph(eo.maze(maps.perfect_map(side, side)))
        found = eo.spectrum(W, 8, progress=progress)
        assert len(calls) >= least
        assert all(0 < done <= total for done, total in calls)
        assert calls[-1] == (1, 1)
        assert np.array_equal(found.vectors, eo.spectrum(W, 8).vectors)


# Workers give the same bytes


def test_workers_walk_the_same_walks(monkeypatch: pytest.MonkeyPatch, four_rooms: eo.MDP) -> None:
    alone = eo.diffusion_estimate(four_rooms, walks=30, rng=3)
    assert on_workers(eo.diffusion_estimate, four_rooms, walks=30, rng=3) == alone  # short: walked here
    calls, progress = told()
    assert on_workers(eo.diffusion_estimate, four_rooms, walks=30, rng=3, progress=progress) == alone
    assert calls[-1] == (30, 30)


def test_workers_collect_the_same_transitions(tmp_path: Path, four_rooms: eo.MDP) -> None:
    how: dict[str, Any] = {"n_envs": 4, "chunk": 100, "rng": 5, "policy": eo.discover(four_rooms, 4)}
    alone = collect(four_rooms, 2050, **how)
    calls, progress = told()
    far = on_workers(collect, four_rooms, 2050, progress=progress, **how)
    for part in ("obs", "action", "next_obs", "terminated"):
        assert getattr(far, part).tobytes() == getattr(alone, part).tobytes()
    assert calls[-1] == (2050, 2050)
    collect(four_rooms, 2050, out=tmp_path / "one", **how)
    collect(four_rooms, 900, out=tmp_path / "two", **how)
    on_workers(collect, four_rooms, 2050, out=tmp_path / "two", **how)  # goes on where the other stopped
    one, two = (
        {file.name: hashlib.sha256(file.read_bytes()).digest() for file in (tmp_path / name).iterdir()}
        for name in ("one", "two")
    )
    assert one == two
    rng = np.random.default_rng(1)
    assert len(on_workers(lambda: list(stream("CartPole-v1", 500, chunk=100, rng=rng)))) == 5


def test_workers_that_break_off_lose_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for engine in ("serial", "processes"):
        seen = []
        with (
            parallel.using(engine),
            pytest.raises(CollectionStopped, match=r"after \d+ of 3000 transitions: .*fell over"),
        ):
            seen.extend(stream(Fragile, 3000, chunk=1000))
        assert sum(map(len, seen)) > 600
    with pytest.raises(CollectionStopped, match="the same call goes on from there"):
        on_workers(collect, Fragile, 3000, chunk=1000, out=tmp_path)
    assert len(load_transitions(tmp_path)) == sum(map(len, seen))
    assert len(on_workers(collect, gym.make("CartPole-v1"), 100)) == 100
    assert "given as an object is walked in this process, not by engine 'processes'" in caplog.text


# One stream out of many parts


# Pictures and the command line
