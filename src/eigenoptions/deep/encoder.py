"""`Encoder`: a trained feature map.

Its weights are arrays, and its layers are a recipe of plain JSON values.

The first part of an encoder is frozen: random Fourier features of a vector ("mlp"), or
principal components of a random convolution of an image ("random"). During training it
is computed once per distinct observation. Two hidden layers that are trained follow.

The features are a constant 1, the last hidden layer, the inputs of the first hidden
layer, and that layer itself. The eigenfunctions lie in the span of the constant and the
last hidden layer, which is trained to hold slow functions. What changes in each step,
as the direction in which an agent looks, is lost there. But it decides which action is
best, so the earlier layers are features too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions._types import Float32Array, FloatArray
from eigenoptions.deep.backend import Module, Tensor, torch, use_one_thread
from eigenoptions.samples.features import FeatureMap

# Observations that are encoded at a time, which bounds the memory.
_BLOCK_ROWS = 2048


@dataclass(frozen=True, eq=False, repr=False)
class Encoder(FeatureMap):
    """A trained feature map, from observations ``(N, ...)`` to features ``(N, d)``.

    Attributes
    ----------
    recipe : dict
        Kind, shape of the observations, sizes of the layers and a digest of the
        weights, as JSON values. An options file holds it in its header, and the arrays
        beside.
    arrays : dict of str to array
        Weights by name. torch is needed to call the map, not to load it.
    module : torch.nn.Module, optional
        Your own module in place of the trained layers. A file cannot hold it.

    Examples
    --------
    >>> from eigenoptions.deep import learn
    >>> from eigenoptions.samples import Transitions
    >>> from eigenoptions.mdp import maze
    >>> from eigenoptions.samples.walking import walk
    >>> rooms = maze("four-rooms")
    >>> steps = walk(rooms, 5000)
    >>> xy = rooms.coords.astype(float)
    >>> obs, next_obs = xy[steps.obs], xy[steps.next_obs]
    >>> seen = Transitions(obs, steps.action, next_obs, steps.terminated)
    >>> encoder = learn(seen, 4, steps=5).features
    >>> encoder
    Encoder(mlp: observations (2,) to 769 features)
    >>> encoder(xy).shape
    (104, 769)
    """

    recipe: dict[str, Any]
    arrays: dict[str, Float32Array] = field(default_factory=dict)
    module: Module | None = None

    name: ClassVar[str] = "deep"

    @classmethod
    def for_space(
        cls, space: Any = None, obs: ArrayLike | None = None, **settings: Any
    ) -> Self:
        """Raise ValueError: an encoder is trained, not made for a space."""
        raise ValueError(
            "deep features are trained: "
            "call deep.learn, or discover(..., features='deep')"
        )

    def to_dict(self) -> dict[str, Any]:
        """The recipe; a file holds the arrays beside it."""
        return {"map": self.name, "recipe": self.recipe}

    def __repr__(self) -> str:
        return (
            f"Encoder({self.recipe['encoder']}: observations {self._shape} "
            f"to {self.n_features} features)"
        )

    @property
    def n_features(self) -> int:
        """Number of features d, the constant included."""
        n_inputs = 0
        if "layer0.weight" in self.arrays:
            n_inputs = len(self.arrays["layer0.weight"])
        return 1 + n_inputs + int(sum(self.recipe["hidden"]))

    @property
    def _shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        return tuple(self.recipe["shape"])

    @cached_property
    def _tensors(self) -> dict[str, Tensor]:
        """The arrays as tensors, which share no memory with them."""
        return {
            name: torch.from_numpy(np.array(array))
            for name, array in self.arrays.items()
        }

    def __call__(self, obs: ArrayLike) -> FloatArray:
        """Map observations ``(N, ...)`` to features ``(N, d)``."""
        obs = np.asarray(obs)
        columns = self.recipe.get("columns")
        if columns is not None:
            width = int(self.recipe["width"])
            if obs.shape[1:] != (width,):
                raise ValueError(
                    f"observations must have shape (N, {width}), all columns that "
                    f"columns={columns} were chosen from, got {obs.shape}"
                )
            obs = obs[:, columns]
        if obs.shape[1:] != self._shape or obs.dtype.kind not in "biuf":
            raise ValueError(
                f"observations must be numbers (N, {self._shape}), "
                f"got {obs.dtype} {obs.shape}"
            )
        return self._encode(obs)

    def _encode(self, obs: NDArray[Any]) -> FloatArray:
        """Compute features, block by block."""
        phi = np.ones((len(obs), self.n_features))
        with use_one_thread(), torch.no_grad():
            for low in range(0, len(obs), _BLOCK_ROWS):
                block = slice(low, low + _BLOCK_ROWS)
                inputs = self.compute_inputs(obs[block])
                *earlier, last = self.compute_layers(inputs, self._tensors)
                phi[block, 1:] = torch.cat([last, *earlier], dim=1).numpy()
        return phi

    def compute_inputs(self, obs: NDArray[Any]) -> Tensor:
        """Compute the frozen first part: the inputs of the trained layers.

        Parameters
        ----------
        obs : array (N, ...)
            Observations.

        Returns
        -------
        Tensor
            ``(N, m)``; the observations themselves if the encoder is your own module.
        """
        kind = self.recipe["encoder"]
        tensors = self._tensors
        array = np.ascontiguousarray(obs, dtype=np.float32)
        if not array.flags.writeable:
            # Recorded transitions are read-only, which PyTorch warns of.
            array = array.copy()
        x = torch.from_numpy(array)

        if kind == "module":
            return x

        if kind == "mlp":
            return torch.cos(x @ tensors["frequency"] + tensors["phase"]) * sqrt(2)

        # A wrong value, far from all others, must not outweigh them.
        x = (x * float(self.recipe["scale"])).clamp(-100, 100)

        if x.ndim > 2:
            x = arrange_channels(x)
        if "kernel" in tensors:
            x = torch.relu(torch.nn.functional.conv2d(x, tensors["kernel"], stride=2))
        x = x.reshape(len(x), -1)
        if "components" in tensors:
            x = (x - tensors["centre"]) @ tensors["components"]
        return x

    def compute_layers(
        self, inputs: Tensor, weights: dict[str, Tensor]
    ) -> list[Tensor]:
        """Compute all layers from the inputs of the trained ones.

        Parameters
        ----------
        inputs : Tensor (N, ...)
            What `compute_inputs` returns.
        weights : dict of str to Tensor
            Weights of the trained layers by name.

        Returns
        -------
        list of Tensor
            The inputs and the hidden layers, each ``(N, m)``; the last hidden layer is
            the last. Only the output if the encoder is your own module.
        """
        if self.recipe["encoder"] == "module":
            if self.module is None:
                raise ValueError(
                    "the encoder's own module is not in the file: "
                    "pass features= when loading"
                )
            return [check_output(self.module(inputs), len(inputs))]

        layers = [inputs.reshape(len(inputs), -1)]
        for i in range(len(self.recipe["hidden"])):
            weight = weights[f"layer{i}.weight"]
            bias = weights[f"layer{i}.bias"]
            layers.append(torch.relu(layers[-1] @ weight + bias))
        return layers

    def get_trainable_weights(self) -> dict[str, Tensor]:
        """Copies of the layers' weights, or the parameters of your own module."""
        if self.module is not None:
            return dict(self.module.named_parameters())

        weights = {}
        for name, array in self.arrays.items():
            if name.startswith("layer"):
                weights[name] = torch.from_numpy(array.copy()).requires_grad_()
        return weights

    def replace_weights(self, trained: dict[str, Tensor]) -> Encoder:
        """The same encoder with other weights of the trained layers.

        The arrays of the result are read-only, and its recipe has a digest of them.
        """
        arrays = dict(self.arrays)
        for name, tensor in trained.items():
            arrays[name] = tensor.detach().numpy().copy()

        digest = hashlib.blake2b(digest_size=16)
        for name in sorted(arrays):
            arrays[name].flags.writeable = False
            digest.update(name.encode())
            digest.update(arrays[name].tobytes())

        recipe = {**self.recipe, "digest": digest.hexdigest()}
        return Encoder(recipe, arrays, self.module)

    def read_columns(self, columns: Sequence[int], width: int) -> Encoder:
        """The same encoder for observations ``(N, width)``, of which it takes some."""
        recipe = {**self.recipe, "columns": list(columns), "width": width}
        return Encoder(recipe, self.arrays, self.module)

    def copy_for(self, observations: NDArray[Any]) -> Encoder:
        """A copy to train further; ValueError if it is not for such observations."""
        if observations.shape[1:] != self._shape:
            raise ValueError(
                f"the encoder is for observations {self._shape}, "
                f"got {observations.shape[1:]}"
            )
        return Encoder(self.recipe, self.arrays, deepcopy(self.module))


