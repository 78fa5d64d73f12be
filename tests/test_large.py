"""Large problems: same results with workers, bounded memory, visible progress."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.image import imread

import eigenoptions as eo
from eigenoptions import parallel, plots
from eigenoptions.mdp.mazes import perfect_map
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
    return (
        options.policy.tobytes(),
        options.value.tobytes(),
        options.mean_length.tobytes(),
    )


# A large maze, from map to picture


def test_a_large_maze_goes_all_the_way(tmp_path: Path) -> None:
    mdp = eo.maze(perfect_map(150, 150))
    assert mdp.n_states > 40_000
    calls, progress = told()
    options = eo.discover(mdp, n_options=12, progress=progress)
    assert calls[-1] == (12, 12)
    assert np.isfinite(options.mean_length).all()
    options.save(tmp_path / "skills.safetensors")
    assert bytes_of(eo.load_options(tmp_path / "skills.safetensors", mdp)) == bytes_of(
        options
    )
    plots.save_figure(plots.plot_options(options[:4]), tmp_path / "options.png")
    picture = imread(tmp_path / "options.png")
    red = picture[..., 0]
    green = picture[..., 1]
    assert ((red > 0.7) & (green < 0.4)).mean() > 0.01  # dots where options terminate
    W = eo.graph(mdp)
    sp = eo.spectrum(W, 7)
    residual = laplacian(W) @ sp.vectors - sp.vectors * sp.values
    assert np.abs(residual).max() < 1e-14


def test_the_spectrum_says_how_far_it_is() -> None:
    for side, least in ((5, 1), (20, 20)):  # dense, and sparse
        calls, progress = told()
        W = eo.graph(eo.maze(perfect_map(side, side)))
        found = eo.spectrum(W, 8, progress=progress)
        assert len(calls) >= least
        assert all(0 < done <= total for done, total in calls)
        assert calls[-1] == (1, 1)
        silent = eo.spectrum(W, 8).vectors
        np.testing.assert_allclose(found.vectors, silent, rtol=0, atol=1e-12)


# Workers give the same bytes


def test_workers_walk_the_same_walks(four_rooms: eo.MDP) -> None:
    alone = eo.diffusion_estimate(four_rooms, walks=30, rng=3)
    assert (
        on_workers(eo.diffusion_estimate, four_rooms, walks=30, rng=3) == alone
    )  # short: walked here
    calls, progress = told()
    assert (
        on_workers(
            eo.diffusion_estimate, four_rooms, walks=30, rng=3, progress=progress
        )
        == alone
    )
    assert calls[-1] == (30, 30)
