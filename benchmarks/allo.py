"""ALLO (Gomez, Bowling and Machado, ICLR 2024), with the encoder of the library."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def learn_allo(
    data: Dataset,
    observations: NDArray[Any],
    seconds: float,
    seed: int,
    k: int = 10,
) -> FloatArray:
    """Learn functions with ALLO for so many CPU seconds.

    Parameters
    ----------
    data : Dataset
        Transitions to learn from.
    observations : ndarray of shape (S, ...)
        What is seen in each state.
    seconds : float
        CPU seconds of the training.
    seed : int
        Draws weights and batches.
    k : int, default=10
        Number of functions, without the constant one.

    Returns
    -------
    ndarray of shape (S, k)
        The functions in each state.
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

        start = time.process_time()
        while time.process_time() - start < seconds:
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

        with torch.no_grad():
            functions = compute_functions(observations)
    return np.asarray(functions.double().numpy()[:, 1:])


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