def check_output(output: Any, n: int) -> Tensor:
    """Check that a user's module returned ``(n, m)`` features of n observations."""
    if getattr(output, "ndim", None) != 2 or len(output) != n:
        shape = tuple(getattr(output, "shape", ()))
        raise ValueError(
            f"the module must return ({n}, m) for {n} observations, "
            f"got {shape or type(output).__name__}"
        )
    features: Tensor = output.float()
    return features


# Most pixels a side.
_LARGEST_SIDE = 48


def arrange_channels(images: Tensor) -> Tensor:
    """Images as ``(N, channels, height, width)``, of at most 48 pixels a side.

    Larger images are averaged over squares of pixels.

    Parameters
    ----------
    images : Tensor
        ``(N, height, width)``; with channels first or last; or stacked frames ``(N,
        frames, height, width, channels)``.
    """
    if images.ndim == 3:
        images = images[:, None]
    elif images.ndim == 5:
        # All channels of all frames.
        images = images.permute(0, 1, 4, 2, 3).flatten(1, 2)
    elif images.shape[3] <= images.shape[1]:
        images = images.permute(0, 3, 1, 2)

    height, width = images.shape[2:]
    pool = ceil(max(height, width) / _LARGEST_SIDE)
    if pool == 1:
        return images.contiguous()
    return torch.nn.functional.avg_pool2d(images, pool, ceil_mode=True)
