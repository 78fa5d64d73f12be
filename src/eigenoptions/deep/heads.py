"""Policies of many purposes trained by gradient: one network, a head per purpose and action, off-policy.

For comparison with `options.fitted.fit`, which solves for the same action values exactly, in closed form, on features
that stay as they are. Here the features are trained further on the values, by stochastic gradient and a slowly moving
copy that gives the targets (deep Q-learning; Mnih et al., 2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import check_float, check_int, make_generator
from eigenoptions.deep.backend import one_thread, torch
from eigenoptions.deep.dataset import Dataset
from eigenoptions.deep.encoder import Encoder
from eigenoptions.deep.objectives import Adam
from eigenoptions.mdp import Transitions
from eigenoptions.options import Purpose
from eigenoptions.options.fitted import TOP_QUANTILE, checked_actions
from eigenoptions.options.linear import LinearOptionSet, linear_options

# Largest step size of Adam, transitions per step, and share by which the copy moves in each step.
RATE, BATCH, COPY_RATE = 1e-3, 512, 0.02
# Share of a potential's range that an action must be worth; steps without a rise after which an option ends.
STOP, PATIENCE = 0.02, 8


def heads(
    transitions: Any,
    purposes: Sequence[Purpose],
    encoder: Encoder,
    *,
    n_actions: int | None = None,
    gamma: float = 0.9,
    steps: int = 1000,
    rng: int | np.random.Generator = 0,
    provenance: dict[str, Any] | None = None,
) -> LinearOptionSet:
    """Options of purposes, their action values trained by gradient on the encoder's layers.

    Every transition trains the values of all purposes. Rewards, TERMINATE and the limit on values are those of
    `options.fitted.fit`. The options end after 8 steps without a rise of their potential.

    Parameters
    ----------
    transitions
        As in `deep.learn`.
    purposes, encoder
        Directions in the space of the encoder's features, and the encoder.
    n_actions
        Number of actions; None: the largest in the data, plus one.
    gamma
        Discount.
    steps
        Number of training steps.
    rng
        Seed or generator of the batches.
    provenance
        Entries to record in the set.

    Examples
    --------
    >>> from eigenoptions.deep import learn
    >>> from eigenoptions.mdp import Transitions, maze
    >>> from eigenoptions.options import eigenpurposes
    >>> from eigenoptions.options.walks import walk
    >>> rooms = maze("four-rooms")
    >>> taken = walk(rooms, 2000)
    >>> xy = rooms.coords.astype(float)
    >>> seen = Transitions(xy[taken.obs], taken.action, xy[taken.next_obs], taken.terminated)
    >>> found = learn(seen, 3, steps=5)
    >>> heads(seen, eigenpurposes(found), found.features, steps=5)
    LinearOptionSet(4 learned options on 257 features: e2+, e2-, e3+, e3-)
    """
    if not isinstance(encoder, Encoder) or encoder.module is not None:
        raise ValueError(
            f"encoder must be an Encoder without an own module, got {type(encoder).__name__}: see learn"
        )
    data, generator = Dataset.of(transitions), make_generator(rng)
    numbered = Transitions(data.before, data.action, data.after, data.terminated)
    action, n_actions = checked_actions(numbered, n_actions)
    gamma, steps = check_float("gamma", gamma, minimum=0, below=1), check_int("steps", steps)
    made = linear_options(list(purposes), encoder, n_actions)
    f = made.potential(data.observations).T
    low, top = np.quantile(f, [1 - TOP_QUANTILE, TOP_QUANTILE], axis=0)
    size = np.where(top > low, top - low, 1.0)
    with one_thread():
        height = torch.from_numpy(((f - top) / size).astype(np.float32))
        weights, head = _trained(data, action, height, encoder, (n_actions, gamma, steps), generator)
    q = np.moveaxis(head.detach().double().numpy().reshape(-1, n_actions, len(made)), 2, 0)
    return replace(
        made,
        weights=np.ascontiguousarray(q.transpose(0, 2, 1) * size[:, None, None]),
        basis=encoder.with_weights(weights),
        threshold=STOP * size,
        provenance={"gamma": gamma, "learned": "by gradient", **(provenance or {})},
    ).guarded(patience=PATIENCE)


def _trained(
    data: Dataset,
    action: NDArray[np.int64],
    height: Any,
    encoder: Encoder,
    how: tuple[int, float, int],
    rng: np.random.Generator,
) -> tuple[dict[str, Any], Any]:
    """Trained layers, and weights ``(1 + m, A * purposes)`` of the heads; `height` is at most about 0."""
    n_actions, gamma, steps = how
    weights = encoder.trainable()
    head = torch.zeros(encoder.n_features, n_actions * height.shape[1]).requires_grad_()
    copy = {name: w.detach().clone() for name, w in [*weights.items(), ("head", head)]}
    before, after, ended, taken = (
        torch.from_numpy(np.ascontiguousarray(x)) for x in (data.before, data.after, data.terminated, action)
    )

    def values(numbers: Any, layers: dict[str, Any], last: Any) -> Any:
        which, back = torch.unique(numbers, return_inverse=True)
        h = encoder.hidden(encoder.inputs(data.observations[which.numpy()]), layers)
        return (last[0] + h @ last[1:]).reshape(len(which), n_actions, -1)[back]

    optimiser = Adam([*weights.values(), head])
    for step in range(steps):
        i = torch.from_numpy(rng.integers(len(data), size=BATCH))
        with torch.no_grad():
            best = values(after[i], copy, copy["head"]).amax(dim=1)
            # Most that can still be gained.
            limit = (-height[after[i]]).clamp(min=0.0) * ~ended[i][:, None]
            target = height[after[i]] - height[before[i]] + gamma * torch.minimum(best.clamp(min=0.0), limit)
        q = values(before[i], weights, head)[torch.arange(BATCH), taken[i]]
        ((q - target) ** 2).sum(dim=1).mean().backward()
        optimiser.step(RATE * (1.0 - step / steps))
        with torch.no_grad():
            for name, w in [*weights.items(), ("head", head)]:
                copy[name].lerp_(w, COPY_RATE)
    return weights, head
