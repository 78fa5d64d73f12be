"""`Encoder`: a trained feature map, whose weights are arrays and whose layers are a recipe of plain JSON values.

The first part of an encoder is frozen, and computed once per distinct observation during training: random Fourier
features of a vector ("mlp"), or principal components of a random convolution of an image ("random"). Two hidden layers
that are trained follow. The features are a constant 1, the last hidden layer, in whose span the eigenfunctions lie, and
then the inputs and the first hidden layer. The last layer is trained to hold slow functions. What changes in each step,
as the direction in which an agent looks, is lost there, but decides which action is best.
"""

from __future__ import annotations

import hashlib
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions._validation import check_choice
from eigenoptions.deep.backend import torch, use_one_thread
from eigenoptions.features import FeatureMap

# Observations that are encoded at a time.
BLOCK = 2048

Array = NDArray[np.float32]


@dataclass(frozen=True, eq=False, repr=False)
class Encoder(FeatureMap):
    """A trained feature map: observations ``(N, ...)`` to ``(N, d)``, a constant 1, the last layer and those before.

    Attributes
    ----------
    recipe
        Kind, shape of the observations, sizes of the layers and a digest of the weights, as JSON values. An options
        file holds it in its header, and the arrays beside.
    arrays
        Weights by name. torch is needed to call the map, not to load it.
    module
        The user's own module in place of the trained layers, which a file cannot hold; else None.

    Examples
    --------
    >>> from eigenoptions.deep import learn
    >>> from eigenoptions.data import Transitions
    >>> from eigenoptions.mdp import maze
    >>> from eigenoptions.options.walks import walk
    >>> rooms = maze("four-rooms")
    >>> steps = walk(rooms, 5000)
    >>> xy = rooms.coords.astype(float)
    >>> seen = Transitions(xy[steps.obs], steps.action, xy[steps.next_obs], steps.terminated)
    >>> encoder = learn(seen, 4, steps=5).features
    >>> encoder
    Encoder(mlp: observations (2,) to 769 features)
    >>> encoder(xy).shape
    (104, 769)
    """

    recipe: dict[str, Any]
    arrays: dict[str, Array] = field(default_factory=dict)
    module: Any = None
    name: ClassVar[str] = "deep"
    # Settings of `learn` by which `discover(..., features="deep")` trains it.
    settings: ClassVar[tuple[str, ...]] = (
        *(
            "encoder",
            "seconds",
            "training_steps",
            "batch",
            "rate",
            "discount",
            "lag",
            "recognise",
        ),
    )

    def to_dict(self) -> dict[str, Any]:
        """The recipe; a file holds the arrays beside it."""
        return {"map": self.name, "recipe": self.recipe}

    @property
    def n_features(self) -> int:
        """Number of features, the constant included."""
        n_inputs = (
            len(self.arrays["layer0.weight"]) if "layer0.weight" in self.arrays else 0
        )
        return 1 + int(sum(self.recipe["hidden"])) + n_inputs

    @classmethod
    def for_space(
        cls, space: Any = None, obs: ArrayLike | None = None, **settings: Any
    ) -> Self:
        """Not possible: an encoder is trained on transitions, by `learn` or by `discover` with features="deep"."""
        raise ValueError(
            "deep features are trained: call deep.learn, or discover(..., features='deep')"
        )

    def __call__(self, obs: ArrayLike) -> NDArray[np.float64]:
        """``(N, ...)`` to ``(N, d)``."""
        obs = np.asarray(obs)
        shape = tuple(self.recipe["shape"])
        if obs.shape[1:] != shape or obs.dtype.kind not in "biuf":
            raise ValueError(
                f"observations must be numbers (N, {shape}), got {obs.dtype} {obs.shape}"
            )
        phi = np.ones((len(obs), self.n_features))
        with use_one_thread(), torch.no_grad():
            for low in range(0, len(obs), BLOCK):
                *earlier, last = self.compute_layers(
                    self.inputs(obs[low : low + BLOCK]), self._tensors
                )
                phi[low : low + BLOCK, 1:] = torch.cat([last, *earlier], dim=1).numpy()
        return phi

    def inputs(self, obs: NDArray[Any]) -> Any:
        """The frozen first part: a tensor of inputs of the trained layers."""
        x = torch.from_numpy(np.ascontiguousarray(obs, dtype=np.float32))
        t, kind = self._tensors, self.recipe["encoder"]
        if kind == "module":
            return x
        if kind == "mlp":
            return torch.cos(x @ t["frequency"] + t["phase"]) * 2**0.5
        # A wrong value, far from all others, must not outweigh them.
        x = (x * float(self.recipe["scale"])).clamp(-100, 100)
        if x.ndim > 2:
            x = _to_channels(x)
        if "kernel" in t:
            x = torch.relu(torch.nn.functional.conv2d(x, t["kernel"], stride=2))
        x = x.reshape(len(x), -1)
        return (x - t["centre"]) @ t["components"] if "components" in t else x

    def compute_layers(self, x: Any, tensors: dict[str, Any]) -> list[Any]:
        """Inputs of the hidden layers, and the layers with these weights: each ``(N, m)``."""
        if self.recipe["encoder"] == "module":
            if self.module is None:
                raise ValueError(
                    "the encoder's own module is not in the file: pass features= when loading"
                )
            return [_check_output(self.module(x), len(x))]
        layers = [x.reshape(len(x), -1)]
        for i in range(len(self.recipe["hidden"])):
            layers.append(
                torch.relu(
                    layers[-1] @ tensors[f"layer{i}.weight"] + tensors[f"layer{i}.bias"]
                )
            )
        return layers

    @cached_property
    def _tensors(self) -> dict[str, Any]:
        return {
            name: torch.from_numpy(np.array(array))
            for name, array in self.arrays.items()
        }

    def replace_weights(self, trained: dict[str, Any]) -> Encoder:
        """The same encoder with other weights of the trained layers; a digest of all, which are read-only."""
        new = {name: tensor.detach().numpy().copy() for name, tensor in trained.items()}
        arrays, digest = {**self.arrays, **new}, hashlib.blake2b(digest_size=16)
        for name in sorted(arrays):
            arrays[name].flags.writeable = False
            digest.update(name.encode() + arrays[name].tobytes())
        return Encoder(
            {**self.recipe, "digest": digest.hexdigest()}, arrays, self.module
        )

    def copy_for(self, observations: NDArray[Any]) -> Encoder:
        """A copy, to be trained further; ValueError if it is not for such observations."""
        shape = tuple(self.recipe["shape"])
        if shape != observations.shape[1:]:
            raise ValueError(
                f"the encoder is for observations {shape}, got {observations.shape[1:]}"
            )
        return Encoder(self.recipe, self.arrays, deepcopy(self.module))

    def trainable(self) -> dict[str, Any]:
        """The weights that are trained: copies of those of the layers, or those of the user's module."""
        if self.module is not None:
            return dict(self.module.named_parameters())
        layers = [name for name in self.arrays if name.startswith("layer")]
        return {
            name: torch.from_numpy(self.arrays[name].copy()).requires_grad_()
            for name in layers
        }

    def __repr__(self) -> str:
        shape = tuple(self.recipe["shape"])
        return f"Encoder({self.recipe['encoder']}: observations {shape} to {self.n_features} features)"


