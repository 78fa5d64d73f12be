"""Numbers and figure of docs/sfa.md: `python docs/slow_features.py` (about three minutes of one core).

Three ways from the same features to eigenfunctions: singular vectors of differences (the paper, Section 5.1), the same
with variance 1 (linear slow feature analysis), and a network trained on the features.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

import eigenoptions as eo
from eigenoptions.features import RBF, Fourier
from eigenoptions.mdp import Transitions
from eigenoptions.options.walks import walk
from eigenoptions.plots import save_figure
from eigenoptions.spectra.gram import Gram
from reproduction.panels import figure, value_panel

HERE = Path(__file__).parent
MAZES = {"four rooms": "four-rooms", "GridRoom-16": HERE.parent / "benchmarks" / "grids" / "GridRoom-16.txt"}
# Functions that are compared with proto-value functions, and those that become options (two per function).
COMPARED, OPTIONS = 10, 16
# Transitions of the random walk on which the network is trained, and how long.
TRANSITIONS, SECONDS = 200_000, 10.0
OPTION_CHANCE = 0.1
Features = Callable[[np.ndarray], np.ndarray]


def random_fourier(width: float, size: int = 512) -> Features:
    rng = np.random.default_rng(0)
    frequency, phase = rng.standard_normal((2, size)) / width, rng.uniform(0, 2 * np.pi, size)
    return lambda cells: np.cos(cells @ frequency + phase) * np.sqrt(2 / size)


def feature_maps(cells: np.ndarray) -> dict[str, Features]:
    """Features of cells ``(N, 2)`` of a maze, from no overlap to much."""
    low, high = tuple(cells.min(axis=0)), tuple(cells.max(axis=0))
    number = {tuple(cell): i for i, cell in enumerate(cells)}
    hot = np.eye(len(cells))
    return {
        "one-hot states": lambda x: hot[[number[tuple(cell)] for cell in x]],
        "512 random Fourier features, width of 1 cell": random_fourier(1.0),
        "512 random Fourier features, width of 3 cells": random_fourier(3.0),
        "radial basis functions, 10 x 10 centres": RBF(low, high, grid=10),
        "cosines up to order 8": Fourier(low, high, order=8),
    }


def every_move(mdp: eo.MDP) -> tuple[np.ndarray, np.ndarray]:
    """Each action once in each state: the uniform random walk without sampling noise."""
    assert mdp.successors is not None
    return np.repeat(np.arange(mdp.n_states), mdp.n_actions), mdp.successors.ravel()


def singular(phi: np.ndarray, moves: tuple[np.ndarray, np.ndarray], largest: bool = False) -> np.ndarray:
    """``(S, k)`` functions of the right singular vectors of T, unit directions, with the smallest values above 0."""
    gram = Gram(phi.shape[1], dedupe=False)
    gram.add(phi[moves[0]], phi[moves[1]])
    found = gram.spectrum()
    vectors = found.vectors[:, ::-1] if largest else found.vectors[:, found.n_zero :]
    return phi @ vectors[:, :OPTIONS]


def whitened(phi: np.ndarray, moves: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """``(S, k)`` slow features: the same differences, directions whose functions have variance 1."""
    gram = Gram(phi.shape[1], dedupe=False)
    gram.add(phi[moves[0]], phi[moves[1]])
    seen = np.concatenate([phi[moves[0]], phi[moves[1]]])
    found = gram.spectrum(metric=np.cov(seen.T, bias=True))
    return phi @ found.vectors[:, found.n_zero :][:, :OPTIONS]


def learned(phi: np.ndarray, steps: Transitions, seconds: float) -> np.ndarray:
    """``(S, k)`` functions of a network that is trained on the features."""
    seen = Transitions(phi[steps.obs], steps.action, phi[steps.next_obs], steps.terminated)
    found = eo.deep.learn(seen, OPTIONS + 1, seconds=seconds)
    return (found.features(phi) @ found.vectors)[:, 1:]


def truth(mdp: eo.MDP) -> np.ndarray:
    """``(S, k)`` proto-value functions: the combinatorial Laplacian, whose walk stays where a move is blocked."""
    return eo.spectrum(eo.graph(mdp), OPTIONS + 1, "combinatorial").vectors[:, 1:]


def cosines(functions: np.ndarray, pvfs: np.ndarray) -> tuple[float, float]:
    """Mean absolute cosine of the first functions with proto-value functions, and the share of their span."""
    f = functions[:, :COMPARED] - functions[:, :COMPARED].mean(axis=0)
    unit = f / np.linalg.norm(f, axis=0)
    each = np.abs((unit * pvfs[:, : f.shape[1]]).sum(axis=0)).mean()
    span = np.linalg.norm(np.linalg.qr(f)[0].T @ pvfs[:, :COMPARED]) ** 2 / COMPARED
    return float(each), float(span)


def diffusion(mdp: eo.MDP, functions: np.ndarray) -> float:
    """Diffusion time with the options of these potentials, each solved exactly."""
    f = functions - functions.mean(axis=0)
    f = f / np.linalg.norm(f, axis=0)
    potentials = eo.Spectrum(np.arange(1.0, f.shape[1] + 1), f, n_zero=0)
    options = eo.solve(mdp, eo.eigenpurposes(potentials))
    return eo.diffusion_time(mdp, options, option_chance=OPTION_CHANCE)


def draw() -> None:
    """The first four functions by each way, from random Fourier features of four rooms, in the signs of the PVFs."""
    mdp = eo.maze(MAZES["four rooms"])
    pvfs, phi = truth(mdp), random_fourier(1.0)(mdp.coords.astype(float))
    ways = {"PVF": pvfs, "SVD": singular(phi, every_move(mdp)), "SFA": whitened(phi, every_move(mdp))}
    panels = []
    for way, functions in ways.items():
        for i in range(4):
            f = functions[:, i] - functions[:, i].mean()
            f = f * np.sign(f @ pvfs[:, i])
            panels.append(value_panel(mdp.coords, f, f"{way} {i + 2}"))
    save_figure(figure(panels, columns=4), HERE / "images" / "sfa.svg")


def main(seconds: float) -> None:
    print("| maze | features | way | cosine | span | diffusion time |\n|---|---|---|---|---|---|")
    for name, source in MAZES.items():
        mdp = eo.MDP(eo.maze(source).transition, coords=eo.maze(source).coords)
        pvfs, moves = truth(mdp), every_move(mdp)
        steps = walk(mdp, TRANSITIONS, max_episode_steps=50)
        print(f"| {name} | none | primitive actions | | | {eo.diffusion_time(mdp):.0f} |")
        print(f"| {name} | table | proto-value functions | 1 | 1 | {diffusion(mdp, pvfs):.0f} |")
        for kind, features in feature_maps(mdp.coords.astype(float)).items():
            phi = np.asarray(features(mdp.coords.astype(float)))
            ways = {
                "SVD, smallest": singular(phi, moves),
                "SVD, largest": singular(phi, moves, largest=True),
                "whitened (SFA)": whitened(phi, moves),
                "whitened, sampled": whitened(phi, (steps.obs, steps.next_obs)),
                "learned, sampled": learned(phi, steps, seconds),
            }
            for way, functions in ways.items():
                each, span = cosines(functions, pvfs)
                time = diffusion(mdp, functions)
                print(f"| {name} | {kind} | {way} | {each:.3f} | {span:.3f} | {time:.0f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="training of each network")
    parser.add_argument("--figure", action="store_true", help="draw the figure only")
    given = parser.parse_args()
    draw()
    if not given.figure:
        main(given.seconds)
