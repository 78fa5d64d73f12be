"""Large problems: workers change nothing, memory stays bounded, and one sees how far things are."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from matplotlib.image import imread

import eigenoptions as eo
from eigenoptions import parallel, plots
from eigenoptions.cli import main
from eigenoptions.discovery import samples as sampling
from eigenoptions.discovery.samples import gather
from eigenoptions.envs import CollectionStopped, MazeEnv, collect, load_transitions, stream
from eigenoptions.mdp import maps
from eigenoptions.options.walks import walk
from eigenoptions.spectra import laplacian
from eigenoptions.spectra.gram import Gram


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
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert calls[-1] == (100, 100)
    assert len(calls) > 10
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


def test_discover_tells_of_other_methods_too(four_rooms: eo.MDP) -> None:
    for method in ("bottleneck", "random"):
        calls, progress = told()
        eo.discover(four_rooms, 4, method, progress=progress)
        assert calls[-1] == (100, 100)


def test_enough_rooms_are_enough() -> None:
    mdp = eo.maze(maps.rooms_map(4, 4, size=4))
    some, every = eo.discover(mdp, 3, "bottleneck"), eo.discover(mdp, None, "bottleneck")
    assert len(every) == 16
    assert bytes_of(some) == bytes_of(every[:3])
    with pytest.raises(ValueError, match=r"n_options must be in 1\.\.16"):
        eo.discover(mdp, 17, "bottleneck")


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


def test_sampled_options_are_the_same_from_workers() -> None:
    alone = eo.discover("FrozenLake-v1", 4, steps=3000)
    far = on_workers(eo.discover, "FrozenLake-v1", 4, steps=3000)
    assert bytes_of(far) == bytes_of(alone)


# One stream out of many parts


def test_a_gathered_stream_is_the_single_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards on disk, of which the middle one is read in pieces, by one process and by two: all transitions once."""
    monkeypatch.setattr(sampling, "MAX_ROWS_IN_MEMORY", 700)
    mdp = eo.maze(maps.rooms_map(3, 3, size=5))
    paths = [walk(mdp, 4000, begin=29 * i, rng=i) for i in range(7)]
    single = Gram(mdp.n_states)
    for i, path in enumerate(paths):
        single.add(path.obs, path.next_obs)
        np.save(tmp_path / f"{i}.npy", np.stack([path.obs, path.next_obs], axis=1).astype(np.int32))
    for engine in ("serial", "processes"):
        calls, progress = told()
        with parallel.using(engine):
            gram = gather(tmp_path, mdp.n_states, progress=progress)
        assert calls[-1][0] == calls[-1][1]
        gram.save(tmp_path / "gram")
        single.save(tmp_path / "single")
        assert (tmp_path / "gram").read_bytes() == (tmp_path / "single").read_bytes()
        twice = 2 * laplacian(eo.graph(mdp), "combinatorial")
        assert abs(gram.matrix - twice).max() == 0.0
        assert gram.sample(10).matrix.toarray().tolist() == single.sample(10).matrix.toarray().tolist()


def test_parts_may_be_files_records_batches_and_functions(tmp_path: Path, four_rooms: eo.MDP) -> None:
    table = eo.MDP(four_rooms.transition)
    record = collect(table, 1200, chunk=300, out=tmp_path / "record")
    batch = walk(table, 500, rng=1)
    np.savez(tmp_path / "batch.npz", obs=batch.obs, next_obs=batch.next_obs)
    parts = [tmp_path / "record", tmp_path / "batch.npz", batch, (batch.obs, batch.next_obs)]
    made = partial(walk, table, 500, rng=2)
    wanted = Gram(104)
    for part in (*record, batch, batch, batch, made()):
        wanted.add(part.obs, part.next_obs)
    for engine in ("serial", "processes"):
        with parallel.using(engine):
            gram = gather([*parts, made], 104)
        assert np.array_equal(gram._rows.words, wanted._rows.words)
        assert gram.n_transitions == wanted.n_transitions
    again = gather(record, 104)
    assert again.n_transitions == 1200
    short = collect(table, 1000, chunk=300, out=tmp_path / "record")  # the last chunk counts in part
    assert on_workers(gather, short, 104).n_transitions == 1000
    many = gather([lambda: (path for path in (batch, tmp_path / "batch.npz"))])
    assert many.n_transitions == 1000


