"""ALLO (Gomez, Bowling and Machado, ICLR 2024), with the encoder of the library.

``python -m benchmarks.allo [GRID] [--kind jitter] [--seconds 2400] [--store]`` trains
it until twice the CPU seconds no longer raise the mean cosine with the true
eigenfunctions by a hundredth, or until the limit.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.grid_walks import (
    list_grids,
    measure_mean_cosine,
    observe_states,
    sample_transitions,
)
from benchmarks.stored import store_table
from eigenoptions._types import FloatArray
from eigenoptions.deep import Dataset
from eigenoptions.deep.adam import Adam
from eigenoptions.deep.backend import Tensor, torch, use_one_thread
from eigenoptions.deep.encoder import Encoder
from eigenoptions.deep.initialization import initialize_encoder

_BATCH = 1024


@dataclass
class _Lagrangian:
    """The augmented Lagrangian Laplacian objective.

    Attributes
    ----------
    dual : Tensor of shape (d, d)
        Dual variables of the constraint that the functions are orthonormal.
    penalty : float, default=2.0
        Weight of the squared error of that constraint.
    """

    dual: Tensor
    penalty: float = 2.0

    def compute_loss(
        self,
        before: Tensor,
        after: Tensor,
        first: Tensor,
        second: Tensor,
    ) -> Tensor:
        """Compute the loss of a batch, and move dual variables and penalty.

        Parameters
        ----------
        before, after : Tensor of shape (n, d)
            Functions at both ends of pairs of observations.
        first, second : Tensor of shape (n, d)
            Functions at two independent samples of observations.
        """
        # Two samples give an estimate of the squared error without bias.
        one = _compute_constraint_error(first)
        two = _compute_constraint_error(second)
        error = 0.5 * (one + two)
        square = one * two

        smoothness = ((before - after) ** 2).mean(dim=0).sum()
        constraint = (self.dual * error).sum()
        loss = smoothness + constraint + self.penalty * square.sum()

        self.dual = (self.dual + 1e-4 * error.detach()).clamp(-100, 100)
        self.penalty += 0.01 * max(0.0, float(square.detach().mean()))
        return loss


def _compute_constraint_error(functions: Tensor) -> Tensor:
    """Compute how far functions are from orthonormal; later ones yield to earlier."""
    n, d = functions.shape
    products = functions.T @ functions.detach() / n
    return torch.tril(products - torch.eye(d))


@dataclass(frozen=True)
class Checkpoint:
    """What ALLO has learned after some time.

    Attributes
    ----------
    seconds : float
        CPU seconds of the training so far.
    steps : int
        Steps of the optimizer so far.
    functions : ndarray of shape (S, k)
        The functions in each state.
    """

    seconds: float
    steps: int
    functions: FloatArray


def learn_allo(
    data: Dataset,
    observations: NDArray[Any],
    checkpoints: Sequence[float],
    seed: int,
    k: int = 10,
) -> Iterator[Checkpoint]:
    """Learn functions with ALLO, and show them after so many CPU seconds.

    Parameters
    ----------
    data : Dataset
        Transitions to learn from.
    observations : ndarray of shape (S, ...)
        What is seen in each state.
    checkpoints : sequence of float
        CPU seconds of the training after which functions are shown, in order.
    seed : int
        Draws weights and batches.
    k : int, default=10
        Number of functions, without the constant one.
    """
    rng = np.random.default_rng(seed)
    with use_one_thread():
        encoder = _initialize_encoder(data, observations, rng)
        weights = encoder.get_trainable_weights()
        normal = rng.standard_normal((256, k + 1)).astype(np.float32)
        head = torch.from_numpy(normal / 16).requires_grad_()
        optimizer = Adam([*weights.values(), head])
        objective = _Lagrangian(torch.zeros(k + 1, k + 1))

        def compute_functions(obs: NDArray[Any]) -> Tensor:
            inputs = encoder.compute_inputs(obs)
            return encoder.compute_layers(inputs, weights)[-1] @ head

        def train_step() -> None:
            before, after = data.all.draw_pairs(_BATCH, 0.9, rng)
            first, _ = data.all.draw_pairs(_BATCH, 0.0, rng)
            second, _ = data.all.draw_pairs(_BATCH, 0.0, rng)

            # An observation that occurs several times is computed once.
            rows = np.concatenate([before, after, first, second])
            distinct, inverse = np.unique(rows, return_inverse=True)
            functions = compute_functions(data.observations[distinct])
            batches = functions[torch.from_numpy(inverse)].split(_BATCH)
            objective.compute_loss(*batches).backward()
            optimizer.step(1e-3)

        seconds = 0.0
        steps = 0
        for checkpoint in checkpoints:
            # The clock stands still while the caller looks at the functions.
            start = time.process_time() - seconds
            while seconds < checkpoint:
                train_step()
                steps += 1
                seconds = time.process_time() - start

            with torch.no_grad():
                functions = compute_functions(observations)
            shown = np.asarray(functions.double().numpy()[:, 1:])
            yield Checkpoint(seconds, steps, shown)


def _initialize_encoder(
    data: Dataset,
    observations: NDArray[Any],
    rng: np.random.Generator,
) -> Encoder:
    """Initialize the encoder that the library would choose for these observations."""
    n_rows = len(data.observations)
    rows = rng.choice(n_rows, min(n_rows, 4096), replace=False)
    n_dimensions = observations.shape[1] if observations.ndim == 2 else 1
    return initialize_encoder(
        "auto",
        data.observations[rows],
        np.ones(n_dimensions),
        not data.repeating,
        rng,
    )


def train_to_limit(
    name: str,
    kind: str = "jitter",
    seconds: float = 2400.0,
    seed: int = 1,
    n_transitions: int = 200_000,
) -> Iterator[dict[str, Any]]:
    """Train until twice the time gains less than a hundredth, or for so many seconds.

    Yields a row after 10 CPU seconds and each doubling of them.
    """
    data = Dataset.of(sample_transitions(name, kind, n_transitions, seed))
    doublings = int(np.log2(seconds / 10.0))
    checkpoints = [10.0 * 2**i for i in range(doublings + 1)]
    last = 0.0
    for found in learn_allo(data, observe_states(name, kind), checkpoints, seed):
        cosine = measure_mean_cosine(name, found.functions)
        yield {
            "grid": name,
            "kind": kind,
            "seed": seed,
            "seconds": round(found.seconds, 1),
            "steps": found.steps,
            "cosine": round(cosine, 4),
        }
        if cosine < last + 0.01:
            break
        last = cosine


def main() -> None:
    """Print rows as they are measured."""
    parser = argparse.ArgumentParser(description="ALLO trained to its limit.")
    parser.add_argument(
        "grid",
        nargs="?",
        default="GridRoom-16",
        choices=list_grids(),
        metavar="GRID",
    )
    parser.add_argument("--kind", default="jitter", choices=["xy", "jitter", "frame"])
    parser.add_argument("--seconds", type=float, default=2400.0)
    parser.add_argument(
        "--store", action="store_true", help="write benchmarks/allo.csv"
    )
    arguments = parser.parse_args()

    rows = []
    for row in train_to_limit(arguments.grid, arguments.kind, arguments.seconds):
        print(row, flush=True)
        rows.append(row)
        if arguments.store:
            store_table("allo", pd.DataFrame(rows))


if __name__ == "__main__":
    main()