def initialize_encoder(
    kind: Any,
    observations: NDArray[Any],
    steps: NDArray[np.float64],
    noisy: bool,
    rng: np.random.Generator,
    hidden: tuple[int, ...] = (256, 256),
) -> Encoder:
    """An encoder for observations like these ``(n, ...)``, with random weights of its trained layers.

    `steps` ``(D,)`` is the typical change of each dimension of vectors. If `noisy`, components like noise are left out.
    """
    shape = observations.shape[1:]
    if isinstance(kind, torch.nn.Module):
        return _wrap_module(kind, observations)
    if kind == "auto":
        kind = "mlp" if len(shape) == 1 and shape[0] <= 16 else "random"
    check_choice("encoder", kind, ("mlp", "random"))
    recipe: dict[str, Any] = {"encoder": kind, "shape": list(shape)}
    arrays: dict[str, Array] = {}
    if kind == "mlp":
        if len(shape) != 1:
            raise ValueError(
                f"encoder 'mlp' needs vectors (N, D), got observations {shape}: use 'random'"
            )
        arrays = _init_fourier(observations.astype(np.float64), steps, rng)
    else:
        if len(shape) > 4 or (len(shape) > 1 and sorted(shape)[-2] < 3):
            raise ValueError(
                f"images must have at least 3 x 3 pixels, got {shape}: flatten them"
            )
        recipe["scale"] = 1.0 / _estimate_size(observations)
        # Noise passes a convolution coloured, and could not be told from signal after it.
        if len(shape) > 1 and not noisy:
            n_channels = _to_channels(torch.empty(1, *shape)).shape[1]
            arrays["kernel"] = _draw_weights(
                rng, (16, n_channels, 3, 3), n_channels * 9
            )
        arrays |= _find_principal_components(
            Encoder(recipe, arrays), observations, noisy
        )
    # The trained layers.
    width = Encoder(recipe, arrays).inputs(observations[:1]).numel()
    for i, units in enumerate(hidden):
        arrays[f"layer{i}.weight"] = _draw_weights(rng, (width, units), width)
        arrays[f"layer{i}.bias"] = _draw_weights(rng, (units,), 100)
        width = units
    return Encoder({**recipe, "hidden": list(hidden)}, arrays)