@pytest.mark.parametrize("dedupe", [True, False])
def test_features_are_gathered_to_the_same_bytes_on_every_engine(tmp_path: Path, dedupe: bool) -> None:
    rng = np.random.default_rng(0)
    few = rng.standard_normal((9, 6))
    for i in range(5):
        np.save(tmp_path / f"{i}.npy", few[rng.integers(9, size=(50, 2))])
    alone, far = gather(tmp_path, dedupe=dedupe), on_workers(gather, tmp_path, dedupe=dedupe)
    assert alone.matrix.tobytes() == far.matrix.tobytes()
    assert len(alone) == len(far)
    single = Gram(dedupe=dedupe)
    for i in range(5):
        single.add(*np.moveaxis(np.load(tmp_path / f"{i}.npy"), 1, 0))
    np.testing.assert_allclose(single.matrix, far.matrix, rtol=1e-13)


def test_counts_are_gathered_exactly(four_rooms: eo.MDP) -> None:
    paths = [walk(four_rooms, 900, rng=i) for i in range(4)]
    single = Gram(dedupe=False)
    for path in paths:
        single.add(path.obs, path.next_obs)
    assert abs(on_workers(gather, paths, dedupe=False).matrix - single.matrix).max() == 0.0


def test_what_cannot_be_gathered_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is nothing to gather"):
        gather([])
    with pytest.raises(TypeError, match=r"a pair \(before, after\) or a function, got ndarray"):
        gather([np.array([0, 1]), np.array([1, 2])])
    with pytest.raises(FileNotFoundError, match=r"there is no \.npy"):
        gather(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no file .*gone\.npy"):
        gather([tmp_path / "gone.npy"])
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(ValueError, match=r"read from \.npy, \.npz, \.safetensors files, got .*notes\.txt"):
        gather(tmp_path / "notes.txt")
    np.save(tmp_path / "wide.npy", np.zeros((4, 3)))
    with pytest.raises(ValueError, match=r"must hold \(N, 2\) states .* it holds \(4, 3\)"):
        gather(tmp_path / "wide.npy")
    np.savez(tmp_path / "odd.npz", x=np.zeros(3))
    with pytest.raises(ValueError, match="must hold obs and next_obs, it holds x"):
        gather(tmp_path / "odd.npz")
    np.save(tmp_path / "far.npy", np.array([[0, 9]]))
    with pytest.raises(ValueError, match=r"states must be in 0\.\.4, got 9"):
        gather(tmp_path / "far.npy", 5)


# Pictures and the command line


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rooms:6", "a map made by rule has rows and columns, like rooms:20x30, got 'rooms:6'"),
        ("open:0x5", "a map has 1 to 50,000,000 cells, open:0x5 has 0: give other numbers"),
        ("perfect:90000x90000", "a map has 1 to 50,000,000 cells"),
    ],
)
def test_maps_that_cannot_be_made_are_refused(
    name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["discover", name]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("parts", "jobs"), [(3, 3), (8, 8), (20, 8)])
def test_sums_without_dedupe_are_cut_into_the_same_jobs_everywhere(parts, jobs):
    """At most eight, whatever the workers, and none of them empty."""
    seen = []
    pair = np.array([0, 1]), np.array([1, 2])
    gram = eo.gather([pair] * parts, 3, dedupe=False, progress=lambda *done: seen.append(done))
    assert seen[-1] == (jobs, jobs)
    assert gram.n_transitions == 2 * parts
