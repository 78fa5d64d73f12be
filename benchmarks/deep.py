"""Learned eigenfunctions on the 13 grids of the literature, from positions that repeat, jittered ones and frames.

``python -m benchmarks.deep [GRID ...] [--kinds xy jitter frame] [--seeds 3]``. Each run learns the first ten
eigenfunctions of the random walk in episodes of 50 steps and compares them with the true ones by the mean cosine of
matched functions. Beside it ALLO (Gomez, Bowling and Machado, ICLR 2024) with the same encoder and CPU seconds.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

import eigenoptions as eo
from benchmarks.timing import Row
from eigenoptions.deep import Dataset, learn
from eigenoptions.deep.adam import Adam
from eigenoptions.deep.backend import torch, use_one_thread
from eigenoptions.deep.initialization import initialize_encoder
from eigenoptions.options.walks import walk

GRIDS = Path(__file__).resolve().parent / "grids"
Array = NDArray[np.float64]


@cache
def load_grid(name: str) -> eo.MDP:
    """The largest component of a grid, without start and goal."""
    mdp = eo.maze(GRIDS / f"{name}.txt")
    labels = connected_components(eo.graph(mdp))[1]
    assert mdp.coords is not None
    cells = mdp.coords[labels == np.bincount(labels).argmax()]
    text = np.full(cells.max(axis=0) + 1, "X")
    text[tuple(cells.T)] = " "
    return eo.maze("\n".join("".join(row) for row in text))


@cache
def true_eigenvectors(name: str) -> Array:
    """``(S, S)`` eigenvectors of I - P of the uniform random walk, smoothest first."""
    mdp = load_grid(name)
    P = mdp.transition.toarray().reshape(mdp.n_states, mdp.n_actions, -1).mean(axis=1)
    vectors: Array = np.linalg.eigh(np.eye(len(P)) - P)[1]
    return vectors


def observe(name: str, kind: str) -> NDArray[Any]:
    """What is seen in each state: its position, or an image of one pixel per cell."""
    cells = np.asarray(load_grid(name).coords)
    if kind != "frame":
        return cells.astype(np.float64)
    images = np.zeros((len(cells), *(cells.max(axis=0) + 3)), dtype=np.uint8)
    images[:, cells[:, 0] + 1, cells[:, 1] + 1] = 100
    images[np.arange(len(cells)), cells[:, 0] + 1, cells[:, 1] + 1] = 255
    return images


def sample_transitions(name: str, kind: str, n: int, seed: int) -> eo.Transitions:
    """Transitions of a random walk; with jitter, positions anywhere within a cell, kept until the next step."""
    steps = walk(load_grid(name), n, rng=seed, max_episode_steps=50)
    seen = observe(name, kind)
    before, after = seen[steps.obs], seen[steps.next_obs]
    if kind == "jitter":
        rng = np.random.default_rng(seed)
        before, after = (x + rng.uniform(-0.5, 0.5, x.shape) for x in (before, after))
        linked = np.flatnonzero(np.arange(n) % 50)
        before[linked] = after[linked - 1]
    return eo.Transitions(before, steps.action, after, steps.terminated)


def mean_cosine(name: str, functions: Array, k: int = 10) -> float:
    """Mean cosine of the first k true eigenvectors with the functions, each projected on its own eigenspace."""
    vectors = true_eigenvectors(name)
    mdp = load_grid(name)
    values = np.einsum("ij,ij->j", vectors, vectors - _walk(mdp, vectors))
    cosines = []
    for i in range(1, k + 1):
        same = vectors[:, np.abs(values - values[i]) < 1e-9]
        f = functions[:, i - 1] - functions[:, i - 1].mean()
        f = f / max(np.linalg.norm(f), 1e-300)
        cosines.append(np.linalg.norm(same.T @ f))
    return float(np.mean(cosines))


def _walk(mdp: eo.MDP, vectors: Array) -> Array:
    """P @ vectors of the uniform random walk."""
    result: Array = (
        (mdp.transition @ vectors).reshape(mdp.n_states, mdp.n_actions, -1).mean(axis=1)
    )
    return result


def allo_loss(
    before: Any, after: Any, first: Any, second: Any, state: dict[str, Any]
) -> Any:
    """Augmented Lagrangian Laplacian objective; `state` holds its dual variables and penalty."""
    d = before.shape[1]
    dual = state.setdefault("dual", torch.zeros(d, d))
    penalty = state.setdefault("penalty", 2.0)
    one, two = (
        torch.tril(u.T @ u.detach() / len(u) - torch.eye(d)) for u in (first, second)
    )
    error, square = 0.5 * (one + two), one * two
    loss = (
        ((before - after) ** 2).mean(dim=0).sum()
        + (dual * error).sum()
        + penalty * square.sum()
    )
    with torch.no_grad():
        state["dual"] = (dual + 1e-4 * error.detach()).clamp(-100, 100)
        state["penalty"] = penalty + 0.01 * max(0.0, float(square.detach().mean()))
    return loss


def learn_allo(
    data: Dataset, observations: NDArray[Any], seconds: float, seed: int, k: int = 10
) -> Array:
    """Functions ``(S, k)`` of ALLO after so many CPU seconds, with the encoder of `learn`."""
    rng = np.random.default_rng(seed)
    with use_one_thread():
        rows = rng.choice(
            len(data.observations), min(len(data.observations), 4096), replace=False
        )
        steps = np.ones(observations.shape[1] if observations.ndim == 2 else 1)
        encoder = initialize_encoder(
            "auto", data.observations[rows], steps, not data.repeating, rng
        )
        weights = encoder.get_trainable_weights()
        head = torch.from_numpy(
            rng.standard_normal((256, k + 1)).astype(np.float32) / 16
        ).requires_grad_()
        optimizer, state = Adam([*weights.values(), head]), {}  # type: ignore[var-annotated]
        start = time.process_time()
        while time.process_time() - start < seconds:
            parts = [
                *data.all.draw_pairs(1024, 0.9, rng),
                *(data.all.draw_pairs(1024, 0.0, rng)[0] for _ in range(2)),
            ]
            distinct, inverse = np.unique(np.concatenate(parts), return_inverse=True)
            x = encoder.compute_inputs(data.observations[distinct])
            outputs = (encoder.compute_layers(x, weights)[-1] @ head)[
                torch.from_numpy(inverse)
            ].split(1024)
            allo_loss(*outputs, state=state).backward()
            optimizer.step(1e-3)
        with torch.no_grad():
            functions = (
                encoder.compute_layers(encoder.compute_inputs(observations), weights)[
                    -1
                ]
                @ head
            )
    return np.asarray(functions.double().numpy()[:, 1:])


def compare_with_allo(
    grids: tuple[str, ...] = ("GridRoom-4", "GridRoom-16"),
    kinds: tuple[str, ...] = ("xy", "jitter"),
    seeds: int = 1,
    seconds: float = 10.0,
    n_transitions: int = 200_000,
) -> Iterator[Row]:
    """Mean cosine of the first ten eigenfunctions, ours and ALLO's, after the same CPU seconds."""
    logging.disable(logging.WARNING)
    for name in grids:
        for kind in kinds:
            cosines = []
            for seed in range(1, seeds + 1):
                data = Dataset.of(sample_transitions(name, kind, n_transitions, seed))
                observations = observe(name, kind)
                spectrum = learn(data, 11, seconds=seconds, rng=seed)
                assert spectrum.features is not None
                functions = (spectrum.features(observations) @ spectrum.vectors)[:, 1:]
                rival = learn_allo(data, observations, seconds, seed)
                cosines.append((mean_cosine(name, functions), mean_cosine(name, rival)))
            ours, theirs = np.mean(cosines, axis=0)
            yield Row(
                f"{name}, {kind}, mean cosine",
                float(ours),
                float(theirs),
                "ALLO, same seconds",
                "",
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Learned eigenfunctions against ALLO.")
    parser.add_argument(
        "grids", nargs="*", default=sorted(path.stem for path in GRIDS.glob("*.txt"))
    )
    parser.add_argument(
        "--kinds",
        nargs="+",
        default=["xy", "jitter"],
        choices=["xy", "jitter", "frame"],
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0)
    chosen = parser.parse_args()
    for row in compare_with_allo(
        tuple(chosen.grids), tuple(chosen.kinds), chosen.seeds, chosen.seconds
    ):
        print(row, flush=True)
