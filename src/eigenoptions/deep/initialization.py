"""Encoders before training: frozen inputs that fit the observations, random layers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._types import Float32Array, FloatArray
from eigenoptions._validation import check_choice
from eigenoptions.deep.backend import Module, torch
from eigenoptions.deep.components import find_components
from eigenoptions.deep.encoder import Encoder, arrange_channels, check_output

# Numbers of units of the trained layers.
_HIDDEN = (256, 256)


def initialize_encoder(
    kind: str | Module,
    observations: NDArray[Any],
    step_sizes: FloatArray,
    noisy: bool,
    rng: np.random.Generator,
) -> Encoder:
    """Make an encoder for observations like these, with random weights.

    Parameters
    ----------
    kind : {"auto", "mlp", "random"} or torch.nn.Module
        ``"mlp"`` for vectors, ``"random"`` for images and long vectors, ``"auto"`` for
        the one that fits, or your own module.
    observations : array (n, ...)
        A sample of the observations.
    step_sizes : array (D,)
        Typical change of each dimension of vectors in one transition.
    noisy : bool
        Whether there is noise in each observation: components that look like it are
        left out.
    rng : Generator
        Source of the random numbers.
    """
    if isinstance(kind, torch.nn.Module):
        return _wrap_module(kind, observations)

    if kind == "auto":
        kind = _choose_kind(observations)
    check_choice("encoder", kind, ("mlp", "random"))

    if kind == "mlp":
        frozen = _make_fourier_encoder(observations, step_sizes, rng)
    else:
        frozen = _make_image_encoder(observations, noisy, rng)

    arrays = dict(frozen.arrays)
    width = frozen.compute_inputs(observations[:1]).numel()
    for i, n_units in enumerate(_HIDDEN):
        arrays[f"layer{i}.weight"] = _draw_weights(rng, (width, n_units), width)
        arrays[f"layer{i}.bias"] = _draw_weights(rng, (n_units,), 100)
        width = n_units
    return Encoder({**frozen.recipe, "hidden": list(_HIDDEN)}, arrays)


def _wrap_module(module: Module, observations: NDArray[Any]) -> Encoder:
    """Make an encoder of a user's module.

    The module is in evaluation mode: the features of an observation do not depend on
    the other observations of the batch.
    """
    recipe = {"encoder": "module", "shape": list(observations.shape[1:])}
    few = Encoder(recipe).compute_inputs(observations[:8])
    module.eval()
    with torch.no_grad():
        output = check_output(module(few), len(few))

    if not torch.isfinite(output).all():
        raise ValueError(
            "the module returns values that are not finite: check its weights"
        )
    return Encoder({**recipe, "hidden": [output.shape[1]]}, {}, module)


# Most dimensions of vectors for which Fourier features are chosen.
_MOST_DIMENSIONS = 16


def _choose_kind(observations: NDArray[Any]) -> str:
    """Choose the kind of encoder: Fourier features suit vectors of few dimensions."""
    shape = observations.shape[1:]
    if len(shape) == 1 and shape[0] <= _MOST_DIMENSIONS:
        return "mlp"
    return "random"


# Number of random Fourier features.
_N_FEATURES = 256


def _make_fourier_encoder(
    observations: NDArray[Any],
    step_sizes: FloatArray,
    rng: np.random.Generator,
) -> Encoder:
    """Random Fourier features of vectors, about two steps wide in each dimension."""
    shape = observations.shape[1:]
    if len(shape) != 1:
        raise ValueError(
            "encoder 'mlp' needs vectors (N, D), "
            f"got observations {shape}: use 'random'"
        )

    x = observations.astype(np.float64)
    extent = _estimate_extent(x)
    width = np.clip(2.0 * step_sizes, extent / 24, extent / 2)
    # Distances grow with the number of dimensions.
    width = width * np.sqrt(max(1.0, x.shape[1] / 2))

    frequency = rng.standard_normal((len(width), _N_FEATURES)) / width[:, None]
    phase = rng.uniform(0, 2 * np.pi, _N_FEATURES) - x.mean(axis=0) @ frequency
    arrays: dict[str, Float32Array] = {
        "frequency": frequency.astype(np.float32),
        "phase": (phase % (2 * np.pi)).astype(np.float32),
    }
    return Encoder({"encoder": "mlp", "shape": list(shape)}, arrays)


def _estimate_extent(x: FloatArray) -> FloatArray:
    """Estimate the range ``(D,)`` of each dimension of vectors ``(n, D)``.

    A few wrong values do not count. The range of a constant is 1.
    """
    low, high = np.quantile(x, [0.05, 0.95], axis=0, method="nearest")
    extent = np.where(high > low, (high - low) / 0.9, np.ptp(x, axis=0))
    return np.where(extent > 0, extent, 1.0)


def _make_image_encoder(
    observations: NDArray[Any], noisy: bool, rng: np.random.Generator
) -> Encoder:
    """Principal components of images after a random convolution, or of vectors."""
    shape = observations.shape[1:]
    is_image = len(shape) > 1
    if len(shape) > 4 or (is_image and sorted(shape)[-2] < 3):
        raise ValueError(
            f"images must have at least 3 x 3 pixels, got {shape}: flatten them"
        )

    recipe = {
        "encoder": "random",
        "shape": list(shape),
        "scale": 1.0 / _estimate_size(observations),
    }
    arrays: dict[str, Float32Array] = {}
    # Noise that passes a convolution is coloured: it could not be told from signal.
    if is_image and not noisy:
        n_channels = arrange_channels(torch.empty(1, *shape)).shape[1]
        kernel_shape = (16, n_channels, 3, 3)
        arrays["kernel"] = _draw_weights(rng, kernel_shape, n_channels * 9)

    x = _compute_inputs(Encoder(recipe, arrays), observations)
    centre, components = find_components(x, noisy)
    arrays["centre"] = centre
    arrays["components"] = components
    return Encoder(recipe, arrays)


def _estimate_size(observations: NDArray[Any]) -> float:
    """Estimate the largest absolute value of a typical observation; 255 for bytes."""
    if observations.dtype == np.uint8:
        return 255.0

    largest = np.abs(observations.reshape(len(observations), -1)).max(axis=1)
    if not largest.any():
        return 1.0
    return float(np.median(largest[largest > 0]))


# Observations that are encoded at a time, which bounds the memory.
_BLOCK_ROWS = 2048


def _compute_inputs(encoder: Encoder, observations: NDArray[Any]) -> Float32Array:
    """Inputs of all observations, block by block."""
    blocks = []
    for low in range(0, len(observations), _BLOCK_ROWS):
        block = observations[low : low + _BLOCK_ROWS]
        blocks.append(encoder.compute_inputs(block).numpy())
    inputs: Float32Array = np.concatenate(blocks)
    return inputs


def _draw_weights(
    rng: np.random.Generator, shape: tuple[int, ...], n_inputs: int
) -> Float32Array:
    """Draw the weights of a layer, of the size that keeps variances."""
    weights: FloatArray = rng.standard_normal(shape) * np.sqrt(2.0 / n_inputs)
    return weights.astype(np.float32)