def _wrap_module(module: Any, observations: NDArray[Any]) -> Encoder:
    """An encoder around the user's module, in evaluation mode: one answer per observation, whatever else is asked."""
    recipe = {"encoder": "module", "shape": list(observations.shape[1:]), "hidden": [0]}
    few = Encoder(recipe).inputs(observations[:8])
    with torch.no_grad():
        h = _check_output(module.eval()(few), len(few))
    if not torch.isfinite(h).all():
        raise ValueError(
            "the module returns values that are not finite: check its weights"
        )
    return Encoder({**recipe, "hidden": [int(h.shape[1])]}, {}, module)


def _check_output(h: Any, n: int) -> Any:
    if getattr(h, "ndim", None) != 2 or len(h) != n:
        shape = tuple(getattr(h, "shape", ())) or type(h).__name__
        raise ValueError(
            f"the module must return ({n}, m) for {n} observations, got {shape}"
        )
    return h.float()


def _init_fourier(
    x: NDArray[np.float64],
    steps: NDArray[np.float64],
    rng: np.random.Generator,
    n_features: int = 256,
) -> dict[str, Array]:
    """Frequencies and phases of random Fourier features about two steps wide in each dimension."""
    # The range of each dimension, of which a few wrong values are no part; 1 for a constant.
    low, high = np.quantile(x, [0.05, 0.95], axis=0, method="nearest")
    extent = np.where(high > low, (high - low) / 0.9, np.ptp(x, axis=0))
    extent = np.where(extent > 0, extent, 1.0)
    width = np.clip(2.0 * steps, extent / 24, extent / 2) * np.sqrt(
        max(1.0, x.shape[1] / 2)
    )
    frequency = rng.standard_normal((len(width), n_features)) / width[:, None]
    phase = rng.uniform(0, 2 * np.pi, n_features) - x.mean(axis=0) @ frequency
    return {
        "frequency": frequency.astype(np.float32),
        "phase": np.float32(phase % (2 * np.pi)),
    }


def _find_principal_components(
    encoder: Encoder, observations: NDArray[Any], noisy: bool, max_components: int = 512
) -> dict[str, Array]:
    """Principal components of the inputs, where they are noisy those above the noise; each scaled to variance 1."""
    blocks = range(0, len(observations), BLOCK)
    x = np.concatenate(
        [encoder.inputs(observations[i : i + BLOCK]).numpy() for i in blocks]
    )
    centre = x.mean(axis=0)
    # In units of its noise each pixel has the same: only then the rest after the signal looks like white noise.
    unit = _estimate_noise(x) if noisy else np.ones(x.shape[1], dtype=np.float32)
    x = (x - centre) / unit
    n, d = x.shape
    # The smaller of the two matrices has the same eigenvalues.
    G = (x @ x.T if n < d else x.T @ x).astype(np.float64) / n
    variances, axes = np.linalg.eigh(G)
    variances, axes = variances[::-1], axes[:, ::-1]
    n_signal = _count_above_noise(variances, n, d) if noisy else len(variances)
    n_components = int(
        np.clip((variances[:n_signal] > 1e-7 * variances[0]).sum(), 1, max_components)
    )
    variances, axes = variances[:n_components], axes[:, :n_components]
    if n < d:
        axes = (x.T @ axes) / np.sqrt(n * variances)
    # Equal components on every machine: the largest entry of each is positive.
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(n_components)])
    components = axes / np.sqrt(variances) / unit[:, None]
    return {
        "centre": centre.astype(np.float32),
        "components": components.astype(np.float32),
    }


def _estimate_noise(x: Array) -> Array:
    """``(D,)`` standard deviation of each column of ``(n, D)`` without its rare values, by the median deviation."""
    size = np.median(np.abs(x - np.median(x, axis=0)), axis=0) / 0.6745
    # Where a column hardly varies but for rare values, that of a typical column.
    varies = size > 0.01 * size.max()
    return np.where(
        varies, size, np.median(size[varies]) if varies.any() else 1.0
    ).astype(np.float32)


def _count_above_noise(
    variances: NDArray[np.float64], n: int, d: int, slack: float = 1.05
) -> int:
    """Number of variances, in descending order, from n samples in d dimensions, above those of white noise.

    The fewest after which the rest could be white noise: none of the rest exceeds the upper end of the eigenvalues of
    noise with their mean (Marchenko and Pastur, 1967).
    """
    variances = variances[: min(n, d)]
    n_removed = np.arange(len(variances))
    mean_of_rest = np.cumsum(variances[::-1])[::-1] / (d - n_removed)
    # Each component takes a dimension and a sample from the rest.
    is_noise = (
        variances
        <= slack * mean_of_rest * (1 + np.sqrt((d - n_removed) / (n - n_removed))) ** 2
    )
    return int(is_noise.argmax()) if is_noise.any() else len(variances)


def _to_channels(x: Any, max_side: int = 48) -> Any:
    """Images ``(N, ...)`` as ``(N, channels, height, width)``, pooled to sides of at most `max_side` pixels."""
    if x.ndim == 3:
        x = x[:, None]
    elif x.ndim == 5:
        # Stacked frames (N, frames, height, width, channels): all channels of all frames.
        x = x.permute(0, 1, 4, 2, 3).flatten(1, 2)
    elif x.shape[3] <= x.shape[1]:
        x = x.permute(0, 3, 1, 2)
    pool = -(-max(x.shape[2:]) // max_side)
    return (
        torch.nn.functional.avg_pool2d(x, pool, ceil_mode=True)
        if pool > 1
        else x.contiguous()
    )


def _estimate_size(observations: NDArray[Any]) -> float:
    """Typical largest absolute value of an observation; 255 for bytes."""
    if observations.dtype == np.uint8:
        return 255.0
    largest = np.abs(observations.reshape(len(observations), -1)).max(axis=1)
    return float(np.median(largest[largest > 0])) if largest.any() else 1.0


def _draw_weights(
    rng: np.random.Generator, shape: tuple[int, ...], n_inputs: int
) -> Array:
    """Weights of a layer with this many inputs, of the size that keeps variances."""
    return np.asarray(
        rng.standard_normal(shape) * np.sqrt(2.0 / n_inputs), dtype=np.float32
    )
